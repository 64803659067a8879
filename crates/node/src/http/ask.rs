//! Runs one command through the node's own front door: opens a pipe for the user, writes the command, reads its answer,
//! closes the pipe. So HTTP has no commands of its own.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use redis_protocol::resp3::decode::complete::decode_bytes;
use serde_json::Value;

use super::door::apart;
use super::words::{Said, answer_json};
use crate::pipe::Pipe;
use crate::shared::Shared;
use crate::users::User;

/// How long an answer may take: a change waits for the disk.
const PATIENCE: Duration = Duration::from_secs(10);
/// The name of the connection among the others.
const ADDRESS: &str = "http";
/// Bytes that are read at a time.
const READ_BYTES: usize = 16 << 10;

/// How a command ended.
pub(super) enum Asked {
    Answered(Value),
    /// An error: a word, then a sentence.
    Refused(String),
    /// It did not end in time.
    Silent,
}

/// Carries out one command with a user's rights.
pub(super) async fn ask(shared: &Arc<Shared>, user: &Arc<User>, words: &[Said]) -> Asked {
    let mut pipe = match Pipe::open(shared, Arc::clone(user), ADDRESS) {
        Ok(pipe) => pipe.in_version_3(),
        Err(refusal) => return Asked::Refused(refusal.to_string()),
    };
    let asked = async {
        write(&mut pipe, &frame(words)).await;
        read(&mut pipe).await
    };
    let asked = tokio::time::timeout(PATIENCE, asked);
    asked.await.unwrap_or(Asked::Silent)
}

async fn write(pipe: &mut Pipe, command: &[u8]) {
    let mut written = 0;
    while written < command.len() {
        match poll_fn(|context| pipe.poll_write(context, &command[written..])).await {
            Ok(count) => written += count,
            // It was closed because of what was written so far, and says why.
            Err(_) => return,
        }
    }
}

async fn read(pipe: &mut Pipe) -> Asked {
    let mut answer = BytesMut::new();
    loop {
        let ended = poll_fn(|context| poll_more(pipe, context, &mut answer)).await;
        // A long answer takes a while to decode.
        let decoded = apart(move || (decode(&answer), answer)).await;
        let Ok((decoded, so_far)) = decoded else {
            return Asked::Refused(GONE.into());
        };
        match decoded {
            Some(Ok(value)) => return Asked::Answered(value),
            Some(Err(line)) => return Asked::Refused(line),
            None if ended => return Asked::Refused(GONE.into()),
            None => answer = so_far,
        }
    }
}

/// Reads all that is there, and waits if there is nothing. Returns whether the node has closed the pipe.
fn poll_more(pipe: &mut Pipe, context: &Context<'_>, answer: &mut BytesMut) -> Poll<bool> {
    let before = answer.len();
    let mut chunk = [0; READ_BYTES];
    loop {
        match pipe.poll_read(context, &mut chunk) {
            Poll::Ready(Ok(count @ 1..)) => answer.extend_from_slice(&chunk[..count]),
            Poll::Ready(_) => return Poll::Ready(true),
            Poll::Pending if answer.len() == before => return Poll::Pending,
            Poll::Pending => return Poll::Ready(false),
        }
    }
}

const GONE: &str =
    "UNKNOWN the connection was ended before the answer; the change may have been made";

/// A command in its wire format.
fn frame(words: &[Said]) -> Vec<u8> {
    let mut frame = format!("*{}\r\n", words.len()).into_bytes();
    for Said(word) in words {
        frame.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        frame.extend_from_slice(word);
        frame.extend_from_slice(b"\r\n");
    }
    frame
}

/// The answer, or the line of an error, once it is complete.
fn decode(answer: &BytesMut) -> Option<Result<Value, String>> {
    if answer.is_empty() {
        return None;
    }
    let decoded = decode_bytes(&answer.clone().freeze()).ok().flatten();
    decoded.map(|(frame, _)| answer_json(frame))
}
