//! Bringing a text up to date with a changed graph, so that an editor does not lose what people wrote: statements that
//! still hold stay as they are, with their comments and in their order.

use std::collections::BTreeSet;
use std::mem::take;

use crate::canonical::{declaration, declarations, values};
use crate::cover::chains;
use crate::text::{Built, Declaration, Statement, StatementKind, Subject, Trivia};
use crate::{Chain, Document, Flow, Name};

/// The text of a flow, made from an older text: the same text where both mean the same.
pub fn revise(document: &Document, flow: &Flow) -> Document {
    let mut revised = document.clone();
    if Built::from_document("", document).graph == *flow.graph() {
        return revised;
    }
    // What stands at the top is about the whole text, and stays.
    let mut head = revised
        .statements
        .first_mut()
        .map(|first| take(&mut first.lead));
    revised
        .statements
        .retain_mut(|statement| match &mut statement.kind {
            StatementKind::Chain { chain, .. } => still_holds(chain, flow),
            StatementKind::Declaration(declaration) => update(declaration, flow),
        });
    let missing = chains(flow, revised.chains());
    let is_chain = |statement: &Statement| matches!(statement.kind, StatementKind::Chain { .. });
    let at = revised.statements.iter().rposition(is_chain);
    let at = at.map_or(revised.statements.len(), |at| at + 1);
    let new = missing.into_iter().map(Statement::chain);
    revised.statements.splice(at..at, new);
    let declared: BTreeSet<String> = revised.statements.iter().filter_map(subject).collect();
    let mentioned: BTreeSet<Name> = revised
        .chains()
        .flat_map(|chain| chain.queues.clone())
        .collect();
    for declaration in declarations(flow, |name| mentioned.contains(name)) {
        if !declared.contains(&declaration.subject.to_string()) {
            let mut statement = Statement::new(StatementKind::Declaration(declaration));
            // As in a canonical text.
            if revised.statements.last().is_some_and(is_chain) {
                statement.lead.push(Trivia::Blank);
            }
            revised.statements.push(statement);
        }
    }
    if let (Some(head), Some(first)) = (&mut head, revised.statements.first_mut()) {
        head.append(&mut first.lead);
        if head.first() == Some(&Trivia::Blank) {
            head.remove(0);
        }
        first.lead = take(head);
    }
    revised
}

/// Whether all that a chain says is so.
fn still_holds(chain: &Chain, flow: &Flow) -> bool {
    let process = |name: Option<&Name>| name.and_then(|name| flow.processes.get(name));
    let last = chain.queues.len() - 1;
    let rejects = flow.reject_queues();
    chain.queues.iter().enumerate().all(|(at, queue)| {
        let put = match (at, process(chain.before(at))) {
            (0, None) => chain.from_reject && rejects.contains(queue),
            (0, Some(process)) => process.creates.contains(queue),
            (_, process) => process.is_some_and(|process| process.passes.contains(queue)),
        };
        let taken = process(chain.after(at)).is_some_and(|process| match at == last {
            true => process.deletes.contains(queue),
            false => process.takes.contains(queue),
        });
        put && taken
    })
}

/// Gives a declaration its present attributes; false when nothing is left to declare.
fn update(old: &mut Declaration, flow: &Flow) -> bool {
    let exists = match &old.subject {
        Subject::Flow => true,
        Subject::Queue(name) => flow.queues.contains_key(name),
        Subject::Process(name) => flow.processes.contains_key(name),
    };
    let wanted = values(flow, &old.subject);
    old.attributes.retain_mut(|attribute| {
        let word = attribute.value.word();
        match wanted.iter().find(|value| value.word() == word) {
            Some(value) => {
                attribute.value = value.clone();
                true
            }
            None => false,
        }
    });
    let known: Vec<&str> = old.attributes.iter().map(|a| a.value.word()).collect();
    let new = wanted.iter().filter(|value| !known.contains(&value.word()));
    let new = declaration(old.subject.clone(), new.cloned().collect());
    old.attributes.extend(new.attributes);
    let keeps = !old.attributes.is_empty() || matches!(old.subject, Subject::Queue(_));
    exists && (keeps || !old.tail.is_empty())
}

fn subject(statement: &Statement) -> Option<String> {
    match &statement.kind {
        StatementKind::Declaration(declaration) => Some(declaration.subject.to_string()),
        StatementKind::Chain { .. } => None,
    }
}
