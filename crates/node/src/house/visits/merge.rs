//! Merges the answers of all members. They are read as they were encoded: each node has used the client's version of the wire
//! protocol.

use std::collections::BTreeMap;

use bytes::BytesMut;
use serde_json::Value;
use testigo_core::estate::Peer;
use testigo_core::{NodeId, Refusal, Start, Word};

use super::{flows, states};
use crate::commands::{FlowSums, Merge};
use crate::house::House;
use crate::wire::{KeptCommand, Protocol, Reply, array_head, encode, map_head, refuse};

/// No command makes replies deeper than this.
const DEPTH_MAX: usize = 16;

/// The refusal of an answer that is none.
pub(super) fn broken() -> Refusal {
    refuse(
        Word::Unavailable,
        "another node's answer cannot be read; nothing was done",
    )
}

/// Merges all replies for one of the members. If one is an error, it is the answer; but if missing members are named, an
/// error from another member counts as no answer.
pub(super) fn merged(
    merge: Merge,
    replies: &BTreeMap<Peer, Vec<u8>>,
    (own, members): (Peer, &[Peer]),
    protocol: Protocol,
) -> Result<BytesMut, Refusal> {
    let names_missing = merge.names_missing();
    let mut replied = replies.iter();
    let error =
        replied.find(|(from, reply)| reply.starts_with(b"-") && (**from == own || !names_missing));
    if let Some((_, error)) = error {
        return Ok(BytesMut::from(&error[..]));
    }
    match merge {
        Merge::Sum => {
            let mut sum = 0;
            for reply in replies.values() {
                match key(reply, 0).or_else(|| number(reply)).ok_or_else(broken)? {
                    Key::Number(number) => sum += number,
                    Key::Text(_) => return Err(broken()),
                }
            }
            Ok(written(&Reply::number(sum), protocol))
        }
        Merge::Lines => {
            let mut lines = Vec::new();
            for reply in replies.values() {
                lines.extend_from_slice(text(reply).ok_or_else(broken)?);
            }
            Ok(written(&Reply::Text(lines.into()), protocol))
        }
        Merge::Records => {
            let answered = replies.values().filter(|reply| !reply.starts_with(b"-"));
            let rows: Option<Vec<Vec<&[u8]>>> = answered.map(|reply| items(reply)).collect();
            let rows = rows.ok_or_else(broken)?.concat();
            let mut bytes = array_head(rows.len());
            rows.iter().for_each(|row| bytes.extend_from_slice(row));
            Ok(bytes)
        }
        Merge::Most => Ok(most(replies)),
        Merge::Any => {
            let mut any = false;
            for reply in replies.values() {
                let flag = number(reply).ok_or_else(broken)?;
                any |= flag != Key::Number(0);
            }
            Ok(written(&Reply::flag(any), protocol))
        }
        Merge::Gate => gate(replies, protocol).ok_or_else(broken),
        Merge::Pool => pool(replies, members, protocol).ok_or_else(broken),
        // These are put together elsewhere: rows one slice at a time, because there may be very many.
        Merge::Rows(_) | Merge::PoolUse => Err(broken()),
        Merge::Jobs { rows_max, paged } => {
            let (mut rows, mut more): (Vec<(Key, &[u8])>, bool) = (Vec::new(), false);
            for reply in replies.values() {
                let mut parts = items(reply).ok_or_else(broken)?;
                if paged {
                    let [next, found] = parts[..] else {
                        return Err(broken());
                    };
                    more |= text(next) != Some(b"0");
                    parts = items(found).ok_or_else(broken)?;
                }
                for row in parts {
                    rows.push((key(row, 0).ok_or_else(broken)?, row));
                }
            }
            rows.sort_by(|one, other| one.0.cmp(&other.0));
            more |= rows.len() > rows_max;
            rows.truncate(rows_max);
            let mut bytes = BytesMut::new();
            if paged {
                let next = match rows.last() {
                    Some((Key::Number(last), _)) if more => last.to_string(),
                    _ => "0".into(),
                };
                bytes = array_head(2);
                encode(&Reply::text(next), protocol, &mut bytes);
            }
            bytes.extend_from_slice(&array_head(rows.len()));
            for (_, row) in rows {
                bytes.extend_from_slice(row);
            }
            Ok(bytes)
        }
        Merge::Stats => {
            let mut sums: Option<FlowSums> = None;
            for reply in replies.values() {
                let told = serde_json::from_slice(text(reply).ok_or_else(broken)?);
                let told: FlowSums = told.map_err(|_| broken())?;
                match &mut sums {
                    Some(sums) => sums.add(told),
                    None => sums = Some(told),
                }
            }
            let sums = sums.ok_or_else(broken)?;
            Ok(written(&sums.reply(), protocol))
        }
        Merge::State { .. } | Merge::Flows => {
            let told = replies.iter().filter_map(|(from, reply)| {
                let state = serde_json::from_slice(text(reply)?);
                Some((*from, state.ok()?))
            });
            let told = told.collect();
            let state = match merge {
                Merge::State { rows_max } => states::merged(told, own, members, rows_max),
                _ => flows::merged(told, own, members),
            };
            let text = Value::Object(state.ok_or_else(broken)?).to_string();
            Ok(written(&Reply::text(text), protocol))
        }
    }
}

/// A gate of which each node knows a part: its people, and what its nodes have counted.
fn gate(replies: &BTreeMap<Peer, Vec<u8>>, protocol: Protocol) -> Option<BytesMut> {
    const LISTS: [&[u8]; 3] = [b"holders", b"waiters", b"nodes"];
    let maps: Option<Vec<Vec<&[u8]>>> = replies.values().map(|reply| items(reply)).collect();
    let maps = maps?;
    let value = |map: &[&[u8]], name: &[u8]| -> Option<usize> {
        let mut pairs = map.chunks_exact(2);
        Some(pairs.position(|pair| text(pair[0]) == Some(name))? * 2 + 1)
    };
    let rows_of = |name: &[u8]| -> Option<Vec<&[u8]>> {
        let mut rows = Vec::new();
        for map in &maps {
            rows.extend(items(map[value(map, name)?])?);
        }
        Some(rows)
    };
    let count = |row: &[u8], name: &[u8]| -> Option<u64> {
        let row = items(row)?;
        match number(row[value(&row, name)?])? {
            Key::Number(count) => Some(count),
            Key::Text(_) => None,
        }
    };
    let (mut messages, mut hand_overs) = (0, 0);
    for row in rows_of(b"nodes")? {
        messages += count(row, b"messages")?;
        hand_overs += count(row, b"hand_overs")?;
    }
    let first = maps.first()?;
    let mut bytes = map_head(first.len() / 2, protocol);
    for pair in first.chunks_exact(2) {
        let name = text(pair[0])?;
        bytes.extend_from_slice(pair[0]);
        if LISTS.contains(&name) {
            let rows = rows_of(name)?;
            bytes.extend_from_slice(&array_head(rows.len()));
            rows.iter().for_each(|row| bytes.extend_from_slice(row));
        } else if name == b"messages_per_hand_over" {
            let ratio = (hand_overs > 0).then(|| messages as f64 / hand_overs as f64);
            let ratio = Reply::optional(ratio, |ratio| Reply::text(format!("{ratio:.2}")));
            encode(&ratio, protocol, &mut bytes);
        } else {
            bytes.extend_from_slice(pair[1]);
        }
    }
    Some(bytes)
}

/// A pool of all members: what they have together, and their rows one after the other.
fn pool(
    replies: &BTreeMap<Peer, Vec<u8>>,
    members: &[Peer],
    protocol: Protocol,
) -> Option<BytesMut> {
    const SUMS: [&[u8]; 4] = [b"free", b"used", b"waiting", b"donated"];
    const LISTS: [&[u8]; 4] = [b"nodes", b"taken", b"waits", b"uses"];
    let answered = replies.iter().filter(|(_, reply)| !reply.starts_with(b"-"));
    let answered: BTreeMap<Peer, &Vec<u8>> = answered.map(|(from, reply)| (*from, reply)).collect();
    let maps: Option<Vec<Vec<&[u8]>>> = answered.values().map(|reply| items(reply)).collect();
    let maps = maps?;
    let silent = members
        .iter()
        .filter(|member| !answered.contains_key(member));
    let silent: Vec<Reply> = silent.map(|(node, _)| Reply::number(node.0)).collect();
    let first = maps.first()?;
    let mut bytes = map_head(first.len() / 2, protocol);
    for (at, pair) in first.chunks_exact(2).enumerate() {
        let name = text(pair[0])?;
        bytes.extend_from_slice(pair[0]);
        let values = maps.iter().map(|map| map.get(at * 2 + 1).copied());
        if SUMS.contains(&name) {
            let mut sum = 0;
            for value in values {
                match number(value?)? {
                    Key::Number(number) => sum += number,
                    Key::Text(_) => return None,
                }
            }
            encode(&Reply::number(sum), protocol, &mut bytes);
        } else if name == b"missing" {
            encode(&Reply::Array(silent.clone()), protocol, &mut bytes);
        } else if LISTS.contains(&name) {
            let rows: Option<Vec<Vec<&[u8]>>> = values.map(|value| items(value?)).collect();
            let rows = rows?.concat();
            bytes.extend_from_slice(&array_head(rows.len()));
            rows.iter().for_each(|row| bytes.extend_from_slice(row));
        } else {
            bytes.extend_from_slice(pair[1]);
        }
    }
    Some(bytes)
}

/// The numbers that members have answered; `None` if one has answered something else.
pub(super) fn numbers(replies: &BTreeMap<Peer, Vec<u8>>) -> Option<Vec<(NodeId, u64)>> {
    let numbers = replies
        .iter()
        .map(|((node, _), reply)| match number(reply)? {
            Key::Number(number) => Some((*node, number)),
            Key::Text(_) => None,
        });
    numbers.collect()
}

/// If replies differ in a number, the highest.
fn most(replies: &BTreeMap<Peer, Vec<u8>>) -> BytesMut {
    let lines = |reply: &[u8]| -> Vec<Vec<u8>> {
        let lines = reply.split(|byte| *byte == b'\n');
        lines.map(<[u8]>::to_vec).collect()
    };
    let count = |line: &[u8]| -> Option<u64> {
        let digits = line.strip_prefix(b":")?.strip_suffix(b"\r")?;
        std::str::from_utf8(digits).ok()?.parse().ok()
    };
    let mut replies = replies.values();
    let mut merged = lines(replies.next().map_or(&b""[..], |reply| reply));
    for reply in replies {
        let other = lines(reply);
        // A flow was changed between two answers; the first one is as good.
        if other.len() != merged.len() {
            continue;
        }
        for (line, other) in merged.iter_mut().zip(other) {
            if let (Some(one), Some(two)) = (count(line), count(&other))
                && two > one
            {
                *line = other;
            }
        }
    }
    BytesMut::from(&merged.join(&b'\n')[..])
}

/// A page of one member's rows, with a cursor to the next page or the next member.
pub(super) fn page(
    replies: &BTreeMap<Peer, Vec<u8>>,
    node: u64,
    after: Option<u64>,
    protocol: Protocol,
) -> Result<BytesMut, Refusal> {
    let reply = replies.values().next().map_or(&b""[..], |reply| reply);
    let parts = items(reply);
    let Some([next, rows]) = parts.as_deref() else {
        return Ok(BytesMut::from(reply));
    };
    let next = match (text(next), after) {
        (Some(b"0"), None) => "0".into(),
        (Some(b"0"), Some(after)) => format!("{after}:0"),
        (next, _) => {
            let next = String::from_utf8_lossy(next.unwrap_or_default());
            format!("{node}:{next}")
        }
    };
    let mut bytes = array_head(2);
    encode(&Reply::text(next), protocol, &mut bytes);
    bytes.extend_from_slice(rows);
    Ok(bytes)
}

impl House {
    /// The member that has a page, and the command for it.
    pub(super) fn page_of(&self, line: &KeptCommand, at: usize) -> Option<(Peer, KeptCommand)> {
        let raw = line.raw();
        let cursor = std::str::from_utf8(raw.word(at)?).ok()?;
        let (from, place) = match cursor.split_once(':') {
            Some((node, place)) => (node.parse().ok().map(NodeId), place),
            None => (Some(NodeId(0)).filter(|_| cursor == "0"), cursor),
        };
        let members = &self.replicated().view().members;
        let (to, place) = match from {
            // It is not a valid cursor; the node itself says so.
            None => (self.own, place),
            Some(from) => match members.iter().find(|member| member.node >= from) {
                Some(member) if member.node == from => ((member.node, member.start), place),
                Some(member) => ((member.node, member.start), "0"),
                // All members from there on have left: nothing comes after the last one.
                None => (members.last().map(peer)?, "4294967295"),
            },
        };
        let words = (0..raw.len()).filter_map(|nth| match nth == at {
            true => Some(place.as_bytes()),
            false => raw.word(nth),
        });
        Some((to, KeptCommand::of(words)))
    }

    /// The next member by number.
    pub(super) fn node_after(&self, page: Peer) -> Option<u64> {
        let mut members = self.replicated().view().members.iter();
        members
            .find(|member| member.node > page.0)
            .map(|member| member.node.0)
    }
}

fn peer(member: &testigo_core::Member) -> (NodeId, Start) {
    (member.node, member.start)
}

fn written(reply: &Reply, protocol: Protocol) -> BytesMut {
    let mut bytes = BytesMut::new();
    encode(reply, protocol, &mut bytes);
    bytes
}

/// What a row is sorted by.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Number(u64),
    Text(Vec<u8>),
}

pub(super) fn key(row: &[u8], at: usize) -> Option<Key> {
    let value = *items(row)?.get(at)?;
    number(value).or_else(|| Some(Key::Text(text(value)?.to_vec())))
}

fn number(value: &[u8]) -> Option<Key> {
    let digits = value.strip_prefix(b":")?.strip_suffix(b"\r\n")?;
    Some(Key::Number(std::str::from_utf8(digits).ok()?.parse().ok()?))
}

/// A bulk string, or a verbatim one.
fn text(value: &[u8]) -> Option<&[u8]> {
    let rest = value.strip_prefix(b"$")?;
    let head = rest.windows(2).position(|two| two == b"\r\n")?;
    rest.get(head + 2..rest.len().checked_sub(2)?)
}

/// The values of an array, a set or a map, one after the other.
fn items(value: &[u8]) -> Option<Vec<&[u8]>> {
    let (count, mut at) = head(value)?;
    let mut items = Vec::new();
    for _ in 0..count {
        let end = end(value, at, 0)?;
        items.push(value.get(at..end)?);
        at = end;
    }
    (at == value.len()).then_some(items)
}

/// How many values there are, and where the first one begins.
pub(super) fn head(value: &[u8]) -> Option<(usize, usize)> {
    let line = value.windows(2).position(|two| two == b"\r\n")?;
    let (kind, digits) = value.get(..line)?.split_first()?;
    let count: usize = std::str::from_utf8(digits).ok()?.parse().ok()?;
    let count = match kind {
        b'*' | b'~' | b'>' => count,
        b'%' => count.checked_mul(2)?,
        _ => return None,
    };
    Some((count, line + 2))
}

/// Where the value that begins here ends.
pub(super) fn end(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    let line = rest.windows(2).position(|two| two == b"\r\n")?;
    let after = at + line + 2;
    let (kind, digits) = rest.get(..line)?.split_first()?;
    let count = || std::str::from_utf8(digits).ok()?.parse::<i64>().ok();
    match kind {
        b'$' | b'=' | b'!' => match usize::try_from(count()?) {
            Ok(length) => Some(after.checked_add(length)?.checked_add(2)?),
            Err(_) => Some(after),
        },
        b'*' | b'~' | b'>' | b'%' if depth < DEPTH_MAX => {
            let Ok(count) = usize::try_from(count()?) else {
                return Some(after);
            };
            let values = if *kind == b'%' {
                count.checked_mul(2)?
            } else {
                count
            };
            let mut at = after;
            for _ in 0..values {
                at = end(bytes, at, depth + 1)?;
            }
            Some(at)
        }
        b'*' | b'~' | b'>' | b'%' => None,
        _ => Some(after),
    }
}

#[cfg(test)]
mod tests {
    use super::super::merge_rows::MergedRows;
    use super::*;
    use crate::house::Slice;

    fn replies(written: &[&str]) -> BTreeMap<Peer, Vec<u8>> {
        let replies = written.iter().zip(1..);
        let replies =
            replies.map(|(text, node)| ((NodeId(node), Start(1)), text.as_bytes().into()));
        replies.collect()
    }

    fn merge(merge: Merge, written: &[&str]) -> String {
        let replies = replies(written);
        let members: Vec<Peer> = replies.keys().copied().collect();
        let to = ((NodeId(1), Start(1)), &members[..]);
        let merged = match merge {
            Merge::Rows(what) => rows(what, replies.into_values().collect()),
            merge => merged(merge, &replies, to, Protocol::Resp2),
        };
        let bytes = merged.unwrap_or_else(|refusal| written_error(&refusal));
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    /// Merges rows in the smallest slices; at most three of them are allowed.
    fn rows(what: &'static str, replies: Vec<Vec<u8>>) -> Result<BytesMut, Refusal> {
        let mut rows = MergedRows::new(what, 3, replies);
        loop {
            if let Some(bytes) = rows.slice(&mut Slice::of(1))? {
                return Ok(bytes);
            }
        }
    }

    fn written_error(refusal: &Refusal) -> BytesMut {
        written(&refusal.clone().into(), Protocol::Resp2)
    }

    #[test]
    fn rows_of_all_are_in_the_order_of_their_names() {
        let one = "*2\r\n*2\r\n$1\r\nb\r\n:0\r\n*2\r\n$1\r\nd\r\n:0\r\n";
        let two = "*1\r\n*2\r\n$1\r\nc\r\n:1\r\n";
        let all = "*3\r\n*2\r\n$1\r\nb\r\n:0\r\n*2\r\n$1\r\nc\r\n:1\r\n*2\r\n$1\r\nd\r\n:0\r\n";
        assert_eq!(merge(Merge::Rows("gates"), &[one, two, "*0\r\n"]), all);
        assert!(merge(Merge::Rows("gates"), &[one, one]).starts_with("-LIMIT "));
        assert_eq!(
            merge(Merge::Rows("gates"), &[one, "-DENIED x\r\n"]),
            "-DENIED x\r\n"
        );
        assert!(merge(Merge::Rows("gates"), &[one, "*2\r\n:1\r\n"]).starts_with("-UNAVAILABLE "));
        let sessions = [
            "*1\r\n%1\r\n$7\r\nsession\r\n:10\r\n",
            "*1\r\n%1\r\n$7\r\nsession\r\n:9\r\n",
        ];
        let sorted = "*2\r\n%1\r\n$7\r\nsession\r\n:9\r\n%1\r\n$7\r\nsession\r\n:10\r\n";
        assert_eq!(merge(Merge::Rows("sessions"), &sessions), sorted);
        assert_eq!(merge(Merge::Sum, &[":3\r\n", ":4\r\n"]), ":7\r\n");
        let most = merge(
            Merge::Most,
            &["*2\r\n:3\r\n$1\r\na\r\n", "*2\r\n:4\r\n$1\r\na\r\n"],
        );
        assert_eq!(most, "*2\r\n:4\r\n$1\r\na\r\n");
        let lines = merge(
            Merge::Lines,
            &["$2\r\na\n\r\n", "$0\r\n\r\n", "$2\r\nb\n\r\n"],
        );
        assert_eq!(lines, "$4\r\na\nb\n\r\n");
        let jobs = Merge::Jobs {
            rows_max: 2,
            paged: true,
        };
        let page = "*2\r\n$1\r\n0\r\n*2\r\n*1\r\n:2\r\n*1\r\n:9\r\n";
        let other = "*2\r\n$1\r\n0\r\n*1\r\n*1\r\n:3\r\n";
        let merged = "*2\r\n$1\r\n3\r\n*2\r\n*1\r\n:2\r\n*1\r\n:3\r\n";
        assert_eq!(merge(jobs, &[page, other]), merged);
    }

    #[test]
    fn nothing_that_another_node_says_ends_this_one() {
        for bad in [
            "",
            "*",
            "*9999999999\r\n",
            "*1\r\n",
            "*1\r\n$5\r\nab\r\n",
            "$-7\r\n",
            "*-5\r\n",
            "%9223372036854775807\r\n",
        ] {
            merge(Merge::Rows("gates"), &[bad]);
            merge(Merge::Sum, &[bad]);
            merge(Merge::Lines, &[bad]);
            merge(Merge::Stats, &[bad]);
            merge(Merge::State { rows_max: 3 }, &[bad]);
        }
        let deep = "*1\r\n".repeat(100_000);
        merge(Merge::Rows("gates"), &[&deep]);
    }

    #[test]
    fn a_page_leads_to_the_next_member() {
        let turned = |next: &str, after| {
            let reply = format!("*2\r\n${}\r\n{next}\r\n*0\r\n", next.len());
            let bytes = page(&replies(&[&reply]), 1, after, Protocol::Resp2).unwrap();
            String::from_utf8(bytes.to_vec()).unwrap()
        };
        assert_eq!(turned("7", Some(2)), "*2\r\n$3\r\n1:7\r\n*0\r\n");
        assert_eq!(turned("0", Some(2)), "*2\r\n$3\r\n2:0\r\n*0\r\n");
        assert_eq!(turned("0", None), "*2\r\n$1\r\n0\r\n*0\r\n");
    }
}
