//! How long messages take between the nodes of a cluster, as it is now: a node is asked something that another one must
//! answer, and that takes longer than what it answers itself.

use std::time::{Duration, Instant};

use testigo_client::{Connection, NotDone, Value};

use crate::exit::NOT_GOOD;
use crate::reach::{Ended, Reach};

/// How often each link is tried.
const SAMPLES: usize = 15;

/// A node of the cluster.
pub(super) struct Member {
    pub(super) id: u64,
    client: String,
}

/// The members of the view, by their numbers.
pub(super) fn members(status: &Value) -> Vec<Member> {
    let rows = status.field("members").and_then(Value::list);
    let member = |row: &Value| {
        let in_view = row.field("in_view")?;
        let in_view = *in_view == Value::Truth(true) || in_view.number() == Some(1);
        let id = row.field("id")?.number()?;
        let client = row
            .field("client")
            .and_then(Value::text)
            .unwrap_or_default();
        in_view.then(|| Member {
            id,
            client: client.to_owned(),
        })
    };
    let mut members: Vec<Member> = rows.unwrap_or_default().iter().filter_map(member).collect();
    members.sort_by_key(|member| member.id);
    members
}

/// The times of messages, one way, in microseconds.
pub(super) struct Links {
    nodes: usize,
    /// By sender and receiver.
    samples: Vec<Vec<u64>>,
}

impl Links {
    pub(super) async fn measure(
        reach: &Reach,
        gate: &str,
        members: &[Member],
    ) -> Result<Links, Ended> {
        let nodes = members.len();
        let mut samples = vec![Vec::new(); nodes * nodes];
        for (from, member) in members.iter().enumerate() {
            let Ok(address) = member.client.parse() else {
                continue;
            };
            let mut there = reach.clone();
            there.resp = address;
            // A node that cannot be reached from here is known from the others.
            let Ok(mut node) = there.open().await else {
                continue;
            };
            for (to, other) in members.iter().enumerate().filter(|(to, _)| *to != from) {
                let number = other.id.to_string();
                // Nobody has such an instance on record: only the way there and back takes time.
                let call = ["TRACE", gate, number.as_str(), "0.0", "0"];
                for _ in 0..SAMPLES {
                    let own = timed(&mut node, &["ECHO", "x"]).await;
                    let away = timed(&mut node, &call).await;
                    if let (Some(own), Some(away)) = (own, away) {
                        let way = away.saturating_sub(own) / 2;
                        samples[from * nodes + to].push(way.as_micros().max(1) as u64);
                    }
                }
            }
        }
        let all: Vec<u64> = samples.concat();
        if all.is_empty() {
            let why = "no link between two nodes could be measured: no node can be reached at its client address";
            return Err(Ended::new(NOT_GOOD, why));
        }
        for from in 0..nodes {
            for to in (0..nodes).filter(|to| *to != from) {
                if samples[from * nodes + to].is_empty() {
                    let back = samples[to * nodes + from].clone();
                    samples[from * nodes + to] = match back.is_empty() {
                        true => all.clone(),
                        false => back,
                    };
                }
            }
        }
        samples.iter_mut().for_each(|link| link.sort_unstable());
        Ok(Links { nodes, samples })
    }

    pub(super) fn nodes(&self) -> usize {
        self.nodes
    }

    /// The time of one message; the lot is between 0 and 1.
    pub(super) fn delay(&self, from: usize, to: usize, lot: f64) -> u64 {
        let link = &self.samples[from * self.nodes + to];
        let place = (lot * link.len() as f64) as usize;
        link.get(place.min(link.len().saturating_sub(1)))
            .copied()
            .unwrap_or(1)
    }

    /// The shortest and the longest of the links' medians.
    pub(super) fn range_ms(&self) -> (f64, f64) {
        let medians = self.samples.iter().filter(|link| !link.is_empty());
        let medians = medians.map(|link| link[link.len() / 2] as f64 / 1_000.0);
        medians.fold((f64::INFINITY, 0.0), |(low, high), median| {
            (low.min(median), f64::max(high, median))
        })
    }
}

/// How long an answer takes, whatever it says.
async fn timed(node: &mut Connection, words: &[&str]) -> Option<Duration> {
    let begin = Instant::now();
    match node.say(words).await {
        Ok(_) | Err(NotDone::Refused(_)) => Some(begin.elapsed()),
        Err(_) => None,
    }
}
