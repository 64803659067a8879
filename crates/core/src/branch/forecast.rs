//! What a gate would have cost if its ownership had travelled in another way. Recorded arrivals are given to the branches
//! that would have served them, over links with measured delays, in virtual time. One seed gives one run.
//!
//! A client stays as long as it did stay, and comes when as many others have left its node as had left when it came. So a
//! client that waits longer also comes back later, and there are never more clients than there were. With `log`, the node
//! with the most visits owns the gate, and the others ask it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::{Branch, Doings, DoorStep, Parcel, Plan};
use crate::gate::{Kind, Using};
use crate::local::Census;

/// A recorded visit to a gate, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// When its client asks, counted from that departure, or from the beginning.
    pub at: u64,
    /// After how many departures from its node it comes; 0 if it waits for none.
    pub after: usize,
    /// Its node, counted from 0.
    pub node: usize,
    /// 0 for a writer of the most urgent class, 1 for any other writer, 2 for a reader.
    pub kind: u8,
    /// How long it stays.
    pub held: u64,
}

impl Visit {
    /// The index of its kind.
    fn place(&self) -> usize {
        usize::from(self.kind.min(2))
    }
}

/// The outcome of the visits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Messages between nodes.
    pub messages: u64,
    /// How often another node was let in.
    pub hand_overs: u64,
    /// How long each visit waited, in microseconds, in the order of the visits.
    pub waited: Vec<u64>,
    /// How many later visits overtook each visit.
    pub overtaken: Vec<u32>,
}

/// Runs the visits through an instance, those of each node in their order. `delay` says how long the next message from one
/// node to another takes, in microseconds. `None` if the algorithm cannot run with this many nodes.
pub fn forecast(
    plan: &Plan,
    visits: &[Visit],
    delay: &mut dyn FnMut(usize, usize) -> u64,
) -> Option<Forecast> {
    let mut most = vec![0_usize; plan.nodes];
    visits.iter().for_each(|visit| most[visit.node] += 1);
    let busiest = (0..plan.nodes).rev().max_by_key(|node| most[*node])?;
    let branch = |own: usize| Branch::new(plan, own as u32, busiest as u32);
    let branches: Vec<Branch> = match plan.travels.using {
        Using::Log => Vec::new(),
        _ => (0..plan.nodes).map(branch).collect::<Option<_>>()?,
    };
    let mut run = Run {
        branches,
        owner: busiest,
        last_in: None,
        places: vec![NodeGate::default(); plan.nodes],
        visits,
        came: vec![(0, 0); visits.len()],
        arrived: 0,
        absent: vec![VecDeque::new(); plan.nodes],
        departed: vec![0; plan.nodes],
        entered: Entered::none_of(visits.len()),
        delay,
        agenda: BinaryHeap::new(),
        numbered: 0,
        latest: vec![0; plan.nodes * plan.nodes],
        now: 0,
        forecast: Forecast {
            waited: vec![0; visits.len()],
            overtaken: vec![0; visits.len()],
            ..Forecast::default()
        },
    };
    run.play();
    let counts = run.branches.iter().map(Branch::counts);
    let counts = counts.fold(super::Counts::default(), super::Counts::and);
    run.forecast.messages += counts.messages;
    run.forecast.hand_overs += counts.hand_overs;
    Some(run.forecast)
}

/// The gate at one node: who waits, in order, and who is inside.
#[derive(Clone, Default)]
struct NodeGate {
    waiting: VecDeque<usize>,
    /// How many wait, by kind.
    kinds: [u32; 3],
    inside: u32,
    exclusive: bool,
    open: bool,
    left: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Comes(usize),
    Leaves(usize, usize),
    Letter(usize, usize, Letter),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Letter {
    Parcel(u32, u32, Vec<u8>),
    Wish,
    /// With `log`: a visit asks the owner, is let in, and gives back.
    Asks(usize),
    Enters(usize),
    Gives(usize),
}

/// Which arrivals have entered. Counts in a few steps how many entered after a given one, however many wait (a Fenwick tree).
struct Entered {
    sums: Vec<u32>,
    all: u32,
}

impl Entered {
    fn none_of(arrivals: usize) -> Entered {
        let sums = vec![0; arrivals + 1];
        Entered { sums, all: 0 }
    }

    fn add(&mut self, arrival: usize) {
        self.all += 1;
        let mut at = arrival + 1;
        while at < self.sums.len() {
            self.sums[at] += 1;
            at += at & at.wrapping_neg();
        }
    }

    fn after(&self, arrival: usize) -> u32 {
        let (mut at, mut before) = (arrival + 1, 0);
        while at > 0 {
            before += self.sums[at];
            at &= at - 1;
        }
        self.all - before
    }
}

struct Run<'a> {
    /// `None` where ownership travels in the log.
    branches: Vec<Branch>,
    owner: usize,
    last_in: Option<usize>,
    places: Vec<NodeGate>,
    visits: &'a [Visit],
    /// When each client came, and its position among all arrivals.
    came: Vec<(u64, usize)>,
    arrived: usize,
    /// Visits that come to each node after further departures, and the departures so far.
    absent: Vec<VecDeque<usize>>,
    departed: Vec<usize>,
    entered: Entered,
    delay: &'a mut dyn FnMut(usize, usize) -> u64,
    agenda: BinaryHeap<Reverse<(u64, u64, Event)>>,
    numbered: u64,
    /// When the last letter of each link arrives: links keep the order.
    latest: Vec<u64>,
    now: u64,
    forecast: Forecast,
}

impl Run<'_> {
    fn plan(&mut self, at: u64, event: Event) {
        self.numbered += 1;
        self.agenda.push(Reverse((at, self.numbered, event)));
    }

    fn send(&mut self, from: usize, to: usize, letter: Letter) {
        let after = (self.delay)(from, to);
        let latest = &mut self.latest[from * self.places.len() + to];
        *latest = (*latest).max(self.now + after);
        let at = *latest;
        self.plan(at, Event::Letter(from, to, letter));
    }

    fn play(&mut self) {
        for (index, visit) in self.visits.iter().enumerate() {
            match visit.after {
                0 => self.plan(visit.at, Event::Comes(index)),
                _ => self.absent[visit.node].push_back(index),
            }
        }
        for node in 0..self.branches.len() {
            let mut doings = Doings::default();
            self.branches[node].begin(&Census::default(), &mut doings);
            self.branches[node].go();
            self.carry(node, doings);
        }
        while let Some(Reverse((at, _, event))) = self.agenda.pop() {
            self.now = at;
            match event {
                Event::Comes(visit) => self.comes(visit),
                Event::Leaves(node, visit) => {
                    self.departs(self.visits[visit].node);
                    self.leaves(node, visit);
                }
                Event::Letter(from, to, letter) => self.takes(from, to, letter),
            }
        }
    }

    /// A client has left a node. Visits that waited for this departure come now.
    fn departs(&mut self, node: usize) {
        self.departed[node] += 1;
        while let Some(&visit) = self.absent[node].front()
            && self.visits[visit].after <= self.departed[node]
        {
            self.absent[node].pop_front();
            self.plan(self.now + self.visits[visit].at, Event::Comes(visit));
        }
    }

    fn comes(&mut self, visit: usize) {
        let node = self.visits[visit].node;
        self.came[visit] = (self.now, self.arrived);
        self.arrived += 1;
        match self.branches.is_empty() {
            false => {
                self.waits(node, visit);
                self.drive(node);
            }
            true if node == self.owner => self.wait_at_owner(visit),
            true => self.send_counted(node, self.owner, Letter::Asks(visit)),
        }
    }

    /// Adds a visit to a node's line.
    fn waits(&mut self, node: usize, visit: usize) {
        let place = &mut self.places[node];
        place.waiting.push_back(visit);
        place.kinds[self.visits[visit].place()] += 1;
        // Visits that have entered before do not overtake it.
        self.forecast.overtaken[visit] = self.entered.after(self.came[visit].1);
    }

    fn send_counted(&mut self, from: usize, to: usize, letter: Letter) {
        self.forecast.messages += 1;
        self.send(from, to, letter);
    }

    fn wait_at_owner(&mut self, visit: usize) {
        self.waits(self.owner, visit);
        self.places[self.owner].open = true;
        self.grant(self.owner);
    }

    fn leaves(&mut self, node: usize, visit: usize) {
        if self.branches.is_empty() && self.visits[visit].node != self.owner && node != self.owner {
            return self.send_counted(node, self.owner, Letter::Gives(visit));
        }
        let place = &mut self.places[node];
        place.inside -= 1;
        place.exclusive = false;
        match self.branches.is_empty() {
            true => self.grant(node),
            false => self.drive(node),
        }
    }

    fn takes(&mut self, from: usize, to: usize, letter: Letter) {
        let mut doings = Doings::default();
        match letter {
            Letter::Parcel(sender, member, packet) => {
                let parcel = Parcel {
                    from: sender,
                    to: member,
                    packet,
                };
                let taken = self.branches[to].receive(&parcel, &mut doings);
                debug_assert!(taken.is_ok(), "a parcel from {from}");
            }
            Letter::Wish => self.branches[to].wished(&mut doings),
            Letter::Asks(visit) => return self.wait_at_owner(visit),
            Letter::Enters(visit) => return self.stays(to, visit),
            Letter::Gives(visit) => return self.leaves(to, visit),
        }
        self.carry(to, doings);
        self.drive(to);
    }

    /// A client is told that it is in, and leaves after its time.
    fn stays(&mut self, node: usize, visit: usize) {
        let held = self.visits[visit].held;
        self.forecast.waited[visit] = self.now - self.came[visit].0;
        self.plan(self.now + held, Event::Leaves(node, visit));
    }

    /// The visit at this place of a node's line enters.
    fn enter(&mut self, node: usize, place: usize) {
        let Some(visit) = self.places[node].waiting.remove(place) else {
            return;
        };
        let Visit {
            kind, node: home, ..
        } = self.visits[visit];
        let arrival = self.came[visit].1;
        let before = self.forecast.overtaken[visit];
        self.forecast.overtaken[visit] = self.entered.after(arrival) - before;
        self.entered.add(arrival);
        self.places[node].kinds[self.visits[visit].place()] -= 1;
        self.places[node].inside += 1;
        self.places[node].exclusive = kind != Kind::Reader as u8;
        if !self.branches.is_empty() {
            return self.stays(node, visit);
        }
        if self.last_in.replace(home) != Some(home) {
            self.forecast.hand_overs += 1;
        }
        match home == node {
            true => self.stays(node, visit),
            false => self.send_counted(node, home, Letter::Enters(visit)),
        }
    }

    /// The node's own rule: the first in line enters, and readers together.
    fn grant(&mut self, node: usize) {
        loop {
            let place = &mut self.places[node];
            let Some(&first) = place.waiting.front().filter(|_| place.open) else {
                return;
            };
            let reads = self.visits[first].kind == Kind::Reader as u8;
            let fits = place.inside == 0 || reads && !place.exclusive;
            if !fits || place.left == Some(0) {
                return;
            }
            place.left = place.left.map(|left| left - 1);
            self.enter(node, 0);
        }
    }

    fn census(&self, node: usize) -> Census {
        let place = &self.places[node];
        Census {
            inside: place.inside,
            exclusive: place.exclusive,
            waiting: place.kinds,
            left: place.left,
        }
    }

    fn drive(&mut self, node: usize) {
        loop {
            self.grant(node);
            let census = self.census(node);
            let mut doings = Doings::default();
            self.branches[node].look(&census, &mut doings);
            if doings == Doings::default() {
                return;
            }
            self.carry(node, doings);
        }
    }

    fn carry(&mut self, node: usize, doings: Doings) {
        for order in doings.steps {
            let place = &mut self.places[node];
            match order {
                DoorStep::Open(left) => (place.open, place.left) = (true, left),
                DoorStep::Shut => (place.open, place.left) = (false, None),
                DoorStep::Wanted => {}
                DoorStep::Admit(kind) => {
                    let is_meant = |visit: &usize| self.visits[*visit].kind == kind as u8;
                    if let Some(first) = place.waiting.iter().position(is_meant) {
                        self.enter(node, first);
                    }
                }
            }
            self.grant(node);
        }
        for Parcel { from, to, packet } in doings.parcels {
            let host = self.branches[node].node_of(to) as usize;
            self.send(node, host, Letter::Parcel(from, to, packet));
        }
        if doings.wish {
            for to in (0..self.places.len()).filter(|to| *to != node) {
                self.send(node, to, Letter::Wish);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::Travels;

    fn plan(using: Using) -> Plan {
        Plan {
            travels: Travels { using, burst: 2 },
            overtakes: 5,
            nodes: 3,
        }
    }

    fn visit(at: u64, node: usize, kind: u8, held: u64) -> Visit {
        Visit {
            at,
            after: 0,
            node,
            kind,
            held,
        }
    }

    /// Two clients at each of two nodes come again 5 after they have left: nobody ever waits for more than three others.
    #[test]
    fn whoever_waits_comes_back_later() {
        let mut visits: Vec<Visit> = (0..4).map(|n| visit(0, n % 2, 1, 100)).collect();
        for round in 1..50 {
            visits.extend((0..2).flat_map(|node| {
                [2 * round - 1, 2 * round].map(|after| Visit {
                    after,
                    ..visit(5, node, 1, 100)
                })
            }));
        }
        for using in Using::ALL {
            let forecast = forecast(&plan(using), &visits, &mut |_, _| 10).expect("three nodes");
            let most = forecast.waited.iter().max();
            assert!(most <= Some(&600), "{using:?}: {most:?}");
            assert!(forecast.waited[8..].iter().all(|us| *us > 0), "{using:?}");
        }
    }

    #[test]
    fn everybody_is_served_by_every_algorithm_and_one_at_a_time() {
        let visits: Vec<Visit> = (0..300)
            .map(|n| visit(n * 40, (n * n % 3) as usize, 1, 30 + n % 17))
            .collect();
        for using in Using::ALL {
            let forecast = forecast(&plan(using), &visits, &mut |_, _| 10).expect("three nodes");
            let mut stays: Vec<(u64, u64)> = Vec::new();
            for (visit, waited) in visits.iter().zip(&forecast.waited) {
                stays.push((visit.at + waited, visit.at + waited + visit.held));
            }
            stays.sort_unstable();
            assert!(
                stays.windows(2).all(|two| two[0].1 <= two[1].0),
                "{using:?}"
            );
            assert!(
                forecast.messages > 0 && forecast.hand_overs > 0,
                "{using:?}"
            );
        }
    }

    #[test]
    fn a_gate_that_one_node_uses_costs_nothing_where_ownership_stays() {
        let visits: Vec<Visit> = (0..50).map(|n| visit(1_000 * n, 2, 1, 100)).collect();
        for using in [
            Using::Log,
            Using::RicartAgrawala,
            Using::Raymond,
            Using::BoxOffice,
        ] {
            let forecast = forecast(&plan(using), &visits, &mut |_, _| 10).expect("three nodes");
            let late = &forecast.waited[1..];
            assert!(late.iter().all(|waited| *waited == 0), "{using:?} {late:?}");
            assert!(forecast.messages <= 4, "{using:?} {}", forecast.messages);
        }
    }

    /// Computed by hand: the server is at the first node, which has the most visits.
    #[test]
    fn what_is_forecast_is_what_the_delays_say() {
        let visits = [
            visit(0, 0, 1, 100),
            visit(10, 1, 1, 100),
            visit(1_000, 0, 1, 5),
        ];
        let by = |using| forecast(&plan(using), &visits, &mut |_, _| 30).expect("three nodes");
        let log = by(Using::Log);
        // It asks at 10, is heard at 40, is let in at 100 and told at 130.
        assert_eq!(log.waited, [0, 120, 0]);
        assert_eq!((log.messages, log.hand_overs), (3, 3));
        assert_eq!(log.overtaken, [0, 0, 0]);
    }

    #[test]
    fn a_visit_is_overtaken_by_later_ones_that_enter_before_it() {
        let visits: Vec<Visit> = (0..200)
            .map(|n| visit(n * 20, (n * n % 3) as usize, 1, 30 + n % 17))
            .collect();
        for using in Using::ALL.into_iter().skip(1) {
            let forecast = forecast(&plan(using), &visits, &mut |_, _| 10).expect("three nodes");
            let entered = |n: usize| visits[n].at + forecast.waited[n];
            let by_hand = |n: usize| (n + 1..200).filter(|m| entered(*m) < entered(n)).count();
            let overtaken: Vec<u32> = (0..200).map(|n| by_hand(n) as u32).collect();
            assert_eq!(forecast.overtaken, overtaken, "{using:?}");
            assert!(overtaken.iter().any(|times| *times > 0), "{using:?}");
        }
    }

    #[test]
    fn readers_are_in_together_by_the_box_office() {
        let visits = [
            visit(0, 0, 2, 1_000),
            visit(10, 1, 2, 1_000),
            visit(20, 2, 2, 1_000),
        ];
        let office = forecast(&plan(Using::BoxOffice), &visits, &mut |_, _| 5);
        let waited = office.expect("three nodes").waited;
        assert!(waited.iter().all(|waited| *waited < 100), "{waited:?}");
        let mutex = forecast(&plan(Using::Raymond), &visits, &mut |_, _| 5);
        let waited = mutex.expect("three nodes").waited;
        assert!(waited[2] > 900, "one node after the other: {waited:?}");
    }
}
