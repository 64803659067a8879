//! The image of a clean stop: who is inside and who waits, so that nobody notices a restart. Times are stored as durations,
//! because the next process has another clock. An image fits only the next number of its shards, so a node that crashed after
//! using it cannot use it again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Local;
use super::enter::{Entrance, Known};
use crate::event::Turn;
use crate::fence::{Fence, Fences};
use crate::gate::{Definition, GateKey, Mode, Rank, Rule, Standing};
use crate::name::Name;
use crate::ownership::{Number, Shard};
use crate::replicated::before;
use crate::session::{Memo, SessionId};
use crate::timer::Target;
use crate::wait::{Leg, Legs, Ticket, Wait};

/// Holders and waiters of opened sessions. Implicit sessions end with their connections and are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The numbers of all shards, each with the first shard of its run.
    numbers: Vec<(Shard, Number)>,
    books: Books,
}

/// Who is inside and who waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Books {
    serial: u64,
    gates: Vec<GateImage>,
    /// In order of entry.
    holds: Vec<HoldImage>,
    /// In order of arrival.
    waits: Vec<WaitImage>,
    memos: Vec<(SessionId, String, Memo)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct GateImage {
    name: Name,
    /// The definition of an implicit gate.
    implicit: Option<Definition>,
    spent_up_to: u64,
    /// How long the room has been inside, and whether its leader has left.
    round: Option<(u64, bool)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HoldImage {
    gate: Name,
    session: SessionId,
    mode: Mode,
    fence: Fence,
    age_ms: u64,
    left_ms: Option<u64>,
    told: bool,
    reason: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct WaitImage {
    ticket: Ticket,
    session: SessionId,
    set: bool,
    /// For each leg its gate, mode and class, and how often it was overtaken there.
    legs: Vec<(Name, Mode, u32, u32)>,
    age_ms: u64,
    left_ms: u64,
    needs_ms: Option<u64>,
    reason: Option<String>,
    id: Option<String>,
}

impl Image {
    /// Its books, if every shard now has the number after the one in the image.
    pub(super) fn fitting(self, fences: &Fences) -> Option<Books> {
        let next = self.numbers.iter();
        let next = next.map(|(shard, number)| (*shard, Number(number.0.saturating_add(1))));
        next.eq(fences.numbers()).then_some(self.books)
    }
}

impl From<before::Image> for Image {
    fn from(before: before::Image) -> Image {
        Image {
            numbers: before.numbers(),
            books: before.into_books(),
        }
    }
}

impl Local {
    /// The image of a clean stop. Apply nothing after taking it. `None` while the node still recovers, because what the
    /// awaited sessions hold is not known yet; the next start then knows what this one knows, their touches.
    pub fn image(&mut self, now: u64) -> Option<Image> {
        self.now = self.now.max(now);
        if self.recovering() {
            return None;
        }
        let mut holds: Vec<_> = self.holds.iter().map(|(_, hold)| hold).collect();
        holds.retain(|hold| !self.sessions[hold.session].id.is_implicit());
        holds.sort_by_key(|hold| hold.serial);
        let mut waits: Vec<_> = self.waits.iter().map(|(_, wait)| wait).collect();
        waits.retain(|wait| !self.sessions[wait.session].id.is_implicit());
        waits.sort_by_key(|wait| wait.ticket);
        let used = holds.iter().map(|hold| hold.gate);
        let waited = waits
            .iter()
            .flat_map(|wait| wait.legs.iter().map(|leg| leg.gate));
        let used: BTreeMap<&Name, GateKey> = used
            .chain(waited)
            .map(|g| (&self.gates[g].name, g))
            .collect();
        let memos = self.sessions.iter().map(|(_, session)| session);
        let memos = memos
            .filter(|session| !session.id.is_implicit())
            .flat_map(|session| {
                let memos = session.memos.iter();
                memos.map(|(id, memo)| (session.id, id.to_string(), memo.clone()))
            });
        let books = Books {
            serial: self.serial,
            memos: memos.collect(),
            gates: used.values().map(|g| self.gate_image(*g)).collect(),
            holds: holds
                .into_iter()
                .map(|hold| HoldImage {
                    gate: self.gates[hold.gate].name.clone(),
                    session: self.sessions[hold.session].id,
                    mode: hold.mode.clone(),
                    fence: hold.fence,
                    age_ms: self.now - hold.since,
                    left_ms: (hold.until < u64::MAX).then(|| hold.until.saturating_sub(self.now)),
                    told: hold.told,
                    reason: hold.reason.as_deref().map(str::to_owned),
                })
                .collect(),
            waits: waits
                .into_iter()
                .map(|wait| self.wait_image(wait))
                .collect(),
        };
        Some(Image {
            numbers: self.fences.numbers(),
            books,
        })
    }

    fn gate_image(&self, g: GateKey) -> GateImage {
        let gate = &self.gates[g];
        GateImage {
            name: gate.name.clone(),
            implicit: gate.implicit().then(|| gate.definition.clone()),
            spent_up_to: gate.queue.spent_up_to(),
            round: gate.round.as_ref().map(|round| {
                let leader = round
                    .leader
                    .map(|h| self.sessions[self.holds[h].session].id);
                let stays = leader.is_some_and(|id| !id.is_implicit());
                (self.now - round.since, !stays)
            }),
        }
    }

    fn wait_image(&self, wait: &Wait) -> WaitImage {
        let legs = wait.legs.iter().map(|leg| {
            let gate = &self.gates[leg.gate];
            let at = gate.queue.position(leg.rank);
            let overtaken = gate.queue.queued(at).map_or(0, |queued| queued.overtaken);
            (gate.name.clone(), leg.mode.clone(), leg.class, overtaken)
        });
        WaitImage {
            ticket: wait.ticket,
            session: self.sessions[wait.session].id,
            set: wait.set(),
            legs: legs.collect(),
            age_ms: self.now - wait.since,
            left_ms: wait.deadline.saturating_sub(self.now),
            needs_ms: wait.needs_ms,
            reason: wait.reason.as_deref().map(str::to_owned),
            id: wait.id.as_deref().map(str::to_owned),
        }
    }

    /// Restores the books of an image. Sessions and gates that the log no longer knows are dropped with all they had.
    pub(super) fn restore(&mut self, now: u64, image: Books) {
        let mut ignored = Vec::new();
        self.serial = self.serial.max(image.serial);
        for gate in &image.gates {
            if let (Some(definition), None) = (&gate.implicit, self.names.get(&gate.name)) {
                let standing = Standing::Implicit { successor: None };
                self.create(gate.name.clone(), definition.clone(), standing);
            }
        }
        for hold in image.holds {
            self.restore_hold(now, hold);
        }
        for gate in &image.gates {
            let Some(&g) = self.names.get(&gate.name) else {
                continue;
            };
            let gate_now = &mut self.gates[g];
            gate_now.queue.restore_spent(gate.spent_up_to);
            if let (Some(round), Some((age_ms, leaderless))) = (&mut gate_now.round, gate.round) {
                round.since = now.saturating_sub(age_ms);
                if leaderless {
                    round.leader = None;
                }
            }
        }
        for wait in image.waits {
            self.restore_wait(now, wait);
        }
        for (id, token, memo) in image.memos {
            if let Some(&s) = self.session_ids.get(&id) {
                self.remember(s, Some(&token), memo);
            }
        }
        // Places of implicit sessions are free now. The sessions that get them find that out when they resume.
        self.advance_all(now, &mut ignored);
        let gates: Vec<_> = self.gates.iter().map(|(g, _)| g).collect();
        for g in gates {
            self.retire(g);
        }
    }

    fn restore_hold(&mut self, now: u64, image: HoldImage) {
        let (Some(&g), Some(&s)) = (
            self.names.get(&image.gate),
            self.session_ids.get(&image.session),
        ) else {
            return;
        };
        if self.held(g, s).is_some() || !fits_rule(self.gates[g].definition.rule, &image.mode) {
            return;
        }
        let entrance = Entrance {
            session: s,
            gate: g,
            mode: image.mode,
            class: 0,
            reason: image.reason.map(Into::into),
            turn: Turn::Kept,
            ticket: None,
            asked: None,
            together: 1,
            known: Known {
                since: Some(now.saturating_sub(image.age_ms)),
                until: Some(
                    image
                        .left_ms
                        .map_or(u64::MAX, |left| now.saturating_add(left)),
                ),
            },
        };
        self.take(now, entrance, Some(image.fence), &mut Vec::new());
        let Some(h) = self.held(g, s) else {
            return;
        };
        self.holds[h].told = image.told;
        self.gates[g].untold -= u32::from(image.told);
    }

    fn restore_wait(&mut self, now: u64, image: WaitImage) {
        let Some(&s) = self.session_ids.get(&image.session) else {
            return;
        };
        let (mut legs, mut overtaken) = (Vec::new(), Vec::new());
        for (name, mode, class, passed) in image.legs {
            let Some(&g) = self.names.get(&name) else {
                return;
            };
            let definition = &self.gates[g].definition;
            if !fits_rule(definition.rule, &mode) || self.held(g, s).is_some() {
                return;
            }
            let rank = Rank::new(definition, &mode, class, image.set, image.ticket.0);
            legs.push(Leg {
                gate: g,
                mode,
                class,
                rank,
            });
            overtaken.push(passed);
        }
        let deadline = now.saturating_add(image.left_ms);
        let wait = Wait {
            ticket: image.ticket,
            session: s,
            legs: Legs::new(image.set, legs),
            since: now.saturating_sub(image.age_ms),
            deadline,
            needs_ms: image.needs_ms,
            reason: image.reason.map(Into::into),
            id: image.id.map(Into::into),
            // Its connection is gone; it blocks again when the client repeats the request.
            asynchronous: true,
        };
        let w = self.add_wait(wait, &overtaken);
        self.arm(deadline, image.ticket.0, Target::Wait(w));
    }
}

/// Whether a stored mode is still valid at a gate with this rule.
fn fits_rule(rule: Rule, mode: &Mode) -> bool {
    match rule {
        Rule::Mutex | Rule::Shared => matches!(mode, Mode::Exclusive | Mode::Shared),
        Rule::Permits(k) => matches!(mode, Mode::Permits(h) if *h <= k),
        Rule::Rooms => matches!(mode, Mode::Room(_)),
        Rule::Election => matches!(mode, Mode::Lead(_)),
    }
}
