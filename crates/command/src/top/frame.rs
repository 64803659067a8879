//! One picture of a node as lines of text, as wide and as high as the terminal. Nothing here knows a terminal.

use std::cmp::Reverse;

use super::snapshot::{Gate, Queue, Session, Snapshot, rates};

/// What the picture shows, and what was typed so far.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Where the node is.
    pub(super) address: String,
    pub(super) page: Page,
    pub(super) sort: Sort,
    pub(super) filter: String,
    /// The filter is being typed.
    pub(super) typing: bool,
    pub(super) paused: bool,
    /// Lines of the list above the picture.
    pub(super) scrolled: usize,
    /// Why the last look failed.
    pub(super) trouble: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Page {
    Gates,
    Queues,
    Sessions,
}

impl Page {
    pub(super) fn next(self) -> Page {
        match self {
            Page::Gates => Page::Queues,
            Page::Queues => Page::Sessions,
            Page::Sessions => Page::Gates,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Page::Gates => "gates",
            Page::Queues => "queues",
            Page::Sessions => "sessions",
        }
    }
}

/// Who comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Waiting,
    Held,
    Name,
}

impl Sort {
    pub(super) fn next(self) -> Sort {
        match self {
            Sort::Waiting => Sort::Held,
            Sort::Held => Sort::Name,
            Sort::Name => Sort::Waiting,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Sort::Waiting => "waiting",
            Sort::Held => "time",
            Sort::Name => "name",
        }
    }
}

/// How a line stands out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Head,
    Bold,
    Alarm,
}

pub(super) type StyledLine = (Style, String);

/// Lines above and below the list.
const HEAD: usize = 4;
const FOOT: usize = 1;

/// The picture. Without a height all of the list is in it, and no keys.
pub(super) fn frame(
    view: &View,
    before: Option<&Snapshot>,
    now: &Snapshot,
    width: usize,
    height: Option<usize>,
) -> Vec<StyledLine> {
    let mut lines = head(view, before, now);
    let list = match view.page {
        Page::Gates => gates(view, now),
        Page::Queues => queues(view, now),
        Page::Sessions => sessions(view, now),
    };
    match height {
        None => lines.extend(list),
        Some(height) => {
            let room = height.saturating_sub(HEAD + FOOT);
            let last = list.len().saturating_sub(room);
            lines.extend(list.into_iter().skip(view.scrolled.min(last)).take(room));
            lines.resize(
                height.saturating_sub(FOOT).max(HEAD),
                (Style::Plain, String::new()),
            );
            lines.push(foot(view));
        }
    }
    for (_, text) in &mut lines {
        *text = cut(text.trim_end(), width);
    }
    lines
}

/// How far the list can be scrolled.
pub(super) fn length(view: &View, now: &Snapshot) -> usize {
    match view.page {
        Page::Gates => gates(view, now).len(),
        Page::Queues => queues(view, now).len(),
        Page::Sessions => sessions(view, now).len(),
    }
}

fn head(view: &View, before: Option<&Snapshot>, now: &Snapshot) -> Vec<StyledLine> {
    let Snapshot {
        version,
        start,
        sizes,
        ..
    } = now;
    let up = clock(now.now_ms);
    let title = format!(
        "testigo {version}  {}  up {up}  start {start}",
        view.address
    );
    let first = match (&view.trouble, now.recovering, view.paused) {
        (Some(why), ..) => (Style::Alarm, format!("{title}  NO ANSWER: {why}")),
        (None, true, _) => {
            let which = if now.everything_waits {
                "no"
            } else {
                "not every"
            };
            let said = format!("{title}  RECOVERING: {which} gate grants yet");
            (Style::Alarm, said)
        }
        (None, false, _) if !now.missing.is_empty() => {
            let nodes = now.missing.iter().map(|node| format!("node {node}"));
            let nodes: Vec<String> = nodes.collect();
            let said = format!("{title}  MISSING: {}", nodes.join(", "));
            (Style::Alarm, said)
        }
        (None, false, true) => (Style::Alarm, format!("{title}  PAUSED")),
        (None, false, false) => (Style::Bold, title),
    };
    let counts = format!(
        "gates {}  sessions {}  holds {}  waits {}  connections {}",
        sizes.gates, sizes.sessions, sizes.holds, sizes.waits, sizes.connections
    );
    let rates = rates(before, now).map(|(name, rate)| format!("{name} {}", short(rate)));
    let columns = match view.page {
        Page::Gates => row(["GATE", "", "MODE", "CL", "FENCE", "TIME", "LEFT", "REASON"]),
        Page::Queues => queue_row([
            "QUEUE", "WAITING", "HELD", "LIMIT", "AGE", "TAKERS", "IN/S", "OUT/S", "DEATHS",
        ]),
        Page::Sessions => session_row(["SESSION", "USER", "LABEL", "SILENT", "HOLDS", "WAITS FOR"]),
    };
    vec![
        first,
        (Style::Plain, counts),
        (Style::Plain, format!("per second: {}", rates.join("  "))),
        (Style::Head, columns),
    ]
}

/// A gate's line, then its holders, then its waiters, the next one first.
fn gates(view: &View, now: &Snapshot) -> Vec<StyledLine> {
    let used = |gate: &&Gate| gate.inside + gate.waiting > 0 && gate.name.contains(&view.filter);
    let mut shown: Vec<&Gate> = now.gates.iter().filter(used).collect();
    let oldest = |gate: &Gate| gate.holders.iter().map(|holder| holder.since).min();
    match view.sort {
        Sort::Waiting => shown.sort_by_key(|gate| (Reverse(gate.waiting), gate.name.clone())),
        Sort::Held => {
            shown.sort_by_key(|gate| (oldest(gate).unwrap_or(u64::MAX), gate.name.clone()));
        }
        Sort::Name => shown.sort_by_key(|gate| gate.name.clone()),
    }
    let mut lines = Vec::new();
    for gate in shown {
        let Gate {
            name,
            rule,
            inside,
            waiting,
            ..
        } = gate;
        let title = format!("{name}  {rule}, {inside} inside, {waiting} waiting");
        lines.push((Style::Bold, title));
        for holder in &gate.holders {
            let left = holder
                .until
                .map(|until| clock(until.saturating_sub(now.now_ms)));
            lines.push((
                Style::Plain,
                row([
                    "  in",
                    &who(holder.session, holder.label.as_deref()),
                    &holder.mode,
                    "",
                    &holder.fence.to_string(),
                    &clock(now.now_ms.saturating_sub(holder.since)),
                    left.as_deref().unwrap_or("-"),
                    holder.reason.as_deref().unwrap_or(""),
                ]),
            ));
        }
        for (at, waiter) in gate.waiters.iter().enumerate() {
            lines.push((
                Style::Plain,
                row([
                    &format!("  {}.", at + 1),
                    &who(waiter.session, waiter.label.as_deref()),
                    &waiter.mode,
                    &waiter.class.to_string(),
                    "waits",
                    &clock(now.now_ms.saturating_sub(waiter.since)),
                    &clock(waiter.until.saturating_sub(now.now_ms)),
                    waiter.reason.as_deref().unwrap_or(""),
                ]),
            ));
        }
        let hidden = inside + waiting - gate.holders.len() - gate.waiters.len();
        if hidden > 0 {
            lines.push((Style::Plain, format!("  and {hidden} more")));
        }
    }
    if now.gates_more > 0 {
        lines.push((Style::Plain, format!("and {} gates more", now.gates_more)));
    }
    if lines.is_empty() {
        lines.push((
            Style::Plain,
            "nobody is inside a gate, and nobody waits".into(),
        ));
    }
    lines
}

fn queues(view: &View, now: &Snapshot) -> Vec<StyledLine> {
    let fits = |queue: &&Queue| queue.name.contains(&view.filter);
    let mut shown: Vec<&Queue> = now.queues.iter().filter(fits).collect();
    match view.sort {
        Sort::Waiting => shown.sort_by_key(|queue| (Reverse(queue.waiting), queue.name.clone())),
        Sort::Held => shown.sort_by_key(|queue| (Reverse(queue.age_ms), queue.name.clone())),
        Sort::Name => shown.sort_by_key(|queue| queue.name.clone()),
    }
    let line = |queue: &Queue| {
        let Queue {
            name,
            waiting,
            held,
            takers,
            deaths,
            ..
        } = queue;
        let limit = queue.limit.map(|limit| limit.to_string());
        let row = queue_row([
            name,
            &waiting.to_string(),
            &held.to_string(),
            limit.as_deref().unwrap_or("-"),
            queue.age_ms.map(clock).as_deref().unwrap_or("-"),
            &takers.to_string(),
            &short(queue.arrivals_per_second),
            &short(queue.departures_per_second),
            &deaths.to_string(),
        ]);
        // Jobs that nobody takes.
        let style = match *waiting > 0 && takers + held == 0 {
            true => Style::Alarm,
            false => Style::Plain,
        };
        (style, row)
    };
    match shown.is_empty() {
        true => vec![(Style::Plain, "there are no queues".into())],
        false => shown.into_iter().map(line).collect(),
    }
}

fn sessions(view: &View, now: &Snapshot) -> Vec<StyledLine> {
    let fits = |session: &&Session| {
        let label = session.label.as_deref().unwrap_or("");
        let user = session.user.as_deref().unwrap_or("");
        let mut names = session.holds.iter().chain(&session.waits);
        [label, user].iter().any(|text| text.contains(&view.filter))
            || names.any(|name| name.contains(&view.filter))
    };
    let mut shown: Vec<&Session> = now.sessions.iter().filter(fits).collect();
    match view.sort {
        Sort::Waiting => shown.sort_by_key(|session| Reverse(session.waits.len())),
        Sort::Held => shown.sort_by_key(|session| session.since),
        Sort::Name => shown.sort_by_key(|session| (session.label.clone(), session.session)),
    }
    let mut lines: Vec<StyledLine> = shown
        .into_iter()
        .map(|session| {
            let silent = match (session.awaited, session.connected) {
                (true, _) => "awaited".to_owned(),
                (false, true) => clock(now.now_ms.saturating_sub(session.heard)),
                (false, false) => {
                    format!("gone {}", clock(now.now_ms.saturating_sub(session.heard)))
                }
            };
            let style = match session.connected && !session.awaited {
                true => Style::Plain,
                false => Style::Alarm,
            };
            let text = session_row([
                &session.session.to_string(),
                session.user.as_deref().unwrap_or("-"),
                session.label.as_deref().unwrap_or("-"),
                &silent,
                &session.holds.len().to_string(),
                &session.waits.join(" "),
            ]);
            (style, text)
        })
        .collect();
    if now.sessions_more > 0 {
        lines.push((
            Style::Plain,
            format!("and {} sessions more", now.sessions_more),
        ));
    }
    lines
}

fn foot(view: &View) -> StyledLine {
    if view.typing {
        return (
            Style::Head,
            format!(
                "only names with: {}_   Enter keeps it, Esc drops it",
                view.filter
            ),
        );
    }
    let other = view.page.next().word();
    let pause = if view.paused { "go on" } else { "pause" };
    let filter = match view.filter.as_str() {
        "" => "/ filter".to_owned(),
        text => format!("/ filter: {text}"),
    };
    let sort = view.sort.word();
    let text = format!("q quit  p {pause}  s sort: {sort}  {filter}  Tab {other}  arrows scroll");
    (Style::Head, text)
}

fn row([first, who, mode, class, fence, time, left, reason]: [&str; 8]) -> String {
    let (first, who, mode) = (cut(first, 5), cut_front(who, 24), cut(mode, 9));
    format!("{first:<5} {who:<24} {mode:<9} {class:>2} {fence:>12} {time:>5} {left:>5} {reason}")
}

fn session_row([session, user, label, silent, holds, waits]: [&str; 6]) -> String {
    let (user, label) = (cut(user, 8), cut_front(label, 24));
    format!("{session:<16} {user:<8} {label:<24} {silent:>8} {holds:>5} {waits}")
}

fn queue_row(
    [
        name,
        waiting,
        held,
        limit,
        age,
        takers,
        arrivals,
        departures,
        deaths,
    ]: [&str; 9],
) -> String {
    let name = cut(name, 27);
    format!(
        "{name:<27} {waiting:>7} {held:>5} {limit:>6} {age:>5} {takers:>6} {arrivals:>5} {departures:>5} {deaths:>6}"
    )
}

/// A session by its label, or by its number.
fn who(session: u64, label: Option<&str>) -> String {
    label.map_or_else(|| session.to_string(), str::to_owned)
}

/// A text of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => text
            .chars()
            .take(most.saturating_sub(1))
            .chain(['~'])
            .collect(),
    }
}

/// The end of a text, which tells clients apart: labels begin with the host and end with process and command.
fn cut_front(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count <= most {
        true => text.to_owned(),
        false => ['~']
            .into_iter()
            .chain(text.chars().skip(count + 1 - most))
            .collect(),
    }
}

/// A span in the two units that matter, in at most five characters up to 100 days.
fn clock(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}", seconds / 86_400, seconds / 3600 % 24),
    }
}

fn short(rate: f64) -> String {
    match rate {
        0.0..10.0 => format!("{rate:.1}"),
        10.0..10_000.0 => format!("{rate:.0}"),
        _ => format!("{:.0}k", rate / 1000.0),
    }
}

#[cfg(test)]
mod tests;
