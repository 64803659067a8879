//! Rights: which deeds a user may do to which names, of gates and of everything else that is named. A pattern is a name, or
//! the beginning of names and a `*`.

use std::fmt;
use std::str::FromStr;

use testigo_core::{Limits, Refusal, Word};

use crate::wire::refuse;

/// Cap on rights of one user.
const RIGHTS_MAX: usize = 256;

/// What can be done to a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// See it: its gate, who holds it and who waits, its events.
    Show,
    /// Enter and leave it, run under it.
    Use,
    /// Create and delete its gate, forget its once-key and its decision.
    Define,
    /// What concerns the node and others: ending their sessions, unblocking their connections.
    Admin,
}

impl Deed {
    const ALL: [Deed; 4] = [Deed::Show, Deed::Use, Deed::Define, Deed::Admin];

    /// The word in the configuration file.
    pub fn word(self) -> &'static str {
        match self {
            Deed::Show => "show",
            Deed::Use => "use",
            Deed::Define => "define",
            Deed::Admin => "admin",
        }
    }

    /// A user that may use or define a name may also see it; an administrator may do everything.
    fn includes(self, other: Deed) -> bool {
        self == other || self == Deed::Admin || other == Deed::Show
    }
}

/// The rights of a user: `deploy/* : use, report/* : show define`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(Vec<Right>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Right {
    /// The beginning of the names.
    stem: String,
    /// Whether more may follow.
    open: bool,
    deed: Deed,
}

/// What is wrong with a text of rights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wrong}; rights look like: deploy/* : use, report/* : show define")]
pub struct RightsError {
    wrong: String,
}

impl Rights {
    /// Every deed on every name.
    pub fn all() -> Rights {
        Rights(vec![Right {
            stem: String::new(),
            open: true,
            deed: Deed::Admin,
        }])
    }

    /// Whether a deed may be done to a name. The node as a whole is the empty name, which only `*` matches.
    pub fn allow(&self, deed: Deed, name: &str) -> bool {
        let fits = |right: &Right| match right.open {
            true => name.starts_with(&right.stem),
            false => name == right.stem,
        };
        let mut rights = self.0.iter();
        rights.any(|right| right.deed.includes(deed) && fits(right))
    }

    /// The refusal of a deed, which says what right is missing.
    pub(crate) fn denied(user: &str, deed: Deed, name: &str) -> Refusal {
        let word = deed.word();
        let (what, pattern) = match name {
            "" => ("this node", "*"),
            // The right to administer is only given for everything.
            name if deed == Deed::Admin => (name, "*"),
            name => (name, name),
        };
        let why =
            format!("user {user} may not {word} {what}; the right {pattern} : {word} is missing");
        refuse(Word::Denied, why)
    }
}

impl FromStr for Rights {
    type Err = RightsError;

    fn from_str(text: &str) -> Result<Rights, RightsError> {
        let bad = |wrong: String| RightsError { wrong };
        let mut rights = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            // A name may contain a colon, so the last one counts.
            let (pattern, deeds) = part
                .rsplit_once(':')
                .ok_or_else(|| bad(format!("{part:?} has no colon")))?;
            let pattern = pattern.trim();
            let (stem, open) = match pattern.strip_suffix('*') {
                Some(stem) => (stem, true),
                None => (pattern, false),
            };
            if pattern.is_empty() || stem.contains(['*', '?']) || pattern.len() > Limits::NAME_BYTES
            {
                return Err(bad(format!(
                    "{pattern:?} is no name, nor the beginning of names and a *"
                )));
            }
            let mut none = true;
            for word in deeds.split_whitespace() {
                none = false;
                let deed = Deed::ALL.into_iter().find(|deed| deed.word() == word);
                let deed = deed
                    .ok_or_else(|| bad(format!("{word:?} is none of show, use, define, admin")))?;
                if deed == Deed::Admin && pattern != "*" {
                    return Err(bad(format!(
                        "admin is for the whole node, so write * : admin, not {pattern} : admin"
                    )));
                }
                rights.push(Right {
                    stem: stem.to_owned(),
                    open,
                    deed,
                });
            }
            if none {
                return Err(bad(format!("{part:?} says nothing after the colon")));
            }
        }
        match rights.len() {
            0 => Err(bad("there is no right".into())),
            1..=RIGHTS_MAX => Ok(Rights(rights)),
            many => Err(bad(format!("{many} rights are more than {RIGHTS_MAX}"))),
        }
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, right) in self.0.iter().enumerate() {
            let (comma, star) = (
                if at > 0 { ", " } else { "" },
                if right.open { "*" } else { "" },
            );
            write!(f, "{comma}{}{star} : {}", right.stem, right.deed.word())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_go_by_the_beginning_of_names() {
        let rights: Rights = "deploy/* : use, report/* : show, a:b : define"
            .parse()
            .unwrap();
        for (deed, name, allowed) in [
            (Deed::Use, "deploy/db", true),
            (Deed::Use, "deploy/", true),
            (Deed::Use, "deploy", false),
            (Deed::Show, "deploy/db", true),
            (Deed::Define, "deploy/db", false),
            (Deed::Show, "report/x", true),
            (Deed::Use, "report/x", false),
            (Deed::Define, "a:b", true),
            (Deed::Define, "a:bc", false),
            (Deed::Show, "", false),
            (Deed::Admin, "", false),
        ] {
            assert_eq!(rights.allow(deed, name), allowed, "{deed:?} {name}");
        }
    }

    #[test]
    fn the_whole_node_is_for_who_has_all_names() {
        let watcher: Rights = "* : show".parse().unwrap();
        assert!(watcher.allow(Deed::Show, "") && watcher.allow(Deed::Show, "x"));
        assert!(!watcher.allow(Deed::Admin, "") && !watcher.allow(Deed::Use, "x"));
        for deed in Deed::ALL {
            assert!(Rights::all().allow(deed, "x") && Rights::all().allow(deed, ""));
        }
    }

    #[test]
    fn what_means_nothing_is_named() {
        for (text, wrong) in [
            ("", "no right"),
            ("deploy/*", "no colon"),
            ("deploy/* :", "nothing after"),
            ("deploy/* : lock", "none of show"),
            ("a*b : use", "no name"),
            (" : use", "no name"),
            ("deploy/* : admin", "whole node"),
        ] {
            let error = text.parse::<Rights>().unwrap_err().to_string();
            assert!(error.contains(wrong), "{text}: {error}");
        }
    }

    #[test]
    fn a_refusal_says_who_what_and_which_right_is_missing() {
        let refusal = Rights::denied("alice", Deed::Use, "deploy/db").to_string();
        assert_eq!(
            refusal,
            "DENIED user alice may not use deploy/db; the right deploy/db : use is missing"
        );
        let rights: Rights = "a/* : use show, * : admin".parse().unwrap();
        assert_eq!(rights.to_string(), "a/* : use, a/* : show, * : admin");
    }
}
