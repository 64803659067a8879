//! Groups: a message from one member is delivered to all of them, numbered, in one order: the log's, or one on which the
//! nodes agree by an algorithm ([`crate::chapter`]). That order is total, and also FIFO and causal: a session's messages
//! follow each other through its home, and a message that answers a delivered one comes behind it. So a group gets all three
//! orders that it may ask for, and remembers which one it asked for.
//!
//! Of a group that an algorithm orders, the log has the members, the season, and how far its numbers may rise.
//!
//! Members are opened sessions. The last messages are kept, within [`Limits::GROUP_KEPT`] and [`Limits::GROUP_KEPT_BYTES`],
//! for members that were away. A member that was away for longer is told how many it has missed.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use serde::{Deserialize, Serialize};

use super::checks::below;
use crate::error::{Refusal, Word};
use crate::job::Body;
use crate::limits::Limits;
use crate::name::Name;
use crate::ownership::Index;
use crate::session::SessionId;

/// The delivery order that a group asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupOrder {
    /// Each member's messages in the order in which it sent them.
    Fifo,
    /// Like FIFO, and a message that may have caused another one comes before it.
    Causal,
    /// The same order for all members.
    #[default]
    Total,
}

impl GroupOrder {
    /// All of them; the order of the log satisfies each.
    pub const ALL: [GroupOrder; 3] = [GroupOrder::Fifo, GroupOrder::Causal, GroupOrder::Total];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            GroupOrder::Fifo => "FIFO",
            GroupOrder::Causal => "CAUSAL",
            GroupOrder::Total => "TOTAL",
        }
    }
}

/// What orders the messages of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupUsing {
    /// Each message is an entry of the log.
    #[default]
    Log,
    /// The nodes agree on a number for each message.
    Isis,
    /// One node assigns the numbers.
    Sequencer,
}

impl GroupUsing {
    /// All of them.
    pub const ALL: [GroupUsing; 3] = [GroupUsing::Log, GroupUsing::Isis, GroupUsing::Sequencer];

    /// The word on the wire; an algorithm has the same name in the laboratory.
    pub fn name(self) -> &'static str {
        match self {
            GroupUsing::Log => "log",
            GroupUsing::Isis => "isis",
            GroupUsing::Sequencer => "sequencer",
        }
    }
}

/// A message to a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMessage {
    /// Its number: one more than that of the message before.
    pub number: u64,
    /// Who sent it.
    pub from: SessionId,
    /// Its bytes.
    pub body: Body,
}

/// A group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRecord {
    /// The order that it asks for.
    pub order: GroupOrder,
    /// What orders its messages.
    pub using: GroupUsing,
    /// Ordered by the log: the number of the last message. Otherwise: the highest number that the log allows so far.
    pub last: u64,
    /// The members, and for each the number of the last message before it joined. If an algorithm orders the group, the
    /// member's home says that number after the join; until then it is 0, which no message has.
    pub members: BTreeMap<SessionId, u64>,
    /// The log entry with which the algorithm's present season began.
    pub(crate) season: Index,
    /// Behind this number the algorithm goes on if no node remembers a message.
    pub(crate) floor: u64,
    kept: VecDeque<GroupMessage>,
    kept_bytes: usize,
}

/// What a member is told when it joins or comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupJoined {
    /// The group.
    pub group: Name,
    /// The order that it asks for.
    pub order: GroupOrder,
    /// What orders its messages.
    pub using: GroupUsing,
    /// The number of the last message: deliveries from now on follow it.
    pub last: u64,
    /// How many members there are.
    pub members: usize,
    /// Messages that were not delivered to it and are still kept.
    pub kept: Vec<GroupMessage>,
    /// How many messages were not delivered to it and are no longer kept.
    pub missed: u64,
}

/// What an entry of the log means to listeners of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// A message is delivered.
    Delivered(Name, GroupMessage),
    /// A session is a member, behind the message with this number.
    Joined(Name, SessionId, u64),
    /// A session is no longer a member, behind the message with this number.
    Left(Name, SessionId, u64),
}

/// All groups that have members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Groups {
    records: BTreeMap<Name, GroupRecord>,
    /// The highest number of any group that has ended.
    floor: u64,
    /// How many entries of the log have concerned a group that an algorithm orders.
    turns: u64,
}

impl GroupRecord {
    /// How many numbers the log allows an algorithm at a time.
    pub(crate) const NUMBERS: u64 = 1 << 20;

    /// A group that begins at a place of the log. Its numbers follow the log's index there, or those of ended groups, so that
    /// no later group of the same name repeats one.
    fn new(order: GroupOrder, using: GroupUsing, index: Index, floor: u64) -> GroupRecord {
        let begins = index.0.max(floor);
        GroupRecord {
            order,
            using,
            last: match using {
                GroupUsing::Log => begins,
                _ => begins + GroupRecord::NUMBERS,
            },
            members: BTreeMap::new(),
            season: index,
            floor: begins,
            kept: VecDeque::new(),
            kept_bytes: 0,
        }
    }

    /// How many messages are kept.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// The messages that are kept, newest first.
    pub fn latest(&self) -> impl Iterator<Item = &GroupMessage> {
        self.kept.iter().rev()
    }

    /// The kept messages behind a number, and how many are no longer kept.
    fn after(&self, number: u64) -> (Vec<GroupMessage>, u64) {
        let later = self.kept.iter().filter(|message| message.number > number);
        let later: Vec<GroupMessage> = later.cloned().collect();
        let missed = self.last - number - later.len() as u64;
        (later, missed)
    }

    fn keep(&mut self, message: GroupMessage) {
        self.kept_bytes += message.body.len();
        self.kept.push_back(message);
        while self.kept.len() > Limits::GROUP_KEPT || self.kept_bytes > Limits::GROUP_KEPT_BYTES {
            let Some(oldest) = self.kept.pop_front() else {
                return;
            };
            self.kept_bytes -= oldest.body.len();
        }
    }
}

impl Groups {
    pub(super) fn get(&self, group: &str) -> Option<&GroupRecord> {
        self.records.get(group)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&Name, &GroupRecord)> {
        self.records.iter()
    }

    pub(super) fn after(&self, name: Bound<&Name>) -> impl Iterator<Item = (&Name, &GroupRecord)> {
        self.records.range::<Name, _>((name, Bound::Unbounded))
    }

    pub(super) fn turns(&self) -> u64 {
        self.turns
    }

    /// The members of the cluster have changed: algorithms begin anew among them. If none of the new ones was in before,
    /// nobody remembers a message, and numbers go on above all that may have been given out.
    pub(super) fn view(&mut self, index: Index) {
        for record in self.records.values_mut() {
            if record.using != GroupUsing::Log {
                record.season = index;
                record.floor = record.last.max(index.0);
                record.last = record.floor + GroupRecord::NUMBERS;
                self.turns += 1;
            }
        }
    }

    /// A session has another home. What it sends there must come behind what it sent before, so algorithms begin anew.
    pub(super) fn move_session(&mut self, index: Index, session: SessionId) {
        for record in self.records.values_mut() {
            if record.using != GroupUsing::Log && record.members.contains_key(&session) {
                record.season = index;
                self.turns += 1;
            }
        }
    }

    /// Raises the highest number that a group may use.
    pub(super) fn raise(&mut self, group: &Name, to: u64) {
        let record = self.records.get_mut(group);
        if let Some(record) = record.filter(|record| record.using != GroupUsing::Log) {
            record.last = record.last.max(to);
            self.turns += 1;
        }
    }

    /// A new member begins behind a number, which its home has already told the others and will not tell it.
    pub(super) fn place(&mut self, group: &Name, session: SessionId, after: u64) {
        let record = self.records.get_mut(group);
        let joined = record.and_then(|record| record.members.get_mut(&session));
        if let Some(joined) = joined.filter(|joined| **joined == 0) {
            *joined = after;
            self.turns += 1;
        }
    }

    /// Whether a session could join, or come back as a member that has everything up to a number.
    pub(super) fn check_join(
        &self,
        group: &Name,
        session: SessionId,
        order: Option<GroupOrder>,
        using: Option<GroupUsing>,
        after: Option<u64>,
    ) -> Result<(), Refusal> {
        let Some(record) = self.records.get(group) else {
            if after.is_some() {
                return Err(no_member(group, session, Word::Stale));
            }
            return below("groups", self.records.len(), Limits::GROUPS);
        };
        if let Some(using) = using.filter(|using| *using != record.using) {
            let (word, is) = (using.name(), record.using.name());
            return Err(Refusal::new(
                Word::Busy,
                format!(
                    "group {group} has members and is ordered USING {is}, not {word}; leave USING out, or say {is}"
                ),
            ));
        }
        if let Some(order) = order.filter(|order| *order != record.order) {
            let (word, is) = (order.word(), record.order.word());
            return Err(Refusal::new(
                Word::Busy,
                format!(
                    "group {group} has members and ORDER {is}, not {word}; leave ORDER out, or say {is}"
                ),
            ));
        }
        match (record.members.get(&session), after) {
            (Some(_), None) => Ok(()),
            (Some(0), Some(_)) if record.using != GroupUsing::Log => Err(Refusal::new(
                Word::BadArg,
                format!(
                    "session {session} was not told where it begins in group {group}; say GROUP JOIN without AFTER"
                ),
            )),
            (Some(joined), Some(after)) if (*joined..=record.last).contains(&after) => Ok(()),
            (Some(joined), Some(after)) => {
                let last = match record.using {
                    GroupUsing::Log => format!(", and the last one is {}", record.last),
                    _ => String::new(),
                };
                Err(Refusal::new(
                    Word::BadArg,
                    format!(
                        "session {session} cannot have been delivered message {after} of group {group}; \
                         it joined after {joined}{last}"
                    ),
                ))
            }
            (None, Some(_)) => Err(no_member(group, session, Word::Stale)),
            (None, None) => {
                let most = Limits::GROUP_MEMBERS;
                below("group_members", record.members.len(), most)
            }
        }
    }

    /// A session joins or comes back. A member that does not say what it has goes on behind the last message.
    pub(super) fn join(
        &mut self,
        index: Index,
        group: &Name,
        session: SessionId,
        (order, using): (Option<GroupOrder>, Option<GroupUsing>),
        after: Option<u64>,
        told: &mut Vec<GroupEvent>,
    ) -> GroupJoined {
        let (floor, turns) = (self.floor, &mut self.turns);
        let record = self.records.entry(group.clone());
        let record = record.or_insert_with(|| {
            let using = using.unwrap_or_default();
            *turns += u64::from(using != GroupUsing::Log);
            GroupRecord::new(order.unwrap_or_default(), using, index, floor)
        });
        let by_log = record.using == GroupUsing::Log;
        let last = if by_log { record.last } else { record.floor };
        if let Entry::Vacant(vacant) = record.members.entry(session) {
            vacant.insert(if by_log { last } else { 0 });
            told.push(GroupEvent::Joined(group.clone(), session, last));
        }
        let (kept, missed) = match by_log {
            true => record.after(after.unwrap_or(last)),
            false => (Vec::new(), 0),
        };
        GroupJoined {
            group: group.clone(),
            order: record.order,
            using: record.using,
            last,
            members: record.members.len(),
            kept,
            missed,
        }
    }

    /// Whether a session may send to a group, or leave it.
    pub(super) fn check_member(&self, group: &Name, session: SessionId) -> Result<(), Refusal> {
        let record = self.records.get(group);
        match record.is_some_and(|record| record.members.contains_key(&session)) {
            true => Ok(()),
            false => Err(no_member(group, session, Word::NotHeld)),
        }
    }

    /// A member sends a message; returns its number.
    pub(super) fn send(
        &mut self,
        group: &Name,
        from: SessionId,
        body: &Body,
        told: &mut Vec<GroupEvent>,
    ) -> u64 {
        let record = self.records.get_mut(group).expect("it was checked");
        record.last += 1;
        let message = GroupMessage {
            number: record.last,
            from,
            body: body.clone(),
        };
        told.push(GroupEvent::Delivered(group.clone(), message.clone()));
        record.keep(message);
        record.last
    }

    /// A session is no longer a member. A group ends with its last member.
    pub(super) fn leave(&mut self, group: &Name, session: SessionId, told: &mut Vec<GroupEvent>) {
        let Some(record) = self.records.get_mut(group) else {
            return;
        };
        if record.members.remove(&session).is_none() {
            return;
        }
        told.push(GroupEvent::Left(group.clone(), session, record.last));
        if record.members.is_empty() {
            self.floor = self.floor.max(record.last);
            self.turns += u64::from(record.using != GroupUsing::Log);
            self.records.remove(group);
        }
    }

    /// A session has ended, and with it all its memberships.
    pub(super) fn end_session(&mut self, session: SessionId, told: &mut Vec<GroupEvent>) {
        let groups = self.records.iter();
        let of = groups.filter(|(_, record)| record.members.contains_key(&session));
        let of: Vec<Name> = of.map(|(group, _)| group.clone()).collect();
        for group in of {
            self.leave(&group, session, told);
        }
    }
}

/// Whether a message is short enough.
pub(super) fn check_body(body: &Body) -> Result<(), Refusal> {
    match body.len() <= Limits::GROUP_BODY_BYTES {
        true => Ok(()),
        false => Err(Refusal::new(
            Word::BadArg,
            format!(
                "the body has {} bytes; at most {} are allowed",
                body.len(),
                Limits::GROUP_BODY_BYTES
            ),
        )),
    }
}

fn no_member(group: &Name, session: SessionId, word: Word) -> Refusal {
    Refusal::new(
        word,
        format!("session {session} is no member of group {group}; GROUP JOIN makes it one"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name::new("g").unwrap()
    }

    fn session(number: u64) -> SessionId {
        SessionId::opened(number)
    }

    fn join(groups: &mut Groups, number: u64) -> GroupJoined {
        assert_eq!(
            groups.check_join(&name(), session(number), None, None, None),
            Ok(())
        );
        groups.join(
            Index(0),
            &name(),
            session(number),
            (None, None),
            None,
            &mut Vec::new(),
        )
    }

    fn send(groups: &mut Groups, from: u64, bytes: usize) -> u64 {
        let body = Body::from(&vec![7; bytes][..]);
        groups.send(&name(), session(from), &body, &mut Vec::new())
    }

    fn back(groups: &mut Groups, number: u64, after: u64) -> Result<GroupJoined, Refusal> {
        let (session, after) = (session(number), Some(after));
        groups.check_join(&name(), session, None, None, after)?;
        Ok(groups.join(
            Index(0),
            &name(),
            session,
            (None, None),
            after,
            &mut Vec::new(),
        ))
    }

    #[test]
    fn who_was_away_is_given_what_is_kept_and_told_how_many_it_missed() {
        let mut groups = Groups::default();
        join(&mut groups, 1);
        for number in 1..=Limits::GROUP_KEPT as u64 {
            assert_eq!(send(&mut groups, 1, 1), number);
        }
        let all = back(&mut groups, 1, 0).unwrap();
        assert_eq!((all.kept.len(), all.missed), (Limits::GROUP_KEPT, 0));
        send(&mut groups, 1, 1);
        send(&mut groups, 1, 1);
        let most = back(&mut groups, 1, 1).unwrap();
        assert_eq!((most.kept.len(), most.missed), (Limits::GROUP_KEPT, 1));
        assert_eq!(most.kept[0].number, 3);
        let none = back(&mut groups, 1, most.last).unwrap();
        assert_eq!((none.kept.len(), none.missed), (0, 0));
        let future = back(&mut groups, 1, most.last + 1).unwrap_err();
        assert_eq!(future.word, Word::BadArg);
    }

    #[test]
    fn long_messages_are_kept_for_less_long() {
        let mut groups = Groups::default();
        join(&mut groups, 1);
        let most = (Limits::GROUP_KEPT_BYTES / Limits::GROUP_BODY_BYTES) as u64;
        for _ in 0..most + 3 {
            send(&mut groups, 1, Limits::GROUP_BODY_BYTES);
        }
        let told = back(&mut groups, 1, 0).unwrap();
        assert_eq!((told.kept.len() as u64, told.missed), (most, 3));
        let long = Body::from(&vec![0; Limits::GROUP_BODY_BYTES + 1][..]);
        assert_eq!(check_body(&long).unwrap_err().word, Word::BadArg);
    }

    #[test]
    fn a_member_gets_what_follows_its_join_and_a_group_ends_with_its_last_member() {
        let mut groups = Groups::default();
        join(&mut groups, 1);
        send(&mut groups, 1, 1);
        assert_eq!(join(&mut groups, 2).last, 1);
        let before = back(&mut groups, 2, 0).unwrap_err();
        assert_eq!(before.word, Word::BadArg, "it was no member then");
        let mut told = Vec::new();
        groups.end_session(session(1), &mut told);
        assert_eq!(told, [GroupEvent::Left(name(), session(1), 1)]);
        assert!(groups.check_member(&name(), session(1)).is_err());
        assert_eq!(back(&mut groups, 1, 1).unwrap_err().word, Word::Stale);
        groups.leave(&name(), session(2), &mut told);
        assert_eq!(groups.records.len(), 0);
        // A group of the same name begins behind all numbers of its predecessor.
        let anew = groups.join(Index(9), &name(), session(3), (None, None), None, &mut told);
        assert_eq!((anew.last, send(&mut groups, 3, 1)), (9, 10));
        assert_eq!(back(&mut groups, 2, 1).unwrap_err().word, Word::Stale);
    }

    #[test]
    fn by_an_algorithm_a_member_comes_back_no_earlier_than_its_home_placed_it() {
        for using in [GroupUsing::Isis, GroupUsing::Sequencer] {
            let mut groups = Groups::default();
            let asked = (None, Some(using));
            groups.join(Index(5), &name(), session(1), asked, None, &mut Vec::new());
            let unplaced = back(&mut groups, 1, 9).unwrap_err();
            assert_eq!(unplaced.word, Word::BadArg);
            groups.place(&name(), session(1), 7);
            assert_eq!(back(&mut groups, 1, 6).unwrap_err().word, Word::BadArg);
            assert!(back(&mut groups, 1, 7).is_ok());
            // Only the first number counts: it is what the member was told.
            groups.place(&name(), session(1), 3);
            assert_eq!(back(&mut groups, 1, 6).unwrap_err().word, Word::BadArg);
        }
    }

    #[test]
    fn the_first_member_says_which_order_the_group_asks_for() {
        let mut groups = Groups::default();
        let fifo = Some(GroupOrder::Fifo);
        let joined = groups.join(
            Index(0),
            &name(),
            session(1),
            (fifo, None),
            None,
            &mut Vec::new(),
        );
        assert_eq!(joined.order, GroupOrder::Fifo);
        let total = groups.check_join(&name(), session(2), Some(GroupOrder::Total), None, None);
        assert_eq!(total.unwrap_err().word, Word::Busy);
        assert_eq!(
            groups.check_join(&name(), session(2), fifo, None, None),
            Ok(())
        );
        assert_eq!(join(&mut groups, 2).order, GroupOrder::Fifo);
    }

    #[test]
    fn groups_and_members_have_limits() {
        let mut groups = Groups::default();
        for number in 0..Limits::GROUP_MEMBERS as u64 {
            join(&mut groups, number);
        }
        let more = session(Limits::GROUP_MEMBERS as u64);
        let full = groups
            .check_join(&name(), more, None, None, None)
            .unwrap_err();
        assert_eq!(full.word, Word::Limit);
        assert!(full.sentence.contains("limit group_members is 1000"));
        for number in 1..Limits::GROUPS {
            let name = Name::new(&format!("g{number}")).unwrap();
            groups.join(Index(0), &name, more, (None, None), None, &mut Vec::new());
        }
        let other = Name::new("other").unwrap();
        let full = groups
            .check_join(&other, more, None, None, None)
            .unwrap_err();
        assert!(full.sentence.contains("limit groups is 1000"));
    }
}
