//! The faults of `testigo lab check`.

use clap::{Args, ValueEnum};
use testigo_lab::{Checked, Timing};
use testigo_protocol::Faults;

/// How many faults there may be in a run. Without any of them, as many as the algorithm says it tolerates.
#[derive(Args)]
pub(super) struct FaultOptions {
    /// How many nodes may crash.
    #[arg(long, value_name = "N")]
    crashes: Option<u32>,
    /// How many crashed nodes may come back, with what they keep on stable storage.
    #[arg(long, value_name = "N")]
    restarts: Option<u32>,
    /// How many messages may be lost.
    #[arg(long, value_name = "N")]
    losses: Option<u32>,
    /// How many messages may arrive twice.
    #[arg(long, value_name = "N")]
    duplicates: Option<u32>,
    /// How many nodes may lie: any of them, in every message, to each receiver something else.
    #[arg(long, value_name = "N")]
    liars: Option<u32>,
    /// A node that crashes loses its stable storage, too.
    #[arg(long)]
    pub(super) forget: bool,
    /// When timers fire (by default synchronous where the algorithm needs a delay bound).
    #[arg(long, value_name = "TIMING")]
    pub(super) timing: Option<TimingOption>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum TimingOption {
    /// At any time.
    Asynchronous,
    /// When no message is under way, the next one that is due.
    Synchronous,
}

impl TimingOption {
    pub(super) fn timing(self) -> Timing {
        match self {
            TimingOption::Asynchronous => Timing::Asynchronous,
            TimingOption::Synchronous => Timing::Synchronous,
        }
    }
}

impl FaultOptions {
    pub(super) fn is_given(&self) -> bool {
        self.numbers().iter().any(Option::is_some) || self.forget || self.timing.is_some()
    }

    fn numbers(&self) -> [Option<u32>; 5] {
        [
            self.crashes,
            self.restarts,
            self.losses,
            self.duplicates,
            self.liars,
        ]
    }

    /// The faults that were asked for; what is not said is as tolerated.
    pub(super) fn faults(&self, tolerated: Faults) -> Option<Faults> {
        let given = self.numbers().iter().any(Option::is_some);
        let crashes = self.crashes.unwrap_or(tolerated.crashes);
        given.then(|| Faults {
            crashes,
            restarts: self.restarts.unwrap_or(tolerated.restarts.min(crashes)),
            losses: self.losses.unwrap_or(tolerated.losses),
            copies: self.duplicates.unwrap_or(tolerated.copies),
            liars: self.liars.unwrap_or(tolerated.liars),
        })
    }
}

/// What could go wrong, in words; none where nothing could.
pub(super) fn faults_in_words(checked: &Checked) -> Option<String> {
    let Faults {
        crashes,
        restarts,
        losses,
        copies,
        liars,
    } = checked.faults;
    let counts = [
        (crashes, "crash", "crashes"),
        (restarts, "restart", "restarts"),
        (losses, "lost message", "lost messages"),
        (copies, "duplicate", "duplicates"),
        (liars, "liar", "liars"),
    ];
    let some = counts.into_iter().filter(|(count, ..)| *count > 0);
    let words = some.map(|(count, one, many)| {
        let noun = if count == 1 { one } else { many };
        format!("{count} {noun}")
    });
    let words: Vec<String> = words.collect();
    let storage = match (checked.keeps_storage, checked.forget) {
        _ if crashes == 0 => "",
        (_, true) => ", without stable storage",
        (true, false) => ", with stable storage",
        // There is nothing to keep, or it is lost.
        (false, false) => "",
    };
    (!words.is_empty()).then(|| format!("at most {}{storage}", words.join(", ")))
}
