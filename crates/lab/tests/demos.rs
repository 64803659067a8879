//! Every demonstration shows what its source says, and every remark stands at its step.

use testigo_lab::demo::{Demo, Scene};

#[test]
fn every_demonstration_shows_what_its_source_says() {
    for demo in Demo::all() {
        let shown = demo.show(|_| {}).expect(demo.name);
        let steps: Vec<&str> = shown.steps.iter().map(|step| step.step.as_str()).collect();
        let missing: Vec<&str> = demo
            .look
            .iter()
            .map(|(_, remark)| *remark)
            .filter(|remark| !shown.steps.iter().any(|step| step.remark == Some(remark)))
            .collect();
        assert!(
            shown.as_expected,
            "{}: {:?}; remarks without a step: {missing:?}\n{}",
            demo.name,
            shown.found,
            steps.join("\n")
        );
        let words = matches!(demo.scene, Scene::Words);
        assert_eq!(
            words,
            shown.found.is_none() && demo.look.is_empty(),
            "{}",
            demo.name
        );
        // Whatever is played can be drawn.
        assert_eq!(words, shown.trace.is_none(), "{}", demo.name);
    }
}

#[test]
fn names_are_unique_and_a_near_miss_is_pointed_out() {
    let mut names: Vec<&str> = Demo::all().map(|demo| demo.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    let error = Demo::find("maekawa-two-insid").expect_err("no such name");
    assert!(error.to_string().contains("maekawa-two-inside"), "{error}");
    for unlike in ["something else altogether", "nosuch"] {
        let error = Demo::find(unlike).expect_err("no such name");
        assert!(error.to_string().contains("--list"), "{error}");
    }
}

/// What is lost because its receiver is down is nobody's step.
#[test]
fn the_numbered_steps_are_those_of_the_schedule() {
    let demo = Demo::find("two-phase-blocking").expect("known");
    let shown = demo.show(|_| {}).expect("valid");
    let numbered = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    let steps = shown.steps.iter().filter(|step| numbered(&step.step));
    let found = shown.found.expect("a deadlock");
    assert!(
        found.ends_with(&format!("in {} steps", steps.count())),
        "{found}"
    );
}
