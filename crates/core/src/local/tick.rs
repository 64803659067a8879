//! What happens with time alone: holds reach their limit, waits end, sessions run out, in order of their deadlines and before
//! any command of the same moment.
//!
//! Hold and wait limits are promises in time, so every command first ends what is due. Silence is different: what a session
//! has said may lie unread in a socket. Only [`Local::tick`] judges it, which the node calls when it has heard everybody, and
//! time in which the node could not hear anybody ([`Local::was_absent`]) does not count.

use super::Local;
use crate::command::{Settled, WaitEnd};
use crate::event::{Event, Loss};
use crate::session::State;
use crate::timer::{Target, Timer};

impl Local {
    /// Ends what is due at `now`, sessions included: everything said before `now` has been heard. Calling it late is safe:
    /// nothing is granted past a deadline in between.
    pub fn tick(&mut self, now: u64, out: &mut Vec<Event>) {
        self.now = self.now.max(now);
        // Silence is judged as of the time up to which everybody was heard, which may lie before the present.
        while let Some(at) = self.silences.next()
            && at <= now
        {
            self.expire(at, out);
            if let Some(timer) = self.silences.pop_due(at) {
                self.judge_silence(now, &timer, out);
            }
        }
        self.expire(now, out);
    }

    /// The node could not hear anybody for this long, in addition to what it was told before. No session's silence includes
    /// that time. Hold and wait limits do, because others rely on them, and the clocks of holders and waiters went on, too.
    pub fn was_absent(&mut self, ms: u64) {
        self.absent_ms = self.absent_ms.saturating_add(ms);
    }

    /// Ends the holds and waits that are due, but no session.
    pub fn expire(&mut self, now: u64, out: &mut Vec<Event>) {
        self.now = self.now.max(now);
        while let Some(timer) = self.timers.pop_due(now) {
            if !self.lives(&timer) {
                continue;
            }
            match timer.target {
                Target::Hold(h) => {
                    let g = self.lose(h, Loss::Lease, out);
                    self.advance(self.now, g, out);
                }
                Target::Wait(w) => {
                    self.end_wait(self.now, w, Settled::Ended(WaitEnd::TimedOut), out);
                }
                Target::Take(ticket) => self.end_taker(ticket, WaitEnd::TimedOut, out),
                Target::Session(_) => unreachable!("silence has timers of its own"),
            }
        }
    }

    fn judge_silence(&mut self, now: u64, timer: &Timer, out: &mut Vec<Event>) {
        let Target::Session(s) = timer.target else {
            unreachable!("only sessions are silent");
        };
        if !self.lives(timer) || self.sessions[s].state == State::RunOut {
            return;
        }
        match self.sessions[s].runs_out(now, self.absent_ms) {
            at if at > now => self.arm(at, timer.serial, Target::Session(s)),
            _ => self.run_out(self.now, s, out),
        }
    }
}
