//! The services: both halves of `core`, and what the local half has told and nobody has passed on yet. Whoever only looks
//! reads a half; what a session asks, what the log says and what time does each have one way in.

use testigo_core::{
    Answer, Change, Command, Event, Image, Limits, Local, Outcome, Refusal, Replicated, SessionId,
    Stamp,
};

/// Both halves.
#[derive(Debug)]
pub(crate) struct Services {
    local: Local,
    replicated: Replicated,
    limits: Limits,
    events: Vec<Event>,
}

impl Services {
    pub(super) fn new(local: Local, replicated: Replicated, limits: Limits) -> Services {
        Services {
            local,
            replicated,
            limits,
            events: Vec::new(),
        }
    }

    pub(crate) fn local(&self) -> &Local {
        &self.local
    }

    pub(crate) fn replicated(&self) -> &Replicated {
        &self.replicated
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Carries out a session's command.
    pub(super) fn ask(
        &mut self,
        now: u64,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Refusal> {
        let Services {
            local,
            replicated,
            events,
            ..
        } = self;
        local.apply(now, replicated, session, command, events)
    }

    /// An entry of the log is applied to both halves, or refused by the first.
    pub(super) fn apply(
        &mut self,
        now: u64,
        stamp: Stamp,
        change: &Change,
    ) -> Result<Outcome, Refusal> {
        let applied = self.replicated.apply(stamp, change)?;
        let Services {
            local, replicated, ..
        } = self;
        local.follow(now, replicated, &applied, &mut self.events);
        Ok(applied.into_outcome())
    }

    /// Ends the holds and waits that are due, and no session.
    pub(super) fn expire(&mut self, now: u64) {
        self.local.expire(now, &mut self.events);
    }

    /// As [`Services::expire`], and ends those who were silent for too long: everything said before `now` has been heard.
    pub(super) fn tick(&mut self, now: u64) {
        self.local.tick(now, &mut self.events);
    }

    /// The node could not hear anybody for so long.
    pub(super) fn was_absent(&mut self, ms: u64) {
        self.local.was_absent(ms);
    }

    /// Whether entries and exits are told.
    pub(super) fn observe(&mut self, observed: bool) {
        self.local.observe(observed);
    }

    /// The node stops: jobs in hand wait again, and nobody has died.
    pub(super) fn lay_down(&mut self) {
        self.local.lay_down();
    }

    /// Who holds and who waits, for the next start.
    pub(super) fn image(&mut self, now: u64) -> Option<Image> {
        self.local.image(now)
    }

    /// Whether anything was told since the last time.
    pub(super) fn has_told(&self) -> bool {
        !self.events.is_empty()
    }

    /// What was told since the last time. The list comes back when it is passed on.
    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Gives the empty list back, so that its memory is used again.
    pub(super) fn put_back(&mut self, events: Vec<Event>) {
        debug_assert!(self.events.is_empty(), "passing on makes no events");
        self.events = events;
    }

    #[cfg(test)]
    pub(super) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }
}
