//! Options that several commands share.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;

use clap::Args;
use testigo_lab::{Arrivals, World};
use testigo_protocol::multicast::{Delivery, Over};
use testigo_protocol::quorum::Construction;
use testigo_protocol::readers::Classes;
use testigo_protocol::rooms::Door;
use testigo_protocol::{RingOrder, Setup, SpanningTree};
use testigo_sim::{
    Fault, Latency, LinkOrder, Memory, Outage, ParseError, Partition, Share, Time, Window,
};

use super::sweep::{Seeds, Sweep};
use crate::exit::Failure;

/// The world that a simulated run happens in.
#[derive(Args, Clone)]
pub(crate) struct WorldOptions {
    /// Entries in all; elections, multicasts or decisions, where the problem is one of these.
    #[arg(long, value_name = "E", default_value = "100")]
    entries: Sweep<u64>,
    /// The same seed gives the same run, byte for byte.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run with each of these seeds, both ends included, and show the mean, its 95 % interval and percentiles.
    #[arg(long, value_name = "FIRST..LAST", conflicts_with = "seed")]
    pub(crate) seeds: Option<Seeds>,
    /// How long a message takes: fixed:D, uniform:A:B or exponential:M (cut at 8·M).
    #[arg(long, value_name = "SPAN", default_value = "fixed:1")]
    latency: Latency,
    /// A link with a latency of its own, such as 0>1=fixed:5.
    #[arg(long, value_name = "A>B=SPAN")]
    link: Vec<SlowLink>,
    /// How long a user stays inside.
    #[arg(long, value_name = "SPAN", default_value = "fixed:1")]
    hold: Latency,
    /// When users ask: closed (again at once: full load), closed:SPAN (after a pause), poisson:MEAN_TIME_APART
    /// or script:NODE@T,NODE@T.
    #[arg(long, value_name = "ARRIVALS", default_value = "closed")]
    arrivals: Arrivals,
    /// The probability that a message is lost.
    #[arg(long, value_name = "P")]
    loss: Option<Sweep<Share>>,
    /// Messages of one link may overtake each other, where the algorithm allows it.
    #[arg(long)]
    reorder: bool,
    /// A node crashes, and comes back with what it keeps on stable storage: 1@5 or 1@5:UP@9.
    #[arg(long, value_name = "NODE@T[:UP@T]")]
    crash: Vec<Crash>,
    /// Groups of nodes that cannot hear each other: 0,1|2@5..20.
    #[arg(long, value_name = "GROUPS@T..U")]
    partition: Vec<Partition>,
    /// Another fault: halt:N@T, pause:N@T..U, crash:N@T..U, amnesia:N@T..U, omit-send:N:P, omit-receive:N:P,
    /// omit-channel:A>B:P, duplicate:P, late:P:D, wrong:N:P or arbitrary:N:P.
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    /// Stop after so many events; such a run counts as not live.
    #[arg(long, value_name = "M", default_value_t = World::EVENTS_MAX_DEFAULT,
          value_parser = clap::value_parser!(u64).range(1..))]
    max_events: u64,
}

impl WorldOptions {
    /// The seeds to run with.
    pub(crate) fn seeds(&self) -> RangeInclusive<u64> {
        match &self.seeds {
            Some(Seeds(seeds)) => seeds.clone(),
            None => self.seed..=self.seed,
        }
    }

    /// The world without what can be swept.
    fn world(&self) -> World {
        let crashes = self
            .crash
            .iter()
            .map(|Crash(outage)| Fault::Outage(outage.clone()));
        World {
            seed: self.seed,
            latency: self.latency,
            slow: self
                .link
                .iter()
                .map(|SlowLink(from, to, latency)| (*from, *to, *latency))
                .collect(),
            order: if self.reorder {
                LinkOrder::Any
            } else {
                LinkOrder::Fifo
            },
            faults: crashes.chain(self.fault.iter().cloned()).collect(),
            partitions: self.partition.clone(),
            arrivals: self.arrivals.clone(),
            hold: self.hold,
            events_max: self.max_events,
            ..World::default()
        }
    }
}

/// How an algorithm is set up, besides its number of nodes.
#[derive(Args, Clone)]
pub(crate) struct SetupOptions {
    /// How quorums are built: plane, folded-plane, grid, triangle, agrawal-jalote, majority, weighted, tree or
    /// cohorts. By default a plane where there is one, else a grid.
    #[arg(long, value_name = "CONSTRUCTION")]
    quorum: Option<Construction>,
    /// The tree that raymond sends along: binary, line or star, all rooted at node 0.
    #[arg(long, value_name = "TREE", default_value_t = SpanningTree::Binary)]
    tree: SpanningTree,
    /// The order of the nodes on the ring of ring-election, as messages travel: ascending, descending or every node
    /// once, such as 0,2,1.
    #[arg(long, value_name = "ORDER", default_value_t = RingOrder::Ascending)]
    ring: RingOrder,
    /// The users of each node of box-office: cancel, reservation, query, client (queries, reserves, cancels what
    /// it reserved) or any, with commas between users and / between nodes. By default client,client; without a
    /// value, one of each class.
    #[arg(long, value_name = "LIST", num_args = 0..=1, default_missing_value = "cancel,reservation,query")]
    classes: Option<Classes>,
    /// The share of requests that are queries, where a user of box-office draws lots (0.5).
    #[arg(long, value_name = "SHARE")]
    readers: Option<Sweep<testigo_protocol::Share>>,
    /// How many reservations may go before a query that is known to wait (5).
    #[arg(long, value_name = "MAX")]
    overtakes: Option<Sweep<u32>>,
    /// How many writers a node of box-office lets in while other nodes want their turn (4).
    #[arg(long, value_name = "MAX")]
    burst: Option<Sweep<u32>>,
    /// How many groups the rooms of rooms-maekawa (7) and rooms-over (3) have: nodes behind the users. Of threads,
    /// how many rooms there are (2). Of multicasts, how many groups there are (1); of several, each leaves out one node.
    #[arg(long, value_name = "M")]
    groups: Option<Sweep<usize>>,
    /// How many may be inside together, of fife (2).
    #[arg(long, value_name = "K")]
    permits: Option<Sweep<u32>>,
    /// How many users propose, of algorithms that agree on something (all); the others listen.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    proposers: Option<u32>,
    /// How many faulty nodes om, sm, pbft and cheap-paxos are made for: m of OM(m), f of the others. By default as many as
    /// the nodes stand.
    #[arg(long, value_name = "COUNT")]
    faulty: Option<usize>,
    /// Who is let into a room that is in use: leader (while the one it was opened for is inside) or
    /// open-while-uncontended.
    #[arg(long, value_name = "POLICY", default_value_t = Door::Leader)]
    door: Door,
    /// What an ordered multicast stands on: basic, reliable or nack.
    #[arg(long, value_name = "LAYER", default_value_t = Over::Basic)]
    over: Over,
    /// When nack-multicast delivers a message after a gap: immediate, or hold until the gap is closed.
    #[arg(long, value_name = "MODE", default_value_t = Delivery::Immediate)]
    delivery: Delivery,
}

impl SetupOptions {
    /// The setup without what can be swept.
    fn setup(&self, users: usize, delay_bound: Time) -> Setup {
        Setup {
            quorum: self.quorum,
            tree: self.tree,
            ring: self.ring.clone(),
            delay_bound: delay_bound.0,
            classes: self.classes.clone().unwrap_or_default(),
            door: self.door,
            over: self.over,
            delivery: self.delivery,
            proposers: self.proposers.map(|count| count as usize),
            faulty: self.faulty,
            ..Setup::new(users)
        }
    }

    /// The one setup that is meant, for a command that does not sweep.
    pub(crate) fn only(&self, users: usize, delay_bound: Time) -> Result<Setup, Failure> {
        let points = vec![Point {
            setup: self.setup(users, delay_bound),
            world: World::default(),
            swept: Vec::new(),
        }];
        let mut points = self.swept(points);
        match (points.len(), points.pop()) {
            (1, Some(point)) => Ok(point.setup),
            (count, _) => Err(Failure::from(format!(
                "the options have {count} combinations of values: this takes one"
            ))),
        }
    }

    fn swept(&self, points: Vec<Point>) -> Vec<Point> {
        let points = cross(points, "readers", self.readers.as_ref(), |at, readers| {
            at.setup.readers = readers;
        });
        let points = cross(points, "overtakes", self.overtakes.as_ref(), |at, most| {
            at.setup.overtakes = Some(most);
        });
        let points = cross(points, "burst", self.burst.as_ref(), |at, burst| {
            at.setup.burst = Some(burst);
        });
        let points = cross(points, "permits", self.permits.as_ref(), |at, permits| {
            at.setup.permits = Some(permits);
        });
        cross(points, "groups", self.groups.as_ref(), |at, groups| {
            at.setup.groups = Some(groups);
        })
    }
}

/// One combination of the values of all options.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) setup: Setup,
    pub(crate) world: World,
    /// The values of options that have several, but for the nodes.
    pub(crate) swept: Vec<(&'static str, String)>,
}

/// More combinations are a slip of a finger.
const POINTS_MAX: usize = 10_000;

/// Every combination of the values of the options.
pub(crate) fn points(
    nodes: &Sweep<usize>,
    world: &WorldOptions,
    setup: &SetupOptions,
) -> Result<Vec<Point>, Failure> {
    let base = world.world();
    let bound = base.delay_bound();
    let at = |&users: &usize| Point {
        setup: setup.setup(users, bound),
        world: base.clone(),
        swept: Vec::new(),
    };
    let points: Vec<Point> = nodes.values().iter().map(at).collect();
    let points = cross(points, "entries", Some(&world.entries), |at, entries| {
        at.world.entries = match &at.world.arrivals {
            Arrivals::Script(items) => entries.min(items.len() as u64),
            _ => entries,
        };
    });
    let points = cross(points, "loss", world.loss.as_ref(), |at, loss| {
        at.world.loss = loss;
    });
    let points = setup.swept(points);
    match points.len() {
        0..=POINTS_MAX => Ok(points),
        count => Err(Failure::from(format!(
            "the options have {count} combinations of values: at most {POINTS_MAX}"
        ))),
    }
}

/// Every point with every value of one more option.
fn cross<T: Clone + Display>(
    points: Vec<Point>,
    option: &'static str,
    sweep: Option<&Sweep<T>>,
    set: impl Fn(&mut Point, T),
) -> Vec<Point> {
    let Some(sweep) = sweep else {
        return points;
    };
    let several = sweep.values().len() > 1;
    let mut crossed = Vec::new();
    for point in points.iter().take(POINTS_MAX + 1) {
        for value in sweep.values() {
            let mut point = point.clone();
            set(&mut point, value.clone());
            point
                .swept
                .extend(several.then(|| (option, value.to_string())));
            crossed.push(point);
        }
    }
    crossed
}

#[derive(Clone)]
struct SlowLink(u32, u32, Latency);

impl FromStr for SlowLink {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<SlowLink, ParseError> {
        let bad = || ParseError::new(text, "a link and its latency, such as 0>1=fixed:5");
        let (link, latency) = text.split_once('=').ok_or_else(bad)?;
        let (from, to) = link.split_once('>').ok_or_else(bad)?;
        let node = |text: &str| text.parse::<u32>().map_err(|_| bad());
        Ok(SlowLink(node(from)?, node(to)?, latency.parse()?))
    }
}

#[derive(Clone)]
struct Crash(Outage);

impl FromStr for Crash {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Crash, ParseError> {
        let bad = || ParseError::new(text, "a crash such as 1@5, or 1@5:UP@9 to come back");
        let (down, up) = match text.split_once(':') {
            Some((down, up)) => (down, Some(up)),
            None => (text, None),
        };
        let (node, from) = down.split_once('@').ok_or_else(bad)?;
        let node: u32 = node.parse().map_err(|_| bad())?;
        let from: Time = from.parse()?;
        let until: Option<Time> = match up {
            None => None,
            Some(up) => {
                let (word, at) = up.split_once('@').ok_or_else(bad)?;
                let names_it = word.eq_ignore_ascii_case("up") || word.parse() == Ok(node);
                Some(at.parse()?)
                    .filter(|until| names_it && *until > from)
                    .ok_or_else(bad)
                    .map(Some)?
            }
        };
        Ok(Crash(Outage {
            node,
            window: Window { from, until },
            memory: Memory::Stable,
        }))
    }
}

/// Writes a file that the user asked for.
pub(crate) fn write(path: &Path, content: &str) -> Result<(), Failure> {
    std::fs::write(path, content)
        .map_err(|error| Failure::from(format!("{} cannot be written: {error}", path.display())))
}

/// Prints a value as JSON.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}
