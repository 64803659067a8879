//! How gates and sessions are shown on the wire. Times are given as durations in milliseconds, because the node's clock means
//! nothing elsewhere.

use testigo_core::{Definition, GateView, HolderView, Name, Rule, SessionView, WaiterView};

use crate::house::{fence_reply, mode_words};
use crate::users::{Deed, User};
use crate::wire::Reply;

/// A rule with its number, in the syntax of `GATE CREATE`.
pub(super) fn rule_words(rule: Rule) -> String {
    match rule {
        Rule::Permits(k) => format!("PERMITS {k}"),
        rule => rule.word().to_owned(),
    }
}

/// The number of pairs in a gate's map.
pub(super) const GATE_FIELDS: usize = 20;

/// How a gate is shown.
pub(super) struct GateShown<'a> {
    /// The user who sees it.
    pub(super) user: &'a User,
    pub(super) now: u64,
    /// The node that shows its own part of a spread gate.
    pub(super) node: Option<u64>,
}

/// A gate as a user may see it.
pub(super) fn gate_reply(
    view: &GateView,
    travels: Vec<(&'static str, Reply)>,
    shown: &GateShown<'_>,
) -> Reply {
    let mut pairs = gate_pairs(view);
    pairs.extend(travels);
    let holders = rows(&view.holders, |holder| holder_reply(holder, shown));
    let waiters = rows(&view.waiters, |waiter| waiter_reply(waiter, shown));
    pairs.extend([("holders", holders), ("waiters", waiters)]);
    debug_assert_eq!(pairs.len(), GATE_FIELDS);
    Reply::Map(pairs)
}

/// The properties of a gate, without the people.
pub(super) fn gate_pairs(view: &GateView) -> Vec<(&'static str, Reply)> {
    let Definition {
        rule,
        order,
        classes,
        overtakes,
        lease_ms,
        capacity,
        stay_ms,
        travels: _,
    } = &view.definition;
    vec![
        ("name", Reply::text(view.name.as_str())),
        ("rule", Reply::text(rule_words(*rule))),
        ("order", Reply::text(order.word())),
        ("classes", Reply::number((*classes).into())),
        (
            "class",
            Reply::number(view.definition.class_default().into()),
        ),
        ("overtakes", Reply::number((*overtakes).into())),
        ("lease_ms", Reply::optional(*lease_ms, Reply::number)),
        (
            "capacity",
            Reply::optional(capacity.map(u64::from), Reply::number),
        ),
        ("stay_ms", Reply::optional(*stay_ms, Reply::number)),
        ("implicit", Reply::flag(view.implicit)),
        (
            "awaits",
            rows(&view.awaits, |session| Reply::number(session.number())),
        ),
    ]
}

fn rows<T>(items: &[T], row: impl Fn(&T) -> Reply) -> Reply {
    Reply::Array(items.iter().map(row).collect())
}

pub(super) fn text(text: &Option<String>) -> Reply {
    Reply::optional(text.as_deref(), Reply::text)
}

/// The names that are not elections.
fn gates(names: &[Name]) -> Vec<Name> {
    let gates = names.iter().filter(|name| name.as_election().is_none());
    gates.cloned().collect()
}

fn names(names: &[Name]) -> Reply {
    rows(names, |name| Reply::text(name.as_str()))
}

pub(super) fn holder_reply(holder: &HolderView, shown: &GateShown<'_>) -> Reply {
    let now = shown.now;
    let left = holder.until.map(|until| until.saturating_sub(now));
    let mut fields = vec![
        ("session", Reply::number(holder.session.number())),
        ("label", text(&holder.label)),
        ("mode", Reply::text(mode_words(&holder.mode))),
        ("fence", fence_reply(holder.fence)),
        ("held_ms", Reply::number(now.saturating_sub(holder.since))),
        ("left_ms", Reply::optional(left, Reply::number)),
        ("reason", text(&holder.reason)),
        ("leads", Reply::flag(holder.leads)),
        ("proven", Reply::flag(holder.proven)),
    ];
    // Only a cluster has this, so only there is it shown.
    if holder.reserved {
        fields.push(("reserved", Reply::flag(true)));
    }
    fields.extend(shown.node.map(|node| ("node", Reply::number(node))));
    Reply::Map(fields)
}

pub(super) fn waiter_reply(waiter: &WaiterView, shown: &GateShown<'_>) -> Reply {
    let now = shown.now;
    let seen = |name: &&Name| shown.user.may(Deed::Show, name);
    let set: Vec<Name> = waiter.set.iter().filter(seen).cloned().collect();
    let mut fields = vec![
        ("session", Reply::number(waiter.session.number())),
        ("label", text(&waiter.label)),
        ("ticket", Reply::number(waiter.ticket.0)),
        ("mode", Reply::text(mode_words(&waiter.mode))),
        ("class", Reply::number(waiter.class.into())),
        ("waited_ms", Reply::number(now.saturating_sub(waiter.since))),
        ("left_ms", Reply::number(waiter.until.saturating_sub(now))),
        ("reason", text(&waiter.reason)),
        ("overtaken", Reply::number(waiter.overtaken.into())),
        ("set", names(&set)),
        ("needs_ms", Reply::optional(waiter.needs_ms, Reply::number)),
    ];
    fields.extend(shown.node.map(|node| ("node", Reply::number(node))));
    Reply::Map(fields)
}

pub(super) fn session_reply(view: &SessionView, owner: Option<&str>, now: u64) -> Reply {
    let mut fields = vec![
        ("session", Reply::number(view.session.number())),
        (
            "kind",
            Reply::text(if view.session.is_implicit() {
                "implicit"
            } else {
                "opened"
            }),
        ),
        ("label", text(&view.label)),
        ("user", Reply::optional(owner, Reply::text)),
        ("ttl_ms", Reply::optional(view.ttl_ms, Reply::number)),
        ("open_ms", Reply::number(now.saturating_sub(view.since))),
        ("silent_ms", Reply::number(now.saturating_sub(view.heard))),
        ("connected", Reply::flag(view.connected)),
        ("awaited", Reply::flag(view.awaited)),
        ("holds", names(&gates(&view.holds))),
        ("waits", names(&gates(&view.waits))),
    ];
    // Most sessions have nothing to do with elections, so the fields are shown only where there is something.
    for (field, names) in [("leads", &view.holds), ("campaigns", &view.waits)] {
        let elections = names.iter().filter_map(|name| name.as_election());
        let elections: Vec<Reply> = elections.map(Reply::text).collect();
        if !elections.is_empty() {
            fields.push((field, Reply::Array(elections)));
        }
    }
    Reply::Map(fields)
}
