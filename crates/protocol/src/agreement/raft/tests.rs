//! Coordination and agreement §5.6, sentence by sentence.

use super::super::alone::Alone;
use super::super::by_hand::ByHand;
use super::*;
use crate::{Phase, User as _};

fn servers_of(n: usize) -> ByHand<ReplicatedLog> {
    ByHand::new(&ALGORITHM, &Setup::new(n))
}

/// Server 0 leads, and everybody knows.
fn led_by_0(n: usize) -> ByHand<ReplicatedLog> {
    let mut run = servers_of(n);
    run.fire(0, ELECTION);
    run.deliver_all();
    run
}

fn leads(run: &ByHand<ReplicatedLog>, server: u32, term: u32) -> bool {
    run.tells.contains(&(server, Tell::Leads { term }))
}

fn applied(run: &ByHand<ReplicatedLog>, server: u32) -> Vec<Command> {
    let told = run.tells.iter().filter(|(node, _)| *node == server);
    told.filter_map(|(_, tell)| match tell {
        Tell::Applied { entry, .. } => entry.command,
        _ => None,
    })
    .collect()
}

fn command(client: u32, number: u32) -> Command {
    Command {
        client: NodeId(client),
        number,
    }
}

#[test]
fn a_candidate_wins_by_a_majority() {
    let mut run = servers_of(5);
    run.fire(0, ELECTION);
    run.deliver(0, 1);
    run.deliver(1, 0);
    assert!(!leads(&run, 0, 1), "two of five");
    run.deliver(0, 2);
    run.deliver(2, 0);
    assert!(leads(&run, 0, 1));
}

#[test]
fn a_server_votes_once_in_a_term() {
    let mut run = servers_of(3);
    run.fire(0, ELECTION);
    run.fire(1, ELECTION);
    run.deliver(0, 2);
    run.deliver(1, 2);
    assert_eq!(run.labels(2, 1), ["Vote(term 1, no)"]);
    run.deliver_all();
    assert!(leads(&run, 0, 1) && !leads(&run, 1, 1));
}

#[test]
fn a_leader_that_is_heard_is_not_replaced() {
    let mut run = led_by_0(3);
    run.fire(1, ELECTION);
    run.deliver_all();
    assert!(!leads(&run, 1, 2), "it heard the leader since");
    run.fire(1, ELECTION);
    run.deliver_all();
    assert!(leads(&run, 1, 2));
}

/// Figures of §5.6: 2(N-1) messages for an entry, and a round trip until the leader commits it.
#[test]
fn an_entry_costs_a_round_trip_to_everybody() {
    for n in [3, 4, 5, 7] {
        let mut run = led_by_0(n);
        let before = run.messages();
        run.ask(0);
        run.deliver_all();
        assert_eq!(run.messages() - before, 2 * (n as u64 - 1), "{n} servers");
        assert_eq!(applied(&run, 0), [command(0, 1)]);
        assert_eq!(run.users[0].phase(), Phase::Idle);
    }
}

#[test]
fn followers_learn_of_a_commit_with_the_next_heartbeat() {
    let mut run = led_by_0(3);
    run.ask(2);
    run.deliver_all();
    assert_eq!(run.users[2].phase(), Phase::Waiting);
    run.fire(0, HEARTBEAT);
    run.deliver_all();
    assert_eq!(run.users[2].phase(), Phase::Idle);
    assert_eq!(applied(&run, 1), [command(2, 1)]);
}

#[test]
fn a_follower_that_missed_entries_is_brought_up_to_date() {
    let mut run = led_by_0(3);
    for _ in 0..3 {
        run.ask(0);
        run.deliver(0, 1);
        run.deliver(1, 0);
        run.lose_all();
    }
    run.fire(0, HEARTBEAT);
    run.deliver_all();
    assert_eq!(
        applied(&run, 2).len(),
        3,
        "2 has heard of none of them before"
    );
    assert_eq!(run.violation(), None);
}

/// §5.6: a conflicting entry is deleted, with all after it.
#[test]
fn what_was_never_committed_may_be_overwritten() {
    let mut run = led_by_0(3);
    run.ask(0);
    run.lose_all();
    run.fire(1, ELECTION);
    run.fire(1, ELECTION);
    run.deliver(1, 2);
    run.deliver(2, 1);
    assert!(leads(&run, 1, 2));
    run.lose_all();
    run.ask(1);
    run.deliver_all();
    let forwarded_again = command(0, 1);
    assert_eq!(applied(&run, 1), [command(1, 1), forwarded_again]);
    let overwritten = Tell::Wrote {
        index: 1,
        entry: LogEntry {
            term: 2,
            command: Some(command(1, 1)),
        },
    };
    assert!(run.tells.contains(&(0, overwritten)));
    assert_eq!(run.violation(), None);
}

/// §5.6: a leader commits by counting only what its own term wrote, and what is before it with it.
#[test]
fn an_entry_of_an_earlier_term_is_committed_by_a_later_one() {
    let mut run = led_by_0(3);
    run.ask(0);
    run.deliver(0, 1);
    run.lose_all();
    run.crash_and_restart(0);
    run.fire(1, ELECTION);
    run.fire(1, ELECTION);
    run.deliver_all();
    assert!(leads(&run, 1, 2));
    assert_eq!(applied(&run, 1), [], "held by all, but of term 1");
    run.ask(1);
    run.deliver_all();
    assert_eq!(applied(&run, 1), [command(0, 1), command(1, 1)]);
    assert_eq!(run.violation(), None);
}

/// A client goes on forwarding; the new leader appends the command again, and the client is answered once.
#[test]
fn a_command_left_over_from_an_earlier_term_is_appended_again() {
    let mut run = led_by_0(3);
    run.ask(2);
    run.deliver(2, 0);
    run.deliver(0, 1);
    run.lose_all();
    run.fire(1, ELECTION);
    run.fire(1, ELECTION);
    run.deliver_all();
    run.fire(1, HEARTBEAT);
    run.deliver_all();
    assert_eq!(applied(&run, 1), [command(2, 1), command(2, 1)]);
    let answers = |(_, tell): &&(u32, Tell)| matches!(tell, Tell::Answered { .. });
    assert_eq!(run.tells.iter().filter(answers).count(), 1);
}

#[test]
fn term_vote_and_log_survive_a_crash() {
    let mut run = led_by_0(3);
    run.ask(0);
    run.deliver_all();
    run.fire(1, ELECTION);
    run.fire(1, ELECTION);
    run.deliver(1, 2);
    run.crash_and_restart(2);
    run.fire(0, ELECTION);
    run.deliver_all();
    assert!(leads(&run, 1, 2));
    run.crash_and_restart(0);
    run.fire(1, HEARTBEAT);
    run.deliver_all();
    run.ask(1);
    run.deliver_all();
    run.fire(1, HEARTBEAT);
    run.deliver_all();
    let twice = [command(0, 1), command(0, 1), command(1, 1)];
    assert_eq!(applied(&run, 0), twice, "it applies its log again");
    assert_eq!(run.violation(), None);
}

#[test]
fn a_late_message_does_not_shorten_a_log() {
    let mut run = led_by_0(2);
    run.ask(0);
    run.fire(0, HEARTBEAT);
    let late = run.labels(0, 1);
    assert_eq!(late.len(), 2);
    let mut follower = Raft::new(NodeId(1), &config(2));
    let mut out = Output::new();
    for entries in [&[entry(1), entry(2)][..], &[entry(1)]] {
        let message = append(3, (0, 0), entries, 0);
        follower.hear(NodeId(0), message, &config(2), &mut out);
    }
    assert_eq!(follower.log, [entry(1), entry(2)]);
}

fn config(servers: usize) -> Config {
    Config {
        servers,
        delay_bound: 1,
        flaw: None,
        disk: |_| None,
    }
}

fn entry(term: u32) -> LogEntry {
    LogEntry {
        term,
        command: Some(command(0, term)),
    }
}

/// From the leader of a term: these entries, after the one before them.
fn append(term: u32, after: (u32, u32), entries: &[LogEntry], commit: u32) -> Rpc {
    Rpc::AppendEntries {
        term,
        prev_index: after.0,
        prev_term: after.1,
        entries: entries.to_vec(),
        commit,
    }
}

/// Server 1 of three, with a log of these terms.
fn follower(terms: &[u32]) -> Alone<Raft> {
    let mut follower = Alone::new(1, config(3));
    let log: Vec<LogEntry> = terms.iter().map(|term| entry(*term)).collect();
    follower.hear(0, append(1, (0, 0), &log, 0));
    follower
}

/// §5.6: the entry before the new ones must be of the same term.
#[test]
fn entries_after_one_of_another_term_are_refused() {
    let mut follower = follower(&[1]);
    let refused = Rpc::Appended {
        term: 3,
        success: false,
        index: 1,
    };
    let after_another = append(3, (1, 2), &[entry(3)], 2);
    assert_eq!(follower.hear(2, after_another), [refused]);
    assert_eq!(
        (follower.node.log, follower.node.commit),
        (vec![entry(1)], 0)
    );
}

/// §5.6: min(leaderCommit, index of the last new entry). What is after it may be overwritten yet.
#[test]
fn a_follower_commits_no_more_than_matches_the_leader() {
    let mut follower = follower(&[1, 1]);
    follower.hear(2, append(2, (1, 1), &[], 2));
    assert_eq!(follower.node.commit, 1, "the second entry is a stale one");
    follower.hear(2, append(2, (1, 1), &[entry(2)], 2));
    assert_eq!(follower.node.commit, 2);
    assert_eq!(follower.node.log, [entry(1), entry(2)]);
}

#[test]
fn a_server_that_comes_back_does_not_vote_again_in_its_term() {
    let mut voter = follower(&[1]);
    let request = || Rpc::RequestVote {
        term: 5,
        last_index: 1,
        last_term: 1,
    };
    let vote = |granted| Rpc::Vote { term: 5, granted };
    assert_eq!(voter.hear(0, request()), [vote(true)]);
    voter.crash_and_restart();
    assert_eq!((voter.node.term, &voter.node.log[..]), (5, &[entry(1)][..]));
    assert_eq!(voter.hear(2, request()), [vote(false)]);
    assert_eq!(voter.hear(0, request()), [vote(true)], "as before");
}

#[test]
fn late_votes_of_an_earlier_term_are_not_counted() {
    let mut candidate: Alone<Raft> = Alone::new(0, config(3));
    candidate.fire(ELECTION);
    candidate.fire(ELECTION);
    let vote = |term| Rpc::Vote {
        term,
        granted: true,
    };
    candidate.hear(1, vote(1));
    assert!(!candidate.node.is_leader(), "it stands in term 2");
    candidate.hear(1, vote(2));
    assert!(candidate.node.is_leader());
}

#[test]
fn one_server_is_its_own_majority() {
    let mut run = servers_of(1);
    run.fire(0, ELECTION);
    run.ask(0);
    assert_eq!(run.users[0].phase(), Phase::Idle);
    assert_eq!(run.messages(), 0);
}

/// §5.6, negative test 1, from the terms 2 and 3 on.
#[test]
fn committing_an_old_term_by_counting_loses_the_entry() {
    let mut run = ByHand::new(&specimens::OLD_TERM, &Setup::new(3));
    run.fire(0, ELECTION);
    run.deliver(0, 1);
    for _ in 0..2 {
        run.deliver(1, 0);
        run.deliver(0, 1);
    }
    run.deliver(1, 0);
    assert!(leads(&run, 0, 4));
    assert_eq!(applied(&run, 0), [command(0, 0)], "on a majority");
    for _ in 0..2 {
        run.fire(2, ELECTION);
    }
    run.deliver(2, 1);
    run.deliver(1, 2);
    let what = run.violation().expect("p2 lacks it");
    assert!(
        what.contains("p2 leads in term 5 without p0#0@2 at 1"),
        "{what}"
    );
}

/// The same schedule, with the rule.
#[test]
fn an_old_term_is_not_committed_by_counting() {
    let sound = Algorithm {
        profile: ALGORITHM.profile,
        machine: |setup| servers(setup, None, specimens::two_terms_later),
    };
    let mut run = ByHand::new(&sound, &Setup::new(3));
    run.fire(0, ELECTION);
    run.deliver(0, 1);
    for _ in 0..2 {
        run.deliver(1, 0);
        run.deliver(0, 1);
    }
    run.deliver(1, 0);
    assert_eq!(applied(&run, 0), []);
}

#[test]
fn two_servers_with_equal_timeouts_split_their_votes_for_ever() {
    let mut run = ByHand::new(&specimens::FIXED_TIMEOUT, &Setup::new(2));
    for _ in 0..10 {
        run.fire(0, ELECTION);
        run.fire(1, ELECTION);
        run.deliver_all();
    }
    let leader = |(_, tell): &(u32, Tell)| matches!(tell, Tell::Leads { .. });
    assert!(!run.tells.iter().any(leader));
}
