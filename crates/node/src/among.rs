//! What a node among others has beside one that is alone: sockets to and from them, and a log that they share.

use std::net::TcpListener;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use testigo_core::Newcomer;
use testigo_engine::{Engine, Hearer, LogThread};

use crate::node::StartError;
use crate::open::Joining;
use crate::peers::{ClusterConfig, Identity, JoinAnswer, Joiner, Peers};
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
            // What comes before there is a log is lost, and sent again.
            if let Some(hearer) = own.get() {
                hearer.hear_all(from, frames.drain(..));
            }
        };
        let house = Arc::downgrade(shared);
        let answers = move |newcomer| answer(&house, newcomer);
        let identity = Identity::new(cluster, start)?;
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

    /// Hangs up, once the log is closed.
    pub(crate) fn stop(&mut self) {
        self.joiner = None;
        self.peers.stop();
    }
}

fn answer(house: &Weak<Shared>, newcomer: Newcomer) -> JoinAnswer {
    match house.upgrade() {
        Some(shared) => shared.enter(|house| house.answer_newcomer(newcomer)),
        None => JoinAnswer::Later("the node stops".into()),
    }
}

/// Goes on asking until the log has this node.
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
