//! How long a killed node is missed. While clients of the two others go on, one node is killed: the leader, or another.
//! Gates that the others own must be granted as if nothing had happened; definitions, jobs and sessions must work again
//! soon; and what the killed node owned must be granted again once its lease is over.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::trio::{PATIENCE, Trio};
use crate::report::{Bar, Report, Unit};
use crate::wire::{Asker, Unanswered};

/// Kills of each kind.
const KILLS: usize = 3;
/// After so many uses a gate is where it is used.
const USES: usize = 64;
const NODE_LEASE_S: f64 = 3.0;
const RETRY: Duration = Duration::from_millis(5);

/// The worst of some kills, in seconds.
#[derive(Default)]
struct Missed {
    /// Refusals at gates that others own, and the longest that one of them took.
    refusals: u64,
    longest_pair: f64,
    definitions: f64,
    jobs: f64,
    sessions: f64,
    lost_gates: f64,
}

pub(super) fn measure(binary: &Path, report: &mut Report) -> Result<(), String> {
    let mut trio = Trio::start(binary)?;
    for (who, leader, more) in [("leader", true, 2.0), ("another node", false, 0.0)] {
        let mut worst = Missed::default();
        for nth in 0..KILLS {
            eprint!("\rkilling the {who}, {} of {KILLS}", nth + 1);
            kill(&mut trio, leader, nth, &mut worst)?;
        }
        eprintln!();
        let mut row = |what: &str, bar: Bar, measured: f64, detail: &str| {
            report.row(&format!("{who} killed: {what}"), bar, measured, detail);
        };
        let pair = format!("longest pair {:.1} ms", worst.longest_pair * 1e3);
        row(
            "refusals at gates owned elsewhere",
            Bar::AtMost(0.0, Unit::Count),
            worst.refusals as f64,
            &pair,
        );
        for (what, measured) in [
            ("definitions again after", worst.definitions),
            ("jobs again after", worst.jobs),
            ("sessions again after", worst.sessions),
        ] {
            row(what, Bar::AtMost(2.0, Unit::Seconds), measured, "");
        }
        let bar = Bar::AtMost(NODE_LEASE_S + 1.0 + more, Unit::Seconds);
        row("its gates again after", bar, worst.lost_gates, "");
    }
    Ok(())
}

fn kill(trio: &mut Trio, leader: bool, nth: usize, worst: &mut Missed) -> Result<(), String> {
    let led = trio.leader()?;
    let victim = if leader { led } else { (led + 1) % 3 };
    let others: Vec<SocketAddr> = (0..3)
        .filter(|at| *at != victim)
        .map(|at| trio.address(at))
        .collect::<Result<_, _>>()?;
    let tag = format!("{leader}-{nth}");
    let lost = format!("lost-{tag}");
    settle_at(trio.address(victim)?, &lost, victim)?;
    let kept: Vec<String> = (0..2).map(|at| format!("kept-{tag}-{at}")).collect();
    for (gate, at) in kept.iter().zip((0..3).filter(|at| *at != victim)) {
        settle_at(trio.address(at)?, gate, at)?;
    }
    // A name that a survivor is responsible for; creating it again is as good as the first time.
    let defined = format!("d-{tag}");
    let survivor = (0..3).find(|at| *at != victim).unwrap_or(0);
    settle_at(trio.address(survivor)?, &defined, survivor)?;
    let queue = queue_elsewhere(others[0], &tag, victim)?;
    let over = AtomicBool::new(false);
    let over = &over;
    thread::scope(|scope| {
        let pairs: Vec<_> = others
            .iter()
            .zip(&kept)
            .map(|(node, gate)| scope.spawn(move || go_on(*node, gate, over)))
            .collect();
        let missed = trio.without(victim, |_| {
            let killed = Instant::now();
            let after = |at: usize, words: String| {
                let node = others[at];
                scope.spawn(move || first_answer(node, killed, &words))
            };
            let definitions = after(0, format!("GATE CREATE {defined} MUTEX"));
            let jobs = after(1, format!("JOB CREATE {queue} * x"));
            // A session that is over before the next node is killed.
            let sessions = after(0, "SESSION OPEN TTL 100".to_owned());
            let gates = after(1, format!("LOCK {lost}"));
            let join = |thread: thread::ScopedJoinHandle<'_, Result<f64, String>>| {
                thread.join().map_err(|_| "a client panicked".to_owned())?
            };
            Ok([
                join(definitions)?,
                join(jobs)?,
                join(sessions)?,
                join(gates)?,
            ])
        });
        over.store(true, Ordering::Relaxed);
        for pair in pairs {
            let (refusals, longest) = pair.join().map_err(|_| "a client panicked")??;
            worst.refusals += refusals;
            worst.longest_pair = worst.longest_pair.max(longest);
        }
        let [definitions, jobs, sessions, gates] = missed?;
        worst.definitions = worst.definitions.max(definitions);
        worst.jobs = worst.jobs.max(jobs);
        worst.sessions = worst.sessions.max(sessions);
        worst.lost_gates = worst.lost_gates.max(gates);
        Ok(())
    })
}

pub(super) fn said(why: Unanswered) -> String {
    match why {
        Unanswered::Refused(why) | Unanswered::Broken(why) => why,
    }
}

/// Uses a gate at a node until the node owns it.
pub(super) fn settle_at(node: SocketAddr, gate: &str, at: usize) -> Result<(), String> {
    let mut asker = Asker::connect(node, PATIENCE)?;
    let start = Instant::now();
    loop {
        for _ in 0..USES {
            asker.ask(&["LOCK", gate], |_| ()).map_err(said)?;
            asker.ask(&["UNLOCK", gate], |_| ()).map_err(said)?;
        }
        let owner = asker.number(&["OWNER", gate], "owner").map_err(said)?;
        if owner == Some(at as u64 + 1) {
            return Ok(());
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("{gate} does not come to node {}", at + 1));
        }
    }
}

/// A queue that the node to be killed does not own: it is used elsewhere until it has moved.
fn queue_elsewhere(node: SocketAddr, tag: &str, victim: usize) -> Result<String, String> {
    let mut asker = Asker::connect(node, PATIENCE)?;
    let flow = format!("f-{tag}");
    let queue = format!("{flow}/jobs");
    let text = "make -> [jobs] -> work";
    let applied = asker.ask(&["FLOW", "APPLY", &flow, text], |_| ());
    applied.map_err(said)?;
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        let owner = asker.number(&["OWNER", &queue], "owner").map_err(said)?;
        if owner.is_some_and(|owner| owner != victim as u64 + 1) {
            return Ok(queue);
        }
        for _ in 0..USES {
            let created = asker.ask(&["JOB", "CREATE", &queue, "*", "x"], |_| ());
            created.map_err(said)?;
            let taken = asker.ask(&["JOB", "TAKE", &queue], |job| {
                let number = |at: usize| job.list().get(at).and_then(|field| field.number());
                number(0).zip(number(3))
            });
            if let Some((job, attempt)) = taken.map_err(said)? {
                let (job, attempt) = (job.to_string(), attempt.to_string());
                let deleted = asker.ask(&["JOB", "DELETE", &job, &attempt], |_| ());
                deleted.map_err(said)?;
            }
        }
    }
    Err(format!("{queue} does not leave node {}", victim + 1))
}

/// Pairs at a gate until all is over: how many were refused, and the longest one.
fn go_on(node: SocketAddr, gate: &str, over: &AtomicBool) -> Result<(u64, f64), String> {
    let mut asker = Asker::connect(node, PATIENCE)?;
    let (mut refusals, mut longest) = (0, 0.0_f64);
    while !over.load(Ordering::Relaxed) {
        let begun = Instant::now();
        for words in [["LOCK", gate], ["UNLOCK", gate]] {
            match asker.ask(&words, |_| ()) {
                Ok(()) => {}
                Err(Unanswered::Refused(_)) => refusals += 1,
                Err(Unanswered::Broken(why)) => return Err(why),
            }
        }
        longest = longest.max(begun.elapsed().as_secs_f64());
        thread::sleep(Duration::from_millis(1));
    }
    Ok((refusals, longest))
}

/// How long after the kill something works again, in seconds.
pub(super) fn first_answer(node: SocketAddr, killed: Instant, words: &str) -> Result<f64, String> {
    let words: Vec<&str> = words.split(' ').collect();
    let mut last = String::new();
    while killed.elapsed() < 2 * PATIENCE {
        let answered = Asker::connect(node, PATIENCE)
            .map_err(Unanswered::Broken)
            .and_then(|mut asker| asker.ask(&words, |_| ()));
        match answered {
            Ok(()) => return Ok(killed.elapsed().as_secs_f64()),
            Err(why) => last = said(why),
        }
        thread::sleep(RETRY);
    }
    Err(format!("never again: {last}"))
}
