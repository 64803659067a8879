//! What time alone does: holds reach their limit, waits end, sessions run out. In order of their deadlines, and before
//! any command of the same moment.

use super::Local;
use crate::command::{Settled, WaitEnd};
use crate::event::{Event, Loss};
use crate::session::State;
use crate::timer::Target;

impl Local {
    /// Ends what is due at time `now`. Calling it late is safe: nothing is granted past a deadline in between.
    pub fn tick(&mut self, now: u64, out: &mut Vec<Event>) {
        self.now = self.now.max(now);
        let now = self.now;
        while let Some(timer) = self.timers.pop_due(now) {
            if !self.lives(&timer) {
                continue;
            }
            match timer.target {
                Target::Hold(h) => {
                    let g = self.lose(h, Loss::Lease, out);
                    self.advance(now, g, out);
                }
                Target::Wait(w) => {
                    self.end_wait(now, w, Settled::Ended(WaitEnd::TimedOut), out);
                }
                Target::Take(ticket) => self.end_taker(ticket, WaitEnd::TimedOut, out),
                Target::Session(s) => {
                    let session = &self.sessions[s];
                    if session.state == State::RunOut {
                        continue;
                    }
                    let (at, serial) = (session.runs_out(now), session.serial);
                    match at > now {
                        true => self.arm(at, serial, Target::Session(s)),
                        false => self.run_out(now, s, out),
                    }
                }
            }
        }
    }
}
