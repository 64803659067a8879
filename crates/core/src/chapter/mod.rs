//! Groups whose messages are ordered by an algorithm of the laboratory, unchanged: ISIS or a sequencer. A *chapter* is one node's
//! part of such a group.
//!
//! The log says who is a member and when an *season* begins: with the group, with every view, and when a member's session moves.
//! In a season each node of the view is a member of one instance of the algorithm, which orders multicasts by sender and number;
//! what they say travels beside its packets, on the same links. The members of the group are sessions: a node multicasts
//! for its own, and tells them what is delivered.
//!
//! - **One order for good.** A node tells its clients of a message when every node of the season has it. So whoever survives
//!   has it, too, and gives it the same number.
//! - **A season begins with reports.** Every node ends the season before, and tells each other node what it has. When a node has all
//!   reports, it takes the longest order, which all others begin, and starts a new instance. What it was given to send and
//!   is not in that order it multicasts again.
//! - **Numbers only grow.** The log allows so many at a time. If no node of a view was in the one before, everything that was not
//!   told is lost, and numbers go on behind the last one that was allowed: whoever comes back sees the gap.
//!
//! Nothing here is on disk, does I/O or knows a clock.

mod part;
#[cfg(test)]
mod tests;
mod words;

pub use words::{ChapterLetter, ChapterWord, Content, Report};

use std::collections::BTreeMap;

use crate::error::{Refusal, Word};
use crate::estate::Peer;
use crate::job::Body;
use crate::limits::Limits;
use crate::name::Name;
use crate::ownership::Index;
use crate::replicated::{Change, GroupMessage, GroupUsing, Replicated};
use crate::session::SessionId;
use part::Chapter;

/// A node's chapters of all groups that are ordered by an algorithm.
#[derive(Debug)]
pub struct Chapters {
    own: Peer,
    chapters: BTreeMap<Name, Chapter>,
    /// Reports of seasons that the log has not said here yet, the newest of each sender.
    early: BTreeMap<(Name, Peer), (Index, Report)>,
    /// How often the log had said something of such groups when this last followed it.
    followed: Option<u64>,
    next_send: u64,
    out: ChaptersOut,
    /// Whether something has happened since what is to be done was last taken.
    touched: bool,
}

/// What chapters want done.
#[derive(Debug, Default)]
pub struct ChaptersOut {
    /// To be sent, in order.
    pub letters: Vec<(Peer, ChapterLetter)>,
    /// To be told to whoever listens, in order.
    pub told: Vec<(Name, GroupMessage)>,
    /// What became of a send: its number.
    pub sent: Vec<(u64, Result<u64, Refusal>)>,
    /// To be handed to the log.
    pub changes: Vec<Change>,
}

/// What a member is told that joins, or comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joining {
    /// The group runs here, and this node has told as much as the member has.
    Now {
        /// The number of the last message that it has told.
        last: u64,
        /// What the member was not delivered and is kept.
        kept: Vec<GroupMessage>,
        /// How many numbers are kept no longer.
        missed: u64,
    },
    /// Not yet.
    Later,
    /// Nobody can have been delivered that: this is the last number here.
    Never(u64),
}

impl Chapters {
    /// Those of a node that has just started.
    pub fn new(own: Peer) -> Chapters {
        Chapters {
            own,
            chapters: BTreeMap::new(),
            early: BTreeMap::new(),
            followed: None,
            next_send: 1,
            out: ChaptersOut::default(),
            touched: false,
        }
    }

    /// The log has said something: seasons begin, and groups are over.
    pub fn follow(&mut self, replicated: &Replicated) {
        if self.followed == Some(replicated.group_turns()) {
            return;
        }
        self.followed = Some(replicated.group_turns());
        self.touched = true;
        let Chapters {
            own, chapters, out, ..
        } = self;
        chapters.retain(|group, chapter| {
            let is = replicated.group(group);
            let stays = is.is_some_and(|record| record.using == chapter.using);
            if !stays {
                chapter.end(out);
            }
            stays
        });
        let view = replicated.view().members.iter();
        let view: Vec<Peer> = view.map(|member| (member.node, member.start)).collect();
        let is_here = |session: SessionId| {
            let home = replicated.session(session).map(|session| session.home);
            home.is_some_and(|home| (home.node, home.start) == *own)
        };
        for (group, record) in replicated.groups() {
            if record.using == GroupUsing::Log {
                continue;
            }
            let chapter = chapters
                .entry(group.clone())
                .or_insert_with(|| Chapter::new(*own, group.clone(), record.using));
            chapter.allow(record.last, out);
            if chapter.season() == Some(record.season) {
                continue;
            }
            chapter.withdraw(
                |session| is_here(session) && record.members.contains_key(&session),
                out,
            );
            chapter.begin_season(record.season, &view, record.floor, out);
            for peer in &view {
                let key = (group.clone(), *peer);
                let early = self.early.get(&key);
                if early.is_some_and(|(season, _)| *season <= record.season)
                    && let Some((season, report)) = self.early.remove(&key)
                {
                    chapter.receive(*peer, season, ChapterWord::Report(report), out);
                }
            }
        }
        // What is still here is of seasons to come, or of groups and starts that are gone.
        let index = replicated.index();
        self.early.retain(|_, (season, _)| *season > index);
    }

    /// A session of this node sends something; what becomes of it is told under this number.
    pub fn send(&mut self, group: &Name, from: SessionId, body: Body) -> Result<u64, Refusal> {
        let chapter = self.chapters.get_mut(group).ok_or_else(|| over(group))?;
        chapter.check_room(&body)?;
        let sequence = self.next_send;
        self.next_send += 1;
        self.touched = true;
        let content = Content {
            sequence,
            from,
            body,
        };
        chapter.send(content, &mut self.out);
        Ok(sequence)
    }

    /// Another node's chapter says something.
    pub fn receive(&mut self, from: Peer, letter: ChapterLetter) {
        self.touched = true;
        let ChapterLetter {
            group,
            season,
            word,
        } = letter;
        let chapter = self.chapters.get_mut(&group);
        let chapter = chapter.filter(|chapter| chapter.season() >= Some(season));
        match (chapter, word) {
            (Some(chapter), word) => chapter.receive(from, season, word, &mut self.out),
            // Nobody goes on in a season before it has this node's report, so there is nothing else.
            (None, ChapterWord::Report(report)) => {
                self.early.insert((group, from), (season, report));
            }
            (None, _) => {}
        }
    }

    /// What a member is told that joins, or comes back behind a number; nothing if the group is over.
    pub fn joining(&self, group: &str, after: Option<u64>) -> Option<Joining> {
        let chapter = self.chapters.get(group)?;
        Some(chapter.joining(after))
    }

    /// The number of the last message that this node has told, and the messages that it keeps, the newest first. Nothing
    /// where the group is not ordered by an algorithm.
    pub fn told(&self, group: &str) -> Option<(u64, impl ExactSizeIterator<Item = &GroupMessage>)> {
        let chapter = self.chapters.get(group)?;
        Some((chapter.told(), chapter.latest()))
    }

    /// Whether there may be something to be done.
    #[inline]
    pub fn has_out(&self) -> bool {
        self.touched
    }

    /// What is to be done.
    pub fn take_out(&mut self) -> ChaptersOut {
        self.touched = false;
        for chapter in self.chapters.values_mut() {
            chapter.say_has(&mut self.out);
        }
        std::mem::take(&mut self.out)
    }

    /// Tells before everybody has a message, so that a test can prove that it would notice.
    #[cfg(test)]
    pub(crate) fn break_on_purpose(&mut self) {
        for chapter in self.chapters.values_mut() {
            chapter.tells_at_once = true;
        }
    }
}

fn over(group: &Name) -> Refusal {
    let why = format!("group {group} is over; GROUP JOIN begins another one");
    Refusal::new(Word::Stale, why)
}

/// Another node may have placed what this one was to send.
fn unknown(group: &Name) -> Refusal {
    let why = format!(
        "the session has left group {group} or has moved; whether this was delivered shows there"
    );
    Refusal::new(Word::Unknown, why)
}

/// The refusal of more than a node keeps for one group.
fn full(group: &Name) -> Refusal {
    Refusal::new(
        Word::Limit,
        format!(
            "{} messages or {} bytes to group {group} are under way from this node; wait for their numbers",
            Limits::GROUP_UNDER_WAY,
            Limits::GROUP_UNDER_WAY_BYTES
        ),
    )
}
