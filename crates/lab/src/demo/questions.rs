//! The questions that the source poses, answered.

use super::{Demo, Scene};

pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "question-central-server",
        title: "What else speaks against a central server?",
        source: "coordination and agreement §7",
        question: "The server is the bottleneck. What other disadvantages has it?",
        scene: Scene::Words,
        look: &[],
        answer: "It is a single point of failure. Every entry costs two hops even if nobody else wants in. And it serves in the order \
                 in which requests arrive, which need not be the order in which they were made.",
    },
    Demo {
        name: "question-without-assumptions",
        title: "And if nodes crash and messages are lost?",
        source: "coordination and agreement §7",
        question: "What becomes of the central server when the assumptions of the model do not hold?",
        scene: Scene::Words,
        look: &[],
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
        scene: Scene::Words,
        look: &[],
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
