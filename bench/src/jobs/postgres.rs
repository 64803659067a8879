//! A table of jobs in PostgreSQL. A worker takes the oldest row that nobody has with `FOR UPDATE SKIP LOCKED`, works, and
//! deletes the row in the same transaction, so that a worker's death gives its job back and a take waits for no flush.

use std::net::TcpStream;

use super::dialect::{Answer, Dialect};
use crate::wire::postgres::{answer, execute, greet, prepare, query, sync};

#[derive(Debug)]
pub(crate) struct Postgres {
    table: String,
    step: Step,
    held: [u8; 8],
}

#[derive(Debug)]
enum Step {
    Create,
    Take,
    Delete,
}

impl Postgres {
    pub(crate) fn new(table: &str) -> Postgres {
        Postgres {
            table: table.to_owned(),
            step: Step::Create,
            held: [0; 8],
        }
    }
}

impl Dialect for Postgres {
    fn prepare(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let table = &self.table;
        greet(stream)?;
        query(
            stream,
            &format!("CREATE TABLE {table} (id bigserial PRIMARY KEY, body bytea NOT NULL)"),
        )
    }

    fn greet(&mut self, stream: &mut TcpStream) -> Result<(), String> {
        let table = &self.table;
        let oldest = "ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED";
        greet(stream)?;
        prepare(
            stream,
            &[
                ("create", &format!("INSERT INTO {table} (body) VALUES ($1)")),
                ("begin", "BEGIN"),
                ("take", &format!("SELECT id, body FROM {table} {oldest}")),
                ("delete", &format!("DELETE FROM {table} WHERE id = $1")),
                ("commit", "COMMIT"),
            ],
        )
    }

    fn create(&mut self, body: &[u8], out: &mut Vec<u8>) {
        self.step = Step::Create;
        execute(out, "create", &[body]);
        sync(out);
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        self.step = Step::Take;
        execute(out, "begin", &[]);
        execute(out, "take", &[]);
        sync(out);
    }

    fn delete(&mut self, out: &mut Vec<u8>) {
        self.step = Step::Delete;
        execute(out, "delete", &[&self.held]);
        execute(out, "commit", &[]);
        sync(out);
    }

    fn read<'a>(
        &mut self,
        input: &'a [u8],
        _: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String> {
        let Some(ready) = answer(input)? else {
            return Ok(None);
        };
        let answer = match (&self.step, ready.row.as_deref(), ready.said) {
            (Step::Create, None, Some(b"INSERT 0 1\0")) => Answer::Created,
            (Step::Take, None, _) => Answer::Empty,
            (Step::Take, Some([id, body]), _) => {
                self.held = (*id).try_into().map_err(|_| "an id is no bigint")?;
                Answer::Taken(Some(body))
            }
            (Step::Delete, None, Some(b"DELETE 1\0")) => Answer::Deleted,
            (step, row, said) => {
                let said = said.map(String::from_utf8_lossy);
                return Err(format!("PostgreSQL gave {row:?} {said:?} for {step:?}"));
            }
        };
        Ok(Some((ready.length, answer)))
    }
}
