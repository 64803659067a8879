//! Hands `bench` to the package in `bench/`. It compares with rivals and so depends on heavy
//! crates; kept apart, it costs a plain build nothing.

use crate::process::{cargo, root, succeeds};

pub(crate) const BENCH_HELP: &str = "\
Usage: cargo xtask bench [NAME] [ARGUMENT]...

Runs a measurement of the package testigo-bench, optimised. Without a NAME it lists them.";

pub(crate) fn bench(arguments: &[String]) -> Result<bool, String> {
    let manifest = "bench/Cargo.toml";
    if !root()?.join(manifest).is_file() {
        return Err(format!(
            "nothing to measure yet: there is no package testigo-bench ({manifest}); \
             `cargo xtask test` and `cargo xtask tidy` are available"
        ));
    }
    let run = format!("run --release --manifest-path {manifest} --package testigo-bench --");
    succeeds(cargo(&run)?.args(arguments))
}
