//! Pools on Corosync: three real daemons in network namespaces with a node beside each. Links are cut and healed, daemons and
//! nodes are stopped and killed while clients take and give slots everywhere. No slot is in use twice, fences rise, and
//! after healing each slot has one owner.
//!
//! `cargo xtask chaos pools` runs it for longer. It needs root, iproute2, nftables and corosync, and a build with the feature
//! `corosync`.

mod bed;
mod clients;
#[path = "../cluster/net.rs"]
#[allow(dead_code, reason = "not all of it is needed here")]
mod net;
#[path = "../up/mod.rs"]
mod up;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bed::{Bed, all, connect, pause};
use clients::{Chance, POOL, Referee};
use net::Party;
use rustix::process::Signal;
use up::{Value, ok};

const SLOTS: u32 = 30;
/// How long it may take after healing until each slot has one owner, in a long run.
const WHOLE_WITHIN: Duration = Duration::from_secs(5);
/// The same in a short one, on a machine that does other things.
const PATIENCE: Duration = Duration::from_secs(60);
const ROUNDS_DEFAULT: u64 = 4;
/// In so many rounds some slots are donated while links are cut, whatever the faults are.
const ROUNDS_ENOUGH: u64 = 20;
/// A cut is noticed when the token was lost for a second and the others have agreed on that.
const NOTICED_WITHIN: Duration = Duration::from_secs(6);

/// A bed with a pool, or nothing where there can be none.
fn begun() -> Option<Bed> {
    let mut bed = match Bed::build() {
        Ok(bed) => bed,
        Err(why) => {
            assert!(
                std::env::var_os("TESTIGO_ROUNDS").is_none(),
                "a long run needs more: {why}"
            );
            println!("SKIPPED: Corosync cannot be tried here: {why}");
            return None;
        }
    };
    bed.start_all();
    let slots = SLOTS.to_string();
    within(PATIENCE, &bed, || {
        let created = connect(1)
            .ok_or("no node")?
            .call(&["POOL", "CREATE", POOL, "SLOTS", &slots]);
        match created == ok() {
            true => Ok(()),
            false => Err(created.to_string()),
        }
    });
    Some(bed)
}

/// Waits until it is so; how long that took.
fn within<E: std::fmt::Display>(
    most: Duration,
    bed: &Bed,
    mut is: impl FnMut() -> Result<(), E>,
) -> Duration {
    let begun = Instant::now();
    loop {
        match is() {
            Ok(()) => return begun.elapsed(),
            Err(why) => assert!(
                begun.elapsed() < most,
                "after {most:?}: {why}\n{}",
                bed.logs()
            ),
        }
        pause(20);
    }
}

fn show(node: Party) -> Result<Value, String> {
    let mut client = connect(node).ok_or_else(|| format!("node {node} does not answer"))?;
    match client.try_call(&["POOL", "SHOW", POOL]) {
        Ok(Value::Error(error)) => Err(error),
        Ok(shown) => Ok(shown),
        Err(error) => Err(error.to_string()),
    }
}

fn status(node: Party) -> Result<String, String> {
    let shown = show(node)?;
    match shown.at("status") {
        Value::Text(status) => Ok(status.clone()),
        other => Err(other.to_string()),
    }
}

/// Everybody is there, all say the same of every slot's owner, and each owner agrees.
fn whole() -> Result<(), String> {
    let mut owned = 0;
    let mut owners = Vec::new();
    for node in all() {
        let shown = show(node)?;
        let status = status(node)?;
        if status != "all members are there" {
            return Err(format!("node {node}: {status}"));
        }
        owned += shown.at("nodes").list()[0].at("owned").int();
        owners.push(shown.at("owners").clone());
    }
    if owners.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!(
            "{} is not {} or {}",
            owners[0], owners[1], owners[2]
        ));
    }
    let frozen = |run: &&Value| run.list()[2] == Value::Nil;
    if let Some(run) = owners[0].list().iter().find(frozen) {
        return Err(format!("{run} has no owner"));
    }
    match owned == i64::from(SLOTS) {
        true => Ok(()),
        false => Err(format!("{owned} slots are owned")),
    }
}

#[test]
fn both_sides_of_a_cut_take_and_donate_and_merge() {
    let Some(bed) = begun() else { return };
    within(PATIENCE, &bed, whole);
    for node in all() {
        assert_eq!(show(node).unwrap().at("free").int(), 10, "equal parts");
    }
    bed.cut(&[3]);
    for (node, gone) in [(1, "3"), (2, "3"), (3, "1, 2")] {
        let wanted = format!("out of reach: {gone}");
        within(PATIENCE, &bed, || match status(node)? == wanted {
            true => Ok(()),
            false => Err(format!("node {node} has not noticed the cut")),
        });
    }
    let mut there = connect(3).expect("clients reach it");
    let taken = there.call(&["POOL", "TAKE", POOL, "COUNT", "10"]);
    assert_eq!(taken.list().len(), 20, "it goes on with its part");
    assert_eq!(there.call(&["POOL", "TAKE", POOL]), Value::Nil);
    let refused = there.call(&["POOL", "CREATE", "others", "SLOTS", "3"]);
    let refused = refused.error();
    assert!(refused.contains("nodes 1, 2 are out of reach"), "{refused}");
    let mut here = connect(1).expect("clients reach it");
    let taken = here.call(&["POOL", "TAKE", POOL, "COUNT", "15", "WAIT", "30000"]);
    assert_eq!(taken.list().len(), 30, "the other one of its side donates");
    bed.cut(&[]);
    let took = within(PATIENCE, &bed, whole);
    println!("whole {took:?} after healing");
    // What was taken on either side is still taken.
    let used = |node| show(node).unwrap().at("used").int();
    assert_eq!(all().map(used).sum::<i64>(), 25);
    let mut third = connect(2).expect("clients reach it");
    assert_eq!(
        third.call(&["POOL", "TAKE", POOL, "COUNT", "6", "WAIT", "50"]),
        Value::Nil
    );
    assert_eq!(
        third
            .call(&["POOL", "TAKE", POOL, "COUNT", "5"])
            .list()
            .len(),
        10
    );
}

#[test]
fn a_label_is_donated_for_in_every_part() {
    let Some(bed) = begun() else { return };
    within(PATIENCE, &bed, whole);
    let mut clients: Vec<_> = all().filter_map(connect).collect();
    let create = "POOL CREATE machines NAMES 6 m1:big m2:big m3 m4 m5 m6";
    let create: Vec<&str> = create.split(' ').collect();
    assert_eq!(clients[0].call(&create), ok());
    let mut take = |node: usize, more: &str| {
        let words = ["POOL", "TAKE", "machines"].into_iter();
        let words: Vec<&str> = words.chain(more.split_whitespace()).collect();
        match clients[node - 1].call(&words) {
            Value::Nil => None,
            taken => match &taken.list()[0] {
                Value::Text(slot) => Some(slot.clone()),
                other => panic!("{other}"),
            },
        }
    };
    // Both are the first node's, and whoever has none asks for one.
    let far = take(3, "WHERE big WAIT 30000").expect("it is donated");
    assert!(["m1", "m2"].contains(&&*far), "{far}");
    bed.cut(&[3]);
    within(PATIENCE, &bed, || {
        let here = status(1)? == "out of reach: 3";
        let there = status(3)? == "out of reach: 1, 2";
        (here && there)
            .then_some(())
            .ok_or_else(|| "the cut is not noticed".to_owned())
    });
    assert_eq!(
        take(3, "WHERE big WAIT 50"),
        None,
        "the other one is not in its part"
    );
    let near = take(2, "WHERE big WAIT 30000").expect("it is in this part");
    assert!(["m1", "m2"].contains(&&*near) && near != far);
    assert!(take(3, "").is_some(), "others are there");
    bed.cut(&[]);
    within(PATIENCE, &bed, || match status(3)?.as_str() {
        "all members are there" => Ok(()),
        other => Err(other.to_owned()),
    });
    assert_eq!(take(1, "WHERE big WAIT 50"), None, "both are in use");
}

#[test]
fn no_slot_is_in_use_twice_and_none_is_lost_whatever_fails() {
    let number = |name: &str| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a number"))
    };
    let (rounds, seed) = (
        number("TESTIGO_ROUNDS"),
        number("TESTIGO_SEED").unwrap_or(1),
    );
    let most = rounds.map_or(PATIENCE, |_| WHOLE_WITHIN);
    let Some(mut bed) = begun() else { return };
    let referee = Referee::default();
    let mut chance = Chance(seed);
    let (mut healed, mut donated) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        for player in 0..6 {
            let (referee, chance) = (&referee, Chance(chance.below(u64::MAX)));
            scope.spawn(move || referee.play(1 + player % bed::NODES, chance));
        }
        // Whatever fails, the players must be told.
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 1..=rounds.unwrap_or(ROUNDS_DEFAULT) {
                let (took, in_parts) = play_round(round, &mut bed, &referee, &mut chance, most);
                healed.push(took);
                donated += in_parts;
            }
        }));
        referee.ends.store(true, Ordering::SeqCst);
        if let Err(panic) = played {
            println!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    });
    healed.sort_unstable();
    let (median, worst) = (healed[healed.len() / 2], healed[healed.len() - 1]);
    let takes = referee.takes();
    println!(
        "seed {seed}: {} rounds, {takes} takes, {donated} slots donated inside parts; whole {median:?} after healing (median), \
         at worst {worst:?}",
        healed.len()
    );
    assert!(takes > 0);
    if let Some(rounds) = rounds {
        assert!(worst < WHOLE_WITHIN, "whole only {worst:?} after healing");
        assert!(
            donated > 0 || rounds < ROUNDS_ENOUGH,
            "no part went on donating"
        );
    }
}

fn play_round(
    round: u64,
    bed: &mut Bed,
    referee: &Referee,
    chance: &mut Chance,
    most: Duration,
) -> (Duration, i64) {
    let mut said = Vec::new();
    let mut before = BTreeMap::new();
    for _ in 0..=chance.below(2) {
        said.push(strike(bed, chance));
        // Most faults last until somebody has noticed, and both sides have gone on for a while.
        if chance.below(4) > 0 && noticed() {
            said.push("noticed".into());
            for (node, given) in given_in_parts() {
                before.entry(node).or_insert(given);
            }
        }
        pause(chance.below(1_500));
    }
    let given = given_in_parts().into_iter();
    let donated = given.filter_map(|(node, given)| Some(given - before.get(&node)?));
    let donated: i64 = donated.sum();
    let healing = Instant::now();
    bed.cut(&[]);
    bed.start_all();
    let up = Instant::now();
    referee.pauses.store(true, Ordering::SeqCst);
    while referee.busy.load(Ordering::SeqCst) > 0 {
        pause(1);
    }
    within(most, bed, whole);
    let took = up.elapsed();
    println!(
        "round {round}: {}; {donated} slots donated in parts; all up in {:?}, whole {took:?} later",
        said.join(", "),
        up - healing
    );
    assert_eq!(referee.failure(), None, "{}", bed.logs());
    assert_eq!(bed.fallen(), None, "{}", bed.logs());
    referee.pauses.store(false, Ordering::SeqCst);
    pause(chance.below(300));
    (took, donated)
}

/// How many slots the nodes that miss another one have donated so far. A donation that one of them counts from now on was made
/// inside its part: letters of an earlier view move nothing.
fn given_in_parts() -> BTreeMap<Party, i64> {
    let given = |node| {
        let shown = show(node).ok()?;
        let misses =
            matches!(shown.at("status"), Value::Text(status) if status.starts_with("out of reach"));
        misses.then(|| (node, shown.at("nodes").list()[0].at("given").int()))
    };
    all().filter_map(given).collect()
}

/// Waits until a node misses another one; false if none does.
fn noticed() -> bool {
    let begun = Instant::now();
    while begun.elapsed() < NOTICED_WITHIN {
        let misses = |node| status(node).is_ok_and(|status| status.starts_with("out of reach"));
        if all().any(misses) {
            return true;
        }
        pause(20);
    }
    false
}

/// Breaks something; what.
fn strike(bed: &mut Bed, chance: &mut Chance) -> String {
    let node = 1 + chance.below(bed::NODES.into()) as Party;
    match chance.below(7) {
        0 | 1 => {
            bed.cut(&[node]);
            format!("cut {node} off")
        }
        2 => {
            bed.cut(&[1, 2, 3]);
            "cut all apart".into()
        }
        3 => {
            bed.end_node(node, Signal::KILL);
            format!("killed node {node}")
        }
        4 => {
            bed.end_node(node, Signal::TERM);
            format!("stopped node {node}")
        }
        5 => {
            bed.end_daemon(node, Signal::KILL);
            format!("killed the daemon of {node}")
        }
        _ => {
            bed.end_daemon(node, Signal::TERM);
            format!("stopped the daemon of {node}")
        }
    }
}
