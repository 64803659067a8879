//! What `POOL SHOW` says about a pool, whichever engine shares it.

use std::ops::Bound;

use testigo_core::pool::{PoolDefinition, PoolGroup, PoolRecord, SharerId, SlotsState, no_pool};
use testigo_core::{Name, NodeId, Refusal};

use crate::house::House;

/// A pool, as its engine records it.
pub(crate) struct ShownPool<'a> {
    pub(crate) definition: &'a PoolDefinition,
    pub(crate) own: NodeId,
    /// `None` before the pool has begun.
    state: Option<&'a SlotsState>,
    engine: Engine<'a>,
}

enum Engine<'a> {
    Log(&'a PoolRecord),
    Group(&'a PoolGroup),
}

impl House {
    pub(crate) fn shown_pool(&self, pool: &str) -> Result<ShownPool<'_>, Refusal> {
        if let Some(group) = self.group() {
            let kept = group.kept().pools.get(pool);
            return Ok(ShownPool {
                definition: &kept.ok_or_else(|| no_pool(pool))?.definition,
                own: group.own_node(),
                state: group.state(pool, self.services.desk()),
                engine: Engine::Group(group),
            });
        }
        let record = self.replicated().pools().get(pool);
        let record = record.ok_or_else(|| no_pool(pool))?;
        Ok(ShownPool {
            definition: &record.definition,
            own: self.own().0,
            state: Some(record.state()),
            engine: Engine::Log(record),
        })
    }

    /// The first pool after this name.
    pub(crate) fn pool_after(&self, name: Bound<&Name>) -> Option<(&Name, &PoolDefinition)> {
        let range = (name, Bound::Unbounded);
        match self.group() {
            Some(group) => {
                let mut pools = group.kept().pools.range::<Name, _>(range);
                pools.next().map(|(name, kept)| (name, &kept.definition))
            }
            None => {
                let found = self.replicated().pools().after(name);
                found.map(|(name, record)| (name, &record.definition))
            }
        }
    }

    /// All pools, by name.
    pub(crate) fn pool_definitions(&self) -> Vec<(&Name, &PoolDefinition)> {
        if let Some(group) = self.group() {
            let pools = group.kept().pools.iter();
            return pools.map(|(name, kept)| (name, &kept.definition)).collect();
        }
        let pools = self.replicated().pools().iter();
        pools
            .map(|(name, record)| (name, &record.definition))
            .collect()
    }
}

impl ShownPool<'_> {
    fn node(&self, member: SharerId) -> Option<NodeId> {
        match self.engine {
            Engine::Log(record) => record.node(member),
            Engine::Group(group) => group.node(member),
        }
    }

    /// Every slot with its owner, once the pool has begun.
    pub(crate) fn owners(&self) -> impl Iterator<Item = (u32, Option<NodeId>)> {
        let lines = self.state.into_iter().flat_map(|state| state.table.lines());
        lines.map(|(slot, owned)| (slot, owned.owner.and_then(|member| self.node(member))))
    }

    /// How many slots with this label nodes wish for.
    pub(crate) fn wished(&self, label: u32) -> u64 {
        let wishes = self.state.into_iter().flat_map(|state| &state.labelled);
        let its = wishes.filter(|wish| wish.label == label);
        its.map(|wish| u64::from(wish.wanted)).sum()
    }

    /// Runs of consecutive slots with the same owner.
    pub(crate) fn runs(&self) -> Vec<(u32, u32, Option<NodeId>)> {
        let mut runs: Vec<(u32, u32, Option<NodeId>)> = Vec::new();
        for (slot, owner) in self.owners() {
            match runs.last_mut() {
                Some((_, last, of)) if *of == owner => *last = slot,
                _ => runs.push((slot, slot, owner)),
            }
        }
        runs
    }

    /// Members that are not in the view, and how many slots each has.
    pub(crate) fn out_of_reach(&self) -> Vec<(NodeId, u32)> {
        let Some(state) = self.state else {
            return Vec::new();
        };
        let absent = state.absent.iter().map(|member| SharerId(member as u32));
        let with_slots = |member: SharerId| {
            let slots = state.table.of(member).count();
            Some((self.node(member)?, slots as u32))
        };
        absent.filter_map(with_slots).collect()
    }

    pub(crate) fn out_of_reach_words(&self, node: NodeId, slots: u32) -> String {
        match self.engine {
            Engine::Log(_) if slots == 0 => {
                format!("node {node} is out of reach, and owns no slot")
            }
            Engine::Log(_) => format!(
                "node {node} is out of reach and owns {slots} of the slots, which may be in use there; they come \
                 back with it, or when it has been removed for good: testigo cluster remove {node}"
            ),
            Engine::Group(_) => format!(
                "node {node} is out of reach; it had {slots} slots when it was last heard of, and goes on with what it has; \
                 they come back with it"
            ),
        }
    }

    /// How a Corosync group is doing.
    pub(crate) fn status(&self) -> Option<String> {
        let Engine::Group(group) = self.engine else {
            return None;
        };
        let missing: Vec<String> = group.missing().iter().map(u32::to_string).collect();
        let missing = missing.join(", ");
        Some(match (self.state.is_some(), missing.is_empty()) {
            (true, true) => "all members are there".into(),
            (true, false) => format!("out of reach: {missing}"),
            (false, true) => "it is starting".into(),
            (false, false) => format!(
                "this node has no part of the pool yet: it waits for a member that has, or for all members; out of reach: {missing}"
            ),
        })
    }
}
