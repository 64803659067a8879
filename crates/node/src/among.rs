//! What a node in a cluster has in addition to one that is alone: sockets to and from the others, and a log that they share.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, Weak};

use bytes::Bytes;
use testigo_core::Newcomer;
use testigo_engine::{Engine, Flusher, Hearer, LogThread};

use crate::config::Config;
use crate::node::StartError;
use crate::open::{self, Joining};
use crate::peers::{ClusterConfig, Identity, JoinAnswer, Joiner, Peers};
use crate::relay::Flushes;
use crate::shared::Shared;

/// The sockets of a running member.
#[derive(Debug)]
pub(crate) struct Among {
    /// Ends before the sockets do.
    joiner: Option<Joiner>,
    peers: Arc<Peers>,
}

impl Among {
    /// Connects the house to the others and starts its log.
    pub(crate) fn start(
        cluster: &ClusterConfig,
        listener: TcpListener,
        shared: &Arc<Shared>,
        engine: Engine,
        joining: Option<Joining>,
    ) -> Result<(LogThread, Among), StartError> {
        let start = engine.start().number().into();
        let ear: Arc<OnceLock<Hearer>> = Arc::default();
        let own = Arc::clone(&ear);
        let hear = move |from, frames: &mut Vec<Bytes>| {
            // Frames that come before there is a log are lost, and sent again.
            if let Some(hearer) = own.get() {
                hearer.hear_all(from, frames.drain(..));
            }
        };
        let house = Arc::downgrade(shared);
        let answers = move |newcomer| answer(&house, newcomer);
        let identity = Identity::new(cluster, start)?;
        identity.follow(shared.house().replicated().cluster());
        let peers = Arc::new(Peers::start(identity, listener, hear, answers)?);
        if let Some(joining) = &joining {
            peers.be_welcome(&joining.welcome);
        }
        let deliver = Arc::clone(shared);
        let deliver = move |delivery| deliver.deliver(delivery);
        let log = LogThread::start_among(engine, peers.sender(), deliver)?;
        let _ = ear.set(log.hearer());
        shared.house().meet(Arc::clone(&peers));
        let joiner = joining.map(|joining| ask_on(cluster, start, shared, joining));
        let joiner = joiner.transpose()?;
        Ok((log, Among { joiner, peers }))
    }

    /// Closes the connections, once the log is closed.
    pub(crate) fn stop(&mut self) {
        self.joiner = None;
        self.peers.stop();
    }
}

/// Begins a member's next start in the same process, after its cluster has left it out or it has fallen behind.
#[derive(Debug)]
pub(crate) struct Anew {
    config: Config,
    listener: TcpListener,
    among: Arc<Mutex<Option<Among>>>,
    flusher: Arc<PresentFlusher>,
}

impl Anew {
    /// Begins the first start; what this returns begins the later ones.
    pub(crate) fn first(
        config: &Config,
        listener: TcpListener,
        shared: &Arc<Shared>,
        engine: Engine,
        joining: Option<Joining>,
    ) -> Result<(LogThread, Anew), StartError> {
        let cluster = config.cluster.as_ref().expect("it is a member");
        let own = listener.try_clone()?;
        let (log, among) = Among::start(cluster, own, shared, engine, joining)?;
        let flusher = PresentFlusher(RwLock::new(log.flusher()));
        let anew = Anew {
            config: config.clone(),
            listener,
            among: Arc::new(Mutex::new(Some(among))),
            flusher: Arc::new(flusher),
        };
        Ok((log, anew))
    }

    /// The sockets, for whoever stops the node.
    pub(crate) fn among(&self) -> Arc<Mutex<Option<Among>>> {
        Arc::clone(&self.among)
    }

    /// Flushes the log of the present start.
    pub(crate) fn flusher(&self) -> Arc<dyn Flushes> {
        Arc::clone(&self.flusher) as Arc<dyn Flushes>
    }

    /// The house's start has ended: opens its directory again.
    pub(crate) fn begin(&self, shared: &Arc<Shared>) -> Result<(), StartError> {
        let cluster = self.config.cluster.as_ref().expect("it is a member");
        let mut slot = self.among.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut among) = slot.take() {
            among.stop();
        }
        let clock = shared.house().clock();
        let (house, engine, joining) =
            open::open_or_join(&self.config, clock, Some(&self.listener))?;
        shared.forget_deliveries();
        shared.house().go_on_as(house);
        let own = self.listener.try_clone()?;
        let (log, among) = Among::start(cluster, own, shared, engine, joining)?;
        let flusher = &self.flusher.0;
        *flusher.write().unwrap_or_else(PoisonError::into_inner) = log.flusher();
        shared.house().move_in(log);
        *slot = Some(among);
        Ok(())
    }
}

/// Flushes the log of the present start.
#[derive(Debug)]
struct PresentFlusher(RwLock<Flusher>);

impl PresentFlusher {
    fn present(&self) -> Flusher {
        let flusher = self.0.read().unwrap_or_else(PoisonError::into_inner);
        flusher.clone()
    }
}

impl Flushes for PresentFlusher {
    fn is_quick(&self) -> bool {
        self.present().is_quick()
    }

    fn flush(&self) {
        self.present().flush();
    }
}

fn answer(house: &Weak<Shared>, newcomer: Newcomer) -> JoinAnswer {
    match house.upgrade() {
        Some(shared) => shared.enter(|house| house.answer_newcomer(newcomer)),
        None => JoinAnswer::Later("the node stops".into()),
    }
}

/// Keeps asking until the log has this node.
fn ask_on(
    cluster: &ClusterConfig,
    start: u64,
    shared: &Arc<Shared>,
    joining: Joining,
) -> Result<Joiner, StartError> {
    let Joining { newcomer, welcome } = joining;
    let others = welcome.addresses.into_iter();
    let others = others.map(|(_, address)| address.peer);
    let others = others.filter(|peer| *peer != cluster.peer);
    let addresses = cluster.join.iter().cloned().chain(others);
    let (node, house) = (newcomer.node, Arc::downgrade(shared));
    let joined = move || {
        let shared = house.upgrade();
        shared.is_none_or(|shared| {
            shared.enter(|house| house.replicated().cluster().address(node).is_some())
        })
    };
    let identity = Identity::new(cluster, start)?;
    Ok(Joiner::start(
        identity,
        newcomer,
        addresses.collect(),
        joined,
    )?)
}
