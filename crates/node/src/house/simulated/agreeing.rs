//! Clients that agree while everything fails. All who are told a decision are told the same. Every member of the group is
//! delivered every message behind its join, in one order, or told how many it has missed.

use std::collections::BTreeMap;

use testigo_core::GroupUsing;
use testigo_core::estate::Broken;

use super::clients::Asked;
use super::reply::Said;
use super::world::World;

/// Decisions per run: few, so that many clients propose the same one, and enough for some to be made under every fault.
const DECISIONS: u64 = 12;

/// What clients know of decisions and of the group's messages.
#[derive(Default)]
pub(super) struct Agreed {
    proposed: u64,
    /// What any client was told, by the decision's number.
    decided: BTreeMap<u64, String>,
    sent: u64,
    /// What orders the group.
    using: GroupUsing,
    /// Sender and body by the message's number: as delivered, or as acknowledged to the sender.
    messages: BTreeMap<u64, (u64, String)>,
}

/// What a client knows of its membership.
#[derive(Debug, Default)]
pub(super) struct Membership {
    /// Whether this connection has joined, so that messages are pushed to it.
    pub(super) joined: bool,
    /// The last message that was delivered to it or that it missed; `None` while its session is not a member.
    pub(super) last: Option<u64>,
}

impl World {
    /// Like [`World::new`], with clients that agree between their visits to the gates.
    pub(super) fn of_agreeing(seed: u64, nodes: u64, broken: Option<Broken>) -> World {
        let mut world = World::new(seed, nodes, broken);
        world.agrees = true;
        world.agreed.using = GroupUsing::ALL[(seed % 3) as usize];
        for client in &mut world.clients {
            client.works = false;
        }
        world
    }

    /// A client proposes a value that nobody else proposes, or talks to the group if its session can be a member.
    pub(super) fn agree(&mut self, which: usize) {
        let client = &self.clients[which];
        if client.opens && self.chance.chance(0.6) {
            return self.talk(which);
        }
        let decision = self.chance.below(DECISIONS);
        self.agreed.proposed += 1;
        let value = format!("{decision}-{}", self.agreed.proposed);
        let propose = format!("DECIDE decision-{decision} {value}");
        self.ask(which, Asked::Decide(decision), &propose);
    }

    /// A client is told a decision.
    pub(super) fn decided(&mut self, decision: u64, said: &Said) -> Result<(), String> {
        self.tally.decisions += 1;
        let value = said.text();
        if !value.starts_with(&format!("{decision}-")) {
            return Err(format!("{said:?} was never proposed for {decision}"));
        }
        let known = self.agreed.decided.entry(decision);
        let known = known.or_insert_with(|| value.to_owned());
        match known == value {
            true => Ok(()),
            false => Err(format!("decision {decision} is {known} and {value}")),
        }
    }

    fn talk(&mut self, which: usize) {
        let Membership { joined, last } = self.clients[which].membership;
        match (joined, last) {
            (true, _) => {
                self.agreed.sent += 1;
                let body = self.agreed.sent.to_string();
                let send = format!("GROUP SEND talk {body}");
                self.ask(which, Asked::Send(body), &send);
            }
            (false, None) => {
                let join = format!("GROUP JOIN talk USING {}", self.agreed.using.name());
                self.ask(which, Asked::Join(None), &join);
            }
            (false, Some(last)) => {
                let join = format!("GROUP JOIN talk AFTER {last}");
                self.ask(which, Asked::Join(Some(last)), &join);
            }
        }
    }

    /// A client is a member, and is given what was not delivered to it.
    pub(super) fn joined(
        &mut self,
        which: usize,
        after: Option<u64>,
        said: &Said,
    ) -> Result<(), String> {
        let number = |key| said.value(key).and_then(Said::number);
        let (last, missed) = number("last").zip(number("missed")).ok_or("no numbers")?;
        let membership = &mut self.clients[which].membership;
        membership.joined = true;
        membership.last = Some(after.map_or(last, |after| after + missed));
        for row in said.of("deliveries") {
            let [number, from, body] = row.list() else {
                return Err(format!("{row:?} is no message"));
            };
            let (number, from) = number.number().zip(from.number()).ok_or("no numbers")?;
            self.delivered(which, number, from, body.text())?;
        }
        match self.clients[which].membership.last == Some(last) {
            true => Ok(()),
            false => Err(format!("client {which} lacks messages: {said:?}")),
        }
    }

    /// A line of the group's channel.
    pub(super) fn group_line(&mut self, which: usize, line: &str) -> Result<(), String> {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let ["delivered", number, from, body] = words[..] else {
            return Ok(());
        };
        let number = number.parse().map_err(|_| line.to_owned())?;
        let from = from.parse().map_err(|_| line.to_owned())?;
        self.delivered(which, number, from, body)
    }

    /// A message is delivered to a client: it must be the next one, and the same as everybody else's under its number.
    fn delivered(
        &mut self,
        which: usize,
        number: u64,
        from: u64,
        body: &str,
    ) -> Result<(), String> {
        self.tally.deliveries += 1;
        let last = self.clients[which].membership.last;
        if last.is_some_and(|last| number != last + 1) {
            return Err(format!(
                "client {which} is delivered message {number} behind {last:?}"
            ));
        }
        self.clients[which].membership.last = Some(number);
        self.numbered(number, from, body)
    }

    /// Records a message under its number. The messages of one session have rising numbers.
    fn numbered(&mut self, number: u64, from: u64, body: &str) -> Result<(), String> {
        let message = (from, body.to_owned());
        let messages = &mut self.agreed.messages;
        let known = messages.entry(number).or_insert_with(|| message.clone());
        if *known != message {
            return Err(format!("message {number} is {known:?} and {message:?}"));
        }
        let count = |body: &str| body.parse::<u64>().unwrap_or_default();
        let wrong = messages.iter().find(|(other, (sender, said))| {
            *sender == from
                && (**other < number) != (count(said) < count(body))
                && **other != number
        });
        match wrong {
            None => Ok(()),
            Some((other, said)) => Err(format!(
                "session {from} sent {body} as {number} and {said:?} as {other}"
            )),
        }
    }

    /// A client's message has its place.
    pub(super) fn sent(&mut self, which: usize, body: &str, said: &Said) -> Result<(), String> {
        let number = said.number().ok_or("a message has no number")?;
        let from = self.clients[which].session.ok_or("nobody sent it")?;
        self.numbered(number, from, body)
    }
}
