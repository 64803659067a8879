//! Opens the house of a cluster member. It acts only in a view that has its start, which the leader proposes; if it is the
//! only voter and nobody else was in, that happens at once.

use std::sync::Arc;

use testigo_core::estate::{Estate, Out};
use testigo_core::{Address, Change, ClusterId, NodeId, Start};
use testigo_engine::Engine;

use super::{State, TakeOverError, draw_receipt_key, record, seed};
use crate::clock::Clock;
use crate::config::Config;
use crate::house::{Foundations, Half, House, Membership};
use crate::peers::ClusterConfig;
use crate::users::Users;

/// The house for what an engine has found; `joins` if the log has not let it in yet.
pub(super) fn found(
    (config, cluster, joins): (&Config, &ClusterConfig, bool),
    clock: Clock,
    mut engine: Engine,
    mut state: State,
) -> Result<(House, Engine), TakeOverError> {
    let own = (NodeId(engine.node()), Start(engine.start().number().into()));
    let (now, limits) = (clock.now(), config.limits.clone());
    let replicated = &state.replicated;
    let mut estate = Estate::new(now, own, cluster.lease_ms, limits, seed(), replicated);
    let members = engine.members();
    let only_voter = members.voters == [own.0.0] && members.learners.is_empty();
    let mut others = replicated.view().members.iter();
    let nobody_else = others.all(|member| member.node == own.0);
    let mut applied = state.applied;
    let address = address(config, cluster);
    if only_voter && nobody_else {
        let view = replicated.view_alone(own.0, own.1, engine.start().generation());
        let mut changes = vec![view];
        if replicated.receipt_key().is_none() {
            let key = draw_receipt_key()?;
            changes.push(Change::ShareReceiptKey { key });
        }
        // The founder's limits apply; once others are in, the log changes them.
        let limits = Box::new(config.limits.shared());
        if *limits != *replicated.limits() {
            changes.push(Change::Limits { limits });
        }
        if replicated.cluster().id().is_none() {
            let cluster = ClusterId(u128::from(seed()) << 64 | u128::from(seed()));
            changes.push(Change::Found { cluster });
            changes.push(Change::Address {
                node: own.0,
                address: Some(address.clone()),
            });
        }
        for change in changes {
            let last = Some(applied).filter(|index| *index > 0);
            let recorded = record(&mut engine, last, &mut state.replicated, change)?;
            applied = recorded.0;
            // Nobody is connected and nobody else is in, so there is nothing to tell yet.
            let mut out = Out::default();
            estate.follow(now, &state.replicated, &recorded.1, &mut out);
            debug_assert!(out.tells.is_empty() && out.changes.is_empty(), "{out:?}");
        }
    }
    let house = House::new(Foundations {
        own,
        clock,
        half: Half::Member(Box::new(estate)),
        // Others know what its sessions hold.
        touches: None,
        snapshots: state.snapshots(config, applied),
        replicated: state.replicated,
        limits: config.limits.clone(),
        wire: config.wire.clone(),
        users: Arc::new(Users::new(&config.guests())),
        files_root: config.files_root.clone(),
        log_size: engine.log_size(),
        member: Some(Membership {
            lease_ms: cluster.lease_ms,
            address,
            delivered: applied,
            joins,
        }),
    });
    Ok((house, engine))
}

/// The address of this node. For clients, the same host, unless configured otherwise.
pub(super) fn address(config: &Config, cluster: &ClusterConfig) -> Address {
    let host = cluster.peer.rsplit_once(':').map_or("", |(host, _)| host);
    let client = config.resp.map(|resp| format!("{host}:{}", resp.port()));
    Address {
        peer: cluster.peer.clone(),
        client: cluster.client.clone().or(client),
    }
}
