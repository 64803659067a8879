//! Mutual exclusion: what goes wrong in the printed forms.

use super::{Demo, Expect, Scene};

pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "maekawa-lost-request",
        title: "A queue that nobody serves: Maekawa as the slides print it, 2 nodes",
        source: "coordination and agreement §2.5.2",
        question: "A node that leaves tells the others of its voting set. Is everybody served?",
        scene: Scene::check("maekawa-slides", 2, Expect::Stuck),
        look: &[
            (
                "p0 receives Request(1,1) from p1",
                "p0 wants to enter itself, and keeps p1's request in its queue",
            ),
            (
                "p0 asks: Leave",
                "p0 releases the others, and looks into no queue of its own",
            ),
            (
                "p1 receives Release from p0",
                "p1 hears that p0 has left; what it waits for is p0's vote",
            ),
        ],
        answer: "No. A node must be a voter for itself, too: then its own release serves its own queue.",
    },
    Demo {
        name: "maekawa-two-inside",
        title: "Two inside together: Maekawa as the slides print it, 3 nodes",
        source: "coordination and agreement §2.5.2",
        question: "Any two voting sets have a node in common. Is that enough for exclusion?",
        scene: Scene::check("maekawa-slides", 3, Expect::Unsafe),
        look: &[
            (
                "p1 receives Request(1,0) from p0; sends Reply to p0",
                "p1, the node that both sets have, votes for p0, although it wants to enter itself",
            ),
            (
                "p1 receives Reply from p2; told Entered",
                "p1 counts the votes of others alone; the one that it has given away is not missed",
            ),
        ],
        answer: "Only if a node's own vote counts like any other: it has one, and p0 has it.",
    },
    Demo {
        name: "maekawa-deadlock",
        title: "A circle of votes: Maekawa's corrected form, 2 nodes",
        source: "coordination and agreement §2.5.3",
        question: "Every node votes for itself as well. Now it is safe. Is it live?",
        scene: Scene::check("maekawa-basic", 2, Expect::Stuck),
        look: &[
            (
                "p1 receives Request(1,0) from p0",
                "p1 has given its vote to itself, and keeps p0 waiting",
            ),
            (
                "p0 receives Request(1,1) from p1",
                "p0 has done the same: each has one vote of two",
            ),
        ],
        answer: "No. Votes that are given are not taken back, so each waits for the vote that the other keeps.",
    },
    Demo {
        name: "maekawa-circle",
        title: "A circle of three: Maekawa's corrected form, 3 nodes",
        source: "coordination and agreement §2.5.3",
        question: "Three nodes, and no two of them want the same pair of votes. Is there still a circle?",
        scene: Scene::check("maekawa-basic", 3, Expect::Stuck),
        look: &[
            ("p1 receives Request(1,0) from p0", "p0 waits for p1"),
            ("p2 receives Request(1,1) from p1", "p1 waits for p2"),
            (
                "p0 receives Request(1,2) from p2",
                "p2 waits for p0, and the circle is closed",
            ),
        ],
        answer: "Yes. A vote must be recalled for the older request, and the losers must be told.",
    },
    Demo {
        name: "maekawa-late-failure",
        title: "Told too late: Maekawa as published, a grid of 4 nodes",
        source: "coordination and agreement §2.5.4",
        question: "A voter tells a request that comes too late that it has failed. Must it tell others later?",
        scene: Scene::check("maekawa-published", 4, Expect::Stuck),
        look: &[
            (
                "p2 receives Inquire(1,2) from p0",
                "p2 is asked for its vote back, and keeps it: nobody has told it that it cannot win",
            ),
            (
                "p3 receives Request(1,1) from p1",
                "now p1's request is better than p2's at p3, and p2 is not told",
            ),
        ],
        answer: "Yes. Whoever stops being the best must be told, at whatever time that happens: that is Sanders' repair.",
    },
    Demo {
        name: "sanders-order",
        title: "Later, and served first: Sanders, 3 nodes",
        source: "coordination and agreement §2.5.4",
        question: "Requests are ordered by time and node, and votes go to the oldest. Does whoever asked first enter first?",
        scene: Scene::Run {
            algorithm: "sanders",
            nodes: 3,
            entries: 4,
            chosen: &[],
            arrivals: "script:1@0,0@5,2@6.5,1@9.5",
            faults: &[],
            slow: &[(0, 2, "fixed:4")],
            messages: None,
            ordered: Some(false),
        },
        look: &[
            ("p2 asks: Enter", "this is the earlier of the two requests"),
            (
                "p0 receives Request(3,2) from p2",
                "p0 knows of it now: the chain of messages begins here",
            ),
            (
                "p1 receives Release(1,0) from p0",
                "the chain ends at p1. A release sets no clock forward",
            ),
            (
                "p1 asks: Enter; sends Request(3,1)",
                "p1's request happened after p2's, has the same time, and a smaller number",
            ),
            (
                "p1 receives Grant(3,1) from p2",
                "p2 has given its own vote back to p1, and p1 enters first",
            ),
        ],
        answer: "No. A chain of messages can reach a node before the request itself does, as here from p2 over p0 to p1. Order takes causal \
                 delivery of requests. It is safe all the same, and everybody is served.",
    },
    Demo {
        name: "ricart-agrawala-without-clock",
        title: "A clock that is not set forward: Ricart and Agrawala, 3 nodes",
        source: "coordination and agreement §2.4",
        question: "Requests are ordered by time and node. Must a node take over the time that it hears?",
        scene: Scene::check("ricart-agrawala-no-update", 3, Expect::Unsafe),
        look: &[
            (
                "p0 receives Request(1,1) from p1",
                "p0 answers, and does not set its clock forward",
            ),
            (
                "p0 asks: Enter; sends Request(1,0)",
                "p0's later request has the same time, and a smaller number: it counts as the earlier one",
            ),
            (
                "p1 receives Request(1,0) from p0; sends Reply",
                "p1 has p0's answer already, and must now answer p0 as well",
            ),
        ],
        answer: "Yes. Otherwise a later request can look earlier than one that was answered already.",
    },
];
