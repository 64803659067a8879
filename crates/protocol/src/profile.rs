//! What an algorithm says of itself, as data: where it comes from, what it assumes, what it claims
//! and what it is said to cost. The laboratory holds measured against published.

use std::fmt;

use crate::{Figure, Setup};

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
    /// Whether it is only right while no message is slower than a known bound.
    pub needs_delay_bound: bool,
    /// Whether it is meant to stand liars, and so says which messages one could send.
    pub survives_lies: bool,
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
        needs_delay_bound: false,
        survives_lies: false,
        idle_traffic: false,
        claims: &[Claim::Safety, Claim::DeadlockFreedom, Claim::LockoutFreedom],
        costs: &[],
        figures: &[],
        telling: Telling {
            nodes: 3,
            entries: 1,
        },
        telling_groups: None,
    };

    /// The setup of the telling configuration.
    pub fn telling_setup(&self) -> Setup {
        Setup {
            groups: self.telling_groups,
            ..Setup::new(self.telling.nodes)
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
