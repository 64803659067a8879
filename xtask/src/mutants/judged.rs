//! The survivors that somebody has looked at: list items of `docs/bugs.md` that begin as
//! [`Mutant::row`] does. A judgement holds wherever the line of code has moved to.

use std::path::Path;

use super::Mutant;

pub(super) struct Judged {
    rows: Vec<String>,
}

impl Judged {
    pub(super) fn read(path: &Path) -> Result<Judged, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        Ok(Judged::parse(&text))
    }

    fn parse(text: &str) -> Judged {
        let rows = text.lines().filter(|line| line.starts_with("- `"));
        Judged {
            rows: rows.map(str::to_owned).collect(),
        }
    }

    /// Whether a reason stands behind the mutant's row.
    pub(super) fn covers(&self, mutant: &Mutant) -> bool {
        let begin = mutant.row();
        let reason = |row: &String| row.strip_prefix(&begin).map(|reason| reason.trim().len());
        self.rows.iter().filter_map(reason).any(|length| length > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_survivor_is_judged_by_a_row_with_a_reason() {
        let mutant = |code: &str| Mutant {
            name: String::new(),
            file: "a.rs".into(),
            what: "replace > with >= in f".into(),
            code: code.into(),
            hash: 0,
        };
        let judged = Judged::parse(
            "## Judged\n\
             - `a.rs`: `replace > with >= in f` in `x > y`: equal never happens\n\
             - `a.rs`: `replace > with >= in f` in `y > z`: \n",
        );
        assert!(judged.covers(&mutant("x > y")));
        assert!(!judged.covers(&mutant("y > z")), "no reason is given");
        assert!(!judged.covers(&mutant("z > x")));
    }
}
