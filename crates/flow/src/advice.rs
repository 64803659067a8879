//! How to mend a graph, in the words of what it was read from.

use crate::{Name, Notation};

/// Whom advice is for: readers of a text in some notation, or users of an editor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Advice(pub(crate) Option<Notation>);

impl Advice {
    /// The words for chains, for a configuration file, and for an editor.
    fn of(self, chains: String, config: String, editor: String) -> String {
        match self.0 {
            Some(Notation::Flow | Notation::Classic) => chains,
            Some(Notation::Config) => config,
            None => editor,
        }
    }

    pub(crate) fn no_queue(self, queue: &Name) -> String {
        let add = || format!("add the queue {queue}, or name another");
        self.of(add(), listed(queue), add())
    }

    pub(crate) fn no_pass(self, process: &Name, queue: &Name) -> String {
        let arrow = || format!("add the arrow {process} -> [{queue}]");
        let config = format!("list {queue} behind s: of {process} too");
        self.of(arrow(), config, arrow())
    }

    pub(crate) fn no_take(self, process: &Name, queue: &Name) -> String {
        let arrow = || format!("add the arrow [{queue}] -> {process}");
        let config = format!("list {queue} behind e: of {process} too");
        self.of(arrow(), config, arrow())
    }

    pub(crate) fn unused_process(self, process: &Name) -> String {
        self.of(
            format!("write a chain with {process}, or remove it"),
            format!("list queues behind e: and s: of {process}, or remove it"),
            "let it take from a queue or put into one, or remove it".into(),
        )
    }

    pub(crate) fn no_source(self, process: &Name, queue: &Name) -> String {
        let neutral = || format!("let {process} create into [{queue}], or take from a queue");
        let config = format!("list {queue} behind i: of {process}, or a queue behind e:");
        self.of(neutral(), config, neutral())
    }

    pub(crate) fn no_end(self, process: &Name, queue: &Name) -> String {
        let neutral = || format!("let {process} delete from [{queue}], or put into a queue");
        let config = format!("list {queue} behind f: of {process}, or a queue behind s:");
        self.of(neutral(), config, neutral())
    }

    pub(crate) fn nothing_puts(self, queue: &Name) -> String {
        self.of(
            format!("write a chain with process -> [{queue}]"),
            format!("list {queue} behind s: of a process"),
            "let a process put into it".into(),
        )
    }

    pub(crate) fn nothing_takes(self, queue: &Name) -> String {
        self.of(
            format!("write a chain with [{queue}] -> process"),
            format!("list {queue} behind e: of a process"),
            "let a process take from it".into(),
        )
    }

    pub(crate) fn no_reject_queue(self, queue: &Name) -> String {
        self.of(
            format!("declare it with queue {queue}, or name another"),
            listed(queue),
            format!("add the queue {queue}, or name another"),
        )
    }

    pub(crate) fn own_reject_queue(self) -> String {
        let none = || "name another, or none".to_owned();
        self.of("name another, or write reject none".into(), none(), none())
    }

    pub(crate) fn no_creator(self) -> String {
        self.of(
            "write a chain; its first process creates".into(),
            "list a process without e:, or behind i: the queues that one creates into".into(),
            "let a process create into a queue".into(),
        )
    }

    pub(crate) fn no_deleter(self) -> String {
        self.of(
            "write a chain; its last process deletes".into(),
            "list a process without s:, or behind f: the queues that one deletes from".into(),
            "let a process delete from a queue".into(),
        )
    }
}

fn listed(queue: &Name) -> String {
    format!("list {queue} between BeginCola and EndCola, or name another")
}
