//! Every order of deliveries, takes and gives in a small group, with at most one fault at any point.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use stateright::{Checker, HasDiscoveries, Model as _, Property};
use testigo_protocol::NodeId;
use testigo_protocol::quorum::NodeSet;
use testigo_protocol::slots::{Sharer, SlotsPlan};

use super::observer::{gives_to_all, keeps_enough};
use super::{SlotsFault, SlotsStep, SlotsViolation, SlotsWorld};
use crate::Verdict;

/// The fault of a search; it happens at most once, at any point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotsTrouble {
    None,
    /// The group parts in two, each side loses some of the other's messages, and they meet again.
    Part,
    /// A machine stops, and may come back, in reach of the others or not.
    Crash,
    /// A process ends, and may start again.
    Depart,
    /// The last member is not there at the start.
    Join,
}

impl SlotsTrouble {
    pub const ALL: [SlotsTrouble; 5] = [
        SlotsTrouble::None,
        SlotsTrouble::Part,
        SlotsTrouble::Crash,
        SlotsTrouble::Depart,
        SlotsTrouble::Join,
    ];

    pub fn word(self) -> &'static str {
        match self {
            SlotsTrouble::None => "none",
            SlotsTrouble::Part => "part",
            SlotsTrouble::Crash => "crash",
            SlotsTrouble::Depart => "depart",
            SlotsTrouble::Join => "join",
        }
    }
}

impl fmt::Display for SlotsTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for SlotsTrouble {
    type Err = String;

    fn from_str(text: &str) -> Result<SlotsTrouble, String> {
        let mut all = SlotsTrouble::ALL.into_iter();
        all.find(|trouble| trouble.word() == text).ok_or_else(|| {
            format!("there is no fault `{text}`; there are none, part, crash, depart, join")
        })
    }
}

/// What to search.
#[derive(Clone, Debug)]
pub struct SlotsCheckPlan {
    pub plan: SlotsPlan,
    pub trouble: SlotsTrouble,
    /// How many slots are taken in all, and how many are given back.
    pub uses: u32,
    /// Stops the search after this many generated states; what it did not reach is not covered.
    pub states_max: usize,
    /// Called from time to time with the number of states so far.
    pub progress: fn(usize),
}

impl SlotsCheckPlan {
    pub const STATES_MAX_DEFAULT: usize = 2_000_000;
}

/// A finished search.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotsChecked {
    /// Distinct states.
    pub states: usize,
    /// States generated, including repeated ones.
    pub generated: usize,
    /// The length in steps of the longest among the shortest ways to a state.
    pub depth: usize,
    /// Whether every order was explored.
    pub complete: bool,
    /// No slot can be used at two members, and no donor gives what it keeps.
    pub safety: Verdict,
    /// Whenever everything has been delivered, nothing is open, all tables agree and no slot is lost.
    pub rest: Verdict,
    pub counterexample: Option<SlotsCounterexample>,
}

/// The shortest way to a violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotsCounterexample {
    pub what: SlotsViolation,
    /// Its steps in words.
    pub steps: Vec<String>,
}

/// Searches all orders.
pub fn check_slots(plan: &SlotsCheckPlan) -> SlotsChecked {
    let checker = Group::new(plan.clone())
        .checker()
        .threads(1)
        .finish_when(HasDiscoveries::Any)
        .target_state_count(plan.states_max)
        .spawn_bfs()
        .join();
    let discoveries = checker.discoveries();
    let complete = discoveries.is_empty() && checker.state_count() < plan.states_max;
    let verdict = |name| match (discoveries.contains_key(name), complete) {
        (true, _) => Verdict::Refuted,
        (false, true) => Verdict::Holds,
        (false, false) => Verdict::NotCovered,
    };
    let found = discoveries.get(SAFETY).or_else(|| discoveries.get(REST));
    let counterexample = found.and_then(|path| {
        let what = path.last_state().violation(&plan.plan)?;
        let mut world = checker.model().first().world;
        let mut steps = Vec::new();
        for step in path.clone().into_actions() {
            steps.push(world.describe(&step));
            world.step(&step, &plan.plan);
        }
        Some(SlotsCounterexample { what, steps })
    });
    SlotsChecked {
        states: checker.unique_state_count(),
        generated: checker.state_count(),
        depth: checker.max_depth(),
        complete,
        safety: verdict(SAFETY),
        rest: verdict(REST),
        counterexample,
    }
}

const SAFETY: &str = "safety";
const REST: &str = "rest";
/// Most messages that each side of a partition loses.
const LOST_MAX: u32 = 2;
const STATES_PER_REPORT: usize = 1 << 14;

struct Group {
    plan: SlotsCheckPlan,
    /// Each distinct member is stored once, so that a state takes little room.
    known: Mutex<HashSet<Arc<Sharer>>>,
    taken: AtomicUsize,
    /// The first violation is the shortest; later ones must not replace it.
    unsafe_found: AtomicBool,
    unrest_found: AtomicBool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Situation {
    world: SlotsWorld,
    takes_left: u32,
    gives_left: u32,
    struck: bool,
    wrong: Option<SlotsViolation>,
}

impl Situation {
    fn unsafety(&self, plan: &SlotsPlan) -> Option<SlotsViolation> {
        self.wrong.clone().or_else(|| self.world.check(plan).err())
    }

    fn unrest(&self, plan: &SlotsPlan) -> Option<SlotsViolation> {
        let quiet = self.world.is_quiet();
        quiet
            .then(|| self.world.check_at_rest(plan).err())
            .flatten()
    }

    fn violation(&self, plan: &SlotsPlan) -> Option<SlotsViolation> {
        self.unsafety(plan).or_else(|| self.unrest(plan))
    }
}

impl Group {
    fn new(plan: SlotsCheckPlan) -> Group {
        Group {
            plan,
            known: Mutex::new(HashSet::new()),
            taken: AtomicUsize::new(0),
            unsafe_found: AtomicBool::new(false),
            unrest_found: AtomicBool::new(false),
        }
    }

    fn first(&self) -> Situation {
        let members = self.plan.plan.members;
        let late = usize::from(self.plan.trouble == SlotsTrouble::Join);
        let mut world = SlotsWorld::started_with(&self.plan.plan, members - late);
        world.renumber();
        Situation {
            world,
            takes_left: self.plan.uses,
            gives_left: self.plan.uses,
            struck: false,
            wrong: None,
        }
    }

    /// The fault, if it has not happened yet, or what may follow it.
    fn faults(&self, situation: &Situation) -> Vec<SlotsFault> {
        let members = self.plan.plan.members;
        let founder = false;
        let all = || NodeId::all(members);
        let faults: Vec<SlotsFault> = match (self.plan.trouble, situation.struck) {
            (SlotsTrouble::None, _) => Vec::new(),
            (SlotsTrouble::Part, false) => sides(members)
                .flat_map(|away| {
                    let lost = (0..=LOST_MAX)
                        .flat_map(|one| (0..=LOST_MAX).map(move |other| [one, other]));
                    lost.map(move |lost| SlotsFault::Part { away, lost })
                })
                .collect(),
            (SlotsTrouble::Crash, false) => all()
                .flat_map(|member| {
                    (0..=LOST_MAX).map(move |lost| SlotsFault::Crash { member, lost })
                })
                .collect(),
            (SlotsTrouble::Depart, false) => {
                all().map(|member| SlotsFault::Depart { member }).collect()
            }
            (_, _) => {
                let merges = all().map(|other| SlotsFault::Merge {
                    one: NodeId(0),
                    other,
                });
                let joins = all().map(|member| SlotsFault::Join { member, founder });
                merges.chain(joins).collect()
            }
        };
        let mut faults: Vec<SlotsFault> = faults
            .into_iter()
            .filter(|fault| situation.world.may(fault))
            .collect();
        // Two machines of the same side name the same merge.
        let merge = |fault: &SlotsFault| matches!(fault, SlotsFault::Merge { .. });
        faults.dedup_by(|one, other| merge(one) && merge(other));
        faults
    }
}

/// For every way to part the group, the side without member 0.
fn sides(members: usize) -> impl Iterator<Item = NodeSet> {
    let others = NodeSet::first(members).without(0);
    (1..members).flat_map(move |size| others.subsets(size))
}

impl stateright::Model for Group {
    type State = Situation;
    type Action = SlotsStep;

    fn init_states(&self) -> Vec<Situation> {
        vec![self.first()]
    }

    fn actions(&self, situation: &Situation, steps: &mut Vec<SlotsStep>) {
        for sharer in situation.world.sharers() {
            let member = sharer.id();
            if situation.world.next(member).is_some() {
                steps.push(SlotsStep::Deliver { member });
            }
            if situation.takes_left > 0 && sharer.is_initialised() {
                steps.push(SlotsStep::Take { member });
            }
            let used = sharer.used().first();
            if let Some(slot) = used.filter(|_| situation.gives_left > 0) {
                steps.push(SlotsStep::Give { member, slot });
            }
        }
        let faults = self.faults(situation);
        steps.extend(faults.into_iter().map(SlotsStep::Strike));
    }

    fn next_state(&self, last: &Situation, step: SlotsStep) -> Option<Situation> {
        let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
        if taken.is_multiple_of(STATES_PER_REPORT) {
            (self.plan.progress)(taken);
        }
        let mut next = last.clone();
        let sent = next.world.step(&step, &self.plan.plan);
        match step {
            SlotsStep::Take { .. } => next.takes_left -= 1,
            SlotsStep::Give { .. } => next.gives_left -= 1,
            SlotsStep::Strike(_) => next.struck = true,
            SlotsStep::Deliver { member } => {
                let (before, plan) = (last.world.sharer(member), &self.plan.plan);
                let heard = last.world.next(member);
                if let (Some(before), Some(after)) = (before, next.world.sharer(member)) {
                    next.wrong = keeps_enough(after, &sent, plan)
                        .and_then(|()| gives_to_all(before, after, heard, &sent))
                        .err();
                }
            }
            SlotsStep::Want { .. } | SlotsStep::Retire { .. } => {}
        }
        next.world.renumber();
        let mut known = self.known.lock().expect("a step does not panic");
        next.world.share_sharers(&mut known);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(SAFETY, |group: &Group, situation: &Situation| {
                situation.unsafety(&group.plan.plan).is_none()
                    || group.unsafe_found.swap(true, Ordering::Relaxed)
            }),
            Property::always(REST, |group: &Group, situation: &Situation| {
                situation.unrest(&group.plan.plan).is_none()
                    || group.unrest_found.swap(true, Ordering::Relaxed)
            }),
        ]
    }
}
