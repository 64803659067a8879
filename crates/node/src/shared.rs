//! The house behind its lock, and the bell that wakes the reactor.

use std::sync::{Mutex, MutexGuard, PoisonError};

use testigo_engine::Delivery;

use crate::house::{House, Slice};

/// What all threads of a node share.
#[derive(Debug)]
pub(crate) struct Shared {
    house: Mutex<House>,
    bell: mio::Waker,
    /// What the log has said and the reactor has not yet done.
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

    /// The house, for the reactor. A thread that panicked inside has left it in a state that nobody can vouch for, so
    /// nobody goes on with it.
    pub(crate) fn house(&self) -> MutexGuard<'_, House> {
        self.house.lock().expect("no thread panicked in the house")
    }

    /// Lets a caller that is not the reactor into the house, and wakes the reactor for what it leaves to do.
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

    /// Makes something a slice at a time and waits for it; the reactor makes the slices. Nothing if the node stops first, or
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

    /// The log says something; called on the log's thread.
    pub(crate) fn deliver(&self, delivery: Delivery) {
        let mut deliveries = self
            .deliveries
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        deliveries.push(delivery);
        drop(deliveries);
        self.ring();
    }

    /// What the log of an ended start has said concerns nobody.
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
