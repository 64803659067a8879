//! How a gate's ownership travels, for people.

use testigo_core::estate::BranchView;
use testigo_core::{Definition, Plan, Shard, Using};

use crate::house::House;
use crate::wire::Reply;

/// What one node knows about how a gate's ownership travels.
pub(crate) struct Travelling {
    /// The algorithm.
    pub(crate) using: &'static str,
    pub(crate) burst: u32,
    /// What goes from node to node, in words.
    pub(crate) travels: &'static str,
    /// The node that owns its shard, in a cluster.
    pub(crate) owner: Option<u64>,
    /// The published cost of a hand-over in messages: the formula, and its range for this number of nodes.
    pub(crate) published: Option<(&'static str, (f64, f64))>,
    /// This node's own part, if the gate is spread over several.
    pub(crate) part: Option<(u64, BranchView)>,
}

impl Travelling {
    /// The published cost in words.
    pub(crate) fn published_words(&self) -> Option<String> {
        let (formula, (min, max)) = self.published?;
        Some(match min == max {
            true => format!("{formula}: {min}"),
            false => format!("{formula}: {min} to {max}"),
        })
    }
}

impl House {
    /// How a gate's ownership travels, as this node knows it.
    pub(crate) fn travelling(&self, gate: &str, definition: &Definition) -> Travelling {
        let travels = definition.travels;
        let estate = self.services.estate();
        let nodes = self.replicated().view().members.len();
        let plan = Plan {
            travels,
            overtakes: definition.overtakes,
            nodes,
        };
        let spread = estate.filter(|estate| estate.is_spread(self.replicated(), gate));
        let own = self.member_number();
        Travelling {
            using: travels.using.name(),
            burst: travels.burst,
            travels: travels.using.what_travels(),
            owner: self.owner_number(Shard::of(gate)),
            published: match travels.using {
                Using::Log => None,
                _ if nodes > 1 => plan.published(),
                _ => None,
            },
            part: spread.and_then(|estate| Some((own?, estate.branch(gate)))),
        }
    }

    /// The number of this node, if it shows its own part of a gate.
    pub(super) fn node_shown(&self, gate: &str) -> Option<u64> {
        let estate = self.services.estate()?;
        let spread = estate.is_spread(self.replicated(), gate);
        self.member_number().filter(|_| spread)
    }

    /// How a gate's ownership travels, as pairs of the gate's map.
    pub(super) fn travel_pairs(
        &self,
        gate: &str,
        definition: &Definition,
    ) -> Vec<(&'static str, Reply)> {
        let travelling = self.travelling(gate, definition);
        let published = travelling.published_words();
        let nodes = travelling.part.iter().map(|(node, part)| {
            Reply::Map(vec![
                ("node", Reply::number(*node)),
                ("in", Reply::flag(part.inside)),
                ("asks", Reply::flag(part.asks)),
                ("messages", Reply::number(part.counts.messages)),
                ("hand_overs", Reply::number(part.counts.hand_overs)),
            ])
        });
        vec![
            ("using", Reply::text(travelling.using)),
            ("burst", Reply::number(travelling.burst.into())),
            ("travels", Reply::text(travelling.travels)),
            ("owner", Reply::optional(travelling.owner, Reply::number)),
            ("published", Reply::optional(published, Reply::text)),
            // It is computed where the nodes' answers are merged.
            ("messages_per_hand_over", Reply::Null),
            ("nodes", Reply::Array(nodes.collect())),
        ]
    }
}
