//! Building blocks of adaptive algorithms: the splitter, the reflector and the sieve. Each is a program whose
//! processes are done with it once they are inside; what they got is in [`Local::kept`](crate::Local::kept).

mod reflector;
mod sieve;
mod splitter;

pub use reflector::{DOWN, Reflector, UP};
pub use sieve::Sieve;
pub use splitter::{STOPPED, Splitter, TO_THE_RIGHT, WENT_DOWN};
