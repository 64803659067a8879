//! Server-sent events: the state and the flows, at intervals, as long as somebody looks. All streams of one user share one
//! copy.

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
use super::gathering::{Seen, look, look_at_flows};
use super::state::Part;
use crate::users::User;

/// How often the state is sent.
pub(super) const EVERY: Duration = Duration::from_millis(500);

/// When the events of a state were made, for whom, and the events.
type Kept = (Instant, Arc<User>, Bytes);

/// The newest state, remade when it is requested and old.
#[derive(Debug, Default)]
pub(super) struct Newest {
    /// By user, because not everybody sees the same. One stream makes it, the user's other streams wait for it.
    kept: Mutex<BTreeMap<Box<str>, Arc<Making>>>,
}

type Making = tokio::sync::Mutex<Option<Kept>>;

impl Newest {
    async fn events(&self, door: &Arc<Door>, user: &Arc<User>) -> Bytes {
        let making = self.of(user);
        let mut kept = making.lock().await;
        // After a reload the user may see something else.
        if let Some((made, of, events)) = &*kept
            && made.elapsed() < EVERY / 2
            && Arc::ptr_eq(of, user)
        {
            return events.clone();
        }
        let events = made(door, user).await;
        *kept = Some((Instant::now(), Arc::clone(user), events.clone()));
        events
    }

    /// Where a user's events are kept. Events that nobody has looked at lately are dropped.
    fn of(&self, user: &User) -> Arc<Making> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|_, making| {
            let idle = |kept: &Option<Kept>| {
                let kept = kept.as_ref();
                kept.is_none_or(|(made, ..)| made.elapsed() >= EVERY / 2)
            };
            Arc::strong_count(making) > 1 || !making.try_lock().is_ok_and(|kept| idle(&kept))
        });
        Arc::clone(kept.entry(user.name().into()).or_default())
    }
}

async fn made(door: &Arc<Door>, user: &Arc<User>) -> Bytes {
    let state = look(door, user, "*", Part::Whole);
    let (state, flows) = tokio::join!(state, look_at_flows(door, user, Part::Live));
    let written = apart(move || {
        let nothing = || "null".to_owned();
        let state = state.map_or_else(|_| nothing(), Seen::into_text);
        let flows = flows.map_or_else(|_| nothing(), Seen::into_text);
        format!("event: state\ndata: {state}\n\nevent: flows\ndata: {flows}\n\n")
    });
    Bytes::from(written.await.unwrap_or_default())
}

/// A body that sends a user the state until it is dropped or the front door closes.
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
    // Made only when there is room for it, so that a slow reader gets a recent state.
    loop {
        let room = tokio::select! {
            room = told.reserve() => room,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        let Ok(room) = room else { return };
        // A reload may change what the user sees, or remove the user.
        let Some(user) = door.open().users.current(&user) else {
            return;
        };
        let events = tokio::select! {
            events = door.newest.events(&door, &user) => events,
            _ = stop.wait_for(|stop| *stop) => return,
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
