//! The observer of a run: it watches what users ask and are told, says what is wrong in it, and
//! measures it. It knows nothing of any algorithm.

use testigo_protocol::{Claim, NodeId, Phase, Problem, Shape, Slot, Tally, User, UserId, WordOf};
use testigo_sim::Time;

use crate::order::HappenedBefore;
use crate::overtakes::Overtakes;

/// Watches one run.
#[derive(Clone, Debug)]
pub struct Observer {
    /// The request of each user that has one.
    requests: Vec<Option<Request>>,
    tally: Tally,
    overtakes: Overtakes,
    /// The user that waits, if it has been the only one ever since it asked.
    lone: Option<UserId>,
    last_exit: Option<Time>,
    /// An exit with somebody waiting, until the next entry.
    handover: Option<Time>,
    order: Option<HappenedBefore>,
    /// Whether happened-before order is claimed, and not only kept for what a node can know.
    ordered: bool,
    /// Whether bounded bypass is claimed.
    bounded: bool,
    shape: Shape,
    /// What the last round was for.
    round_kind: Option<u32>,
    kinds: Vec<Kind>,
    pub measures: Measures,
    pub violations: Vec<Violation>,
    /// Whether a record is lost: then the order of what others did is only that of their clocks, and nothing is judged
    /// that depends on it.
    pub(crate) blind: bool,
}

#[derive(Clone, Copy, Debug)]
struct Request {
    asked_at: Time,
    entered: bool,
    kind: u32,
    /// How many entries passed it that could know of it.
    passed: u32,
}

/// The requests of one kind: of a class, for a room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    pub entries: u64,
    /// From asking to entering.
    pub waiting: Mean,
    /// The most entries that passed one of them, at nodes that could know of it.
    pub passed_max: u32,
}

/// Something that must not happen, and when it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub at: Time,
    pub kind: Wrong,
    pub what: String,
}

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Safety,
    Liveness,
    Order,
    /// How much may go before a request that is known.
    Bounds,
    WellFormedness,
}

impl Wrong {
    pub fn word(self) -> &'static str {
        match self {
            Wrong::Safety => "safety",
            Wrong::Liveness => "liveness",
            Wrong::Order => "order",
            Wrong::Bounds => "bounds",
            Wrong::WellFormedness => "well-formedness",
        }
    }
}

/// Sums over a run; means come from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measures {
    pub entries: u64,
    pub exits: u64,
    /// From asking to entering, for those who met nobody inside meanwhile; where there is no inside, for those
    /// who were the only ones to wait.
    pub entry_delay: Mean,
    /// From asking to entering, for all.
    pub waiting: Mean,
    /// From asking to having left.
    pub response: Mean,
    /// From an exit to the next entry, where somebody waited at the exit.
    pub synchronisation: Mean,
    /// The most entries of later requests that one request had to let pass.
    pub overtakes_max: u64,
    /// How often a round was opened: somebody entered and found nobody inside, or was told so.
    pub rounds: u64,
    /// Messages between nodes that have no user.
    pub behind: u64,
    /// Rounds for another kind of request than the one before.
    pub switches: u64,
    /// The most users inside together.
    pub inside_max: usize,
}

/// A mean in the making.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mean {
    total: u128,
    count: u64,
}

impl Mean {
    fn add(&mut self, span: Time) {
        self.total += u128::from(span.0);
        self.count += 1;
    }

    /// The mean as a multiple of `unit`; none when nothing was measured.
    pub fn in_units_of(&self, unit: Time) -> Option<f64> {
        let unit = if unit == Time::ZERO {
            Time::UNIT
        } else {
            unit.0
        };
        (self.count > 0).then(|| self.total as f64 / self.count as f64 / unit as f64)
    }
}

impl Observer {
    /// So many violations are kept; a broken algorithm can make one at every step.
    const VIOLATIONS_MAX: usize = 100;

    /// Kinds of requests that are told apart; those beyond are not.
    const KINDS_MAX: usize = 1_000;

    /// Watches for what is claimed; happened-before needs a vector for every message, and is not watched
    /// where there are many users.
    pub fn new(shape: &Shape, claims: &[Claim]) -> Observer {
        let (nodes, users) = (shape.nodes(), shape.users);
        let watches = claims.contains(&Claim::Order) || claims.contains(&Claim::Bypass);
        let watches = watches && users <= HappenedBefore::USERS_MAX;
        Observer {
            requests: vec![None; users],
            ordered: claims.contains(&Claim::Order),
            bounded: claims.contains(&Claim::Bypass),
            shape: shape.clone(),
            round_kind: None,
            kinds: Vec::new(),
            tally: Tally::default(),
            overtakes: Overtakes::new(users),
            lone: None,
            last_exit: None,
            handover: None,
            order: watches.then(|| HappenedBefore::new(nodes, users)),
            measures: Measures::default(),
            violations: Vec::new(),
            blind: false,
        }
    }

    /// A user's phase was `before`; this is what the user is now.
    pub fn phase<Q: Problem>(&mut self, at: Time, user: UserId, state: &Q::User, before: Phase) {
        match (before, state.phase()) {
            (Phase::Idle, Phase::Waiting) => self.asked(at, user, state.kind()),
            (Phase::Waiting, Phase::Inside) => self.entered(at, user, state.opens_round()),
            (Phase::Inside, Phase::Idle) => self.left(at, user),
            (Phase::Waiting, Phase::Idle) => self.served(at, user),
            _ => {}
        }
    }

    pub(crate) fn asked(&mut self, at: Time, user: UserId, kind: u32) {
        self.lone = (self.tally.waiting() == 0).then_some(user);
        self.tally.asked(kind);
        self.overtakes.asked(user);
        let request = Request {
            asked_at: at,
            entered: false,
            kind,
            passed: 0,
        };
        self.requests[user.index()] = Some(request);
        if let Some(order) = &mut self.order {
            order.requested(self.shape.home(user), user);
        }
    }

    pub(crate) fn entered(&mut self, at: Time, user: UserId, opens_round: Option<bool>) {
        let Some(request) = &mut self.requests[user.index()] else {
            return;
        };
        request.entered = true;
        let mine = *request;
        self.measures.entries += 1;
        self.measures.waiting.add(at.since(mine.asked_at));
        if self.tally.inside() == 0 && self.last_exit.is_none_or(|exit| exit <= mine.asked_at) {
            self.measures.entry_delay.add(at.since(mine.asked_at));
        }
        if let Some(exit) = self.handover.take() {
            self.measures.synchronisation.add(at.since(exit));
        }
        self.count(at, mine, opens_round.unwrap_or(self.tally.inside() == 0));
        self.tally.entered(mine.kind);
        let overtaken = self.overtakes.entered(user);
        let measures = &mut self.measures;
        measures.inside_max = measures.inside_max.max(self.tally.inside());
        measures.overtakes_max = measures.overtakes_max.max(overtaken);
        let Some(order) = self.order.as_ref().filter(|_| self.ordered) else {
            return;
        };
        let precedes = |other: &UserId| order.precedes(*other, user);
        for other in self.waiting().filter(precedes).collect::<Vec<_>>() {
            let what = format!("p{user} entered before p{other}, whose request happened before");
            self.report(at, Wrong::Order, what);
        }
    }

    /// A user has got what it asked for, and there is no inside.
    fn served(&mut self, at: Time, user: UserId) {
        let Some(mine) = self.requests[user.index()].take() else {
            return;
        };
        let waited = at.since(mine.asked_at);
        self.measures.entries += 1;
        self.measures.waiting.add(waited);
        if self.lone == Some(user) {
            self.measures.entry_delay.add(waited);
        }
        let kind = self.kind(mine.kind);
        kind.entries += 1;
        kind.waiting.add(waited);
        self.tally.gave_up(mine.kind);
        self.overtakes.entered(user);
    }

    /// Counts an entry by its kind, and the round that it opens.
    fn count(&mut self, at: Time, mine: Request, opens_round: bool) {
        if opens_round {
            self.measures.rounds += 1;
            let other = self.round_kind.is_some_and(|kind| kind != mine.kind);
            self.measures.switches += u64::from(other);
            self.round_kind = Some(mine.kind);
        }
        let kind = self.kind(mine.kind);
        kind.entries += 1;
        kind.waiting.add(at.since(mine.asked_at));
    }

    fn kind(&mut self, kind: u32) -> &mut Kind {
        let kind = (kind as usize).min(Self::KINDS_MAX - 1);
        if self.kinds.len() <= kind {
            self.kinds.resize(kind + 1, Kind::default());
        }
        &mut self.kinds[kind]
    }

    /// What was measured of each kind of request, by number.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// A user has entered: whom does that pass, of those that its node can know of?
    pub fn passes<Q: Problem>(&mut self, at: Time, entered: UserId, users: &[Q::User]) {
        if self.order.is_none() {
            return;
        }
        let home = self.shape.home(entered);
        for waiting in UserId::all(self.requests.len()) {
            let Some(theirs) = &mut self.requests[waiting.index()] else {
                continue;
            };
            if theirs.entered || !self.order.as_ref().is_some_and(|o| o.knows(home, waiting)) {
                continue;
            }
            let Some(most) = Q::bypass_max(users, entered, waiting) else {
                continue;
            };
            theirs.passed += 1;
            let (kind, passed) = (theirs.kind, theirs.passed);
            let kind = self.kind(kind);
            kind.passed_max = kind.passed_max.max(passed);
            if passed > most {
                let what = too_many(waiting, passed, most);
                self.report(at, Wrong::Bounds, what);
            }
        }
    }

    /// Whether it is kept what nodes can know of requests.
    pub fn watches_knowledge(&self) -> bool {
        self.order.is_some()
    }

    /// Whether a node can know of a user's request.
    pub fn knows(&self, node: NodeId, user: UserId) -> bool {
        let knows = |order: &HappenedBefore| order.knows(node, user);
        self.requests[user.index()].is_some() && self.order.as_ref().is_some_and(knows)
    }

    /// A grant broke a promise, if there is something to say of it.
    pub fn broken(&mut self, at: Time, what: Option<String>) {
        if let Some(what) = what {
            self.report(at, Wrong::Bounds, what);
        }
    }

    pub(crate) fn left(&mut self, at: Time, user: UserId) {
        let Some(mine) = self.requests[user.index()].take() else {
            return;
        };
        self.measures.exits += 1;
        self.measures.response.add(at.since(mine.asked_at));
        self.tally.left(mine.kind);
        self.last_exit = Some(at);
        self.handover = (self.tally.waiting() > 0).then_some(at);
    }

    /// A user is gone with its node, whatever it wanted.
    pub fn gone(&mut self, at: Time, user: UserId) {
        match self.requests[user.index()].take() {
            Some(request) if request.entered => {
                self.tally.left(request.kind);
                self.last_exit = Some(at);
            }
            Some(request) => {
                self.tally.gave_up(request.kind);
                let overtaken = self.overtakes.gave_up(user);
                self.measures.overtakes_max = self.measures.overtakes_max.max(overtaken);
            }
            None => {}
        }
    }

    /// A message was sent; `word_of` says what it brings word of, and is asked only where that matters.
    pub fn sent(&mut self, from: NodeId, slot: Slot, word_of: impl FnOnce() -> WordOf) {
        let Some(order) = &mut self.order else {
            return;
        };
        let (shape, requests) = (&self.shape, &self.requests);
        let has = |user: &UserId, kind: u32| {
            requests[user.index()].is_some_and(|request| request.kind == kind)
        };
        match word_of() {
            WordOf::All => order.sent(from, slot),
            WordOf::Own(kind) => {
                order.sent_for(
                    from,
                    slot,
                    shape.users_at(from).filter(|user| has(user, kind)),
                );
            }
            WordOf::Nothing => order.sent_for(from, slot, std::iter::empty()),
        }
    }

    pub fn delivered(&mut self, to: NodeId, slot: Slot) {
        if let Some(order) = &mut self.order {
            order.delivered(to, slot);
        }
    }

    /// A node said something that no well-formed node says.
    pub fn ill_formed(&mut self, at: Time, who: &str, what: &str) {
        self.report(at, Wrong::WellFormedness, format!("{who} was {what}"));
    }

    /// Looks at all users at once.
    pub fn look<Q: Problem>(&mut self, at: Time, users: &[Q::User]) {
        debug_assert!(Q::may_violate(&self.tally) || Q::violation(users).is_none());
        if Q::may_violate(&self.tally)
            && let Some(what) = Q::violation(users)
        {
            self.report(at, Wrong::Safety, what);
        }
    }

    /// Looks at all users while no message is under way.
    pub fn look_at_rest<Q: Problem>(&mut self, at: Time, users: &[Q::User]) {
        debug_assert!(Q::may_violate_at_rest(&self.tally) || Q::violation_at_rest(users).is_none());
        if Q::may_violate_at_rest(&self.tally)
            && let Some(what) = Q::violation_at_rest(users)
        {
            self.report(at, Wrong::Safety, what);
        }
    }

    /// The run is over: whoever still waits, waits for ever, and what is missing stays missing.
    pub fn end<Q: Problem>(&mut self, at: Time, users: &[Q::User], stopped: Option<&str>) {
        self.end_waiting(at, stopped);
        if let Some(missing) = Q::unserved(users) {
            self.report(at, Wrong::Liveness, missing);
        }
        debug_assert!(
            users
                .iter()
                .filter(|user| user.phase() == Phase::Inside)
                .count()
                == self.tally.inside()
        );
    }

    /// The same, without a look at the users.
    pub(crate) fn end_waiting(&mut self, at: Time, stopped: Option<&str>) {
        let overtaken = self.waiting().map(|user| self.overtakes.of(user)).max();
        let most = &mut self.measures.overtakes_max;
        *most = overtaken.unwrap_or(0).max(*most);
        let waiting: Vec<String> = self.waiting().map(|user| format!("p{user}")).collect();
        if let Some(why) = stopped {
            self.report(at, Wrong::Liveness, why.to_owned());
        }
        if !waiting.is_empty() {
            let verb = if waiting.len() == 1 { "waits" } else { "wait" };
            self.report(
                at,
                Wrong::Liveness,
                format!("{} {verb} for ever", waiting.join(" and ")),
            );
        }
    }

    /// A cycle without service for this user can go on for ever. Users without an inside remember all that they were told, so
    /// nobody is served on such a cycle.
    pub fn starves(&mut self, at: Time, victim: UserId, has_inside: bool) {
        let what = match has_inside {
            true => format!("p{victim} waits for ever while others are served"),
            false => format!("p{victim} waits for ever, and nobody is served"),
        };
        self.report(at, Wrong::Liveness, what);
    }

    fn waiting(&self) -> impl Iterator<Item = UserId> + '_ {
        let unserved = |request: &Option<Request>| request.is_some_and(|request| !request.entered);
        self.requests
            .iter()
            .enumerate()
            .filter(move |(_, r)| unserved(r))
            .map(|(user, _)| UserId(user as u32))
    }

    pub(crate) fn report(&mut self, at: Time, kind: Wrong, what: String) {
        let judged = !self.blind || kind == Wrong::WellFormedness;
        if judged && self.violations.len() < Self::VIOLATIONS_MAX {
            self.violations.push(Violation { at, kind, what });
        }
    }

    pub fn holds(&self, kind: Wrong) -> bool {
        !self
            .violations
            .iter()
            .any(|violation| violation.kind == kind)
    }

    /// Whether requests were served in happened-before order; none where nobody watched.
    pub fn ordered(&self) -> Option<bool> {
        let watched = self.order.as_ref().filter(|_| self.ordered);
        watched.map(|_| self.holds(Wrong::Order))
    }

    /// Whether every grant kept the bounds that the problem promises; none where nobody watched.
    pub fn bounded(&self) -> Option<bool> {
        let watched = self.order.as_ref().filter(|_| self.bounded);
        watched.map(|_| self.holds(Wrong::Bounds))
    }
}

/// A request was passed more often than was promised.
fn too_many(waiting: UserId, passed: u32, most: u32) -> String {
    format!(
        "p{waiting} was passed {passed} times by entries that could know of it; at most {most} may"
    )
}
