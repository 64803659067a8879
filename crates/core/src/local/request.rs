//! What a request to enter means, and every reason to refuse it before anything has changed.

use super::Local;
use crate::error::{Refusal, Word};
use crate::gate::{Ask, Definition, GateKey, Mode, Rule, Standing};
use crate::limits::Limits;
use crate::name::{Name, check_text};
use crate::ownership::Shard;
use crate::replicated::no_gate;
use crate::session::SessionKey;

/// The gate that a request names, found or yet to be created.
pub(super) struct Wanted {
    pub(super) gate: WantedGate,
    pub(super) mode: Mode,
    pub(super) class: u32,
}

pub(super) enum WantedGate {
    Found(GateKey),
    Implicit(Name, Shard, Definition),
}

/// What a request says apart from its gates.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    pub(super) set: bool,
    pub(super) needs_ms: Option<u64>,
    pub(super) wait_ms: Option<u64>,
    pub(super) reason: Option<&'a str>,
    pub(super) id: Option<&'a str>,
    pub(super) asynchronous: bool,
}

impl Local {
    pub(super) fn check_terms(
        &self,
        s: SessionKey,
        gates: usize,
        terms: &Terms<'_>,
    ) -> Result<(), Refusal> {
        self.check_words(terms.wait_ms, terms.reason, terms.id)?;
        let session = &self.sessions[s];
        let own = session.waits.iter().map(|w| self.waits[*w].legs.len());
        if session.holds.len() as usize + own.sum::<usize>() + gates > self.limits.holds_per_session
        {
            return Err(self.limit("holds_per_session", self.limits.holds_per_session));
        }
        if self.holds.len() + self.waiting_legs + gates > self.limits.holds {
            return Err(self.limit("holds", self.limits.holds));
        }
        Ok(())
    }

    /// Checks what can be checked without knowing the gates.
    pub(crate) fn check_words(
        &self,
        wait_ms: Option<u64>,
        reason: Option<&str>,
        id: Option<&str>,
    ) -> Result<(), Refusal> {
        check_reason(reason)?;
        if let Some(id) = id {
            check_text("ID", id, Limits::ID_BYTES)?;
        }
        let most = self.limits.wait_ms_max;
        match wait_ms {
            Some(ms) if ms > most => Err(Refusal::new(
                Word::BadArg,
                format!("WAIT {ms} is above the limit wait_ms_max of {most} milliseconds"),
            )),
            _ => Ok(()),
        }
    }

    fn limit(&self, name: &str, value: usize) -> Refusal {
        Refusal::new(
            Word::Limit,
            format!("the limit {name} of {value} is reached; give something back and try again"),
        )
    }

    pub(super) fn not_granting(&self, gate: &WantedGate) -> Refusal {
        let shard = self.shard_of(gate);
        let gate = match gate {
            WantedGate::Found(g) => &self.gates[*g].name,
            WantedGate::Implicit(name, ..) => name,
        };
        let why = match self.awaited.shuts(shard) {
            false => "the gate's fences are used up and its next number is being logged".into(),
            true => self.why_shut(gate, shard),
        };
        Refusal::new(
            Word::Unavailable,
            format!("{why}; ask with a WAIT, or try again in a moment"),
        )
    }

    /// The gate that a request names, and whether the session may ask for it at all.
    pub(super) fn find_gate(
        &self,
        s: SessionKey,
        name: &str,
        ask: Ask<'_>,
        class: Option<u32>,
        terms: &Terms<'_>,
    ) -> Result<Wanted, Refusal> {
        let Some(&g) = self.names.get(name) else {
            return self.plan_implicit(name, ask, class, terms);
        };
        let gate = &self.gates[g];
        if let Standing::Implicit { successor: Some(_) } = gate.standing {
            return Err(Refusal::new(
                Word::Busy,
                format!(
                    "gate {name} was created while its implicit forerunner is in use; try again when that is idle"
                ),
            ));
        }
        let mode = gate.definition.mode(name, gate.implicit(), ask)?;
        let class = check_request(&gate.definition, name, class, terms)?;
        if let Some(h) = self.held(g, s) {
            return Err(Refusal::new(
                Word::Held,
                format!(
                    "session {} holds gate {name} already, with fence {}",
                    self.sessions[s].id, self.holds[h].fence
                ),
            ));
        }
        let mut waits = self.sessions[s].waits.iter();
        if waits.any(|w| self.waits[*w].legs.iter().any(|leg| leg.gate == g)) {
            return Err(Refusal::new(
                Word::Busy,
                format!(
                    "session {} waits for gate {name} already",
                    self.sessions[s].id
                ),
            ));
        }
        Ok(Wanted {
            gate: WantedGate::Found(g),
            mode,
            class,
        })
    }

    fn plan_implicit(
        &self,
        name: &str,
        ask: Ask<'_>,
        class: Option<u32>,
        terms: &Terms<'_>,
    ) -> Result<Wanted, Refusal> {
        let definition = Definition::implicit(ask).ok_or_else(|| no_gate(name))?;
        let name = name_asked(name, ask)?;
        let mode = definition.mode(&name, true, ask)?;
        let class = check_request(&definition, &name, class, terms)?;
        if self.names.len() >= self.limits.gates {
            return Err(self.limit("gates", self.limits.gates));
        }
        let shard = Shard::of(&name);
        Ok(Wanted {
            gate: WantedGate::Implicit(name, shard, definition),
            mode,
            class,
        })
    }

    pub(super) fn make_gate(&mut self, gate: WantedGate) -> GateKey {
        match gate {
            WantedGate::Found(g) => g,
            WantedGate::Implicit(name, shard, definition) => {
                let standing = Standing::Implicit { successor: None };
                self.create_in(shard, name, definition, standing)
            }
        }
    }

    pub(super) fn shard_of(&self, gate: &WantedGate) -> Shard {
        match gate {
            WantedGate::Found(g) => self.gates[*g].shard,
            WantedGate::Implicit(_, shard, _) => *shard,
        }
    }

    pub(super) fn check_queues(&self, s: SessionKey, wanted: &[Wanted]) -> Result<(), Refusal> {
        if self.sessions[s].waits.len() >= self.limits.waits_per_session {
            return Err(self.limit("waits_per_session", self.limits.waits_per_session));
        }
        if self.waits.len() >= self.limits.waiters {
            return Err(self.limit("waiters", self.limits.waiters));
        }
        for wanted in wanted {
            if let WantedGate::Found(g) = wanted.gate
                && self.gates[g].queue.len() >= self.limits.waiters_per_gate
            {
                return Err(self.limit("waiters_per_gate", self.limits.waiters_per_gate));
            }
        }
        Ok(())
    }
}

/// The name that a request means: only a campaign names an election.
pub(crate) fn name_asked(name: &str, ask: Ask<'_>) -> Result<Name, Refusal> {
    match ask {
        Ask::Lead { .. } => Name::known(name),
        _ => Name::new(name),
    }
}

pub(crate) fn check_reason(reason: Option<&str>) -> Result<(), Refusal> {
    let check = |reason| check_text("REASON", reason, Limits::REASON_BYTES);
    reason.map_or(Ok(()), check)
}

/// Checks class and needs against a definition; returns the class.
fn check_request(
    definition: &Definition,
    name: &str,
    class: Option<u32>,
    terms: &Terms<'_>,
) -> Result<u32, Refusal> {
    let class = class.unwrap_or_else(|| definition.class_default());
    if class >= definition.classes {
        return Err(Refusal::new(
            Word::BadArg,
            format!(
                "gate {name} has the classes 0 to {}; {class} is none of them",
                definition.classes - 1
            ),
        ));
    }
    if let Some(needs) = terms.needs_ms {
        if definition.rule != Rule::Rooms {
            return Err(Refusal::new(
                Word::BadArg,
                format!(
                    "NEEDS is for rooms, and gate {name} is {}",
                    definition.rule.word()
                ),
            ));
        }
        let longest = [definition.stay_ms, definition.lease_ms]
            .into_iter()
            .flatten()
            .min();
        if let Some(longest) = longest.filter(|longest| needs > *longest) {
            return Err(Refusal::new(
                Word::BadArg,
                format!(
                    "NEEDS {needs} never fits gate {name}, where a stay lasts {longest} milliseconds at most"
                ),
            ));
        }
    }
    Ok(class)
}
