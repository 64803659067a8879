//! A connection as the house sees it: who it is, what it waits for, and what it is to be sent. The reactor has its socket.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use testigo_core::estate::Peer;
use testigo_core::{SessionId, Ticket};

use super::{House, Presented, Unit, Waiter, Worker};
use crate::output::{Lent, Output};
use crate::pipe::PipeEnd;
use crate::users::User;
use crate::wire::{Protocol, Reply, WireLimits};

/// A number for every connection and every embedded caller, never reused in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ClientId(pub(crate) u64);

/// Connection numbers are below 2^44, so that with a member's number, which has 8 bits, they stay below 2^53.
const CLIENT_BITS: u32 = 44;

/// A connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) outlet: Outlet,
    pub(crate) address: String,
    pub(crate) since: u64,
    /// When it last gave a command.
    pub(super) heard: u64,
    pub(crate) name: Box<str>,
    pub(crate) library: (Box<str>, Box<str>),
    pub(crate) protocol: Protocol,
    /// Its user, once that is known.
    pub(crate) user: Option<Arc<User>>,
    pub(crate) wrong_passwords: usize,
    pub(crate) acts_for: ActsFor,
    /// The process of a flow that it presented itself as, if any.
    pub(crate) presented: Option<Presented>,
    /// How it is counted, if it is a process.
    pub(crate) worker: Option<Worker>,
    /// Its name in a job's history; forgotten when its name or process changes.
    pub(crate) signature: Option<Arc<str>>,
    /// The unit of work between `MULTI` and `EXEC`.
    pub(crate) unit: Option<Box<Unit>>,
    pub(crate) blocked: Option<Blocked>,
    /// Whether it has asked for slots without waiting for the answer.
    pub(crate) pushed: bool,
    /// Changes that the log has not answered, in the order of their commands and so of the replies.
    pub(super) under_way: VecDeque<UnderWay>,
    pub(crate) channels: BTreeSet<Box<str>>,
    pub(crate) patterns: BTreeSet<Box<str>>,
    pub(crate) outbox: Output,
    /// Bytes that the reactor has taken and could not write yet.
    pub(crate) unwritten: usize,
    /// The memory of these that no other connection shares.
    pub(super) unwritten_own: usize,
    /// The bodies in its output that others may share, in order.
    pub(crate) lent: VecDeque<Lent>,
    /// When its socket last accepted some of them: a number that grows.
    pub(super) took: u64,
    /// When it must have authenticated.
    pub(super) auth_due: u64,
    /// In which list of the unsent it is.
    pub(super) noted: Noted,
    /// To be closed once the log has answered all its changes under way.
    pub(super) dismissed: bool,
    /// To be closed once everything is sent.
    pub(crate) leaving: bool,
    /// To be closed at once, even if it has not read everything.
    pub(crate) overrun: bool,
    /// Wants to be told who the owner is, and goes there itself.
    pub(crate) redirected: bool,
}

/// Whether a connection is to be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    No,
    /// Of those that were only told something.
    Told,
    Unsent,
}

/// Where a connection's output goes.
#[derive(Clone, Debug)]
pub(crate) enum Outlet {
    /// To a socket, at this place in the reactor.
    Socket(usize),
    /// To a pipe of this process.
    Pipe(Arc<PipeEnd>),
    /// To another node, for whose client a command is carried out here: the reply is a letter.
    Visit,
}

/// The session that a connection acts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ActsFor {
    /// None until it needs one.
    Nobody,
    /// Its own, which ends with it.
    Implicit(SessionId),
    /// A session that was opened or resumed.
    Opened(SessionId),
    /// A visitor's session, whose home is another node.
    Guest(SessionId),
    /// A session that has ended without the connection's doing. To go on in another one would hide that from its program.
    Ended(SessionId),
}

/// A change of a connection that the log has not answered, or that is answered and waits for an earlier one.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub(super) tag: u64,
    pub(super) reply: Option<Reply>,
}

/// Why a connection's further commands wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// For a gate.
    Waiting {
        /// The wait.
        ticket: Ticket,
        /// The reply if somebody cancels it.
        cancelled: Cancelled,
    },
    /// For another node's answer to a request that does not wait for a gate or a job.
    Asking(Ticket),
    /// For the log's answers to all that the connection has under way.
    Logging,
    /// For its answer, which is computed in slices.
    Slicing,
    /// For the answers of other nodes to its command.
    Calling {
        /// Whether they may take long, because the command waits.
        waits: bool,
    },
    /// For the log to be applied as far as it had come when the command was given.
    Reading,
    /// Until its password is checked, or after a wrong one.
    Password,
}

/// The reply to a wait that somebody else cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cancelled {
    Null,
    /// That `CLIENT UNBLOCK` cancelled it.
    Unblocked,
    /// That its user may no longer wait.
    Denied,
}

impl Client {
    pub(crate) fn session(&self) -> Option<SessionId> {
        match self.acts_for {
            ActsFor::Nobody | ActsFor::Guest(_) | ActsFor::Ended(_) => None,
            ActsFor::Implicit(session) | ActsFor::Opened(session) => Some(session),
        }
    }

    /// Whether nothing that may take long blocks it.
    pub(crate) fn is_answered_soon(&self) -> bool {
        matches!(
            self.blocked,
            Some(
                Blocked::Slicing
                    | Blocked::Asking(_)
                    | Blocked::Calling { waits: false }
                    | Blocked::Reading
            )
        )
    }

    /// Whether it is not a connection but a command of another node's client.
    pub(crate) fn is_visit(&self) -> bool {
        matches!(self.outlet, Outlet::Visit)
    }

    /// With version 2, a connection that has subscribed to channels can do little else.
    pub(crate) fn only_listens(&self) -> bool {
        self.protocol == Protocol::Resp2 && self.subscriptions() > 0
    }

    /// Whether its next command may be served: not if it is blocked or leaving, or has too many unread answers.
    pub(crate) fn may_go_on(&self, wire: &WireLimits) -> bool {
        let unread_most = match self.user {
            Some(_) => wire.output_bytes_soft,
            None => wire.preauth_frame_bytes,
        };
        !self.waits(wire) && !self.leaving && self.unread() <= unread_most
    }

    /// Whether the node must answer it before its next command is served.
    pub(crate) fn waits(&self, wire: &WireLimits) -> bool {
        self.blocked.is_some()
            || self.dismissed
            || self.under_way.len() >= wire.changes_under_way.max(1)
    }

    /// Whether the log has yet to answer it.
    pub(crate) fn has_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Bytes that it has not read.
    pub(super) fn unread(&self) -> usize {
        self.outbox.amount().all + self.unwritten
    }

    pub(crate) fn subscriptions(&self) -> usize {
        self.channels.len() + self.patterns.len()
    }
}

impl House {
    /// Adds a new connection.
    pub(crate) fn welcome(&mut self, outlet: Outlet, address: String) -> ClientId {
        let client = self.stranger(outlet, address);
        let id = client.id;
        self.connections.add(client);
        id
    }

    /// A connection whose user is not known yet.
    pub(super) fn stranger(&mut self, outlet: Outlet, address: String) -> Client {
        let id = self.next_client();
        Client {
            id,
            outlet,
            address,
            since: self.now,
            heard: self.now,
            name: "".into(),
            library: ("".into(), "".into()),
            protocol: Protocol::Resp2,
            user: self.users.anybody(),
            wrong_passwords: 0,
            acts_for: ActsFor::Nobody,
            presented: None,
            worker: None,
            signature: None,
            unit: None,
            pushed: false,
            blocked: None,
            under_way: VecDeque::new(),
            channels: BTreeSet::new(),
            patterns: BTreeSet::new(),
            outbox: Output::default(),
            unwritten: 0,
            unwritten_own: 0,
            lent: VecDeque::new(),
            took: 0,
            auth_due: 0,
            noted: Noted::No,
            dismissed: false,
            leaving: false,
            overrun: false,
            redirected: false,
        }
    }

    /// The number of the next connection. Implicit sessions are named by a part of it, so a number that shares this part with
    /// a living connection or session is skipped.
    pub(crate) fn next_client(&mut self) -> ClientId {
        loop {
            let id = self.connections.next_id();
            let turns = 1..=id.0 >> SessionId::CONNECTION_BITS;
            let mut alike = turns.map(|turns| id.0 - (turns << SessionId::CONNECTION_BITS));
            let taken = alike.any(|id| self.connections.client(ClientId(id)).is_some());
            let local = self.services.local();
            if !taken && local.session_view(self.implicit_of(id)).is_none() {
                return id;
            }
        }
    }

    /// A connection's number on the wire. In a cluster it contains the member's number, so that no two connections share one.
    pub(crate) fn number_of(&self, id: ClientId) -> u64 {
        let member = self.member_number().unwrap_or(0);
        (member << CLIENT_BITS) + id.0
    }

    /// The connection with this number on the wire, if it belongs to this node.
    pub(crate) fn numbered(&self, number: u64) -> Option<ClientId> {
        let member = self.member_number().unwrap_or(0);
        let own = number.checked_sub(member << CLIENT_BITS);
        own.filter(|id| *id < 1 << CLIENT_BITS).map(ClientId)
    }

    /// The member whose connection has this number on the wire.
    pub(crate) fn host_of(&self, number: u64) -> Option<Peer> {
        self.member_numbered(number >> CLIENT_BITS)
    }

    /// The member with this number.
    pub(crate) fn member_numbered(&self, number: u64) -> Option<Peer> {
        let mut members = self.replicated().view().members.iter();
        let member = members.find(|member| member.node.0 == number)?;
        Some((member.node, member.start))
    }

    /// The implicit session of a connection, whether it exists or not.
    pub(crate) fn implicit_of(&self, id: ClientId) -> SessionId {
        SessionId::of_connection(self.own.0, self.own.1, id.0)
    }

    /// A connection is gone. Its implicit session ends; an opened one waits to be resumed.
    pub(crate) fn farewell(&mut self, id: ClientId) {
        self.count_worker(id, None);
        let Some(client) = self.connections.remove(id) else {
            return;
        };
        self.observe();
        if let Some(Blocked::Waiting { ticket, .. } | Blocked::Asking(ticket)) = client.blocked {
            self.tickets.remove(&ticket);
            self.services.cancel_slots(ticket);
        }
        if client.pushed {
            self.forget_pushed(id);
        }
        let held = self.services.desk().held_count(self.implicit_of(id));
        self.connections.cost.spend(1 + held as u64);
        self.services.end_slots(self.implicit_of(id));
        match client.blocked {
            Some(Blocked::Slicing) => self.forget_long_work(id),
            Some(Blocked::Calling { .. } | Blocked::Reading) => self.call_off(id),
            _ => {}
        }
        if let Some(session) = client.session() {
            let weight = self.local().session_weight(session);
            self.connections.cost.spend(weight as u64);
            self.stand_up(session);
        }
        self.pass_on();
    }

    /// A connection waits until its request is settled.
    pub(crate) fn block_on(&mut self, id: ClientId, ticket: Ticket) {
        self.tickets.insert(ticket, Waiter::Blocked(id));
        if let Some(client) = self.connections.client_mut(id) {
            client.blocked = Some(Blocked::Waiting {
                ticket,
                cancelled: Cancelled::Null,
            });
        }
    }
}
