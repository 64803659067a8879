//! What a measurement counted: loops a client, and how long each took. A loop is whatever a
//! closed-loop client does again and again, such as a pair of `LOCK` and `UNLOCK`.

use std::time::Duration;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Finished loops of each client.
    pub(crate) loops: Vec<u64>,
    /// Of each loop, in nanoseconds.
    pub(crate) latencies: Vec<u32>,
    pub(crate) span: Duration,
    pub(crate) bypass: u64,
}

impl Tally {
    pub(crate) fn rate(&self) -> f64 {
        let loops: u64 = self.loops.iter().sum();
        loops as f64 / self.span.as_secs_f64()
    }

    /// Jain's index of fairness: 1 when all clients got the same, 1/n when one got all.
    pub(crate) fn jain(&self) -> f64 {
        let sum: f64 = self.loops.iter().map(|n| *n as f64).sum();
        let squares: f64 = self.loops.iter().map(|n| (*n as f64).powi(2)).sum();
        sum * sum / (self.loops.len() as f64 * squares).max(1.0)
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.loops.resize(other.loops.len(), 0);
        for (sum, loops) in self.loops.iter_mut().zip(&other.loops) {
            *sum += loops;
        }
        self.latencies.extend_from_slice(&other.latencies);
        self.span += other.span;
        self.bypass = self.bypass.max(other.bypass);
    }

    /// The latencies that so many of all loops did not exceed, in microseconds.
    pub(crate) fn quantiles<const N: usize>(&mut self, shares: [f64; N]) -> [f64; N] {
        self.latencies.sort_unstable();
        let last = self.latencies.len().saturating_sub(1);
        shares.map(|share| {
            let at = (last as f64 * share).round() as usize;
            self.latencies
                .get(at)
                .map_or(f64::NAN, |ns| f64::from(*ns) / 1e3)
        })
    }
}

/// The middle one.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}
