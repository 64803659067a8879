//! Which calls an errand makes: where they go, and what they say about the client.

use testigo_core::estate::Peer;
use testigo_core::{Number, QueueId, Shard};

use super::{Asks, Caller, Errand};
use crate::commands::{Effect, Merge, Route};
use crate::house::{ActsFor, ClientId, House};
use crate::wire::{KeptCommand, Protocol};

/// The calls of an errand.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) legs: Vec<Leg>,
    pub(super) merge: Option<Merge>,
    pub(super) page: Option<Peer>,
}

pub(super) struct Leg {
    pub(super) to: Peer,
    pub(super) shards: Vec<(Shard, Number)>,
    pub(super) effect: Effect,
    pub(super) asks: Asks,
}

impl House {
    /// Where the calls of an errand go now; `None` if nobody is in charge.
    pub(super) fn plan(&self, errand: &Errand) -> Option<Plan> {
        let command = || Asks::Command(errand.line.clone());
        let one = |to, shards, effect, asks| Plan {
            legs: vec![Leg {
                to,
                shards,
                effect,
                asks,
            }],
            merge: None,
            page: None,
        };
        Some(match &errand.route {
            Route::Here | Route::Read => return None,
            Route::Owner(shard, effect) => {
                let (to, number) = self.owner_of(*shard)?;
                one(to, vec![(*shard, number)], *effect, command())
            }
            Route::Node(to, effect) => {
                let there = self.replicated().view().has(to.0, to.1);
                let to = if there { *to } else { self.own };
                one(to, Vec::new(), *effect, command())
            }
            Route::Unit(shards) => {
                let numbered = shards
                    .iter()
                    .map(|shard| Some((*shard, self.owner_of(*shard)?.1)));
                let numbered: Option<Vec<(Shard, Number)>> = numbered.collect();
                let (to, _) = self.owner_of(*shards.first()?)?;
                let steps = errand.unit.clone().unwrap_or_default();
                one(to, numbered?, Effect::Changes, Asks::Unit(steps))
            }
            Route::Take(queues) => {
                let mut plan = Plan::default();
                for queue in queues {
                    let Some(shard) = self.replicated().queue(*queue).map(|queue| queue.shard())
                    else {
                        continue;
                    };
                    let (to, number) = self.owner_of(shard)?;
                    let leg = plan.legs.iter_mut().find(|leg| leg.to == to);
                    match leg {
                        Some(leg) => leg.shards.push((shard, number)),
                        None => plan.legs.push(Leg {
                            to,
                            shards: vec![(shard, number)],
                            effect: Effect::Reads,
                            asks: Asks::Command(self.take_line(errand, queues, to)),
                        }),
                    }
                }
                for leg in &mut plan.legs {
                    leg.shards.sort_unstable_by_key(|(shard, _)| *shard);
                    leg.shards.dedup();
                }
                plan
            }
            Route::All(merge, effect) => {
                let members = self.replicated().view().members.iter();
                let legs = members.map(|member| Leg {
                    to: (member.node, member.start),
                    shards: Vec::new(),
                    effect: *effect,
                    asks: command(),
                });
                Plan {
                    legs: legs.collect(),
                    merge: Some(*merge),
                    page: None,
                }
            }
            Route::Pages(at) => {
                let (to, line) = self.page_of(&errand.line, *at)?;
                Plan {
                    page: Some(to),
                    ..one(to, Vec::new(), Effect::Reads, Asks::Command(line))
                }
            }
        })
    }

    pub(super) fn owner_of(&self, shard: Shard) -> Option<(Peer, Number)> {
        let title = self.replicated().ownership().title(shard)?;
        let there = self.replicated().view().has(title.owner, title.start);
        there.then_some(((title.owner, title.start), title.number))
    }

    /// The words of a take at one of several owners: its own queues, and the options.
    fn take_line(&self, errand: &Errand, queues: &[QueueId], to: Peer) -> KeptCommand {
        let raw = errand.line.raw();
        let words = (0..raw.len()).filter_map(|at| raw.word(at).map(|word| (at, word)));
        let kept = words.filter(|(at, _)| {
            let queue = at.checked_sub(2).and_then(|nth| queues.get(nth));
            let Some(queue) = queue else {
                return true;
            };
            let shard = self.replicated().queue(*queue).map(|queue| queue.shard());
            let owner = shard.and_then(|shard| self.owner_of(shard));
            owner.is_some_and(|(owner, _)| owner == to)
        });
        KeptCommand::of(kept.map(|(_, word)| word))
    }

    pub(super) fn caller(&self, id: ClientId) -> Option<Caller> {
        let client = self.connections.client(id)?;
        let session = match client.acts_for {
            ActsFor::Opened(session) | ActsFor::Implicit(session) | ActsFor::Guest(session) => {
                let record = self.replicated().session(session);
                let home = record.map(|record| record.home.index);
                Some((session, home.unwrap_or_default()))
            }
            ActsFor::Nobody | ActsFor::Ended(_) => None,
        };
        let user = client.user.as_ref()?;
        let program = std::sync::Arc::ptr_eq(user, &self.users.program());
        let presented = client.presented.as_ref();
        Some(Caller {
            user: (!program).then(|| user.name().to_owned()),
            resp3: client.protocol == Protocol::Resp3,
            session,
            presented: presented.map(|p| (p.flow.to_string(), p.process.to_string())),
            name: client.name.to_string(),
            address: client.address.clone(),
        })
    }
}
