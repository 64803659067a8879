//! Any algorithm as a model for a checker. A state is a short list of numbers: the nodes' states,
//! their users, what each may still ask, timers, and the messages under way, link by link in the
//! order in which they were sent.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;
use serde::Serialize;
use testigo_protocol::{
    Admission, Channels, Faults, Grant, Machine, Move, Next, NodeId, Outcome, Phase, Problem,
    Shape, StateId, Timer, User, UserId,
};

use super::faults::{self, Fate};
use super::knowledge::Knowledge;
use super::state::{Draft, ILL_FORMED, Layout, State, View, WORDS_PER_TIMER};
use super::symmetry::Renamings;
use super::tables::Tables;
use crate::line::UserLine;

/// What is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How often each user asks; none for ever.
    pub(crate) entries: Option<u32>,
    /// How many timers may fire in all; none without end.
    pub(crate) timeouts: Option<u32>,
    pub(crate) timing: Timing,
    pub(crate) faults: Faults,
    /// Whether a node that crashes loses its stable storage, too.
    pub(crate) forget: bool,
    pub(crate) channels: Channels,
    /// Whether entries that pass others are counted.
    pub(crate) bypass: bool,
    /// Whether nobody looks for those who are stuck.
    pub(crate) safety_only: bool,
    /// Whether states that no later step can tell apart are one.
    pub(crate) reduced: bool,
    /// Whether states are one that differ only in which of several equal nodes is which.
    pub(crate) renames: bool,
    /// Whether one step stands for all where it makes the same difference whatever is done first.
    pub(crate) alone: bool,
}

/// When timers fire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Timing {
    /// At any time.
    Asynchronous,
    /// Every message is quicker than every timer: the next timer fires when nothing is under way.
    Synchronous,
}

/// A step of a schedule. It says what happens, not to which numbers, so that it can be played on a
/// stage too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    /// A user does what it does next, by this choice.
    Ask(UserId, u32),
    /// What becomes of the message at this place among those of a link, in order of sending.
    Carry {
        from: NodeId,
        to: NodeId,
        place: u32,
        fate: Fate,
    },
    Fire(NodeId, Timer),
    Crash(NodeId),
    Restart(NodeId),
}

pub(crate) struct Model<Q: Problem> {
    pub(crate) nodes: usize,
    pub(crate) users: usize,
    pub(super) shape: Shape,
    layout: Layout,
    /// The users before their first request.
    pub(super) first: Vec<Q::User>,
    pub(super) bounds: Bounds,
    /// Where equal nodes may change places.
    pub(super) renamings: Option<Renamings>,
    tables: Mutex<Tables<Q>>,
    taken: AtomicUsize,
    progress: fn(usize),
    /// The first violation is the shortest schedule; later ones must not replace it.
    pub(super) unsafe_found: AtomicBool,
    pub(super) broken_found: AtomicBool,
    pub(super) stuck_found: AtomicBool,
    cut_by_timers: AtomicBool,
}

const STATES_PER_REPORT: usize = 1 << 16;

impl<Q: Problem> Model<Q> {
    pub(crate) fn new(machine: &dyn Machine<Q>, bounds: Bounds, progress: fn(usize)) -> Model<Q> {
        let shape = machine.shape().clone();
        let tables = Tables::new(machine);
        let knowledge = bounds.bypass && shape.users <= Knowledge::USERS_MAX;
        Model {
            nodes: shape.nodes(),
            users: shape.users,
            layout: Layout::new(&shape, knowledge, bounds.faults != Faults::NONE),
            first: UserId::all(shape.users)
                .map(|user| machine.user(user))
                .collect(),
            renamings: match bounds.renames {
                true => Renamings::new(&shape, tables.explorer.equal_nodes()),
                false => None,
            },
            shape,
            bounds,
            tables: Mutex::new(tables),
            taken: AtomicUsize::new(0),
            progress,
            unsafe_found: AtomicBool::new(false),
            broken_found: AtomicBool::new(false),
            stuck_found: AtomicBool::new(false),
            cut_by_timers: AtomicBool::new(false),
        }
    }

    pub(crate) fn tables(&self) -> MutexGuard<'_, Tables<Q>> {
        self.tables
            .lock()
            .expect("a step of a protocol does not panic")
    }

    pub(crate) fn view<'a>(&self, state: &'a State) -> View<'a> {
        self.layout.view(state)
    }

    pub(crate) fn first(&self) -> State {
        let mut tables = self.tables();
        let users = self.first.iter();
        let users: Vec<u32> = users.map(|user| tables.user(user.clone())).collect();
        let knowledge = self.layout.knowledge;
        let monitor = knowledge.then(|| tables.grants.first(&self.first));
        let mut draft = Draft {
            nodes: NodeId::all(self.nodes)
                .map(|node| tables.explorer.initial(node).0)
                .collect(),
            users,
            left: vec![self.bounds.entries.unwrap_or(0); self.users],
            places: vec![0; UserLine::places(&self.shape)],
            known: vec![0; if knowledge { self.nodes } else { 0 }],
            passed: vec![0; if knowledge { self.users } else { 0 }],
            monitor: monitor.into_iter().collect(),
            faults: faults::first(self.bounds.faults),
            timeouts_left: self.bounds.timeouts.unwrap_or(1),
            ..Draft::default()
        };
        for node in NodeId::all(self.nodes) {
            self.advance(&mut tables, &mut draft, node, Move::Start, None);
        }
        draft.done()
    }

    /// Every step that can be taken. A step that must be taken in the end, if it stays possible, is
    /// marked by [`Model::is_obliged`].
    pub(crate) fn steps(&self, state: &State, steps: &mut Vec<Step>) {
        let view = self.view(state);
        let tables = self.tables();
        let up = |user: &UserId| !view.is_down(self.shape.home(*user));
        for user in UserId::all(self.users).filter(up) {
            let may = self.bounds.entries.is_none() || view.left[user.index()] > 0;
            let number = view.users[user.index()];
            match tables.next(number) {
                Next::Must(_) => steps.push(Step::Ask(user, 0)),
                Next::May(_) if may => {
                    let choices = 0..tables.choices(number);
                    steps.extend(choices.map(|choice| Step::Ask(user, choice)));
                }
                _ => {}
            }
        }
        drop(tables);
        // Timers that are due at the same time fire together, before anything that one of them sends arrives.
        let is_due = |timer: &[u32; WORDS_PER_TIMER]| timer[3] == 0;
        let due = self.bounds.timing == Timing::Synchronous && view.timers.iter().any(is_due);
        if !due {
            self.message_steps(&view, steps);
        }
        if due || view.messages.is_empty() || self.bounds.timing == Timing::Asynchronous {
            self.timer_steps(&view, steps);
        }
        self.outage_steps(&view, steps);
    }

    fn timer_steps(&self, view: &View<'_>, steps: &mut Vec<Step>) {
        let least = view.timers.iter().map(|timer| timer[3]).min();
        for (index, timer) in view.timers.iter().enumerate() {
            let [node, low, high, span] = *timer;
            if view.timeouts_left > 0
                && Some(span) == least
                && !view.timers[..index].contains(timer)
            {
                steps.push(Step::Fire(
                    NodeId(node),
                    Timer(u64::from(high) << 32 | u64::from(low)),
                ));
            }
        }
    }

    pub(crate) fn take(&self, state: &State, step: Step) -> State {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        if taken.is_multiple_of(STATES_PER_REPORT) {
            (self.progress)(taken);
        }
        let mut tables = self.tables();
        let mut draft = std::mem::take(&mut tables.draft);
        draft.copy(&self.view(state));
        match step {
            Step::Ask(user, choice) => self.ask(&mut tables, &mut draft, user, choice),
            Step::Carry {
                from,
                to,
                place,
                fate,
            } => {
                let link = self.link(from, to);
                let first = draft.messages.partition_point(|[other, _]| *other < link);
                let place = first + place as usize;
                let message = self.befall(&mut tables, &mut draft, from, place, fate);
                Knowledge::delivered(&mut draft, to, place);
                if let Some(message) = message {
                    let grant = tables.explorer.message_grant(message);
                    let grant = grant.filter(|_| self.layout.knowledge);
                    if let Some(grant) = grant {
                        let Tables { grants, users, .. } = &mut *tables;
                        grants.received(&mut draft, users, to, grant);
                    }
                    let input = Move::Message { from, message };
                    self.advance(&mut tables, &mut draft, to, input, grant);
                }
            }
            Step::Fire(node, timer) => {
                let words = [node.0, timer.0 as u32, (timer.0 >> 32) as u32];
                let fires = |other: &[u32; WORDS_PER_TIMER]| other[..3] == words;
                let spans = draft.timers.iter().filter(|timer| fires(timer));
                let span = spans.map(|timer| timer[3]).min().unwrap_or(0);
                draft
                    .timers
                    .retain(|other| !(fires(other) && other[3] == span));
                for other in &mut draft.timers {
                    other[3] -= span.min(other[3]);
                }
                if self.bounds.timeouts.is_some() {
                    draft.timeouts_left -= 1;
                }
                self.change_users(&mut tables, &mut draft, node, |user, _| user.timed_out());
                self.advance(&mut tables, &mut draft, node, Move::Timer(timer), None);
            }
            Step::Crash(node) => self.crash(&mut tables, &mut draft, node),
            Step::Restart(node) => self.restart(&mut tables, &mut draft, node),
        }
        tables.draft = draft;
        tables.draft.done()
    }

    fn ask(&self, tables: &mut Tables<Q>, draft: &mut Draft, user: UserId, choice: u32) {
        let mut asker = tables.users[draft.users[user.index()] as usize].clone();
        let next = asker.choose(choice);
        let (Next::May(ask) | Next::Must(ask)) = next else {
            return;
        };
        if matches!(next, Next::May(_)) && self.bounds.entries.is_some() {
            draft.left[user.index()] -= 1;
        }
        asker.asked(ask);
        let home = self.shape.home(user);
        if asker.phase() == Phase::Waiting {
            UserLine::new(&self.shape, &mut draft.places).join(user);
            Knowledge::asked(draft, home, user);
        }
        draft.users[user.index()] = tables.user(asker);
        self.advance(tables, draft, home, Move::Ask(ask), None);
    }

    /// One step of a node; `granted` is what the message that it got handed over.
    pub(super) fn advance(
        &self,
        tables: &mut Tables<Q>,
        draft: &mut Draft,
        node: NodeId,
        input: Move<Q>,
        granted: Option<Grant>,
    ) {
        let Tables {
            explorer,
            users,
            grants: judge,
            ..
        } = tables;
        let Outcome {
            state,
            sends,
            words_of,
            grants,
            tells,
            timers,
        } = explorer.step(node, StateId(draft.nodes[node.index()]), input);
        draft.nodes[node.index()] = state.0;
        let own = |draft: &Draft, kind: u32| {
            let mine = self.shape.users_at(node);
            let of_kind = mine.filter(|user| {
                let user = users.get_index(draft.users[user.index()] as usize);
                user.is_some_and(|user| user.kind() == kind)
            });
            of_kind.map(|user| 1 << user.0).sum()
        };
        for (((to, message), word_of), grant) in sends.iter().zip(words_of).zip(grants) {
            let link = self.link(node, *to);
            let place = draft.messages.partition_point(|[other, _]| *other <= link);
            draft.messages.insert(place, [link, message.0]);
            Knowledge::sent(draft, node, place, *word_of, own);
            if let Some(grant) = grant.filter(|_| self.layout.knowledge) {
                judge.sent(draft, users, node, grant);
            }
        }
        for (span, timer) in timers {
            let span = match self.bounds.timing {
                Timing::Asynchronous => 0,
                Timing::Synchronous => span.start.clamp(1, u64::from(u32::MAX)) as u32,
            };
            let (low, high) = (timer.0 as u32, (timer.0 >> 32) as u32);
            draft.timers.push([node.0, low, high, span]);
            draft.timers.sort_unstable();
        }
        let mut admission = match granted {
            Some(Grant::Entry(_)) => Admission::Granted,
            _ => Admission::Decided,
        };
        for tell in tells {
            let Some(entered) = self.tell(users, draft, node, *tell) else {
                continue;
            };
            if self.layout.knowledge {
                judge.entered(draft, users, node, entered, admission);
                let all = draft.users.iter();
                let all: Option<Vec<Q::User>> =
                    all.map(|&u| users.get_index(u as usize).cloned()).collect();
                if let Some(all) = all {
                    Knowledge::entered::<Q>(draft, node, entered, &all);
                }
            }
            if admission == Admission::Decided {
                admission = Admission::Together;
            }
        }
        self.forget_the_gone(draft);
    }

    /// A node tells one of its users something; returns the user if it has entered by that.
    fn tell(
        &self,
        users: &mut IndexSet<Q::User, FxBuildHasher>,
        draft: &mut Draft,
        node: NodeId,
        tell: Q::Tell,
    ) -> Option<UserId> {
        let numbers = &draft.users;
        let hears = |user: UserId| {
            let user = users.get_index(numbers[user.index()] as usize);
            user.is_some_and(|user| user.hears(&tell))
        };
        let mut line = UserLine::new(&self.shape, &mut draft.places);
        let hearer = line.hearer(node, hears)?;
        let user = users.get_index(draft.users[hearer.index()] as usize)?;
        let (before, mut user) = (user.phase(), user.clone());
        if user.told(tell).is_err() {
            draft.users[hearer.index()] = ILL_FORMED;
            return None;
        }
        let after = user.phase();
        draft.users[hearer.index()] = users.insert_full(user).0 as u32;
        if before != Phase::Waiting || after == Phase::Waiting {
            return None;
        }
        line.leave(hearer);
        Some(hearer)
    }

    pub(super) fn link(&self, from: NodeId, to: NodeId) -> u32 {
        from.0 * self.nodes as u32 + to.0
    }

    pub(super) fn ends(&self, link: u32) -> (NodeId, NodeId) {
        let nodes = self.nodes as u32;
        (NodeId(link / nodes), NodeId(link % nodes))
    }

    /// What is wrong in this state.
    pub(crate) fn violation(&self, state: &State) -> Option<String> {
        let view = self.view(state);
        let disturbed = Q::COUNTED.has_inside() && self.bounds.faults != Faults::NONE;
        let at_rest = view.messages.is_empty() && view.timers.is_empty() && !disturbed;
        self.tables().violation(view.users, at_rest)
    }

    /// Whether what is wrong in this state is so only because nothing more happens.
    pub(crate) fn is_wrong_at_rest(&self, state: &State) -> bool {
        let users = self.view(state).users;
        !Q::COUNTED.has_inside() && self.tables().violation(users, false).is_none()
    }

    /// The bound that was broken on the way to this state.
    pub(crate) fn broken_bound(&self, state: &State) -> Option<String> {
        let view = self.view(state);
        let passed = || Knowledge::violation(&view);
        self.tables().grants.broken(&view).or_else(passed)
    }

    /// Somebody waits or misses something, and nothing can happen any more unless somebody else asks or a node
    /// comes back: what it is. Where only a timer could still help and no more may fire, that is noted: it is
    /// neither stuck nor explored.
    pub(crate) fn stuck(&self, state: &State) -> Option<String> {
        let view = self.view(state);
        if !view.messages.is_empty() || view.timeouts_left > 0 && !view.timers.is_empty() {
            return None;
        }
        let mut tables = self.tables();
        let moves = |&user: &u32| matches!(tables.next(user), Next::Must(_));
        if view.users.iter().any(moves) {
            return None;
        }
        let waits = |&user: &u32| tables.phase(user) == Phase::Waiting;
        let waits = view.users.iter().any(waits);
        let deadlock = || "deadlock: somebody waits and nothing can happen".to_owned();
        let unserved = || tables.unserved(view.users);
        let stuck = waits.then(deadlock).or_else(unserved)?;
        if !view.timers.is_empty() {
            self.cut_by_timers.store(true, Ordering::Relaxed);
            return None;
        }
        Some(stuck)
    }

    /// Whether a state was met in which only a timer beyond the bound could go on.
    pub(crate) fn was_cut_by_timers(&self) -> bool {
        self.cut_by_timers.load(Ordering::Relaxed)
    }

    pub(crate) fn waits(&self, state: &State, user: UserId) -> bool {
        self.tables().phase(self.view(state).users[user.index()]) == Phase::Waiting
    }

    pub(crate) fn has_timers(&self, state: &State) -> bool {
        !self.view(state).timers.is_empty()
    }

    /// Whether a fair schedule must take this step if it stays possible: everything but a new
    /// request.
    pub(crate) fn is_obliged(&self, state: &State, step: Step) -> bool {
        match step {
            Step::Ask(user, _) => {
                let user = self.view(state).users[user.index()];
                matches!(self.tables().next(user), Next::Must(_))
            }
            Step::Carry { fate, .. } => matches!(fate, Fate::Delivered | Fate::Missed),
            Step::Fire(..) => true,
            Step::Crash(_) | Step::Restart(_) => false,
        }
    }
}
