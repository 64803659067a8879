//! What a fail-over consists of. One node is killed after another, and each time the first grant at a gate that it owned is
//! divided by what happens before: a leader is elected if it led; the leader waits until the lease of the lost start is
//! certainly over, and proposes a view without it; the view is applied; the members report what their sessions hold there,
//! which opens the shard; and a client is granted the gate.

use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use super::failover::{first_answer, said, settle_at};
use super::trio::{PATIENCE, Trio};
use crate::report::{Report, Unit};
use crate::wire::Asker;
use crate::wire::resp::Reply;

/// Kills of each kind.
const KILLS: usize = 10;
const LOOK_AGAIN: Duration = Duration::from_millis(1);
const DAY_MS: u64 = 86_400_000;

/// The ends of the parts, in their order.
const PARTS: [&str; 5] = [
    "leader elected",
    "lease of the lost start over, view proposed",
    "view applied",
    "reports in, shard open",
    "first grant",
];

pub(super) fn measure(binary: &Path, report: &mut Report) -> Result<(), String> {
    let mut trio = Trio::start(binary)?;
    for (who, leader) in [("leader", true), ("another node", false)] {
        let mut all = Vec::new();
        for nth in 0..KILLS {
            eprint!("\rparts: killing the {who}, {} of {KILLS}", nth + 1);
            all.push(kill(&mut trio, leader, nth)?);
        }
        eprintln!();
        let mut row = |what: &str, mut seconds: Vec<f64>| {
            seconds.sort_unstable_by(f64::total_cmp);
            let (median, worst) = (seconds[KILLS / 2], seconds[KILLS - 1]);
            let worst = format!("worst of {KILLS}: {}", Unit::Seconds.show(worst));
            report.show(&format!("{who}: {what}"), median, Unit::Seconds, &worst);
        };
        for (at, what) in PARTS.iter().enumerate() {
            let before = |ends: &[f64; 5]| at.checked_sub(1).map_or(0.0, |at| ends[at]);
            row(
                what,
                all.iter().map(|ends| ends[at] - before(ends)).collect(),
            );
        }
        row("altogether", all.iter().map(|ends| ends[4]).collect());
    }
    Ok(())
}

/// When each part was over, in seconds since the kill. None is over before the one before it.
fn kill(trio: &mut Trio, leader: bool, nth: usize) -> Result<[f64; 5], String> {
    let led = trio.leader()?;
    let victim = if leader { led } else { (led + 1 + nth % 2) % 3 };
    let gate = format!("parts-{leader}-{nth}");
    settle_at(trio.address(victim)?, &gate, victim)?;
    let others: Vec<usize> = (0..3).filter(|at| *at != victim).collect();
    let mut addresses = Vec::new();
    for at in &others {
        addresses.push((*at, trio.address(*at)?));
    }
    let heard: Vec<usize> = lengths(trio, &others)?;
    trio.without(victim, |trio| {
        let (killed, moment) = (Instant::now(), SystemTime::now());
        let (applied, open, granted) = thread::scope(|scope| {
            let (addresses, gate) = (&addresses, &gate);
            let applied = scope.spawn(move || until_out(addresses[0].1, victim, killed));
            let open = scope.spawn(move || until_open(addresses, gate, killed));
            let lock = format!("LOCK {gate}");
            let granted = first_answer(addresses[0].1, killed, &lock);
            let gone = |_| "a client panicked".to_owned();
            Ok::<_, String>((
                applied.join().map_err(gone)??,
                open.join().map_err(gone)??,
                granted?,
            ))
        })?;
        let mut said = String::new();
        for (at, heard) in others.iter().zip(&heard) {
            said.push_str(trio.said_by(*at)?.get(*heard..).unwrap_or_default());
        }
        let first = |words: &str| since(moment, said.lines().filter(|line| line.contains(words)));
        let elected = match leader {
            true => first(" leads in term ").ok_or("nobody said who leads")?,
            false => 0.0,
        };
        let proposed = first("this node proposes the view").ok_or("no view was proposed")?;
        let mut ends = [elected, proposed, applied, open, granted];
        for at in 1..ends.len() {
            ends[at] = ends[at].max(ends[at - 1]);
        }
        Ok(ends)
    })
}

fn lengths(trio: &Trio, nodes: &[usize]) -> Result<Vec<usize>, String> {
    let said = nodes.iter().map(|at| trio.said_by(*at));
    said.map(|said| said.map(|said| said.len())).collect()
}

/// The time of the first of some lines of a log, in seconds since a moment: its second word is the time of the day.
fn since<'a>(moment: SystemTime, lines: impl Iterator<Item = &'a str>) -> Option<f64> {
    let moment = moment.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    let moment = u64::try_from(moment.as_millis()).ok()? % DAY_MS;
    let at = |line: &str| -> Option<u64> {
        let time = line.split([' ', 'T']).find(|word| word.contains(':'))?;
        let mut parts = time.trim_end_matches('Z').split([':', '.']);
        let mut next = || parts.next()?.parse::<u64>().ok();
        Some(((next()? * 60 + next()?) * 60 + next()?) * 1000 + next()?)
    };
    let after = lines
        .filter_map(at)
        .map(|at| (at + DAY_MS - moment) % DAY_MS);
    // What was said just before is a day away.
    after
        .filter(|ms| *ms < DAY_MS / 2)
        .min()
        .map(|ms| ms as f64 / 1e3)
}

/// When a node that lives has left the lost one out.
fn until_out(node: SocketAddr, lost: usize, killed: Instant) -> Result<f64, String> {
    let lost = Some(lost as u64 + 1);
    until(node, killed, &["STALE", "CLUSTER", "STATUS"], |status| {
        let number = |member, key| field(member, key).and_then(Reply::number);
        let members = field(status, "members").map(Reply::list);
        let mut members = members.unwrap_or_default().iter();
        let member = members.find(|member| number(member, "id") == lost);
        member.is_none_or(|member| number(member, "in_view") == Some(0))
    })
}

/// When the new owner of a gate has opened its shard.
fn until_open(nodes: &[(usize, SocketAddr)], gate: &str, killed: Instant) -> Result<f64, String> {
    until(nodes[0].1, killed, &["STALE", "OWNER", gate], |owner| {
        let by = field(owner, "owner").and_then(Reply::number);
        let lives = nodes.iter().any(|(at, _)| by == Some(*at as u64 + 1));
        lives && field(owner, "open").and_then(Reply::number) == Some(1)
    })
}

fn field<'a, 'b>(map: &'a Reply<'b>, key: &str) -> Option<&'a Reply<'b>> {
    let mut pairs = map.list().chunks_exact(2);
    let pair = pairs.find(|pair| pair[0].bytes() == Some(key.as_bytes()))?;
    Some(&pair[1])
}

/// Asks a node until its answer is as wanted; says when, in seconds since the kill.
fn until(
    node: SocketAddr,
    killed: Instant,
    words: &[&str],
    wanted: impl Fn(&Reply<'_>) -> bool,
) -> Result<f64, String> {
    let mut asker = Asker::connect(node, PATIENCE)?;
    while killed.elapsed() < PATIENCE {
        if asker.ask(words, &wanted).map_err(said)? {
            return Ok(killed.elapsed().as_secs_f64());
        }
        thread::sleep(LOOK_AGAIN);
    }
    Err(format!("{words:?} does not become as it should"))
}
