//! Measures Testigo against its bars, as `cargo xtask bench NAME`. Each measurement is a file, and a
//! line in [`BENCHES`]; it ends with a table and, where a bar is missed, with exit code 1.

mod cluster;
mod disk;
mod jobs;
mod lab;
mod locks;
mod pools;
mod product;
mod report;
mod service;
mod sockets;
mod tally;
mod threads;
mod wire;

use std::process::ExitCode;

/// A measurement by name. `Ok(false)` is a missed bar, `Err` one that could not be measured.
struct Bench {
    name: &'static str,
    about: &'static str,
    run: fn(&[String]) -> Result<bool, String>,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "lab",
        about: "The laboratory: simulated messages, explored states, drawing, claims",
        run: lab::run,
    },
    Bench {
        name: "locks",
        about: "Locks beside PostgreSQL, etcd and Redis; memory and sessions of a node",
        run: locks::run,
    },
    Bench {
        name: "jobs",
        about: "Durable jobs beside PostgreSQL, Redis, RabbitMQ and NATS; a million waiting jobs",
        run: jobs::run,
    },
    Bench {
        name: "cluster",
        about: "Three nodes beside three of etcd and of RabbitMQ; how long a killed node is missed",
        run: cluster::run,
    },
    Bench {
        name: "pools",
        about: "Takes and gives of slots beside PING and a semaphore on etcd; a large pool on many nodes",
        run: pools::run,
    },
    Bench {
        name: "threads",
        about: "Locks for threads beside those of std and parking_lot",
        run: threads::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        None => {
            println!("{}", help());
            Ok(true)
        }
        Some((name, rest)) => match BENCHES.iter().find(|bench| bench.name == name) {
            Some(bench) => (bench.run)(rest),
            None => Err(format!("no measurement `{name}`\n\n{}", help())),
        },
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(reason) => {
            eprintln!("bench: {reason}");
            ExitCode::from(2)
        }
    }
}

fn help() -> String {
    let mut text = String::from("Usage: cargo xtask bench NAME [ARGUMENT]...\n\nMeasurements:");
    for bench in BENCHES {
        text += &format!("\n  {:<8} {}", bench.name, bench.about);
    }
    text
}

/// The value of an option that counts something.
fn number(option: &str, value: Option<&String>) -> Result<usize, String> {
    let number = value.and_then(|n| n.parse().ok()).filter(|n| *n > 0);
    number.ok_or_else(|| format!("{option} needs a number above 0"))
}
