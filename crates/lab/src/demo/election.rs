//! Elections: what they cost at worst, and what the bully cannot promise.

use testigo_protocol::Faults;

use super::{Demo, Expect, Scene};
use crate::Timing;

const RING: &str = "coordination and agreement §3.2";
const BULLY: &str = "coordination and agreement §3.3";

pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "ring-worst-case",
        title: "One caller, one turn too far: the ring's worst case, 7 nodes",
        source: RING,
        question: "The neighbour on the wrong side of the caller has the highest number. How many messages does that cost?",
        scene: Scene::Run {
            algorithm: "ring-election",
            nodes: 7,
            entries: 1,
            chosen: &[],
            arrivals: "script:0@0",
            faults: &[],
            slow: &[],
            messages: Some(20),
            ordered: None,
        },
        look: &[
            (
                "p6 receives Election(5) from p5",
                "after n − 1 messages the highest hears of the election, and puts its own number in",
            ),
            (
                "p6 receives Election(6) from p5",
                "n messages later its number is back, so nobody is higher: it is elected",
            ),
            (
                "p6 receives Elected(6) from p5",
                "n more have told everybody",
            ),
        ],
        answer: "3n − 1: n − 1 messages until the highest hears of the election, n until its number is back, n to tell everybody.",
    },
    Demo {
        name: "ring-all-call",
        title: "Everybody calls: the ring's worst case of all, 8 nodes",
        source: RING,
        question: "All 8 nodes call an election at once, and each sends to the next lower one. How many messages does that cost?",
        scene: Scene::Run {
            algorithm: "ring-election",
            nodes: 8,
            entries: 8,
            chosen: &[("ring", "descending")],
            arrivals: "script:0@0,1@0,2@0,3@0,4@0,5@0,6@0,7@0",
            faults: &[],
            slow: &[],
            messages: Some(44),
            ordered: None,
        },
        look: &[
            (
                "p7 receives Election(0) from p0",
                "only the highest stops a number; the lowest one has to go one step",
            ),
            (
                "p7 receives Election(6) from p0",
                "the second highest goes past all that are lower, n − 1 steps",
            ),
            (
                "p7 receives Election(7) from p0",
                "the highest goes all the way round, n steps; then everybody is told",
            ),
        ],
        answer: "n(n + 1)/2 + n: the numbers go 1, 2, …, n steps, and n more messages tell everybody. O(n log n), as the source says, is the \
                 mean over all orders of the nodes and not the worst case.",
    },
    Demo {
        name: "bully-worst-case",
        title: "The lowest notices: the bully's worst case, 8 nodes",
        source: BULLY,
        question: "The highest of 8 nodes has crashed, and the lowest one notices. How many messages are sent?",
        scene: Scene::Run {
            algorithm: "bully",
            nodes: 8,
            entries: 1,
            chosen: &[],
            arrivals: "script:0@0",
            faults: &["halt:7@0"],
            slow: &[],
            messages: Some(55),
            ordered: None,
        },
        look: &[
            ("p7 crashes", "the highest is gone, and the lowest notices"),
            (
                "p1 receives Election from p0",
                "whoever is above answers, and begins an election of its own",
            ),
            (
                "Election from p0 to p7 is lost",
                "nobody knows that p7 is down, so everybody asks it, too",
            ),
        ],
        answer: "n² − n − 1: everybody asks everybody above, everybody above who lives answers, and one announces itself.",
    },
    Demo {
        name: "bully-double-coordinator",
        title: "Two announcements: the bully, 3 nodes",
        source: BULLY,
        question: "The old coordinator comes back while another one is being elected. Do all agree in the end?",
        scene: Scene::Check {
            algorithm: "bully",
            nodes: Some(3),
            faults: Some(Faults {
                restarts: 1,
                ..Faults::crashes(1)
            }),
            timeouts: None,
            timing: None,
            expect: Expect::Unsafe,
        },
        look: &[
            (
                "p1's timer 1 fires",
                "p1 hears nothing from above, and announces itself; the word to p0 is slow",
            ),
            (
                "p2 is back",
                "the old coordinator is back, and announces itself, too",
            ),
            (
                "p0 receives Coordinator(1)",
                "the announcement that was made first arrives last, and p0 believes it",
            ),
        ],
        answer: "No. Two announcements are under way, and whoever hears the lower one last stays wrong.",
    },
    Demo {
        name: "bully-slow-process",
        title: "Slow is not dead: the bully, 2 nodes",
        source: BULLY,
        question: "A process that does not answer in time is taken for dead. What if it was only slow?",
        scene: Scene::Run {
            algorithm: "bully",
            nodes: 2,
            entries: 1,
            chosen: &[],
            arrivals: "script:0@0",
            faults: &["pause:1@0..20"],
            slow: &[],
            messages: None,
            ordered: None,
        },
        look: &[
            (
                "p0's timer 1 fires; told Elected(0)",
                "p1 has not answered in time, and p0 takes itself for elected",
            ),
            (
                "told Elected(1)",
                "p1 was only slow. It is the highest, so it is elected, too: p0 says 0, and p1 says 1",
            ),
            (
                "p0 receives Coordinator(1)",
                "here p0 is corrected in the end",
            ),
        ],
        answer: "Then two are taken for elected at the same time. Without a bound on delays no timeout is long enough. With three nodes it can stay \
                 so: see `testigo lab demo bully-slow-answer`.",
    },
    Demo {
        name: "bully-slow-answer",
        title: "A slow answer: the bully, 3 nodes",
        source: BULLY,
        question: "A process does not wait for an answer that is under way. Do all agree in the end?",
        scene: Scene::Check {
            algorithm: "bully",
            nodes: Some(3),
            faults: Some(Faults::NONE),
            timeouts: None,
            timing: Some(Timing::Asynchronous),
            expect: Expect::Unsafe,
        },
        look: &[
            (
                "p1's timer 1 fires",
                "p2's answer is under way, but p1 does not wait any longer",
            ),
            (
                "p0 receives Coordinator(1)",
                "the word of the impatient one is the last that p0 hears",
            ),
        ],
        answer: "No: the last word that p0 hears is the wrong one. Without a bound on delays no timeout is long enough.",
    },
];
