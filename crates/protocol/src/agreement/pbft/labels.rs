//! What messages read as in traces and pictures. A label says all that a liar could change, so that lies differ in it.

use std::fmt;

use super::view_change::ViewChange;
use super::{Digest, Signed};

/// A request, or nothing.
struct Shown(Digest);

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(command) => write!(f, "{command:?}"),
            None => f.write_str("nothing"),
        }
    }
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Signed::Request(command) => write!(f, "Request({command:?})"),
            Signed::PrePrepare { view, n, request } => {
                write!(f, "PrePrepare(view {view}, {n}: {:?})", Shown(*request))
            }
            Signed::Prepare { view, n, digest } => {
                write!(f, "Prepare(view {view}, {n}: {:?})", Shown(*digest))
            }
            Signed::Commit { view, n, digest } => {
                write!(f, "Commit(view {view}, {n}: {:?})", Shown(*digest))
            }
            Signed::Reply {
                view,
                command,
                index,
            } => write!(f, "Reply(view {view}, {index}: {command:?})"),
            Signed::Checkpoint { n, digest } => write!(f, "Checkpoint({n}, {digest:x})"),
            Signed::ViewChange(change) => write!(f, "ViewChange({change:?})"),
            Signed::NewView { view, changes } => write!(f, "NewView(view {view}, {changes:?})"),
            Signed::Fetch { n } => write!(f, "Fetch(up to {n})"),
            Signed::State { executed } => {
                let executed: Vec<Shown> = executed.iter().copied().map(Shown).collect();
                write!(f, "State({executed:?})")
            }
        }
    }
}

impl fmt::Debug for ViewChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view {}, stable {}", self.view, self.stable)?;
        if self.stable > 0 {
            write!(f, " {:x}", self.stable_digest)?;
        }
        for (n, (view, digest)) in &self.prepared {
            write!(f, ", {n}: {:?} of view {view}", Shown(*digest))?;
        }
        Ok(())
    }
}
