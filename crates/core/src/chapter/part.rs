//! One node's part of one group.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use testigo_protocol::multicast::{ALGORITHMS, Ask, Cast, Group, Multicast, Tell};
use testigo_protocol::{Effects, Member, NodeId, Packet, Setup};

use super::words::Placed;
use super::{
    ChapterLetter, ChapterWord, ChaptersOut, Content, Joining, Report, full, over, unknown,
};
use crate::error::Refusal;
use crate::estate::Peer;
use crate::job::Body;
use crate::limits::Limits;
use crate::name::Name;
use crate::ownership::Index;
use crate::replicated::{Change, GroupMessage, GroupRecord, GroupUsing};
use crate::session::SessionId;

#[derive(Debug)]
pub(super) struct Chapter {
    own: Peer,
    group: Name,
    pub(super) using: GroupUsing,
    season: Option<Index>,
    /// The nodes of the season, by their numbers in the algorithm.
    nodes: Vec<Peer>,
    /// Behind this number the order begins if nobody remembers a message.
    floor: u64,
    /// The highest number that the log allows, and the highest that it was asked for.
    allowed: u64,
    asked_for: u64,

    /// The number of the last message with a place here; `None` if no message is remembered.
    last: Option<u64>,
    /// The number of the last message that clients were told.
    told: u64,
    /// The messages up to the last one, without a gap, including all that are not told yet.
    placed: VecDeque<Placed>,
    placed_bytes: usize,
    /// How much each node has said that it has. It has that as long as it runs.
    has: BTreeMap<Peer, u64>,

    /// Messages that this node was given to send and that have no place yet.
    under_way: BTreeMap<u64, Content>,
    under_way_bytes: usize,

    /// The reports of other nodes, until the season has all of them.
    reports: BTreeMap<Peer, Report>,
    run: Option<Run>,
    /// Words from nodes that had all reports earlier than this one.
    held: Vec<(Peer, ChapterWord)>,
    #[cfg(test)]
    pub(super) tells_at_once: bool,
}

/// The algorithm in one season.
struct Run {
    member: Box<dyn Member<Multicast>>,
    effects: Effects<Multicast, Packet>,
    /// The contents of multicasts, by sender and number, until they are delivered.
    contents: BTreeMap<(u32, u32), Content>,
    /// How many messages each node has multicast.
    counts: Vec<u32>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Chapter {
    pub(super) fn new(own: Peer, group: Name, using: GroupUsing) -> Chapter {
        Chapter {
            own,
            group,
            using,
            season: None,
            nodes: Vec::new(),
            floor: 0,
            allowed: 0,
            asked_for: 0,
            last: None,
            told: 0,
            placed: VecDeque::new(),
            placed_bytes: 0,
            has: BTreeMap::new(),
            under_way: BTreeMap::new(),
            under_way_bytes: 0,
            reports: BTreeMap::new(),
            run: None,
            held: Vec::new(),
            #[cfg(test)]
            tells_at_once: false,
        }
    }

    pub(super) fn season(&self) -> Option<Index> {
        self.season
    }

    pub(super) fn told(&self) -> u64 {
        self.told
    }

    /// The messages that were told and are kept, newest first.
    pub(super) fn latest(&self) -> impl ExactSizeIterator<Item = &GroupMessage> {
        let untold = self.last.map_or(0, |last| last - self.told) as usize;
        let told = self.placed.len() - untold;
        let told = self.placed.range(..told).rev();
        told.map(|placed| &placed.message)
    }

    /// The log allows numbers up to `to`.
    pub(super) fn allow(&mut self, to: u64, out: &mut ChaptersOut) {
        self.allowed = to;
        self.asked_for = self.asked_for.max(to);
        self.tell(out);
    }

    /// Withdraws the messages of sessions that may no longer send.
    pub(super) fn withdraw(&mut self, may: impl Fn(SessionId) -> bool, out: &mut ChaptersOut) {
        let gone = self.under_way.values();
        let gone = gone.filter(|content| !may(content.from));
        let gone: Vec<u64> = gone.map(|content| content.sequence).collect();
        for sequence in gone {
            self.forget(sequence);
            out.sent.push((sequence, Err(unknown(&self.group))));
        }
    }

    /// The group has ended. A message without a place here was told nowhere; the outcome of one with a place is unknown.
    pub(super) fn end(&mut self, out: &mut ChaptersOut) {
        let placed = self.placed.iter();
        let untold = placed.filter(|placed| placed.message.number > self.told);
        let untold = untold.filter(|placed| placed.node == self.own);
        let untold = untold.map(|placed| (placed.sequence, Err(unknown(&self.group))));
        let under_way = self.under_way.keys();
        let under_way = under_way.map(|sequence| (*sequence, Err(over(&self.group))));
        out.sent.extend(untold.chain(under_way));
    }

    pub(super) fn check_room(&self, body: &Body) -> Result<(), Refusal> {
        let bytes = self.under_way_bytes + body.len();
        match self.under_way.len() < Limits::GROUP_UNDER_WAY
            && bytes <= Limits::GROUP_UNDER_WAY_BYTES
        {
            true => Ok(()),
            false => Err(full(&self.group)),
        }
    }

    pub(super) fn send(&mut self, content: Content, out: &mut ChaptersOut) {
        let sequence = content.sequence;
        self.under_way_bytes += content.body.len();
        self.under_way.insert(sequence, content);
        if self.run.is_some() {
            self.multicast(sequence, out);
        }
    }

    fn forget(&mut self, sequence: u64) {
        if let Some(content) = self.under_way.remove(&sequence) {
            self.under_way_bytes -= content.body.len();
        }
    }

    /// Begins a season. What was under way in the previous one is no longer delivered, unless another node reports it.
    pub(super) fn begin_season(
        &mut self,
        season: Index,
        nodes: &[Peer],
        floor: u64,
        out: &mut ChaptersOut,
    ) {
        self.season = Some(season);
        self.nodes = nodes.to_vec();
        self.floor = floor;
        self.run = None;
        self.held.clear();
        self.reports.clear();
        // A `Has` of the previous season may arrive too late to count, so this node says again what it has.
        self.has
            .retain(|peer, _| nodes.contains(peer) && *peer != self.own);
        if !nodes.contains(&self.own) {
            return;
        }
        for peer in self.others() {
            let has = self.has.get(&peer).copied();
            let placed = self.placed.iter();
            let lacks = placed.filter(|placed| Some(placed.message.number) > has);
            let report = Report {
                last: self.last,
                told: self.told,
                messages: lacks.cloned().collect(),
            };
            self.say(peer, ChapterWord::Report(report), out);
        }
        self.begin_if_ready(out);
    }

    fn others(&self) -> Vec<Peer> {
        let nodes = self.nodes.iter().copied();
        nodes.filter(|peer| *peer != self.own).collect()
    }

    fn say(&self, to: Peer, word: ChapterWord, out: &mut ChaptersOut) {
        let letter = ChapterLetter {
            group: self.group.clone(),
            season: self
                .season
                .expect("nothing is said before the first season"),
            word,
        };
        out.letters.push((to, letter));
    }

    pub(super) fn receive(
        &mut self,
        from: Peer,
        season: Index,
        word: ChapterWord,
        out: &mut ChaptersOut,
    ) {
        let at = self.nodes.iter().position(|peer| *peer == from);
        let (Some(at), true) = (at, self.season == Some(season)) else {
            return;
        };
        match word {
            ChapterWord::Report(report) => {
                self.reports.insert(from, report);
                self.begin_if_ready(out);
            }
            word if self.run.is_none() => self.held.push((from, word)),
            ChapterWord::Content(content) => {
                let run = self.run.as_mut().expect("it runs");
                run.counts[at] += 1;
                run.contents.insert((at as u32, run.counts[at]), content);
            }
            ChapterWord::Packet(packet) => {
                let run = self.run.as_mut().expect("it runs");
                let from = NodeId(at as u32);
                // A node trusts its peers; a packet that it cannot read it ignores.
                let taken = run.member.receive(from, &packet, &mut run.effects);
                debug_assert_eq!(taken, Ok(()));
                if taken.is_ok() {
                    self.settle(out);
                }
            }
            ChapterWord::Has(number) => {
                let has = self.has.entry(from).or_default();
                *has = number.max(*has);
                self.tell(out);
            }
        }
    }

    fn begin_if_ready(&mut self, out: &mut ChaptersOut) {
        let all_there = self
            .others()
            .iter()
            .all(|peer| self.reports.contains_key(peer));
        if self.run.is_some() || !all_there || !self.nodes.contains(&self.own) {
            return;
        }
        self.take_longest();
        let own = self.nodes.iter().position(|peer| *peer == self.own);
        let own = NodeId(own.expect("it was looked up") as u32);
        let setup = Setup::new(self.nodes.len());
        let mut algorithms = ALGORITHMS.iter();
        let algorithm = algorithms
            .find(|algorithm| algorithm.profile.name == self.using.name())
            .expect("the laboratory has it");
        let machine = (algorithm.machine)(&setup).expect("any number of nodes will do");
        let member = machine.member(own, algorithm.tag(&setup));
        let mut run = Run {
            member: member.expect("a view has fewer nodes than an algorithm may"),
            effects: Effects::default(),
            contents: BTreeMap::new(),
            counts: vec![0; self.nodes.len()],
        };
        run.member.start(&mut run.effects);
        self.run = Some(run);
        self.settle(out);
        for (from, word) in std::mem::take(&mut self.held) {
            let season = self.season.expect("it has begun");
            self.receive(from, season, word, out);
        }
        let again: Vec<u64> = self.under_way.keys().copied().collect();
        for sequence in again {
            self.multicast(sequence, out);
        }
    }

    /// Of two orders one is a prefix of the other, so the longest is everybody's.
    fn take_longest(&mut self) {
        let reports = std::mem::take(&mut self.reports);
        let told = reports.values().map(|report| report.told).max();
        let longest = reports.into_values().max_by_key(|report| report.last);
        let longest = longest.filter(|report| report.last > self.last);
        let remembered = self.last.is_some();
        if let Some(report) = longest {
            for placed in report.messages {
                if Some(placed.message.number) > self.last {
                    debug_assert!(
                        self.last
                            .is_none_or(|last| last + 1 == placed.message.number),
                        "a node that goes on lacks nothing that others have forgotten"
                    );
                    self.place(placed);
                }
            }
            // A newcomer is given what is kept, which may be nothing.
            self.last = report.last;
        }
        if self.last.is_none() {
            self.last = Some(self.floor);
            self.told = self.floor;
        } else if !remembered {
            self.told = told.expect("somebody else remembers");
        }
    }

    fn place(&mut self, placed: Placed) {
        self.last = Some(placed.message.number);
        self.placed_bytes += placed.message.body.len();
        if placed.node == self.own {
            self.forget(placed.sequence);
        }
        self.placed.push_back(placed);
    }

    /// Hands a message to the algorithm.
    fn multicast(&mut self, sequence: u64, out: &mut ChaptersOut) {
        let content = self.under_way[&sequence].clone();
        for peer in self.others() {
            self.say(peer, ChapterWord::Content(content.clone()), out);
        }
        let run = self.run.as_mut().expect("it runs");
        let own = run.member.id();
        run.counts[own.index()] += 1;
        run.contents
            .insert((own.0, run.counts[own.index()]), content);
        run.member.ask(Ask::Multicast(Group(0)), &mut run.effects);
        self.settle(out);
    }

    /// Sends what a step of the algorithm sent, and places what it delivered.
    fn settle(&mut self, out: &mut ChaptersOut) {
        let run = self.run.as_mut().expect("it runs");
        debug_assert!(run.effects.timers.is_empty(), "neither has timers");
        let sends = std::mem::take(&mut run.effects.sends);
        let tells = std::mem::take(&mut run.effects.tells);
        for (to, packet) in sends {
            let peer = self.nodes[to.index()];
            self.say(peer, ChapterWord::Packet(packet), out);
        }
        for Tell::Delivered(cast) in tells {
            self.deliver(cast);
        }
        self.tell(out);
    }

    fn deliver(&mut self, cast: Cast) {
        let run = self.run.as_mut().expect("it runs");
        let content = run.contents.remove(&(cast.sender.0, cast.number));
        // On a link, the content of a multicast comes before the multicast.
        let content = content.expect("it came before");
        let number = self.last.expect("a season begins behind a number") + 1;
        self.place(Placed {
            message: GroupMessage {
                number,
                from: content.from,
                body: content.body,
            },
            node: self.nodes[cast.sender.index()],
            sequence: content.sequence,
        });
    }

    /// Tells other nodes what this one has, if that is more than before.
    pub(super) fn say_has(&mut self, out: &mut ChaptersOut) {
        if self.run.is_none() || self.last == self.has.get(&self.own).copied() {
            return;
        }
        let last = self.last.expect("it runs");
        self.has.insert(self.own, last);
        for peer in self.others() {
            self.say(peer, ChapterWord::Has(last), out);
        }
        self.tell(out);
    }

    /// Tells clients what every node has.
    fn tell(&mut self, out: &mut ChaptersOut) {
        let (Some(last), Some(_)) = (self.last, &self.run) else {
            return;
        };
        let has = |peer: &Peer| match *peer == self.own {
            true => Some(last),
            false => self.has.get(peer).copied(),
        };
        let all_have = self.nodes.iter().map(has).min().flatten();
        #[cfg(test)]
        let all_have = if self.tells_at_once {
            Some(last)
        } else {
            all_have
        };
        let until = all_have.unwrap_or(self.told).min(self.allowed);
        while self.told < until {
            self.told += 1;
            let behind = (last - self.told) as usize;
            let placed = &self.placed[self.placed.len() - 1 - behind];
            if placed.node == self.own {
                out.sent.push((placed.sequence, Ok(self.told)));
            }
            out.told.push((self.group.clone(), placed.message.clone()));
        }
        self.trim();
        let wants = last + GroupRecord::NUMBERS / 2;
        if wants > self.asked_for && self.nodes.first() == Some(&self.own) {
            self.asked_for += GroupRecord::NUMBERS;
            out.changes.push(Change::RaiseGroup {
                group: self.group.clone(),
                to: self.asked_for,
            });
        }
    }

    /// Trims the kept messages that everybody was told.
    fn trim(&mut self) {
        while let Some(oldest) = self.placed.front()
            && oldest.message.number <= self.told
            && (self.placed.len() > Limits::GROUP_KEPT
                || self.placed_bytes > Limits::GROUP_KEPT_BYTES)
        {
            self.placed_bytes -= oldest.message.body.len();
            self.placed.pop_front();
        }
    }

    /// A message that one node has told has a place at all nodes that run.
    pub(super) fn joining(&self, after: Option<u64>) -> Joining {
        let (Some(_), Some(last)) = (&self.run, self.last) else {
            return Joining::Later;
        };
        let behind = after.unwrap_or(self.told);
        if behind > last {
            return Joining::Never(last);
        }
        if behind > self.told {
            return Joining::Later;
        }
        let told = self.placed.iter().map(|placed| &placed.message);
        let told = told.filter(|message| message.number <= self.told);
        let kept: Vec<GroupMessage> = told
            .filter(|message| message.number > behind)
            .cloned()
            .collect();
        Joining::Now {
            last: self.told,
            missed: self.told - behind - kept.len() as u64,
            kept,
        }
    }
}
