//! What a leader does: phase 1 for all slots, phase 2 for those whose acceptors it knows, and going on without an acceptor that
//! is silent.

use std::collections::{BTreeMap, VecDeque};

use super::super::ballot::{Ballot, Nodes};
use super::super::user::Value;
use super::{ALPHA, Accepted, CheapPaxos, Config, Flaw, Slot, Talk, look_timer};
use crate::{NodeId, Output};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Reign {
    pub(super) ballot: Ballot,
    asked: Nodes,
    promises: Nodes,
    reported: Accepted,
    /// What it has proposed.
    proposed: BTreeMap<Slot, Value>,
    /// Commands that wait for a slot.
    queue: VecDeque<Value>,
    /// Main acceptors that have not answered in time.
    pub(super) suspects: Nodes,
    /// The number of its next look.
    look: u64,
    /// What it looks for next time: slots that wait for promises, or for votes where that is true.
    watched: Vec<(Slot, bool)>,
}

impl CheapPaxos {
    /// Proposes a command, or makes itself the leader in order to.
    pub(super) fn command(&mut self, value: Value, config: &Config, out: &mut Output<Self>) {
        match &mut self.reign {
            None => {
                self.begin_reign(config, out);
                if let Some(reign) = self.reign.as_mut().filter(|_| self.pending != Some(value)) {
                    reign.enqueue(value);
                }
            }
            Some(reign) => {
                reign.enqueue(value);
                self.advance(config, out);
            }
        }
    }

    /// 1a, for every slot that this node does not know.
    pub(super) fn begin_reign(&mut self, config: &Config, out: &mut Output<Self>) {
        let round = self.round.map_or(0, |round| round + 1);
        self.round = Some(round);
        let ballot = Ballot { round, by: self.id };
        self.highest = self.highest.max(Some(ballot));
        self.reign = Some(Reign {
            ballot,
            asked: Nodes::default(),
            promises: Nodes::default(),
            reported: BTreeMap::new(),
            proposed: BTreeMap::new(),
            queue: self.pending.into_iter().collect(),
            suspects: Nodes::default(),
            look: 0,
            watched: Vec::new(),
        });
        self.advance(config, out);
    }

    pub(super) fn promised_by(
        &mut self,
        from: NodeId,
        ballot: Ballot,
        accepted: &[(Slot, Ballot, Value)],
    ) {
        let reign = self.reign.as_mut().filter(|reign| reign.ballot == ballot);
        let Some(reign) = reign else {
            return;
        };
        reign.promises.insert(from);
        for &(slot, number, value) in accepted {
            let known = reign.reported.entry(slot).or_insert((number, value));
            *known = (*known).max((number, value));
        }
    }

    /// Asks for the promises that are missing, and proposes for every slot that it can.
    pub(super) fn advance(&mut self, config: &Config, out: &mut Output<Self>) {
        for slot in self.applied..self.applied + ALPHA {
            if self.reign.is_none() {
                return;
            }
            let acceptors = self.acceptors(slot, config);
            let chosen = self.chosen.contains_key(&slot);
            let value = self.next_value(slot);
            let Some(reign) = self.reign.as_mut() else {
                return;
            };
            // Auxiliary acceptors are idle while all main ones answer.
            let to = match reign.suspects.both(acceptors.main).len() {
                0 => acceptors.main,
                _ => acceptors.all(),
            };
            for node in to.without(reign.asked).iter() {
                reign.asked.insert(node);
                out.send(node, Talk::Prepare(reign.ballot, self.applied));
            }
            let ready = reign.promises.both(acceptors.all()).len() >= acceptors.quorum();
            if ready && !chosen && !reign.proposed.contains_key(&slot) {
                let Some(value) = value else {
                    break;
                };
                reign.proposed.insert(slot, value);
                out.send_all(to.iter(), &Talk::Accept(reign.ballot, slot, value));
            }
        }
        self.watch(config, out);
    }

    /// What may be chosen already, else a command, else a no-op where one is needed.
    fn next_value(&mut self, slot: Slot) -> Option<Value> {
        let reign = self.reign.as_mut()?;
        if let Some((_, value)) = reign.reported.get(&slot) {
            return Some(*value);
        }
        if reign.reported.range(slot..).next().is_some() {
            return Some(Value::DEFAULT);
        }
        let (proposed, chosen) = (&reign.proposed, &self.chosen);
        let has = |log: &BTreeMap<Slot, Value>, value| log.values().rev().any(|v| *v == value);
        let is_new = |value: &Value| !has(proposed, *value) && !has(chosen, *value);
        reign.queue.retain(is_new);
        let waiting = reign.queue.front().copied();
        // A change takes effect when all slots up to α after it are chosen.
        let log = self.chosen.iter().chain(&reign.proposed);
        let changes = log.filter(|(_, value)| value.removed().is_some());
        let effective = changes.map(|(slot, _)| slot + ALPHA).max();
        waiting.or_else(|| {
            effective
                .filter(|from| slot < *from)
                .map(|_| Value::DEFAULT)
        })
    }

    /// Looks around in time if anything is not answered.
    fn watch(&mut self, config: &Config, out: &mut Output<Self>) {
        let waiting = self.unanswered(config);
        let waiting: Vec<(Slot, bool)> = waiting.map(|(what, _)| what).collect();
        let Some(reign) = self.reign.as_mut() else {
            return;
        };
        if reign.watched.is_empty() && !waiting.is_empty() {
            reign.watched = waiting;
            self.looks += 1;
            reign.look = self.looks;
            // A question and its answer are quicker.
            let span = 2 * config.delay_bound.max(1) + 1;
            out.after(span..span + 1, look_timer(reign.look));
        }
    }

    /// The slots that wait for promises, or for votes where that is true, with the acceptors that have not answered.
    fn unanswered(&self, config: &Config) -> impl Iterator<Item = ((Slot, bool), Nodes)> {
        let slots = self.applied..self.applied + ALPHA;
        slots.filter_map(move |slot| {
            let reign = self
                .reign
                .as_ref()
                .filter(|_| !self.chosen.contains_key(&slot))?;
            let acceptors = self.acceptors(slot, config);
            let answered = match reign.proposed.get(&slot) {
                Some(value) => {
                    let votes = self.votes.get(&slot);
                    votes.map_or(Nodes::default(), |votes| votes.of(reign.ballot, *value))
                }
                None if reign.promises.both(acceptors.all()).len() < acceptors.quorum() => {
                    reign.promises
                }
                None => return None,
            };
            let what = (slot, reign.proposed.contains_key(&slot));
            Some((what, acceptors.all().without(answered)))
        })
    }

    /// §5.5.2: a main acceptor does not answer. The auxiliary ones complete what is pending, and the log is to go on without
    /// the silent one.
    pub(super) fn look_around(&mut self, look: u64, config: &Config, out: &mut Output<Self>) {
        let Some(reign) = self.reign.as_mut().filter(|reign| reign.look == look) else {
            return;
        };
        let watched = std::mem::take(&mut reign.watched);
        // What was asked later may still be answered in time.
        let overdue = self.unanswered(config);
        let overdue = overdue.filter(|(what, _)| watched.contains(what));
        let silent = overdue.fold(Nodes::default(), |all, (_, silent)| all.and(silent));
        let Some(reign) = self.reign.as_mut() else {
            return;
        };
        let late = silent.both(config.main());
        reign.suspects = reign.suspects.and(late);
        // Auxiliary acceptors are asked only now, and whoever may have come back once more.
        reign.asked = reign.asked.without(silent);
        if config.flaw != Some(Flaw::LowersAlone) {
            late.iter()
                .for_each(|node| reign.enqueue(Value::without(node)));
        }
        for slot in self.applied..self.applied + ALPHA {
            let to = self.acceptors(slot, config).all();
            let votes = self.votes.get(&slot);
            let Some(reign) = self.reign.as_ref() else {
                return;
            };
            let Some(value) = reign.proposed.get(&slot).copied() else {
                continue;
            };
            if !self.chosen.contains_key(&slot) {
                let answered =
                    votes.map_or(Nodes::default(), |votes| votes.of(reign.ballot, value));
                let accept = Talk::Accept(reign.ballot, slot, value);
                out.send_all(to.both(silent).without(answered).iter(), &accept);
            }
        }
        self.count_votes(config, out);
        self.advance(config, out);
    }
}

impl Reign {
    /// A command has one place in the queue.
    fn enqueue(&mut self, value: Value) {
        if !self.queue.contains(&value) {
            self.queue.push_back(value);
        }
    }
}
