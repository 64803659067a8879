//! SLOTS: identical, reusable slots, each owned by one member of a group. Only the owner uses its
//! slots, without a message; a member that runs short asks the group, and the others donate.
//!
//! The members talk through a group communication system that delivers messages and views in one
//! order ([`Delivery`]). A [`Sharer`] is one member. Only deliveries and its own users' takes and gives
//! change it.

mod central;
mod contrast;
mod cycle;
mod demand;
mod directed;
mod donate;
mod flaws;
mod heuristics;
mod labels;
mod logged;
mod look;
mod merge;
mod message;
mod plan;
mod sharer;
mod slot_set;
mod standing;
mod table;
mod views;

pub use central::{Central, CentralMessage};
pub use contrast::{Contrast, ContrastMessage, ContrastPlan};
pub use cycle::{Cycle, Standing};
pub use flaws::Flaws;
pub use heuristics::{exact_slots_to_donate, slots_to_donate, slots_to_request};
pub use labels::Labelled;
pub use message::{Change, Delivery, Group, Letter, SlotsMessage, SlotsState};
pub use plan::{Average, SLOTS_MAX, SlotsPlan};
pub use sharer::{Asking, Sharer, Transaction};
pub use slot_set::SlotSet;
pub use table::{Owned, SlotTable};
