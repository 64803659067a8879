//! Algorithms side by side on the same arrivals.

use serde::Serialize;
use testigo_protocol::Counted;

use crate::run::Published;

/// One algorithm at one number of nodes. Its field names are a contract with scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub algorithm: &'static str,
    /// The word for what is counted as entries.
    #[serde(skip)]
    pub counted: Counted,
    pub nodes: usize,
    pub safe: bool,
    pub live: bool,
    /// Null where bounds are not claimed.
    pub bounded: Option<bool>,
    pub messages_per_entry: Option<f64>,
    pub published_messages_per_entry: Option<Published>,
    /// Whether the messages per entry are as published.
    pub as_published: Option<bool>,
    pub message_bytes: Option<f64>,
    /// Where threads share memory; there are no messages then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accesses_per_entry: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_accesses_per_entry: Option<f64>,
    pub waiting_time: Option<f64>,
    pub response_time: Option<f64>,
    pub synchronisation_delay: Option<f64>,
    /// Null where there is no inside.
    pub overtakes_max: Option<u64>,
}
