//! Groups: a message from one member is delivered to all, numbered, in one order. A [`Member`] never misses anything
//! silently: if its connection broke, or its program was slow, it asks the node for what follows the last message that it
//! has.

use std::collections::VecDeque;
use std::fmt;

use tokio::sync::broadcast::{self, error};

use crate::backoff::Backoff;
use crate::client::Client;
use crate::driver::Errand;
use crate::machine::Again;
use crate::refusal::{Call, NotDone, Word};
use crate::request::words;
use crate::session::Session;
use crate::standing::Loss;
use crate::value::Value;

/// The delivery order that a group asks for.
///
/// ```
/// assert_eq!(testigo::GroupOrder::Causal.to_string(), "CAUSAL");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupOrder {
    /// Each member's messages in the order in which it sent them.
    Fifo,
    /// Like FIFO, and a message that may have caused another one comes before it.
    Causal,
    /// The same order for all members.
    Total,
}

impl fmt::Display for GroupOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupOrder::Fifo => "FIFO",
            GroupOrder::Causal => "CAUSAL",
            GroupOrder::Total => "TOTAL",
        })
    }
}

/// A request to be a member of a group.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{GroupOrder, Join, SessionOptions};
///
/// let session = testigo.session(SessionOptions::default()).await?;
/// let member = session.join_group(Join::new("talk").order(GroupOrder::Causal)).await?;
/// assert_eq!(member.using(), "log");
/// member.leave().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    group: String,
    order: Option<GroupOrder>,
    using: Option<String>,
}

impl Join {
    /// Joins in the order that the group has; a new group is `TOTAL`.
    pub fn new(group: impl Into<String>) -> Join {
        Join {
            group: group.into(),
            order: None,
            using: None,
        }
    }

    /// The order for a new group. `BUSY` if the group has members and another order.
    pub fn order(mut self, order: GroupOrder) -> Join {
        self.order = Some(order);
        self
    }

    /// What orders a new group: `log`, `isis` or `sequencer`.
    pub fn using(mut self, using: impl Into<String>) -> Join {
        self.using = Some(using.into());
        self
    }

    fn line(&self) -> Vec<String> {
        let mut line = words(["GROUP", "JOIN", &self.group]);
        if let Some(order) = self.order {
            line.extend(["ORDER".to_owned(), order.to_string()]);
        }
        if let Some(using) = &self.using {
            line.extend(["USING".to_owned(), using.clone()]);
        }
        line
    }
}

impl From<&str> for Join {
    fn from(group: &str) -> Join {
        Join::new(group)
    }
}

/// An event for a member, in the group's order.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// use testigo::{GroupEvent, SessionOptions};
///
/// let session = testigo.session(SessionOptions::default()).await?;
/// let mut member = session.join_group("talk").await?;
/// let number = member.send(b"hello").await?;
/// let hello = GroupEvent::Delivered { number, from: session.id(), body: b"hello".to_vec() };
/// assert_eq!(member.next().await?, hello);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// A message.
    Delivered {
        /// Its number: one more than that of the message before.
        number: u64,
        /// The session that sent it.
        from: u64,
        /// Its bytes.
        body: Vec<u8>,
    },
    /// A session has joined. Not reported while the connection is broken.
    Joined {
        /// The number of the last message before.
        number: u64,
        /// Who.
        session: u64,
    },
    /// A session is no longer a member. Not reported while the connection is broken.
    Left {
        /// The number of the last message before.
        number: u64,
        /// Who.
        session: u64,
    },
    /// Messages that will not be delivered to this member: it was away for longer than the group keeps them.
    Missed {
        /// How many.
        count: u64,
        /// The number of the last of them.
        last: u64,
    },
}

impl GroupEvent {
    /// Parses a line of the channel.
    fn read(line: &[u8]) -> Option<GroupEvent> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let word = parts.next()?;
        let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse().ok();
        let (number, session) = (number()?, number()?);
        Some(match word {
            b"delivered" => GroupEvent::Delivered {
                number,
                from: session,
                body: parts.next()?.to_vec(),
            },
            b"joined" => GroupEvent::Joined { number, session },
            b"left" => GroupEvent::Left { number, session },
            _ => return None,
        })
    }
}

/// The answer to a member that joins or comes back.
struct Answer {
    order: String,
    using: String,
    last: u64,
    members: u64,
    missed: u64,
    deliveries: Vec<GroupEvent>,
}

impl Answer {
    fn read(value: &Value) -> Call<Answer> {
        let read = || {
            let number = |name: &str| value.field(name)?.number();
            let text = |name: &str| value.field(name)?.text().map(str::to_owned);
            let deliveries = value.field("deliveries")?.list()?.iter();
            Some(Answer {
                order: text("order")?,
                using: text("using")?,
                last: number("last")?,
                members: number("members")?,
                missed: number("missed")?,
                deliveries: deliveries.map(delivery).collect::<Option<_>>()?,
            })
        };
        read().ok_or_else(|| NotDone::Unknown("the answer to GROUP JOIN cannot be read".into()))
    }
}

fn delivery(value: &Value) -> Option<GroupEvent> {
    let [number, from, body] = value.list()? else {
        return None;
    };
    Some(GroupEvent::Delivered {
        number: number.number()?,
        from: from.number()?,
        body: body.bytes()?.to_vec(),
    })
}

/// A session's membership of a group. Dropping it leaves the session a member; [`Member::leave`] ends that, and so does the
/// end of the session.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let data = tempfile::tempdir()?;
/// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
/// let session = testigo.session(testigo::SessionOptions::default()).await?;
/// let member = session.join_group("talk").await?;
/// assert_eq!((member.order(), member.members()), ("TOTAL", 1));
/// assert_eq!(member.send(b"hello").await?, member.joined_after() + 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Member {
    session: Session,
    group: String,
    channel: String,
    order: String,
    using: String,
    joined_after: u64,
    members: u64,
    /// The number of the last message that was delivered here, or missed.
    last: u64,
    /// The connection over which the node pushes what follows `last`; `None` once some of that was skipped.
    link: Option<u64>,
    heard: broadcast::Receiver<(String, Vec<u8>)>,
    pending: VecDeque<GroupEvent>,
    backoff: Backoff,
    over: bool,
}

impl Session {
    /// Joins a group, or continues a membership that the session has, behind the last message.
    pub async fn join_group(&self, join: impl Into<Join>) -> Call<Member> {
        let join = join.into();
        let heard = self.client().published.subscribe();
        let link = self.standing.borrow().links;
        let answer = self.client().ask(join.line(), Again::InSession).await?;
        let answer = Answer::read(&answer)?;
        Ok(Member {
            session: self.clone(),
            channel: format!("group:{}", join.group),
            group: join.group,
            order: answer.order,
            using: answer.using,
            joined_after: answer.last,
            members: answer.members,
            last: answer.last,
            link: Some(link),
            heard,
            pending: VecDeque::new(),
            backoff: Backoff::new(self.id()),
            over: false,
        })
    }
}

impl Member {
    /// The group's name.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The order that it asks for, as on the wire.
    pub fn order(&self) -> &str {
        &self.order
    }

    /// What orders it.
    pub fn using(&self) -> &str {
        &self.using
    }

    /// The number of the last message before this session joined.
    pub fn joined_after(&self) -> u64 {
        self.joined_after
    }

    /// How many members there were when this session joined, itself included.
    pub fn members(&self) -> u64 {
        self.members
    }

    /// The session that is the member.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Sends to all members, this one included; returns the message's number once the message has its place in the order and
    /// is durable. If the answer is lost, the outcome is unknown: a message that was sent is delivered here, too.
    pub async fn send(&self, body: &[u8]) -> Call<u64> {
        let line = [&b"GROUP"[..], b"SEND", self.group.as_bytes(), body];
        let line = line.map(<[u8]>::to_vec).to_vec();
        let sent = self
            .session
            .client()
            .errand(|end| Errand::Say { line, end });
        let unread = || NotDone::Unknown("the answer to GROUP SEND cannot be read".into());
        sent.await?.number().ok_or_else(unread)
    }

    /// The next event. Dropping the future loses nothing. `STALE` if the session has ended or is no longer a member,
    /// `UNAVAILABLE` if no node answered for as long as the session may live; until then this waits through lost connections.
    pub async fn next(&mut self) -> Call<GroupEvent> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Ok(event);
            }
            match self.heard.try_recv() {
                Ok((channel, line)) => self.hear(&channel, &line),
                Err(error::TryRecvError::Lagged(_)) => self.link = None,
                Err(error::TryRecvError::Closed) => return Err(stopped()),
                Err(error::TryRecvError::Empty) => self.wait().await?,
            }
        }
    }

    /// There is nothing left to report: asks for what was skipped, or waits.
    async fn wait(&mut self) -> Call<()> {
        let standing = *self.session.standing.borrow_and_update();
        match standing.over {
            Some(Loss::Silence) => {
                let why = "no node answered for as long as the session may live";
                return Err(NotDone::refused(Word::Unavailable, why));
            }
            Some(_) => return Err(self.no_member()),
            None if self.over => return Err(self.no_member()),
            None => {}
        }
        if self.link != Some(standing.links) {
            return self.catch_up(standing.links).await;
        }
        tokio::select! {
            heard = self.heard.recv() => match heard {
                Ok((channel, line)) => self.hear(&channel, &line),
                Err(error::RecvError::Lagged(_)) => self.link = None,
                Err(error::RecvError::Closed) => return Err(stopped()),
            },
            changed = self.session.standing.changed() => changed.map_err(|_| stopped())?,
        }
        Ok(())
    }

    /// Continues the membership, perhaps over a new connection.
    async fn catch_up(&mut self, link: u64) -> Call<()> {
        let last = self.last.to_string();
        let line = words(["GROUP", "JOIN", &self.group, "AFTER", &last]);
        match self.session.client().ask(line, Again::InSession).await {
            Ok(answer) => {
                let answer = Answer::read(&answer)?;
                self.link = Some(link);
                self.backoff.reset();
                if answer.missed > 0 {
                    self.pending.push_back(GroupEvent::Missed {
                        count: answer.missed,
                        last: self.last + answer.missed,
                    });
                }
                self.pending.extend(answer.deliveries);
                self.last = answer.last;
                Ok(())
            }
            Err(NotDone::Refused(refusal)) if refusal.word == Word::Stale => {
                self.over = true;
                Err(self.no_member())
            }
            // The node cannot serve now. Either a node can before the session has ended, or the session reports its end.
            Err(not_done)
                if not_done
                    .word()
                    .is_none_or(|word| *word == Word::Unavailable) =>
            {
                tokio::time::sleep(self.backoff.pause()).await;
                Ok(())
            }
            Err(not_done) => Err(not_done),
        }
    }

    /// Takes a line of a channel. What an answer has already reported is skipped.
    fn hear(&mut self, channel: &str, line: &[u8]) {
        if channel != self.channel || self.link.is_none() {
            return;
        }
        let Some(event) = GroupEvent::read(line) else {
            return;
        };
        match event {
            GroupEvent::Delivered { number, .. } if number <= self.last => return,
            GroupEvent::Delivered { number, .. } if number == self.last + 1 => self.last = number,
            // It came between this connection and the previous one.
            GroupEvent::Delivered { .. } => return self.link = None,
            GroupEvent::Joined { number, .. } | GroupEvent::Left { number, .. }
                if number < self.last =>
            {
                return;
            }
            GroupEvent::Left { session, .. } => self.over |= session == self.session.id(),
            GroupEvent::Joined { .. } | GroupEvent::Missed { .. } => {}
        }
        self.pending.push_back(event);
    }

    /// Leaves the group; returns once that is durable.
    pub async fn leave(self) -> Call<()> {
        let line = words(["GROUP", "LEAVE", &self.group]);
        let left = self.session.client().ask(line, Again::InSession);
        left.await.map(drop)
    }

    fn no_member(&self) -> NotDone {
        let (session, group) = (self.session.id(), &self.group);
        let why = format!("session {session} is over, or no member of group {group} any more");
        NotDone::refused(Word::Stale, why)
    }
}

impl Client {
    /// A group with its members, as the node shows it; null if it has no members.
    pub async fn show_group(&self, group: &str) -> Call<Value> {
        let line = words(["GROUP", "MEMBERS", group]);
        self.ask(line, Again::Always).await
    }
}

fn stopped() -> NotDone {
    NotDone::refused(Word::Unavailable, "the client's runtime has stopped")
}
