//! Hands `bench` to the package in `bench/`. It compares with rivals and so depends on heavy
//! crates; kept apart, it costs a plain build nothing.

use crate::process::{cargo, succeeds};

pub(crate) const BENCH_HELP: &str = "\
Usage: cargo xtask bench [NAME] [ARGUMENT]...

Runs a measurement of the package testigo-bench, optimised. Without a NAME it lists them.";

/// The package's own.
pub(crate) const MANIFEST: &str = "bench/Cargo.toml";

pub(crate) fn bench(arguments: &[String]) -> Result<bool, String> {
    let run = format!("run --release --manifest-path {MANIFEST} --package testigo-bench --");
    succeeds(cargo(&run)?.args(arguments))
}
