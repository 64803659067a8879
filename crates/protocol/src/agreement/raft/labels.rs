//! What messages read as in traces and pictures: `1@2` is the entry of term 2 at index 1.

use std::fmt;

use super::Rpc;

impl fmt::Debug for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rpc::Forward(command) => write!(f, "Forward({command:?})"),
            Rpc::RequestVote {
                term,
                last_index,
                last_term,
            } => write!(f, "RequestVote(term {term}, last {last_index}@{last_term})"),
            Rpc::Vote { term, granted } => {
                let word = if *granted { "yes" } else { "no" };
                write!(f, "Vote(term {term}, {word})")
            }
            Rpc::AppendEntries {
                term,
                prev_index,
                prev_term,
                entries,
                commit,
            } => write!(
                f,
                "AppendEntries(term {term}, after {prev_index}@{prev_term}: {entries:?}, commit {commit})"
            ),
            Rpc::Appended {
                term,
                success,
                index,
            } => {
                let word = if *success { "up to" } else { "not at" };
                write!(f, "Appended(term {term}, {word} {index})")
            }
        }
    }
}
