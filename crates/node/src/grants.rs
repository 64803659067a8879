//! What applying a flow grants. A user who may define a flow decides its graph, but not alone who may have its jobs and where
//! its files lie: an apply grants no more than its author has, and what was there before may stay.

use std::collections::BTreeSet;
use std::path::{Component, Path};

use testigo_core::{Name, Refusal, Role, Scheme, Word};

use crate::users::{Deed, Rights, User};
use crate::wire::refuse;

/// Who may do something with a queue's jobs as a process.
#[derive(Debug, Default)]
struct Audience<'a> {
    /// Whether every user may be the process.
    everybody: bool,
    users: BTreeSet<&'a Name>,
    /// Whether the author is one of them.
    author: bool,
}

/// Whether an author may replace a flow, or create a new one.
pub(crate) fn check(
    author: &User,
    flow: &str,
    old: Option<&Scheme>,
    new: &Scheme,
) -> Result<(), Refusal> {
    if author.may(Deed::Admin, "") {
        return Ok(());
    }
    let denied = |what: String| {
        let mut refusal = Rights::denied(author.name(), Deed::Admin, flow);
        refusal.sentence = format!(
            "user {} may not grant what it has not: {what}; the right * : admin is missing",
            author.name()
        );
        Err(refusal)
    };
    for (queue, rule) in &new.queues {
        let before = old.and_then(|old| old.queues.get(queue));
        let stood = |user: &&Name| before.is_some_and(|before| before.users.contains(*user));
        let administers = before.is_some_and(|before| before.users.contains(author.name()));
        if let Some(user) = rule.users.iter().find(|user| !stood(user))
            && !administers
        {
            return denied(format!("queue {queue} {{ rights {user} }}"));
        }
    }
    let Some(old) = old else {
        return Ok(());
    };
    for (process, role) in &new.processes {
        for (queue, into) in role.arrows() {
            let Some(before) = old.queues.get(queue) else {
                continue;
            };
            let had = audience(author, flow, old, queue, into);
            let fits = had.everybody
                || had.author
                || before.users.contains(author.name())
                || (!role.users.is_empty() && role.users.iter().all(|u| had.users.contains(u)));
            if !fits {
                let how = if into { "into" } else { "out of" };
                return denied(format!(
                    "process {process} {}would bring jobs {how} queue {queue}, which {} not do before",
                    for_users(role),
                    match role.users.is_empty() {
                        true => "not everybody could",
                        false => "some of them could",
                    },
                ));
            }
        }
    }
    Ok(())
}

/// Who could put jobs into a queue, or take them out, according to the present flow.
fn audience<'a>(
    author: &User,
    flow: &str,
    old: &'a Scheme,
    queue: &Name,
    into: bool,
) -> Audience<'a> {
    let mut had = Audience::default();
    for (process, role) in &old.processes {
        if !role.arrows().any(|arrow| arrow == (queue, into)) {
            continue;
        }
        had.everybody |= role.users.is_empty();
        had.users.extend(&role.users);
        had.author |= role.users.contains(author.name())
            && author.may(Deed::Use, &format!("{flow}/{process}"));
    }
    had
}

fn for_users(role: &Role) -> String {
    match role.users.is_empty() {
        true => String::new(),
        false => {
            let users: Vec<&str> = role.users.iter().map(|user| user.as_str()).collect();
            format!("{{ rights {} }} ", users.join(", "))
        }
    }
}

/// Whether the directories of a flow's queues lie, by name, below the one that the operator configured. A relative path lies
/// below the directory in which a harness works; a harness that opens one follows no link out of it.
pub(crate) fn check_directories(
    root: Option<&Path>,
    old: Option<&Scheme>,
    new: &Scheme,
) -> Result<(), Refusal> {
    for (queue, rule) in &new.queues {
        let Some(directory) = &rule.directory else {
            continue;
        };
        let stood = old.and_then(|old| old.queues.get(queue)?.directory.as_ref());
        if stood == Some(directory) {
            continue;
        }
        let path = Path::new(directory);
        let climbs = path.components().any(|part| part == Component::ParentDir);
        let below = path.is_relative() || root.is_some_and(|root| path.starts_with(root));
        if climbs || !below {
            let right = match root {
                Some(root) => format!("a path below {}, or a relative one", root.display()),
                None => "a relative path; the node's setting files_root allows others".into(),
            };
            return Err(refuse(
                Word::BadFlow,
                format!(
                    "the data directory {directory:?} of queue {queue} leads elsewhere; write {right}, without .."
                ),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheme::read;
    use crate::users::Secret;

    const FLOW: &str = "\
        make -> [a] -> work -> [b] -> end\n\
        make -> [failed] -> sweep\n\
        process sweep { rights root }\n";

    fn applies(rights: &str, old: Option<&str>, new: &str) -> bool {
        let secret = Secret::read("x").unwrap();
        let author = User::new("eve", secret, rights.parse().unwrap()).unwrap();
        let old = old.map(|old| read(&format!("{FLOW}{old}")).unwrap());
        let new = read(&format!("{FLOW}{new}")).unwrap();
        check(&author, "f", old.as_ref(), &new).is_ok()
    }

    #[test]
    fn nobody_grants_what_they_have_not() {
        let define = "f : define, f/* : use";
        for (old, new, fits) in [
            (None, "", true),
            (None, "process work { rights bob }", true),
            (None, "queue a { rights eve }", false),
            (None, "queue a { rights bob }", false),
            (Some(""), "queue failed { rights eve }", false),
            (
                Some("queue a { rights bob }"),
                "queue a { rights bob }",
                true,
            ),
            (Some("queue a { rights bob }"), "", true),
            (
                Some("queue a { rights bob }"),
                "queue a { rights bob, eve }",
                false,
            ),
            (
                Some("queue a { rights eve }"),
                "queue a { rights bob, eve }",
                true,
            ),
            (
                Some("queue a { rights eve }"),
                "queue b { rights bob }",
                false,
            ),
            (
                Some("process work { rights bob }"),
                "process work { rights bob }",
                true,
            ),
            (Some("process work { rights bob }"), "", false),
            (
                Some("process work { rights bob }"),
                "process work { rights bob, eve }",
                false,
            ),
            (
                Some("process work { rights eve }"),
                "process work { rights bob }",
                true,
            ),
            (Some(""), "process work { rights bob }", true),
            // Another process must not take what only bob may.
            (
                Some("process work { rights bob }"),
                "process work { rights bob }\nmake -> [a] -> thief -> [b] -> end",
                false,
            ),
            (Some(""), "make -> [a] -> second -> [b] -> end", true),
            // The jobs in it were for root.
            (Some(""), "make -> [failed] -> clerk -> [a] -> work", false),
            (
                Some("queue failed { rights eve }"),
                "queue failed { rights eve }\nmake -> [failed] -> clerk",
                true,
            ),
            // A new queue has nobody's jobs.
            (Some(""), "make -> [a] -> work -> [new] -> reader", true),
        ] {
            assert_eq!(applies(define, old, new), fits, "{old:?} then {new}");
            assert!(applies("* : admin", old, new), "{old:?} then {new}");
        }
        let restricted = Some("process work { rights eve }");
        assert!(!applies("f : define", restricted, ""), "eve may not use it");
    }

    #[test]
    fn directories_stay_below_the_configured_one() {
        let scheme = |data: &str| read(&format!("{FLOW}queue a {{ data \"{data}\" }}")).unwrap();
        let root = Some(Path::new("/srv/jobs"));
        for (root, data, fits) in [
            (None, "raw", true),
            (None, "a/b", true),
            (None, "../raw", false),
            (None, "a/../../raw", false),
            (None, "/srv/jobs/raw", false),
            (root, "raw", true),
            (root, "/srv/jobs/raw", true),
            (root, "/srv/jobs", true),
            (root, "/srv/jobs-of-others", false),
            (root, "/srv/jobs/../others", false),
            (root, "/etc", false),
            (root, "/", false),
        ] {
            let new = scheme(data);
            let checked = check_directories(root, None, &new);
            assert_eq!(checked.is_ok(), fits, "{root:?} {data}");
            // What was there before may stay.
            assert!(check_directories(root, Some(&new), &new).is_ok(), "{data}");
        }
    }
}
