//! Coordination and agreement §5.9, sentence by sentence.

use super::super::alone::Alone;
use super::super::by_hand::ByHand;
use super::*;
use crate::{Phase, User as _};

fn players_of(n: usize) -> ByHand<Turns> {
    ByHand::new(&ALGORITHM, &Setup::new(n))
}

fn timer(turn: u32, wait: Wait) -> Timer {
    Timer(u64::from(turn) * Wait::KINDS + wait as u64)
}

/// What a node says that everybody did in a turn.
fn outcome(run: &ByHand<Turns>, node: u32, of: u32) -> Vec<Option<u32>> {
    let mut outcome = Vec::new();
    for (_, tell) in run.tells.iter().filter(|(told, _)| *told == node) {
        match *tell {
            Tell::Played { turn, player, play } if turn == of => {
                outcome.push((player, Some(play.action)));
            }
            Tell::Forfeited { turn, player } if turn == of => outcome.push((player, None)),
            _ => {}
        }
    }
    outcome.sort_unstable();
    outcome.into_iter().map(|(_, action)| action).collect()
}

#[test]
fn a_turn_costs_2n_times_n_minus_1_messages_in_two_rounds() {
    for n in [2, 3, 4, 7] {
        let mut run = players_of(n);
        for player in 0..n as u32 {
            run.choose(player, player % User::ACTIONS);
        }
        let round = (n * (n - 1)) as u64;
        assert_eq!(run.messages(), round, "the commitments of {n}");
        run.deliver_all();
        assert_eq!(run.messages(), 2 * round);
        let actions: Vec<_> = (0..n as u32).map(|p| Some(p % User::ACTIONS)).collect();
        for node in 0..n as u32 {
            assert_eq!(outcome(&run, node, 0), actions);
        }
        assert_eq!(run.violation(), None);
    }
}

#[test]
fn nobody_reveals_before_everybody_is_committed() {
    let mut run = players_of(3);
    run.ask(0);
    run.ask(1);
    run.deliver_all();
    assert_eq!(run.kinds().get("Reveal"), None);
    run.ask(2);
    run.deliver_all();
    assert_eq!(run.kinds()["Reveal"], 6);
    assert_eq!(run.violation(), None);
}

#[test]
fn a_reveal_may_overtake_a_commitment() {
    let mut run = players_of(3);
    for player in 0..3 {
        run.ask(player);
    }
    for (from, to) in [(1, 0), (2, 0), (0, 1), (2, 1)] {
        run.deliver(from, to);
    }
    run.deliver_all();
    assert!(run.users.iter().all(|user| user.phase() == Phase::Idle));
    assert_eq!(run.violation(), None);
}

#[test]
fn a_silent_player_forfeits_the_turn() {
    let mut run = players_of(3);
    run.silent = vec![2];
    run.choose(0, 1);
    run.choose(1, 1);
    run.deliver_all();
    for player in [0, 1] {
        run.fire(player, timer(0, Wait::Commitments));
    }
    run.deliver_all();
    for player in [0, 1] {
        assert_eq!(outcome(&run, player, 0), [Some(1), Some(1), None]);
    }
    assert_eq!(run.violation(), None);
}

#[test]
fn a_player_that_does_not_reveal_forfeits_the_turn() {
    let mut run = players_of(2);
    run.ask(0);
    run.ask(1);
    run.deliver(1, 0);
    run.lose_all();
    run.fire(0, timer(0, Wait::Reveals));
    assert_eq!(outcome(&run, 0, 0), [Some(0), None]);
    assert_eq!(run.users[0].phase(), Phase::Idle);
}

#[test]
fn who_chooses_too_late_is_not_committed() {
    let mut run = players_of(2);
    run.ask(0);
    run.deliver_all();
    run.fire(1, timer(0, Wait::Thinking));
    run.ask(1);
    assert_eq!(run.labels(1, 0), [""; 0]);
    for player in [0, 1] {
        run.fire(player, timer(0, Wait::Commitments));
    }
    run.deliver_all();
    assert_eq!(outcome(&run, 1, 0), [Some(0), None]);
    assert!(run.users.iter().all(|user| user.phase() == Phase::Idle));
    assert_eq!(run.violation(), None);
}

#[test]
fn turns_follow_each_other() {
    let mut run = players_of(2);
    for turn in 0..3 {
        run.choose(0, turn % 2);
        run.choose(1, 1);
        run.deliver_all();
        assert_eq!(outcome(&run, 1, turn), [Some(turn % 2), Some(1)]);
    }
    assert_eq!(run.violation(), None);
}

/// Two actions are few enough to try; the nonce is what hides the one that was chosen.
#[test]
fn a_commitment_cannot_be_guessed_from_few_actions() {
    let play = Play {
        action: 1,
        nonce: nonce(NodeId(0), 0),
    };
    let hidden = Commitment::to(play, NodeId(0), 0);
    for action in 0..User::ACTIONS {
        let guess = Play { action, nonce: 0 };
        assert_ne!(Commitment::to(guess, NodeId(0), 0), hidden);
    }
    assert_ne!(nonce(NodeId(0), 0), nonce(NodeId(0), 1));
    assert_ne!(nonce(NodeId(0), 0), nonce(NodeId(1), 0));
}

#[test]
fn an_eager_player_is_caught() {
    let mut run = ByHand::new(&specimens::EAGER, &Setup::new(2));
    run.ask(0);
    let what = run.violation().expect("p1 is not committed");
    assert!(what.contains("before everybody is committed"), "{what}");
}

/// §5.9: an action that does not fit its commitment counts as none.
#[test]
fn a_player_that_shows_another_action_forfeits_the_turn() {
    let config = Config {
        players: 2,
        delay_bound: 1,
        flaw: None,
    };
    let mut player: Alone<CommitReveal> = Alone::new(0, config);
    let (turn, other, nonce) = (0, NodeId(1), 7);
    let committed = Play { action: 0, nonce };
    player.ask(Ask::Choose { turn, action: 0 });
    let commitment = Commitment::to(committed, other, turn);
    player.hear(1, Locked::Commit { turn, commitment });
    let play = Play { action: 1, nonce };
    player.hear(1, Locked::Reveal { turn, play });
    let end = [
        Tell::Forfeited {
            turn,
            player: other,
        },
        Tell::Over { turn },
    ];
    assert!(player.tells.ends_with(&end), "{:?}", player.tells);
}
