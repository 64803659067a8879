//! A step is written as bytes, and read again under limits.
//!
//! ```text
//! what     1  the kind of its input in two bits, then flags: another member than the step before, sends, tells, timers
//! at       v  milliseconds since the step before (v: a number in groups of 7 bits, the lowest first)
//! member   v  where the flag says so
//! input    …  Ask: v, a label; Packet: v, from, then as a message that is sent; Fire: v, the timer
//! sends    …  where the flag says so: v, how many; each v, to, then v, its length, then the message
//! tells    …  where the flag says so: v, how many; each v, a label
//! timers   …  where the flag says so: v, how many; each v, the timer
//! ```

use super::{RecordedInput, RecordedStep};
use crate::{NodeId, PACKET_BYTES_MAX, Timer};

pub(super) const START: u8 = 0;
pub(super) const ASK: u8 = 1;
pub(super) const PACKET: u8 = 2;
pub(super) const FIRE: u8 = 3;
const KIND: u8 = 3;
pub(super) const OTHER_MEMBER: u8 = 1 << 2;
pub(super) const SENDS: u8 = 1 << 3;
pub(super) const TELLS: u8 = 1 << 4;
pub(super) const TIMERS: u8 = 1 << 5;
const FLAGS: u8 = OTHER_MEMBER | SENDS | TELLS | TIMERS;

pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads steps, whatever the bytes are.
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
    members: usize,
    labels: &'a [String],
}

impl<'a> Bytes<'a> {
    pub(super) fn new(rest: &'a [u8], members: usize, labels: &'a [String]) -> Bytes<'a> {
        Bytes {
            rest,
            members,
            labels,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next step; the one before was at this time, by this member.
    pub(super) fn step(&mut self, before: u64, member: NodeId) -> Option<RecordedStep> {
        let what = self.byte()?;
        if what & !(KIND | FLAGS) != 0 {
            return None;
        }
        let at = before.checked_add(self.number()?)?;
        let member = match what & OTHER_MEMBER {
            0 => member,
            _ => self.node()?,
        };
        let input = match what & KIND {
            START => RecordedInput::Start,
            ASK => RecordedInput::Ask(self.label()?),
            PACKET => RecordedInput::Packet {
                from: self.node()?,
                message: self.message()?,
            },
            _ => RecordedInput::Fire(Timer(self.number()?)),
        };
        Some(RecordedStep {
            at,
            member,
            input,
            sends: self.list(what & SENDS, |bytes| {
                Some((bytes.node()?, bytes.message()?))
            })?,
            tells: self.list(what & TELLS, Bytes::label)?,
            timers: self.list(what & TIMERS, |bytes| Some(Timer(bytes.number()?)))?,
        })
    }

    fn list<T>(
        &mut self,
        flag: u8,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let length = match flag {
            0 => 0,
            _ => self.number()?,
        };
        // Every item has at least a byte, so a length that lies ends with the bytes.
        (0..length).map(|_| item(self)).collect()
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn node(&mut self) -> Option<NodeId> {
        let number = self.number()?;
        (number < self.members as u64).then_some(NodeId(number as u32))
    }

    fn label(&mut self) -> Option<String> {
        let number = usize::try_from(self.number()?).ok()?;
        self.labels.get(number).cloned()
    }

    fn message(&mut self) -> Option<Vec<u8>> {
        let length = usize::try_from(self.number()?).ok()?;
        let message = self.rest.get(..length.min(PACKET_BYTES_MAX))?.to_vec();
        self.rest = &self.rest[message.len()..];
        (message.len() == length).then_some(message)
    }
}
