//! What a liar can say in PBFT: anything that needs no signature but its own. It can leave out what it has prepared and
//! cannot invent it; it can sign commands of its own client, and not those of others.

use super::execution::digest;
use super::view_change::ViewChange;
use super::{Command, Config, Digest, Signed};
use crate::NodeId;

pub(super) fn lies(message: &Signed, config: &Config) -> Vec<Signed> {
    match message {
        Signed::Request(command) => vec![Signed::Request(unasked(command.client))],
        &Signed::PrePrepare { view, n, request } => {
            let other = Some(unasked(config.primary(view)));
            let numbers = other_numbers(n).map(move |n| (n, request));
            numbers
                .chain([(n, other)])
                .map(|(n, request)| Signed::PrePrepare { view, n, request })
                .collect()
        }
        &Signed::Prepare { view, n, digest } => votes(view, n, digest, config)
            .map(|(view, n, digest)| Signed::Prepare { view, n, digest })
            .collect(),
        &Signed::Commit { view, n, digest } => votes(view, n, digest, config)
            .map(|(view, n, digest)| Signed::Commit { view, n, digest })
            .collect(),
        &Signed::Reply {
            view,
            command,
            index,
        } => other_numbers(index)
            .map(|index| Signed::Reply {
                view,
                command,
                index,
            })
            .collect(),
        &Signed::Checkpoint { n, digest } => vec![Signed::Checkpoint { n, digest: !digest }],
        Signed::ViewChange(change) => poorer(change).map(Signed::ViewChange).collect(),
        Signed::NewView { view, changes } => {
            let own = config.primary(*view);
            let forgetful = changes.get(&own).into_iter().flat_map(poorer);
            let forgetful = forgetful.map(|change| {
                let mut changes = changes.clone();
                changes.insert(own, change);
                changes
            });
            let mut thin = changes.clone();
            thin.pop_first();
            forgetful
                .chain([thin])
                .map(|changes| Signed::NewView {
                    view: *view,
                    changes,
                })
                .collect()
        }
        Signed::State { executed } => {
            let mut short = executed.clone();
            short.pop();
            // As long as the truth: what fills a gap needs nobody's signature.
            let mut emptied = executed.clone();
            if let Some(last) = emptied.iter_mut().rfind(|entry| entry.is_some()) {
                *last = None;
            }
            let lies = [short, emptied].into_iter();
            lies.filter(|lie| lie != executed)
                .map(|executed| Signed::State { executed })
                .collect()
        }
        Signed::Fetch { .. } => Vec::new(),
    }
}

/// The same view change without all that was prepared, without one of it, and from before the first checkpoint. An older
/// checkpoint than the last proves less, and its certificate stays valid.
fn poorer(change: &ViewChange) -> impl Iterator<Item = ViewChange> {
    let mut silent = change.clone();
    silent.prepared.clear();
    let several = change.prepared.keys().filter(|_| change.prepared.len() > 1);
    let without_one = several.map(|n| {
        let mut without = change.clone();
        without.prepared.remove(n);
        without
    });
    let older = (change.stable > 0).then(|| ViewChange {
        stable: 0,
        stable_digest: digest(&[]),
        ..change.clone()
    });
    [silent].into_iter().chain(without_one).chain(older)
}

/// A command that its client signs without anybody having asked for it.
fn unasked(client: NodeId) -> Command {
    Command { client, number: 0 }
}

fn other_numbers(n: u32) -> impl Iterator<Item = u32> {
    [n + 1, n.saturating_sub(1)].into_iter().filter(|&n| n > 0)
}

/// The same vote for another digest, another number or the next view.
fn votes(
    view: u32,
    n: u32,
    digest: Digest,
    config: &Config,
) -> impl Iterator<Item = (u32, u32, Digest)> {
    let digests = [Some(unasked(config.primary(view))), None];
    let digests = digests.into_iter().filter(move |other| *other != digest);
    let digests = digests.map(move |digest| (view, n, digest));
    let numbers = other_numbers(n).map(move |n| (view, n, digest));
    digests.chain(numbers).chain([(view + 1, n, digest)])
}
