//! Clients that take a slot of a pool, or a permit of a semaphore made of etcd keys.

use std::net::TcpStream;

use crate::locks::dialect::{Answer, Dialect};
use crate::locks::etcd::grant_lease;
use crate::locks::grpc::{Grpc, all_bytes, bytes_field, find_bytes, number_field};
use crate::wire::resp::{Reply, command, reply};

/// `POOL TAKE` and `POOL GIVE`.
#[derive(Debug)]
pub(crate) struct Slots {
    pool: String,
    take: Vec<u8>,
    slot: String,
}

impl Slots {
    pub(crate) fn new(pool: &str) -> Slots {
        Slots {
            pool: pool.to_owned(),
            take: command(&["POOL", "TAKE", pool]),
            slot: String::new(),
        }
    }
}

impl Dialect for Slots {
    fn lock(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.take);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&command(&["POOL", "GIVE", &self.pool, &self.slot]));
    }

    fn read(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        let Some((length, said)) = reply(input)? else {
            return Ok(None);
        };
        let answer = match (&said, said.list()) {
            (Reply::Said("OK"), _) => Answer::Left,
            (Reply::Null, _) => Answer::Refused,
            (_, [Reply::Bytes(slot), Reply::Number(fence)]) => {
                self.slot = String::from_utf8_lossy(slot).into_owned();
                let slot = self.slot.parse();
                let slot = slot.map_err(|_| format!("{} is not a slot number", self.slot))?;
                Answer::Took(slot, *fence)
            }
            _ => return Err(format!("the node said {said:?}")),
        };
        Ok(Some((length, answer)))
    }
}

/// The usual recipe: one transaction puts a key with a lease under a common prefix and reads that prefix's keys in the order of
/// their creation; a client whose key is among the first has a permit. Giving it back deletes the key.
#[derive(Debug)]
pub(super) struct Semaphore {
    prefix: String,
    key: String,
    permits: u32,
    lease: u64,
    grpc: Grpc,
    leaving: bool,
}

impl Semaphore {
    /// A client with its own lease, which no other may have.
    pub(super) fn new(name: &str, permits: u32, lease: u64) -> Semaphore {
        Semaphore {
            prefix: format!("{name}/"),
            key: format!("{name}/{lease}"),
            permits,
            lease,
            grpc: Grpc::default(),
            leaving: false,
        }
    }
}

/// Values in etcd's messages.
const ASCENDING: u64 = 1;
const BY_CREATION: u64 = 2;

impl Dialect for Semaphore {
    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        grant_lease(&mut self.grpc, self.lease, stream)
    }

    fn lock(&mut self, out: &mut Vec<u8>) {
        let mut put = bytes_field(1, self.key.as_bytes());
        put.extend(number_field(3, self.lease));
        let mut range = bytes_field(1, self.prefix.as_bytes());
        // The first key after all that begin with the prefix, which ends with a slash.
        let behind = self.prefix.replace('/', "0");
        range.extend(bytes_field(2, behind.as_bytes()));
        range.extend(number_field(3, u64::from(self.permits)));
        range.extend(number_field(5, ASCENDING));
        range.extend(number_field(6, BY_CREATION));
        range.extend(number_field(8, 1));
        let mut transaction = bytes_field(2, &bytes_field(2, &put));
        transaction.extend(bytes_field(2, &bytes_field(1, &range)));
        self.leaving = false;
        self.grpc.call("/etcdserverpb.KV/Txn", &transaction, out);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        let delete = bytes_field(1, self.key.as_bytes());
        self.leaving = true;
        self.grpc.call("/etcdserverpb.KV/DeleteRange", &delete, out);
    }

    fn read(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        let Some((used, message)) = self.grpc.read(input, out)? else {
            return Ok(None);
        };
        let answer = match message {
            None => Answer::Aside,
            Some(_) if self.leaving => Answer::Left,
            Some(message) => {
                let ranges = all_bytes(message, 3).filter_map(|answer| find_bytes(answer, 1));
                let mut keys = ranges.flat_map(|range| all_bytes(range, 2));
                let inside = keys.any(|row| find_bytes(row, 1) == Some(self.key.as_bytes()));
                match inside {
                    true => Answer::Entered(None),
                    false => return Err("etcd has fewer permits than clients".into()),
                }
            }
        };
        Ok(Some((used, answer)))
    }
}
