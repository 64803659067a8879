//! Figures that are published for a situation of their own, held against experiments.

use testigo_lab::{Finding, KnownAlgorithm, claims, figures};

fn found(name: &str) -> Vec<Finding> {
    figures(&KnownAlgorithm::find(name).expect(name)).expect(name)
}

#[test]
fn figures_hold_but_for_those_that_are_refuted() {
    let mut refuted = Vec::new();
    for algorithm in KnownAlgorithm::all() {
        for finding in found(algorithm.profile.name) {
            println!("{finding:?}");
            if !finding.holds {
                refuted.push((finding.algorithm, finding.nodes, finding.claim));
            }
        }
    }
    let thesis = "messages per entry, as the thesis has it";
    let full_load = "messages by Ricart and Agrawala's at full load";
    let expected = [
        ("maekawa", 4, full_load),
        ("chang", 16, thesis),
        ("chang", 64, thesis),
        ("chang", 256, thesis),
    ];
    assert_eq!(
        refuted,
        expected.map(|(name, nodes, claim)| (name, nodes, claim.to_owned()))
    );
}

#[test]
fn a_deadlock_refutes_lockout_freedom() {
    for name in ["maekawa-basic", "sanders-printed", "box-office-asks-others"] {
        let findings = claims(&KnownAlgorithm::find(name).expect(name)).expect(name);
        let measured = |claim: &str| {
            let finding = findings.iter().find(|finding| finding.claim == claim);
            finding.expect(claim).measured.clone()
        };
        let schedule = measured("deadlock freedom");
        assert!(schedule.starts_with("refuted by a schedule"), "{schedule}");
        assert_eq!(measured("lockout freedom"), schedule, "{name}");
    }
}
