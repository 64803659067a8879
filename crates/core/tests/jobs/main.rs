//! Jobs: the sentences of the source one by one, and random schedules against a naive model and the ledger, through
//! crashes.

#[path = "../gates/door.rs"]
mod door;
mod model;
mod owner;
#[path = "../gates/model/random.rs"]
#[allow(dead_code, reason = "shared with the gates, which use all of it")]
mod random;
mod refusals;
mod sentences;
mod stage;
mod takes;
mod travel;
mod units;
