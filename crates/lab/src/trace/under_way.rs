//! The messages under way in a replay, link by link, and when each of them may arrive.

use rustc_hash::FxHashMap;
use testigo_sim::Time;

use crate::stage::Flight;

/// Messages by number, and by link in the order of sending.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    sent: FxHashMap<u64, Sent>,
    links: FxHashMap<(u32, u32), Link>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) flight: Flight,
    pub(super) at: Time,
    pub(super) copied: bool,
    pub(super) lied: bool,
}

#[derive(Debug, Default)]
struct Link {
    /// In the order in which they must arrive, where that counts.
    numbers: Vec<u64>,
    /// When the last one arrived, or was lost on arrival.
    last: Time,
}

const NOT_UNDER_WAY: &str = "no such message under way";

impl UnderWay {
    pub(super) fn sent(&mut self, at: Time, flight: Flight) {
        let link = self.links.entry((flight.from.0, flight.to.0)).or_default();
        link.numbers.push(flight.number);
        self.put(at, flight);
    }

    fn put(&mut self, at: Time, flight: Flight) {
        let sent = Sent {
            flight,
            at,
            copied: false,
            lied: false,
        };
        self.sent.insert(flight.number, sent);
    }

    /// A copy comes right behind its original.
    pub(super) fn copied(&mut self, of: u64, copy: Flight) {
        let Some(original) = self.sent.get_mut(&of) else {
            return;
        };
        original.copied = true;
        let at = original.at;
        let link = self.links.entry((copy.from.0, copy.to.0)).or_default();
        let place = link.numbers.iter().position(|&number| number == of);
        link.numbers
            .insert(place.map_or(0, |place| place + 1), copy.number);
        self.put(at, copy);
        if let Some(copy) = self.sent.get_mut(&copy.number) {
            copy.copied = true;
        }
    }

    pub(super) fn lied(&mut self, number: u64) {
        if let Some(sent) = self.sent.get_mut(&number) {
            sent.lied = true;
        }
    }

    pub(super) fn of(&self, number: u64) -> Result<Sent, String> {
        self.sent
            .get(&number)
            .copied()
            .ok_or_else(|| NOT_UNDER_WAY.into())
    }

    pub(super) fn flight(&self, number: u64) -> Result<Flight, String> {
        Ok(self.of(number)?.flight)
    }

    /// A message that was sent earlier on the same link, and has not arrived.
    pub(super) fn before(&self, number: u64) -> Option<u64> {
        let flight = self.sent.get(&number)?.flight;
        let first = *self
            .links
            .get(&(flight.from.0, flight.to.0))?
            .numbers
            .first()?;
        (first != number).then_some(first)
    }

    /// When something last arrived on the link of a message.
    pub(super) fn last_arrival(&self, flight: Flight) -> Time {
        let link = self.links.get(&(flight.from.0, flight.to.0));
        link.map_or(Time::ZERO, |link| link.last)
    }

    /// A message was at the end of its way.
    pub(super) fn arrived(&mut self, at: Time, flight: Flight) {
        self.links
            .entry((flight.from.0, flight.to.0))
            .or_default()
            .last = at;
    }

    /// It is under way no more.
    pub(super) fn take(&mut self, number: u64) -> Result<Flight, String> {
        let sent = self.sent.remove(&number).ok_or(NOT_UNDER_WAY)?;
        let flight = sent.flight;
        if let Some(link) = self.links.get_mut(&(flight.from.0, flight.to.0)) {
            link.numbers.retain(|&other| other != number);
        }
        Ok(flight)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Sent> {
        self.sent.values()
    }
}
