//! The laboratory: one way to look at any algorithm. It simulates, checks, compares, holds claims
//! against measurements, and draws; it has no special case for any algorithm.

mod arrivals;
mod availability;
mod check;
mod claims;
mod compare;
mod comparison;
pub mod count;
pub mod demo;
pub mod draw;
mod experiment;
mod family;
mod line;
mod live;
mod narrate;
mod observer;
mod order;
mod overtakes;
mod picture;
mod quorum_picture;
mod run;
mod sample;
mod simulate;
pub mod slots;
mod stage;
mod standstill;
mod statistics;
pub mod threads;
#[cfg(test)]
mod toy;
mod trace;
mod world;

pub use arrivals::Arrivals;
pub use availability::MeasuredAvailability;
pub use check::{CheckPlan, Checked, Counterexample, Timing, Verdict};
pub use claims::{Finding, claims, figures};
pub use compare::Row;
pub use comparison::{Compared, comparison_chart};
pub use family::{KnownAlgorithm, LabError};
pub use narrate::narrate;
pub use observer::{Kind, Mean, Measures, Observer, Violation, Wrong};
pub use picture::{diagram, picture};
pub use quorum_picture::quorum_picture;
pub use run::{KindReport, Published, Report, Run};
pub use sample::{MEASURES, Measured, Sample, sample};
pub use stage::{Flight, Stage};
pub use statistics::Summary;
pub use trace::{
    AskKind, Clock, Difference, Event, Header, Network, Replayed, TellKind, Trace, TraceError,
};
pub use world::{Progress, World};
