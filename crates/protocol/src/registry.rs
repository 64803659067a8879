//! Finding an algorithm by its name.

use crate::{Machine, PacketTag, Problem, Profile, Setup, SetupError};

/// An algorithm of a problem: its profile, and how to make it for a setup.
#[derive(Debug)]
pub struct Algorithm<Q: Problem> {
    pub profile: Profile,
    pub machine: Make<Q>,
}

impl<Q: Problem> Algorithm<Q> {
    /// What tells the packets of its members, with this setup, from all others.
    pub fn tag(&self, setup: &Setup) -> PacketTag {
        PacketTag::of(Q::NAME, self.profile.name, setup)
    }
}

/// Configures an algorithm, or says why it cannot run with this setup.
pub type Make<Q> = fn(&Setup) -> Result<Box<dyn Machine<Q>>, SetupError>;

/// Declares the algorithms of a problem, one file each: `family! { Mutex: central, token_ring }`.
/// A file offers a constant `ALGORITHM`.
macro_rules! family {
    ($problem:ty: $($file:ident),+ $(,)?) => {
        $(pub(crate) mod $file;)+

        /// Every algorithm here, in the order in which they are listed to people.
        pub static ALGORITHMS: &[&$crate::Algorithm<$problem>] = &[$(&$file::ALGORITHM),+];
    };
}
pub(crate) use family;
