//! `GROUP JOIN|SEND|MEMBERS|LEAVE`: a message from one member is delivered to all, numbered, in one order.

use testigo_core::{
    Body, Change, GroupJoined, GroupMessage, GroupOrder, GroupRecord, GroupUsing, Index, Name,
    Refusal, SessionId,
};

use super::show::text;
use super::table::{Answered, Outcome, unknown_word};
use crate::house::{Answers, ClientId, House};
use crate::users::Deed;
use crate::wire::{Protocol, Reply, Words, bad_arg};

impl House {
    pub(super) fn group_command(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        if words.keyword("JOIN") {
            self.join_group(id, words)
        } else if words.keyword("SEND") {
            let group = named(&mut words)?;
            let body = words.next_bytes();
            let body = body.ok_or_else(|| bad_arg("the body is missing; it may be empty"))?;
            words.end()?;
            let (session, home) = self.as_member(id, &group)?;
            let body = Body::from(body);
            let send = Change::SendToGroup {
                group,
                session,
                home,
                body,
            };
            self.submit(send, Answers::Client(id))?;
            Ok(Answered::Later)
        } else if words.keyword("LEAVE") {
            let group = named(&mut words)?;
            words.end()?;
            let (session, home) = self.as_member(id, &group)?;
            let leave = Change::LeaveGroup {
                group,
                session,
                home,
            };
            self.submit(leave, Answers::Client(id))?;
            Ok(Answered::Later)
        } else if words.keyword("MEMBERS") {
            let group = named(&mut words)?;
            words.end()?;
            self.allow(id, Deed::Show, &group)?;
            let record = self.replicated().group(&group);
            let shown = Reply::optional(record, |record| self.group_reply(&group, record));
            Ok(Answered::Now(shown))
        } else {
            let known = "JOIN, SEND, MEMBERS, LEAVE";
            Err(unknown_word("GROUP", words.text("a word")?, known))
        }
    }

    /// `GROUP JOIN name [ORDER FIFO|CAUSAL|TOTAL] [USING isis|sequencer|log] [AFTER n]`.
    fn join_group(&mut self, id: ClientId, mut words: Words<'_>) -> Outcome {
        let group = named(&mut words)?;
        let (mut order, mut using, mut after) = (None, None, None);
        while words.left() > 0 {
            if words.keyword("ORDER") {
                once("ORDER", &mut order, order_of(words.text("ORDER")?)?)?;
            } else if words.keyword("USING") {
                once("USING", &mut using, using_of(words.text("USING")?)?)?;
            } else if words.keyword("AFTER") {
                once("AFTER", &mut after, words.number("AFTER")?)?;
            } else {
                words.end()?;
            }
        }
        let (session, home) = self.as_member(id, &group)?;
        self.check_listens(id)?;
        let join = Change::JoinGroup {
            group,
            session,
            home,
            order,
            using,
            after,
        };
        self.submit(join, Answers::Client(id))?;
        Ok(Answered::Later)
    }

    /// The session of a connection that may use a group, and the index of its home. It must outlive its connection: only the
    /// log can tell all nodes, at one place of the order, that a member is gone.
    fn as_member(&mut self, id: ClientId, group: &Name) -> Result<(SessionId, Index), Refusal> {
        self.allow(id, Deed::Use, group)?;
        let session = self.session_of(id)?;
        Ok((session, self.member_home(session)?))
    }

    /// The index of the home of a session that may be a member.
    pub(crate) fn member_home(&self, session: SessionId) -> Result<Index, Refusal> {
        let record = self.replicated().session(session);
        match record.filter(|_| !session.is_implicit()) {
            Some(record) => Ok(record.home.index),
            None => Err(bad_arg(
                "a member of a group needs a session that outlives its connection; SESSION OPEN first",
            )),
        }
    }

    /// Whether a connection that joins may have one more channel.
    fn check_listens(&self, id: ClientId) -> Result<(), Refusal> {
        let client = self.connections.client(id);
        match client.is_some_and(|client| client.protocol == Protocol::Resp3) {
            true => self.check_subscription(id, None),
            false => Ok(()),
        }
    }

    fn group_reply(&self, group: &Name, record: &GroupRecord) -> Reply {
        let (last, kept) = self.group_told(group, record);
        let members = record.members.iter().map(|(session, joined)| {
            let known = self.replicated().session(*session);
            let label = known.and_then(|known| known.label.clone());
            let node = known.map(|known| Reply::number(known.home.node.0));
            // If an algorithm orders the group, 0 means that the member's home has not said yet where it begins.
            let known_to_log = record.using == GroupUsing::Log || *joined > 0;
            Reply::Map(vec![
                ("session", Reply::number(session.number())),
                ("label", text(&label)),
                ("node", node.unwrap_or(Reply::Null)),
                (
                    "joined_after",
                    Reply::optional(known_to_log.then_some(*joined), Reply::number),
                ),
            ])
        });
        let holds = GroupOrder::ALL.map(|order| Reply::text(order.word()));
        Reply::Map(vec![
            ("name", Reply::text(group.as_str())),
            ("order", Reply::text(record.order.word())),
            ("using", Reply::text(record.using.name())),
            ("holds", Reply::Array(holds.to_vec())),
            ("last", Reply::number(last)),
            ("kept", Reply::number(kept as u64)),
            ("members", Reply::Array(members.collect())),
        ])
    }
}

/// The reply to a member when the log has it.
pub(crate) fn joined_reply(joined: &GroupJoined) -> Reply {
    let kept = joined.kept.iter().map(message_reply);
    Reply::Map(vec![
        ("name", Reply::text(joined.group.as_str())),
        ("order", Reply::text(joined.order.word())),
        ("using", Reply::text(joined.using.name())),
        ("last", Reply::number(joined.last)),
        ("members", Reply::number(joined.members as u64)),
        ("missed", Reply::number(joined.missed)),
        ("deliveries", Reply::Array(kept.collect())),
    ])
}

fn message_reply(message: &GroupMessage) -> Reply {
    Reply::Array(vec![
        Reply::number(message.number),
        Reply::number(message.from.number()),
        Reply::Body(message.body.clone()),
    ])
}

/// The group that the next word names.
fn named(words: &mut Words<'_>) -> Result<Name, Refusal> {
    Name::new(words.text("the group's name")?)
}

/// Sets the value of an option, which may appear only once.
fn once<T>(option: &str, taken: &mut Option<T>, value: T) -> Result<(), Refusal> {
    match taken.replace(value) {
        None => Ok(()),
        Some(_) => Err(bad_arg(format!(
            "{option} is said twice; say it once, or leave it out"
        ))),
    }
}

fn order_of(word: &str) -> Result<GroupOrder, Refusal> {
    let found = GroupOrder::ALL
        .into_iter()
        .find(|order| order.word().eq_ignore_ascii_case(word));
    found.ok_or_else(|| unknown_word("ORDER", word, "FIFO, CAUSAL, TOTAL"))
}

fn using_of(word: &str) -> Result<GroupUsing, Refusal> {
    let found = GroupUsing::ALL
        .into_iter()
        .find(|using| using.name().eq_ignore_ascii_case(word));
    found.ok_or_else(|| unknown_word("USING", word, "log, isis, sequencer"))
}
