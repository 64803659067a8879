//! `SESSION RESUME`: a client is back. If the node knows what the session holds, its own record decides: the node did not
//! restart, or has heard of the session since. After a crash there are only the surviving clients' claims, and the shards in
//! which they were granted anything at all. Of two proven claims that conflict, the higher fence wins, because it is the
//! later grant. A claim without proof may be a lie: it is believed only where it takes nothing from anybody, and it gives way
//! to a proven one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Local;
use super::enter::{Entrance, Known};
use super::{check_reason, name_asked};
use crate::command::{Answer, Claim, ClaimEnd, Resumed};
use crate::error::{Refusal, Word};
use crate::event::{Event, Loss, Turn};
use crate::gate::{Definition, GateKey, Hold, HoldKey, Mode, Standing};
use crate::ownership::Shard;
use crate::replicated::no_session;
use crate::session::{SessionId, SessionKey, State};

impl Local {
    /// Resumes a session on a new connection, with what it says it holds. Every claim is answered; the answer also lists
    /// holds that the session did not claim, for example a grant whose answer was lost.
    pub(super) fn resume(
        &mut self,
        id: SessionId,
        claims: &[Claim<'_>],
        out: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let (s, now) = (self.session(id)?, self.now);
        if id.is_implicit() || self.sessions[s].state == State::RunOut {
            return Err(no_session(id));
        }
        if claims.len() > self.limits.holds_per_session {
            return Err(Refusal::new(
                Word::Limit,
                format!(
                    "{} claims are above the limit holds_per_session of {}",
                    claims.len(),
                    self.limits.holds_per_session
                ),
            ));
        }
        for w in self.sessions[s].waits.clone() {
            self.set_blocking(w, false);
        }
        let session = &mut self.sessions[s];
        session.state = State::Connected;
        session.hear(now, self.absent_ms);
        let known = !session.awaited;
        let mut ends = vec![ClaimEnd::Lost; claims.len()];
        for at in strongest_first(claims) {
            ends[at] = match known {
                true => self.confirm(s, &claims[at]),
                false => self.believe(now, s, &claims[at], out),
            };
        }
        let holds = self.sessions[s].holds.of_session(&self.holds);
        let holds = holds
            .map(|(_, hold)| (self.gates[hold.gate].name.clone(), hold.fence))
            .collect();
        if !known {
            self.sessions[s].awaited = false;
            let touched = self.sessions[s].touched.clone();
            if touched.everywhere() {
                self.retouch(s, out);
            }
            self.heard_of(now, id, &touched, out);
        }
        Ok(Answer::Resumed(Resumed {
            claims: ends,
            holds,
        }))
    }

    fn confirm(&self, s: SessionKey, claim: &Claim<'_>) -> ClaimEnd {
        let hold = self.names.get(claim.gate).and_then(|g| self.held(*g, s));
        match hold {
            Some(h) if self.holds[h].fence == claim.fence => ClaimEnd::Held,
            _ => ClaimEnd::Lost,
        }
    }

    /// Puts a claim into effect during recovery.
    fn believe(
        &mut self,
        now: u64,
        s: SessionKey,
        claim: &Claim<'_>,
        out: &mut Vec<Event>,
    ) -> ClaimEnd {
        let reserved = self.floor(claim.gate);
        if claim.fence >= reserved {
            return ClaimEnd::Refused(format!(
                "fence {} was never granted here: all grants before this start are below {reserved}",
                claim.fence
            ));
        }
        if claim.until.is_some_and(|until| until <= now) {
            return ClaimEnd::Lost;
        }
        // It was granted nothing there. Others may have been since, and its fence would be below theirs.
        if !self.sessions[s].touched.includes(Shard::of(claim.gate)) {
            return ClaimEnd::Lost;
        }
        // Grants from before the crash were within the limit then. Waiters and claims without proof take no room from them.
        let taken = match claim.proven {
            true => self.holds.len() - self.unproven,
            false => self.holds.len() + self.waiting_legs,
        };
        if taken >= self.limits.holds {
            return ClaimEnd::Refused(format!(
                "the limit holds of {} is reached",
                self.limits.holds
            ));
        }
        let (g, mode) = match self.claimed_gate(claim) {
            Ok(found) => found,
            Err(refusal) => return ClaimEnd::Refused(refusal.sentence),
        };
        let Some(losers) = self.driven_out(g, s, &mode, claim) else {
            self.retire(g);
            let own = self.held(g, s).map(|h| self.holds[h].fence);
            return match own == Some(claim.fence) {
                true => ClaimEnd::Held,
                false => ClaimEnd::Lost,
            };
        };
        for h in losers {
            self.lose(h, Loss::Claim, out);
        }
        let entrance = Entrance {
            session: s,
            gate: g,
            mode,
            class: 0,
            reason: claim.reason.map(Box::from),
            turn: Turn::Claimed {
                proven: claim.proven,
            },
            ticket: None,
            asked: None,
            together: 1,
            known: Known {
                since: claim.since,
                until: claim.until,
            },
        };
        self.take(now, entrance, Some(claim.fence), out);
        ClaimEnd::Held
    }

    /// The gate that a claim names, created if it was implicit.
    fn claimed_gate(&mut self, claim: &Claim<'_>) -> Result<(GateKey, Mode), Refusal> {
        check_reason(claim.reason)?;
        if let Some(&g) = self.names.get(claim.gate) {
            let gate = &self.gates[g];
            let mode = gate
                .definition
                .mode(claim.gate, gate.implicit(), claim.ask)?;
            return Ok((g, mode));
        }
        let definition = Definition::implicit(claim.ask);
        let definition = definition.ok_or_else(|| crate::replicated::no_gate(claim.gate))?;
        let name = name_asked(claim.gate, claim.ask)?;
        if !claim.proven && self.names.len() >= self.limits.gates {
            let most = self.limits.gates;
            return Err(Refusal::new(
                Word::Limit,
                format!("the limit gates of {most} is reached"),
            ));
        }
        let mode = definition.mode(&name, true, claim.ask)?;
        let g = self.create(name, definition, Standing::Implicit { successor: None });
        Ok((g, mode))
    }

    /// The holders that a claim drives out; `None` if the claim itself is lost. Only a proven claim drives anybody out:
    /// holders without proof (the latest first), then those with lower fences, as many as necessary.
    pub(super) fn driven_out(
        &self,
        g: GateKey,
        s: SessionKey,
        mode: &Mode,
        claim: &Claim<'_>,
    ) -> Option<Vec<HoldKey>> {
        let gate = &self.gates[g];
        let gives_way = |hold: &Hold| claim.proven && (!hold.proven || hold.fence < claim.fence);
        let (mut leave, mut others) = (Vec::new(), Vec::new());
        let mut units = gate.units + mode.units();
        for (h, hold) in gate.inside.inside(&self.holds) {
            let rivals = hold.session == s || hold.mode.conflicts(mode);
            match (rivals, gives_way(hold)) {
                (true, false) => return None,
                (true, true) => {
                    units -= hold.mode.units();
                    leave.push(h);
                }
                (false, true) => others.push((h, hold)),
                (false, false) => {}
            }
        }
        others.sort_by_key(|(_, hold)| match hold.proven {
            false => (false, u64::MAX - hold.serial),
            true => (true, hold.fence.0),
        });
        let mut others = others.into_iter();
        while units > gate.definition.units_max() {
            let (h, hold) = others.next()?;
            units -= hold.mode.units();
            leave.push(h);
        }
        Some(leave)
    }
}

/// The claims in their order, except that of several for one gate the strongest is judged first, so that no claim drives out
/// one that the same call has already answered.
fn strongest_first(claims: &[Claim<'_>]) -> Vec<usize> {
    let mut first = BTreeMap::new();
    for (at, claim) in claims.iter().enumerate() {
        first.entry(claim.gate).or_insert(at);
    }
    let mut turns: Vec<usize> = (0..claims.len()).collect();
    // Without proof a fence counts for nothing, and the first claim comes first.
    turns.sort_by_key(|&at| {
        let claim = &claims[at];
        let proof = claim.proven.then_some(claim.fence);
        (first[claim.gate], Reverse(proof))
    });
    turns
}
