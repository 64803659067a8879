//! The sweeps of `--full`: one parameter at a time, the others as published. When FREE_LOW is swept, the contrast's FREE_HIGH stays
//! twice as high.

use super::sample::Case;
use super::words::LIFETIME;
use super::{Allocation, Load, Rounds};

/// FREE_LOW, FREE_HIGH, SPREAD's capacity, the optimisations, the quota of donors, the start and the number of members.
pub(super) fn settings() -> Vec<Rounds> {
    let base = |algorithm| Rounds::published(algorithm, Load::OneMean(LIFETIME));
    let both = [Allocation::STRICT, Allocation::Contrast];
    let mut settings = Vec::new();
    for free_low in 1..=16 {
        settings.extend(both.map(|algorithm| Rounds {
            free_low,
            free_high: 2 * free_low,
            ..base(algorithm)
        }));
    }
    settings.extend((5..=16).map(|free_high| Rounds {
        free_high,
        ..base(Allocation::Contrast)
    }));
    for spread_cap in [Some(1), Some(2), Some(4), None] {
        settings.extend(both.map(|algorithm| Rounds {
            spread_cap,
            ..base(algorithm)
        }));
    }
    for bits in 0..8_u32 {
        let optimisations = [0, 1, 2].map(|bit| bits & 1 << bit != 0);
        settings.push(base(Allocation::Strict { optimisations }));
    }
    for spread_cap in [None, Some(1)] {
        let base = Rounds {
            spread_cap,
            ..base(Allocation::STRICT)
        };
        settings.extend([
            Rounds {
                exact_quota: true,
                ..base.clone()
            },
            Rounds { even: true, ..base },
        ]);
    }
    // As many slots per member as published.
    for members in [4, 8, 16, 32, 64] {
        settings.extend(both.map(|algorithm| Rounds {
            members,
            slots: 24 * members as u32,
            ..base(algorithm)
        }));
    }
    settings
}

/// What the sweeps show, if they were run.
pub(super) fn words(cases: &[Case]) -> Vec<String> {
    let spread = |which: fn(&Case) -> bool| {
        let found = cases.iter().filter(|case| which(case));
        let means: Vec<f64> = found
            .filter_map(|case| Some(case.efficiency?.mean))
            .collect();
        let low = means.iter().copied().fold(f64::INFINITY, f64::min);
        (low, means.iter().copied().fold(0.0, f64::max))
    };
    if cases.is_empty() {
        return Vec::new();
    }
    let (low, high) = spread(|case| case.algorithm == "contrast" && case.free_low == 4);
    let (least, most) = spread(|case| case.algorithm == "strict" && !case.exact_quota);
    let range = format!(
        "In the sweeps, successful uses per multicast go from {least:.2} to {most:.2} for SLOTS and from {low:.2} to \
         {high:.2} for the contrast with FREE_LOW 4: parameters that the paper does not give decide what it concludes."
    );
    let variants = [
        ("as printed", false, false),
        (
            "if donors together give no more than was asked for (exact)",
            true,
            false,
        ),
        ("if all members start with equal parts (even)", false, true),
    ];
    let variants = variants.map(|(what, exact, even)| {
        let same = |case: &&Case| {
            (case.exact_quota, case.even, case.spread_cap) == (exact, even, None)
                && (case.members, case.free_low) == (32, 4)
                && case.optimisations == Some([true; 3])
        };
        let case = cases.iter().find(same)?;
        let efficiency = case.efficiency?.mean;
        let failed = case.failed_ratio.mean;
        Some(format!("{efficiency:.2} and {failed:.3} {what}"))
    });
    let variants: Vec<String> = variants.into_iter().flatten().collect();
    vec![
        range,
        format!(
            "Successful uses per multicast and failed per successful, of SLOTS with the published FREE_LOW: {}.",
            variants.join("; ")
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_swept_whole() {
        let all = settings();
        let base = Rounds::published(Allocation::STRICT, Load::OneMean(LIFETIME));
        let count = |which: &dyn Fn(&Rounds) -> bool| all.iter().filter(|one| which(one)).count();
        for free_low in 1..=16 {
            assert!(count(&|one| one.free_low == free_low) >= 2, "{free_low}");
        }
        let contrast = |one: &Rounds| one.algorithm == Allocation::Contrast;
        for free_high in 5..=16 {
            assert!(
                count(&|one| contrast(one) && one.free_high == free_high && one.free_low == 4) >= 1
            );
        }
        let plain_rules = |one: &Rounds| !one.exact_quota && !one.even;
        assert_eq!(count(&|one| one.exact_quota && !one.even), 2);
        assert_eq!(count(&|one| one.even && !one.exact_quota), 2);
        for cap in [Some(1), Some(2), Some(4)] {
            assert_eq!(count(&|one| one.spread_cap == cap && plain_rules(one)), 2);
        }
        for members in [4, 8, 16, 64] {
            assert_eq!(count(&|one| one.members == members), 2);
        }
        let plain = |one: &&Rounds| (one.members, one.free_low, one.spread_cap) == (32, 4, None);
        let mut kinds: Vec<[bool; 3]> = (all.iter().filter(plain))
            .filter_map(|one| match one.algorithm {
                Allocation::Strict { optimisations } => Some(optimisations),
                _ => None,
            })
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        assert_eq!(kinds.len(), 8);
        assert!(all.iter().all(|one| one.load == base.load && !one.waits));
    }
}
