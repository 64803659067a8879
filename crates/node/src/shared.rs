//! The house behind its lock, and the waker of the reactor.

use std::sync::{Mutex, MutexGuard, PoisonError};

use testigo_engine::Delivery;

use crate::house::{House, Slice};

/// What all threads of a node share.
#[derive(Debug)]
pub(crate) struct Shared {
    house: Mutex<House>,
    bell: mio::Waker,
    /// What the log has delivered and the reactor has not handled yet.
    deliveries: Mutex<Vec<Delivery>>,
}

impl Shared {
    pub(crate) fn new(house: House, bell: mio::Waker) -> Shared {
        Shared {
            house: Mutex::new(house),
            bell,
            deliveries: Mutex::new(Vec::new()),
        }
    }

    /// The house, for the reactor. A thread that panicked inside has left an unknown state, so nobody goes on with it.
    pub(crate) fn house(&self) -> MutexGuard<'_, House> {
        self.house.lock().expect("no thread panicked in the house")
    }

    /// Lets a caller other than the reactor into the house, and wakes the reactor for what is left to do.
    pub(crate) fn enter<T>(&self, ask: impl FnOnce(&mut House) -> T) -> T {
        let mut house = self.house();
        house.look_at_the_clock();
        let answer = ask(&mut house);
        house.pass_on();
        house.submissions.begin_flush();
        let ring = house.needs_the_reactor();
        drop(house);
        if ring {
            self.ring();
        }
        answer
    }

    /// Makes something one slice at a time and waits for it; the reactor makes the slices. `None` if the node stops first, or
    /// has too much to do.
    pub(crate) fn in_slices<T: Send + 'static>(
        &self,
        make: impl FnMut(&House, &mut Slice) -> Option<T> + Send + 'static,
    ) -> Option<T> {
        self.enter(|house| house.give_in_slices(make)).wait()
    }

    pub(crate) fn ring(&self) {
        if let Err(error) = self.bell.wake() {
            log::error!("the reactor cannot be woken: {error}");
        }
    }

    /// Takes a delivery of the log; called on the log's thread.
    pub(crate) fn deliver(&self, delivery: Delivery) {
        let mut deliveries = self
            .deliveries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        deliveries.push(delivery);
        drop(deliveries);
        self.ring();
    }

    /// The deliveries of an ended start's log concern nobody.
    pub(crate) fn forget_deliveries(&self) {
        let deliveries = self.deliveries.lock();
        deliveries.unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(crate) fn take_deliveries(&self, into: &mut Vec<Delivery>) {
        let mut deliveries = self
            .deliveries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        into.append(&mut deliveries);
    }
}
