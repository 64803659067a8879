//! `CURSOR c [LIMIT n]`: a list in pages. `CURSOR 0` begins; each page gives the cursor of the next one, and the last page
//! gives `0`. What exists from the first page to the last is in exactly one of them.

use testigo_core::{Refusal, Word};

use crate::house::{Answer, ClientId, House, Rows};
use crate::wire::{Words, bad_arg, refuse};

/// Rows per page unless the client asks for another number.
const ROWS_DEFAULT: u64 = 1_000;
/// The cursor of the beginning, and of the end.
const BEGIN: &str = "0";

/// The requested part of a list.
#[derive(Debug)]
pub(super) struct Page<C> {
    /// It begins after this; `None` for the beginning.
    pub(super) after: Option<C>,
    pub(super) rows_max: usize,
    /// Whether a cursor was given, so that the answer has one.
    pub(super) paged: bool,
}

impl<C> Page<C> {
    /// The rows in the requested form: with the cursor of the next page, or without.
    pub(super) fn answer(&self, rows: &mut Rows, next: Option<String>) -> Answer {
        match self.paged {
            true => rows.page(next.as_deref().unwrap_or(BEGIN)),
            false => rows.array(),
        }
    }
}

impl House {
    /// `[CURSOR c] [LIMIT n]`.
    pub(super) fn page<C>(
        &self,
        words: &mut Words<'_>,
        read: impl Fn(&str) -> Option<C>,
    ) -> Result<Page<C>, Refusal> {
        let cursor = match words.keyword("CURSOR") {
            true => Some(words.text("the cursor")?),
            false => None,
        };
        let after = match cursor {
            None | Some(BEGIN) => None,
            Some(cursor) => Some(read(cursor).ok_or_else(|| {
                let shown: String = cursor.chars().take(64).collect();
                bad_arg(format!(
                    "CURSOR {shown} is none of this list; it is 0, or what the page before has said"
                ))
            })?),
        };
        let rows_max = self.rows_max(words)?;
        if cursor.is_some() && rows_max == 0 {
            return Err(bad_arg("a page of LIMIT 0 leads nowhere; it is at least 1"));
        }
        Ok(Page {
            after,
            rows_max,
            paged: cursor.is_some(),
        })
    }

    /// `[LIMIT n]`.
    fn rows_max(&self, words: &mut Words<'_>) -> Result<usize, Refusal> {
        let rows = match words.keyword("LIMIT") {
            true => words.number("LIMIT")?,
            false => ROWS_DEFAULT,
        };
        let most = self.connections.wire().list_rows;
        match usize::try_from(rows) {
            Ok(rows) if rows <= most => Ok(rows),
            _ => Err(refuse(
                Word::Limit,
                format!("LIMIT {rows} is above the limit list_rows of {most}"),
            )),
        }
    }

    /// Rows for a connection, in its protocol version.
    pub(super) fn rows_for(&self, id: ClientId) -> Rows {
        Rows::new(self.connections[id].protocol)
    }

    /// Refuses a list that is longer than allowed.
    pub(super) fn check_rows(&self, rows: usize, what: &str) -> Result<(), Refusal> {
        let most = self.connections.wire().list_rows;
        match rows <= most {
            true => Ok(()),
            false => Err(refuse(
                Word::Limit,
                format!("there are more {what} than the limit list_rows of {most}"),
            )),
        }
    }
}
