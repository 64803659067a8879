//! A pipe is a connection: its answers wait to be read, its commands wait for them, and it ends with the node.

use std::task::{Context, Poll, Waker};

use testigo_node::{Config, Node, Pipe};

/// Writes as much as is taken now.
fn write(pipe: &mut Pipe, mut bytes: &[u8]) -> usize {
    let mut taken = 0;
    while !bytes.is_empty() {
        match pipe.poll_write(&Context::from_waker(Waker::noop()), bytes) {
            Poll::Ready(Ok(count)) => {
                taken += count;
                bytes = &bytes[count..];
            }
            Poll::Ready(Err(error)) => panic!("{error}"),
            Poll::Pending => break,
        }
    }
    taken
}

/// Reads what is there now; nothing if the pipe is closed.
fn read(pipe: &mut Pipe) -> Option<String> {
    let mut text = String::new();
    let mut bytes = vec![0; 10_000];
    loop {
        match pipe.poll_read(&Context::from_waker(Waker::noop()), &mut bytes) {
            Poll::Ready(Ok(0)) if text.is_empty() => return None,
            Poll::Ready(Ok(count)) if count > 0 => {
                text.push_str(std::str::from_utf8(&bytes[..count]).expect("text"));
            }
            _ => return Some(text),
        }
    }
}

#[test]
fn commands_wait_until_answers_are_read_and_none_is_lost() {
    let data = tempfile::tempdir().unwrap();
    let mut config = Config::embedded(data.path());
    config.wire.output_bytes_soft = 10_000;
    config.wire.frame_bytes = 20_000;
    let node = Node::start(config).unwrap();
    let mut pipe = node.pipes().open().unwrap();
    let commands: String = (0..5_000).map(|n| format!("ECHO {n:06}\r\n")).collect();
    let mut unsent = commands.as_bytes();
    let mut heard = String::new();
    let mut most = 0;
    while heard.len() < 5_000 * 12 {
        let taken = write(&mut pipe, unsent);
        unsent = &unsent[taken..];
        let read = read(&mut pipe).expect("it is open");
        assert!(taken > 0 || !read.is_empty(), "it goes on");
        most = most.max(read.len());
        heard.push_str(&read);
    }
    let expected: String = (0..5_000).map(|n| format!("$6\r\n{n:06}\r\n")).collect();
    assert_eq!(heard, expected);
    assert!(most < 60_000, "{most} bytes of answers were kept");
}

#[test]
fn a_pipe_ends_with_its_program_and_with_the_node() {
    let data = tempfile::tempdir().unwrap();
    let node = Node::start(Config::embedded(data.path())).unwrap();
    let (mut a, mut b) = (node.pipes().open().unwrap(), node.pipes().open().unwrap());
    write(&mut a, b"LOCK x\r\n");
    assert!(read(&mut a).unwrap().starts_with(':'));
    write(&mut b, b"LOCK x\r\n");
    assert_eq!(read(&mut b).unwrap(), "", "it is blocked");
    drop(a);
    // The reactor passes on what the dropped one left behind.
    let mut granted = read(&mut b).unwrap();
    while granted.is_empty() {
        std::thread::yield_now();
        granted = read(&mut b).unwrap();
    }
    assert!(granted.starts_with(':'), "{granted}");
    let pipes = node.pipes();
    node.stop().unwrap();
    assert_eq!(read(&mut b), None);
    assert!(pipes.open().is_err());
}
