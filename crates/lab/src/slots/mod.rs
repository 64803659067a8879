//! SLOTS in the laboratory: a simulated group communication system, its faults, an observer that sees all
//! members at once, random runs and an exhaustive search; and the experiment of its paper.

mod check;
pub mod experiment;
mod observer;
mod schedule;
mod step;
mod world;

pub use check::{SlotsCheckPlan, SlotsChecked, SlotsCounterexample, SlotsTrouble, check_slots};
pub use observer::SlotsViolation;
pub use schedule::{Scheduled, SlotsSchedule, run_schedule, run_schedule_aloud};
pub use step::SlotsStep;
pub use world::{SlotsFault, SlotsWorld};
