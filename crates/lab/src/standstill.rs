//! When a run has stopped getting anywhere: messages and timers go on, and no user gets in or out.

use testigo_sim::Time;

/// Notices that nothing has moved for long. While an arrival, an exit or a change of the world is planned,
/// something may still come of it, and that time does not count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standstill {
    /// Entries and exits when somebody last moved, and when that was.
    moves: u64,
    events: u64,
    at: Time,
    events_max: u64,
    span_max: Time,
}

impl Standstill {
    /// An algorithm that is getting somewhere sends a few messages for each pair of nodes, and takes a few
    /// times as long as one message round all of them. These are far beyond that.
    const EVENTS_MAX: u64 = 1_000;
    const EVENTS_PER_PAIR_MAX: u64 = 10;
    const ROUNDS_MAX: u64 = 1_000;

    pub(crate) fn new(nodes: usize, delay_bound: Time) -> Standstill {
        let nodes = nodes as u64;
        let pairs = nodes.saturating_mul(nodes);
        let rounds = Self::ROUNDS_MAX.saturating_mul(nodes);
        Standstill {
            moves: 0,
            events: 0,
            at: Time::ZERO,
            events_max: Self::EVENTS_MAX + pairs.saturating_mul(Self::EVENTS_PER_PAIR_MAX),
            span_max: Time(rounds.saturating_mul(delay_bound.0)),
        }
    }

    /// Looks at a run after so many events; says why it is getting nowhere.
    pub(crate) fn look(
        &mut self,
        now: Time,
        events: u64,
        moves: u64,
        something_is_planned: bool,
    ) -> Option<String> {
        if something_is_planned || moves != self.moves {
            (self.moves, self.events, self.at) = (moves, events, now);
            return None;
        }
        let (since, idle) = (now.since(self.at), events - self.events);
        let stands = idle >= self.events_max && since >= self.span_max;
        stands.then(|| {
            let at = self.at;
            format!("no progress: {idle} messages and timers since {at}, and nobody got in or out")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_stands_still_when_nothing_moves_for_long() {
        let mut still = Standstill::new(2, Time::units(1));
        let late = Time::units(5_000);
        assert_eq!(still.look(late, 5_000, 1, false), None, "somebody moved");
        assert_eq!(still.look(late + late, 5_100, 1, false), None, "few events");
        assert_eq!(still.look(late, 9_000, 1, false), None, "hardly any time");
        assert_eq!(still.look(late + late, 9_000, 1, true), None, "planned");
        assert_eq!(still.look(late + late, 9_999, 1, false), None);
        let why = still.look(late + late + late, 19_000, 1, false);
        assert!(why.is_some_and(|why| why.contains("since 10000")));
    }
}
