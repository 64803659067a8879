//! A newcomer repeats its request until the log has it: the member that it asked may have been lost before the leader heard
//! of it.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use testigo_core::Newcomer;

use super::identity::Identity;
use super::join::{JoinAnswer, ask_to_join};
use super::warnings::About;

/// How often it asks.
const REPEAT: Duration = Duration::from_millis(1_000);

/// Asks on a thread of its own.
#[derive(Debug)]
pub(crate) struct Joiner {
    stops: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Joiner {
    /// Asks the nodes at these addresses in turn, until `joined` says to stop.
    pub(crate) fn start(
        identity: Identity,
        newcomer: Newcomer,
        addresses: Vec<String>,
        joined: impl Fn() -> bool + Send + 'static,
    ) -> io::Result<Joiner> {
        let stops = Arc::new((Mutex::new(false), Condvar::new()));
        let own = Arc::clone(&stops);
        let thread = thread::Builder::new().name("testigo-join".into());
        let thread = thread.spawn(move || {
            let mut trouble = String::new();
            for address in addresses.iter().cycle() {
                if joined() {
                    return;
                }
                let why = match ask_to_join(&identity, address, &newcomer) {
                    Ok(JoinAnswer::Welcome(_)) => String::new(),
                    Ok(JoinAnswer::Refused(why) | JoinAnswer::Later(why)) | Err(why) => why,
                    Ok(JoinAnswer::StartAbove(start)) => format!("its number had start {start}"),
                };
                if why != trouble && !why.is_empty() {
                    let said = || format!("the node at {address} does not let this one in: {why}");
                    identity.warnings.say(About::Joining, 0, said);
                }
                trouble = why;
                let stops = own.0.lock().unwrap_or_else(PoisonError::into_inner);
                let waited = own.1.wait_timeout_while(stops, REPEAT, |stops| !*stops);
                if *waited.unwrap_or_else(PoisonError::into_inner).0 {
                    return;
                }
            }
        })?;
        Ok(Joiner {
            stops,
            thread: Some(thread),
        })
    }
}

impl Drop for Joiner {
    fn drop(&mut self) {
        *self.stops.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stops.1.notify_all();
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            log::error!("the thread that asked to join had failed");
        }
    }
}
