//! Published counts of messages against counted ones (`testigo lab reproduce`).

use testigo_lab::count::{CountReproduction, CountRow, MESSAGE_EXPERIMENTS};

fn reproduce(name: &str) -> CountReproduction {
    let experiment = MESSAGE_EXPERIMENTS.iter().find(|one| one.name == name);
    experiment.expect(name).reproduce().expect(name)
}

fn row<'a>(found: &'a CountReproduction, what: &str, size: usize) -> &'a CountRow {
    let mut rows = found.rows.iter();
    let row = rows.find(|row| row.what.starts_with(what) && row.size == size);
    row.unwrap_or_else(|| panic!("no {what} of {size} in {}", found.name))
}

#[test]
fn every_published_count_of_messages_is_counted() {
    for experiment in MESSAGE_EXPERIMENTS {
        let found = experiment.reproduce().expect(experiment.name);
        for row in &found.rows {
            assert_ne!(row.reached, Some(false), "{row:?}");
        }
        for row in &found.properties {
            assert!(row.reached, "{row:?}");
        }
        assert!(found.is_reached() && found.rows.len() >= 12);
        assert!(found.chart.to_svg().contains("</svg>"));
    }
}

/// The numbers that the source itself prints.
#[test]
fn the_numbers_of_the_source() {
    let found = reproduce("election-messages");
    for (what, size, messages) in [
        ("ring, the example of the source", 7, 20.0),
        ("ring, all call, ids descending", 7, 35.0),
        ("ring, all call, ids descending", 8, 44.0),
        ("bully, at worst", 8, 55.0),
        ("bully, the example of the source", 8, 15.0),
        ("bully, at best", 8, 6.0),
    ] {
        assert_eq!(row(&found, what, size).counted, messages, "{what}");
    }
    let mean = row(&found, "ring, all call: mean", 7).counted;
    assert!((mean - 18.15).abs() < 0.005, "{mean}");
    let found = reproduce("agreement-messages");
    for (what, size, messages) in [
        ("OM(1)", 4, 9.0),
        ("OM(2)", 7, 156.0),
        ("OM(3)", 10, 3609.0),
        ("PBFT, normal case", 4, 29.0),
        ("PBFT, normal case", 7, 92.0),
        ("PBFT, normal case", 10, 191.0),
    ] {
        assert_eq!(row(&found, what, size).counted, messages, "{what}");
    }
}
