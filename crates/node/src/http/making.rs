//! Makes the state one slice at a time, so that nobody waits for an observer.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use testigo_core::{Edge, Matcher, Name, Pattern, Refusal};

use super::agreed::AgreedMaker;
use super::elections::Election;
use super::pools::{PoolsMaker, donations};
use super::state::{Counters, Gate, Part, ROWS_MAX, Session, Sizes, State, Wait, gate_of};
use crate::house::{House, SeenSessions, Slice};
use crate::shared::Shared;
use crate::users::{Deed, User};

/// The state, or a part of it; `None` if the node stops.
pub(super) fn state(shared: &Shared, mut state: StateMaker) -> Option<State> {
    shared.in_slices(move |house, slice| state.slice(house, slice))
}

/// Makes the state. Its numbers are those of the whole node.
pub(crate) struct StateMaker {
    part: Part,
    /// The gate that is shown if the part is one gate.
    one: Box<str>,
    gates: Gates,
    /// The gates that are shown.
    shown: Vec<Gate>,
    elections: Vec<Election>,
    pools: PoolsMaker,
    agreed: AgreedMaker,
    sessions: Sessions,
    edges: Edges,
}

impl StateMaker {
    /// For one gate, the pattern is its name.
    pub(crate) fn new(pattern: &str, part: Part, user: Arc<User>) -> Result<StateMaker, Refusal> {
        let (one, pattern) = match part {
            Part::Gate => (pattern, Pattern::any()),
            _ => ("", Pattern::new(pattern)?),
        };
        Ok(StateMaker {
            part,
            one: one.into(),
            gates: Gates::new(pattern.matcher(), Arc::clone(&user)),
            shown: Vec::new(),
            elections: Vec::new(),
            pools: PoolsMaker::default(),
            agreed: AgreedMaker::default(),
            sessions: Sessions::new(user, part.rows_max()),
            edges: Edges::default(),
        })
    }

    /// Continues; returns the state when it is complete.
    pub(crate) fn slice(&mut self, house: &House, slice: &mut Slice) -> Option<State> {
        let whole = match self.part {
            Part::Whole => {
                self.gates.look(house, slice)
                    && self.show(house, slice)
                    && self.show_elections(house, slice)
                    && self.show_pools(house, slice)
                    && self.show_agreed(house, slice)
                    && self.sessions.slice(house, slice)
                    && self.look_at_edges(house, slice)
            }
            Part::Gate => self.show_one(house, slice),
            Part::Sessions => self.sessions.slice(house, slice),
            Part::Flows | Part::Live => true,
            Part::Waits => self.gates.look(house, slice) && self.look_at_edges(house, slice),
        };
        whole.then(|| self.finish(house))
    }

    fn look_at_edges(&mut self, house: &House, slice: &mut Slice) -> bool {
        self.edges.slice(house, slice, &mut self.gates.waited)
    }

    fn show_one(&mut self, house: &House, slice: &mut Slice) -> bool {
        let user = &self.gates.user;
        let view = house.gate_view(&self.one, ROWS_MAX).ok();
        let seen = view.filter(|view| view.name.as_election().is_none());
        let seen = seen.filter(|view| house.shows_gate(&view.name));
        let seen = seen.filter(|view| user.may(Deed::Show, &view.name));
        if let Some(view) = seen {
            slice.spend(1 + view.holders.len() + view.waiters.len());
            let travelling = house.travelling(&view.name, &view.definition);
            self.shown.push(gate_of(view, travelling, user));
        }
        true
    }

    fn show(&mut self, house: &House, slice: &mut Slice) -> bool {
        let Gates {
            used, idle, user, ..
        } = &mut self.gates;
        while slice.has_room() && self.shown.len() < ROWS_MAX {
            let Some(name) = used.pop().or_else(|| idle.pop()) else {
                return true;
            };
            // It may be gone by now.
            if let Ok(view) = house.gate_view(&name, ROWS_MAX) {
                slice.spend(1 + view.holders.len() + view.waiters.len());
                let travelling = house.travelling(&view.name, &view.definition);
                self.shown.push(gate_of(view, travelling, user));
            }
        }
        self.shown.len() == ROWS_MAX
    }

    fn show_elections(&mut self, house: &House, slice: &mut Slice) -> bool {
        while slice.has_room() && self.elections.len() < ROWS_MAX {
            let Some(name) = self.gates.elections.pop_first() else {
                return true;
            };
            self.elections.push(Election::of(house, &name, slice));
        }
        self.elections.len() == ROWS_MAX
    }

    fn show_pools(&mut self, house: &House, slice: &mut Slice) -> bool {
        let Gates { pattern, user, .. } = &self.gates;
        self.pools.slice(house, slice, pattern, user)
    }

    fn show_agreed(&mut self, house: &House, slice: &mut Slice) -> bool {
        let Gates { pattern, user, .. } = &self.gates;
        self.agreed.slice(house, slice, pattern, user)
    }

    fn finish(&mut self, house: &House) -> State {
        let local = house.local();
        let [mut gates, mut sessions, holds, waits] = local.sizes();
        if house.member_number().is_some() {
            // Other nodes' gates are known here by their definitions, and other nodes' sessions by what they hold and wait
            // for.
            (gates, sessions) = (self.gates.owned, self.sessions.seen.hosted);
        }
        let counters = local.counters();
        State {
            node: house.member_number(),
            missing: house.member_number().map(|_| house.other_members()),
            version: env!("CARGO_PKG_VERSION"),
            start: house.start().0,
            number: house.replicated().ownership().highest().0,
            epoch: house.start().0,
            recovering: local.recovering(),
            awaited: local.awaited(),
            everything_waits: local.recovering_everywhere(),
            now_ms: house.now(),
            sizes: Sizes {
                gates,
                elections: self.gates.elections_owned,
                sessions,
                holds,
                waits,
                connections: house.connections.len(),
            },
            counters: Counters {
                grants: counters.grants,
                releases: counters.releases,
                losses: counters.losses,
                waits: counters.waits,
                waits_ended: counters.waits_ended,
                deadlocks: counters.deadlocks,
                terms: counters.terms,
                connections: house.connections.ever(),
                commands: house.counters().commands,
            },
            gates_more: self.gates.fitting.saturating_sub(self.shown.len()),
            gates: std::mem::take(&mut self.shown),
            elections_more: self.gates.elections.len(),
            elections: std::mem::take(&mut self.elections),
            groups: std::mem::take(&mut self.agreed.groups),
            groups_more: self.agreed.groups_more,
            decisions: std::mem::take(&mut self.agreed.decisions),
            decisions_more: self.agreed.decisions_more,
            pools_more: self.pools.more,
            pools: std::mem::take(&mut self.pools.rows),
            donations: match self.part {
                Part::Whole => donations(house, &self.gates.pattern, &self.gates.user),
                _ => Vec::new(),
            },
            sessions: std::mem::take(&mut self.sessions.rows),
            sessions_more: self.sessions.more,
            edges: std::mem::take(&mut self.edges.rows),
        }
    }
}

/// The gates that a user may see and whose names match.
struct Gates {
    pattern: Matcher,
    user: Arc<User>,
    at: usize,
    /// How many gates this node has, including those that the user may not see.
    owned: usize,
    fitting: usize,
    /// No more than are shown, the first one last.
    used: Vec<Name>,
    idle: Vec<Name>,
    /// The elections that the user may see and whose names match, including those with only ended terms.
    elections: BTreeSet<Name>,
    elections_owned: usize,
    /// Gates at which somebody waits, whatever their names: the first ones by name, up to a cap.
    waited: BTreeSet<Name>,
    looked: bool,
}

impl Gates {
    fn new(pattern: Matcher, user: Arc<User>) -> Gates {
        Gates {
            pattern,
            user,
            at: 0,
            owned: 0,
            fitting: 0,
            used: Vec::new(),
            idle: Vec::new(),
            elections: BTreeSet::new(),
            elections_owned: 0,
            waited: BTreeSet::new(),
            looked: false,
        }
    }

    /// Searches on; true when all were looked at.
    fn look(&mut self, house: &House, slice: &mut Slice) -> bool {
        if self.looked {
            return true;
        }
        let end = house.local().gate_places();
        let places = slice.places_of(&mut self.at, end, self.pattern.weight());
        let (owned, led) = (Cell::new(0), Cell::new(0));
        let seen = |name: &Name| {
            let own = house.owns_name(name);
            let counted = match name.as_election() {
                Some(_) => &led,
                None => &owned,
            };
            counted.set(counted.get() + usize::from(own));
            (own || house.is_spread(name)) && self.user.may(Deed::Show, name)
        };
        for gate in house.local().gates_in(places, seen) {
            if gate.waiters > 0 {
                keep_first(&mut self.waited, gate.name.clone(), 2 * ROWS_MAX);
            }
            if !self.user.sees(&gate.name, &self.pattern) {
                continue;
            }
            if gate.name.as_election().is_some() {
                self.elections.insert(gate.name);
                continue;
            }
            self.fitting += 1;
            let shown = match gate.holders + gate.waiters > 0 {
                true => &mut self.used,
                false => &mut self.idle,
            };
            if shown.len() < ROWS_MAX {
                shown.push(gate.name);
            }
        }
        self.owned += owned.get();
        self.elections_owned += led.get();
        if self.at >= end {
            let past = house.past_elections();
            let past = past.filter(|name| self.user.sees(name, &self.pattern));
            self.elections.extend(past.cloned());
            self.looked = true;
            self.used.reverse();
            self.idle.reverse();
        }
        self.looked
    }
}

/// The sessions that a user may see, the first ones by ID, up to a cap.
struct Sessions {
    user: Arc<User>,
    rows_max: usize,
    seen: SeenSessions,
    rows: Vec<Session>,
    more: usize,
    looked: bool,
}

impl Sessions {
    fn new(user: Arc<User>, rows_max: usize) -> Sessions {
        Sessions {
            user,
            rows_max,
            seen: SeenSessions::default(),
            rows: Vec::new(),
            more: 0,
            looked: false,
        }
    }

    /// Continues; true when all are there.
    fn slice(&mut self, house: &House, slice: &mut Slice) -> bool {
        if !self.looked {
            self.looked = self.seen.look(house, &self.user, slice);
            while self.seen.ids.len() > self.rows_max {
                self.seen.ids.pop_last();
                self.more += 1;
            }
        }
        while self.looked && slice.has_room() {
            let Some(session) = self.seen.ids.pop_first() else {
                return true;
            };
            slice.spend(1 + house.local().session_weight(session));
            if let Some(view) = house.session_for(&self.user, session) {
                let mut row = Session::from(view);
                row.user = house.owner(session).map(str::to_owned);
                row.home = house.member_number();
                self.rows.push(row);
            }
        }
        false
    }
}

/// Who waits for whom.
#[derive(Default)]
struct Edges {
    rows: Vec<Wait>,
}

impl Edges {
    /// Continues with these gates; true when all edges to be shown are there.
    fn slice(&mut self, house: &House, slice: &mut Slice, gates: &mut BTreeSet<Name>) -> bool {
        while slice.has_room() && self.rows.len() < ROWS_MAX {
            let Some(gate) = gates.pop_first() else {
                return true;
            };
            let room = ROWS_MAX - self.rows.len();
            let edges: Vec<Edge> = house.local().edges_at(&gate, room);
            slice.spend(1 + edges.len());
            self.rows.extend(edges.into_iter().map(Wait::from));
        }
        self.rows.len() == ROWS_MAX
    }
}

/// Keeps a name if it is among the first `most`.
fn keep_first(names: &mut BTreeSet<Name>, name: Name, most: usize) {
    names.insert(name);
    if names.len() > most {
        names.pop_last();
    }
}
