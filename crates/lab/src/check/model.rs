//! Any algorithm as a model for a checker. A state is a short list of numbers: the nodes' states,
//! their users, what each may still ask, timers, and the messages under way, link by link in the
//! order in which they were sent.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use stateright::Property;
use testigo_protocol::{
    Admission, Channels, Explorer, Grant, Machine, MessageId, Move, Next, NodeId, Outcome, Phase,
    Problem, Shape, StateId, Timer, User, UserId,
};

use super::grants::Grants;
use super::knowledge::Knowledge;
use super::state::{Draft, ILL_FORMED, Layout, State, View};
use crate::line::UserLine;

/// What is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How often each user asks; none for ever.
    pub(crate) entries: Option<u32>,
    /// How many timers may fire in all.
    pub(crate) timeouts: u32,
    pub(crate) channels: Channels,
    /// Whether entries that pass others are counted.
    pub(crate) bypass: bool,
}

/// A step of a schedule. It says what happens, not to which numbers, so that it can be played on a
/// stage too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    /// A user does what it does next, by this choice.
    Ask(UserId, u32),
    /// The message at this place among those of a link, in order of sending.
    Deliver {
        from: NodeId,
        to: NodeId,
        place: u32,
    },
    Fire(NodeId, Timer),
}

pub(crate) struct Model<Q: Problem> {
    pub(crate) nodes: usize,
    pub(crate) users: usize,
    shape: Shape,
    layout: Layout,
    /// The users before their first request.
    first: Vec<Q::User>,
    pub(super) bounds: Bounds,
    tables: Mutex<Tables<Q>>,
    taken: AtomicUsize,
    progress: fn(usize),
    /// The first violation is the shortest schedule; later ones must not replace it.
    unsafe_found: AtomicBool,
    broken_found: AtomicBool,
    stuck_found: AtomicBool,
    cut_by_timers: AtomicBool,
}

/// Everything that gets a number.
pub(crate) struct Tables<Q: Problem> {
    pub(super) explorer: Box<dyn Explorer<Q>>,
    users: IndexSet<Q::User, FxBuildHasher>,
    grants: Grants<Q>,
    violations: FxHashMap<Box<[u32]>, Option<String>>,
    violations_at_rest: FxHashMap<Box<[u32]>, Option<String>>,
    /// Used again for every state: only the finished one is allocated.
    pub(super) draft: Draft,
}

const STATES_PER_REPORT: usize = 1 << 16;

impl<Q: Problem> Model<Q> {
    pub(crate) fn new(machine: &dyn Machine<Q>, bounds: Bounds, progress: fn(usize)) -> Model<Q> {
        let shape = machine.shape().clone();
        let knowledge = bounds.bypass && shape.users <= Knowledge::USERS_MAX;
        Model {
            nodes: shape.nodes(),
            users: shape.users,
            layout: Layout::new(&shape, knowledge),
            first: UserId::all(shape.users)
                .map(|user| machine.user(user))
                .collect(),
            shape,
            bounds,
            tables: Mutex::new(Tables {
                explorer: machine.explorer(),
                users: IndexSet::default(),
                grants: Grants::default(),
                violations: FxHashMap::default(),
                violations_at_rest: FxHashMap::default(),
                draft: Draft::default(),
            }),
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
            timeouts_left: self.bounds.timeouts,
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
        for user in UserId::all(self.users) {
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
        let mut place = 0;
        for (index, &[link, message]) in view.messages.iter().enumerate() {
            place = if index > 0 && view.messages[index - 1][0] == link {
                place + 1
            } else {
                0
            };
            let mut earlier = index - place as usize..index;
            // The same message with the same word of others.
            let same = |other: usize| {
                view.messages[other][1] == message
                    && view.word_of.get(other) == view.word_of.get(index)
            };
            let allowed = match self.bounds.channels {
                Channels::Fifo => place == 0,
                Channels::AnyOrder => !earlier.any(same),
            };
            if allowed {
                let (from, to) = self.ends(link);
                steps.push(Step::Deliver { from, to, place });
            }
        }
        for (index, timer) in view.timers.iter().enumerate() {
            if view.timeouts_left > 0 && !view.timers[..index].contains(timer) {
                let [node, low, high] = *timer;
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
            Step::Deliver { from, to, place } => {
                let link = self.link(from, to);
                let first = draft.messages.partition_point(|[other, _]| *other < link);
                let place = first + place as usize;
                let [_, message] = draft.messages.remove(place);
                Knowledge::delivered(&mut draft, to, place);
                let grant = tables.explorer.message_grant(MessageId(message));
                let grant = grant.filter(|_| self.layout.knowledge);
                if let Some(grant) = grant {
                    let Tables { grants, users, .. } = &mut *tables;
                    grants.received(&mut draft, users, to, grant);
                }
                let input = Move::Message {
                    from,
                    message: MessageId(message),
                };
                self.advance(&mut tables, &mut draft, to, input, grant);
            }
            Step::Fire(node, timer) => {
                let words = [node.0, timer.0 as u32, (timer.0 >> 32) as u32];
                draft.timers.retain(|other| *other != words);
                draft.timeouts_left -= 1;
                self.advance(&mut tables, &mut draft, node, Move::Timer(timer), None);
            }
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
    fn advance(
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
        for timer in timers {
            draft
                .timers
                .push([node.0, timer.0 as u32, (timer.0 >> 32) as u32]);
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
        let at_rest = view.messages.is_empty() && view.timers.is_empty();
        self.tables().violation(view.users, at_rest)
    }

    /// The bound that was broken on the way to this state.
    pub(crate) fn broken_bound(&self, state: &State) -> Option<String> {
        let view = self.view(state);
        let passed = || Knowledge::violation(&view);
        self.tables().grants.broken(&view).or_else(passed)
    }

    /// Somebody waits, and nothing can happen any more unless somebody else asks. Where only a timer
    /// could still help and no more may fire, that is noted: it is neither stuck nor explored.
    pub(crate) fn is_stuck(&self, state: &State) -> bool {
        let view = self.view(state);
        if !view.messages.is_empty() || view.timeouts_left > 0 && !view.timers.is_empty() {
            return false;
        }
        let tables = self.tables();
        let moves = |&user: &u32| matches!(tables.next(user), Next::Must(_));
        let waits = |&user: &u32| tables.phase(user) == Phase::Waiting;
        let stands = !view.users.iter().any(moves) && view.users.iter().any(waits);
        if stands && !view.timers.is_empty() {
            self.cut_by_timers.store(true, Ordering::Relaxed);
        }
        stands && view.timers.is_empty()
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
            Step::Deliver { .. } | Step::Fire(..) => true,
        }
    }
}

impl<Q: Problem> Tables<Q> {
    fn user(&mut self, user: Q::User) -> u32 {
        self.users.insert_full(user).0 as u32
    }

    fn next(&self, user: u32) -> Next<Q::Ask> {
        self.users
            .get_index(user as usize)
            .map_or(Next::Nothing, User::next)
    }

    fn choices(&self, user: u32) -> u32 {
        self.users.get_index(user as usize).map_or(0, User::choices)
    }

    fn phase(&self, user: u32) -> Phase {
        self.users
            .get_index(user as usize)
            .map_or(Phase::Idle, User::phase)
    }

    fn violation(&mut self, users: &[u32], at_rest: bool) -> Option<String> {
        let judged = match at_rest {
            true => &mut self.violations_at_rest,
            false => &mut self.violations,
        };
        if let Some(known) = judged.get(users) {
            return known.clone();
        }
        let found = match users.iter().position(|&user| user == ILL_FORMED) {
            Some(node) => Some(format!("p{node} was told what it had not asked for")),
            None => {
                let all: Vec<Q::User> = users
                    .iter()
                    .map(|&u| self.users[u as usize].clone())
                    .collect();
                let at_rest = || Q::violation_at_rest(&all).filter(|_| at_rest);
                Q::violation(&all).or_else(at_rest)
            }
        };
        judged.insert(users.into(), found.clone());
        found
    }
}

pub(crate) const SAFETY: &str = "safety";
pub(crate) const BOUNDS: &str = "bounds";
pub(crate) const DEADLOCK_FREEDOM: &str = "deadlock freedom";

impl<Q: Problem> stateright::Model for Model<Q> {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        vec![self.first()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        self.steps(state, actions);
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        Some(self.take(last, step))
    }

    /// A property counts as violated once: stateright would otherwise let a later, longer schedule
    /// take the place of the first.
    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFETY, |model, state| {
                model.violation(state).is_none() || model.unsafe_found.swap(true, Ordering::Relaxed)
            }),
            Property::always(BOUNDS, |model, state| {
                model.broken_bound(state).is_none()
                    || model.broken_found.swap(true, Ordering::Relaxed)
            }),
            Property::always(DEADLOCK_FREEDOM, |model, state| {
                !model.is_stuck(state) || model.stuck_found.swap(true, Ordering::Relaxed)
            }),
        ]
    }
}
