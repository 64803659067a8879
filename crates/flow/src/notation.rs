//! The three ways in which a flow can be written down.

/// How a text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `intake -> [orders] -> price`
    Flow,
    /// The thesis' own: `PROCintake COLAorders PROCprice`
    Classic,
    /// The thesis' configuration file, `config.server`.
    Config,
}

impl Notation {
    /// A configuration file starts with its counts, which are no chain. Of the other two, only the first has arrows, brackets or braces.
    pub fn of(text: &str) -> Notation {
        let lines = || {
            text.lines()
                .map(|line| line.split('#').next().unwrap_or_default())
        };
        let first = lines()
            .flat_map(str::split_whitespace)
            .next()
            .unwrap_or_default();
        let first = first.trim_start_matches('\u{feff}');
        let has_signs = || lines().any(|line| line.contains(['[', '{']) || line.contains("->"));
        let is_chain = || {
            lines()
                .find(|line| !line.trim().is_empty())
                .is_some_and(|line| line.contains("->"))
        };
        if first.starts_with("cantcolas") && !is_chain() {
            Notation::Config
        } else if is_classic(first) && !has_signs() {
            Notation::Classic
        } else {
            Notation::Flow
        }
    }
}

fn is_classic(word: &str) -> bool {
    ["PROC", "proc", "COLA", "cola"]
        .iter()
        .any(|prefix| word.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_shows_its_notation() {
        for (text, notation) in [
            ("", Notation::Flow),
            ("# only words", Notation::Flow),
            ("procure -> [colas] -> bill", Notation::Flow),
            ("process a { limit 2 }\na -> [b] -> c", Notation::Flow),
            ("# a -> [b]\nPROCa COLAb PROCc", Notation::Classic),
            ("PROCa", Notation::Classic),
            ("  colax PROCa", Notation::Classic),
            ("\n cantcolas= 1, cantproctype= 2", Notation::Config),
            ("cantcolas=1,cantproctype=2", Notation::Config),
            ("cantcolas -> [q] -> b", Notation::Flow),
        ] {
            assert_eq!(Notation::of(text), notation, "{text}");
        }
    }
}
