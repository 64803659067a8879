//! What a checked flow of the language means to `core`.

use std::collections::BTreeSet;

use testigo_core::{Name, QueueOrder, QueueRule, Refusal, Role, Scheme, Word};
use testigo_flow::{Flow, Process, parse};

use crate::wire::refuse;

/// Reads a flow's text. The refusal of an invalid text says where, the rule, why, and what would be right.
pub(crate) fn read(text: &str) -> Result<Scheme, Refusal> {
    let flow = parse(text).map_err(|diagnostics| {
        let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        refuse(Word::BadFlow, lines.join("; "))
    })?;
    scheme(&flow)
}

fn scheme(flow: &Flow) -> Result<Scheme, Refusal> {
    let mut scheme = Scheme::default();
    for (name, queue) in &flow.queues {
        let rule = QueueRule {
            limit: queue.limit.map(u64::from),
            order: match queue.order {
                testigo_flow::QueueOrder::Arrival => QueueOrder::Arrival,
                testigo_flow::QueueOrder::Priority => QueueOrder::Priority,
                testigo_flow::QueueOrder::Key => QueueOrder::Key,
            },
            retries: flow.retries(name),
            reject: flow
                .reject(name)
                .map(|reject| Name::new(reject))
                .transpose()?,
            users: names(&queue.rights)?,
            directory: queue.data.clone(),
        };
        scheme.queues.insert(Name::new(name)?, rule);
    }
    for (name, process) in &flow.processes {
        scheme.processes.insert(Name::new(name)?, role(process)?);
    }
    Ok(scheme)
}

fn role(process: &Process) -> Result<Role, Refusal> {
    Ok(Role {
        creates: names(&process.creates)?,
        takes: names(&process.takes)?,
        passes: names(&process.passes)?,
        deletes: names(&process.deletes)?,
        limit: process.limit,
        users: names(&process.rights)?,
    })
}

fn names(names: &BTreeSet<testigo_flow::Name>) -> Result<BTreeSet<Name>, Refusal> {
    names.iter().map(|name| Name::new(name)).collect()
}
