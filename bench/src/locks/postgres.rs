//! PostgreSQL's session-level advisory locks, as prepared statements.

use std::net::TcpStream;

use super::dialect::{Answer, Dialect};
use crate::wire::postgres;

#[derive(Debug)]
pub(crate) struct Postgres {
    key: usize,
    lock: Vec<u8>,
    unlock: Vec<u8>,
    leaving: bool,
}

impl Postgres {
    pub(crate) fn new(key: usize) -> Postgres {
        Postgres {
            key,
            lock: call("lock"),
            unlock: call("unlock"),
            leaving: false,
        }
    }
}

impl Dialect for Postgres {
    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        postgres::greet(stream)?;
        let query = |name: &str| format!("SELECT pg_advisory_{name}({})", self.key);
        let (lock, unlock) = (query("lock"), query("unlock"));
        postgres::prepare(stream, &[("lock", &lock), ("unlock", &unlock)])
    }

    fn lock(&mut self, out: &mut Vec<u8>) {
        self.leaving = false;
        out.extend_from_slice(&self.lock);
    }

    fn unlock(&mut self, out: &mut Vec<u8>) {
        self.leaving = true;
        out.extend_from_slice(&self.unlock);
    }

    fn read(&mut self, input: &[u8], _: &mut Vec<u8>) -> Result<Option<(usize, Answer)>, String> {
        let Some(ready) = postgres::answer(input)? else {
            return Ok(None);
        };
        // The row of a lock is empty, that of an unlock says whether there was one.
        match (self.leaving, ready.row.as_deref()) {
            (false, Some(_)) => Ok(Some((ready.length, Answer::Entered(None)))),
            (true, Some([[1]])) => Ok(Some((ready.length, Answer::Left))),
            (_, row) => Err(format!("PostgreSQL gave {row:?} for a lock")),
        }
    }
}

fn call(name: &str) -> Vec<u8> {
    let mut say = Vec::new();
    postgres::execute(&mut say, name, &[]);
    postgres::sync(&mut say);
    say
}
