//! Reads of what the log says. They wait until the log is applied here as far as it had come anywhere when the read was
//! requested. One read index serves all that wait.

use std::collections::VecDeque;

use super::CALL_MS_MAX;
use crate::commands::{Answered, Known, Outcome};
use crate::house::{Blocked, ClientId, House};
use crate::wire::{KeptCommand, refuse};
use testigo_core::Word;

/// Commands that wait for a read index.
#[derive(Debug, Default)]
pub(super) struct WaitingReads {
    /// Reads that came after the last ask was sent.
    fresh: Vec<Reading>,
    /// The last ask, and the reads that wait for its answer.
    asked: Option<(u64, Vec<Reading>)>,
    next: u64,
    asked_at: u64,
}

#[derive(Debug)]
struct Reading {
    id: ClientId,
    line: KeptCommand,
    due: u64,
}

/// After this long without an answer another read index is requested, in milliseconds.
const ASK_AGAIN_MS: u64 = 500;

impl WaitingReads {
    pub(super) fn forget(&mut self, id: ClientId) {
        self.fresh.retain(|reading| reading.id != id);
        if let Some((_, readings)) = &mut self.asked {
            readings.retain(|reading| reading.id != id);
        }
    }

    pub(super) fn clients(&self) -> impl Iterator<Item = ClientId> {
        self.all().map(|reading| reading.id)
    }

    pub(super) fn due(&self) -> Option<u64> {
        let again = self.asked.as_ref().map(|_| self.asked_at + ASK_AGAIN_MS);
        self.all().map(|reading| reading.due).chain(again).min()
    }

    fn all(&self) -> impl Iterator<Item = &Reading> {
        let asked = self.asked.iter().flat_map(|(_, readings)| readings);
        self.fresh.iter().chain(asked)
    }
}

impl House {
    /// Lets a command wait for the log.
    pub(super) fn read_later(&mut self, id: ClientId, line: KeptCommand) -> Outcome {
        self.check_acts()?;
        if let Some(client) = self.connections.client_mut(id) {
            client.blocked = Some(Blocked::Reading);
        }
        let due = self.now + CALL_MS_MAX;
        self.visits.reads.fresh.push(Reading { id, line, due });
        self.ask_for_reads();
        Ok(Answered::Later)
    }

    /// Asks for a read index if commands wait for one and none is under way.
    pub(super) fn ask_for_reads(&mut self) {
        let now = self.now;
        let reads = &mut self.visits.reads;
        let late: Vec<ClientId> = reads
            .all()
            .filter(|reading| reading.due <= now)
            .map(|reading| reading.id)
            .collect();
        for id in late {
            self.visits.reads.forget(id);
            let why =
                "no majority has answered in time; STALE before the command asks this node alone";
            let refusal = refuse(Word::Unavailable, why);
            self.connections.unblock(id, refusal.into());
        }
        let reads = &mut self.visits.reads;
        let again = reads.asked.is_some() && now >= reads.asked_at + ASK_AGAIN_MS;
        if reads.asked.is_none() && !reads.fresh.is_empty() || again {
            let mut readings = reads
                .asked
                .take()
                .map_or_else(Vec::new, |(_, readings)| readings);
            readings.append(&mut reads.fresh);
            reads.next += 1;
            reads.asked_at = now;
            let batch = reads.next;
            reads.asked = (!readings.is_empty()).then_some((batch, readings));
            if self.visits.reads.asked.is_some() {
                self.ask_read_for_commands(batch);
            }
        }
    }

    /// The log is applied as far as an ask needs.
    pub(in crate::house) fn reads_ready(&mut self, batch: u64) {
        let ready = self
            .visits
            .reads
            .asked
            .take_if(|(asked, _)| *asked == batch);
        let Some((_, readings)) = ready else {
            return;
        };
        let mut readings = VecDeque::from(readings);
        while let Some(Reading { id, line, .. }) = readings.pop_front() {
            self.serve_here(id, &line, Known::Log);
        }
        self.ask_for_reads();
        self.send_replies();
    }
}
