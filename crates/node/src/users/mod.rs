//! Who may do what: users, how they prove who they are, and their rights by name. Both doors ask here.

mod checker;
mod guesses;
mod registry;
mod rights;
mod secret;
mod user;

pub(crate) use checker::{Checker, Claim};
pub(crate) use guesses::{Guesses, Origin};
pub(crate) use registry::{Found, Guests, Users};
pub use rights::{Deed, Rights, RightsError};
pub use secret::{Secret, SecretError};
pub use user::{User, UserError};
