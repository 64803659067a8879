//! Pictures as a textbook would have them, for the tests of the drawing and for the eye: with
//! `TESTIGO_GALLERY` set to a folder, the test here writes them there.

use super::{
    Arrow, Axis, AxisScale, Bar, Chart, Cycle, Fate, Gap, GapKind, LaneTime, Mark, MarkKind,
    Origin, Partition, Scale, Series, Shape, SpaceTime, svg::tests::assert_well_formed,
};

/// A linear congruential generator with a fixed start, for random pictures.
pub(super) struct Lcg(pub(super) u64);

impl Lcg {
    /// A number in `0..n`.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A run with everything in it, of about `events` events.
pub(super) fn random_run(seed: u64, lanes: usize, events: usize, scale: Scale) -> SpaceTime {
    let mut random = Lcg(seed);
    let mut run = SpaceTime {
        title: format!("random run {seed}"),
        scale,
        ticks_per_unit: 1_000,
        lanes: (0..lanes).map(|lane| format!("p{lane}")).collect(),
        ..SpaceTime::default()
    };
    let mut time = 0;
    for i in 0..events {
        time += 1 + random.below(400);
        let lane = random.below(lanes as u64) as usize;
        let to = (
            random.below(lanes as u64) as usize,
            time + random.below(3_000),
        );
        let label = format!("{} {i}", ["REQUEST", "REPLY", "ok", "TOKEN(queue)"][i % 4]);
        let until = (random.below(4) > 0).then_some(time + random.below(5_000));
        match random.below(12) {
            0 => run.marks.push(mark(MarkKind::Ask, lane, time, &label)),
            1 => run.marks.push(mark(MarkKind::Tell, lane, time, &label)),
            2 => run.bars.push(Bar {
                label,
                ..Bar::inside(lane, time, until)
            }),
            3 => run.bars.push(Bar::waiting(lane, time, until)),
            4 => run
                .arrows
                .push(lost(&label, (lane, time), to, "the link dropped it")),
            5 if i % 7 == 0 => run.gaps.push(Gap {
                lane,
                from: time,
                until,
                kind: [GapKind::Crash, GapKind::Pause][i % 2],
            }),
            6 if i % 9 == 0 => run
                .marks
                .push(mark(MarkKind::Violation, lane, time, &label)),
            7 => run.arrows.push(Arrow {
                fate: [Fate::InFlight, Fate::Duplicate][i % 2].clone(),
                ..arrow(&label, (lane, time), to)
            }),
            _ => run.arrows.push(arrow(&label, (lane, time), to)),
        }
    }
    run
}

pub(super) fn place(lane: usize, time: u64) -> LaneTime {
    LaneTime { lane, time }
}

pub(super) fn arrow(label: &str, from: (usize, u64), to: (usize, u64)) -> Arrow {
    Arrow {
        from: place(from.0, from.1),
        to: place(to.0, to.1),
        label: label.to_string(),
        fate: Fate::Delivered,
    }
}

pub(super) fn lost(label: &str, from: (usize, u64), to: (usize, u64), reason: &str) -> Arrow {
    let reason = reason.to_string();
    Arrow {
        fate: Fate::Lost { reason },
        ..arrow(label, from, to)
    }
}

pub(super) fn mark(kind: MarkKind, lane: usize, time: u64, label: &str) -> Mark {
    Mark {
        place: place(lane, time),
        kind,
        label: label.to_string(),
    }
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

/// Three nodes; two ask at nearly the same time, and the later of the two is deferred.
pub(super) fn ricart_agrawala() -> SpaceTime {
    SpaceTime {
        title: "Ricart and Agrawala, three nodes".to_string(),
        subtitle:
            "p0 and p2 ask at nearly the same time; the request of p2 has the later stamp, so \
                   p0 defers its reply until it leaves. 4 messages per entry, as published."
                .to_string(),
        ticks_per_unit: 1_000,
        unit: "ms".to_string(),
        lanes: names(&["p0", "p1", "p2"]),
        arrows: vec![
            arrow("REQUEST(1,0)", (0, 500), (1, 1_700)),
            arrow("REQUEST(1,0)", (0, 500), (2, 2_300)),
            arrow("REQUEST(1,2)", (2, 800), (1, 2_200)),
            arrow("REQUEST(1,2)", (2, 800), (0, 2_600)),
            arrow("REPLY", (1, 1_700), (0, 2_900)),
            arrow("REPLY", (1, 2_200), (2, 3_300)),
            arrow("REPLY", (2, 2_300), (0, 3_700)),
            arrow("REPLY", (0, 5_700), (2, 7_000)),
        ],
        bars: vec![
            Bar::waiting(0, 500, Some(3_700)),
            Bar::inside(0, 3_700, Some(5_700)),
            Bar::waiting(2, 800, Some(7_000)),
            Bar::inside(2, 7_000, Some(9_000)),
        ],
        marks: vec![
            mark(MarkKind::Ask, 0, 500, "Enter"),
            mark(MarkKind::Tell, 0, 3_700, "Entered"),
            mark(MarkKind::Ask, 0, 5_700, "Leave"),
            mark(MarkKind::Ask, 2, 800, "Enter"),
            mark(MarkKind::Tell, 2, 7_000, "Entered"),
            mark(MarkKind::Ask, 2, 9_000, "Leave"),
        ],
        until: Some(9_500),
        ..SpaceTime::default()
    }
}

/// A server and three clients; a crash, a pause, a cut and lost messages.
pub(super) fn faults() -> SpaceTime {
    let mut twice = arrow("RELEASE 7", (1, 13_000), (0, 14_900));
    twice.fate = Fate::Duplicate;
    let mut flying = arrow("ACQUIRE 3", (3, 24_200), (0, 26_000));
    flying.fate = Fate::InFlight;
    SpaceTime {
        title: "A lock server under faults".to_string(),
        subtitle: "p2 crashes while it waits and asks again; the cut separates p3, whose renewals \
                   are lost."
            .to_string(),
        ticks_per_unit: 1_000,
        unit: "ms".to_string(),
        lanes: names(&["server", "p1", "p2", "p3"]),
        arrows: vec![
            arrow("ACQUIRE 1", (1, 1_000), (0, 2_000)),
            arrow("GRANTED 7", (0, 2_000), (1, 3_300)),
            arrow("ACQUIRE 2", (2, 2_600), (0, 4_400)),
            arrow("ACQUIRE 3", (3, 9_200), (0, 10_100)),
            lost("GRANTED 8", (0, 12_600), (2, 14_000), "p2 is down"),
            arrow("RELEASE 7", (1, 11_000), (0, 12_600)),
            twice,
            arrow("GRANTED 9", (0, 15_600), (3, 16_400)),
            lost("RENEW 9", (3, 18_000), (0, 19_600), "cut: p3 | the others"),
            lost("RENEW 9", (3, 20_000), (0, 21_500), "cut: p3 | the others"),
            arrow("ACQUIRE 4", (2, 17_000), (0, 18_600)),
            arrow("GRANTED 10", (0, 23_000), (2, 24_700)),
            flying,
        ],
        bars: vec![
            Bar::waiting(1, 1_000, Some(3_300)),
            Bar::inside(1, 3_300, Some(11_000)),
            Bar::waiting(2, 2_600, Some(6_500)),
            Bar::waiting(3, 9_200, Some(16_400)),
            Bar::inside(3, 16_400, Some(22_400)),
            Bar::waiting(2, 17_000, Some(24_700)),
            Bar {
                label: "fence 10".to_string(),
                ..Bar::inside(2, 24_700, None)
            },
        ],
        gaps: vec![
            Gap {
                lane: 2,
                from: 6_500,
                until: Some(15_200),
                kind: GapKind::Crash,
            },
            Gap {
                lane: 1,
                from: 17_600,
                until: Some(20_600),
                kind: GapKind::Pause,
            },
        ],
        partitions: vec![Partition {
            from: 17_300,
            until: Some(23_600),
            label: "p3 | server p1 p2".to_string(),
        }],
        marks: vec![
            mark(MarkKind::Timer, 0, 15_600, "lease over"),
            mark(MarkKind::Timer, 0, 23_000, "lease over"),
            mark(MarkKind::Tell, 3, 22_400, "Lost"),
            mark(MarkKind::Note, 2, 15_900, "recovers"),
        ],
        until: Some(26_000),
        ..SpaceTime::default()
    }
}

/// A schedule in which two nodes are inside at once.
pub(super) fn counterexample() -> SpaceTime {
    let arrows = vec![
        arrow("REQUEST(ts 1, from p0)", (0, 1), (1, 4)),
        arrow("REQUEST(ts 1, from p0)", (0, 1), (2, 3)),
        arrow("REQUEST(ts 1, from p1)", (1, 2), (0, 6)),
        arrow("REQUEST(ts 1, from p1)", (1, 2), (2, 5)),
        arrow("REPLY(to ts 1)", (2, 3), (0, 7)),
        arrow("REPLY(to ts 1)", (1, 4), (0, 8)),
        arrow("REPLY(to ts 1)", (2, 5), (1, 9)),
        arrow("REPLY(to ts 1)", (0, 6), (1, 10)),
    ];
    SpaceTime {
        title: "Refuted: at most one node is inside".to_string(),
        subtitle: "Ricart and Agrawala without the comparison of identities on equal stamps; the \
                   shortest schedule has 10 steps."
            .to_string(),
        scale: Scale::Steps,
        lanes: names(&["p0", "p1", "p2"]),
        arrows,
        bars: vec![
            Bar::waiting(0, 1, Some(8)),
            Bar::inside(0, 8, None),
            Bar::waiting(1, 2, Some(10)),
            Bar::inside(1, 10, None),
        ],
        marks: vec![
            mark(MarkKind::Ask, 0, 1, "Enter"),
            mark(MarkKind::Ask, 1, 2, "Enter"),
            mark(MarkKind::Tell, 0, 8, "Entered"),
            mark(
                MarkKind::Violation,
                1,
                10,
                "p0 and p1 are inside at once: both stamps are 1 and neither defers",
            ),
        ],
        ..SpaceTime::default()
    }
}

/// A lasso: a request that is never served.
pub(super) fn lasso() -> SpaceTime {
    SpaceTime {
        title: "Refuted: every request is served".to_string(),
        subtitle: "p2 asks once and is overtaken for ever".to_string(),
        scale: Scale::Steps,
        lanes: names(&["coordinator", "p1", "p2"]),
        arrows: vec![
            arrow("ASK", (2, 1), (0, 2)),
            arrow("ASK", (1, 3), (0, 4)),
            arrow("GRANT", (0, 4), (1, 5)),
            arrow("RELEASE", (1, 6), (0, 7)),
            arrow("ASK", (1, 7), (0, 8)),
        ],
        bars: vec![
            Bar::waiting(2, 1, None),
            Bar::waiting(1, 3, Some(5)),
            Bar::inside(1, 5, Some(6)),
        ],
        marks: vec![mark(MarkKind::Note, 0, 8, "p1 goes first again")],
        cycle: Some(Cycle { from: 3, until: 8 }),
        ..SpaceTime::default()
    }
}

pub(super) fn series(name: &str, origin: Origin, colour: usize, shape: Shape) -> Series {
    Series {
        name: name.to_string(),
        shape,
        origin,
        colour: Some(colour),
    }
}

/// Messages per entry against the number of nodes, with published bounds.
pub(super) fn messages_per_entry() -> Chart {
    let sizes = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let line = |of: fn(f64) -> f64| Shape::Line(sizes.iter().map(|&n| (n, of(n))).collect());
    let quorum = |n: f64| n.sqrt() - 1.0;
    let range = sizes
        .map(|n| (n, 3.0 * quorum(n), 5.0 * quorum(n)))
        .to_vec();
    Chart {
        title: "Messages per entry".to_string(),
        subtitle: "Saturated load, 10,000 entries, seed 7; published values dashed".to_string(),
        x: Axis {
            title: "nodes n".to_string(),
            scale: AxisScale::Log,
        },
        y: Axis {
            title: "messages per entry".to_string(),
            scale: AxisScale::Linear,
        },
        series: vec![
            series(
                "3(√n−1) to 5(√n−1)",
                Origin::Published,
                2,
                Shape::Band(range),
            ),
            series("2(n−1)", Origin::Published, 0, line(|n| 2.0 * (n - 1.0))),
            series(
                "Ricart and Agrawala",
                Origin::Measured,
                0,
                line(|n| 2.0 * (n - 1.0) - 0.01 * n),
            ),
            series("n", Origin::Published, 1, line(|n| n)),
            series("Suzuki and Kasami", Origin::Measured, 1, line(|n| n * 0.97)),
            series(
                "Maekawa",
                Origin::Measured,
                2,
                line(|n| 4.4 * (n.sqrt() - 1.0)),
            ),
            series(
                "Raymond",
                Origin::Measured,
                3,
                line(|n| 1.0 + 1.2 * n.log2()),
            ),
        ],
    }
}

/// Two measurements of four algorithms as grouped bars.
pub(super) fn delays() -> Chart {
    let bars = |values: [f64; 4]| Shape::Bars(values.map(Some).to_vec());
    Chart {
        title: "Synchronisation delay and response time, n = 16".to_string(),
        subtitle: "In units of the mean message delay".to_string(),
        x: Axis {
            title: String::new(),
            scale: AxisScale::Categories(names(&[
                "Ricart and Agrawala",
                "Suzuki and Kasami",
                "Maekawa",
                "Raymond",
            ])),
        },
        y: Axis {
            title: "message delays".to_string(),
            scale: AxisScale::Linear,
        },
        series: vec![
            series(
                "synchronisation delay",
                Origin::Measured,
                0,
                bars([1.02, 0.98, 2.04, 2.3]),
            ),
            series(
                "response time, light load",
                Origin::Measured,
                4,
                bars([2.1, 1.9, 2.2, 4.4]),
            ),
            series(
                "published delay",
                Origin::Published,
                0,
                bars([1.0, 1.0, 2.0, 2.0]),
            ),
            series(
                "published response",
                Origin::Published,
                4,
                Shape::Band(vec![
                    (0.0, 2.0, 2.0),
                    (1.0, 0.0, 2.0),
                    (2.0, 2.0, 2.0),
                    (3.0, 0.0, 8.0),
                ]),
            ),
        ],
    }
}

pub(super) fn pictures() -> Vec<(&'static str, String)> {
    vec![
        ("ricart-agrawala", ricart_agrawala().to_svg()),
        ("faults", faults().to_svg()),
        ("counterexample", counterexample().to_svg()),
        ("lasso", lasso().to_svg()),
        ("messages-per-entry", messages_per_entry().to_svg()),
        ("delays", delays().to_svg()),
    ]
}

#[test]
fn every_picture_is_well_formed_and_repeats_byte_for_byte() {
    let first = pictures();
    for (name, svg) in &first {
        assert_well_formed(svg);
        assert!(svg.contains("prefers-color-scheme:dark"), "{name}");
        if let Ok(folder) = std::env::var("TESTIGO_GALLERY") {
            std::fs::write(format!("{folder}/{name}.svg"), svg).expect("the folder is there");
        }
    }
    assert_eq!(first, pictures());
}
