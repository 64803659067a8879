//! Axes: round numbers at readable distances. Times are whole ticks and are divided exactly; chart
//! values are floating-point numbers, bounded so that no sum or quotient here overflows.

/// Chart values beyond this are not drawn; it keeps every difference finite.
pub(super) const VALUE_MAX: f64 = 1e100;

/// A place on an axis and its words.
pub(super) type Tick<T> = (T, String);

/// At most `count_max + 1` round times in `first..=last`, in units of `ticks_per_unit` ticks.
pub(super) fn time_ticks(
    first: u64,
    last: u64,
    ticks_per_unit: u64,
    count_max: usize,
) -> Vec<Tick<u64>> {
    let per_unit = u128::from(ticks_per_unit.max(1));
    let span = u128::from(last.saturating_sub(first));
    let Some((step, decimals)) =
        time_steps(per_unit).find(|&(step, _)| span / step <= count_max.max(1) as u128)
    else {
        return Vec::new();
    };
    let mut ticks = Vec::new();
    let mut time = u128::from(first).div_ceil(step) * step;
    while time <= u128::from(last) {
        if let Ok(at) = u64::try_from(time) {
            ticks.push((at, in_units(time, per_unit, decimals)));
        }
        time += step;
    }
    ticks
}

/// Steps of 1, 2 and 5 times a power of ten units that are whole numbers of ticks, upwards, with
/// the decimals that their multiples need.
fn time_steps(per_unit: u128) -> impl Iterator<Item = (u128, u32)> {
    (-6_i32..=19).flat_map(move |exponent| {
        [1_u128, 2, 5].into_iter().filter_map(move |digit| {
            let power = 10_u128.pow(exponent.unsigned_abs());
            let ticks = digit * per_unit;
            if exponent >= 0 {
                Some((ticks.saturating_mul(power), 0))
            } else {
                ticks
                    .is_multiple_of(power)
                    .then_some((ticks / power, exponent.unsigned_abs()))
            }
        })
    })
}

fn in_units(time: u128, per_unit: u128, decimals: u32) -> String {
    let scale = 10_u128.pow(decimals);
    let scaled = time.saturating_mul(scale) / per_unit;
    if decimals == 0 {
        return scaled.to_string();
    }
    let (whole, part) = (scaled / scale, scaled % scale);
    format!("{whole}.{part:0width$}", width = decimals as usize)
}

/// A time in units, with as many decimals as it needs up to three, for tooltips.
pub(super) fn time_label(time: u64, ticks_per_unit: u64) -> String {
    let text = in_units(u128::from(time), u128::from(ticks_per_unit.max(1)), 3);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A time in units with at most one decimal, for words in a picture.
pub(super) fn time_rounded(time: u64, ticks_per_unit: u64) -> String {
    let per_unit = u128::from(ticks_per_unit.max(1));
    let tenths = (u128::from(time) * 10 + per_unit / 2) / per_unit;
    match tenths % 10 {
        0 => (tenths / 10).to_string(),
        tenth => format!("{}.{tenth}", tenths / 10),
    }
}

/// How a chart's axis maps values to its length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mapping {
    Linear {
        low: f64,
        high: f64,
    },
    /// Both ends are positive.
    Log {
        low: f64,
        high: f64,
    },
}

impl Mapping {
    /// A linear axis over some values; `rounded` moves both ends out to ticks.
    pub(super) fn linear(low: f64, high: f64, count: usize, rounded: bool) -> Self {
        let (low, high) = if low < high {
            (low, high)
        } else {
            // One value only: give it room of its own size.
            let room = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
            (low - room, high + room)
        };
        if !rounded {
            return Mapping::Linear { low, high };
        }
        let step = round_step((high - low) / count.max(1) as f64);
        Mapping::Linear {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
        }
    }

    /// A logarithmic axis over some positive values; `rounded` moves both ends out to 1, 2 or 5 times a
    /// power of ten.
    pub(super) fn log(low: f64, high: f64, rounded: bool) -> Self {
        let low = low.max(1.0 / VALUE_MAX);
        let high = high.max(low);
        let (low, high) = match rounded {
            true => (round_down(low), round_up(high)),
            false => (low, high),
        };
        match low < high {
            true => Mapping::Log { low, high },
            // One value only: give it room.
            false => Mapping::Log {
                low: low / 2.0,
                high: high * 2.0,
            },
        }
    }

    /// Where a value lies: 0 at the low end, 1 at the high end.
    pub(super) fn part(&self, value: f64) -> f64 {
        let part = match *self {
            Mapping::Linear { low, high } => (value - low) / (high - low),
            Mapping::Log { low, high } => (value / low).ln() / (high / low).ln(),
        };
        if part.is_finite() {
            part.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Round values on the axis, about `count` of them.
    pub(super) fn ticks(&self, count: usize) -> Vec<Tick<f64>> {
        match *self {
            Mapping::Linear { low, high } => linear_ticks(low, high, count.max(1)),
            Mapping::Log { low, high } => log_ticks(low, high, count.max(1)),
        }
    }
}

/// 1, 2 and 5 times powers of ten, or powers of ten alone where those are enough.
fn log_ticks(low: f64, high: f64, count: usize) -> Vec<Tick<f64>> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let decades = (last - first).max(1) as usize;
    let digits: &[f64] = match decades <= count {
        true => &[1.0, 2.0, 5.0],
        false => &[1.0],
    };
    let stride = decades.div_ceil(2 * count).max(1);
    let values = (first..=last).step_by(stride).flat_map(|exponent| {
        let power = 10_f64.powi(exponent);
        digits.iter().map(move |digit| digit * power)
    });
    let slack = 1.0 + 1e-9;
    values
        .filter(|value| (low / slack..=high * slack).contains(value))
        .map(|value| (value, short(value)))
        .collect()
}

/// The largest of 1, 2 and 5 times a power of ten that is not above `value`.
fn round_down(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let digits = [5.0, 2.0, 1.0].into_iter().map(|digit| digit * power);
    let found = digits
        .into_iter()
        .find(|&step| step <= value * (1.0 + 1e-9));
    found.unwrap_or(value)
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `value`.
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let digits = [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power);
    let found = digits
        .into_iter()
        .find(|&step| step >= value * (1.0 - 1e-9));
    found.unwrap_or(value)
}

fn linear_ticks(low: f64, high: f64, count: usize) -> Vec<Tick<f64>> {
    let step = round_step((high - low) / count as f64);
    let first = (low / step - 1e-9).ceil();
    let largest = low.abs().max(high.abs());
    let mut ticks = Vec::new();
    // By index, because adding a small step to a large value might not move it.
    for i in 0..=4 * count {
        let value = (first + i as f64) * step;
        if value > high + step * 1e-6 {
            break;
        }
        // The sum turns a negative zero into a plain one.
        ticks.push((value + 0.0, with_step(value + 0.0, step, largest)));
    }
    ticks
}

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `rough`.
fn round_step(rough: f64) -> f64 {
    if !rough.is_finite() || rough <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|&step| step >= rough * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// A value as one of many that are `step` apart, none above `largest`.
fn with_step(value: f64, step: f64, largest: f64) -> String {
    let (divisor, suffix) = magnitude(largest, 1e5);
    if largest >= 1e15 || step < 1e-6 {
        return scientific(value);
    }
    let step = step / divisor;
    let decimals = (0..9)
        .find(|&d| {
            let scaled = step * 10_f64.powi(d);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.max(1.0) && scaled.round() >= 1.0
        })
        .unwrap_or(9);
    format!("{:.*}{suffix}", decimals as usize, value / divisor)
}

/// A value that stands alone: three digits and a suffix.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(1e-3..1e15).contains(&size) {
        return scientific(value);
    }
    let (divisor, suffix) = magnitude(size, 1e4);
    let scaled = value / divisor;
    let text = match scaled.abs() {
        large if large >= 100.0 => format!("{scaled:.0}"),
        middle if middle >= 10.0 => format!("{scaled:.1}"),
        small if small >= 1.0 => format!("{scaled:.2}"),
        _ => format!("{scaled:.3}"),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{suffix}")
}

fn magnitude(size: f64, from: f64) -> (f64, &'static str) {
    match size {
        s if s < from => (1.0, ""),
        s if s < 1e6 => (1e3, "k"),
        s if s < 1e9 => (1e6, "M"),
        s if s < 1e12 => (1e9, "G"),
        _ => (1e12, "T"),
    }
}

fn scientific(value: f64) -> String {
    if value == 0.0 {
        "0".to_string()
    } else {
        format!("{value:.2e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<T>(ticks: &[Tick<T>]) -> Vec<&str> {
        ticks.iter().map(|(_, words)| words.as_str()).collect()
    }

    #[test]
    fn times_are_round_in_units() {
        assert_eq!(
            words(&time_ticks(0, 5_000, 1_000, 5)),
            ["0", "1", "2", "3", "4", "5"]
        );
        assert_eq!(
            words(&time_ticks(150, 850, 1_000, 4)),
            ["0.2", "0.4", "0.6", "0.8"]
        );
        // A third of a unit is no round number, so the step is a whole unit.
        assert_eq!(words(&time_ticks(0, 6, 3, 10)), ["0", "1", "2"]);
    }

    #[test]
    fn times_have_no_overflow_at_the_ends_of_the_clock() {
        for (first, last) in [(0, u64::MAX), (u64::MAX - 3, u64::MAX), (7, 7), (9, 3)] {
            for per_unit in [0, 1, 7, 1_000, u64::MAX] {
                let ticks = time_ticks(first, last, per_unit, 10);
                assert!(ticks.len() <= 11);
                assert!(ticks.iter().all(|(t, _)| (first..=last).contains(t)));
            }
        }
        assert_eq!(time_label(1_500, 1_000), "1.5");
        assert_eq!(time_rounded(9_035, 1_000), "9");
        assert_eq!(time_rounded(9_051, 1_000), "9.1");
        assert_eq!(time_rounded(u64::MAX, 1), time_label(u64::MAX, 1));
        assert_eq!(time_label(u64::MAX, 1), "18446744073709551615");
    }

    #[test]
    fn values_are_round() {
        let axis = Mapping::linear(0.0, 37.0, 5, true);
        assert_eq!(
            axis,
            Mapping::Linear {
                low: 0.0,
                high: 40.0
            }
        );
        assert_eq!(words(&axis.ticks(5)), ["0", "10", "20", "30", "40"]);
        let axis = Mapping::linear(0.0, 1.0, 4, true);
        assert_eq!(
            words(&axis.ticks(4)),
            ["0.00", "0.25", "0.50", "0.75", "1.00"]
        );
        let axis = Mapping::linear(0.0, 400_000.0, 4, true);
        assert_eq!(
            words(&axis.ticks(4)),
            ["0k", "100k", "200k", "300k", "400k"]
        );
    }

    #[test]
    fn equal_factors_are_equally_far_apart() {
        let axis = Mapping::log(3.0, 160.0, true);
        assert_eq!(
            axis,
            Mapping::Log {
                low: 2.0,
                high: 200.0
            }
        );
        let ticks = ["2", "5", "10", "20", "50", "100", "200"];
        assert_eq!(words(&axis.ticks(6)), ticks);
        assert!((axis.part(20.0) - 0.5).abs() < 1e-9);
        let exact = Mapping::log(4.0, 64.0, false);
        assert!((exact.part(16.0) - 0.5).abs() < 1e-9);
        assert!((Mapping::log(8.0, 8.0, true).part(8.0) - 0.6).abs() < 0.2);
        let decades = Mapping::log(1e-9, 1e9, true);
        assert!(decades.ticks(6).len() <= 13);
    }

    #[test]
    fn odd_ranges_give_few_ticks_and_finite_places() {
        let ends = [
            0.0,
            -1.0,
            1.0,
            1e-300,
            1e10,
            1e10 + 1e-6,
            VALUE_MAX,
            -VALUE_MAX,
        ];
        for low in ends {
            for high in ends {
                let axis = Mapping::linear(low, high, 6, true);
                assert!(axis.ticks(6).len() <= 25, "{low} {high}");
                assert!((0.0..=1.0).contains(&axis.part(high)));
                assert!((0.0..=1.0).contains(&axis.part(f64::NAN)));
            }
        }
    }

    #[test]
    fn numbers_alone_are_short() {
        let texts = [0.0, 2.0, 2.5, 17.25, 123.4, 1_234.0, 56_789.0, 0.0421].map(short);
        assert_eq!(
            texts,
            ["0", "2", "2.5", "17.2", "123", "1234", "56.8k", "0.042"]
        );
        assert_eq!(short(1e-9), "1.00e-9");
    }
}
