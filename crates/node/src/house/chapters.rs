//! Groups that an algorithm orders: does what their chapters want done, and answers those who send or join.

use std::collections::BTreeMap;

use testigo_core::chapter::{ChapterLetter, Chapters, Joining};
use testigo_core::estate::Peer;
use testigo_core::{
    Change, GroupEvent, GroupJoined, GroupMessage, GroupRecord, GroupUsing, Name, Outcome, Refusal,
    Replicated, Word,
};

use super::letters::Letter;
use super::{Answers, ClientId, House};
use crate::wire::refuse;

/// Tags of sends are above those of the log.
const FIRST_TAG: u64 = 1 << 61;

/// The node's chapters, and who waits for them.
#[derive(Debug)]
pub(super) struct HouseChapters {
    chapters: Chapters,
    /// Sends without a number, by their sequence.
    sends: BTreeMap<u64, (Answers, Change)>,
    /// Members by the log that are not told so until the group runs here.
    joins: Vec<Joiner>,
}

#[derive(Debug)]
struct Joiner {
    tag: u64,
    answers: Answers,
    change: Change,
    joined: Box<GroupJoined>,
    /// Whether it is a new member, for which the log was told where it begins.
    is_new: bool,
}

impl HouseChapters {
    pub(super) fn new(own: Peer) -> HouseChapters {
        HouseChapters {
            chapters: Chapters::new(own),
            sends: BTreeMap::new(),
            joins: Vec::new(),
        }
    }

    /// Follows the log.
    pub(super) fn follow(&mut self, replicated: &Replicated) {
        self.chapters.follow(replicated);
    }

    /// Receives a letter from another node's chapter.
    pub(super) fn take_letter(&mut self, from: Peer, letter: ChapterLetter) {
        self.chapters.receive(from, letter);
    }

    /// The number of the last message that was told here.
    pub(super) fn last_told(&self, group: &str) -> Option<u64> {
        self.chapters.told(group).map(|(last, _)| last)
    }

    /// The connections that wait.
    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        let sends = self.sends.values().map(|(answers, _)| answers);
        let joins = self.joins.iter().map(|joiner| &joiner.answers);
        sends.chain(joins).filter_map(Answers::client)
    }
}

impl House {
    /// Whether a change sends to a group that the log does not order.
    pub(super) fn is_ordered_by_algorithm(&self, change: &Change) -> bool {
        let Change::SendToGroup { group, .. } = change else {
            return false;
        };
        let record = self.replicated().group(group);
        record.is_some_and(|record| record.using != GroupUsing::Log)
    }

    /// Hands a message to the chapter of its group. The sender is answered when the message has a number.
    pub(super) fn send_by_chapter(
        &mut self,
        change: Change,
        answers: Answers,
    ) -> Result<(), Refusal> {
        let Change::SendToGroup {
            group,
            session,
            body,
            ..
        } = &change
        else {
            unreachable!("nothing else is sent to a group")
        };
        let sequence = self.chapters.chapters.send(group, *session, body.clone())?;
        if let Some(id) = answers.client() {
            self.connections.sent_to_the_log(id, FIRST_TAG + sequence);
        }
        self.chapters.sends.insert(sequence, (answers, change));
        Ok(())
    }

    /// A session is a member by the log. It is told so when it is known where it begins.
    pub(super) fn join_chapter(
        &mut self,
        tag: u64,
        answers: Answers,
        change: Change,
        joined: Box<GroupJoined>,
    ) {
        self.chapters.joins.push(Joiner {
            tag,
            answers,
            change,
            joined,
            is_new: false,
        });
        self.answer_joiners();
    }

    /// Does what the chapters want done.
    pub(super) fn pass_on_chapters(&mut self) {
        while self.chapters.chapters.has_out() {
            let out = self.chapters.chapters.take_out();
            for (to, letter) in out.letters {
                self.say(to, &Letter::Chapter(Box::new(letter)));
            }
            for (group, message) in out.told {
                self.publish_group_event(GroupEvent::Delivered(group, message));
            }
            for (sequence, sent) in out.sent {
                if let Some((answers, change)) = self.chapters.sends.remove(&sequence) {
                    let outcome = sent.map(|number| Outcome::GroupSent { number });
                    self.answer_now(FIRST_TAG + sequence, answers, &change, outcome);
                }
            }
            for change in out.changes {
                let _ = self.submit(change, Answers::Nobody);
            }
            self.answer_joiners();
        }
    }

    fn answer_joiners(&mut self) {
        for mut joiner in std::mem::take(&mut self.chapters.joins) {
            let joining = self.place_joiner(&mut joiner);
            if joining == Some(Joining::Later) {
                self.chapters.joins.push(joiner);
                continue;
            }
            let Joiner {
                tag,
                answers,
                change,
                mut joined,
                ..
            } = joiner;
            let Change::JoinGroup { group, after, .. } = &change else {
                unreachable!("nobody else joins")
            };
            let outcome = match joining {
                Some(Joining::Later) => unreachable!("it waits"),
                Some(Joining::Now { last, kept, missed }) => {
                    (joined.last, joined.kept, joined.missed) = (last, kept, missed);
                    Ok(Outcome::GroupJoined(joined))
                }
                Some(Joining::Never(last)) => Err(refuse(
                    Word::BadArg,
                    format!(
                        "nobody was delivered message {} of group {group}; the last one is {last}",
                        after.unwrap_or_default()
                    ),
                )),
                None => {
                    let why = format!("group {group} is over; GROUP JOIN begins another one");
                    Err(refuse(Word::Stale, why))
                }
            };
            self.answer_now(tag, answers, &change, outcome);
        }
    }

    /// The answer to a joiner, if there is one yet. A new member must wait until the log knows a number that this node had
    /// reached: behind that number it may come back, at any node.
    fn place_joiner(&mut self, joiner: &mut Joiner) -> Option<Joining> {
        let Change::JoinGroup {
            group,
            session,
            home,
            after,
            ..
        } = &joiner.change
        else {
            unreachable!("nobody else joins")
        };
        let record = self.replicated().group(group)?;
        let placed = *record.members.get(session)?;
        if placed > 0 {
            // A new member is told the present number, with nothing behind it: messages that came meanwhile it may still ask
            // for.
            return self.chapters.chapters.joining(group, *after);
        }
        let joining = self.chapters.chapters.joining(group, None)?;
        if let (Joining::Now { last, .. }, false) = (joining, joiner.is_new) {
            joiner.is_new = true;
            let place = Change::PlaceMember {
                group: group.clone(),
                session: *session,
                home: *home,
                after: last,
            };
            let _ = self.submit(place, Answers::Nobody);
        }
        Some(Joining::Later)
    }

    /// The node has stopped.
    pub(super) fn end_chapters(&mut self) {
        let sends = std::mem::take(&mut self.chapters.sends);
        let sends = sends
            .into_iter()
            .map(|(sequence, (answers, change))| (FIRST_TAG + sequence, answers, change));
        let joins = std::mem::take(&mut self.chapters.joins);
        let joins = joins
            .into_iter()
            .map(|joiner| (joiner.tag, joiner.answers, joiner.change));
        for (tag, answers, change) in sends.chain(joins) {
            let why = "the node has stopped; whether it was done shows in the cluster";
            self.answer_now(tag, answers, &change, Err(refuse(Word::Unknown, why)));
        }
    }

    /// The number of the last message of a group that was told here, and how many are kept.
    pub(crate) fn group_told(&self, group: &Name, record: &GroupRecord) -> (u64, usize) {
        match self.chapters.chapters.told(group) {
            Some((last, kept)) => (last, kept.len()),
            None => (record.last, record.kept()),
        }
    }

    /// The messages of a group that are kept, newest first.
    pub(crate) fn group_latest<'a>(
        &'a self,
        group: &Name,
        record: &'a GroupRecord,
    ) -> impl Iterator<Item = &'a GroupMessage> {
        let by_algorithm = self.chapters.chapters.told(group);
        let by_algorithm = by_algorithm.into_iter().flat_map(|(_, kept)| kept);
        // Ordered by the log or by an algorithm, never both.
        by_algorithm.chain(record.latest())
    }
}
