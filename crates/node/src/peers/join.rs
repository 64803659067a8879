//! The conversation in which a node asks to become a member. Any member answers: it says at once whether the number is free
//! and gives the addresses of the others, and makes sure that the leader hears of the newcomer. The newcomer repeats its
//! request until it is in.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use testigo_core::{Address, ClusterId, Newcomer};

use super::dial::{DIAL_MAX, DialError, dial};
use super::greeting::Purpose;
use super::identity::Identity;

/// The longest ask.
pub(super) const ASK_BYTES_MAX: usize = 2 << 10;

/// The longest answer: all addresses of all nodes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// A member's answer to a newcomer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum JoinAnswer {
    /// The number is the newcomer's, and the leader will let it in.
    Welcome(Welcome),
    /// The number's starts were used up to this one; come back with a later one.
    StartAbove(u64),
    /// It can never be a member.
    Refused(String),
    /// Not now.
    Later(String),
}

/// The cluster that a newcomer joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Welcome {
    /// Its identity.
    pub(crate) cluster: ClusterId,
    /// The addresses of its nodes.
    pub(crate) addresses: Vec<(u64, Address)>,
}

/// Asks the node at an address.
pub(crate) fn ask_to_join(
    identity: &Identity,
    address: &str,
    newcomer: &Newcomer,
) -> Result<JoinAnswer, String> {
    let answer = ask(identity, address, newcomer).map_err(|error| error.to_string())?;
    let answer = postcard::from_bytes(&answer);
    answer.map_err(|error| format!("its answer cannot be read: {error}"))
}

fn ask(identity: &Identity, address: &str, newcomer: &Newcomer) -> Result<Vec<u8>, DialError> {
    let mut dialled = dial(identity, address, Purpose::Join, 0)?;
    let deadline = Instant::now() + DIAL_MAX;
    let ask = postcard::to_allocvec(newcomer).expect("plain data can be written down");
    dialled.say(&ask, deadline)?;
    let answer = dialled.frame(ANSWER_BYTES_MAX, deadline)?;
    dialled.stream.end();
    Ok(answer.into())
}

/// Answers a newcomer.
pub(super) fn answer(ask: &[u8], answers: impl FnOnce(Newcomer) -> JoinAnswer) -> Vec<u8> {
    let answer = match postcard::from_bytes(ask) {
        Ok(newcomer) => answers(newcomer),
        Err(error) => JoinAnswer::Refused(format!("what it asks cannot be read: {error}")),
    };
    postcard::to_allocvec(&answer).expect("plain data can be written down")
}
