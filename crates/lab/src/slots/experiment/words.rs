//! What the SLOTS paper printed, what it leaves open, and where its numbers contradict each other.

use serde::Serialize;

use super::Effort;

/// Table I, SLOTS: successful uses per multicast, failed per successful ones, utilisation.
pub(super) const SLOTS: [f64; 3] = [11.45, 0.17, 0.73];
/// Table I, mutual exclusion.
#[expect(clippy::approx_constant, reason = "a measured value, not 2π")]
pub(super) const CONTRAST: [f64; 3] = [6.28, 1.06, 0.91];
/// Fig. 9: first slots after 2 and after 3 multicasts.
pub(super) const RESPONSE: [f64; 2] = [0.79, 0.16];
/// The mean lifetime that the SLOTS row implies, by Little's law, with the mean rate of arrivals.
pub const LIFETIME: f64 = 31.5;

/// A question that the paper leaves open, and what was chosen here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Open {
    pub question: &'static str,
    pub chosen: &'static str,
}

pub(super) const OPEN: &[Open] = &[
    Open {
        question: "is λ a rate or the time between arrivals, and how is it drawn anew?",
        chosen: "Poisson arrivals at rate λ per member and round; all drawn anew from 0.5 to 0.8, every 10,000 rounds",
    },
    Open {
        question: "does 1 ≤ μ ≤ 100 bound lifetimes or their means?",
        chosen: "preset A: lifetimes, with one mean; preset B: a mean of its own for each member; both cut lifetimes to 1 to 100",
    },
    Open {
        question: "the mean lifetime",
        chosen: "31.5 before cutting, which Table I's row of SLOTS implies by Little's law, and those that settings name (A 28, A 40)",
    },
    Open {
        question: "the shape of the inverse Gaussian",
        chosen: "equal to its mean",
    },
    Open {
        question: "how many messages SPREAD forwards per round",
        chosen: "all, but where a setting names a number",
    },
    Open {
        question: "FREE_HIGH and LOW_SLOTS of the contrast",
        chosen: "8 (twice FREE_LOW) and FREE_LOW; `slots-table-1 --full` sweeps FREE_HIGH",
    },
    Open {
        question: "who owns what at the start",
        chosen: "SLOTS: member 0 owns all, the others join; contrast: all on the free list; `slots-table-1 --full` \
                 also starts SLOTS with equal parts",
    },
    Open {
        question: "how often a member looks whether it is below FREE_LOW, or above FREE_HIGH",
        chosen: "SLOTS: with every use that begins or ends, and once at the end of its turn; contrast: with every use that ends",
    },
    Open {
        question: "length, warm-up, number and spread of the runs",
        chosen: "as printed above; 95 % intervals by Student's t",
    },
    Open {
        question: "which multicasts a response counts",
        chosen: "those of the request itself; all others in a second column",
    },
    Open {
        question: "which slots are donated or released",
        chosen: "the lowest numbers are donated; the lowest are kept in a release",
    },
    Open {
        question: "what becomes of a use that finds no slot",
        chosen: "it fails, as printed, but where a setting says that it waits",
    },
];

/// How a published number is judged.
pub(super) fn judged(effort: Effort) -> String {
    let few = match effort.seeds {
        1 => "A single run has no interval: only the second part applies.".to_owned(),
        seeds => format!(
            "The fewer the runs, the wider the interval and the more it reaches; here {seeds} runs make it as wide as \
             the ± behind each number says."
        ),
    };
    format!(
        "A published number counts as reached if it lies within the 95 % interval of some setting, or if the mean of \
         some setting lies within a twentieth of it. {few}"
    )
}

/// What the words of a table mean. The paper has no baselines; `baselines` says whether the table does.
pub(super) fn reading(baselines: bool) -> String {
    let more = match baselines {
        true => {
            "; static gives every member an equal part for ever; central asks a manager for every slot"
        }
        false => "",
    };
    format!(
        "strict is SLOTS, repaired where its printed rules are wrong; contrast is the paper's mutual exclusion, a free list \
         that all members keep{more}. {PRESETS} SPREAD is the node that forwards what members multicast, all of it or so \
         many messages per round."
    )
}

/// What the names of settings mean.
pub(super) const PRESETS: &str =
    "A: one mean lifetime, in rounds; B: a mean of its own for each member.";

/// Why the two rows of Table I cannot come from one workload.
pub(super) fn contradiction() -> String {
    let success = (1.0 + CONTRAST[1]) / (1.0 + SLOTS[1]);
    let published = SLOTS[2] / CONTRAST[2];
    format!(
        "Table I contradicts itself under one workload. Failed uses are lost, so used slots are successful uses per \
         round times their lifetime (Little's law), and the two utilisations must be in the ratio of the success \
         fractions: (1 + {}) / (1 + {}) = {success:.2} in favour of SLOTS. Printed is {:.0} / {:.0} = {published:.2}, \
         off by a factor of {:.1}. Together with 0.65 arrivals per member and round, the row of SLOTS implies a mean \
         lifetime of {:.1} rounds, the other row one of {:.1}.",
        CONTRAST[1],
        SLOTS[1],
        100.0 * SLOTS[2],
        100.0 * CONTRAST[2],
        success / published,
        implied_lifetime(SLOTS),
        implied_lifetime(CONTRAST),
    )
}

/// What share of all uses fails, if so many fail per successful one. The paper takes the one for the other.
pub(super) fn failed_share(failed_ratio: f64) -> f64 {
    failed_ratio / (1.0 + failed_ratio)
}

/// What share of the slots a row's failures leave in use under the load that the row of SLOTS implies.
pub(super) fn used_at_the_load_of_slots([_, failed, _]: [f64; 3]) -> f64 {
    SLOTS[2] * (1.0 - failed_share(failed)) / (1.0 - failed_share(SLOTS[1]))
}

/// U · NR_SLOTS · (1 + R) / arrivals.
pub(super) fn implied_lifetime([_, failed, utilisation]: [f64; 3]) -> f64 {
    utilisation * 768.0 * (1.0 + failed) / (32.0 * 0.65)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_imply_different_lifetimes() {
        assert!((implied_lifetime(SLOTS) - LIFETIME).abs() < 0.1);
        assert!((implied_lifetime(CONTRAST) - 69.2).abs() < 0.1);
        assert!(contradiction().contains("off by a factor of 2.2"));
    }

    #[test]
    fn a09_a_ratio_of_failed_to_successful_uses_is_not_the_share_that_fails() {
        assert_eq!(format!("{:.1}", 100.0 * failed_share(SLOTS[1])), "14.5");
        assert_eq!(format!("{:.1}", 100.0 * failed_share(CONTRAST[1])), "51.5");
        // Uses that do not fail and their lifetimes make up the utilisation.
        let success = 1.0 - failed_share(CONTRAST[1]);
        let offered = SLOTS[2] / (1.0 - failed_share(SLOTS[1]));
        assert!((used_at_the_load_of_slots(CONTRAST) - offered * success).abs() < 1e-12);
        assert!((used_at_the_load_of_slots(SLOTS) - SLOTS[2]).abs() < 1e-12);
    }
}
