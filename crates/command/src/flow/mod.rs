//! `testigo flow`: systems built from processes and queues, as texts and on a node.

mod check;
mod edit;
mod file;
mod fmt;
mod graph;
mod model;
mod new;
mod on_node;
mod plan;
mod replace;
mod simulate;
mod stats;

use clap::{Args, Subcommand};

use crate::exit::Outcome;

#[derive(Args)]
pub(crate) struct Flow {
    #[command(subcommand)]
    command: FlowCommand,
}

#[derive(Subcommand)]
enum FlowCommand {
    New(new::New),
    Check(check::Check),
    Fmt(fmt::Fmt),
    Graph(graph::Graph),
    Plan(plan::Plan),
    Edit(edit::Edit),
    Model(model::Model),
    Simulate(simulate::Simulate),
    Stats(stats::Stats),
    #[command(flatten)]
    OnNode(on_node::OnNode),
}

impl Flow {
    pub(crate) fn run(self) -> Outcome {
        match self.command {
            FlowCommand::New(command) => command.run(),
            FlowCommand::Check(command) => command.run(),
            FlowCommand::Fmt(command) => command.run(),
            FlowCommand::Graph(command) => command.run(),
            FlowCommand::Plan(command) => command.run(),
            FlowCommand::Edit(command) => command.run(),
            FlowCommand::Model(command) => command.run(),
            FlowCommand::Simulate(command) => command.run(),
            FlowCommand::Stats(command) => command.run(),
            FlowCommand::OnNode(command) => command.run(),
        }
    }
}
