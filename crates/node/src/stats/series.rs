//! What happened when: the last hour by minutes, the day before that by hours, and the last seconds for rates. A bucket
//! exists only for a time in which something happened, so an idle queue costs nothing.

use std::collections::VecDeque;

/// How many minutes are kept one by one.
pub(crate) const MINUTES: u64 = 60;
/// How many hours are kept, including the present one.
pub(crate) const HOURS: u64 = 24;

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 3_600_000;

/// The contents of a bucket: sums.
pub(crate) trait Sums: Default {
    fn add(&mut self, other: &Self);
}

impl Sums for u64 {
    fn add(&mut self, other: &u64) {
        *self += other;
    }
}

/// Sums by minute and hour, in ascending order.
#[derive(Debug)]
pub(crate) struct Series<T> {
    minutes: VecDeque<(u64, T)>,
    hours: VecDeque<(u64, T)>,
}

impl<T> Default for Series<T> {
    fn default() -> Series<T> {
        Series {
            minutes: VecDeque::new(),
            hours: VecDeque::new(),
        }
    }
}

impl<T: Sums> Series<T> {
    /// The present bucket.
    pub(crate) fn now(&mut self, now: u64) -> &mut T {
        let minute = now / MINUTE_MS;
        if self.minutes.back().is_none_or(|(last, _)| *last != minute) {
            self.turn(minute);
            self.minutes.push_back((minute, T::default()));
        }
        let at = self.minutes.len() - 1;
        &mut self.minutes[at].1
    }

    /// Moves minutes that are over into their hours, and forgets hours that are too old.
    fn turn(&mut self, minute: u64) {
        while let Some((old, _)) = self.minutes.front()
            && *old + MINUTES <= minute
        {
            let Some((old, sums)) = self.minutes.pop_front() else {
                break;
            };
            let hour = old / 60;
            if self.hours.back().is_none_or(|(last, _)| *last != hour) {
                self.hours.push_back((hour, T::default()));
            }
            if let Some((_, into)) = self.hours.back_mut() {
                into.add(&sums);
            }
        }
        while self
            .hours
            .front()
            .is_some_and(|(hour, _)| *hour + HOURS <= minute / 60)
        {
            self.hours.pop_front();
        }
    }

    /// The sums since a time from [`window_start`].
    pub(crate) fn since(&self, start: u64) -> T {
        let mut sums = T::default();
        let hours = self
            .hours
            .iter()
            .filter(|(hour, _)| hour * HOUR_MS >= start);
        let minutes = self.minutes.iter();
        let minutes = minutes.filter(|(minute, _)| minute * MINUTE_MS >= start);
        for (_, bucket) in hours.chain(minutes) {
            sums.add(bucket);
        }
        sums
    }
}

impl<T: Sums> Series<T> {
    /// Spreads a span of time that ends now over the buckets that it touches.
    pub(crate) fn spend(&mut self, since: u64, now: u64, add: impl Fn(&mut T, u64)) {
        let minute = now / MINUTE_MS;
        if since / MINUTE_MS == minute {
            return add(self.now(now), now.saturating_sub(since));
        }
        self.turn(minute);
        let kept = (minute + 1).saturating_sub(MINUTES) * MINUTE_MS;
        let oldest = (minute / 60 + 1).saturating_sub(HOURS) * HOUR_MS;
        spread(
            &mut self.hours,
            HOUR_MS,
            since.max(oldest),
            now.min(kept),
            &add,
        );
        spread(&mut self.minutes, MINUTE_MS, since.max(kept), now, &add);
    }
}

fn spread<T: Sums>(
    buckets: &mut VecDeque<(u64, T)>,
    width: u64,
    from: u64,
    to: u64,
    add: impl Fn(&mut T, u64),
) {
    if from >= to {
        return;
    }
    for nth in from / width..=(to - 1) / width {
        let at = buckets.binary_search_by_key(&nth, |(number, _)| *number);
        let at = at.unwrap_or_else(|at| {
            buckets.insert(at, (nth, T::default()));
            at
        });
        let (start, end) = ((nth * width).max(from), ((nth + 1) * width).min(to));
        add(&mut buckets[at].1, end - start);
    }
}

/// Where a window of this many milliseconds begins: at a whole minute, or beyond an hour at a whole hour, so that it is at
/// least as long as requested; never before the node's start.
pub(crate) fn window_start(now: u64, span_ms: u64) -> u64 {
    let begin = now.saturating_sub(span_ms);
    let by_minutes = begin / MINUTE_MS * MINUTE_MS;
    let kept = (now / MINUTE_MS + 1).saturating_sub(MINUTES) * MINUTE_MS;
    if by_minutes >= kept {
        return by_minutes;
    }
    let oldest = (now / HOUR_MS + 1).saturating_sub(HOURS) * HOUR_MS;
    (begin / HOUR_MS * HOUR_MS).max(oldest)
}

/// How many seconds a rate covers.
pub(crate) const RATE_SECONDS: u64 = 10;
const RATE_SLOTS: usize = RATE_SECONDS as usize + 2;

/// How many times something happened in each of the last seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    second: u64,
    counts: [u32; RATE_SLOTS],
}

impl Rate {
    pub(crate) fn count(&mut self, now: u64) {
        let second = now / 1000;
        if second > self.second {
            let gone = (second - self.second).min(RATE_SLOTS as u64);
            for nth in 1..=gone {
                self.counts[slot(self.second + nth)] = 0;
            }
            if gone == RATE_SLOTS as u64 {
                self.counts = [0; RATE_SLOTS];
            }
            self.second = second;
        }
        let count = &mut self.counts[slot(second)];
        *count = count.saturating_add(1);
    }

    /// The rate over the last whole seconds.
    pub(crate) fn per_second(&self, now: u64) -> f64 {
        let second = now / 1000;
        let sum: u64 = (second.saturating_sub(RATE_SECONDS)..second)
            .filter(|at| *at <= self.second && at + RATE_SLOTS as u64 > self.second)
            .map(|at| u64::from(self.counts[slot(at)]))
            .sum();
        sum as f64 / RATE_SECONDS as f64
    }
}

fn slot(second: u64) -> usize {
    (second % RATE_SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_whole_minutes_and_then_whole_hours() {
        let mut series = Series::<u64>::default();
        let now = 30 * HOUR_MS + 5 * MINUTE_MS + 7;
        for minute in 0..=now / MINUTE_MS {
            *series.now(minute * MINUTE_MS) += 1;
        }
        let counted = |span| {
            let start = window_start(now, span);
            (series.since(start), (now - start) / MINUTE_MS + 1)
        };
        for (span, minutes) in [
            (0, 1),
            (5 * MINUTE_MS, 6),
            (59 * MINUTE_MS, 60),
            (3 * HOUR_MS, 3 * 60 + 6),
        ] {
            assert_eq!(counted(span), (minutes, minutes), "{span}");
        }
        // Older than a day is forgotten.
        let (sum, minutes) = counted(1000 * HOUR_MS);
        assert_eq!((sum, minutes), (23 * 60 + 6, 23 * 60 + 6));
        assert!(series.minutes.len() as u64 <= MINUTES && series.hours.len() as u64 <= HOURS);
    }

    #[test]
    fn a_span_is_spread_over_its_minutes() {
        let mut series = Series::<u64>::default();
        series.spend(30_000, 2 * MINUTE_MS + 500, |sum, ms| *sum += ms);
        assert_eq!(series.since(window_start(2 * MINUTE_MS + 500, 0)), 500);
        assert_eq!(series.since(MINUTE_MS), 60_500);
        assert_eq!(series.since(0), 90_500);
        let mut idle = Series::<u64>::default();
        idle.spend(0, 90 * MINUTE_MS, |sum, ms| *sum += ms);
        assert_eq!(idle.since(0), 90 * MINUTE_MS);
        let last = window_start(90 * MINUTE_MS, 5 * MINUTE_MS);
        assert_eq!(idle.since(last), 5 * MINUTE_MS);
    }

    #[test]
    fn a_rate_is_that_of_the_last_whole_seconds() {
        let mut rate = Rate::default();
        for ms in (0..20_000).step_by(100) {
            rate.count(ms);
        }
        assert!((rate.per_second(20_000) - 10.0).abs() < 1e-9);
        assert!((rate.per_second(25_500) - 5.0).abs() < 1e-9);
        assert!(rate.per_second(40_000).abs() < 1e-9);
        rate.count(40_000);
        assert!((rate.per_second(41_000) - 0.1).abs() < 1e-9);
    }
}
