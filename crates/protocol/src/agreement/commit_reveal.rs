//! Turn-locking by commitment, Baughman and Levine 2001: everybody commits itself to an action by its hash, and shows the
//! action only when everybody is committed, so nobody can wait for what the others do.
//!
//! Source: coordination and agreement §5.9. Decided here (§8, 24): the hash is SHA-256 of action, nonce, player and turn,
//! and a player that is silent forfeits the turn after a timeout. That needs a bound on delays: a turn begins at a node
//! with its own player's choice or the first commitment that it hears of, so within one bound of each other; a player
//! that has not chosen within its time is not committed by its node any more; and the others wait as much longer as a
//! commitment can be late. A node draws no random numbers, so its nonce is the hash of a secret of its own and the turn. It
//! keeps nothing in a crash, and takes no further part.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::sha256::sha256;
use super::turns::{Ask, Commitment, Play, Tell, Turns, User};
use crate::{
    Algorithm, Channels, Cost, Input, Machine, Message, NodeId, Output, Profile, Protocol, Range,
    Setup, SetupError, Shape, Telling, Timer, erase_for,
};

pub(super) mod specimens;
#[cfg(test)]
mod tests;

pub(crate) const ALGORITHM: Algorithm<Turns> = Algorithm {
    profile: Profile {
        name: "commit-reveal",
        title: "Turn-locking by commitment, 2001",
        source: "coordination and agreement §5.9",
        channels: Channels::AnyOrder,
        // A player that crashes while it tells the others can leave them divided on whether it forfeits: all would have to agree on
        // that first. Silence does no harm.
        survives_crashes: false,
        needs_delay_bound: true,
        costs: &[Cost::messages(
            "2(N−1), so 2N(N−1) for a turn",
            |setup| Range::exactly(2.0 * (setup.users as f64 - 1.0)),
        )],
        telling: Telling {
            nodes: 2,
            entries: 2,
        },
        ..Profile::PLAIN
    },
    machine: |setup| players(setup, None),
};

/// What a specimen does wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    /// It waits for ever.
    Patient,
    /// It shows its action as soon as it is committed to it.
    Eager,
}

fn players(setup: &Setup, flaw: Option<Flaw>) -> Result<Box<dyn Machine<Turns>>, SetupError> {
    let players = setup.at_least(2)?;
    let config = Config {
        players,
        delay_bound: setup.delay_bound.max(1),
        flaw,
    };
    let user = |user| User::new(user, players);
    Ok(erase_for::<CommitReveal>(
        Shape::users(players),
        user,
        config,
    ))
}

#[derive(Clone, Copy, Debug)]
struct Config {
    players: usize,
    delay_bound: u64,
    flaw: Option<Flaw>,
}

impl Config {
    /// How long a player may think once the turn has begun at its node, in delay bounds.
    const THINKING: u64 = 8;
    /// How much longer the others wait for its commitment: turns begin within one bound of each other, and the
    /// commitment travels for one.
    const COMMITMENTS: u64 = Self::THINKING + 3;
    /// How long an action may be missing: nodes begin to show theirs within two bounds of each other, and it travels for
    /// one.
    const REVEALS: u64 = 4;

    fn set_timer(&self, turn: u32, wait: Wait, out: &mut Output<CommitReveal>) {
        if self.flaw == Some(Flaw::Patient) {
            return;
        }
        let bounds = match wait {
            Wait::Thinking => Self::THINKING,
            Wait::Commitments => Self::COMMITMENTS,
            Wait::Reveals => Self::REVEALS,
        };
        let span = bounds * self.delay_bound;
        let timer = Timer(u64::from(turn) * Wait::KINDS + wait as u64);
        out.after(span..span + 1, timer);
    }
}

/// What a timer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wait {
    Thinking,
    Commitments,
    Reveals,
}

impl Wait {
    const KINDS: u64 = 3;
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct CommitReveal {
    id: NodeId,
    /// Turns that are over.
    over: u32,
    /// Those that have begun.
    turns: BTreeMap<u32, Turn>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Turn {
    stage: Stage,
    /// Whether the own player may still choose.
    thought_over: bool,
    own: Option<Play>,
    commits: BTreeMap<NodeId, Commitment>,
    reveals: BTreeMap<NodeId, Play>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
enum Stage {
    #[default]
    Committing,
    /// Nobody may commit itself any more; who is not committed has forfeited.
    Revealing,
    /// Who has not revealed has forfeited, too.
    Complete,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
enum Locked {
    Commit { turn: u32, commitment: Commitment },
    Reveal { turn: u32, play: Play },
}

impl Message for Locked {}

impl Protocol for CommitReveal {
    type Problem = Turns;
    type Message = Locked;
    type Config = Config;

    fn new(id: NodeId, _: &Config) -> Self {
        CommitReveal {
            id,
            over: 0,
            turns: BTreeMap::new(),
        }
    }

    fn step(&mut self, input: Input<Self>, config: &Config, out: &mut Output<Self>) {
        match input {
            Input::Start => {}
            Input::Ask(Ask::Choose { turn, action }) => {
                let nonce = nonce(self.id, turn);
                let Some(begun) = self.begin(turn, config, out) else {
                    return;
                };
                if begun.thought_over || begun.stage != Stage::Committing {
                    return;
                }
                let play = Play { action, nonce };
                begun.own = Some(play);
                let commitment = Commitment::to(play, self.id, turn);
                let all = NodeId::all(config.players);
                out.send_all(all, &Locked::Commit { turn, commitment });
            }
            Input::Message { from, message } => match message {
                Locked::Commit { turn, commitment } => {
                    self.hear_commit(from, turn, commitment, config, out);
                }
                // It may overtake the commitments.
                Locked::Reveal { turn, play } => {
                    let is_own = from == self.id;
                    if let Some(begun) = self.begin(turn, config, out) {
                        begun.reveals.entry(from).or_insert(play);
                        if !is_own {
                            out.tell(Tell::Shown { turn, player: from });
                        }
                        self.complete(out);
                    }
                }
            },
            Input::Timer(Timer(timer)) => {
                let turn = (timer / Wait::KINDS) as u32;
                let Some(begun) = self.turns.get_mut(&turn) else {
                    return;
                };
                match (timer % Wait::KINDS, begun.stage) {
                    (wait, _) if wait == Wait::Thinking as u64 => begun.thought_over = true,
                    (wait, Stage::Committing) if wait == Wait::Commitments as u64 => {
                        self.reveal(turn, config, out);
                    }
                    (wait, Stage::Revealing) if wait == Wait::Reveals as u64 => {
                        begun.stage = Stage::Complete;
                        self.complete(out);
                    }
                    _ => {}
                }
            }
        }
    }
}

impl CommitReveal {
    /// The turn, unless it is over; it begins here if it has not begun.
    fn begin(&mut self, turn: u32, config: &Config, out: &mut Output<Self>) -> Option<&mut Turn> {
        if turn < self.over {
            return None;
        }
        if !self.turns.contains_key(&turn) {
            config.set_timer(turn, Wait::Thinking, out);
            config.set_timer(turn, Wait::Commitments, out);
        }
        Some(self.turns.entry(turn).or_default())
    }

    fn hear_commit(
        &mut self,
        from: NodeId,
        turn: u32,
        commitment: Commitment,
        config: &Config,
        out: &mut Output<Self>,
    ) {
        let eager = config.flaw == Some(Flaw::Eager) && from == self.id;
        let Some(begun) = self.begin(turn, config, out) else {
            return;
        };
        if begun.stage != Stage::Committing || begun.commits.contains_key(&from) {
            return;
        }
        begun.commits.insert(from, commitment);
        out.tell(Tell::Committed {
            turn,
            player: from,
            commitment,
        });
        if begun.commits.len() == config.players || eager {
            self.reveal(turn, config, out);
        }
    }

    /// Everybody is committed or has forfeited: the own action may be shown.
    fn reveal(&mut self, turn: u32, config: &Config, out: &mut Output<Self>) {
        let Some(begun) = self.turns.get_mut(&turn) else {
            return;
        };
        begun.stage = Stage::Revealing;
        let (commits, own) = (&begun.commits, begun.own);
        for player in NodeId::all(config.players) {
            if !commits.contains_key(&player) && config.flaw != Some(Flaw::Eager) {
                out.tell(Tell::Forfeited { turn, player });
            }
        }
        config.set_timer(turn, Wait::Reveals, out);
        if let Some(play) = own {
            out.tell(Tell::Reveals { turn });
            let all = NodeId::all(config.players);
            out.send_all(all, &Locked::Reveal { turn, play });
        }
        self.complete(out);
    }

    /// Ends the turns that can end, in order.
    fn complete(&mut self, out: &mut Output<Self>) {
        let turn = self.over;
        let Some(begun) = self.turns.get(&turn) else {
            return;
        };
        let mut committed = begun.commits.keys();
        let all_shown = committed.all(|player| begun.reveals.contains_key(player));
        let ends = match begun.stage {
            Stage::Committing => false,
            Stage::Revealing => all_shown,
            Stage::Complete => true,
        };
        if !ends {
            return;
        }
        for (&player, &commitment) in &begun.commits {
            let play = begun.reveals.get(&player).copied();
            // Who shows something else than what it is committed to has shown nothing.
            match play.filter(|&play| Commitment::to(play, player, turn) == commitment) {
                Some(play) => out.tell(Tell::Played { turn, player, play }),
                None => out.tell(Tell::Forfeited { turn, player }),
            }
        }
        out.tell(Tell::Over { turn });
        self.turns.remove(&turn);
        self.over += 1;
        self.complete(out);
    }
}

/// A number that nobody else can guess, for as long as nobody knows the node's secret.
fn nonce(player: NodeId, turn: u32) -> u128 {
    let secret = sha256(format!("the secret of player {player}").as_bytes());
    let mut bytes = secret.to_vec();
    bytes.extend_from_slice(&turn.to_be_bytes());
    let hash = sha256(&bytes);
    hash.iter()
        .take(16)
        .fold(0, |nonce, byte| nonce << 8 | u128::from(*byte))
}
