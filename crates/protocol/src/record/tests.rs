//! What is recorded is read again as it happened, within the bounds, and whatever the bytes are.

use super::*;
use crate::mutex::{Ask, Mutex, Tell};
use crate::{Effects, PACKET_HEAD_BYTES, Packet};

fn head(gate: &str) -> RecordHead {
    let members = ["a", "b", "c"].map(String::from).to_vec();
    RecordHead::new(gate, "ricart-agrawala", &Setup::new(3), (7, 2), members)
}

fn recording(gate: &str, allowance: &RecordAllowance) -> Recording {
    Recording::new(head(gate), 1_000, allowance)
}

fn packet(message: &[u8]) -> Packet {
    [vec![9; PACKET_HEAD_BYTES], message.to_vec()].concat()
}

fn effects(sends: &[(u32, &[u8])], tells: &[Tell], timers: &[u64]) -> Effects<Mutex, Packet> {
    let sends = sends.iter();
    Effects {
        sends: sends
            .map(|(to, message)| (NodeId(*to), packet(message)))
            .collect(),
        tells: tells.to_vec(),
        timers: timers.iter().map(|&timer| (0..5, Timer(timer))).collect(),
    }
}

fn sample() -> Recording {
    let mut recording = recording("g", &RecordAllowance::default());
    let nothing = effects(&[], &[], &[]);
    recording.started(1_000, NodeId(1), &nothing);
    recording.started(1_000, NodeId(2), &nothing);
    let asked = effects(&[(0, b"one"), (2, b"")], &[], &[300]);
    recording.asked(1_200, NodeId(1), Ask::Enter, &asked);
    let told = effects(&[], &[Tell::Entered, Tell::Wanted], &[]);
    recording.received(1_190, NodeId(1), NodeId(0), &packet(b"yes"), &told);
    recording.fired(9_000, NodeId(1), Timer(300), &nothing);
    recording.asked(9_000, NodeId(2), Ask::Leave, &nothing);
    recording
}

#[test]
fn steps_are_read_as_they_happened() {
    let record = sample().record();
    assert_eq!((record.is_whole(), record.over), (true, false));
    assert_eq!(record.hosted, [NodeId(1), NodeId(2)]);
    let again = Record::from_bytes(&record.to_bytes()).expect("its own bytes");
    assert_eq!(again, record);
    let step = |at, member, input| RecordedStep {
        at,
        member: NodeId(member),
        input,
        sends: Vec::new(),
        tells: Vec::new(),
        timers: Vec::new(),
    };
    let enter = RecordedInput::Ask("Enter".into());
    let taken = RecordedInput::Packet {
        from: NodeId(0),
        message: b"yes".to_vec(),
    };
    let expected = [
        step(1_000, 1, RecordedInput::Start),
        step(1_000, 2, RecordedInput::Start),
        RecordedStep {
            sends: vec![(NodeId(0), b"one".to_vec()), (NodeId(2), Vec::new())],
            timers: vec![Timer(300)],
            ..step(1_200, 1, enter)
        },
        RecordedStep {
            tells: vec!["Entered".into(), "Wanted".into()],
            // The clock was set back.
            ..step(1_200, 1, taken)
        },
        step(9_000, 1, RecordedInput::Fire(Timer(300))),
        step(9_000, 2, RecordedInput::Ask("Leave".into())),
    ];
    assert_eq!(again.steps().expect("whole"), expected);
}

#[test]
fn a_record_is_fetched_in_pieces_while_it_grows() {
    let mut recording = sample();
    let nothing = effects(&[], &[], &[]);
    let mut fetched: Option<Record> = None;
    for at in 0..400 {
        recording.asked(9_000 + at, NodeId(2), Ask::Leave, &nothing);
        let from = fetched.as_ref().map_or(0, Record::length);
        let length = recording.length();
        let piece = recording.piece(from, length - from);
        fetched = Some(recording.outline().with_steps(fetched, &piece));
    }
    assert_eq!(fetched, Some(recording.record()));
    assert!(recording.length() > 1_000, "more than one chunk");
    assert_eq!(recording.piece(3, 600), recording.record().steps[3..603]);
    assert_eq!(recording.piece(recording.length(), 9), []);
}

#[test]
fn a_head_gives_the_setup_back() {
    let mut setup = Setup::new(3);
    setup.choose("tree", "star").expect("a tree");
    setup.delay_bound = 40;
    let head = RecordHead::new("g", "raymond", &setup, (1, 2), Vec::new());
    assert_eq!(head.setup(), Ok(setup));
}

#[test]
fn damaged_records_are_refused_or_read_but_never_a_panic() {
    let bytes = sample().record().to_bytes();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut other = bytes.clone();
            other[at] ^= 1 << bit;
            if let Ok(record) = Record::from_bytes(&other) {
                let _ = record.steps();
            }
        }
        assert!(Record::from_bytes(&bytes[..at]).is_err(), "{at} bytes");
    }
    let mut newer = bytes.clone();
    newer[0] = 2;
    let refused = Record::from_bytes(&newer).expect_err("another format");
    assert_eq!(
        refused.to_string(),
        "a record in format 2: this program reads format 1"
    );
}

#[test]
fn a_step_takes_few_bytes() {
    let mut recording = recording("g", &RecordAllowance::default());
    let nothing = effects(&[], &[], &[]);
    for at in 0..100 {
        recording.received(
            1_000 + at,
            NodeId(1),
            NodeId(0),
            &packet(b"12345"),
            &nothing,
        );
    }
    assert_eq!(recording.record().steps.len(), 900 + 1);
}

#[test]
fn a_recording_that_is_full_is_cut_and_says_so() {
    let mut recording = recording("g", &RecordAllowance::default());
    let large = vec![1; 10_000];
    let sends = effects(&[(0, &large)], &[], &[]);
    let mut steps = 0;
    while !recording.is_full_soon() {
        recording.asked(1_000, NodeId(1), Ask::Enter, &sends);
        steps += 1;
    }
    assert!(recording.record().is_whole());
    assert!(recording.bytes() + RECORD_BYTES_SPARE > RECORD_BYTES_MAX - CHUNK);
    for _ in 0..500 {
        recording.asked(1_000, NodeId(1), Ask::Enter, &sends);
        steps += 1;
    }
    let record = recording.record();
    assert!(recording.bytes() <= RECORD_BYTES_MAX);
    assert!(record.cut > 0 && recording.is_full_soon());
    let read = record.steps().expect("what is there is whole");
    assert_eq!(read.len() as u64 + record.cut, steps);
}
const CHUNK: usize = 64 << 10;

#[test]
fn all_recordings_share_what_a_node_may_spend() {
    let allowance = RecordAllowance::of(600);
    let nothing = effects(&[], &[], &[]);
    let mut first = recording("g", &allowance);
    first.started(1_000, NodeId(0), &nothing);
    let mut second = recording("h", &allowance);
    second.started(1_000, NodeId(0), &nothing);
    let mut third = recording("i", &allowance);
    third.started(1_000, NodeId(0), &nothing);
    assert!(first.record().is_whole() && second.record().is_whole());
    assert_eq!(third.record().cut, 1);
    // Another instance would be cut as well.
    assert!(!third.is_full_soon());
    drop((first, second, third));
    assert_eq!(allowance.left(), 600);
}

#[test]
fn a_new_instance_begins_only_where_it_would_have_much_more_room() {
    let allowance = RecordAllowance::of(RECORD_BYTES_SPARE);
    let nothing = effects(&[], &[], &[]);
    let mut first = recording("g", &allowance);
    first.started(1_000, NodeId(0), &nothing);
    assert!(allowance.left() < RECORD_BYTES_SPARE);
    assert!(
        !first.is_full_soon(),
        "the next one would be full at once, and so on for ever"
    );
    let large = vec![1; 10_000];
    let sends = effects(&[(0, &large)], &[], &[]);
    while first.record().is_whole() {
        assert!(!first.is_full_soon());
        first.asked(1_000, NodeId(0), Ask::Enter, &sends);
    }
    assert!(first.is_full_soon(), "the next one has all of the room");
}

#[test]
fn the_last_instances_of_a_gate_are_kept() {
    let mut records = Records::default();
    let nothing = effects(&[], &[], &[]);
    for number in 0..10 {
        for gate in ["g", "h"] {
            let mut recording = Recording::new(
                RecordHead {
                    instance: (number, 1),
                    ..head(gate)
                },
                number,
                records.allowance(),
            );
            recording.started(number, NodeId(0), &nothing);
            records.keep(recording);
        }
    }
    let numbers = |records: &Records, gate| -> Vec<u64> {
        let of = records.of(gate);
        of.map(|recording| recording.head().instance.0).collect()
    };
    assert_eq!(numbers(&records, "g"), [6, 7, 8, 9]);
    assert!(records.of("g").all(|recording| recording.record().over));
    records.forget("g");
    assert_eq!(numbers(&records, "g"), []);
    assert_eq!(numbers(&records, "h"), [6, 7, 8, 9]);
    records.forget("h");
    assert_eq!(records.allowance().left(), NODE_RECORD_BYTES_MAX);
}

#[test]
fn recordings_that_run_come_before_those_that_are_over() {
    let allowance = RecordAllowance::of(RECORD_BYTES_SPARE + 300);
    let mut records = Records::new(allowance.clone());
    let nothing = effects(&[], &[], &[]);
    let mut over = recording("g", &allowance);
    over.started(1_000, NodeId(0), &nothing);
    records.keep(over);
    assert_eq!(records.of("g").count(), 1);
    let mut runs = recording("h", &allowance);
    runs.started(1_000, NodeId(0), &nothing);
    records.make_room();
    assert_eq!(records.of("g").count(), 0);
}
