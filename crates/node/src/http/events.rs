//! Server-sent events: the state and the flows, now and then, for as long as somebody looks. All who look share one copy.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::flows::live_flows;
use super::state::state;
use crate::shared::Shared;
use crate::users::User;

/// How often the state is told.
const EVERY: Duration = Duration::from_millis(500);

/// The events of a state, and when they were made.
type Kept = (Instant, Arc<str>);

/// The newest state, made when somebody asks and it is old.
#[derive(Debug)]
pub(super) struct Newest {
    /// By user: not everybody sees the same.
    kept: Mutex<BTreeMap<Box<str>, Kept>>,
    stopping: Mutex<bool>,
    bell: Condvar,
}

impl Newest {
    pub(super) fn new() -> Newest {
        Newest {
            kept: Mutex::new(BTreeMap::new()),
            stopping: Mutex::new(false),
            bell: Condvar::new(),
        }
    }

    fn events(&self, shared: &Shared, user: &User) -> Arc<str> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match kept.get(user.name()) {
            Some((made, text)) if made.elapsed() < EVERY / 2 => Arc::clone(text),
            _ => {
                let (state, flows) =
                    shared.enter(|house| (state(house, "*", user), live_flows(house, user)));
                let state = serde_json::to_string(&state).unwrap_or_default();
                let flows = serde_json::to_string(&flows).unwrap_or_default();
                let events =
                    format!("event: state\ndata: {state}\n\nevent: flows\ndata: {flows}\n\n");
                let text: Arc<str> = events.into();
                kept.insert(user.name().into(), (Instant::now(), Arc::clone(&text)));
                text
            }
        }
    }

    /// Waits for the next time to tell; false when the node stops.
    fn goes_on(&self) -> bool {
        let stopping = self.stopping.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .bell
            .wait_timeout_while(stopping, EVERY, |stopping| !*stopping);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn stop(&self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.bell.notify_all();
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the state until the other side or the node is gone.
    pub(super) fn tell(
        &self,
        shared: &Shared,
        user: &User,
        stream: &mut impl Write,
    ) -> io::Result<()> {
        stream.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n",
        )?;
        loop {
            stream.write_all(self.events(shared, user).as_bytes())?;
            stream.flush()?;
            if !self.goes_on() {
                return Ok(());
            }
        }
    }
}
