//! What elections cost, and the table in which the slides compare them (coordination and agreement §3).

use std::collections::{BTreeMap, BTreeSet};

use testigo_protocol::election::{self, Ask};
use testigo_protocol::{Effects, Faults, NodeId, RingOrder, Setup, SetupError};
use testigo_sim::Time;

use super::cases::{Case, Kinds, counted, published};
use super::experiment::{CountExperiment, CountRow, Found, Measured, PropertyRow, chart};
use crate::check::{CheckPlan, Checked, Verdict};
use crate::family::{KnownAlgorithm, LabError};
use crate::trace::Event;

const SOURCE: &str = "coordination and agreement §3";

pub(super) const TABLE: CountExperiment = CountExperiment {
    name: "election-table",
    title: "Elections compared: messages, crashes, safety, liveness, knowledge (§3.4)",
    source: SOURCE,
    note: "properties are checked in every schedule of 3 nodes",
    run: table,
};

pub(super) const MESSAGES: CountExperiment = CountExperiment {
    name: "election-messages",
    title: "Messages of an election on a ring and by the bully, at best and at worst",
    source: SOURCE,
    note: "one election each; every kind of message is held against its own formula",
    run: messages,
};

const DRAWN: Measured = Measured {
    title: "Messages of an election",
    subtitle: "one election each",
    along: "nodes",
    counted: "messages",
};

const RING_SIZES: [usize; 9] = [2, 3, 4, 5, 6, 7, 8, 16, 64];
const BULLY_SIZES: [usize; 8] = [3, 4, 5, 6, 7, 8, 16, 64];
/// The example of the source, 1, 15, 9, 4, 3, 17, 24 in travel order, by rank.
const EXAMPLE: [u32; 7] = [0, 4, 3, 2, 1, 5, 6];

fn messages() -> Result<Found, LabError> {
    let mut rows = Vec::new();
    for n in RING_SIZES {
        rows.push(ring_worst(n)?);
    }
    let mut example = Case::new("ring-election", EXAMPLE.len(), &[0]);
    example.setup.ring = RingOrder::Listed(EXAMPLE.to_vec());
    rows.push(published(
        "ring, the example of the source",
        EXAMPLE.len(),
        "13 + 7",
        &[("Election", 13), ("Elected", 7)],
        example.kinds()?,
    ));
    for n in RING_SIZES {
        let case = Case::new("ring-election", n, &[n - 1]);
        rows.push(counted("ring, the highest calls", n, case.kinds()?));
    }
    for n in RING_SIZES {
        let mut case = Case::new("ring-election", n, &(0..n).collect::<Vec<_>>());
        case.setup.ring = RingOrder::Descending;
        rows.push(published(
            "ring, all call, ids descending",
            n,
            "N(N+1)/2 + N",
            &[("Election", n * (n + 1) / 2), ("Elected", n)],
            case.kinds()?,
        ));
    }
    for n in 4..=7 {
        rows.push(mean_over_all_rings(n)?);
    }
    for n in BULLY_SIZES {
        rows.push(bully_worst(n)?);
    }
    rows.push(published(
        "bully, the example of the source: 4 of 0 to 7 notices",
        8,
        "6 + 3 + 6",
        &[("Election", 6), ("Answer", 3), ("Coordinator", 6)],
        Case::new("bully", 8, &[4]).without(7).kinds()?,
    ));
    for n in BULLY_SIZES {
        rows.push(published(
            "bully, at best: the second highest has noticed the crash",
            n,
            "N−2",
            &[("Coordinator", n - 2)],
            bully_that_knows(n)?,
        ));
    }
    for n in BULLY_SIZES {
        let case = Case::new("bully", n, &[n - 2]).without(n - 1);
        let what = "bully, the second highest calls, and asks the one that is down";
        rows.push(counted(what, n, case.kinds()?));
    }
    Ok(Found {
        chart: chart(&DRAWN, &rows),
        rows,
        properties: Vec::new(),
    })
}

/// The caller's neighbour on the wrong side is the highest.
fn ring_worst(n: usize) -> Result<CountRow, LabError> {
    Ok(published(
        "ring, at worst: one caller",
        n,
        "3N−1",
        &[("Election", 2 * n - 1), ("Elected", n)],
        Case::new("ring-election", n, &[0]).kinds()?,
    ))
}

/// The lowest notices that the highest is down.
fn bully_worst(n: usize) -> Result<CountRow, LabError> {
    Ok(published(
        "bully, at worst: the lowest calls",
        n,
        "N²−N−1",
        &[
            ("Election", n * (n - 1) / 2),
            ("Answer", (n - 1) * (n - 2) / 2),
            ("Coordinator", n - 2),
        ],
        Case::new("bully", n, &[0]).without(n - 1).kinds()?,
    ))
}

/// §3.2: all call. A ring may begin with any of its nodes, so that the first stays where it is.
fn mean_over_all_rings(n: usize) -> Result<CountRow, LabError> {
    let (mut rings, mut sum) = (0, 0);
    let mut rest: Vec<u32> = (1..n as u32).collect();
    let mut failed = None;
    permute(&mut rest, 0, &mut |rest| {
        let mut case = Case::new("ring-election", n, &(0..n).collect::<Vec<_>>());
        case.setup.ring = RingOrder::Listed([&[0], rest].concat());
        match case.kinds() {
            Ok(kinds) => sum += kinds.get("Election").copied().unwrap_or(0),
            Err(error) => failed = Some(error),
        }
        rings += 1;
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let harmonic: f64 = (1..=n).map(|k| 1.0 / k as f64).sum();
    let (published, mean) = (n as f64 * harmonic, sum as f64 / f64::from(rings));
    Ok(CountRow {
        what: "ring, all call: mean of Election over all rings".into(),
        size: n,
        formula: Some("N·(1 + 1/2 + … + 1/N)"),
        published: Some(published),
        counted: mean,
        kinds: BTreeMap::new(),
        reached: Some((published - mean).abs() < 1e-9),
    })
}

/// Every order of the items from `fixed` on.
fn permute(items: &mut Vec<u32>, fixed: usize, visit: &mut dyn FnMut(&[u32])) {
    if fixed + 1 >= items.len() {
        return visit(items);
    }
    for at in fixed..items.len() {
        items.swap(fixed, at);
        permute(items, fixed + 1, visit);
        items.swap(fixed, at);
    }
}

/// §3.3: the caller knows who has crashed. Users of a simulation learn of no crash, so the nodes are driven from here.
fn bully_that_knows(n: usize) -> Result<Kinds, LabError> {
    let setup = Setup {
        delay_bound: Time::UNIT,
        ..Setup::new(n)
    };
    let bully = election::ALGORITHMS.iter();
    let bully = bully.copied().find(|one| one.profile.name == "bully");
    let bully = bully.expect("the family of elections has the bully");
    let machine = (bully.machine)(&setup).map_err(|SetupError(why)| LabError::new(why))?;
    let (caller, down) = (NodeId(n as u32 - 2), NodeId(n as u32 - 1));
    let mut cluster = machine.cluster();
    let mut effects = Effects::default();
    cluster.ask(caller, Ask::CallWithout(down), &mut effects);
    let sends = |from: NodeId, effects: &mut Effects<_>| {
        let sends = effects.sends.drain(..);
        sends.map(|(to, slot)| (from, to, slot)).collect::<Vec<_>>()
    };
    let mut under_way = sends(caller, &mut effects);
    while let Some((from, to, slot)) = under_way.pop() {
        if to == down {
            cluster.forget(slot);
            continue;
        }
        cluster.deliver(from, to, slot, &mut effects);
        under_way.extend(sends(to, &mut effects));
    }
    Ok(cluster.traffic().kinds.into_iter().collect())
}

fn table() -> Result<Found, LabError> {
    let mut rows = Vec::new();
    for n in [4, 8, 16] {
        rows.push(ring_worst(n)?);
    }
    for n in [4, 8, 16] {
        rows.push(bully_worst(n)?);
    }
    for n in [4, 8, 16] {
        rows.push(knowledge(
            "ring-election",
            "ring, others that a node sends to",
            n,
            ("the next process", 1),
        )?);
    }
    for n in [4, 8, 16] {
        rows.push(knowledge(
            "bully",
            "bully, others that a node sends to",
            n,
            ("all processes", n - 1),
        )?);
    }
    let once_back = Faults {
        restarts: 1,
        ..Faults::crashes(1)
    };
    let properties = vec![
        quadratic(&rows),
        property(
            "ring-election",
            "crash during an election",
            "no",
            Faults::crashes(1),
        )?,
        property(
            "bully",
            "crash during an election",
            "yes",
            Faults::crashes(1),
        )?,
        property("ring-election", "safety", "yes", Faults::NONE)?,
        property(
            "bully",
            "safety",
            "no (crash and recovery in between)",
            once_back,
        )?,
        property("ring-election", "liveness", "yes", Faults::NONE)?,
        property("bully", "liveness", "yes", Faults::crashes(1))?,
    ];
    Ok(Found {
        chart: chart(&DRAWN, &rows),
        rows,
        properties,
    })
}

/// The table says N² where the exact count is N²−N−1: that is its order, and its bound.
fn quadratic(rows: &[CountRow]) -> PropertyRow {
    let bully = rows
        .iter()
        .filter(|row| row.what.starts_with("bully, at worst"));
    let shares: Vec<f64> = bully
        .map(|row| row.counted / (row.size * row.size) as f64)
        .collect();
    let grows = shares.windows(2).all(|pair| pair[0] < pair[1]);
    let percent: Vec<String> = shares
        .iter()
        .map(|share| format!("{:.0} %", 100.0 * share))
        .collect();
    PropertyRow {
        algorithm: "bully",
        property: "messages at worst",
        published: "N²",
        found: format!(
            "its order: {} of N² with 4, 8 and 16 nodes",
            percent.join(", ")
        ),
        reached: grows && shares.iter().all(|share| *share < 1.0),
    }
}

/// What the checker says where the slides say yes or no: a yes must hold in every schedule, a no must be refuted.
fn property(
    algorithm: &'static str,
    property: &'static str,
    published: &'static str,
    faults: Faults,
) -> Result<PropertyRow, LabError> {
    let known = KnownAlgorithm::find(algorithm)?;
    let setup = Setup {
        delay_bound: Time::UNIT,
        ..Setup::new(3)
    };
    let plan = CheckPlan {
        faults: Some(faults),
        ..CheckPlan::new(1)
    };
    let checked = known.check(&setup, &plan)?;
    let refuted = match property {
        "safety" => checked.safety == Verdict::Refuted,
        _ => checked.refuted(),
    };
    Ok(PropertyRow {
        algorithm,
        property,
        published,
        found: in_words(&checked, faults),
        reached: match published.starts_with("yes") {
            true => !checked.refuted() && checked.complete,
            false => refuted,
        },
    })
}

fn in_words(checked: &Checked, faults: Faults) -> String {
    let faults = match (faults.crashes, faults.restarts) {
        (0, _) => "without a crash",
        (_, 0) => "with a crash at any time",
        _ => "with a crash and a recovery at any time",
    };
    match &checked.counterexample {
        Some(found) => format!("refuted {faults}: {}, in {} steps", found.what, found.steps),
        None => format!("holds {faults}, in all {} states", checked.states),
    }
}

/// To how many others a node sends at most, whoever calls and whether or not the highest is down.
fn knowledge(
    algorithm: &'static str,
    what: &'static str,
    n: usize,
    (formula, published): (&'static str, usize),
) -> Result<CountRow, LabError> {
    let mut known: BTreeMap<NodeId, BTreeSet<NodeId>> = BTreeMap::new();
    let mut hear = |case: &Case| -> Result<(), LabError> {
        let trace = case.run()?.trace;
        for (_, event) in trace.map(|trace| trace.events).unwrap_or_default() {
            if let Event::Send { from, to, .. } = event {
                known.entry(from).or_default().insert(to);
            }
        }
        Ok(())
    };
    for caller in 0..n {
        hear(&Case::new(algorithm, n, &[caller]))?;
        if algorithm == "bully" && caller + 1 < n {
            hear(&Case::new(algorithm, n, &[caller]).without(n - 1))?;
        }
    }
    let least = known.values().map(BTreeSet::len).min().unwrap_or(0);
    let most = known.values().map(BTreeSet::len).max().unwrap_or(0);
    Ok(CountRow {
        what: what.into(),
        size: n,
        formula: Some(formula),
        published: Some(published as f64),
        counted: most as f64,
        kinds: BTreeMap::new(),
        reached: Some((least, most, known.len()) == (published, published, n)),
    })
}
