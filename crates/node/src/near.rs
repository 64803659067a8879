//! Near misses: what a user who wrote a wrong name may have meant.

/// The known name nearest to a wrong one, if it is near enough: three to five characters allow one slip, longer names two,
/// shorter ones none.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let slips = match wrong.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let lower = wrong.to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_lowercase());
    let near = known.into_iter().map(|name| (distance(name), name));
    let near = near.filter(|(distance, _)| *distance <= slips);
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `did you mean NAME? `, to put before the rest of a sentence; empty if no known name is near.
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let near = nearest(wrong, known);
    near.map_or_else(String::new, |near| format!("did you mean {near}? "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let known = ["LOCK", "UNLOCK", "GATE", "SESSION", "a"];
        for (wrong, meant) in [
            ("LOKC", Some("LOCK")),
            ("lock", Some("LOCK")),
            ("SESION", Some("SESSION")),
            ("GTAE", Some("GATE")),
            ("NONSENSE", None),
            ("b", None),
            ("", None),
        ] {
            assert_eq!(nearest(wrong, known), meant, "{wrong}");
        }
        assert_eq!(did_you_mean("LOKC", known), "did you mean LOCK? ");
        assert_eq!(did_you_mean("NONSENSE", known), "");
    }
}
