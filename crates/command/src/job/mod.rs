//! `testigo job`: creates, takes, finds, shows, moves and deletes jobs by hand.

mod body;
mod chosen;
mod create;
mod data;
mod hold;
mod look;
mod many;

use clap::{Args, Subcommand};

use crate::exit::Outcome;

/// Create jobs, look at them, and move, retry or delete them by hand.
///
/// A queue is FLOW/QUEUE, or its name alone if only one flow has it. A job is known by its id.
///
/// Examples:
///
///     testigo job create orders/orders '{"item": 7}'
///     testigo job find 'order-*'
///     testigo job retry --in orders/failed --find '*'
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Job {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Create(create::Create),
    Take(hold::Take),
    Pass(hold::Pass),
    Back(hold::Back),
    Show(look::Show),
    History(look::History),
    Find(look::Find),
    List(look::List),
    Count(look::Count),
    Move(many::Move),
    Retry(many::Retry),
    Delete(many::Delete),
}

impl Job {
    pub(crate) fn run(self) -> Outcome {
        match self.action {
            Action::Create(command) => command.run(),
            Action::Take(command) => command.run(),
            Action::Pass(command) => command.run(),
            Action::Back(command) => command.run(),
            Action::Show(command) => command.run(),
            Action::History(command) => command.run(),
            Action::Find(command) => command.run(),
            Action::List(command) => command.run(),
            Action::Count(command) => command.run(),
            Action::Move(command) => command.run(),
            Action::Retry(command) => command.run(),
            Action::Delete(command) => command.run(),
        }
    }
}
