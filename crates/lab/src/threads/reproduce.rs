//! What is published of accesses to shared memory, held against what is counted.

use std::collections::BTreeMap;

use testigo_memory::rooms::{Alone, Contention, OneActor, TwoActorsPrinted};
use testigo_memory::{CountedMemory, Local, Plan, Program, Region, algorithms};
use testigo_protocol::Setup;

use super::family::passages;
use super::passage::Passage;
use super::stage::first_locals;
use crate::count::{CountExperiment, CountRow, Found, Measured, chart};
use crate::family::LabError;
use crate::world::World;

const NOTE: &str = "each turn of a wait counted once";

/// All of them.
pub const ACCESS_EXPERIMENTS: &[CountExperiment] = &[
    CountExperiment {
        name: "threads-accesses",
        title: "Accesses to shared memory: lone entries, tables 5.1 and 5.7, equation 5.3",
        source: "Cenci, thesis",
        note: NOTE,
        run: published,
    },
    CountExperiment {
        name: "threads-contention",
        title: "Accesses against point and interval contention",
        source: "of our own",
        note: NOTE,
        run: contention,
    },
];

fn row(
    what: impl Into<String>,
    size: usize,
    formula: &'static str,
    is: usize,
    counted: usize,
) -> CountRow {
    CountRow {
        what: what.into(),
        size,
        formula: Some(formula),
        published: Some(is as f64),
        counted: counted as f64,
        kinds: BTreeMap::new(),
        reached: Some(is == counted),
    }
}

/// The rows and their picture.
fn found(title: &'static str, along: &'static str, rows: Vec<CountRow>) -> Found {
    let measured = Measured {
        title,
        subtitle: "every turn of a wait counted once",
        along,
        counted: "accesses of an entry and its exit",
    };
    Found {
        chart: chart(&measured, &rows),
        rows,
        properties: Vec::new(),
    }
}

const SIZES: [usize; 6] = [2, 4, 8, 16, 32, 64];

fn published() -> Result<Found, LabError> {
    let mut rows = Vec::new();
    for algorithm in algorithms().filter(|one| one.profile.specimen.is_none()) {
        let Some(lone) = algorithm.profile.lone.filter(|lone| !lone.is_derived) else {
            continue;
        };
        for size in SIZES {
            let Ok(program) = (algorithm.program)(&Plan::new(size)) else {
                continue;
            };
            // The first has the turn already, where there is one; the last has not.
            let [least, most] = (lone.range)(&Plan::new(size));
            let all = |process: usize| {
                let (enter, leave) = accesses(&*program, None, process, false);
                enter + leave
            };
            let name = algorithm.profile.name;
            rows.push(row(
                format!("{name}, alone"),
                size,
                lone.formula,
                least,
                all(0),
            ));
            if least != most {
                let what = format!("{name}, alone, not its turn");
                rows.push(row(what, size, lone.formula, most, all(size - 1)));
            }
        }
    }
    for size in SIZES {
        let program = OneActor::printed(size, 1);
        let (enter, leave) = accesses(&program, None, size - 1, true);
        let levels = size.trailing_zeros() as usize;
        let formula = "3 + log N + (N−1)";
        let what = "One-Actor as printed, alone, to enter (5.1)";
        rows.push(row(what, size, formula, 3 + levels + size - 1, enter));
        rows.push(row(
            "One-Actor as printed, alone, to leave (5.1)",
            size,
            "3",
            3,
            leave,
        ));
    }
    let (enter, leave) = accesses(&OneActor::printed(8, 1), Some(0), 1, true);
    rows.push(row(
        "One-Actor as printed, a companion first, to enter (5.1)",
        8,
        "8",
        8,
        enter,
    ));
    rows.push(row(
        "One-Actor as printed, a companion first, to leave (5.1)",
        8,
        "1",
        1,
        leave,
    ));
    let (enter, leave) = accesses(&TwoActorsPrinted::new(8, 4), Some(0), 1, true);
    rows.push(row(
        "two actors as printed, a companion first, to enter (5.7)",
        8,
        "4",
        4,
        enter,
    ));
    rows.push(row(
        "two actors as printed, a companion first, to leave (5.7)",
        8,
        "1",
        1,
        leave,
    ));
    for size in SIZES {
        let worst = Alone::new(size, Contention::LocalPrinted).remote_accesses_at_worst();
        let levels = size.trailing_zeros() as usize;
        let what = "a group with local spin as printed, at worst (eq. 5.3)";
        rows.push(row(
            what,
            size,
            "6 + 8(log M − 1)",
            6 + 8 * (levels - 1),
            worst,
        ));
    }
    let title = "Accesses as published and as counted";
    Ok(found(title, "processes or groups", rows))
}

/// The accesses of an entry and of its exit, with another process inside or with nobody; `remote` leaves out
/// those to one's own memory. The actors behind the processes step in turn, as long as anybody waits.
fn accesses(
    program: &dyn Program,
    first: Option<usize>,
    me: usize,
    remote: bool,
) -> (usize, usize) {
    let registers = program.registers();
    let mut memory = CountedMemory::new(&registers);
    let mut servers = first_locals(program).split_off(program.processes());
    let mut run = |process: usize, mut local: Local| {
        let mut count = 0;
        while !local.is_idle() {
            memory.accesses.clear();
            program.step(process, &mut local, &mut memory);
            let far = |register: usize| !remote || registers[register].home != Some(process);
            let made = memory.accesses.iter();
            count += made.filter(|access| far(access.register())).count();
            if local.region == Region::Trying {
                for (server, behind) in servers.iter_mut().enumerate() {
                    program.step(program.processes() + server, behind, &mut memory);
                }
            }
        }
        (count, local)
    };
    if let Some(first) = first {
        run(first, Local::asking(0));
    }
    let (enter, mut local) = run(me, Local::asking(0));
    local.leave();
    (enter, run(me, local).0)
}

/// The mean accesses of passages by contention, those of a room's group during a passage included.
fn contention() -> Result<Found, LabError> {
    let setup = Setup {
        groups: Some(8),
        ..Setup::new(16)
    };
    let mut rows = Vec::new();
    for name in [
        "bakery",
        "adaptive-bakery",
        "lamport-fast",
        "tournament",
        "tsm",
        "adaptive-gme",
        "adaptive-gme-local",
    ] {
        let mut all: Vec<Passage> = Vec::new();
        for apart in ["2000", "500", "200", "100", "50"] {
            let world = World {
                entries: 400,
                latency: "exponential:1"
                    .parse()
                    .map_err(|_| LabError::new("a latency"))?,
                arrivals: format!("poisson:{apart}")
                    .parse()
                    .map_err(|_| LabError::new("arrivals"))?,
                ..World::default()
            };
            all.extend(passages(name, &setup, &world)?);
        }
        for (kind, of) in [
            (
                "point",
                (|passage: &Passage| passage.point) as fn(&Passage) -> u32,
            ),
            ("interval", |passage| passage.interval),
        ] {
            let mut by: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
            for passage in &all {
                let (sum, count) = by.entry(of(passage)).or_default();
                let accesses = passage.once + passage.behind_once;
                (*sum, *count) = (*sum + accesses, *count + 1);
            }
            rows.extend(by.into_iter().map(|(size, (sum, count))| CountRow {
                what: format!("{name}, {kind} contention"),
                size: size as usize,
                formula: None,
                published: None,
                counted: sum as f64 / count as f64,
                kinds: BTreeMap::new(),
                reached: None,
            }));
        }
    }
    let title = "Accesses by contention, 16 processes, 8 rooms where there are any";
    Ok(found(title, "processes active", rows))
}
