//! The laboratory: simulates and checks coordination algorithms, and draws what it found.
//!
//! ```
//! use testigo::lab::{CheckPlan, KnownAlgorithm, Setup, narrate};
//!
//! let printed = KnownAlgorithm::find("maekawa-slides")?;
//! let checked = printed.check(&Setup::new(3), &CheckPlan::new(1))?;
//! let found = checked.counterexample.ok_or("it was refuted before")?;
//! assert_eq!(found.steps, 6);
//! println!("{}", narrate(&found.trace, 60));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`protocol`] has the algorithms: one that implements its traits and is added there is listed, run, checked and drawn like
//! all others.

#[doc(inline)]
pub use testigo_lab::{
    Arrivals, CheckPlan, Checked, Counterexample, KnownAlgorithm, LabError, Report, Run, Trace,
    TraceError, Verdict, Violation, World, narrate, picture,
};
#[doc(no_inline)]
pub use testigo_protocol as protocol;
#[doc(inline)]
pub use testigo_protocol::Setup;
