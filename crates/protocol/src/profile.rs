//! What an algorithm says of itself, as data: where it comes from, what it assumes, what it claims
//! and what it is said to cost. The laboratory holds measured against published.

use std::fmt;

use crate::{Counted, Figure, Setup};

/// An algorithm's profile.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// As people type it: `ricart-agrawala`.
    pub name: &'static str,
    /// As people say it: `Ricart and Agrawala, 1981`.
    pub title: &'static str,
    /// The seed's section, and the paper.
    pub source: &'static str,
    /// What is wrong with it, for an algorithm that is kept in order to be refuted.
    pub specimen: Option<&'static str>,
    pub channels: Channels,
    /// Whether it still keeps its promises when nodes crash.
    pub survives_crashes: bool,
    /// Whether its nodes keep anything on stable storage, which a crash does not take.
    pub keeps_storage: bool,
    /// Whether it is only right while no message is slower than a known bound.
    pub needs_delay_bound: bool,
    /// Whether it is meant to stand liars, and so says which messages one could send.
    pub survives_lies: bool,
    /// The faults that it keeps its promises under, for a setup: what the checker tries by default.
    pub tolerates: fn(&Setup) -> Faults,
    /// Whether it sends messages even when nobody wants anything, as a ring does; a run then ends
    /// with the last exit.
    pub idle_traffic: bool,
    pub claims: &'static [Claim],
    pub costs: &'static [Cost],
    /// What is published for a situation of its own.
    pub figures: &'static [Figure],
    /// The smallest configuration that shows what there is to see.
    pub telling: Telling,
    /// Its groups, where there are groups and not as many as by default.
    pub telling_groups: Option<usize>,
    /// Its proposers, where users agree and not all of them propose.
    pub telling_proposers: Option<usize>,
    /// How many timers fire in it, where the checker would try more than it takes.
    pub telling_timeouts: Option<u32>,
}

impl Profile {
    /// What most algorithms of this library say: FIFO links, no faults, silence when idle. A profile
    /// names what is its own and takes the rest from here.
    pub const PLAIN: Profile = Profile {
        name: "",
        title: "",
        source: "",
        specimen: None,
        channels: Channels::Fifo,
        survives_crashes: false,
        keeps_storage: false,
        needs_delay_bound: false,
        survives_lies: false,
        tolerates: |_| Faults::NONE,
        idle_traffic: false,
        claims: &[Claim::Safety, Claim::DeadlockFreedom, Claim::LockoutFreedom],
        costs: &[],
        figures: &[],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        telling_groups: None,
        telling_proposers: None,
        telling_timeouts: None,
    };

    /// The setup of the telling configuration.
    pub fn telling_setup(&self) -> Setup {
        Setup {
            groups: self.telling_groups,
            proposers: self.telling_proposers,
            ..Setup::new(self.telling.nodes)
        }
    }
}

/// How many faults of each kind there may be in one run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Faults {
    pub crashes: u32,
    /// How many of the crashed nodes come back, with what they keep on stable storage.
    pub restarts: u32,
    pub losses: u32,
    pub copies: u32,
    /// Nodes that may say anything that they could say, or nothing.
    pub liars: u32,
}

impl Faults {
    pub const NONE: Faults = Faults {
        crashes: 0,
        restarts: 0,
        losses: 0,
        copies: 0,
        liars: 0,
    };

    pub const fn crashes(crashes: u32) -> Faults {
        Faults {
            crashes,
            ..Faults::NONE
        }
    }

    pub const fn liars(liars: u32) -> Faults {
        Faults {
            liars,
            ..Faults::NONE
        }
    }
}

/// What the links must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channels {
    Fifo,
    AnyOrder,
}

/// A property that is claimed, without numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Claim {
    /// The problem's property holds in every state.
    Safety,
    /// Somebody who waits is always served in the end.
    DeadlockFreedom,
    /// Everybody who waits is served in the end.
    LockoutFreedom,
    /// Requests are served in an order that agrees with happened-before.
    Order,
    /// No request is passed more often than the problem's users are promised, by entries at nodes that
    /// can know of it.
    Bypass,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Claim::Safety => "safety",
            Claim::DeadlockFreedom => "deadlock freedom",
            Claim::LockoutFreedom => "lockout freedom",
            Claim::Order => "order",
            Claim::Bypass => "bounded bypass",
        })
    }
}

/// A published cost: what is counted, the formula as printed, and its value for a setup.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub measure: Measure,
    pub formula: &'static str,
    pub range: fn(&Setup) -> Range,
}

impl Cost {
    /// Messages per entry.
    pub const fn messages(formula: &'static str, range: fn(&Setup) -> Range) -> Cost {
        Cost {
            measure: Measure::Messages,
            formula,
            range,
        }
    }

    /// Messages a round, between the nodes behind the users.
    pub const fn messages_behind(formula: &'static str, range: fn(&Setup) -> Range) -> Cost {
        Cost {
            measure: Measure::MessagesBehind,
            formula,
            range,
        }
    }

    /// Message times from asking to entering, with nobody in the way.
    pub const fn entry_delay(formula: &'static str, range: fn(&Setup) -> Range) -> Cost {
        Cost {
            measure: Measure::EntryDelay,
            formula,
            range,
        }
    }

    /// Message times from an exit to the next entry.
    pub const fn synchronisation_delay(formula: &'static str, range: fn(&Setup) -> Range) -> Cost {
        Cost {
            measure: Measure::SynchronisationDelay,
            formula,
            range,
        }
    }
}

/// What a published cost counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Messages for one entry and its exit, under full load.
    Messages,
    /// Messages a round between nodes that have no user, such as groups, under full load.
    MessagesBehind,
    /// Message times from an exit to the next entry, while somebody waits.
    SynchronisationDelay,
    /// Message times from asking to entering, when nobody is in the way.
    EntryDelay,
}

impl Measure {
    /// In words, where this is what users get.
    pub fn per(self, counted: Counted) -> String {
        self.to_string().replace(Counted::ENTRIES.one, counted.one)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Measure::Messages => "messages per entry",
            Measure::MessagesBehind => "messages a round behind",
            Measure::SynchronisationDelay => "synchronisation delay",
            Measure::EntryDelay => "entry delay",
        })
    }
}

/// From the best to the worst case.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    pub min: f64,
    pub max: f64,
}

impl Range {
    pub fn exactly(value: impl Into<f64>) -> Range {
        let value = value.into();
        Range {
            min: value,
            max: value,
        }
    }

    pub fn new(min: impl Into<f64>, max: impl Into<f64>) -> Range {
        Range {
            min: min.into(),
            max: max.into(),
        }
    }

    /// Measured means carry rounding errors, so an exact bound is met within a billionth.
    pub fn contains(&self, value: f64) -> bool {
        let slack = 1e-9 * value.abs().max(1.0);
        value >= self.min - slack && value <= self.max + slack
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{} to {}", self.min, self.max)
        }
    }
}

/// A configuration for the checker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Telling {
    pub nodes: usize,
    pub entries: usize,
}
