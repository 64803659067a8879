//! Agreement: liars, duels, lost commits, and those who wait for one that is silent.

use testigo_protocol::Faults;

use super::{Demo, Expect, Scene};

pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "generals-three",
        title: "A traitor among three: oral messages",
        source: "coordination and agreement §5.2.1",
        question: "Three generals, one of them a traitor, and one round of passing on what was heard. Do the loyal ones agree?",
        scene: Scene::telling("om-three", Expect::Unsafe),
        look: &[
            (
                "p1 lies",
                "the lieutenant p1 claims that the commander gave another order",
            ),
            (
                "told Decided(0, v0)",
                "p2 has two reports that differ, and no majority: it takes the default",
            ),
        ],
        answer: "No. A loyal lieutenant cannot tell a lying commander from a lying lieutenant: it hears the same in both cases. \
                 (A tie counts as the default here. If it counted as the commander's order, a lying commander would do the harm.)",
    },
    Demo {
        name: "generals-four",
        title: "A traitor among four: oral messages",
        source: "coordination and agreement §5.2.1",
        question: "And with four generals, whoever is the traitor and whatever it says?",
        scene: Scene::Checked {
            check: &Scene::telling("om", Expect::Holds),
            run: &Scene::lied("om", 4, &["wrong:0:1"]),
        },
        look: &[
            (
                "p0 lies",
                "the commander is the traitor, and tells the lieutenants different orders",
            ),
            (
                "told Decided(0, ",
                "each lieutenant has the same three reports, and takes the same majority",
            ),
        ],
        answer: "They agree: among three reports, two are true.",
    },
    Demo {
        name: "generals-signed",
        title: "A traitor among three: signed messages",
        source: "coordination and agreement §5.2.2",
        question: "Three generals again, but nobody can forge what another has signed. Do the loyal ones agree?",
        scene: Scene::Checked {
            check: &Scene::telling("sm", Expect::Holds),
            run: &Scene::lied("sm", 3, &["wrong:0:1"]),
        },
        look: &[
            (
                "p0 lies",
                "the commander is the traitor, and signs two orders",
            ),
            (
                "told Decided(0, ",
                "both lieutenants have seen both orders with the commander's signature, and take the default",
            ),
        ],
        answer: "Yes. A commander that signs two orders is found out, and a lieutenant cannot change the one that it passes on.",
    },
    Demo {
        name: "paxos-any-accepted",
        title: "The wrong report: Paxos that ignores the number, 3 acceptors",
        source: "coordination and agreement §5.4",
        question: "A proposer must take over a value that an acceptor has accepted. Does it matter which, if there are two?",
        scene: Scene::telling("paxos-any-accepted", Expect::Unsafe),
        look: &[
            (
                "p2 receives Accepted(0.1, v2) from p1; told Decided(0, v2)",
                "a majority has accepted v2 under 0.1: it is chosen",
            ),
            (
                "p1 receives Prepare(1.0) from p0",
                "p1 reports what it has accepted, and under which number",
            ),
            (
                "p0 receives Promise(1.0, Some((0.1, v2))) from p1",
                "p0 has accepted v1 itself, under the lower number 0.0, and takes that one over",
            ),
        ],
        answer: "Yes. Only the one with the highest number can have been chosen. The promise must carry that number.",
    },
    Demo {
        name: "paxos-duel",
        title: "Two proposers for ever: Paxos without a back-off",
        source: "coordination and agreement §5.4",
        question: "Two proposers, and nothing fails. Is a value chosen?",
        scene: Scene::telling("paxos-duel", Expect::Endless),
        look: &[
            (
                "p0 receives Nack(0.0, 0.1) from p2",
                "p0 was too late, and tries again with a higher number",
            ),
            (
                "from here it repeats for ever",
                "what follows comes again and again, with higher numbers each time",
            ),
            (
                "p2 receives Accept(0.1, v2) from p1; sends Nack",
                "p1's value comes after p0's higher number, and is refused",
            ),
            (
                "p2 receives Accept(1.0, v1) from p0; sends Nack",
                "p0's value comes after p1's still higher one, and is refused as well",
            ),
        ],
        answer: "Perhaps never: each prepares a higher number just before the other's value is accepted. One proposer, or a wait of \
                 random length, ends the duel. No algorithm can rule such a run out where messages may take any time.",
    },
    Demo {
        name: "cheap-paxos-alone",
        title: "Each lowers its quorum: Cheap Paxos read naively, 2 main acceptors",
        source: "coordination and agreement §5.5.2",
        question: "An acceptor does not answer. May a leader go on with a smaller quorum?",
        scene: Scene::telling("cheap-paxos-alone", Expect::Unsafe),
        look: &[
            (
                "p0's timer",
                "p0 has not heard from p1, lowers its quorum to itself, and has chosen v1",
            ),
            ("p1's timer", "p1 does the same with p0, and has chosen v2"),
        ],
        answer: "Not by itself: two that suspect each other choose two values. The smaller set must be chosen by a quorum of the larger one, and \
                 take effect in a later slot, so that everybody knows it before anything is proposed there.",
    },
    Demo {
        name: "fast-paxos-small-quorums",
        title: "Two values that may both be chosen: Fast Paxos, 3 acceptors",
        source: "coordination and agreement §5.5.3",
        question: "Fast quorums of 2 and classic quorums of 2, of 3 acceptors. Can a leader tell what was chosen?",
        scene: Scene::telling("fast-paxos-small-quorums", Expect::Unsafe),
        look: &[
            (
                "told Decided(0, v2)",
                "two of three have accepted v2; with fast quorums of two it is chosen",
            ),
            (
                "p0 receives Promise(1.0",
                "p0 sees its own vote for v1 and p1's for v2, and does not see p2's: both could have been chosen",
            ),
        ],
        answer: "No. It sees one vote for each of two values, and the acceptor that it did not hear may have made either of them chosen.",
    },
    Demo {
        name: "raft-old-term",
        title: "On a majority, and lost: Raft that counts copies of an old term",
        source: "coordination and agreement §5.6",
        question: "An entry of an earlier term is on a majority of the nodes. Is it committed?",
        scene: Scene::telling("raft-old-term", Expect::Unsafe),
        look: &[
            (
                "p0's timer 0 fires",
                "p0 has an entry of term 2, p2 another one of term 3; now p0 is a candidate for term 4",
            ),
            (
                "told Applied(1: ",
                "the entry of term 2 is on p0 and p1, a majority, and p0 takes it for committed",
            ),
            (
                "p0 receives RequestVote(term 5",
                "p2's last entry is of a later term than p0's, so p0 gives it its vote",
            ),
        ],
        answer: "Not yet: a node with an entry of a later term can still be elected, and overwrite it. A leader may count copies only \
                 of entries of its own term.",
    },
    Demo {
        name: "pbft-three",
        title: "Two digests: PBFT with three replicas",
        source: "coordination and agreement §5.7",
        question: "Three replicas, one of them a liar, quorums of two. Do the others commit the same?",
        scene: Scene::telling("pbft-three", Expect::Unsafe),
        look: &[
            (
                "p1 receives PrePrepare",
                "p1 and the primary are a quorum of two",
            ),
            (
                "p0 lies",
                "the primary gives p2 another request under the same number",
            ),
            (
                "p2 receives PrePrepare",
                "p2 and the primary are a quorum, too: they have nobody but the liar in common",
            ),
        ],
        answer: "No. Two quorums may have only the liar in common, and it votes for both. It takes 3f + 1 replicas.",
    },
    Demo {
        name: "two-phase-blocking",
        title: "Ready for ever: two-phase commit",
        source: "coordination and agreement §5.8",
        question: "A participant has voted yes, and the coordinator crashes. What may the participant do?",
        scene: Scene::Check {
            algorithm: "two-phase-commit",
            nodes: Some(2),
            faults: Some(Faults::crashes(1)),
            timeouts: None,
            timing: None,
            expect: Expect::Stuck,
        },
        look: &[
            (
                "sends Yes to p0",
                "p1 has promised to commit if all do, and may not decide by itself any more",
            ),
            (
                "p0 crashes",
                "the one who decides is gone, and p1 cannot know how",
            ),
        ],
        answer: "Nothing but wait. Commit and abort are both possible, and another participant that is ready knows no more.",
    },
    Demo {
        name: "commit-reveal-silence",
        title: "A silent player: the locked turn, 2 players",
        source: "coordination and agreement §5.9",
        question: "One player has committed itself, and the other says nothing. Does the turn end?",
        scene: Scene::telling("commit-reveal-patient", Expect::Stuck),
        look: &[(
            "p1 receives Commit",
            "p1 knows that the turn has begun, and is silent; p0 must not show its action before p1 is committed",
        )],
        answer: "Not by itself: the other waits for ever. With a timeout, the silent player forfeits the turn.",
    },
    Demo {
        name: "impossibility",
        title: "A run that stays open: no consensus is guaranteed where messages may take any time",
        source: "coordination and agreement §5.3",
        question: "Messages arrive in the end, but nobody knows when. Can an algorithm promise that a decision is reached?",
        scene: Scene::telling("paxos-duel", Expect::Endless),
        look: &[
            (
                "p1 asks: Propose(0, v2)",
                "two values are proposed, and from here on either of them can be decided: the run is bivalent",
            ),
            (
                "p2 receives Prepare(1.0) from p0",
                "if p0's value came next it would be chosen, and the run would be over",
            ),
            (
                "p2 receives Accept(0.1, v2) from p1; sends Nack",
                "the step that would decide for one comes after a step of the other, and both values are possible again",
            ),
            (
                "p2 receives Accept(1.0, v1) from p0; sends Nack",
                "the same once more, with the roles exchanged: for ever, without any crash",
            ),
        ],
        answer: "No. From a state in which two decisions are possible, some order of steps always leads to another such state (Fischer, Lynch \
                 and Paterson, 1985, where one process may crash). In practice a wait of random length makes the run improbable.",
    },
];
