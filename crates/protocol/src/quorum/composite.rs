//! Quorums built from parts that share no node: so many of the parts, and a quorum of each. Majority,
//! trees, `Maj_k`, `MAJ_r`, DIV and unions are all of this form, and count, load and availability are
//! then formulas, whatever the number of quorums.
//!
//! Source: message exclusion §1.5 (Nielsen and Mizuno; Agrawal, Egecioglu and El Abbadi) and §1.6.

use super::{NodeSet, Promise};

/// A node, or a number of parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Composite {
    Node(usize),
    /// Any `need` of the parts. The parts must share no node.
    Of {
        need: usize,
        parts: Vec<Composite>,
    },
}

impl Composite {
    /// Any `need` nodes of a class.
    pub fn any(need: usize, class: NodeSet) -> Composite {
        Composite::Of {
            need,
            parts: class.iter().map(Composite::Node).collect(),
        }
    }

    /// More than half of the nodes of a class.
    pub fn majority(class: NodeSet) -> Composite {
        Composite::any(class.len() / 2 + 1, class)
    }

    /// Theorem 4.6: any one of parts that share no node; the numbers of entries that they allow add
    /// up, and what consists of non-dominated parts is non-dominated.
    pub fn union(parts: Vec<Composite>) -> Composite {
        Composite::Of { need: 1, parts }
    }

    /// Whether the live nodes contain a quorum.
    pub fn serves(&self, live: NodeSet) -> bool {
        match self {
            Composite::Node(node) => live.contains(*node),
            Composite::Of { need, parts } => {
                parts.iter().filter(|part| part.serves(live)).count() >= *need
            }
        }
    }

    /// All quorums; their number may be astronomic, so ask [`Composite::counts`] first.
    pub fn quorums(&self) -> Vec<NodeSet> {
        match self {
            Composite::Node(node) => vec![NodeSet::single(*node)],
            Composite::Of { need, parts } => {
                let mut chosen: Vec<Vec<NodeSet>> = vec![Vec::new(); need + 1];
                chosen[0].push(NodeSet::EMPTY);
                for (i, part) in parts.iter().enumerate() {
                    let quorums = part.quorums();
                    let left = parts.len() - i - 1;
                    // A choice that too few parts are left to complete is dropped at once.
                    let still_useful = |count: usize| count + left >= *need;
                    for count in (0..*need).rev() {
                        let smaller = match still_useful(count) {
                            true => chosen[count].clone(),
                            false => std::mem::take(&mut chosen[count]),
                        };
                        let larger = smaller
                            .iter()
                            .flat_map(|set| quorums.iter().map(|more| set.union(*more)));
                        chosen[count + 1].extend(larger);
                    }
                }
                chosen.pop().unwrap_or_default()
            }
        }
    }

    /// How many quorums there are of each size, from 0; numbers beyond the range of the type stop at
    /// its end.
    pub fn counts(&self) -> Vec<u128> {
        match self {
            Composite::Node(_) => vec![0, 1],
            Composite::Of { need, parts } => chosen(*need, parts.iter()),
        }
    }

    /// The share of all quorums that each of the first `nodes` nodes is in.
    pub fn loads(&self, nodes: usize) -> Vec<f64> {
        let mut loads = vec![0.0; nodes];
        self.load(1.0, &mut loads);
        loads
    }

    fn load(&self, share: f64, loads: &mut [f64]) {
        match self {
            Composite::Node(node) => loads[*node] = share,
            Composite::Of { need, parts } => {
                // Parts that are alike share alike.
                if parts.iter().all(|part| matches!(part, Composite::Node(_))) {
                    let each = share * *need as f64 / parts.len() as f64;
                    parts.iter().for_each(|part| part.load(each, loads));
                    return;
                }
                let total = sum(&self.counts());
                for (i, part) in parts.iter().enumerate() {
                    let others = parts.iter().enumerate().filter(|(j, _)| *j != i);
                    let rest = chosen(need.saturating_sub(1), others.map(|(_, other)| other));
                    let with_part = sum(&rest) * sum(&part.counts());
                    part.load(share * with_part / total, loads);
                }
            }
        }
    }

    /// The probability that a quorum is alive, when each node is with probability `p`.
    pub fn availability(&self, p: f64) -> f64 {
        match self {
            Composite::Node(_) => p,
            Composite::Of { need, parts } => {
                // The probabilities that 0, 1, … parts are alive, with `need` and more as one.
                let mut alive = vec![0.0; need + 1];
                alive[0] = 1.0;
                for part in parts {
                    let up = part.availability(p);
                    for count in (0..*need).rev() {
                        alive[count + 1] += alive[count] * up;
                        alive[count] *= 1.0 - up;
                    }
                }
                alive[*need]
            }
        }
    }

    /// What follows from how it is built.
    pub fn promise(&self) -> Promise {
        let Composite::Of { need, parts } = self else {
            return Promise::coterie(Some(true));
        };
        let promises: Vec<Promise> = parts.iter().map(Composite::promise).collect();
        let ks: Option<Vec<usize>> = promises.iter().map(|promise| promise.k).collect();
        let all_non_dominated = promises.iter().all(|p| p.non_dominated == Some(true));
        match ks {
            // Theorem 4.6.
            Some(ks) if *need == 1 => Promise {
                k: Some(ks.iter().sum()),
                non_dominated: all_non_dominated.then_some(true),
            },
            // As many disjoint quorums as the parts suffice for; theorem 4.5, and for k = 1 the
            // composition of non-dominated coteries.
            Some(ks) if ks.iter().all(|k| *k == 1) && *need > 0 && *need <= parts.len() => {
                let k = parts.len() / need;
                let nodes_only = parts.iter().all(|part| matches!(part, Composite::Node(_)));
                let tight = parts.len() + 1 == (k + 1) * need;
                let known = tight && all_non_dominated && (k == 1 || nodes_only);
                // One part fewer than a quorum needs, and still one of every quorum.
                let wasteful = k == 1 && !tight;
                Promise {
                    k: Some(k),
                    non_dominated: known.then_some(true).or(wasteful.then_some(false)),
                }
            }
            _ => Promise::default(),
        }
    }
}

/// The numbers, by size, of choices of `need` parts and a quorum of each.
fn chosen<'a>(need: usize, parts: impl Iterator<Item = &'a Composite>) -> Vec<u128> {
    let mut by_parts: Vec<Vec<u128>> = vec![Vec::new(); need + 1];
    by_parts[0] = vec![1];
    for part in parts {
        let counts = part.counts();
        for taken in (0..need).rev() {
            let more = product(&by_parts[taken], &counts);
            add(&mut by_parts[taken + 1], &more);
        }
    }
    by_parts.pop().unwrap_or_default()
}

fn product(a: &[u128], b: &[u128]) -> Vec<u128> {
    let mut sizes = vec![0_u128; (a.len() + b.len()).saturating_sub(1)];
    for (i, x) in a.iter().enumerate() {
        for (j, y) in b.iter().enumerate() {
            sizes[i + j] = sizes[i + j].saturating_add(x.saturating_mul(*y));
        }
    }
    sizes
}

fn add(to: &mut Vec<u128>, more: &[u128]) {
    to.resize(to.len().max(more.len()), 0);
    for (sum, count) in to.iter_mut().zip(more) {
        *sum = sum.saturating_add(*count);
    }
}

fn sum(counts: &[u128]) -> f64 {
    counts.iter().map(|&count| count as f64).sum()
}
