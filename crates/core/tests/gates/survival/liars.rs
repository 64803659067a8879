//! Crashes among liars. Sessions come back with what they held, proven; with what they never had, without proof; and with
//! what they had once and gave back, proven by an old grant. Whoever was inside stays inside. What becomes of each
//! claim is compared with a plain list of those inside, and that list, told to be wrong, is what the monitor must find.

use std::collections::BTreeMap;

use super::super::door::Door;
use super::super::model::random::Random;
use super::{Grant, Node, ask};
use testigo_core::monitor::{NothingStolen, together};
use testigo_core::*;

/// Somebody inside, in order of entry.
#[derive(Clone, Debug, PartialEq)]
struct Inside {
    session: SessionId,
    mode: Mode,
    fence: Fence,
    proven: bool,
}

/// What a specimen does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Flaw {
    None,
    /// The higher fence wins, whoever says so.
    BelievesFences,
    /// A claim without proof conflicts with nobody when only the capacity is short.
    MakesRoomForAnybody,
    /// The proven claim wins, whatever its fence.
    LastProofWins,
}

/// Those inside each gate, and what becomes of a claim: the rules as they are explained.
struct Plain {
    gates: BTreeMap<Name, Definition>,
    inside: BTreeMap<Name, Vec<Inside>>,
    flaw: Flaw,
    events: Vec<Event>,
}

impl Plain {
    fn new(gates: BTreeMap<Name, Definition>, flaw: Flaw) -> Plain {
        Plain {
            gates,
            inside: BTreeMap::new(),
            flaw,
            events: Vec::new(),
        }
    }

    /// All claims of one session: the proven ones before the others, the latest grant first.
    fn resume(&mut self, claims: &[(Name, Inside)]) -> Vec<ClaimEnd> {
        let mut turns: Vec<usize> = (0..claims.len()).collect();
        turns.sort_by_key(|at| match &claims[*at].1 {
            claim if claim.proven => (0, u64::MAX - claim.fence.0),
            _ => (1, 0),
        });
        let mut ends = vec![ClaimEnd::Lost; claims.len()];
        for at in turns {
            let (gate, claim) = &claims[at];
            ends[at] = self.claim(gate, claim.clone());
        }
        ends
    }

    fn claim(&mut self, gate: &Name, claimer: Inside) -> ClaimEnd {
        let implicit = || Definition::new(Rule::Shared);
        let definition = self.gates.get(gate).cloned().unwrap_or_else(implicit);
        let inside = self.inside.entry(gate.clone()).or_default();
        let weaker = |other: &Inside| match self.flaw {
            Flaw::BelievesFences => other.fence < claimer.fence,
            Flaw::MakesRoomForAnybody if !claimer.proven => !other.mode.conflicts(&claimer.mode),
            Flaw::LastProofWins => claimer.proven,
            _ => claimer.proven && (!other.proven || other.fence < claimer.fence),
        };
        let fits = |others: &[&Inside]| {
            let own = others.iter().any(|o| o.session == claimer.session);
            let mut modes: Vec<&Mode> = others.iter().map(|other| &other.mode).collect();
            modes.push(&claimer.mode);
            !own && together(&definition, &modes)
        };
        let strong: Vec<&Inside> = inside.iter().filter(|other| !weaker(other)).collect();
        if !fits(&strong) {
            let known = |o: &Inside| o.session == claimer.session && o.fence == claimer.fence;
            return match inside.iter().any(known) {
                true => ClaimEnd::Held,
                false => ClaimEnd::Lost,
            };
        }
        let rival = |other: &Inside| {
            other.session == claimer.session || other.mode.conflicts(&claimer.mode)
        };
        let mut weak: Vec<Inside> = inside.iter().rev().filter(|o| weaker(o)).cloned().collect();
        // Of those without proof the latest leaves first, of the others the lowest fence; rivals leave in any case.
        weak.sort_by_key(|other| match other.proven {
            false => (!rival(other), false, 0),
            true => (!rival(other), true, other.fence.0),
        });
        for other in weak {
            let all: Vec<&Inside> = inside.iter().collect();
            if fits(&all) {
                break;
            }
            inside.retain(|one| one.session != other.session);
            self.events.push(Event::Left {
                session: other.session,
                gate: gate.clone(),
                fence: other.fence,
            });
            self.events.push(Event::Lost {
                session: other.session,
                gate: gate.clone(),
                fence: other.fence,
                loss: Loss::Claim,
            });
        }
        self.events.push(Event::Entered {
            session: claimer.session,
            gate: gate.clone(),
            mode: claimer.mode.clone(),
            class: 0,
            fence: claimer.fence,
            turn: Turn::Claimed {
                proven: claimer.proven,
            },
            ticket: None,
            together: 1,
        });
        inside.push(claimer);
        ClaimEnd::Held
    }
}

/// What a session claims: what it held, and what a liar would add.
fn claims(node: &mut Node, held: &[Grant], session: SessionId) -> Vec<(Name, Inside)> {
    let claimed = |(gate, _, mode, fence): Grant, proven| {
        let inside = Inside {
            session,
            mode,
            fence,
            proven,
        };
        (gate, inside)
    };
    let mut mine: Vec<Grant> = held.to_vec();
    mine.retain(|grant| grant.1 == session);
    let mut claims: Vec<_> = mine
        .iter()
        .cloned()
        .map(|grant| claimed(grant, true))
        .collect();
    let free = |grant: &Grant| mine.iter().all(|(gate, ..)| *gate != grant.0);
    let pool: Vec<Grant> = node.grants.iter().filter(|g| free(g)).cloned().collect();
    for _ in 0..node.random.below(4) {
        if pool.is_empty() {
            break;
        }
        let (gate, holder, mode, fence) =
            pool[node.random.below(pool.len() as u64) as usize].clone();
        // Where several fit in, the later of two grants need not be the one that is still inside: there an old proof can
        // push out who entered before it (docs/guarantees.md).
        let several = |d: &Definition| matches!(d.rule, Rule::Permits(_)) || d.capacity.is_some();
        if holder == session && !node.definitions().get(&gate).is_some_and(several) {
            // Whether it was given back or lost, its proof stays good.
            claims.push(claimed((gate, holder, mode, fence), true));
            continue;
        }
        let highest = Fence(node.local.floor(&gate).0 - 1);
        let fence = node.random.pick(&[fence, highest, Fence(0)]);
        claims.push(claimed((gate, holder, mode, fence), false));
    }
    shuffle(&mut node.random, &mut claims);
    claims
}

fn shuffle<T>(random: &mut Random, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, random.below(at as u64 + 1) as usize);
    }
}

impl Node {
    /// The definitions of the created gates.
    fn definitions(&self) -> BTreeMap<Name, Definition> {
        let gates = self.replicated.gates();
        gates.map(|(name, d)| (name.clone(), d.clone())).collect()
    }

    /// `kill -9`, and everybody comes back, honest or not. Gives all claims in their order.
    fn crash_among_liars(&mut self) -> Vec<(Name, Inside)> {
        let held = self.granted();
        let mut plain = Plain::new(self.definitions(), Flaw::None);
        let mut all = Vec::new();
        for session in self.kill() {
            let claims = claims(self, &held, session);
            let said: Vec<Claim<'_>> = claims
                .iter()
                .map(|(gate, claim)| Claim {
                    gate,
                    fence: claim.fence,
                    ask: ask(&claim.mode),
                    proven: claim.proven,
                    ..Claim::default()
                })
                .collect();
            let resumed = self.resume(session, &said);
            assert_eq!(resumed.claims, plain.resume(&claims), "{claims:?}");
            for ((gate, claim), end) in claims.iter().zip(&resumed.claims) {
                let held = resumed.holds.contains(&(gate.clone(), claim.fence));
                assert!(held || *end != ClaimEnd::Held, "{gate}: {claims:?}");
            }
            self.compare(&plain);
            self.check();
            all.extend(claims);
        }
        assert!(!self.local.recovering());
        let inside = self.inside();
        for hold in &held {
            assert!(inside.contains(hold), "{hold:?} was taken: {all:?}");
        }
        let lie = |(gate, session, _, fence): &Grant| {
            let honest = |h: &Grant| h.0 == *gate && h.1 == *session;
            *fence < self.local.floor(gate) && !held.iter().any(honest)
        };
        self.lies = inside.into_iter().filter(lie).collect();
        all
    }

    /// Who is inside by a grant, and not by a lie after an earlier crash.
    fn granted(&self) -> Vec<Grant> {
        let mut inside = self.inside();
        inside.retain(|hold| !self.lies.contains(hold));
        inside
    }

    fn compare(&self, plain: &Plain) {
        for (gate, inside) in &plain.inside {
            let holders = self
                .local
                .gate(gate)
                .map_or(Vec::new(), |view| view.holders);
            let holders: Vec<Inside> = holders
                .into_iter()
                .map(|holder| Inside {
                    session: holder.session,
                    mode: holder.mode,
                    fence: holder.fence,
                    proven: holder.proven,
                })
                .collect();
            // The last resume may have ended the recovery, so that others came in.
            if self.local.recovering() {
                assert_eq!(&holders, inside, "{gate}");
            }
        }
    }
}

#[test]
fn nobody_loses_what_it_held_to_a_liar() {
    let (mut unproven, mut stale) = (0, 0);
    for seed in 0..1_500 {
        let mut node = Node::new(seed, Door::default());
        for _ in 0..3 {
            node.live(30);
            let held = node.granted();
            let claims = node.crash_among_liars();
            unproven += claims.iter().filter(|(_, claim)| !claim.proven).count();
            let proven = claims.iter().filter(|(_, claim)| claim.proven).count();
            stale += proven - held.len();
        }
        node.live(30);
    }
    assert!(unproven > 5_000 && stale > 2_000, "{unproven} {stale}");
}

/// In how many of 300 crashes the monitor finds a flaw.
fn found(flaw: Flaw) -> usize {
    let broken = |seed: u64| {
        let mut node = Node::new(seed, Door::default());
        node.live(40);
        let definitions = node.definitions();
        let claims = node.crash_among_liars();
        let mut plain = Plain::new(definitions, flaw);
        let mut monitor = NothingStolen::default();
        claims.into_iter().any(|(gate, claim)| {
            plain.claim(&gate, claim);
            monitor.saw(&std::mem::take(&mut plain.events)).is_err()
        })
    };
    (0..300).filter(|seed| broken(*seed)).count()
}

#[test]
fn the_plain_rules_are_not_accused() {
    assert_eq!(found(Flaw::None), 0);
}

#[test]
fn a_forged_fence_that_drives_out_a_holder_is_found() {
    assert!(found(Flaw::BelievesFences) > 50);
}

#[test]
fn room_made_for_a_claim_without_proof_is_found() {
    assert!(found(Flaw::MakesRoomForAnybody) > 5);
}

#[test]
fn an_old_grant_that_drives_out_a_later_one_is_found() {
    assert!(found(Flaw::LastProofWins) > 5);
}

#[test]
fn proven_claims_find_room_whatever_others_claim_and_wait_for() {
    let limits = Limits {
        gates: 2,
        holds: 2,
        ..Limits::default()
    };
    let mut replicated = Replicated::new(limits.clone());
    let [own, other] = [1, 2].map(SessionId::opened);
    let open = |session| Change::OpenSession {
        session,
        ttl_ms: 10_000,
        label: None,
        user: None,
    };
    let view = super::next_start(&replicated);
    for change in [view, open(own), open(other)] {
        let _ = replicated.apply(0, &change).unwrap();
    }
    let view = super::next_start(&replicated);
    let _ = replicated.apply(0, &view).unwrap();
    let mut local = Local::start(0, limits, 0, &replicated, None);
    let claim = |gate, proven| Claim {
        gate,
        fence: Fence(1),
        ask: Ask::Plain,
        proven,
        ..Claim::default()
    };
    let mut claims = |session, claims: &[Claim<'_>]| {
        let claims = claims.into();
        let resume = Command::Resume { claims };
        match local.apply(0, &replicated, session, &resume, &mut Vec::new()) {
            Ok(Answer::Resumed(resumed)) => resumed.claims,
            other => panic!("{other:?}"),
        }
    };
    let lies = claims(other, &["a", "b", "c"].map(|gate| claim(gate, false)));
    assert_eq!(lies[..2], [ClaimEnd::Held, ClaimEnd::Held]);
    assert!(matches!(lies[2], ClaimEnd::Refused(_)));
    let held = claims(own, &["x", "y", "z"].map(|gate| claim(gate, true)));
    assert_eq!(held[..2], [ClaimEnd::Held, ClaimEnd::Held]);
    assert!(matches!(held[2], ClaimEnd::Refused(_)));
}
