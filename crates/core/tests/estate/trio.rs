//! Three nodes that follow one log at once and whose clock goes on; what they send waits until it is delivered, in order on
//! every link. With it: shards that follow their use, and names whose definition is on its way.

use std::collections::{BTreeMap, VecDeque};

use testigo_core::estate::{Broken, Estate, Frame, Out, Peer, Tell};
use testigo_core::{
    Answer, Ask, Change, Claim, ClaimEnd, Command, Definition, Index, Limits, Lock, NodeId, Origin,
    Replicated, Rule, SessionId, Settled, Shard, Span, Stamp, Start, Word,
};

pub(crate) struct Trio {
    pub(crate) replicated: Replicated,
    pub(crate) estates: Vec<Estate>,
    sequences: [u64; 3],
    pub(crate) now: u64,
    frames: BTreeMap<(usize, usize), VecDeque<Frame>>,
    pub(crate) tells: VecDeque<(usize, Tell)>,
    changes: VecDeque<(usize, Change)>,
}

pub(crate) fn peer(at: usize) -> Peer {
    (NodeId(at as u64 + 1), Start(1))
}

/// The session of a connection to a node.
pub(crate) fn client(at: usize, connection: u64) -> SessionId {
    SessionId::of_connection(peer(at).0, Start(1), connection)
}

impl Trio {
    pub(crate) fn new(broken: Option<Broken>) -> Trio {
        let replicated = Replicated::new(Limits::default());
        let estates = (0..3).map(|at| {
            let mut estate = Estate::new(0, peer(at), 3_000, Limits::default(), 1, &replicated);
            estate.broken = broken;
            estate
        });
        let mut trio = Trio {
            estates: estates.collect(),
            replicated,
            sequences: [0; 3],
            now: 0,
            frames: BTreeMap::new(),
            tells: VecDeque::new(),
            changes: VecDeque::new(),
        };
        let members = (0..3).map(peer).collect();
        let view = Change::View {
            before: Index(0),
            members,
            generation: 0,
        };
        trio.log(0, view);
        trio.pass(2_000);
        trio
    }

    /// Time passes, with leases.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += ms;
        let index = self.replicated.index();
        for at in 0..3 {
            let lease = self.estates[at].lease();
            if let Some(ask) = lease.due(self.now) {
                lease.answer(ask, index);
                lease.applied(index, true);
            }
            let mut out = Out::default();
            self.estates[at].tick(self.now, &self.replicated, &mut out);
            self.collect(at, out);
        }
    }

    /// Everybody applies a change that a node has submitted, unless the log refuses it.
    pub(crate) fn log(&mut self, by: usize, change: Change) -> bool {
        self.sequences[by] += 1;
        let (node, start) = peer(by);
        let stamp = Stamp {
            at: 0,
            origin: Some(Origin {
                node,
                start,
                sequence: self.sequences[by],
            }),
            term: 0,
        };
        let Ok(applied) = self.replicated.apply(stamp, &change) else {
            return false;
        };
        for at in 0..3 {
            let mut out = Out::default();
            self.estates[at].follow(self.now, &self.replicated, &applied, &mut out);
            self.collect(at, out);
        }
        true
    }

    pub(crate) fn collect(&mut self, at: usize, out: Out) {
        self.tells
            .extend(out.tells.into_iter().map(|tell| (at, tell)));
        self.changes
            .extend(out.changes.into_iter().map(|change| (at, change)));
        for (to, frame) in self.estates[at].take_frames() {
            let link = (at, to.0.0 as usize - 1);
            self.frames.entry(link).or_default().push_back(frame);
        }
    }

    pub(crate) fn ask(
        &mut self,
        at: usize,
        session: SessionId,
        command: &Command<'_>,
    ) -> Result<Answer, Word> {
        let mut out = Out::default();
        let answer = self.estates[at].ask(self.now, &self.replicated, session, command, &mut out);
        self.collect(at, out);
        answer.map_err(|refusal| refusal.word)
    }

    /// The links on which something waits.
    pub(crate) fn busy_links(&self) -> Vec<(usize, usize)> {
        let busy = self.frames.iter().filter(|(_, frames)| !frames.is_empty());
        busy.map(|(link, _)| *link).collect()
    }

    pub(crate) fn deliver(&mut self, link: (usize, usize)) {
        let frame = self.frames.get_mut(&link).and_then(VecDeque::pop_front);
        if let Some(frame) = frame {
            let (from, to) = (peer(link.0), link.1);
            let mut out = Out::default();
            self.estates[to].receive(self.now, &self.replicated, from, frame, &mut out);
            self.collect(to, out);
        }
    }

    /// Everything arrives, and what the nodes want logged is logged. Gives how many titles there were.
    pub(crate) fn deliver_all(&mut self) -> u64 {
        let mut titles = 0;
        loop {
            if let Some(link) = self.busy_links().first() {
                self.deliver(*link);
            } else if let Some((by, change)) = self.changes.pop_front() {
                let title = matches!(change, Change::Titles { .. });
                titles += u64::from(self.log(by, change) && title);
            } else {
                return titles;
            }
        }
    }

    pub(crate) fn owner(&self, gate: &str) -> usize {
        let title = self.replicated.ownership().title(Shard::of(gate));
        title.expect("a view gave it").owner.0 as usize - 1
    }

    /// Makes a node the owner of a gate.
    pub(crate) fn give(&mut self, gate: &str, to: usize) {
        self.give_shard(Shard::of(gate), to);
    }

    /// Makes a node the owner of a shard.
    pub(crate) fn give_shard(&mut self, shard: Shard, to: usize) {
        let title = self.replicated.ownership().title(shard);
        let title = title.expect("a view gave it");
        let (taker, start) = peer(to);
        if title.owner != taker {
            let shards = vec![Span::of(shard, title.number)];
            let titles = Change::Titles {
                shards,
                taker,
                start,
            };
            self.log(title.owner.0 as usize - 1, titles);
        }
    }

    /// How many are inside, by the books of the owner.
    fn inside(&self, gate: &str) -> usize {
        let local = self.estates[self.owner(gate)].local();
        local.gate(gate).map_or(0, |gate| gate.holders.len())
    }
}

pub(crate) fn lock(gate: &str) -> Command<'_> {
    Command::Lock(Lock {
        gate,
        ..Lock::default()
    })
}

/// How many times a shard moves when two nodes use it in turns of 16 for three minutes.
fn moves_in_turns(broken: Option<Broken>) -> u64 {
    let gate = "deploy";
    let mut trio = Trio::new(broken);
    trio.give(gate, 0);
    trio.deliver_all();
    for at in 1..3 {
        trio.ask(at, client(at, 1), &Command::Connect).unwrap();
    }
    let mut moves = 0;
    while trio.now < 180_000 {
        for at in 1..3 {
            for _ in 0..16 {
                trio.tells.clear();
                let answer = trio.ask(at, client(at, 1), &lock(gate)).unwrap();
                moves += trio.deliver_all();
                let granted = |(_, tell): &(usize, Tell)| {
                    let Tell::Answered { answer, .. } = tell else {
                        return false;
                    };
                    matches!(answer, Ok(Answer::Settled(Settled::Entered(_))))
                };
                let here = matches!(answer, Answer::Settled(Settled::Entered(_)));
                assert!(
                    here || trio.tells.iter().any(granted),
                    "nobody else wants it"
                );
                let unlock = Command::Unlock { gate, fence: None };
                trio.ask(at, client(at, 1), &unlock).unwrap();
                moves += trio.deliver_all();
            }
            trio.pass(100);
            moves += trio.deliver_all();
        }
    }
    moves
}

#[test]
fn a_shard_follows_its_use_and_does_not_flap() {
    // It stays for 1, 2, 4 … 60 s on either side.
    let moves = moves_in_turns(None);
    assert!((3..=16).contains(&moves), "{moves} moves in three minutes");
    let moves = moves_in_turns(Some(Broken::NoStay));
    assert!(moves > 100, "{moves} moves, and nothing holds them up");
}

#[test]
fn nothing_is_handed_over_while_a_link_is_silent() {
    let gate = "deploy";
    let mut trio = Trio::new(None);
    trio.give(gate, 0);
    trio.deliver_all();
    let shards = [Shard::of(gate)];
    trio.estates[0].link_silent(peer(2), true);
    let handed = |trio: &Trio| trio.estates[0].hand_over(&trio.replicated, &shards, peer(1));
    assert!(handed(&trio).is_none());
    let now = trio.now;
    assert!(
        trio.estates[0]
            .hand_over_all(now, &trio.replicated)
            .is_empty()
    );
    trio.estates[0].link_silent(peer(2), false);
    assert!(handed(&trio).is_some());
}

#[test]
fn a_node_that_stops_hands_everything_over_evenly() {
    let mut trio = Trio::new(None);
    trio.deliver_all();
    let now = trio.now;
    let changes = trio.estates[0].hand_over_all(now, &trio.replicated);
    assert!(!changes.is_empty());
    for change in changes {
        assert!(trio.log(0, change), "it rests on what is so");
    }
    trio.deliver_all();
    assert!(trio.estates[0].owns_nothing(&trio.replicated));
    let mut owned = [0; 3];
    for (shards, title) in trio.replicated.ownership().runs() {
        owned[title.owner.0 as usize - 1] += shards.len();
    }
    assert_eq!(owned, [0, 32_768, 32_768]);
    let again = trio.estates[0].hand_over_all(now, &trio.replicated);
    assert!(again.is_empty());
}

#[test]
fn shards_are_given_to_whoever_needs_them() {
    let gate = "deploy";
    let mut trio = Trio::new(None);
    trio.give(gate, 0);
    trio.deliver_all();
    let shards = [Shard::of(gate)];
    let now = trio.now;
    let wanted = |trio: &mut Trio, now| {
        let Trio {
            estates,
            replicated,
            ..
        } = trio;
        estates[0].wanted_shards(now, replicated, peer(1), &shards)
    };
    trio.now = now + 100;
    let change = wanted(&mut trio, now + 100).expect("nothing speaks against it");
    assert!(wanted(&mut trio, now + 100).is_none(), "it is on its way");
    assert!(trio.log(0, change));
    trio.deliver_all();
    assert_eq!(trio.owner(gate), 1);
    assert!(wanted(&mut trio, now + 200).is_none(), "it is another's");
}

/// How many are inside a gate in the moment in which it is deleted, if somebody asks for it just before.
fn inside_when_deleted(broken: Option<Broken>) -> usize {
    let gate = "deploy";
    let mut trio = Trio::new(broken);
    trio.give(gate, 0);
    trio.deliver_all();
    let name = testigo_core::Name::new(gate).unwrap();
    let number = trio.replicated.gate_number(gate);
    let create = Change::CreateGate {
        gate: name.clone(),
        definition: Definition::new(Rule::Permits(2)),
        number,
    };
    assert!(trio.log(0, create));
    let delete = Change::DeleteGate { gate: name, number };
    for at in 1..3 {
        trio.ask(at, client(at, 1), &Command::Connect).unwrap();
    }
    // In use it is not deleted.
    trio.ask(2, client(2, 1), &lock(gate)).unwrap();
    trio.deliver_all();
    let now = trio.now;
    let busy = trio.estates[0].reserve_name(now, &trio.replicated, &delete, &mut Out::default());
    assert_eq!(busy.unwrap_err().word, Word::Busy);
    let unlock = Command::Unlock { gate, fence: None };
    trio.ask(2, client(2, 1), &unlock).unwrap();
    trio.deliver_all();
    let reserved =
        trio.estates[0].reserve_name(now, &trio.replicated, &delete, &mut Out::default());
    reserved.expect("it is idle");
    trio.ask(1, client(1, 1), &lock(gate)).unwrap();
    trio.deliver_all();
    let inside = trio.inside(gate);
    assert!(trio.log(0, delete.clone()));
    let mut out = Out::default();
    trio.estates[0].release_name(now, &trio.replicated, &delete, &mut out);
    trio.collect(0, out);
    trio.deliver_all();
    assert_eq!(trio.inside(gate), 1, "whoever asked is served afterwards");
    inside
}

/// Case K, delete in use.
#[test]
fn a_gate_is_not_granted_while_its_end_is_on_its_way() {
    assert_eq!(inside_when_deleted(None), 0);
    assert_eq!(inside_when_deleted(Some(Broken::DeleteInUse)), 1);
}

/// The first node owns a gate, and is the home of a session.
fn with_session(gate: &str) -> (Trio, SessionId) {
    let mut trio = Trio::new(None);
    trio.give(gate, 0);
    trio.deliver_all();
    let session = SessionId::opened(7);
    let open = Change::OpenSession {
        session,
        ttl_ms: 60_000,
        label: None,
        user: None,
    };
    assert!(trio.log(0, open));
    (trio, session)
}

/// Each claim has its own answer, also behind one that cannot mean anything.
#[test]
fn claims_are_answered_in_their_order_whatever_they_mean() {
    let gate = "deploy";
    let (mut trio, session) = with_session(gate);
    let Ok(Answer::Settled(Settled::Entered(grant))) = trio.ask(0, session, &lock(gate)) else {
        panic!("nobody else wants it");
    };
    let claim = |gate, ask| Claim {
        gate,
        fence: grant.fence,
        ask,
        proven: true,
        ..Claim::default()
    };
    let claims = [
        claim("no-such-gate", Ask::Permits(2)),
        claim("other", Ask::Plain),
        claim("two words", Ask::Plain),
        claim(gate, Ask::Plain),
    ];
    let mut out = Out::default();
    let now = trio.now;
    trio.estates[1].resume(now, &trio.replicated, session, &claims, None, &mut out);
    trio.collect(1, out);
    trio.deliver_all();
    let answer = trio.tells.iter().find_map(|(at, tell)| match tell {
        Tell::Answered { answer, .. } if *at == 1 => answer.clone().ok(),
        _ => None,
    });
    let Some(Answer::Resumed(resumed)) = answer else {
        panic!("it is answered");
    };
    let [no_gate, other, no_name, held] = &resumed.claims[..] else {
        panic!("{resumed:?}");
    };
    assert!(matches!(no_gate, ClaimEnd::Refused(why) if why.contains("no-such-gate")));
    assert!(matches!(no_name, ClaimEnd::Refused(why) if why.contains("two words")));
    assert_eq!((other, held), (&ClaimEnd::Lost, &ClaimEnd::Held));
}

/// A node that slept through its lease hears from the log that a holder's session is over: the next one in its books is not
/// let in, because another node may own the gate by now.
#[test]
fn what_the_log_frees_is_granted_by_nobody_without_a_lease() {
    let gate = "deploy";
    let (mut trio, session) = with_session(gate);
    let home = trio.replicated.index();
    trio.ask(0, session, &lock(gate)).unwrap();
    trio.ask(1, client(1, 1), &Command::Connect).unwrap();
    trio.ask(1, client(1, 1), &lock(gate)).unwrap();
    trio.deliver_all();
    assert_eq!(trio.inside(gate), 1);
    let close = Change::CloseSession { session, home };
    trio.now += 5_000;
    assert!(trio.log(0, close));
    assert_eq!(trio.inside(gate), 0);
    assert!(
        !trio.busy_links().contains(&(0, 1)),
        "nobody is told a grant"
    );
}

/// What others have sent meanwhile does not wait for the next thing that happens.
#[test]
fn a_node_that_has_got_its_lease_is_due_at_once() {
    let mut trio = Trio::new(None);
    trio.now += 5_000;
    let (now, estate) = (trio.now, &mut trio.estates[1]);
    estate.tick(now, &trio.replicated, &mut Out::default());
    let ask = estate.lease().due(now).expect("it is time");
    assert!(estate.next_deadline() > Some(now), "it may do nothing");
    estate.leased(ask, &trio.replicated);
    assert_eq!(estate.next_deadline(), Some(now));
    estate.tick(now, &trio.replicated, &mut Out::default());
    assert!(estate.next_deadline() > Some(now), "it is done");
}
