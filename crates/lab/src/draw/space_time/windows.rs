//! Which stretches of a run are drawn when not all of it fits: its beginning, its end, and what led to
//! a violation or surrounds a fault. Time in which nothing happens is left out first.

/// A stretch of positions, both ends included.
pub(super) type Stretch = (u64, u64);

/// A moment that a reader wants to see, and how much before and after it, as shares of what fits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) at: u64,
    pub(super) before: f64,
    pub(super) after: f64,
}

/// What there is room for, in positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    /// All stretches and the places of the cuts between them.
    pub(super) all: u64,
    /// What one cut takes.
    pub(super) cut: u64,
    /// A time without events that is longer than this may be left out.
    pub(super) idle: u64,
}

/// At most so many stretches are drawn.
const STRETCHES_MAX: usize = 7;

/// Chooses the stretches to draw, in order and apart: all of what happens, if it fits, and else the
/// moments as far as they fit, the first of them first. `events` are in order.
pub(super) fn choose(events: &[u64], moments: &[Moment], room: Room) -> Vec<Stretch> {
    let mut windows = Windows {
        active: active(events, room.idle),
        room,
        drawn: Vec::new(),
    };
    let all = windows.joined(&windows.active);
    if windows.fits(&all) {
        return all;
    }
    let share = |share: f64| (room.all as f64 * share) as u64;
    for moment in moments {
        windows.add(|windows| {
            let mut wanted = windows.backward(moment.at, share(moment.before));
            wanted.extend(windows.forward(moment.at, share(moment.after)));
            wanted
        });
    }
    // What is left goes to the beginning.
    if let Some(&first) = events.first() {
        for percent in (40..=100).step_by(2) {
            windows.add(|windows| windows.forward(first, share(f64::from(percent) / 100.0)));
        }
    }
    windows.drawn
}

#[derive(Debug)]
struct Windows {
    active: Vec<Stretch>,
    room: Room,
    drawn: Vec<Stretch>,
}

/// The stretches in which something happens.
fn active(events: &[u64], idle: u64) -> Vec<Stretch> {
    let mut active: Vec<Stretch> = Vec::new();
    for &event in events {
        match active.last_mut() {
            Some(last) if event - last.1 <= idle => last.1 = event,
            _ => active.push((event, event)),
        }
    }
    // Room around a lone event, so that it is not drawn on the edge of a cut.
    let pad = idle / 6;
    let padded = |(from, until): Stretch| (from.saturating_sub(pad), until.saturating_add(pad));
    let mut active: Vec<Stretch> = active.into_iter().map(padded).collect();
    if let (Some(first), Some(&event)) = (active.first_mut(), events.first()) {
        first.0 = event;
    }
    if let (Some(last), Some(&event)) = (active.last_mut(), events.last()) {
        last.1 = event;
    }
    active
}

impl Windows {
    /// Draws more, if it fits.
    fn add(&mut self, wanted: impl Fn(&Windows) -> Vec<Stretch>) {
        let mut more = self.drawn.clone();
        more.extend(wanted(self));
        let more = self.joined(&more);
        if self.fits(&more) {
            self.drawn = more;
        }
    }

    fn fits(&self, stretches: &[Stretch]) -> bool {
        let cuts = (stretches.len() as u64).saturating_sub(1);
        let drawn = stretches
            .iter()
            .fold(cuts.saturating_mul(self.room.cut), |sum, (from, until)| {
                sum.saturating_add(until - from)
            });
        drawn <= self.room.all && stretches.len() <= STRETCHES_MAX
    }

    /// In order, and joined where a cut would hide hardly more than it takes.
    fn joined(&self, stretches: &[Stretch]) -> Vec<Stretch> {
        let mut sorted = stretches.to_vec();
        sorted.sort_unstable();
        let mut joined: Vec<Stretch> = Vec::new();
        for (from, until) in sorted {
            match joined.last_mut() {
                Some(last) if from.saturating_sub(last.1) < 2 * self.room.cut => {
                    last.1 = last.1.max(until);
                }
                _ => joined.push((from, until)),
            }
        }
        joined
    }

    /// So much of what happens from a moment on.
    fn forward(&self, from: u64, mut amount: u64) -> Vec<Stretch> {
        let mut found = Vec::new();
        for &(start, end) in self.active.iter().filter(|stretch| stretch.1 >= from) {
            let start = start.max(from);
            let end = end.min(start.saturating_add(amount));
            found.push((start, end));
            amount -= end - start;
            if amount == 0 {
                break;
            }
        }
        found
    }

    /// So much of what happened until a moment.
    fn backward(&self, until: u64, mut amount: u64) -> Vec<Stretch> {
        let mut found = Vec::new();
        for &(start, end) in self
            .active
            .iter()
            .rev()
            .filter(|stretch| stretch.0 <= until)
        {
            let end = end.min(until);
            let start = start.max(end.saturating_sub(amount));
            found.push((start, end));
            amount -= end - start;
            if amount == 0 {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::gallery::Lcg;

    const ROOM: Room = Room {
        all: 1_000,
        cut: 50,
        idle: 60,
    };

    fn moment(at: u64, before: f64, after: f64) -> Moment {
        Moment { at, before, after }
    }

    #[test]
    fn what_fits_is_drawn_whole_but_for_idle_time() {
        let events = [0, 50, 100, 900, 950, 9_000];
        let drawn = choose(&events, &[], ROOM);
        assert_eq!(drawn, [(0, 110), (890, 960), (8_990, 9_000)]);
    }

    #[test]
    fn a_long_run_keeps_its_beginning_its_end_and_its_moments() {
        let events: Vec<u64> = (0..100_000).step_by(20).collect();
        let last = *events.last().expect("events");
        let moments = [
            moment(0, 0.0, 0.3),
            moment(last, 0.15, 0.0),
            moment(40_000, 0.2, 0.05),
        ];
        let drawn = choose(&events, &moments, ROOM);
        assert_eq!(drawn.len(), 3);
        assert_eq!(drawn[0].0, 0);
        assert_eq!(drawn[1], (39_800, 40_050));
        assert_eq!(drawn[2], (last - 150, last));
        assert!(drawn[0].1 > 450, "the beginning has what is left");
    }

    #[test]
    fn stretches_are_in_order_apart_and_fit() {
        for seed in 0..200 {
            let mut random = Lcg(seed);
            let mut events: Vec<u64> = (0..300).map(|_| random.below(1 << 14)).collect();
            events.sort_unstable();
            let moments: Vec<Moment> = (0..6)
                .map(|_| moment(random.below(1 << 14), 0.2, 0.1))
                .collect();
            let drawn = choose(&events, &moments, ROOM);
            assert!(!drawn.is_empty());
            let cuts = drawn.len() as u64 - 1;
            let sum: u64 = drawn.iter().map(|(from, until)| until - from).sum();
            assert!(sum + cuts * ROOM.cut <= ROOM.all, "seed {seed}: {drawn:?}");
            for pair in drawn.windows(2) {
                assert!(pair[1].0 - pair[0].1 >= 2 * ROOM.cut, "seed {seed}");
            }
        }
    }
}
