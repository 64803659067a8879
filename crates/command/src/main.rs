//! The command `testigo`. Each command is a file; a command ends with an exit code that its help
//! explains.

#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_rust_codeblocks,
    reason = "a command's doc comment is its help, not Markdown"
)]

// First, because its macros are for all that follow.
#[macro_use]
mod visible;

mod advise;
mod client;
mod cluster;
mod completions;
mod confirm;
mod datafile;
mod decide;
mod demo;
mod elect;
mod exit;
mod filesroot;
mod flow;
mod gate;
mod group;
mod guard;
mod job;
mod lab;
mod leash;
mod lock;
mod man;
mod names;
mod once;
mod owner;
mod password;
mod pool;
mod queue;
mod reach;
mod session;
mod show;
mod signals;
mod span;
mod speech;
mod status;
mod top;
mod trace;
mod up;
mod work;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

/// Coordinates the processes of a cluster, and checks the algorithms that it runs.
#[derive(Parser)]
#[command(name = "testigo", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulate, check, compare and draw algorithms.
    Lab(Box<lab::Lab>),
    /// Write, check, draw and run flows: systems of processes and queues.
    Flow(flow::Flow),
    Lock(Box<lock::Lock>),
    Elect(Box<elect::Elect>),
    Pool(pool::Pool),
    Group(group::Group),
    Guard(guard::Guard),
    Gate(gate::Gate),
    Session(session::Session),
    Job(job::Job),
    Queue(queue::Queue),
    Work(Box<work::Work>),
    Client(client::Client),
    Cluster(cluster::Cluster),
    Owner(owner::Owner),
    Trace(trace::Trace),
    Advise(advise::Advise),
    Recover(cluster::Recover),
    Demo(demo::Demo),
    Status(status::Status),
    Top(top::Top),
    Once(once::Once),
    Decide(decide::Decide),
    Password(password::Password),
    Completions(completions::Completions),
    Man(man::Man),
    #[command(hide = true)]
    Names(completions::Names),
    #[command(hide = true)]
    Begin(leash::Begin),
    #[command(hide = true)]
    Leash(leash::Keep),
    Up(Box<up::Up>),
}

fn main() -> ExitCode {
    end_quietly_when_nobody_reads();
    let outcome = match Cli::parse().command {
        Command::Lab(command) => command.run(),
        Command::Flow(command) => command.run(),
        Command::Lock(command) => command.run(),
        Command::Elect(command) => command.run(),
        Command::Pool(command) => command.run(),
        Command::Group(command) => command.run(),
        Command::Guard(command) => command.run(),
        Command::Gate(command) => command.run(),
        Command::Session(command) => command.run(),
        Command::Job(command) => command.run(),
        Command::Queue(command) => command.run(),
        Command::Work(command) => command.run(),
        Command::Client(command) => command.run(),
        Command::Cluster(command) => command.run(),
        Command::Owner(command) => command.run(),
        Command::Trace(command) => command.run(),
        Command::Advise(command) => command.run(),
        Command::Recover(command) => command.run(),
        Command::Demo(command) => command.run(),
        Command::Status(command) => command.run(),
        Command::Top(command) => command.run(),
        Command::Once(command) => command.run(),
        Command::Decide(command) => command.run(),
        Command::Password(command) => command.run(),
        Command::Completions(command) => command.run(&mut Cli::command()),
        Command::Man(command) => command.run(Cli::command()),
        Command::Names(command) => command.run(&Cli::command()),
        Command::Begin(command) => command.run(),
        Command::Leash(command) => command.run(),
        Command::Up(command) => command.run(),
    };
    outcome.unwrap_or_else(exit::report)
}

/// How the standard library's panic begins when `println!` fails.
const UNPRINTABLE: &str = "failed printing to stdout: ";

/// `testigo … | head` closes the pipe early; that ends a command, and is nothing to complain about. Output that finds no
/// room ends it, too, and is.
fn end_quietly_when_nobody_reads() {
    let complain = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>();
        if message.is_some_and(|text| text.contains("Broken pipe")) {
            std::process::exit(exit::NOBODY_READS);
        }
        if let Some(why) = message.and_then(|text| text.strip_prefix(UNPRINTABLE)) {
            exit::complain!("testigo: cannot write to standard output: {why}");
            std::process::exit(exit::BAD_INPUT.into());
        }
        complain(panic);
    }));
}
