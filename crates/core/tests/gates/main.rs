//! Gates against a naive model, the monitors against flawed ones, and both through crashes and clean stops.

mod door;
mod elections;
mod garbage;
mod model;
mod properties;
mod specimens;
mod survival;
mod travel;
