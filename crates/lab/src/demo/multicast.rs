//! Multicasts: what is lost, held for ever or delivered in another order.

use super::{Demo, Expect, Scene};

pub(super) const DEMOS: &[Demo] = &[
    Demo {
        name: "basic-multicast-crash",
        title: "Told to some: basic multicast, 3 nodes",
        source: "coordination and agreement §4.2",
        question: "A sender sends its message to one member after the other. What if it crashes in between?",
        scene: Scene::check("basic-multicast-agreeing", 3, Expect::Stuck),
        look: &[
            (
                "p1 receives Message(p0.1) from p0",
                "p1 delivers what it receives, and passes nothing on",
            ),
            (
                "Message(p0.1) from p0 to p2 is lost",
                "the copy for p2 is lost with its sender, and nobody else sends another",
            ),
        ],
        answer: "Then some have delivered it and others never will. Whoever delivers must pass the message on first.",
    },
    Demo {
        name: "first-message-discarded",
        title: "Counted from zero: negative acknowledgements, 2 nodes",
        source: "coordination and agreement §4.4",
        question: "The sender numbers its messages from 0, and the receiver has delivered up to 0. What of the first one?",
        scene: Scene::check("nack-multicast-from-zero", 2, Expect::Stuck),
        look: &[(
            "p1 receives Message",
            "the first number in brackets is the message's own, 0; p1 has delivered up to 0, and takes it for an old one",
        )],
        answer: "It looks like one that was delivered already, and is thrown away. Numbers must begin at 1.",
    },
    Demo {
        name: "last-message-lost",
        title: "Silence after a loss: negative acknowledgements, 2 nodes",
        source: "coordination and agreement §4.4",
        question: "A receiver asks again for what it knows to be missing. What if the last message is lost?",
        scene: Scene::check("nack-multicast-silent", 2, Expect::Stuck),
        look: &[(
            "is lost",
            "p1 does not know that there was a message, and asks for nothing",
        )],
        answer: "Nobody misses it, because nothing comes behind it. An empty message now and then says how far the sender is.",
    },
    Demo {
        name: "causal-own-copy",
        title: "Held for ever: causal multicast as it is printed",
        source: "coordination and agreement §4.7",
        question: "A message is delivered when it is the next of its sender. When does the sender deliver its own?",
        scene: Scene::check("causal-multicast-printed", 2, Expect::Unsafe),
        look: &[
            (
                "p0 asks: Multicast(0)",
                "p0 has counted its message, so its own copy is not the next one any more: p0 holds it for ever",
            ),
            (
                "p0 receives Message(p1.1",
                "p0 delivers what answers a message that it has not delivered itself",
            ),
        ],
        answer: "Never, as it is printed, and not even causal order is left. A sender must deliver its message as it sends it.",
    },
    Demo {
        name: "isis-ties",
        title: "Equal numbers: ISIS with ties by arrival, 2 nodes",
        source: "coordination and agreement §4.8",
        question: "Two messages get the same agreed number. May each node deliver them in the order in which they came?",
        scene: Scene::check("isis-ties-by-arrival", 2, Expect::Unsafe),
        look: &[
            (
                "p1 receives Message(",
                "p1 has its own message first, as number 1, and proposes 2 for the other",
            ),
            (
                "p0 receives Message(",
                "p0 does the same with the roles exchanged: both messages get the number 2",
            ),
            (
                "told Delivered(p1.1)",
                "p1 delivers its own message first, because it came first",
            ),
            ("told Delivered(p0.1)", "so does p0"),
        ],
        answer: "No. They came in different orders. Any order that is the same everywhere will do, such as by sender.",
    },
];
