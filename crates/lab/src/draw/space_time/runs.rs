//! Pictures of real runs, held to what a reader needs: nothing is wider than a screen, no label lies on
//! another or far from its arrow, and whatever is left out is said. With `TESTIGO_GALLERY` set to a
//! folder, the pictures are written there for the eye.

use testigo_protocol::Setup;

use super::*;
use crate::draw::{
    layout::Slab,
    space_time::{frame::Scene, plan::Plan, shown::Shown},
    svg::tests::assert_well_formed,
};
use crate::{CheckPlan, KnownAlgorithm, World, diagram};

/// A run to draw: its name, the algorithm, nodes, entries, and what else there is in the world.
type Case = (&'static str, &'static str, usize, u64, fn(&mut World));

const CASES: [Case; 14] = [
    ("ring", "token-ring", 5, 8, |_| {}),
    ("ricart-agrawala", "ricart-agrawala", 5, 6, |_| {}),
    ("maekawa", "maekawa", 9, 6, |_| {}),
    ("rooms", "rooms-over:raymond", 6, 14, |_| {}),
    ("rooms-maekawa", "rooms-maekawa", 4, 8, |_| {}),
    ("box-office", "box-office", 3, 16, |_| {}),
    ("many", "ricart-agrawala", 32, 20, |_| {}),
    ("many-random", "raymond", 40, 60, |world| {
        world.latency = "exponential:1".parse().expect("valid");
    }),
    ("box-office-many", "box-office", 8, 40, |_| {}),
    ("crash", "sanders", 7, 20, |world| {
        world.faults.push("crash:2@9..30".parse().expect("valid"));
    }),
    ("partition", "tree-quorum", 7, 10, |world| {
        world.latency = "exponential:1".parse().expect("valid");
        world
            .partitions
            .push("0,1|2,3,4,5,6@5..20".parse().expect("valid"));
    }),
    ("long", "maekawa", 7, 1_000, |_| {}),
    ("duplicates", "central", 3, 6, |world| {
        world.faults.push("duplicate:0.4".parse().expect("valid"));
    }),
    ("rare", "chang", 5, 6, |world| {
        world.arrivals = "poisson:1000".parse().expect("valid");
    }),
];

fn run((_, algorithm, nodes, entries, world): &Case) -> SpaceTime {
    let algorithm = KnownAlgorithm::find(algorithm).expect("known");
    let mut wanted = World {
        entries: *entries,
        ..World::default()
    };
    world(&mut wanted);
    let run = algorithm.run(&Setup::new(*nodes), &wanted, true);
    diagram(&run.expect("it runs").trace.expect("it was kept"))
}

/// The counterexamples of two specimens: a schedule, and a lasso.
fn counterexamples() -> Vec<(&'static str, SpaceTime)> {
    let refuted = |name: &'static str| {
        let algorithm = KnownAlgorithm::find(name).expect("known");
        let plan = CheckPlan::new(algorithm.profile.telling.entries as u32);
        let checked = algorithm.check(&algorithm.profile.telling_setup(), &plan);
        let found = checked.expect("it is checked").counterexample;
        (name, diagram(&found.expect("it is refuted").trace))
    };
    ["maekawa-slides", "central-lifo"].map(refuted).to_vec()
}

fn all() -> Vec<(&'static str, SpaceTime)> {
    let mut all: Vec<_> = CASES.iter().map(|case| (case.0, run(case))).collect();
    all.extend(counterexamples());
    all
}

fn named(name: &str) -> SpaceTime {
    let case = CASES.iter().find(|case| case.0 == name);
    run(case.expect("a case"))
}

fn view(width: u32) -> View {
    View {
        width,
        whole: false,
    }
}

/// The number that an attribute of the root has.
fn root(svg: &str, name: &str) -> f64 {
    let value = svg.split(&format!(" {name}=\"")).nth(1).expect("there");
    value
        .split('"')
        .next()
        .expect("an end")
        .parse()
        .expect("a number")
}

#[test]
fn pictures_of_runs_fit_their_view_and_say_what_they_show() {
    for (name, run) in all() {
        for width in [390, 800, WIDTH_DEFAULT] {
            let svg = run.to_svg_in(view(width));
            assert_well_formed(&svg);
            assert!(root(&svg, "width") <= f64::from(width), "{name}: {width}");
            let (_, legend) = svg.split_once("<g class=\"legend\">").expect("a legend");
            let shown = Shown::new(&run, view(width));
            for arrow in &shown.run.arrows {
                let entry = format!(">{}</text>", kinds::kind(&arrow.label));
                assert_eq!(legend.matches(&entry).count(), 1, "{name}: {entry}");
            }
        }
        let svg = run.to_svg();
        assert_eq!(svg, run.to_svg(), "{name}");
        if let Ok(folder) = std::env::var("TESTIGO_GALLERY") {
            std::fs::write(format!("{folder}/run-{name}.svg"), &svg).expect("writable");
            let narrow = run.to_svg_in(view(390));
            std::fs::write(format!("{folder}/narrow-{name}.svg"), narrow).expect("writable");
        }
    }
}

#[test]
fn labels_stay_at_their_arrows_and_apart_from_each_other() {
    let mut drawn = 0;
    for (name, run) in all() {
        let shown = Shown::new(&run, View::default());
        let scene = Scene::new(&shown);
        let plan = Plan::best(&scene);
        let labels = &plan.labels;
        for (stroke, label) in plan.strokes.iter().zip(&labels.arrows) {
            let Some(label) = label else { continue };
            let away = |i: i32| label.slab.distance(stroke.point(f64::from(i) / 100.0));
            let nearest = (0..=100).map(away).fold(f64::INFINITY, f64::min);
            assert!(nearest <= 12.0, "{name}: {} is {nearest} away", label.text);
            drawn += 1;
        }
        let all = (labels.arrows.iter())
            .chain(&labels.marks)
            .chain(&labels.bars);
        let slabs: Vec<Slab> = all.flatten().map(|label| label.slab).collect();
        for (i, a) in slabs.iter().enumerate() {
            assert!(slabs[..i].iter().all(|b| !a.overlaps(b)), "{name}");
            assert!(a.bounds().2 <= plan.frame.width, "{name}");
        }
    }
    assert!(drawn > 300, "{drawn} labels prove little");
}

#[test]
fn coinciding_messages_are_drawn_apart() {
    for (name, run) in all() {
        let shown = Shown::new(&run, View::default());
        let scene = Scene::new(&shown);
        let strokes = Plan::best(&scene).strokes;
        for (i, a) in strokes.iter().enumerate() {
            for b in &strokes[..i] {
                let far = |p: (f64, f64), q: (f64, f64)| (p.0 - q.0).hypot(p.1 - q.1);
                let same = far(a.from, b.from) + far(a.to, b.to) < 0.5;
                assert!(!same || far(a.point(0.5), b.point(0.5)) > 3.0, "{name}");
            }
        }
    }
}

#[test]
fn folded_nodes_are_counted_and_so_are_their_messages() {
    let run = named("many");
    let shown = Shown::new(&run, View::default());
    let names = &shown.run.lanes;
    let folds: Vec<&String> = (names.iter().zip(&shown.folded))
        .filter_map(|(name, folded)| folded.then_some(name))
        .collect();
    let counted = folds.iter().map(|name| {
        let count = name.split(' ').nth(1).expect("a count");
        count.parse::<usize>().expect("a number")
    });
    let own = names.len() - folds.len();
    assert_eq!(counted.sum::<usize>() + own, 32, "{names:?}");
    assert!(own < 13, "{names:?}");
    let svg = run.to_svg();
    for name in folds {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
    // Every message of the time that is shown is an arrow, a part of one, or counted in the note.
    let seen = |arrow: &&Arrow| {
        shown.shows(arrow.from.time) || arrow.arrived() && shown.shows(arrow.to.time)
    };
    let all = run.arrows.iter().filter(seen).count();
    let drawn = (shown.run.arrows.iter()).map(|arrow| match arrow.label.split_once(" ×") {
        Some((_, count)) => count.parse::<usize>().expect("a number"),
        None => 1,
    });
    let note = shown.notes.iter().find_map(|note| {
        let rest = note.strip_prefix("not drawn: ")?;
        rest.split_once(" messages between folded nodes")
    });
    let among: usize = note.expect("a note").0.parse().expect("a number");
    assert_eq!(drawn.sum::<usize>() + among, all);
}

#[test]
fn what_is_cut_out_is_counted() {
    let run = named("long");
    let shown = Shown::new(&run, View::default());
    assert!(!shown.cuts.is_empty());
    let entries = |run: &SpaceTime| {
        let solid = run.bars.iter().filter(|bar| bar.style == BarStyle::Solid);
        solid.filter(|bar| shown.shows(bar.from)).count()
    };
    let number = |note: &str, before: &str| -> usize {
        let words: Vec<&str> = note.split(' ').collect();
        let at = words.iter().position(|word| *word == before).expect(before);
        words[at - 1].parse().expect("a number")
    };
    let told = |what: &str| {
        shown
            .notes
            .iter()
            .map(|note| number(note, what))
            .sum::<usize>()
    };
    assert_eq!(told("entries") + entries(&shown.run), 1_000);
    let sent = (shown.run.arrows.iter()).filter(|arrow| shown.shows(arrow.from.time));
    assert_eq!(told("messages") + sent.count(), run.arrows.len());
    let svg = run.to_svg();
    for cut in &shown.cuts {
        assert!(
            svg.contains(&format!(">{}</text>", cut.words)),
            "{}",
            cut.words
        );
    }
    assert_eq!(svg.matches("class=\"cutout\"").count(), shown.cuts.len());
}

#[test]
fn faults_and_violations_are_never_cut_out() {
    for name in ["crash", "partition"] {
        let run = named(name);
        let shown = Shown::new(&run, View::default());
        assert_eq!(shown.run.gaps, run.gaps, "{name}");
        assert_eq!(shown.run.partitions, run.partitions, "{name}");
        let violations = |run: &SpaceTime| {
            let wrong = run
                .marks
                .iter()
                .filter(|mark| mark.kind == MarkKind::Violation);
            wrong.count()
        };
        assert!(violations(&run) > 0, "{name}");
        assert_eq!(violations(&shown.run), violations(&run), "{name}");
        for gap in &run.gaps {
            assert!(shown.shows(gap.from), "{name}");
        }
    }
}

#[test]
fn bars_have_the_colour_of_their_class_or_room() {
    for (name, classes) in [
        ("rooms", ["room 0", "room 1", "room 2"]),
        ("box-office", ["cancel", "query", "reservation"]),
    ] {
        let run = named(name);
        let svg = run.to_svg();
        let (body, legend) = svg.split_once("<g class=\"legend\">").expect("a legend");
        let hue = |class: &str| {
            let entry = legend.find(&format!(">{class}</text>")).expect(class);
            let swatch = legend[..entry].rfind("class=\"solid ").expect(class);
            legend[swatch..].split('"').nth(1).expect(class).to_string()
        };
        let hues = classes.map(hue);
        assert!(hues[0] != hues[1] && hues[1] != hues[2] && hues[0] != hues[2]);
        let shown = Shown::new(&run, View::default());
        for bar in &shown.run.bars {
            let entry = format!(">{}</text>", bar.class);
            assert_eq!(legend.matches(&entry).count(), 1, "{name}: {entry}");
        }
        for (class, hue) in classes.iter().zip(&hues) {
            let inside = (shown.run.bars.iter())
                .filter(|bar| bar.style == BarStyle::Solid && bar.class == *class);
            let drawn = body.matches(&format!("class=\"{hue}\"")).count();
            assert_eq!(drawn, inside.count(), "{name}: {class}");
        }
    }
}
