//! Who may do what: users, how they authenticate, and their rights by name. Both front doors ask here.

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
