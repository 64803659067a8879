//! Times in fixed buckets: every millisecond up to 3, then two buckets per octave. Mean and spread are exact, and any
//! percentile is right within its bucket.

use serde::{Deserialize, Serialize};

/// Number of buckets; the last holds everything above some 13 hours.
const BUCKETS: usize = 52;

/// How many times fell into each bucket, with their sums.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Told", into = "Told")]
pub(crate) struct Histogram {
    pub(crate) count: u64,
    pub(crate) sum_ms: u64,
    squares: f64,
    pub(crate) max_ms: u64,
    buckets: [u32; BUCKETS],
}

/// Its form when sent to another node.
#[derive(Serialize, Deserialize)]
struct Told(u64, u64, f64, u64, Vec<u32>);

impl From<Histogram> for Told {
    fn from(times: Histogram) -> Told {
        let buckets = times.buckets.to_vec();
        Told(
            times.count,
            times.sum_ms,
            times.squares,
            times.max_ms,
            buckets,
        )
    }
}

impl From<Told> for Histogram {
    fn from(Told(count, sum_ms, squares, max_ms, told): Told) -> Histogram {
        let mut buckets = [0; BUCKETS];
        for (bucket, told) in buckets.iter_mut().zip(told) {
            *bucket = told;
        }
        Histogram {
            count,
            sum_ms,
            squares,
            max_ms,
            buckets,
        }
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            count: 0,
            sum_ms: 0,
            squares: 0.0,
            max_ms: 0,
            buckets: [0; BUCKETS],
        }
    }
}

impl Histogram {
    pub(crate) fn record(&mut self, ms: u64) {
        self.count += 1;
        self.sum_ms = self.sum_ms.saturating_add(ms);
        self.squares += (ms as f64) * (ms as f64);
        self.max_ms = self.max_ms.max(ms);
        let bucket = &mut self.buckets[bucket(ms)];
        *bucket = bucket.saturating_add(1);
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        self.count = self.count.saturating_add(other.count);
        self.sum_ms = self.sum_ms.saturating_add(other.sum_ms);
        self.squares += other.squares;
        self.max_ms = self.max_ms.max(other.max_ms);
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    pub(crate) fn mean_ms(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ms as f64 / self.count as f64)
    }

    /// The variance divided by the square of the mean: 0 if all are equal, 1 if exponential.
    pub(crate) fn variability(&self) -> Option<f64> {
        let mean = self.mean_ms().filter(|mean| *mean > 0.0)?;
        let square = self.squares / self.count as f64;
        Some((square / (mean * mean) - 1.0).max(0.0))
    }

    /// A percentile, interpolated evenly within its bucket.
    pub(crate) fn percentile_ms(&self, share: f64) -> Option<f64> {
        let wanted = share * self.count as f64;
        let mut below = 0.0;
        for (at, count) in self.buckets.iter().enumerate() {
            let count = f64::from(*count);
            if count > 0.0 && below + count >= wanted {
                let (low, high) = (floor(at) as f64, (floor(at + 1) - 1) as f64);
                let within = ((wanted - below) / count).clamp(0.0, 1.0);
                return Some((low + (high - low) * within).min(self.max_ms as f64));
            }
            below += count;
        }
        None
    }
}

fn bucket(ms: u64) -> usize {
    if ms < 4 {
        return ms as usize;
    }
    let octave = ms.ilog2() as usize;
    let upper = (ms >> (octave - 1)) & 1;
    (4 + (octave - 2) * 2 + upper as usize).min(BUCKETS - 1)
}

/// The lower bound of a bucket.
fn floor(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (octave, upper) = ((bucket - 4) / 2 + 2, (bucket as u64) & 1);
    (2 + upper) << (octave - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_lies_between_the_bounds_of_its_bucket() {
        for ms in (0..5000).chain([1 << 20, (1 << 24) + 5]) {
            let at = bucket(ms);
            assert!(floor(at) <= ms && ms < floor(at + 1), "{ms} in {at}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn mean_spread_and_percentiles_are_those_of_the_times() {
        let mut all = Histogram::default();
        assert_eq!((all.mean_ms(), all.percentile_ms(0.5)), (None, None));
        let mut half = Histogram::default();
        for ms in 1..=1000 {
            let into = if ms % 2 == 0 { &mut all } else { &mut half };
            into.record(ms);
        }
        all.add(&half);
        assert_eq!(
            (all.count, all.max_ms, all.mean_ms()),
            (1000, 1000, Some(500.5))
        );
        // Uniform times: a twelfth of the square of the width, divided by the square of the mean.
        let spread = all.variability().unwrap();
        assert!((spread - 1.0 / 3.0).abs() < 0.01, "{spread}");
        for (share, right) in [(0.5, 500.0), (0.99, 990.0)] {
            let found = all.percentile_ms(share).unwrap();
            assert!((found / right - 1.0).abs() < 0.2, "{found} for {right}");
        }
    }
}
