//! Rows of all members, merged one slice at a time, because there may be very many.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::BytesMut;
use testigo_core::{Refusal, Word};

use super::merge::{Key, broken, end, head, key};
use crate::house::Slice;
use crate::wire::{array_head, refuse};

/// The rows of all members, by their first value.
#[derive(Debug)]
pub(super) struct MergedRows {
    /// What they are, for the refusal of too many.
    what: &'static str,
    rows_max: usize,
    replies: Vec<Vec<u8>>,
    /// Which reply is read, how many of its rows are left, and where the next one begins.
    reading: usize,
    left: Option<(usize, usize)>,
    /// By key and then in the order in which they were read: the reply and the bytes.
    rows: BTreeMap<(Key, usize), (usize, Range<usize>)>,
    written: Option<BytesMut>,
}

impl MergedRows {
    pub(super) fn new(what: &'static str, rows_max: usize, replies: Vec<Vec<u8>>) -> MergedRows {
        MergedRows {
            what,
            rows_max,
            replies,
            reading: 0,
            left: None,
            rows: BTreeMap::new(),
            written: None,
        }
    }

    /// Goes on; returns the merged array when it is complete. If a reply is an error, that is the answer.
    pub(super) fn slice(&mut self, slice: &mut Slice) -> Result<Option<BytesMut>, Refusal> {
        while slice.has_room() {
            slice.spend(1);
            let Some(reply) = self.replies.get(self.reading) else {
                let bytes = self
                    .written
                    .get_or_insert_with(|| array_head(self.rows.len()));
                let Some((_, (reply, row))) = self.rows.pop_first() else {
                    return Ok(self.written.take());
                };
                bytes.extend_from_slice(&self.replies[reply][row]);
                continue;
            };
            if reply.starts_with(b"-") {
                return Ok(Some(BytesMut::from(&reply[..])));
            }
            let (left, at) = match self.left {
                Some(left) => left,
                None => head(reply).ok_or_else(broken)?,
            };
            if left == 0 {
                if at != reply.len() {
                    return Err(broken());
                }
                (self.reading, self.left) = (self.reading + 1, None);
                continue;
            }
            let next = end(reply, at, 0).ok_or_else(broken)?;
            let row = reply.get(at..next).ok_or_else(broken)?;
            // Sessions and queues are maps, whose first pair names them.
            let key_at = usize::from(!matches!(self.what, "gates" | "elections"));
            let key = key(row, key_at).ok_or_else(broken)?;
            self.rows
                .insert((key, self.rows.len()), (self.reading, at..next));
            self.left = Some((left - 1, next));
            if self.rows.len() > self.rows_max {
                let (what, most) = (self.what, self.rows_max);
                let why = format!("there are more {what} than the limit list_rows of {most}");
                return Err(refuse(Word::Limit, why));
            }
        }
        Ok(None)
    }
}
