//! Server-sent events: the state and the flows, now and then, for as long as somebody looks. All of one user's streams
//! share one copy.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;

use super::door::{Door, apart};
use super::flows::live_flows;
use super::making::state;
use crate::shared::Shared;
use crate::users::User;

/// How often the state is sent.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// The events of a state, and when they were made.
type Kept = (Instant, Arc<User>, Bytes);

/// The newest state, made when somebody asks and it is old.
#[derive(Debug, Default)]
pub(super) struct Newest {
    /// By user: not everybody sees the same.
    kept: Mutex<BTreeMap<Box<str>, Kept>>,
}

impl Newest {
    fn events(&self, shared: &Shared, user: &Arc<User>) -> Bytes {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, (made, _, _)| made.elapsed() < EVERY / 2);
        // After a reload the user may see something else.
        if let Some((_, of, events)) = kept.get(user.name())
            && Arc::ptr_eq(of, user)
        {
            return events.clone();
        }
        let (state, flows) = (state(shared, "*", user), live_flows(shared, user));
        let state = serde_json::to_string(&state).unwrap_or_default();
        let flows = serde_json::to_string(&flows).unwrap_or_default();
        let events = format!("event: state\ndata: {state}\n\nevent: flows\ndata: {flows}\n\n");
        let events = Bytes::from(events);
        let made = (Instant::now(), Arc::clone(user), events.clone());
        kept.insert(user.name().into(), made);
        events
    }
}

/// A body that tells a user the state until it is dropped or the door closes.
pub(super) fn stream(door: &Arc<Door>, user: Arc<User>) -> Body {
    let (told, events) = channel(1);
    tokio::spawn(tell(Arc::clone(door), user, told, door.stop.clone()));
    Body::new(Events(events))
}

async fn tell(
    door: Arc<Door>,
    user: Arc<User>,
    told: Sender<Bytes>,
    mut stop: watch::Receiver<bool>,
) {
    // Made only when there is room for it, so that a slow reader gets what is new.
    loop {
        let room = tokio::select! {
            room = told.reserve() => room,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Ok(room) = room else { return };
        // A reload may change what the user sees, or end it.
        let Some(user) = door.users.current(&user) else {
            return;
        };
        let door = Arc::clone(&door);
        let Ok(events) = apart(move || door.newest.events(&door.shared, &user)).await else {
            return;
        };
        room.send(events);
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = told.closed() => return,
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

struct Events(Receiver<Bytes>);

impl HttpBody for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let events = self.0.poll_recv(context);
        events.map(|events| events.map(|events| Ok(Frame::data(events))))
    }
}
