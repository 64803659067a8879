//! What the framer reads, held against the codec, and what it must survive.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use redis_protocol::resp2::decode::decode_range;
use redis_protocol::resp2::types::RangeFrame;

use super::*;

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
    match framer.read(input, &small()) {
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

/// Whatever arrives, nothing panics, and what is taken for a command is one for the codec too.
#[test]
fn random_and_mutated_input_is_read_as_the_codec_reads_it() {
    let mut rng = Xoshiro256StarStar::seed_from_u64(0x7E57_160A);
    let mut commands = 0;
    for _ in 0..200_000 {
        let input = hostile(&mut rng);
        let Ok((words, consumed)) = read(&input) else {
            continue;
        };
        assert!((1..=input.len()).contains(&consumed));
        if input[0] != b'*' {
            continue;
        }
        commands += 1;
        let (frame, amount) = decode_range(&input).unwrap().expect("whole for the codec");
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
    assert!(
        commands > 10_000,
        "the generator makes too few commands: {commands}"
    );
}

fn hostile(rng: &mut Xoshiro256StarStar) -> Vec<u8> {
    let mut below = |most: u64| (rng.next_u64() % most) as usize;
    let mut input = Vec::new();
    if below(4) == 0 {
        let alphabet = b"*$+-:0123456789\r\n\"'\\ xaLOCK\0\xff";
        for _ in 0..=below(40) {
            input.push(alphabet[below(alphabet.len() as u64)]);
        }
        return input;
    }
    let count = below(5);
    input.extend(format!("*{count}\r\n").bytes());
    for _ in 0..count {
        let word: Vec<u8> = (0..below(12)).map(|_| below(256) as u8).collect();
        input.extend(format!("${}\r\n", word.len()).bytes());
        input.extend(word);
        input.extend(b"\r\n");
    }
    for _ in 0..below(3) {
        let at = below(input.len() as u64);
        match below(4) {
            0 => input[at] = below(256) as u8,
            1 => input.insert(at, b"*$0129\r\n-"[below(9)]),
            2 if input.len() > 1 => drop(input.remove(at)),
            _ => input.truncate(at + 1),
        }
    }
    input
}
