//! The words of a game in turns, its user, and its properties: all players choose an action for the same turn, and
//! nobody knows another's before it has chosen its own.
//!
//! Source: coordination and agreement §5.9.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::commit_reveal;
use super::sha256::sha256;
use crate::{Algorithm, Counted, Next, NodeId, Phase, Problem, UserId};

/// Every algorithm of this problem.
pub static ALGORITHMS: &[&Algorithm<Turns>] = &[&commit_reveal::ALGORITHM];

/// Those that are kept in order to be refuted.
pub static SPECIMENS: &[&Algorithm<Turns>] = &[
    &commit_reveal::specimens::PATIENT,
    &commit_reveal::specimens::EAGER,
];

/// The problem of playing in turns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Turns;

/// A player's action, and a number that nobody can guess.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Play {
    pub action: u32,
    pub nonce: u128,
}

impl fmt::Debug for Play {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "action {}", self.action)
    }
}

/// What a player is bound to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Commitment(pub [u8; 32]);

impl Commitment {
    /// h = H(action, nonce, player, turn): small sets of actions cannot be searched because of the nonce, and nobody can
    /// pass another's commitment off as its own, or an old one as new (§5.9).
    pub fn to(play: Play, player: NodeId, turn: u32) -> Commitment {
        let mut bytes = Vec::with_capacity(28);
        bytes.extend_from_slice(&play.action.to_be_bytes());
        bytes.extend_from_slice(&play.nonce.to_be_bytes());
        bytes.extend_from_slice(&player.0.to_be_bytes());
        bytes.extend_from_slice(&turn.to_be_bytes());
        Commitment(sha256(&bytes))
    }
}

impl fmt::Debug for Commitment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, ..] = self.0;
        write!(f, "{a:02x}{b:02x}{c:02x}{d:02x}…")
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ask {
    Choose { turn: u32, action: u32 },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Tell {
    /// A player has committed itself, the own one included.
    Committed {
        turn: u32,
        player: NodeId,
        commitment: Commitment,
    },
    /// The node shows its own action; from here on, the others may know it.
    Reveals {
        turn: u32,
    },
    /// Another player's action can be known here from now on.
    Shown {
        turn: u32,
        player: NodeId,
    },
    /// What a player did in the turn.
    Played {
        turn: u32,
        player: NodeId,
        play: Play,
    },
    /// A player did nothing in time.
    Forfeited {
        turn: u32,
        player: NodeId,
    },
    Over {
        turn: u32,
    },
}

impl Problem for Turns {
    const NAME: &'static str = "turns";
    const COUNTED: Counted = Counted::DECISIONS;
    type Ask = Ask;
    type Tell = Tell;
    type User = User;
    type Monitor = ();

    fn violation(users: &[User]) -> Option<String> {
        for (one, user) in users.iter().enumerate() {
            if let Some(turn) = user.revealed_early {
                return Some(format!(
                    "p{one} shows its action for turn {turn} before everybody is committed"
                ));
            }
            if let Some(turn) = user.chose_late {
                return Some(format!(
                    "p{one} commits itself in turn {turn} and knows another's action"
                ));
            }
            for (&(turn, player), &outcome) in &user.outcomes {
                let bound = user.commitments.get(&(turn, player)).copied();
                if let Some(play) = outcome
                    && bound != Some(Commitment::to(play, player, turn))
                {
                    return Some(format!(
                        "p{one} lets p{player} play {play:?} in turn {turn}, to which it was not committed"
                    ));
                }
            }
            for (other, second) in users.iter().enumerate().skip(one + 1) {
                let differs = |(of, a): &(&(u32, NodeId), &Option<Play>)| {
                    second.outcomes.get(of).is_some_and(|b| b != *a)
                };
                if let Some(((turn, player), _)) = user.outcomes.iter().find(differs) {
                    return Some(format!(
                        "p{one} and p{other} disagree on what p{player} did in turn {turn}"
                    ));
                }
            }
        }
        None
    }
}

/// A player: it chooses an action, waits for the turn to be over, and goes on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct User {
    me: NodeId,
    players: u32,
    /// Turns that are over.
    over: u32,
    waits: bool,
    commitments: BTreeMap<(u32, NodeId), Commitment>,
    forfeited: BTreeSet<(u32, NodeId)>,
    shown: BTreeSet<(u32, NodeId)>,
    outcomes: BTreeMap<(u32, NodeId), Option<Play>>,
    revealed_early: Option<u32>,
    chose_late: Option<u32>,
}

impl User {
    /// Among how many actions a player chooses.
    pub const ACTIONS: u32 = 2;

    pub fn new(me: UserId, players: usize) -> User {
        User {
            me: NodeId(me.0),
            players: players as u32,
            ..User::default()
        }
    }
}

impl Default for User {
    fn default() -> Self {
        User {
            me: NodeId(0),
            players: 1,
            over: 0,
            waits: false,
            commitments: BTreeMap::new(),
            forfeited: BTreeSet::new(),
            shown: BTreeSet::new(),
            outcomes: BTreeMap::new(),
            revealed_early: None,
            chose_late: None,
        }
    }
}

impl crate::User<Turns> for User {
    fn next(&self) -> Next<Ask> {
        self.choose(0)
    }

    fn choices(&self) -> u32 {
        Self::ACTIONS
    }

    fn choose(&self, action: u32) -> Next<Ask> {
        match self.waits {
            true => Next::Nothing,
            false => Next::May(Ask::Choose {
                turn: self.over,
                action,
            }),
        }
    }

    fn asked(&mut self, _: Ask) {
        self.waits = true;
    }

    fn told(&mut self, tell: Tell) -> Result<(), String> {
        match tell {
            Tell::Committed {
                turn,
                player,
                commitment,
            } => {
                self.commitments.insert((turn, player), commitment);
                if player == self.me && self.shown.iter().any(|(of, _)| *of == turn) {
                    self.chose_late = Some(turn);
                }
            }
            Tell::Shown { turn, player } => {
                self.shown.insert((turn, player));
            }
            Tell::Reveals { turn } => {
                let committed = self.commitments.keys().map(|&(of, player)| (of, player));
                let settled = committed.chain(self.forfeited.iter().copied());
                let settled: BTreeSet<_> = settled.filter(|(of, _)| *of == turn).collect();
                if settled.len() < self.players as usize {
                    self.revealed_early = Some(turn);
                }
            }
            Tell::Played { turn, player, play } => {
                self.outcomes.insert((turn, player), Some(play));
            }
            Tell::Forfeited { turn, player } => {
                self.forfeited.insert((turn, player));
                self.outcomes.insert((turn, player), None);
            }
            Tell::Over { turn } if turn == self.over => {
                self.over += 1;
                self.waits = false;
            }
            Tell::Over { turn } => {
                return Err(format!(
                    "told that turn {turn} is over in turn {}",
                    self.over
                ));
            }
        }
        Ok(())
    }

    fn phase(&self) -> Phase {
        match self.waits {
            true => Phase::Waiting,
            false => Phase::Idle,
        }
    }

    fn crashed(&self, _: &User) -> User {
        User {
            waits: false,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User as _;

    const PLAY: Play = Play {
        action: 1,
        nonce: 7,
    };

    fn committed(player: u32, play: Play) -> Tell {
        let player = NodeId(player);
        Tell::Committed {
            turn: 0,
            player,
            commitment: Commitment::to(play, player, 0),
        }
    }

    fn two() -> [User; 2] {
        [0, 1].map(|user| User::new(UserId(user), 2))
    }

    fn wrong(tells: &[(usize, Tell)]) -> String {
        let mut users = two();
        for (user, tell) in tells {
            users[*user].told(*tell).expect("well-formed");
        }
        Turns::violation(&users).unwrap_or_default()
    }

    #[test]
    fn a_reveal_needs_every_commitment() {
        let early = [(0, committed(0, PLAY)), (0, Tell::Reveals { turn: 0 })];
        assert!(wrong(&early).contains("before everybody is committed"));
        let in_time = [
            (0, committed(0, PLAY)),
            (0, committed(1, PLAY)),
            (0, Tell::Reveals { turn: 0 }),
        ];
        assert_eq!(wrong(&in_time), "");
    }

    #[test]
    fn an_action_matches_its_commitment() {
        let played = |play| Tell::Played {
            turn: 0,
            player: NodeId(1),
            play,
        };
        assert_eq!(wrong(&[(0, committed(1, PLAY)), (0, played(PLAY))]), "");
        let other = Play { action: 0, ..PLAY };
        let switched = wrong(&[(0, committed(1, PLAY)), (0, played(other))]);
        assert!(switched.contains("not committed"), "{switched}");
        let nonce = Play { nonce: 8, ..PLAY };
        assert_ne!(wrong(&[(0, committed(1, PLAY)), (0, played(nonce))]), "");
    }

    #[test]
    fn a_commitment_belongs_to_one_player_and_one_turn() {
        let one = Commitment::to(PLAY, NodeId(0), 0);
        assert_ne!(one, Commitment::to(PLAY, NodeId(1), 0));
        assert_ne!(one, Commitment::to(PLAY, NodeId(0), 1));
    }

    #[test]
    fn players_agree_on_who_forfeits() {
        let player = NodeId(1);
        let (turn, play) = (0, PLAY);
        let played = Tell::Played { turn, player, play };
        let disagreement = wrong(&[
            (0, committed(1, PLAY)),
            (0, played),
            (1, Tell::Forfeited { turn, player }),
        ]);
        assert!(disagreement.contains("disagree"), "{disagreement}");
    }

    #[test]
    fn nobody_commits_itself_knowing_what_another_did() {
        let player = NodeId(1);
        let shown = Tell::Shown { turn: 0, player };
        let late = wrong(&[(0, shown), (0, committed(0, PLAY))]);
        assert!(late.contains("knows another's action"), "{late}");
        assert_eq!(wrong(&[(0, committed(0, PLAY)), (0, shown)]), "");
    }
}
