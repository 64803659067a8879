//! One command through the node's own door: a pipe is opened for the user, the command written, its answer read, the
//! pipe closed. So HTTP has no commands of its own.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use redis_protocol::resp3::decode::complete::decode_bytes;
use redis_protocol::resp3::types::BytesFrame;
use serde_json::Value;

use super::words::{Said, answer_json};
use crate::pipe::Pipe;
use crate::shared::Shared;
use crate::users::User;

/// How long an answer may take: a change waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the connection is called among the others.
const ADDRESS: &str = "http";

/// How a command ended.
pub(super) enum Asked {
    Answered(Value),
    /// An error: a word, then a sentence.
    Refused(String),
    /// It did not end in time.
    Silent,
}

/// Carries out one command with a user's rights.
pub(super) fn ask(shared: &Arc<Shared>, user: &Arc<User>, words: &[Said]) -> Asked {
    let mut pipe = match Pipe::open(shared, Arc::clone(user), ADDRESS) {
        Ok(pipe) => pipe.in_version_3(),
        Err(refusal) => return Asked::Refused(refusal.to_string()),
    };
    let waker = Waker::from(Arc::new(Bell(std::thread::current())));
    let context = Context::from_waker(&waker);
    let until = Instant::now() + PATIENCE;
    let command = frame(words);
    let mut written = 0;
    while written < command.len() {
        match pipe.poll_write(&context, &command[written..]) {
            Poll::Ready(Ok(count)) => written += count,
            // It was closed for what was written so far, and says why.
            Poll::Ready(Err(_)) => break,
            Poll::Pending if !sleep(until) => return Asked::Silent,
            Poll::Pending => {}
        }
    }
    let mut answer = BytesMut::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        let read = pipe.poll_read(&context, &mut chunk);
        if let Poll::Ready(Ok(count @ 1..)) = read {
            answer.extend_from_slice(&chunk[..count]);
            continue;
        }
        // Nothing more is there now: either the answer is whole, or the node is still at it.
        if let Some(frame) = whole(&answer) {
            return match answer_json(frame) {
                Ok(answer) => Asked::Answered(answer),
                Err(line) => Asked::Refused(line),
            };
        }
        match read {
            Poll::Pending if sleep(until) => {}
            Poll::Pending => return Asked::Silent,
            Poll::Ready(_) => return Asked::Refused(GONE.into()),
        }
    }
}

const GONE: &str = "UNAVAILABLE unknown: the connection was ended before the answer; the change may have been made";

/// Waits to be woken; false when the time is over.
fn sleep(until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    std::thread::park_timeout(left);
    !left.is_zero()
}

struct Bell(Thread);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A command as it travels.
fn frame(words: &[Said]) -> Vec<u8> {
    let mut frame = format!("*{}\r\n", words.len()).into_bytes();
    for Said(word) in words {
        frame.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        frame.extend_from_slice(word);
        frame.extend_from_slice(b"\r\n");
    }
    frame
}

fn whole(answer: &BytesMut) -> Option<BytesFrame> {
    if answer.is_empty() {
        return None;
    }
    let decoded = decode_bytes(&answer.clone().freeze()).ok().flatten();
    decoded.map(|(frame, _)| frame)
}
