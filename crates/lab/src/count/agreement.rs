//! What agreement and ordered multicast cost (coordination and agreement §4.8, §5.2.1, §5.7, §5.8).

use super::cases::{Case, Kinds, counted, published, published_sum};
use super::experiment::{CountExperiment, CountRow, Found, Measured, chart};
use crate::family::LabError;

pub(super) const MESSAGES: CountExperiment = CountExperiment {
    name: "agreement-messages",
    title: "Messages of a decision or an ordered multicast: OM(m), PBFT, two-phase commit, ISIS",
    source: "coordination and agreement §4.8, §5",
    note: "one decision each; the size is N, of PBFT the replicas, of two-phase commit the participants",
    run: messages,
};

fn messages() -> Result<Found, LabError> {
    let mut rows = Vec::new();
    for (m, sizes) in [(1, 4..=10), (2, 7..=10), (3, 10..=10)] {
        for n in sizes {
            rows.push(oral(m, n)?);
        }
    }
    for f in 1..=3 {
        rows.push(pbft_normal(f)?);
    }
    for f in 1..=3 {
        let n = 3 * f + 1;
        let what = "PBFT, the client is the primary's";
        rows.push(counted(what, n, pbft(f, n, 0)?));
    }
    for participants in [1, 2, 3, 5, 7] {
        let kinds = first_that(participants, "Commit")?;
        rows.push(published(
            "two-phase commit, committed",
            participants,
            "4n",
            &["Prepare", "Yes", "Commit", "Ack"].map(|kind| (kind, participants)),
            kinds,
        ));
    }
    for participants in [1, 2, 3, 5, 7] {
        let kinds = first_that(participants, "Abort")?;
        let what = "two-phase commit, aborted by a vote";
        rows.push(published_sum(
            what,
            participants,
            "4n",
            4 * participants,
            kinds,
        ));
    }
    for participants in [1, 2, 3, 5, 7] {
        let case = Case::new("two-phase-commit", participants + 1, &[0]);
        let what = "two-phase commit, aborted because nobody votes";
        rows.push(counted(what, participants, case.kinds()?));
    }
    for n in [2, 3, 4, 8, 16, 64] {
        rows.push(published(
            "ISIS",
            n,
            "3(N−1)",
            &["Message", "Propose", "Agree"].map(|kind| (kind, n - 1)),
            Case::new("isis", n, &[0]).kinds()?,
        ));
    }
    let measured = Measured {
        title: "Messages of a decision",
        subtitle: "one decision or multicast each",
        along: "nodes, replicas or participants",
        counted: "messages",
    };
    Ok(Found {
        chart: chart(&measured, &rows),
        rows,
        properties: Vec::new(),
    })
}

/// §5.2.1: (N−1) + (N−1)(N−2) + …, m + 1 terms.
fn oral(m: usize, n: usize) -> Result<CountRow, LabError> {
    let mut term = 1;
    let terms = (1..=m + 1).map(|round| {
        term *= n - round;
        term
    });
    let sum = terms.sum();
    let mut case = Case::new("om", n, &[0]);
    case.setup.faulty = Some(m);
    Ok(published(
        format!("OM({m})"),
        n,
        "(N−1) + (N−1)(N−2) + …, m+1 terms",
        &[("Says", sum)],
        case.kinds()?,
    ))
}

/// §5.7: a client that is no replica, and no faults.
fn pbft_normal(f: usize) -> Result<CountRow, LabError> {
    let n = 3 * f + 1;
    Ok(published(
        "PBFT, normal case",
        n,
        "2N²−N+1",
        &[
            ("Request", 1),
            ("PrePrepare", n - 1),
            ("Prepare", (n - 1) * (n - 1)),
            ("Commit", n * (n - 1)),
            ("Reply", n),
        ],
        pbft(f, n + 1, n)?,
    ))
}

fn pbft(f: usize, nodes: usize, client: usize) -> Result<Kinds, LabError> {
    let mut case = Case::new("pbft", nodes, &[client]);
    case.setup.faulty = Some(f);
    case.kinds()
}

/// Votes are drawn: more seeds than this are not tried.
const SEEDS_MAX: u64 = 100_000;

/// The first run, by its seed, in which the coordinator sends this.
pub(super) fn first_that(participants: usize, sends: &str) -> Result<Kinds, LabError> {
    let case = committing(participants, sends)?;
    case.kinds()
}

/// The case of that run: everybody votes at once.
pub(super) fn committing(participants: usize, sends: &str) -> Result<Case, LabError> {
    let everybody: Vec<usize> = (0..=participants).collect();
    let mut case = Case::new("two-phase-commit", everybody.len(), &everybody);
    for seed in 1..=SEEDS_MAX {
        case.seed = seed;
        if case.kinds()?.contains_key(sends) {
            return Ok(case);
        }
    }
    Err(LabError::new(format!(
        "no run of {SEEDS_MAX} sends {sends} with {participants} participants"
    )))
}
