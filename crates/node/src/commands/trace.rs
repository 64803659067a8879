//! What this node has recorded about the instances of a gate whose ownership an algorithm moves.

use bytes::Bytes;
use testigo_core::{Name, Refusal, Word};

use super::table::{Answered, Outcome};
use crate::clock::wall_ms;
use crate::house::{ClientId, House};
use crate::users::Deed;
use crate::wire::{Reply, Words, bad_arg, refuse};

/// Cap on bytes of a record in one answer.
const PIECE_BYTES_MAX: usize = 256 << 10;

impl House {
    /// `TRACE name`: the outlines of all records; `TRACE name node instance from`: a piece of one, from a byte on;
    /// `TRACE name ARRIVALS since`: the stays since this time of day in milliseconds.
    pub(super) fn trace(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let gate = words.text("the gate's name")?;
        self.allow(id, Deed::Show, gate)?;
        let reply = match words.left() {
            0 => self.outlines(gate)?,
            _ if words.keyword("ARRIVALS") => {
                let since: u64 = words.number("the time")?;
                words.end()?;
                self.arrivals(gate, since)?
            }
            _ => {
                self.is_created(gate)?;
                let _node: u64 = words.number("the node")?;
                let instance = instance(words.text("the instance")?)?;
                let from: u64 = words.number("the first byte")?;
                words.end()?;
                self.piece(gate, instance, from)?
            }
        };
        Ok(Answered::Now(reply))
    }

    fn is_created(&self, gate: &str) -> Result<(), Refusal> {
        match self.replicated().gate(gate) {
            Some(_) => Ok(()),
            None => {
                let gate = Name::new(gate)?;
                let why =
                    format!("there is no gate {gate}; only gates that were created have records");
                Err(refuse(Word::NoGate, why))
            }
        }
    }

    /// A row per stay: when its client asked, at which node, of which kind, how long it waited and stayed. The first row has
    /// how many earlier stays are forgotten, and the messages and hand-overs that this node has counted since.
    fn arrivals(&self, gate: &str, since: u64) -> Result<Reply, Refusal> {
        self.is_created(gate)?;
        let Some(estate) = self.services.estate() else {
            return Ok(Reply::Array(Vec::new()));
        };
        let began = wall_ms().saturating_sub(self.now());
        let (arrivals, forgotten) = estate.arrivals(gate);
        let rows = arrivals
            .filter(|arrival| arrival.at + began >= since)
            .map(|arrival| {
                Reply::Array(vec![
                    Reply::number(arrival.at + began),
                    Reply::number(arrival.node),
                    Reply::number(arrival.kind.into()),
                    Reply::number(arrival.waited_ms.into()),
                    Reply::number(arrival.held_ms.into()),
                ])
            });
        let counts = estate.counts_since(gate, since.saturating_sub(began));
        let head = [forgotten, counts.messages, counts.hand_overs];
        let head = Reply::Array(head.map(Reply::number).into());
        Ok(Reply::Array(std::iter::once(head).chain(rows).collect()))
    }

    fn outlines(&self, gate: &str) -> Result<Reply, Refusal> {
        self.is_created(gate)?;
        let (Some(estate), Some(node)) = (self.services.estate(), self.member_number()) else {
            return Ok(Reply::Array(Vec::new()));
        };
        // Nodes count time from their start; people and other nodes use the time of day.
        let began = wall_ms().saturating_sub(self.now());
        let rows = estate.recordings(gate).map(|recording| {
            let mut outline = recording.outline();
            outline.began += began;
            let (shard, number) = outline.head.instance;
            Reply::Array(vec![
                Reply::number(node),
                Reply::text(format!("{shard}.{number}")),
                Reply::number(recording.length() as u64),
                Reply::Text(Bytes::from(outline.to_bytes())),
            ])
        });
        Ok(Reply::Array(rows.collect()))
    }

    fn piece(&self, gate: &str, (shard, number): (u64, u64), from: u64) -> Result<Reply, Refusal> {
        let mut recordings = self
            .services
            .estate()
            .into_iter()
            .flat_map(|estate| estate.recordings(gate));
        let recording = recordings.find(|found| found.head().instance == (shard, number));
        let Some(recording) = recording else {
            let gone = format!("instance {shard}.{number} of gate {gate} is not on record here");
            return Err(refuse(Word::NoGate, gone));
        };
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let piece = recording.piece(from, PIECE_BYTES_MAX);
        Ok(Reply::Text(Bytes::from(piece)))
    }
}

/// The two numbers that name an instance.
fn instance(text: &str) -> Result<(u64, u64), Refusal> {
    let numbers = text.split_once('.');
    let numbers =
        numbers.and_then(|(shard, number)| Some((shard.parse().ok()?, number.parse().ok()?)));
    numbers
        .ok_or_else(|| bad_arg("an instance is two numbers with a dot between, as TRACE shows it"))
}
