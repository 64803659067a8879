//! The answer for which a caller in this process waits: by blocking its thread, or as a future.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// An answer that is given once.
#[derive(Debug)]
pub(crate) struct Completion<T> {
    state: Mutex<State<T>>,
    given: Condvar,
}

#[derive(Debug)]
struct State<T> {
    answer: Option<T>,
    waker: Option<Waker>,
}

impl<T> Completion<T> {
    pub(crate) fn new() -> Arc<Completion<T>> {
        Arc::new(Completion {
            state: Mutex::new(State {
                answer: None,
                waker: None,
            }),
            given: Condvar::new(),
        })
    }

    /// Gives the answer. A second one is ignored.
    pub(crate) fn give(&self, answer: T) {
        let mut state = self.lock();
        if state.answer.is_none() {
            state.answer = Some(answer);
        }
        let waker = state.waker.take();
        drop(state);
        self.given.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Blocks the thread until there is an answer.
    pub(crate) fn wait(&self) -> T {
        let state = self.lock();
        let mut state = self
            .given
            .wait_while(state, |state| state.answer.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        state.answer.take().expect("waited until there is one")
    }

    /// The answer, if it was given.
    pub(crate) fn take(&self) -> Option<T> {
        self.lock().answer.take()
    }

    /// No code panics while it holds the lock, so a poisoned one is intact.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<T> {
        let mut state = self.lock();
        match state.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
