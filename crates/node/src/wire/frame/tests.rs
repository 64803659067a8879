//! What the framer reads, held against the codec, and what it must survive.

use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::*;
use crate::hostile::{Chance, frugally, inputs};

fn small() -> WireLimits {
    WireLimits {
        frame_bytes: 200,
        arguments: 8,
        argument_bytes: 64,
        inline_bytes: 100,
        ..WireLimits::default()
    }
}

/// The words and the length, or what else it was.
fn read(input: &[u8]) -> Result<(Vec<Vec<u8>>, usize), String> {
    let mut framer = Framer::default();
    words_of(framer.read(input, &small()))
}

fn words_of(frame: Frame<'_>) -> Result<(Vec<Vec<u8>>, usize), String> {
    match frame {
        Frame::Command(line, consumed) => {
            let words = (0..line.len()).map(|at| line.word(at).unwrap().to_vec());
            Ok((words.collect(), consumed))
        }
        Frame::Incomplete => Err("incomplete".into()),
        Frame::Violation(why) => Err(why),
    }
}

#[test]
fn a_command_is_found_only_when_it_is_whole() {
    let whole = b"*2\r\n$4\r\nLOCK\r\n$1\r\na\r\n";
    for cut in 1..whole.len() {
        assert_eq!(read(&whole[..cut]).unwrap_err(), "incomplete", "{cut}");
    }
    let (words, consumed) = read(&[whole, &b"*1"[..]].concat()).unwrap();
    assert_eq!(
        (words, consumed),
        (vec![b"LOCK".to_vec(), b"a".to_vec()], whole.len())
    );
    assert_eq!(read(b"PING\r\nx").unwrap(), (vec![b"PING".to_vec()], 6));
    assert_eq!(read(b"*0\r\n").unwrap(), (vec![], 4));
    assert_eq!(read(b"*-1\r\n").unwrap(), (vec![], 5));
    assert_eq!(read(b"\r\n").unwrap(), (vec![], 2));
}

#[test]
fn limits_are_seen_in_the_header_before_the_bytes_arrive() {
    for (input, why) in [
        ("*9\r\n", "arguments"),
        ("*99999999999999999999\r\n", "no number"),
        ("*1\r\n$65\r\n", "argument_bytes"),
        ("*4\r\n$64\r\n", "incomplete"),
        ("*1\r\n$-1\r\n", "null"),
        ("*1\r\n:5\r\n", "expected"),
        ("*1\r\n*1\r\n", "expected"),
        ("*1\r\n$+1\r\na\r\n", "no number"),
        ("*1\r\n$1\r\nab\r\n", "does not end"),
        ("*111111111111111111111111", "no end"),
    ] {
        let found = read(input.as_bytes()).unwrap_err();
        assert!(found.contains(why), "{input:?}: {found}");
    }
    let long = "*8\r\n".to_owned() + &format!("$60\r\n{}\r\n", "x".repeat(60)).repeat(4);
    assert!(read(long.as_bytes()).unwrap_err().contains("frame_bytes"));
    let line = "x".repeat(100);
    assert!(read(line.as_bytes()).unwrap_err().contains("inline_bytes"));
}

/// Whatever arrives, nothing panics, little is allocated, and what is taken for a command is one for the codec too.
#[test]
fn random_and_mutated_input_is_read_as_the_codec_reads_it() {
    const INPUTS: u64 = 200_000;
    let (small, large) = (small(), WireLimits::default());
    let (mut all, mut commands) = (0, 0);
    inputs(INPUTS, |chance| {
        all += 1;
        let input = hostile(chance);
        let limits = chance.one(&[&small, &large]);
        let mut framer = Framer::default();
        let frame = frugally(&input, || framer.read(&input, limits));
        let Ok((words, consumed)) = words_of(frame) else {
            return;
        };
        assert!((1..=input.len()).contains(&consumed));
        if input[0] == b'*' {
            commands += 1;
            as_the_codec(&input, &words, consumed);
        }
    });
    assert!(
        commands > all / 20,
        "the generator makes too few commands: {commands} of {all}"
    );
}

fn as_the_codec(input: &[u8], words: &[Vec<u8>], consumed: usize) {
    let (frame, amount) = decode_range(input).unwrap().expect("whole for the codec");
    assert_eq!(amount, consumed);
    match frame {
        RangeFrame::Null => assert!(words.is_empty()),
        RangeFrame::Array(items) => {
            let items = items.iter().map(|item| match item {
                RangeFrame::BulkString((from, to)) => input[*from..*to].to_vec(),
                other => panic!("{other:?} in a command"),
            });
            assert_eq!(items.collect::<Vec<_>>(), words);
        }
        other => panic!("{other:?} is no command"),
    }
}

const ALPHABET: &[u8] = b"*$+-:0123456789\r\n\"'\\ xaLOCK\0\xff";
/// What a header may claim.
const CLAIMS: [&str; 8] = [
    "-1",
    "-2",
    "65536",
    "65537",
    "4194304",
    "2147483648",
    "18446744073709551615",
    "99999999999999999999",
];

fn hostile(chance: &mut Chance) -> Vec<u8> {
    match chance.below(8) {
        0 => return chance.bytes(60),
        1 => {
            return (0..=chance.below(40))
                .map(|_| chance.one(ALPHABET))
                .collect();
        }
        2 => {
            let mut line = b"LOCK \"a b\" 'c' \\x41 \"\\n\\xff\"\r\n".to_vec();
            chance.mutate(&mut line, ALPHABET, 5);
            return line;
        }
        3 => {
            let (count, length) = (chance.one(&CLAIMS), chance.one(&CLAIMS));
            let mut claim = format!("*{count}\r\n${length}\r\nLOCK\r\n").into_bytes();
            chance.mutate(&mut claim, ALPHABET, 3);
            return claim;
        }
        _ => {}
    }
    let count = chance.below(5);
    let mut input = format!("*{count}\r\n").into_bytes();
    for _ in 0..count {
        let word = chance.bytes(12);
        input.extend(format!("${}\r\n", word.len()).bytes());
        input.extend(word);
        input.extend(b"\r\n");
    }
    chance.mutate(&mut input, ALPHABET, 2);
    input
}
