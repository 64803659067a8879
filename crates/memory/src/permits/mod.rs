//! k-exclusion among threads: at most k inside.

mod fife;

use crate::ThreadAlgorithm;

/// Every algorithm here.
pub static ALGORITHMS: &[&ThreadAlgorithm] = &[&fife::FIFE];

pub use fife::Fife;
