//! Branches of every algorithm, on links that deliver in order and at random times, with clients that come and go.

use std::collections::VecDeque;

use super::{Branch, Doings, DoorStep, Parcel, Plan};
use crate::gate::{Kind, Travels, Using};
use crate::local::Census;

/// A small generator: the same seed gives the same run.
struct Lots(u64);

impl Lots {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) as usize) % bound
    }
}

/// A gate for one writer or any number of readers, at one node.
#[derive(Clone, Default)]
struct Place {
    census: Census,
    open: bool,
    /// The cap on grants in this turn, and the grants so far.
    most: Option<u32>,
    turn: u32,
    granted: u32,
}

struct World {
    branches: Vec<Branch>,
    places: Vec<Place>,
    links: Vec<Vec<VecDeque<Letter>>>,
    plan: Plan,
}

#[derive(Clone)]
enum Letter {
    Parcel(Parcel),
    Wish,
    Go,
}

impl World {
    /// Node 1 owns the gate; `inside` clients are there already, exclusively or not.
    fn new(using: Using, nodes: usize, inside: u32, exclusive: bool) -> World {
        let travels = Travels { using, burst: 3 };
        let plan = Plan {
            travels,
            overtakes: 5,
            nodes,
        };
        let owner = 1;
        let branch = |own| Branch::new(&plan, own, owner).expect("it runs with so many nodes");
        let mut world = World {
            branches: (0..nodes as u32).map(branch).collect(),
            places: vec![Place::default(); nodes],
            links: vec![vec![VecDeque::new(); nodes]; nodes],
            plan,
        };
        world.places[1].census.inside = inside;
        world.places[1].census.exclusive = exclusive;
        for node in 0..nodes {
            let census = match node {
                1 => world.places[1].census,
                _ => Census::default(),
            };
            let mut doings = Doings::default();
            world.branches[node].begin(&census, &mut doings);
            if inside == 0 {
                world.branches[node].go();
            }
            world.carry(node, doings);
        }
        for node in 0..nodes {
            world.drive(node);
        }
        world
    }

    fn carry(&mut self, node: usize, doings: Doings) {
        let opens = |step: &&DoorStep| matches!(step, DoorStep::Open(_));
        assert!(
            doings.steps.iter().filter(opens).count() <= 1,
            "{:?}: who comes in and hears that another waits grants before it counts",
            self.plan
        );
        for order in doings.steps {
            let place = &mut self.places[node];
            match order {
                DoorStep::Open(most) => {
                    place.open = true;
                    place.most = most;
                    place.census.left = most.map(|most| most.saturating_sub(place.turn));
                }
                DoorStep::Shut => {
                    place.open = false;
                    place.most = None;
                    place.turn = 0;
                    place.census.left = None;
                }
                DoorStep::Admit(kind) => {
                    let waiting = &mut place.census.waiting[kind as usize];
                    if *waiting > 0 {
                        *waiting -= 1;
                        self.enter(node, kind);
                    }
                }
                DoorStep::Wanted => {}
            }
            self.grant(node);
        }
        for parcel in doings.parcels {
            let to = self.branches[node].node_of(parcel.to) as usize;
            self.links[node][to].push_back(Letter::Parcel(parcel));
        }
        if doings.wish {
            for to in (0..self.places.len()).filter(|to| *to != node) {
                self.links[node][to].push_back(Letter::Wish);
            }
        }
    }

    fn enter(&mut self, node: usize, kind: Kind) {
        let exclusive = kind != Kind::Reader;
        let inside = self.places.iter();
        let inside: u32 = inside.map(|place| place.census.inside).sum();
        let writers = self.places.iter().any(|place| place.census.exclusive);
        assert!(
            inside == 0 || !exclusive && !writers,
            "{:?}: somebody enters beside others",
            self.plan
        );
        let place = &mut self.places[node];
        place.census.inside += 1;
        place.census.exclusive = exclusive;
        place.granted += 1;
    }

    /// The node's own rule: one writer, or readers; the first in line enters.
    fn grant(&mut self, node: usize) {
        loop {
            let place = &mut self.places[node];
            let Census {
                inside,
                exclusive,
                waiting,
                left,
            } = place.census;
            if !place.open || left == Some(0) {
                return;
            }
            let kind = [Kind::Urgent, Kind::Writer, Kind::Reader]
                .into_iter()
                .find(|kind| {
                    let fits = inside == 0 || *kind == Kind::Reader && !exclusive;
                    waiting[*kind as usize] > 0 && fits
                });
            let Some(kind) = kind else {
                return;
            };
            place.census.waiting[kind as usize] -= 1;
            place.census.left = left.map(|left| left - 1);
            place.turn += 1;
            let most = place.most.unwrap_or(u32::MAX);
            assert!(place.turn <= most, "more than a burst");
            self.enter(node, kind);
        }
    }

    fn drive(&mut self, node: usize) {
        loop {
            self.grant(node);
            let census = self.places[node].census;
            let mut doings = Doings::default();
            self.branches[node].look(&census, &mut doings);
            let first = node == 1 && !self.branches[1].goes();
            let goes = first && self.branches[1].has_all_in(&census);
            if goes {
                self.branches[1].go();
                for to in (0..self.places.len()).filter(|to| *to != 1) {
                    self.links[1][to].push_back(Letter::Go);
                }
            }
            let done = doings == Doings::default() && !goes;
            self.carry(node, doings);
            if done {
                return;
            }
        }
    }

    /// Delivers the next letter of one link, or lets a client leave. False if nothing is left to do.
    fn step(&mut self, lots: &mut Lots) -> bool {
        let nodes = self.places.len();
        let all = (0..nodes).flat_map(|from| (0..nodes).map(move |to| (from, to)));
        let full = all.filter(|(from, to)| !self.links[*from][*to].is_empty());
        let full: Vec<(usize, usize)> = full.collect();
        let inside = (0..nodes).filter(|node| self.places[*node].census.inside > 0);
        let inside: Vec<usize> = inside.collect();
        if full.is_empty() && inside.is_empty() {
            return false;
        }
        let lot = lots.below(full.len() + inside.len());
        if let Some(&node) = inside.get(lot) {
            let census = &mut self.places[node].census;
            census.inside -= 1;
            census.exclusive = false;
            self.drive(node);
            return true;
        }
        let (from, to) = full[lot - inside.len()];
        let letter = self.links[from][to].pop_front().expect("it is full");
        let mut doings = Doings::default();
        match letter {
            Letter::Parcel(parcel) => {
                let taken = self.branches[to].receive(&parcel, &mut doings);
                taken.expect("a parcel of a member");
            }
            Letter::Wish => self.branches[to].wished(&mut doings),
            Letter::Go => self.branches[to].go(),
        }
        self.carry(to, doings);
        self.drive(to);
        true
    }
}

fn run(using: Using, nodes: usize, seed: u64) -> World {
    let mut lots = Lots(seed);
    let (inside, exclusive) = match seed % 3 {
        0 => (0, false),
        1 => (1, true),
        _ => (2, false),
    };
    let mut world = World::new(using, nodes, inside, exclusive);
    let (mut came, mut cancelled) = (0, 0);
    for _ in 0..400 {
        let node = lots.below(nodes);
        match lots.below(8) {
            0 | 1 => {
                came += 1;
                world.places[node].census.waiting[lots.below(3)] += 1;
                world.drive(node);
            }
            2 => {
                let waiting = &mut world.places[node].census.waiting[lots.below(3)];
                if *waiting > 0 {
                    *waiting -= 1;
                    cancelled += 1;
                    world.drive(node);
                }
            }
            _ => {
                world.step(&mut lots);
            }
        }
    }
    let mut steps = 0;
    while world.step(&mut lots) {
        steps += 1;
        assert!(steps < 100_000, "{using:?}, {nodes} nodes: it never rests");
    }
    let granted: u32 = world.places.iter().map(|place| place.granted).sum();
    assert_eq!(
        granted + cancelled,
        came,
        "{using:?}, {nodes} nodes, seed {seed}: somebody was not served"
    );
    world
}

#[test]
fn nobody_enters_beside_others_and_everybody_is_served_by_every_algorithm() {
    for using in Using::ALL.into_iter().skip(1) {
        for nodes in 2..=7 {
            for seed in 0..60 {
                run(using, nodes, seed);
            }
        }
    }
}

#[test]
fn every_algorithm_runs_with_as_many_nodes_as_a_cluster_may_have() {
    for using in Using::ALL.into_iter().skip(1) {
        for nodes in (2..40).chain([64, 100, 255]) {
            let plan = Plan {
                travels: Travels { using, burst: 1 },
                overtakes: 1,
                nodes,
            };
            assert!(Branch::new(&plan, 0, 1).is_some(), "{using:?} {nodes}");
        }
    }
}

#[test]
fn a_token_at_rest_sends_nothing_and_a_hand_over_is_counted() {
    let mut lots = Lots(1);
    let mut world = World::new(Using::TokenRing, 3, 0, false);
    while world.step(&mut lots) {}
    let sent = |world: &World| -> u64 {
        let branches = world.branches.iter();
        branches.map(|branch| branch.counts().messages).sum()
    };
    assert_eq!(sent(&world), 1, "from the first node to the second");
    world.places[0].census.waiting[1] = 1;
    world.drive(0);
    while world.step(&mut lots) {}
    assert_eq!(world.places[0].granted, 1);
    assert_eq!(world.branches[0].counts().hand_overs, 1);
    assert!(
        sent(&world) <= 1 + 2 + 3 + 3,
        "wishes, and at most two laps"
    );
}
