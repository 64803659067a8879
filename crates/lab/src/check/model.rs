//! Any algorithm as a model for a checker. A state is a short list of numbers: the nodes' states,
//! their users, what each may still ask, timers, and the messages under way, link by link in the
//! order in which they were sent.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap};
use stateright::Property;
use testigo_protocol::{
    Channels, Explorer, Machine, MessageId, Move, Next, NodeId, Outcome, Phase, Problem, StateId,
    Timer, User,
};

/// What is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// How often each user asks; none for ever.
    pub(crate) entries: Option<u32>,
    /// How many timers may fire in all.
    pub(crate) timeouts: u32,
    pub(crate) channels: Channels,
}

/// A state, as numbers; see [`Model::view`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct State(Box<[u32]>);

/// A step of a schedule. It says what happens, not to which numbers, so that it can be played on a
/// stage too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Step {
    /// A user does what it does next.
    Ask(NodeId),
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
    bounds: Bounds,
    tables: Mutex<Tables<Q>>,
    taken: AtomicUsize,
    progress: fn(usize),
    /// The first violation is the shortest schedule; later ones must not replace it.
    unsafe_found: AtomicBool,
    stuck_found: AtomicBool,
    cut_by_timers: AtomicBool,
}

/// Everything that gets a number.
pub(crate) struct Tables<Q: Problem> {
    explorer: Box<dyn Explorer<Q>>,
    users: IndexSet<Q::User, FxBuildHasher>,
    violations: FxHashMap<Box<[u32]>, Option<String>>,
    /// Used again for every state: only the finished one is allocated.
    draft: Draft,
}

/// A user that was told what no well-formed node says.
const ILL_FORMED: u32 = u32::MAX;
const STATES_PER_REPORT: usize = 1 << 16;
const WORDS_PER_TIMER: usize = 3;
const WORDS_PER_MESSAGE: usize = 2;

/// A state's words by their meaning.
pub(crate) struct View<'a> {
    pub(crate) nodes: &'a [u32],
    pub(crate) users: &'a [u32],
    left: &'a [u32],
    timeouts_left: u32,
    timers: &'a [[u32; WORDS_PER_TIMER]],
    /// Link and message, sorted by link.
    pub(crate) messages: &'a [[u32; WORDS_PER_MESSAGE]],
}

/// A state in the making.
#[derive(Default)]
struct Draft {
    nodes: Vec<u32>,
    users: Vec<u32>,
    left: Vec<u32>,
    timeouts_left: u32,
    timers: Vec<[u32; WORDS_PER_TIMER]>,
    messages: Vec<[u32; WORDS_PER_MESSAGE]>,
}

impl Draft {
    fn copy(&mut self, view: &View<'_>) {
        self.nodes.clear();
        self.nodes.extend_from_slice(view.nodes);
        self.users.clear();
        self.users.extend_from_slice(view.users);
        self.left.clear();
        self.left.extend_from_slice(view.left);
        self.timeouts_left = view.timeouts_left;
        self.timers.clear();
        self.timers.extend_from_slice(view.timers);
        self.messages.clear();
        self.messages.extend_from_slice(view.messages);
    }

    fn done(&self) -> State {
        let size = self.nodes.len()
            + 2 * self.users.len()
            + 2
            + WORDS_PER_TIMER * self.timers.len()
            + WORDS_PER_MESSAGE * self.messages.len();
        let mut words = Vec::with_capacity(size);
        words.extend_from_slice(&self.nodes);
        words.extend_from_slice(&self.users);
        words.extend_from_slice(&self.left);
        words.push(self.timeouts_left);
        words.push(self.timers.len() as u32);
        words.extend_from_slice(self.timers.as_flattened());
        words.extend_from_slice(self.messages.as_flattened());
        State(words.into_boxed_slice())
    }
}

impl<Q: Problem> Model<Q> {
    pub(crate) fn new(machine: &dyn Machine<Q>, bounds: Bounds, progress: fn(usize)) -> Model<Q> {
        Model {
            nodes: machine.shape().nodes(),
            users: machine.shape().users,
            bounds,
            tables: Mutex::new(Tables {
                explorer: machine.explorer(),
                users: IndexSet::default(),
                violations: FxHashMap::default(),
                draft: Draft::default(),
            }),
            taken: AtomicUsize::new(0),
            progress,
            unsafe_found: AtomicBool::new(false),
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
        let (nodes, rest) = state.0.split_at(self.nodes);
        let (users, rest) = rest.split_at(self.users);
        let (left, rest) = rest.split_at(self.users);
        let (timers, messages) = rest[2..].split_at(WORDS_PER_TIMER * rest[1] as usize);
        View {
            nodes,
            users,
            left,
            timeouts_left: rest[0],
            timers: timers.as_chunks().0,
            messages: messages.as_chunks().0,
        }
    }

    pub(crate) fn first(&self) -> State {
        let mut tables = self.tables();
        let user = tables.user(Q::User::default());
        let mut draft = Draft {
            nodes: NodeId::all(self.nodes)
                .map(|node| tables.explorer.initial(node).0)
                .collect(),
            users: vec![user; self.users],
            left: vec![self.bounds.entries.unwrap_or(0); self.users],
            timeouts_left: self.bounds.timeouts,
            timers: Vec::new(),
            messages: Vec::new(),
        };
        for node in NodeId::all(self.nodes) {
            self.advance(&mut tables, &mut draft, node, Move::Start);
        }
        draft.done()
    }

    /// Every step that can be taken. A step that must be taken in the end, if it stays possible, is
    /// marked by [`Model::is_obliged`].
    pub(crate) fn steps(&self, state: &State, steps: &mut Vec<Step>) {
        let view = self.view(state);
        let tables = self.tables();
        for node in NodeId::all(self.users) {
            let may = self.bounds.entries.is_none() || view.left[node.index()] > 0;
            match tables.next(view.users[node.index()]) {
                Next::Must(_) => steps.push(Step::Ask(node)),
                Next::May(_) if may => steps.push(Step::Ask(node)),
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
            let earlier = &view.messages[index - place as usize..index];
            let allowed = match self.bounds.channels {
                Channels::Fifo => place == 0,
                Channels::AnyOrder => earlier.iter().all(|[_, other]| *other != message),
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
            Step::Ask(node) => {
                let mut user = tables.users[draft.users[node.index()] as usize].clone();
                let next = user.next();
                if let Next::May(ask) | Next::Must(ask) = next {
                    if matches!(next, Next::May(_)) && self.bounds.entries.is_some() {
                        draft.left[node.index()] -= 1;
                    }
                    user.asked(ask);
                    draft.users[node.index()] = tables.user(user);
                    self.advance(&mut tables, &mut draft, node, Move::Ask(ask));
                }
            }
            Step::Deliver { from, to, place } => {
                let link = self.link(from, to);
                let first = draft.messages.partition_point(|[other, _]| *other < link);
                let [_, message] = draft.messages.remove(first + place as usize);
                let input = Move::Message {
                    from,
                    message: MessageId(message),
                };
                self.advance(&mut tables, &mut draft, to, input);
            }
            Step::Fire(node, timer) => {
                let words = [node.0, timer.0 as u32, (timer.0 >> 32) as u32];
                draft.timers.retain(|other| *other != words);
                draft.timeouts_left -= 1;
                self.advance(&mut tables, &mut draft, node, Move::Timer(timer));
            }
        }
        tables.draft = draft;
        tables.draft.done()
    }

    fn advance(&self, tables: &mut Tables<Q>, draft: &mut Draft, node: NodeId, input: Move<Q>) {
        let Tables {
            explorer, users, ..
        } = tables;
        let Outcome {
            state,
            sends,
            tells,
            timers,
        } = explorer.step(node, StateId(draft.nodes[node.index()]), input);
        draft.nodes[node.index()] = state.0;
        for (to, message) in sends {
            let link = self.link(node, *to);
            let place = draft.messages.partition_point(|[other, _]| *other <= link);
            draft.messages.insert(place, [link, message.0]);
        }
        for timer in timers {
            draft
                .timers
                .push([node.0, timer.0 as u32, (timer.0 >> 32) as u32]);
            draft.timers.sort_unstable();
        }
        for tell in tells {
            let Some(slot) = draft
                .users
                .get_mut(node.index())
                .filter(|user| **user != ILL_FORMED)
            else {
                continue;
            };
            let mut user = users[*slot as usize].clone();
            *slot = match user.told(*tell) {
                Ok(()) => users.insert_full(user).0 as u32,
                Err(_) => ILL_FORMED,
            };
        }
    }

    /// The same state with the smallest logical time at zero: runs that repeat but for their clocks
    /// repeat.
    pub(crate) fn canonical(&self, state: State) -> State {
        let tables = &mut *self.tables();
        let view = self.view(&state);
        let (explorer, draft) = (&mut tables.explorer, &mut tables.draft);
        let nodes = view
            .nodes
            .iter()
            .filter_map(|&node| explorer.state_time(StateId(node)))
            .min();
        let messages = view
            .messages
            .iter()
            .filter_map(|m| explorer.message_time(MessageId(m[1])))
            .min();
        let Some(by) = nodes.into_iter().chain(messages).min().filter(|&by| by > 0) else {
            return state;
        };
        draft.copy(&view);
        for node in &mut draft.nodes {
            *node = explorer.state_rebased(StateId(*node), by).0;
        }
        for [_, message] in &mut draft.messages {
            *message = explorer.message_rebased(MessageId(*message), by).0;
        }
        draft.done()
    }

    fn link(&self, from: NodeId, to: NodeId) -> u32 {
        from.0 * self.nodes as u32 + to.0
    }

    fn ends(&self, link: u32) -> (NodeId, NodeId) {
        let nodes = self.nodes as u32;
        (NodeId(link / nodes), NodeId(link % nodes))
    }

    /// What is wrong in this state.
    pub(crate) fn violation(&self, state: &State) -> Option<String> {
        let users = self.view(state).users;
        self.tables().violation(users)
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

    pub(crate) fn waits(&self, state: &State, user: NodeId) -> bool {
        self.tables().phase(self.view(state).users[user.index()]) == Phase::Waiting
    }

    pub(crate) fn has_timers(&self, state: &State) -> bool {
        !self.view(state).timers.is_empty()
    }

    /// Whether a fair schedule must take this step if it stays possible: everything but a new
    /// request.
    pub(crate) fn is_obliged(&self, state: &State, step: Step) -> bool {
        match step {
            Step::Ask(node) => {
                let user = self.view(state).users[node.index()];
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

    fn phase(&self, user: u32) -> Phase {
        self.users
            .get_index(user as usize)
            .map_or(Phase::Idle, User::phase)
    }

    fn violation(&mut self, users: &[u32]) -> Option<String> {
        if let Some(known) = self.violations.get(users) {
            return known.clone();
        }
        let found = match users.iter().position(|&user| user == ILL_FORMED) {
            Some(node) => Some(format!("p{node} was told what it had not asked for")),
            None => {
                let all: Vec<Q::User> = users
                    .iter()
                    .map(|&u| self.users[u as usize].clone())
                    .collect();
                Q::violation(&all)
            }
        };
        self.violations.insert(users.into(), found.clone());
        found
    }
}

pub(crate) const SAFETY: &str = "safety";
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
            Property::always(DEADLOCK_FREEDOM, |model, state| {
                !model.is_stuck(state) || model.stuck_found.swap(true, Ordering::Relaxed)
            }),
        ]
    }
}
