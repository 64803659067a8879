//! etcd's lock service over gRPC: `Lock` with a lease, and `Unlock` of the key that it gave.

use std::net::TcpStream;

use super::dialect::{Answer, Dialect};
use super::grpc::{Grpc, bytes_field, find_bytes, number_field};
use crate::wire::converse;

#[derive(Debug)]
pub(crate) struct Etcd {
    name: String,
    lease: u64,
    grpc: Grpc,
    key: Vec<u8>,
    leaving: bool,
}

/// Longer than any measurement, so that nothing need be kept alive.
const LEASE_SECONDS: u64 = 600;

impl Etcd {
    /// A client of its own lease, which must be like no other.
    pub(crate) fn new(name: &str, lease: u64) -> Etcd {
        Etcd {
            name: name.to_owned(),
            lease,
            grpc: Grpc::default(),
            key: Vec::new(),
            leaving: false,
        }
    }
}

/// Opens a connection, and a lease of its own.
pub(crate) fn grant_lease(
    grpc: &mut Grpc,
    lease: u64,
    stream: &mut TcpStream,
) -> Result<(), String> {
    let mut say = Vec::new();
    grpc.open(&mut say);
    let mut grant = number_field(1, LEASE_SECONDS);
    grant.extend(number_field(2, lease));
    grpc.call("/etcdserverpb.Lease/LeaseGrant", &grant, &mut say);
    let (mut at, mut over, mut reply) = (0, false, Vec::new());
    converse(stream, &say, |heard| {
        while let Some((used, message)) = grpc.read(&heard[at..], &mut reply)? {
            at += used;
            over |= message.is_some();
        }
        Ok(over)
    })?;
    // What the connection wants acknowledged.
    converse(stream, &reply, |_| Ok(true))
}

impl Dialect for Etcd {
    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        grant_lease(&mut self.grpc, self.lease, stream)
    }

    fn lock(&mut self, out: &mut Vec<u8>) {
        let mut lock = bytes_field(1, self.name.as_bytes());
        lock.extend(number_field(2, self.lease));
        self.leaving = false;
        self.grpc.call("/v3lockpb.Lock/Lock", &lock, out);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        let unlock = bytes_field(1, &self.key);
        self.leaving = true;
        self.grpc.call("/v3lockpb.Lock/Unlock", &unlock, out);
    }

    fn read(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        let Some((used, message)) = self.grpc.read(input, out)? else {
            return Ok(None);
        };
        let answer = match message {
            None => Answer::Aside,
            Some(_) if self.leaving => Answer::Left,
            Some(message) => {
                let key = find_bytes(message, 2).ok_or("etcd gave a lock without its key")?;
                self.key = key.to_owned();
                Answer::Entered(None)
            }
        };
        Ok(Some((used, answer)))
    }
}
