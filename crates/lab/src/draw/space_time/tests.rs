//! What a diagram must show, and what it must survive.

use super::*;
use crate::draw::{
    gallery::{
        arrow, counterexample, faults, lasso, lost, mark, names, random_run, ricart_agrawala,
    },
    layout::Slab,
    space_time::{frame::Scene, plan::Plan, shown::Shown},
    svg::tests::assert_well_formed,
};

/// How many messages a picture shows.
fn arrows(svg: &str) -> usize {
    count(svg, "class=\"arrow\"") + count(svg, "class=\"arrow ")
}

/// Everything before the legend, whose samples look like the real thing.
fn body(svg: &str) -> &str {
    svg.split("<g class=\"legend\">")
        .next()
        .expect("a first part")
}

fn count(svg: &str, text: &str) -> usize {
    body(svg).matches(text).count()
}

const WHOLE: View = View {
    width: WIDTH_DEFAULT,
    whole: true,
};

fn two_lanes() -> SpaceTime {
    SpaceTime {
        lanes: names(&["a", "b"]),
        ..SpaceTime::default()
    }
}

#[test]
fn every_message_appears_once() {
    for seed in 0..6 {
        let run = random_run(seed, 4, 150, Scale::Proportional);
        let svg = run.to_svg_in(WHOLE);
        assert_well_formed(&svg);
        assert_eq!(arrows(&svg), run.arrows.len());
        for arrow in &run.arrows {
            let tooltip = format!("<title>{}: ", arrow.label);
            assert_eq!(count(&svg, &tooltip), 1, "{}", arrow.label);
        }
    }
}

#[test]
fn fates_look_different() {
    let run = faults();
    let svg = run.to_svg();
    let fated = |wanted: fn(&Fate) -> bool| run.arrows.iter().filter(|a| wanted(&a.fate)).count();
    let crosses = fated(|fate| matches!(fate, Fate::Lost { .. }));
    assert!(crosses > 0);
    assert_eq!(count(&svg, "class=\"cross\""), crosses);
    assert_eq!(count(&svg, " lost\">"), crosses);
    assert_eq!(count(&svg, "lost: p2 is down"), 1);
    assert_eq!(count(&svg, " flying\">"), fated(|f| *f == Fate::InFlight));
    assert_eq!(count(&svg, " twice\">"), fated(|f| *f == Fate::Duplicate));
}

#[test]
fn a_lost_message_ends_before_the_lane_it_was_sent_to() {
    let mut run = two_lanes();
    run.arrows = vec![
        arrow("kept", (0, 1), (1, 5)),
        lost("gone", (0, 1), (1, 5), "dropped"),
    ];
    let shown = Shown::new(&run, View::default());
    let scene = Scene::new(&shown);
    let plan = Plan::best(&scene);
    assert_eq!(plan.strokes[0].to.1, plan.frame.y(1));
    assert!(plan.strokes[1].to.1 < plan.frame.y(1) - 10.0);
    assert!(plan.strokes[1].to.1 > plan.frame.y(0) + 10.0);
}

#[test]
fn a_message_does_not_seem_to_stop_at_a_lane_that_it_passes() {
    let scene_run = counterexample();
    let shown = Shown::new(&scene_run, View::default());
    let scene = Scene::new(&shown);
    let plan = Plan::best(&scene);
    // From p0 at step 1 to p2 at step 3: straight through what p1 does at step 2.
    let stroke = plan.strokes[1];
    let event = (plan.frame.x(2), plan.frame.y(1));
    let near = |i: i32| {
        let (x, y) = stroke.point(f64::from(i) / 200.0);
        (x - event.0).hypot(y - event.1)
    };
    let nearest = (0..=200).map(near).fold(f64::INFINITY, f64::min);
    assert!(nearest > 5.0, "{nearest}");
}

#[test]
fn labels_never_overlap() {
    for seed in 0..8 {
        for scale in [Scale::Proportional, Scale::Steps] {
            let run = random_run(seed, 5, 200, scale);
            let shown = Shown::new(&run, WHOLE);
            let scene = Scene::new(&shown);
            let plan = Plan::best(&scene);
            let labels = &plan.labels;
            let all = labels
                .arrows
                .iter()
                .chain(&labels.marks)
                .chain(&labels.bars);
            let slabs: Vec<Slab> = all.flatten().map(|label| label.slab).collect();
            assert!(slabs.len() > 50, "a picture with few labels proves little");
            for (i, a) in slabs.iter().enumerate() {
                assert!(
                    slabs[..i].iter().all(|b| !a.overlaps(b)),
                    "seed {seed} {scale:?}"
                );
            }
            for (i, a) in plan.callouts.iter().enumerate() {
                for b in plan.callouts[..i].iter().filter(|b| b.row == a.row) {
                    assert!(a.left >= b.left + b.width || b.left >= a.left + a.width);
                }
            }
        }
    }
}

#[test]
fn a_label_is_drawn_or_is_counted_as_dropped() {
    let mut run = two_lanes();
    run.arrows = vec![arrow("Same(place)", (0, 1), (1, 2)); 300];
    run.arrows.push(arrow("elsewhere", (0, 900), (1, 950)));
    let svg = run.to_svg_in(WHOLE);
    // Where the kind finds no room, what the message carries may.
    let drawn = count(&svg, ">Same(place)</text>") + count(&svg, ">(place)</text>");
    assert!((1..20).contains(&drawn), "{drawn}");
    let note = format!("{} labels have no room", 300 - drawn);
    assert!(svg.contains(&note), "{note}");
    assert_eq!(count(&svg, "<title>Same(place): a → b"), 300);
}

#[test]
fn in_step_mode_every_label_fits() {
    for run in [counterexample(), lasso()] {
        let shown = Shown::new(&run, View::default());
        let scene = Scene::new(&shown);
        assert_eq!(Plan::best(&scene).labels.dropped, 0);
    }
    // A schedule of forty steps, one event a step, as a checker gives them.
    let mut run = two_lanes();
    run.scale = Scale::Steps;
    run.lanes.push("c".to_string());
    for step in 0..40_usize {
        let (lane, time) = (step % 3, 10 * step as u64);
        let label = format!("REQUEST(stamp {step})");
        run.arrows
            .push(arrow(&label, (lane, time), ((lane + 1) % 3, time + 30)));
    }
    let svg = run.to_svg_in(WHOLE);
    for step in 0..40 {
        assert_eq!(count(&svg, &format!(">REQUEST(stamp {step})</text>")), 1);
    }
}

#[test]
fn steps_are_equally_far_apart_whatever_the_times() {
    let mut run = two_lanes();
    run.scale = Scale::Steps;
    for time in [3, 4, 1_000, u64::MAX] {
        run.marks.push(mark(MarkKind::Note, 0, time, ""));
    }
    let shown = Shown::new(&run, View::default());
    let scene = Scene::new(&shown);
    let frame = Plan::best(&scene).frame;
    let x: Vec<f64> = run
        .marks
        .iter()
        .map(|mark| frame.x(mark.place.time))
        .collect();
    for pair in x.windows(2) {
        assert!((pair[1] - pair[0] - (x[1] - x[0])).abs() < 1e-6 && pair[1] > pair[0]);
    }
}

#[test]
fn nobody_can_miss_a_violation() {
    let svg = counterexample().to_svg();
    assert_eq!(count(&svg, "class=\"glyph wrong\""), 1);
    assert_eq!(count(&svg, "class=\"wrong\""), 1, "a callout");
    assert!(body(&svg).contains("p0 and p1 are inside at once"));
    assert!(
        svg.contains(" 1 violation."),
        "the description tells it too"
    );
    let mut run = two_lanes();
    for time in 0..400 {
        run.marks
            .push(mark(MarkKind::Violation, 1, time, "both are inside"));
    }
    let svg = run.to_svg_in(WHOLE);
    assert_eq!(count(&svg, "class=\"glyph wrong\""), 400);
    assert!(count(&svg, ">both are inside</text>") >= 4);
}

#[test]
fn a_crash_breaks_the_lane_and_a_pause_does_not() {
    let mut run = two_lanes();
    let gap = |kind, until| Gap {
        lane: 0,
        from: 10,
        until,
        kind,
    };
    run.marks.push(mark(MarkKind::Note, 1, 100, "end"));
    run.gaps = vec![gap(GapKind::Pause, Some(20))];
    assert_eq!(count(&run.to_svg(), "lane dead"), 0);
    run.gaps = vec![gap(GapKind::Crash, Some(20))];
    let svg = run.to_svg();
    assert_eq!(count(&svg, "lane dead"), 1);
    assert_eq!(count(&svg, "crashed restart"), 1);
    run.gaps = vec![gap(GapKind::Crash, None)];
    let svg = run.to_svg();
    assert_eq!(count(&svg, "crashed restart"), 0, "it never came back");
    assert!(svg.contains("a crashed at 10, for ever"));
}

#[test]
fn the_legend_shows_only_what_occurs() {
    let legend = |run: &SpaceTime| {
        let svg = run.to_svg();
        svg.split("<g class=\"legend\">")
            .nth(1)
            .expect("a legend")
            .to_string()
    };
    let plain = legend(&ricart_agrawala());
    for words in [
        ">REQUEST<",
        ">REPLY<",
        ">inside<",
        ">waiting<",
        ">ask<",
        ">tell<",
    ] {
        assert!(plain.contains(words), "{words}");
    }
    for words in [
        ">message<",
        "lost",
        "duplicate",
        "crashed",
        "cut",
        "violation",
        "timer",
        "ever",
    ] {
        assert!(!plain.contains(words), "{words}");
    }
    let all = legend(&faults());
    for words in [
        "lost message",
        "duplicate",
        "in flight",
        "crashed",
        "paused",
        "network cut",
    ] {
        assert!(all.contains(words), "{words}");
    }
}

#[test]
fn a_lasso_says_that_it_repeats() {
    assert_eq!(count(&lasso().to_svg(), ">repeats for ever</text>"), 1);
    assert_eq!(count(&ricart_agrawala().to_svg(), "repeats for ever"), 0);
}

#[test]
fn names_and_labels_are_escaped() {
    let mut run = two_lanes();
    run.title = "<script>alert(1)</script> & co".to_string();
    run.lanes[0] = "</svg>".to_string();
    run.arrows = vec![lost("a<b>\"", (0, 0), (1, 9), "'&'")];
    run.partitions = vec![Partition {
        from: 0,
        until: None,
        label: "a|<b>".to_string(),
    }];
    let svg = run.to_svg();
    assert_well_formed(&svg);
    assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"));
    assert_eq!(svg.matches("</svg>").count(), 1);
}

#[test]
fn an_empty_run_is_a_picture_that_says_so() {
    let no_events = two_lanes();
    let mut no_lanes = ricart_agrawala();
    no_lanes.lanes.clear();
    for run in [SpaceTime::default(), no_events, no_lanes] {
        let svg = run.to_svg();
        assert_well_formed(&svg);
        assert!(svg.contains(">nothing to draw</text>"));
    }
}

#[test]
fn odd_times_do_no_harm() {
    let mut run = two_lanes();
    run.arrows = vec![
        arrow("back in time", (0, u64::MAX), (1, 0)),
        arrow("at once", (0, 7), (1, 7)),
        arrow("to itself", (0, 7), (0, 7)),
        arrow("nowhere", (0, 1), (9, 2)),
    ];
    run.bars = vec![Bar::inside(0, 9, Some(3)), Bar::inside(7, 0, None)];
    run.gaps = vec![Gap {
        lane: 1,
        from: u64::MAX,
        until: Some(0),
        kind: GapKind::Crash,
    }];
    run.cycle = Some(Cycle {
        from: u64::MAX,
        until: 0,
    });
    run.until = Some(5);
    for (scale, ticks_per_unit) in [(Scale::Proportional, 0), (Scale::Steps, u64::MAX)] {
        (run.scale, run.ticks_per_unit) = (scale, ticks_per_unit);
        assert_well_formed(&run.to_svg());
        let svg = run.to_svg_in(WHOLE);
        assert_well_formed(&svg);
        assert!(svg.contains("1 of 4 messages are not drawn"));
        assert!(svg.contains("1 of 2 bars are not drawn"));
    }
    let mut instant = two_lanes();
    instant.arrows = vec![arrow("m", (0, 0), (1, 0))];
    assert_well_formed(&instant.to_svg());
}

#[test]
fn a_long_run_is_drawn_whole_in_a_file_of_sane_size() {
    for scale in [Scale::Proportional, Scale::Steps] {
        let run = random_run(11, 8, 20_000, scale);
        let svg = run.to_svg_in(WHOLE);
        assert_well_formed(&svg);
        assert!(svg.len() < 8_000_000, "{} bytes", svg.len());
        assert_eq!(arrows(&svg), run.arrows.len());
    }
}

#[test]
fn what_exceeds_a_limit_is_left_out_and_said() {
    let mut run = two_lanes();
    run.arrows = vec![arrow("", (0, 1), (1, 2)); ITEMS_MAX + 5];
    run.lanes.resize(LANES_MAX + 2, "more".to_string());
    let svg = run.to_svg_in(WHOLE);
    assert!(svg.contains(&format!("5 of {} messages are not drawn", ITEMS_MAX + 5)));
    assert!(svg.contains(&format!("2 of {} lanes are not drawn", LANES_MAX + 2)));
    assert_eq!(arrows(&svg), ITEMS_MAX);
}
