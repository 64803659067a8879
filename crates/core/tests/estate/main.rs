//! Several estates in virtual time, over an ideal log and links that lose, delay, repeat and reorder, with crashes and cuts:
//! no two clients inside together, no fence repeated or lowered, no shard with two owners under one number, and everything
//! granted again once the faults are over. One seed gives one run.

mod campaigns;
mod cases;
mod clients;
mod hands;
mod lagging;
mod links;
mod losses;
mod monitors;
mod people;
mod plan;
mod random;
mod record;
mod rule;
mod shared;
mod spread;
mod traces;
mod trio;
mod visits;
mod workers;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use testigo_core::estate::Broken;
use visits::BrokenWork;
use world::{Plan, World};

fn run(seed: u64, broken: Option<Broken>) -> Result<world::Tally, String> {
    let mut world = World::new(Plan::of(seed), seed, broken);
    let run = AssertUnwindSafe(|| world.run());
    let ran = catch_unwind(run).unwrap_or_else(|_| Err("an assertion failed".into()));
    ran.map_err(|why| format!("seed {seed}: {why}"))
}

/// The same with elections.
fn run_elections(seed: u64, broken: Option<Broken>) -> Result<world::Tally, String> {
    let mut world = World::new(Plan::of_elections(seed), seed, broken);
    let run = AssertUnwindSafe(|| world.run());
    let ran = catch_unwind(run).unwrap_or_else(|_| Err("an assertion failed".into()));
    ran.map_err(|why| format!("seed {seed}: {why}"))
}

#[test]
fn no_term_has_two_leaders_whatever_fails() {
    let mut sum = world::Tally::default();
    for seed in seeds(60) {
        sum += run_elections(seed, None).unwrap();
    }
    println!("{sum:?}");
    assert!(sum.grants > 1_000 && sum.crashes > 100 && sum.moves > 100 && sum.resumed > 50);
    assert!(sum.changed > 1_000, "values change");
}

#[test]
fn a_rule_of_elections_that_is_left_out_is_noticed() {
    for broken in [
        Broken::OldValue,
        Broken::TermReturned,
        Broken::OpenAtOnce,
        Broken::OpenWithoutOrphans,
        Broken::LateGrant,
        Broken::ReportReleased,
    ] {
        let found = seeds(1_000).find_map(|seed| run_elections(seed, Some(broken)).err());
        assert!(found.is_some(), "{broken:?} went unnoticed");
        println!("{broken:?}: {}", found.unwrap());
    }
}

/// The same with jobs.
fn run_work(
    seed: u64,
    broken: Option<Broken>,
    work: Option<BrokenWork>,
) -> Result<(u64, u64), String> {
    let mut world = World::new(Plan::of_work(seed), seed, broken);
    world.work.broken = work;
    let run = AssertUnwindSafe(|| world.run());
    let ran = catch_unwind(run).unwrap_or_else(|_| Err("an assertion failed".into()));
    ran.map_err(|why| format!("seed {seed}: {why}"))?;
    Ok((world.work.record.takes, world.work.record.settles))
}

/// The same with gates whose ownership travels by algorithms.
fn run_using(seed: u64, broken: Option<Broken>) -> Result<world::Tally, String> {
    let plan = Plan::of_using(seed);
    let using = plan.using.clone();
    let mut world = World::new(plan, seed, broken);
    let run = AssertUnwindSafe(|| world.run());
    let ran = catch_unwind(run).unwrap_or_else(|_| Err("an assertion failed".into()));
    ran.map_err(|why| format!("seed {seed}, {using:?}: {why}"))
}

#[test]
fn nobody_is_inside_with_somebody_else_whichever_algorithm_ownership_travels_by() {
    let (mut sum, mut failed) = (world::Tally::default(), Vec::new());
    for seed in seeds(200) {
        match run_using(seed, None) {
            Ok(tally) => sum += tally,
            Err(why) => failed.push(why),
        }
    }
    println!("{sum:?}");
    assert!(
        failed.is_empty(),
        "{} failed: {:#?}",
        failed.len(),
        &failed[..failed.len().min(5)]
    );
    assert!(sum.grants > 1_000 && sum.crashes > 100 && sum.moves > 100 && sum.resumed > 50);
}

/// From view to view: nodes crash, are cut off and come back, shards change hands, and each instance is replayed.
#[test]
fn what_nodes_record_of_their_gates_is_replayed_in_the_laboratory() {
    let mut sum = traces::Replayed::default();
    let mut seen = std::collections::BTreeSet::new();
    for seed in seeds(100) {
        let plan = Plan::of_using(seed);
        let using = plan.using.clone();
        let mut world = World::new(plan, seed, None);
        world
            .run()
            .unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        let replayed = world.replay(&mut sum);
        replayed.unwrap_or_else(|why| panic!("seed {seed}, {using:?}: {why}"));
        seen.extend(using.iter().map(|using| using.name()));
    }
    println!("{sum:?}");
    assert_eq!(seen.len(), testigo_core::Using::ALL.len() - 1, "{seen:?}");
    assert!(
        sum.whole > 200 && sum.partial > 20 && sum.entries > 1_000 && sum.stays > 1_000,
        "{sum:?}"
    );
}

/// Cases F, U, V and W.
#[test]
fn a_rule_of_instances_that_is_left_out_is_noticed() {
    for broken in [
        Broken::SilentRelease,
        Broken::OpenAtOnce,
        Broken::EarlyGo,
        Broken::OpenWithoutOrphans,
        Broken::EarlyToken,
        Broken::FreshBurst,
    ] {
        let found = seeds(1_000).find_map(|seed| run_using(seed, Some(broken)).err());
        assert!(found.is_some(), "{broken:?} went unnoticed");
        println!("{broken:?}: {}", found.unwrap());
    }
}

#[test]
fn no_job_is_lost_or_in_two_hands_whatever_fails() {
    let (mut takes, mut settles) = (0, 0);
    let mut failed = Vec::new();
    for seed in seeds(100) {
        match run_work(seed, None, None) {
            Ok((taken, settled)) => (takes, settles) = (takes + taken, settles + settled),
            Err(why) => failed.push(why),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    println!("takes {takes} settles {settles}");
    assert!(takes > 1_000 && settles > 500);
}

#[test]
fn a_rule_of_jobs_that_is_left_out_is_noticed() {
    let cases = [
        (None, Some(BrokenWork::LatePass)),
        (None, Some(BrokenWork::GivesUp)),
        (Some(Broken::OpenAtOnce), None),
    ];
    for (broken, work) in cases {
        let found = seeds(1_000).find_map(|seed| run_work(seed, broken, work).err());
        assert!(found.is_some(), "{broken:?} {work:?} went unnoticed");
        println!("{broken:?} {work:?}: {}", found.unwrap());
    }
}

/// So many seeds, or as a longer run says.
fn seeds(default: u64) -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    let first = number("TESTIGO_SEED").unwrap_or(0);
    first..first + number("TESTIGO_ROUNDS").unwrap_or(default)
}

#[test]
fn nobody_is_inside_with_somebody_else_whatever_fails() {
    let mut sum = world::Tally::default();
    for seed in seeds(150) {
        sum += run(seed, None).unwrap();
    }
    println!("{sum:?}");
    assert!(
        sum.grants > 1_000
            && sum.sets > 500
            && sum.crashes > 100
            && sum.moves > 100
            && sum.resumed > 50
    );
}

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in 0..10 {
        assert_eq!(run(seed, None), run(seed, None));
    }
}

#[test]
fn a_rule_that_is_left_out_is_noticed() {
    for broken in [
        Broken::GrantOnItsWay,
        Broken::CutOffHolder,
        Broken::LateGrant,
        Broken::OpenAtOnce,
        Broken::AnswerBeforeReports,
        Broken::OpenWithoutOrphans,
        Broken::ReportReleased,
        Broken::OldAnswer,
        Broken::ReservedUnreported,
    ] {
        let found = seeds(1_000).find_map(|seed| run(seed, Some(broken)).err());
        assert!(found.is_some(), "{broken:?} went unnoticed");
        println!("{broken:?}: {}", found.unwrap());
    }
}
