//! Bytes that an older version wrote. Each line of the fixture is one entry: what was logged, when, whether it was done or
//! refused, and its bytes; the last two lines are the snapshot and the image of a clean stop that followed.

use super::*;
use crate::command::{Answer, Claim, ClaimEnd, Command};
use crate::gate::Ask;
use crate::limits::Limits;
use crate::local::Local;

const FIXTURE: &str = include_str!("../../tests/before/log.txt");

struct Line {
    what: &'static str,
    at: u64,
    done: bool,
    bytes: Vec<u8>,
}

fn lines() -> Vec<Line> {
    let line = |line: &'static str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [what, at, done, hex] = words[..] else {
            panic!("{line}");
        };
        let bytes = (0..hex.len()).step_by(2);
        Line {
            what,
            at: at.parse().unwrap(),
            done: done == "done",
            bytes: bytes
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                .collect(),
        }
    };
    FIXTURE.lines().map(line).collect()
}

fn entries() -> Vec<Line> {
    let mut lines = lines();
    lines.truncate(lines.len() - 2);
    lines
}

fn bytes_of(what: &str) -> Vec<u8> {
    let line = lines().into_iter().find(|line| line.what == what);
    line.unwrap().bytes
}

fn replayed() -> Replicated {
    let mut replicated = Replicated::new(Limits::default());
    for line in entries() {
        let change: Change = postcard::from_bytes(&line.bytes).unwrap();
        let applied = replicated.apply_before(line.at, change);
        assert_eq!(applied.is_ok(), line.done, "{}: {applied:?}", line.what);
    }
    replicated
}

fn restored() -> Replicated {
    let records: Records = postcard::from_bytes(&bytes_of("records")).unwrap();
    Replicated::restore(records.into())
}

fn begin(replicated: &mut Replicated) {
    let view = replicated.view_alone(NodeId(1), Start(5), 0);
    let _ = replicated.apply(0, &view).unwrap();
}

#[test]
fn every_kind_of_change_is_in_the_fixture() {
    let mut kinds: Vec<_> = entries().iter().map(|line| line.bytes[0]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, (0..13).collect::<Vec<u8>>());
    let jobs = entries().into_iter().filter(|line| line.bytes[0] == 11);
    let mut kinds: Vec<_> = jobs.map(|line| line.bytes[2]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    // All but `Back`, which is the second of a unit.
    assert_eq!(kinds, [0, 1, 2, 3, 5]);
}

#[test]
fn a_log_of_before_comes_to_what_it_came_to_then() {
    let (log, snapshot) = (replayed(), restored());
    let [log, snapshot] = [log, snapshot].map(|replicated| replicated.records);
    assert_eq!(log.gates, snapshot.gates);
    assert_eq!(log.once, snapshot.once);
    assert_eq!(log.flows, snapshot.flows);
    assert_eq!(log.ownership, snapshot.ownership);
    assert_eq!(log.receipt_key, snapshot.receipt_key);
    assert_eq!(log.sessions.len(), 2);
    for (id, record) in &log.sessions {
        let other = &snapshot.sessions[id];
        assert_eq!(
            (record.ttl_ms, &record.label, &record.user),
            (other.ttl_ms, &other.label, &other.user)
        );
        let start = |record: &super::super::SessionRecord| (record.home.node, record.home.start);
        assert_eq!(start(record), (NodeId(1), Start(0)));
        assert_eq!(start(other), (NodeId(1), Start(0)));
    }
}

#[test]
fn fences_after_it_are_above_all_of_before() {
    for mut replicated in [replayed(), restored()] {
        // The last epoch was 4, and it may have granted every fence up to this one.
        let highest = Fence(4 << 32 | u64::from(u32::MAX));
        begin(&mut replicated);
        for shard in [Shard(0), Shard::of("plain"), Shard::LAST] {
            let floor = replicated.ownership().number(shard).floor();
            assert_eq!(floor, Fence(highest.0 + 1));
        }
        assert!(
            replicated
                .sessions()
                .all(|(_, record)| replicated.is_orphan(record))
        );
        let mut local = Local::start(0, Limits::default(), 7, &replicated, None);
        assert_eq!(local.awaited(), 2);
        let claim = Claim {
            gate: "plain",
            fence: highest,
            ask: Ask::Plain,
            proven: true,
            ..Claim::default()
        };
        let resume = Command::Resume {
            claims: vec![claim].into(),
        };
        let session = SessionId::opened(1);
        let resumed = local.apply(0, &replicated, session, &resume, &mut Vec::new());
        let Ok(Answer::Resumed(resumed)) = resumed else {
            panic!("{resumed:?}");
        };
        assert_eq!(resumed.claims, [ClaimEnd::Held]);
    }
}

#[test]
fn the_image_of_a_clean_stop_of_before_fits_the_next_start() {
    let image = || -> Image { postcard::from_bytes(&bytes_of("image")).unwrap() };
    let mut replicated = replayed();
    begin(&mut replicated);
    let start = |replicated: &Replicated| {
        let image = image().into();
        Local::start(0, Limits::default(), 7, replicated, Some(image))
    };
    let local = start(&replicated);
    assert!(!local.recovering());
    let inside = |gate| local.gate(gate).unwrap().holders.len();
    assert_eq!(["seats", "plain", "rooms"].map(inside), [1, 1, 1]);
    assert_eq!(local.gate("plain").unwrap().waiters.len(), 1);
    assert_eq!(
        local.gate("plain").unwrap().holders[0].fence.0 >> 32,
        4,
        "it is held as it was"
    );
    // And no later one.
    let view = replicated.view_alone(NodeId(1), Start(6), 0);
    let _ = replicated.apply(0, &view).unwrap();
    assert!(start(&replicated).recovering());
}
