//! Corosync's closed process groups: one thread talks to the daemon, passes what it says to the house, and multicasts for the
//! house.

use std::cell::RefCell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rust_corosync::cpg::{self, Address, Guarantee, Handle, Model1Data, Model1Flags, ModelData};
use rust_corosync::{CsError, DispatchFlags, NodeId};
use testigo_core::pool::{GroupEvent, Process};

use crate::config::CorosyncConfig;
use crate::house::Multicast;
use crate::shared::Shared;

/// The daemon has something to say.
const DAEMON: Token = Token(0);
/// The house has something to say.
const HOUSE: Token = Token(1);
/// How often it looks even if nothing wakes it.
const LOOK: Duration = Duration::from_millis(100);
/// How long it waits when the daemon is busy.
const BUSY: Duration = Duration::from_millis(2);
/// How long it waits before it looks for the daemon again.
const AGAIN: Duration = Duration::from_millis(100);

/// Why Corosync cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CorosyncError {
    /// No daemon answers.
    #[error("no daemon answers on this machine ({0}); start it first: systemctl start corosync")]
    Unreachable(CsError),
    /// This node is not among the configured members.
    #[error("this machine is node {0}, and --corosync-members does not name it")]
    NotMember(u32),
    /// The system refused what it needs.
    #[error("the system refused what a group needs: {0}")]
    System(#[from] io::Error),
}

/// A connection to the daemon that has not joined the group.
pub(crate) struct Link {
    handle: Handle,
    own: Process,
    group: String,
    poll: Poll,
    outbox: Arc<Outbox>,
}

/// What to multicast, and how to wake the thread that does.
#[derive(Debug)]
struct Outbox {
    messages: Mutex<Vec<Vec<u8>>>,
    bell: Waker,
}

impl Outbox {
    fn take(&self) -> Vec<Vec<u8>> {
        let mut all = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut all)
    }

    fn ring(&self) {
        if let Err(error) = self.bell.wake() {
            log::error!("the thread of the group cannot be woken: {error}");
        }
    }
}

impl Multicast for Outbox {
    fn multicast(&self, messages: Vec<Vec<u8>>) {
        let mut all = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(messages);
        drop(all);
        self.ring();
    }
}

/// The thread that talks to the daemon. Dropping it leaves the group.
#[derive(Debug)]
pub(crate) struct Corosync {
    stops: Arc<AtomicBool>,
    outbox: Arc<Outbox>,
    thread: Option<JoinHandle<()>>,
}

thread_local! {
    /// What the daemon has said in this thread's last dispatch. Its library calls back plain functions.
    static HEARD: RefCell<Vec<GroupEvent>> = const { RefCell::new(Vec::new()) };
}

fn heard(event: GroupEvent) {
    HEARD.with_borrow_mut(|heard| heard.push(event));
}

fn delivered(_: &Handle, _: String, node: NodeId, pid: u32, message: &[u8], _: usize) {
    let (from, bytes) = (process(node, pid), message.to_vec());
    heard(GroupEvent::Message { from, bytes });
}

fn changed(_: &Handle, _: &str, members: Vec<Address>, left: Vec<Address>, _: Vec<Address>) {
    let all = |list: &[Address], fits: fn(&cpg::Reason) -> bool| {
        let fitting = list.iter().filter(|address| fits(&address.reason));
        fitting
            .map(|address| process(address.nodeid, address.pid))
            .collect()
    };
    heard(GroupEvent::Members {
        members: all(&members, |_| true),
        // When its daemon is stopped, processes that live on are reported as down; only the processes themselves leave.
        left: all(&left, |reason| matches!(reason, cpg::Reason::Leave)),
    });
}

fn process(node: NodeId, pid: u32) -> Process {
    Process {
        node: node.into(),
        pid,
    }
}

fn connect() -> Result<Handle, CsError> {
    let model = ModelData::ModelV1(Model1Data {
        flags: Model1Flags::None,
        deliver_fn: Some(delivered),
        confchg_fn: Some(changed),
        totem_confchg_fn: None,
    });
    cpg::initialize(&model, 0)
}

impl Link {
    /// Connects to the daemon of this machine.
    pub(crate) fn open(config: &CorosyncConfig) -> Result<Link, CorosyncError> {
        let handle = connect().map_err(CorosyncError::Unreachable)?;
        let node = cpg::local_get(&handle).map_err(CorosyncError::Unreachable)?;
        let own = process(node, std::process::id());
        if !config.members.contains(&own.node) {
            return Err(CorosyncError::NotMember(own.node));
        }
        let poll = Poll::new()?;
        let bell = Waker::new(poll.registry(), HOUSE)?;
        Ok(Link {
            handle,
            own,
            group: config.group.clone(),
            poll,
            outbox: Arc::new(Outbox {
                messages: Mutex::default(),
                bell,
            }),
        })
    }

    /// This process.
    pub(crate) fn own(&self) -> Process {
        self.own
    }

    /// Sends multicasts.
    pub(crate) fn outbox(&self) -> Arc<dyn Multicast> {
        Arc::clone(&self.outbox) as Arc<dyn Multicast>
    }

    /// Joins the group.
    pub(crate) fn start(self, shared: &Arc<Shared>) -> io::Result<Corosync> {
        let stops = Arc::new(AtomicBool::new(false));
        let outbox = Arc::clone(&self.outbox);
        let (own, shared) = (Arc::clone(&stops), Arc::downgrade(shared));
        let name = "corosync".to_owned();
        let thread = std::thread::Builder::new().name(name);
        let thread = thread.spawn(move || self.run(&shared, &own))?;
        Ok(Corosync {
            stops,
            outbox,
            thread: Some(thread),
        })
    }

    fn run(self, shared: &Weak<Shared>, stops: &AtomicBool) {
        let Link {
            handle,
            group,
            mut poll,
            outbox,
            ..
        } = self;
        let mut handle = Some(handle);
        while !stops.load(Ordering::SeqCst) {
            let ended = handle
                .take()
                .map(|handle| talk(&handle, &group, &mut poll, &outbox, shared, stops));
            if stops.load(Ordering::SeqCst) {
                break;
            }
            if let Some(Err(error)) = ended {
                log::warn!(
                    "Corosync is out of reach ({error}); this node goes on with the slots that it has"
                );
                // What was not sent will not be: it belongs to a view that is over.
                outbox.take();
                let events = HEARD.take().into_iter().chain([GroupEvent::Lost]);
                tell(shared, events.collect());
            }
            match connect() {
                Ok(again) => handle = Some(again),
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }
}

/// Talks to the daemon until the node stops or the daemon cannot be reached.
fn talk(
    handle: &Handle,
    group: &str,
    poll: &mut Poll,
    outbox: &Outbox,
    shared: &Weak<Shared>,
    stops: &AtomicBool,
) -> Result<(), CsError> {
    retried(stops, || cpg::join(handle, group))?;
    let descriptor = cpg::fd_get(handle)?;
    let registry = poll.registry();
    let registered = registry.register(&mut SourceFd(&descriptor), DAEMON, Interest::READABLE);
    registered.map_err(|_| CsError::CsErrNoResources)?;
    let ended = exchange(handle, poll, outbox, shared, stops);
    // The daemon may have closed it.
    let _ = poll.registry().deregister(&mut SourceFd(&descriptor));
    let shared = shared.upgrade();
    if ended.is_ok() && shared.is_some_and(|shared| shared.house().leaves_group()) {
        let _ = cpg::leave(handle, group);
    }
    ended
}

fn exchange(
    handle: &Handle,
    poll: &mut Poll,
    outbox: &Outbox,
    shared: &Weak<Shared>,
    stops: &AtomicBool,
) -> Result<(), CsError> {
    let mut events = Events::with_capacity(4);
    let mut unsaid = std::collections::VecDeque::new();
    while !stops.load(Ordering::SeqCst) {
        cpg::dispatch(handle, DispatchFlags::All)?;
        tell(shared, HEARD.take());
        unsaid.extend(outbox.take());
        let mut busy = false;
        while let Some(message) = unsaid.front() {
            match cpg::mcast_joined(handle, Guarantee::TypeAgreed, message) {
                Ok(()) => {
                    unsaid.pop_front();
                }
                Err(CsError::CsErrTryAgain) => {
                    busy = true;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        let wait = if busy { BUSY } else { LOOK };
        if let Err(error) = poll.poll(&mut events, Some(wait))
            && error.kind() != io::ErrorKind::Interrupted
        {
            return Err(CsError::CsErrLibrary);
        }
    }
    Ok(())
}

fn retried(
    stops: &AtomicBool,
    mut call: impl FnMut() -> Result<(), CsError>,
) -> Result<(), CsError> {
    loop {
        match call() {
            Err(CsError::CsErrTryAgain) if !stops.load(Ordering::SeqCst) => {
                std::thread::sleep(BUSY);
            }
            ended => return ended,
        }
    }
}

fn tell(shared: &Weak<Shared>, events: Vec<GroupEvent>) {
    if let Some(shared) = shared.upgrade().filter(|_| !events.is_empty()) {
        shared.enter(|house| house.hear_group(events));
    }
}

impl Drop for Corosync {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::SeqCst);
        self.outbox.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
