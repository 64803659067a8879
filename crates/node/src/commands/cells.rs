//! `POOL SHOW name CELLS n [FROM first] [TO last]`: a pool folded into cells, so that one of any size can be drawn.

use std::collections::BTreeMap;

use testigo_core::{NodeId, Refusal};

use super::pool_shown::ShownPool;
use crate::house::House;
use crate::wire::{Reply, Words, bad_arg};

/// Cap on cells in an answer.
const CELLS_MAX: u64 = 1_024;

/// Which slots to fold, and into how many cells.
#[derive(Clone, Copy)]
pub(super) struct Fold {
    cells: u64,
    /// Zero-based positions.
    first: u64,
    last: Option<u64>,
}

impl Fold {
    /// `None` if no cells are requested.
    pub(super) fn read(words: &mut Words<'_>) -> Result<Option<Fold>, Refusal> {
        if !words.keyword("CELLS") {
            return Ok(None);
        }
        let cells = words.number("CELLS")?;
        if !(1..=CELLS_MAX).contains(&cells) {
            return Err(bad_arg(format!("CELLS {cells}: it is 1 to {CELLS_MAX}")));
        }
        let (mut first, mut last) = (0, None);
        if words.keyword("FROM") {
            first = words.number("FROM")?;
        }
        if words.keyword("TO") {
            last = Some(words.number("TO")?);
        }
        Ok(Some(Fold { cells, first, last }))
    }
}

impl House {
    /// What `POOL SHOW` adds: the cells as the engine knows them, and how much of them is in use at this node.
    pub(super) fn folded(
        &self,
        pool: &str,
        shown: &ShownPool<'_>,
        fold: Fold,
    ) -> Result<Vec<(&'static str, Reply)>, Refusal> {
        let slots = u64::from(shown.definition.slots.count());
        let (first, last) = (fold.first, fold.last.unwrap_or(slots - 1));
        if first > last || last >= slots {
            return Err(bad_arg(format!(
                "FROM {first} TO {last}: pool {pool} has slots 0 to {}",
                slots - 1
            )));
        }
        let each = (last - first + 1).div_ceil(fold.cells);
        let cell_of = |slot: u32| {
            let slot = u64::from(slot);
            (first..=last)
                .contains(&slot)
                .then(|| (slot - first) / each)
        };
        let mut owned: BTreeMap<Option<NodeId>, u64> = BTreeMap::new();
        let mut cells: Vec<BTreeMap<Option<NodeId>, u64>> = Vec::new();
        for (slot, owner) in shown.owners() {
            *owned.entry(owner).or_default() += 1;
            if let Some(cell) = cell_of(slot) {
                cells.resize_with(cell as usize + 1, BTreeMap::new);
                *cells[cell as usize].entry(owner).or_default() += 1;
            }
        }
        let mut uses: BTreeMap<u64, [u64; 2]> = BTreeMap::new();
        for (slot, known) in self.services.desk().uses(pool) {
            if let Some(cell) = cell_of(slot) {
                let [used, withheld] = uses.entry(cell).or_default();
                *used += 1;
                *withheld += u64::from(!known);
            }
        }
        let name = |slot: u64| Reply::text(shown.definition.slots.name(slot as u32));
        let cells = (first..).step_by(each as usize).zip(&cells);
        let cells = cells.map(|(from, owners)| {
            let to = last.min(from + each - 1);
            let owners = owners.iter().flat_map(counted);
            Reply::Array(vec![name(from), name(to), Reply::Array(owners.collect())])
        });
        let own = shown.own;
        let uses = uses.into_iter().map(|(cell, [used, withheld])| {
            let row = [own.0, cell, used, withheld];
            Reply::Array(row.map(Reply::number).to_vec())
        });
        let owned = owned
            .iter()
            .map(|owned| Reply::Array(counted(owned).to_vec()));
        Ok(vec![
            ("owned", Reply::Array(owned.collect())),
            ("cells_first", Reply::number(first)),
            ("cells_each", Reply::number(each)),
            ("cells", Reply::Array(cells.collect())),
            ("uses", Reply::Array(uses.collect())),
        ])
    }
}

/// A node, or null, and a number of slots.
fn counted((owner, slots): (&Option<NodeId>, &u64)) -> [Reply; 2] {
    let owner = Reply::optional(*owner, |owner| Reply::number(owner.0));
    [owner, Reply::number(*slots)]
}
