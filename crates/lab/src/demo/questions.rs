//! The questions that the source poses, answered.

use super::{Demo, Scene};

pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "question-central-server",
        title: "What else speaks against a central server?",
        source: "coordination and agreement §7",
        question: "The server is the bottleneck. What other disadvantages has it?",
        scene: Scene::Run {
            algorithm: "central",
            nodes: 2,
            entries: 2,
            chosen: &[],
            arrivals: "script:0@0,1@1",
            faults: &[],
            slow: &[(0, 2, "fixed:5")],
            messages: None,
            ordered: None,
        },
        look: &[
            (
                "server receives Request from p1",
                "p1 asked later, but its request arrives first",
            ),
            (
                "p1 receives Grant from server",
                "a request and a grant: two hops, although nobody is inside",
            ),
            (
                "server receives Request from p0",
                "p0, which asked first, is second in the queue",
            ),
        ],
        answer: "It is a single point of failure. Every entry costs two hops even if nobody else wants in. And it serves in the order \
                 in which requests arrive, which need not be the order in which they were made.",
    },
    Demo {
        name: "question-without-assumptions",
        title: "And if nodes crash and messages are lost?",
        source: "coordination and agreement §7",
        question: "What becomes of the central server when the assumptions of the model do not hold?",
        scene: Scene::Run {
            algorithm: "central",
            nodes: 2,
            entries: 2,
            chosen: &[],
            arrivals: "script:0@0,1@1",
            faults: &["halt:2@3"],
            slow: &[],
            messages: None,
            ordered: None,
        },
        look: &[
            (
                "server receives Request from p1",
                "p1 stands in the server's queue, and nowhere else",
            ),
            ("server crashes", "the queue is forgotten with the server"),
            (
                "p1 waits for ever",
                "p0 has left, and nobody is there who could let p1 in",
            ),
        ],
        answer: "If the server crashes, the queue and the holder are forgotten. If the holder crashes, the token is lost. A lost \
                 message blocks whoever waits for it. It takes leases, retransmission and an election to go on: what a node of Testigo has.",
    },
    Demo {
        name: "question-maekawa-four",
        title: "Maekawa's voting sets for 4 nodes",
        source: "coordination and agreement §2.5.1, §7",
        question: "What do the voting sets of 4 nodes look like?",
        scene: Scene::Words,
        look: &[],
        answer: "A grid of two by two: row and column of each node, so 3 votes each. Sets of 2 cannot do: three pairs that meet each other \
                 pairwise are a triangle, which leaves no pair for the fourth node, or a star, whose centre is in every set. \
                 `testigo lab quorum grid --nodes 4` draws them.",
    },
    Demo {
        name: "question-double-coordinator",
        title: "How can the bully's double coordinator be avoided?",
        source: "coordination and agreement §7",
        question: "With the means of ordered multicast and agreement: how is it solved, at least in part?",
        scene: Scene::Run {
            algorithm: "raft",
            nodes: 3,
            entries: 2,
            chosen: &[],
            arrivals: "script:1@0,1@60",
            faults: &["crash:2@20..50"],
            slow: &[],
            messages: None,
            ordered: None,
        },
        look: &[
            ("told Leads(term 1", "a majority has voted for p2 in term 1"),
            (
                "told Leads(term 2",
                "p2 is down, and a majority votes for p1 in a higher term",
            ),
            (
                "p2 is back",
                "the old leader is back, as in the bully's double election",
            ),
            (
                "p2 receives AppendEntries(term 2",
                "it hears of the higher term, and follows: nobody takes orders of term 1 any more",
            ),
        ],
        answer: "Announce the coordinator by a totally ordered multicast: then all end with the same one, though it may not be the \
                 highest live process. Better: elect by a majority, with terms that only rise, as Raft does. \
                 See `testigo lab demo bully-double-coordinator` and `testigo lab run raft`.",
    },
    Demo {
        name: "question-rings",
        title: "Why study rings?",
        source: "coordination and agreement §7",
        question: "Hardly any network is a ring any more. Why study election on one?",
        scene: Scene::Words,
        look: &[],
        answer: "Ring networks once competed with Ethernet. A logical ring is still an option wherever each process should know only \
                 its neighbour.",
    },
    Demo {
        name: "question-causal-vectors",
        title: "What do the causal vectors recall?",
        source: "coordination and agreement §4.7, §7",
        question: "Each process counts the messages that it has delivered from each other one. What is that?",
        scene: Scene::Words,
        look: &[],
        answer: "A vector clock. Here it counts multicasts only, and not every event.",
    },
];
