//! What many runs say together: the mean with its 95 % interval, and percentiles.

use serde::Serialize;

/// A summary of one value from each of several runs. Its field names are a contract with scripts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// How many runs gave a value.
    pub runs: usize,
    pub mean: f64,
    /// The 95 % interval of the mean, by Student's t; null for a single run.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// The standard deviation of the sample; null for a single run.
    pub deviation: Option<f64>,
    pub min: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p95: f64,
    pub max: f64,
}

impl Summary {
    /// Of values that lie within these by their nature, so their mean does, too.
    #[must_use]
    pub fn within(mut self, least: f64, most: f64) -> Summary {
        self.low = self.low.map(|low| low.max(least));
        self.high = self.high.map(|high| high.min(most));
        self
    }

    /// None where there is no value.
    pub fn of(values: &[f64]) -> Option<Summary> {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let runs = sorted.len();
        let mean = sorted.iter().sum::<f64>() / runs as f64;
        let squares: f64 = sorted.iter().map(|value| (value - mean).powi(2)).sum();
        let deviation = (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt());
        let half = deviation
            .map(|deviation| student_t(CONFIDENCE, runs - 1) * deviation / (runs as f64).sqrt());
        let at = |share| percentile(&sorted, share);
        Some(Summary {
            runs,
            mean,
            low: half.map(|half| mean - half),
            high: half.map(|half| mean + half),
            deviation,
            min,
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            max,
        })
    }
}

const CONFIDENCE: f64 = 0.95;

/// The value below which a share of the sorted values lies, between two of them by a straight line.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, rest) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + rest * (sorted[above] - sorted[below])
}

/// The t that a variable of Student's distribution stays within, on both sides of 0, with this
/// probability. Found by halving, with the exact probability for whole degrees of freedom.
fn student_t(probability: f64, freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while within(high, freedom) < probability {
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        match within(middle, freedom) < probability {
            true => low = middle,
            false => high = middle,
        }
    }
    (low + high) / 2.0
}

/// As many as a number has bits to settle.
const HALVINGS: u32 = 60;

/// The probability of staying within ±t. Abramowitz and Stegun, 26.7.3 and 26.7.4.
fn within(t: f64, freedom: usize) -> f64 {
    let degrees = freedom as f64;
    let hypotenuse = (degrees + t * t).sqrt();
    let (sine, cosine) = (t / hypotenuse, degrees.sqrt() / hypotenuse);
    let odd = freedom % 2 == 1;
    let mut term = if odd { cosine } else { 1.0 };
    let mut sum = if freedom == 1 { 0.0 } else { term };
    let mut at = if odd { 3 } else { 2 };
    while at + 2 <= freedom {
        term *= cosine * cosine * (at - 1) as f64 / at as f64;
        sum += term;
        at += 2;
    }
    match odd {
        true => std::f64::consts::FRAC_2_PI * (libm::atan(t / degrees.sqrt()) + sine * sum),
        false => sine * sum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(left: f64, right: f64) -> bool {
        (left - right).abs() <= 1e-9 * right.abs().max(1.0)
    }

    /// SciPy 1.17: `scipy.stats.t.ppf(0.975, df)`.
    #[test]
    fn quantiles_of_students_distribution() {
        for (freedom, expected) in [
            (1, 12.706204736174694),
            (2, 4.302652729749462),
            (3, 3.182446305283708),
            (4, 2.776445105197793),
            (5, 2.570581835636314),
            (9, 2.262157162798205),
            (10, 2.2281388519862735),
            (29, 2.045229642132703),
            (30, 2.0422724563012378),
            (99, 1.9842169515864156),
            (100, 1.9839715185235518),
            (999, 1.962341461133449),
            (9999, 1.960201263621357),
        ] {
            let found = student_t(0.95, freedom);
            assert!(close(found, expected), "{freedom}: {found} for {expected}");
        }
    }

    /// Python 3: `statistics.fmean`, `stdev` and `quantiles(n=20, method='inclusive')`; SciPy 1.17:
    /// `scipy.stats.t.interval(0.95, 6, loc, scale)`.
    #[test]
    fn a_sample_is_summed_up_as_others_do_it() {
        let summary = Summary::of(&[3.0, 1.5, 4.25, 1.0, 5.5, 9.0, 2.75]).expect("values");
        assert_eq!(summary.runs, 7);
        for (found, expected) in [
            (summary.mean, 3.857142857142857),
            (summary.deviation.expect("several"), 2.7380693580557467),
            (summary.low.expect("several"), 1.3248510527450827),
            (summary.high.expect("several"), 6.389434661540632),
            (summary.min, 1.0),
            (summary.p5, 1.15),
            (summary.p25, 2.125),
            (summary.p50, 3.0),
            (summary.p75, 4.875),
            (summary.p95, 7.95),
            (summary.max, 9.0),
        ] {
            assert!(close(found, expected), "{found} for {expected}");
        }
    }

    #[test]
    fn few_values_say_little() {
        assert_eq!(Summary::of(&[]), None);
        let one = Summary::of(&[2.5]).expect("a value");
        assert_eq!((one.mean, one.p5, one.p95), (2.5, 2.5, 2.5));
        assert_eq!((one.low, one.high, one.deviation), (None, None, None));
        let same = Summary::of(&[4.0; 3]).expect("values");
        assert_eq!((same.low, same.high), (Some(4.0), Some(4.0)));
    }
}
