//! What the framer reads, compared with the codec, and what it must survive.

use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::super::limits::WireLimits;
use super::*;
use crate::hostile::{Chance, frugally, inputs};

fn small() -> FrameLimits {
    let small = WireLimits {
        frame_bytes: 200,
        arguments: 8,
        argument_bytes: 64,
        inline_bytes: 100,
        ..WireLimits::default()
    };
    small.of_users()
}

/// The words and the length, or what else it was.
fn read(input: &[u8]) -> Result<(Vec<Vec<u8>>, usize), String> {
    let mut framer = Framer::default();
    words_of(framer.read(input, &small(), &mut Progress::default()))
}

fn words_of(frame: Frame<'_>) -> Result<(Vec<Vec<u8>>, usize), String> {
    match frame {
        Frame::Command(line, consumed) => {
            let words = (0..line.len()).map(|at| line.word(at).unwrap().to_vec());
            Ok((words.collect(), consumed))
        }
        Frame::Incomplete => Err("incomplete".into()),
        Frame::Violation(why) => Err(why),
        Frame::Http => Err("HTTP".into()),
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

/// Whatever arrives, nothing panics, little is allocated, and what is accepted as a command is one for the codec, too.
#[test]
fn random_and_mutated_input_is_read_as_the_codec_reads_it() {
    const INPUTS: u64 = 200_000;
    let (small, large) = (small(), WireLimits::default().of_users());
    let (mut all, mut commands) = (0, 0);
    inputs(INPUTS, |chance| {
        all += 1;
        let input = hostile(chance);
        let limits = chance.one(&[&small, &large]);
        let mut framer = Framer::default();
        let frame = frugally(&input, || {
            framer.read(&input, limits, &mut Progress::default())
        });
        let read = words_of(frame);
        assert_eq!(read_in_pieces(&input, limits, chance), read, "in pieces");
        let Ok((words, consumed)) = read else {
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

/// Reads an input that arrives in pieces of any length.
fn read_in_pieces(
    input: &[u8],
    limits: &FrameLimits,
    chance: &mut Chance,
) -> Result<(Vec<Vec<u8>>, usize), String> {
    let (mut framer, mut progress, mut arrived) = (Framer::default(), Progress::default(), 0);
    loop {
        arrived = input.len().min(arrived + 1 + chance.below(8));
        let read = words_of(framer.read(&input[..arrived], limits, &mut progress));
        match read {
            Err(ref why) if why == "incomplete" && arrived < input.len() => {}
            read => return read,
        }
    }
}

/// A command that comes byte by byte costs its length, not its length for every byte: once 3.9 MB of it have arrived, a
/// further byte looks at one header.
#[test]
fn a_command_in_pieces_is_read_once() {
    let limits = WireLimits::default().of_users();
    let arguments = 65_000;
    let mut input = format!("*{}\r\n", arguments + 1).into_bytes();
    input.extend(
        b"$54\r\n"
            .iter()
            .chain(&[b'x'; 54])
            .chain(b"\r\n")
            .copied()
            .collect::<Vec<_>>()
            .repeat(arguments),
    );
    let (mut framer, mut progress) = (Framer::default(), Progress::default());
    assert!(matches!(
        framer.read(&input, &limits, &mut progress),
        Frame::Incomplete
    ));
    assert_eq!((progress.at, progress.left), (input.len(), Some(1)));
    for byte in b"$3\r\nend\r" {
        input.push(*byte);
        // What was read is not looked at again: it could be anything.
        let mut hidden = vec![0; input.len()];
        hidden[0] = b'*';
        hidden[progress.at..].copy_from_slice(&input[progress.at..]);
        assert!(matches!(
            framer.read(&hidden, &limits, &mut progress),
            Frame::Incomplete
        ));
    }
    input.push(b'\n');
    let (words, used) = words_of(framer.read(&input, &limits, &mut progress)).unwrap();
    assert_eq!((words.len(), used), (arguments + 1, input.len()));
    assert_eq!(
        (&*words[0], &*words[arguments]),
        (&[b'x'; 54][..], &b"end"[..])
    );
    assert_eq!(progress, Progress::default());

    let (mut line, mut progress) = (vec![b'x'; 60_000], Progress::default());
    assert!(matches!(
        framer.read(&line, &limits, &mut progress),
        Frame::Incomplete
    ));
    // A line end in the part already searched would be found if it were searched again.
    line[100] = b'\n';
    line.push(b'x');
    assert!(matches!(
        framer.read(&line, &limits, &mut progress),
        Frame::Incomplete
    ));
    line.push(b'\n');
    let (_, used) = words_of(framer.read(&line, &limits, &mut progress)).unwrap();
    assert_eq!(used, line.len());
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
