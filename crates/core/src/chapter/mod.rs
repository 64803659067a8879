//! Groups whose messages are ordered by an algorithm of the laboratory, unchanged: ISIS or a sequencer. A *chapter* is one
//! node's part of such a group.
//!
//! The log says who is a member and when a *season* begins: with the group, with every view, and when a member's session
//! moves. In a season each node of the view is a member of one instance of the algorithm, which orders multicasts by sender
//! and number; their contents travel beside its packets, on the same links. The members of the group are sessions: a node
//! multicasts for its own sessions, and tells them what is delivered.
//!
//! - **One order for good.** A node tells its clients of a message when every node of the season has it. So every node that
//!   survives has it, too, under the same number.
//! - **A season begins with reports.** Every node ends the previous season, and tells each other node what it has. When a
//!   node has all reports, it takes the longest order, of which all others are prefixes, and starts a new instance. Messages
//!   that it was given to send and that are not in that order it multicasts again.
//! - **Numbers only grow.** The log allows a range of them at a time. If no node of a view was in the previous one,
//!   everything that was not told is lost, and numbers go on behind the last one allowed: members that come back see the gap.
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

/// A node's chapters of all groups that an algorithm orders.
#[derive(Debug)]
pub struct Chapters {
    own: Peer,
    chapters: BTreeMap<Name, Chapter>,
    /// Reports of seasons that the log has not begun here yet, the newest of each sender.
    early: BTreeMap<(Name, Peer), (Index, Report)>,
    /// How many entries of the log had concerned such groups when this last followed it.
    followed: Option<u64>,
    next_send: u64,
    out: ChaptersOut,
    /// Whether anything has happened since the output was last taken.
    touched: bool,
}

/// What chapters want done.
#[derive(Debug, Default)]
pub struct ChaptersOut {
    /// Letters to send, in order.
    pub letters: Vec<(Peer, ChapterLetter)>,
    /// Messages to tell listeners, in order.
    pub told: Vec<(Name, GroupMessage)>,
    /// Sends and their outcome: the number, or why not.
    pub sent: Vec<(u64, Result<u64, Refusal>)>,
    /// Changes for the log.
    pub changes: Vec<Change>,
}

/// The answer to a member that joins or comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joining {
    /// The group runs here, and this node has told at least as much as the member has.
    Now {
        /// The number of the last message that it has told.
        last: u64,
        /// Messages that were not delivered to the member and are still kept.
        kept: Vec<GroupMessage>,
        /// How many of its missing messages are no longer kept.
        missed: u64,
    },
    /// Not yet.
    Later,
    /// Nobody can have that many: this is the last number here.
    Never(u64),
}

impl Chapters {
    /// The chapters of a node that has just started.
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

    /// Follows the log: seasons begin, and groups end.
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
        // The remaining ones belong to seasons to come, or to groups and starts that are gone.
        let index = replicated.index();
        self.early.retain(|_, (season, _)| *season > index);
    }

    /// A session of this node sends a message; returns the number under which the outcome is reported.
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

    /// Receives a letter from another node's chapter.
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
            // No node goes on in a season before it has this node's report, so nothing else can come.
            (None, ChapterWord::Report(report)) => {
                self.early.insert((group, from), (season, report));
            }
            (None, _) => {}
        }
    }

    /// The answer to a member that joins, or comes back behind a number; `None` if the group has ended.
    pub fn joining(&self, group: &str, after: Option<u64>) -> Option<Joining> {
        let chapter = self.chapters.get(group)?;
        Some(chapter.joining(after))
    }

    /// The number of the last message that this node has told, and the messages that it keeps, newest first. `None` if no
    /// algorithm orders the group.
    pub fn told(&self, group: &str) -> Option<(u64, impl ExactSizeIterator<Item = &GroupMessage>)> {
        let chapter = self.chapters.get(group)?;
        Some((chapter.told(), chapter.latest()))
    }

    /// Whether there may be output.
    #[inline]
    pub fn has_out(&self) -> bool {
        self.touched
    }

    /// Takes the output.
    pub fn take_out(&mut self) -> ChaptersOut {
        self.touched = false;
        for chapter in self.chapters.values_mut() {
            chapter.say_has(&mut self.out);
        }
        std::mem::take(&mut self.out)
    }

    /// Tells messages before everybody has them, so that a test can prove that it would notice.
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

/// Another node may have delivered what this one was to send.
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
