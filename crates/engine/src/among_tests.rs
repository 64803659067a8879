//! The log thread in a group, with threads as on a node: logs apply each other's entries, and what one start says to another
//! waits for no disk.

use super::*;
use crate::error::DiskError;
use crate::members::MemberError;
use crate::setup::Setup;
use crate::simulated::Disk;
use crate::store::{Change, Store};
use std::sync::mpsc::{self, Receiver};

/// A wire between logs in one process: a thread per receiver, as with sockets.
#[derive(Clone, Default)]
struct Wires(Arc<Mutex<Vec<Far>>>);

/// The far end of a wire. It takes frames with the number of their sender.
type Far = mpsc::Sender<(u64, Bytes)>;

struct Wire {
    from: u64,
    wires: Wires,
}

impl Sends for Wire {
    fn send(&mut self, to: u64, frame: Bytes) {
        let wires = self.wires.0.lock().unwrap();
        if let Some(wire) = wires.get(to as usize - 1) {
            let _ = wire.send((self.from, frame));
        }
    }
}

/// A store that waits at every flush until it is released.
struct Stalls {
    store: Box<dyn Store>,
    stalled: mpsc::Sender<()>,
    go_on: Mutex<Receiver<()>>,
}

impl Store for Stalls {
    fn commit(&mut self, change: Change) -> Result<(), DiskError> {
        if change.sync {
            self.stalled.send(()).unwrap();
            // Nobody holds it up after the end of the test.
            let _ = self.go_on.get_mut().unwrap().recv();
        }
        self.store.commit(change)
    }
}

struct Member {
    log: LogThread,
    deliveries: Receiver<Delivery>,
    own: Peer,
}

impl Member {
    /// Waits for the delivery that `is_it` accepts.
    fn wait_for<T>(&self, mut is_it: impl FnMut(Delivery) -> Option<T>) -> T {
        let patience = Duration::from_secs(60);
        loop {
            let said = self.deliveries.recv_timeout(patience).expect("it is said");
            if let Some(it) = is_it(said) {
                return it;
            }
        }
    }
}

fn join_in(disk: &Disk, wires: &Wires, stalls: Option<(mpsc::Sender<()>, Receiver<()>)>) -> Member {
    let (send, heard) = mpsc::channel();
    let node = {
        let mut wires = wires.0.lock().unwrap();
        wires.push(send);
        wires.len() as u64
    };
    let setup = Setup {
        node,
        joins: node > 1,
        seed: node,
        ..Setup::default()
    };
    let mut engine = disk.open(setup).unwrap().engine;
    let own = engine.own();
    if let Some((stalled, go_on)) = stalls {
        engine.store = Box::new(Stalls {
            store: engine.store,
            stalled,
            go_on: Mutex::new(go_on),
        });
    }
    let (said, deliveries) = mpsc::channel();
    let deliver = move |delivery| drop(said.send(delivery));
    let wire = Wire {
        from: node,
        wires: wires.clone(),
    };
    let log = LogThread::start_among(engine, Box::new(wire), deliver).unwrap();
    let hearer = log.hearer();
    thread::spawn(move || {
        for (from, frame) in heard {
            hearer.hear(from, frame);
        }
    });
    Member {
        log,
        deliveries,
        own,
    }
}

/// A founder, and a second node that it has made a voter.
fn two(stalls: Option<(mpsc::Sender<()>, Receiver<()>)>) -> [Member; 2] {
    let wires = Wires::default();
    let founder = join_in(&Disk::default(), &wires, None);
    let newcomer = join_in(&Disk::default(), &wires, stalls);
    add_learner(&founder);
    [founder, newcomer]
}

fn add_learner(founder: &Member) {
    founder.log.change_members(1, MemberChange::AddLearner(2));
    founder.log.begin();
    founder.wait_for(|said| match said {
        Delivery::MembersChanged { tag: 1, result } => {
            result.unwrap();
            Some(())
        }
        _ => None,
    });
}

fn promote(founder: &Member) {
    let ask = || {
        founder.log.change_members(2, MemberChange::Promote(2));
        founder.log.begin();
    };
    ask();
    founder.wait_for(|said| match said {
        Delivery::Standing(standing) => (standing.members.voters == [1, 2]).then_some(()),
        Delivery::MembersChanged { result, .. } => match result {
            Ok(()) => None,
            Err(MemberError::UnderWay | MemberError::Behind(..) | MemberError::NoMember(_)) => {
                ask();
                None
            }
            Err(error) => panic!("{error}"),
        },
        _ => None,
    });
}

fn wait_for_entry(member: &Member, data: &[u8]) -> Option<u64> {
    member.wait_for(|said| match said {
        Delivery::Committed { entries, .. } => {
            let mut entries = entries.into_iter();
            entries.find_map(|applied| (applied.entry.data == data).then_some(applied.tag))
        }
        _ => None,
    })
}

#[test]
fn members_apply_each_others_entries_and_read_what_is_applied() {
    let [founder, newcomer] = two(None);
    promote(&founder);
    newcomer.log.submit(7, b"of the newcomer").unwrap();
    newcomer.log.begin();
    assert_eq!(wait_for_entry(&founder, b"of the newcomer"), None);
    assert_eq!(wait_for_entry(&newcomer, b"of the newcomer"), Some(7));
    for (tag, member) in [(8, &newcomer), (9, &founder)] {
        member.log.ask_read(tag);
        member.log.begin();
        let index = member.wait_for(|said| match said {
            Delivery::Read { tag: read, index } => (read == tag).then_some(index),
            _ => None,
        });
        assert!(index >= 3, "{index}");
        if member.own.node == 2 {
            founder.wait_for(|said| match said {
                Delivery::Answered(peers) => peers.contains(&newcomer.own).then_some(()),
                _ => None,
            });
        }
    }
}

#[test]
fn the_next_start_knows_all_that_a_member_has_applied() {
    let (wires, disks) = (Wires::default(), [Disk::default(), Disk::default()]);
    let founder = join_in(&disks[0], &wires, None);
    let newcomer = join_in(&disks[1], &wires, None);
    add_learner(&founder);
    promote(&founder);
    newcomer.log.submit(7, b"of the newcomer").unwrap();
    newcomer.log.begin();
    for member in [&founder, &newcomer] {
        wait_for_entry(member, b"of the newcomer");
    }
    for (node, member) in [(1, founder), (2, newcomer)] {
        member.log.close(None).unwrap();
        let setup = Setup {
            node,
            joins: node > 1,
            ..Setup::default()
        };
        let opened = disks[node as usize - 1].open(setup).unwrap();
        let mut committed = opened.committed.iter();
        let known = committed.any(|entry| *entry.data == *b"of the newcomer");
        assert!(known, "node {node} has applied it");
    }
}

#[test]
fn a_leader_that_refuses_a_start_answers_it_when_it_is_allowed_again() {
    let [founder, newcomer] = two(None);
    promote(&founder);
    founder.log.refuse_reads(5, newcomer.own);
    founder.log.begin();
    founder.wait_for(|said| match said {
        Delivery::ReadsRefused { peer, tag, .. } => {
            (peer == newcomer.own && tag == 5).then_some(())
        }
        _ => None,
    });
    newcomer.log.ask_read(1);
    newcomer.log.begin();
    founder.wait_for(|said| match said {
        Delivery::Asked(peers) => peers.contains(&newcomer.own).then_some(()),
        Delivery::Answered(peers) => {
            assert!(!peers.contains(&newcomer.own), "it was refused");
            None
        }
        _ => None,
    });
    founder.log.allow_reads(newcomer.own);
    founder.log.begin();
    newcomer.wait_for(|said| matches!(said, Delivery::Read { tag: 1, .. }).then_some(()));
}

#[test]
fn what_one_start_says_to_another_waits_for_no_disk() {
    let (stalled, is_stalled) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    let [founder, newcomer] = two(Some((stalled, goes_on)));
    // Its disk is at the first entry that it was sent, and stays there.
    is_stalled.recv_timeout(Duration::from_secs(60)).unwrap();
    for nth in 0..3u8 {
        for (from, to) in [(&founder, &newcomer), (&newcomer, &founder)] {
            from.log.say(to.own, vec![nth]);
            from.log.begin();
            let received = to.wait_for(|said| match said {
                Delivery::Received(received) => Some(received),
                _ => None,
            });
            assert_eq!(received.len(), 1);
            assert_eq!(
                (received[0].from, &received[0].payload[..]),
                (from.own, &[nth][..])
            );
        }
    }
    drop(go_on);
}
