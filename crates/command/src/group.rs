//! `testigo group`: follows what is delivered to a group, sends to it, and says who is a member.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value as Json, json};
use testigo_client::{
    Client, GroupEvent, GroupOrder, Join as Request, Member, NotDone, Session, SessionOptions,
    Value, Word,
};
use testigo_core::Limits;

use crate::exit::{NOT_GOOD, Outcome};
use crate::lock::held::{close, not_run};
use crate::reach::{Ended, Reach, label};
use crate::show::{bytes_json, print_fields, print_json, print_rows};
use crate::signals::{Signals, code_of};
use crate::span::Span;
use crate::visible::Output;

/// Send to a group, and be delivered all that its members send, in one order.
///
/// What one member sends is delivered to all members, with a number, in the same order
/// everywhere. A group needs no creation: there is one while it has members.
///
/// Example: testigo group join talk
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Group {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Join(Join),
    Send(Send),
    Members(Members),
}

/// Be a member of a group, and print what is delivered, one line each.
///
/// The first line is `joined NUMBER SESSION`: who this member is, and the number of the last
/// message before. Then follow `delivered NUMBER SESSION BODY`, `joined NUMBER SESSION` and
/// `left NUMBER SESSION` of other members. Numbers follow each other. A lost connection is
/// made anew, at another node if several are named, and what was sent meanwhile is delivered;
/// `missed COUNT LAST` says how many messages, up to number LAST, are kept no longer.
/// Backslashes and control characters in a body are escaped; --json has them as they are.
///
/// Exit code: 0 so many messages as --count says are delivered; 1 the session was ended, or
/// has left; 69 no node reachable; 75 the group has another order; 2 bad input; 128+N signal N.
///
/// Examples:
///
///     testigo group join talk
///     testigo group join talk --json | while read -r line; do ./handle.sh "$line"; done
///     testigo group join votes --order causal --count 3
///     testigo group join quick --using isis
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Join {
    /// The group.
    name: String,
    /// The order that a new group asks for; total without it. The log gives all three.
    #[arg(long, value_name = "ORDER")]
    order: Option<AskedOrder>,
    /// By what a new group is ordered: log, isis or sequencer; log without it. The log is on
    /// disk, the others are faster and only in the memory of all nodes.
    #[arg(long, value_name = "NAME")]
    using: Option<String>,
    /// End after so many messages.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// How long this machine may be silent before it is no member any more.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    ttl: Span,
    /// Print a JSON object per line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// In which order a group delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AskedOrder {
    /// What one member sends is delivered in its order.
    Fifo,
    /// As that, and whatever may have caused a message is delivered before it.
    Causal,
    /// All members are delivered everything in one order.
    Total,
}

/// Send to all members of a group, and print the message's number.
///
/// Joins the group for as long as that takes. The number is printed once the message has its
/// place in the order and is on the disks of a majority, or, in a group that is ordered by
/// isis or a sequencer, in the memory of every node.
///
/// Exit code: 0; 1 the group has no members, so nothing was sent; 69 no node reachable;
/// 76 unknown whether it was sent; 2 bad input.
///
/// Examples:
///
///     testigo group send talk "hello everybody"
///     date | testigo group send talk
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Send {
    /// The group.
    name: String,
    /// What to send, at most 64 KiB; without it, all of standard input.
    body: Option<String>,
    /// Print JSON: the group's name and the message's number.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Show a group: its order, its last number and its members.
///
/// Exit code: 0; 1 nobody is a member; 69 no node reachable; 2 bad input.
///
/// Example: testigo group members talk
#[derive(Args)]
#[command(verbatim_doc_comment)]
struct Members {
    /// The group.
    name: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    reach: Reach,
}

impl Group {
    pub(crate) fn run(self) -> Outcome {
        match &self.action {
            Action::Join(join) => join.reach.end_with(async {
                let mut signals = Signals::new()?;
                join.follow(&mut signals).await
            }),
            Action::Send(send) => send.reach.talk(async |client| send.talk(client).await),
            Action::Members(members) => members
                .reach
                .talk(async |client| members.talk(client).await),
        }
    }
}

impl Join {
    async fn follow(&self, signals: &mut Signals) -> Result<ExitCode, Ended> {
        let begin = async {
            let client = self.reach.connect().await?;
            let session = open(&client, self.ttl).await?;
            let joined = session.join_group(self.request()).await;
            match joined.map_err(not_run) {
                Ok(member) => Ok(member),
                Err(end) => {
                    close(session).await;
                    Err(end)
                }
            }
        };
        let mut member = tokio::select! {
            member = begin => member?,
            signal = signals.next() => return Ok(ExitCode::from(code_of(signal))),
        };
        let end = tokio::select! {
            end = self.print_all(&mut member) => end,
            signal = signals.next() => Ok(ExitCode::from(code_of(signal))),
        };
        close(member.session().clone()).await;
        end
    }

    fn request(&self) -> Request {
        let mut request = Request::new(&self.name);
        if let Some(order) = self.order {
            request = request.order(match order {
                AskedOrder::Fifo => GroupOrder::Fifo,
                AskedOrder::Causal => GroupOrder::Causal,
                AskedOrder::Total => GroupOrder::Total,
            });
        }
        match &self.using {
            Some(using) => request.using(using),
            None => request,
        }
    }

    async fn print_all(&self, member: &mut Member) -> Result<ExitCode, Ended> {
        let (last, session) = (member.joined_after(), member.session().id());
        self.print(match self.json {
            true => json!({
                "event": "joined", "number": last, "session": session, "own": true,
                "order": member.order(), "using": member.using(), "members": member.members(),
            })
            .to_string(),
            false => format!("joined {last} {session}"),
        })?;
        let mut delivered = 0;
        while self.count.is_none_or(|count| delivered < count) {
            let event = match member.next().await {
                Ok(event) => event,
                Err(not_done) => return Err(ended(&self.name, not_done)),
            };
            delivered += u64::from(matches!(event, GroupEvent::Delivered { .. }));
            self.print(match self.json {
                true => json_line(&event).to_string(),
                false => plain_line(&event),
            })?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// At once, for whoever reads line by line.
    fn print(&self, line: String) -> Result<(), Ended> {
        let printed = writeln!(Output, "{line}").and_then(|()| Output.flush());
        printed.map_err(|error| Ended::bad_input(error.to_string()))
    }
}

/// Why a membership has ended.
fn ended(name: &str, not_done: NotDone) -> Ended {
    match not_done.word() {
        Some(Word::Stale) => {
            let why = format!("the session was ended, or is no member of {name} any more");
            Ended::new(NOT_GOOD, why)
        }
        _ => Ended::from(not_done),
    }
}

fn json_line(event: &GroupEvent) -> Json {
    match event {
        GroupEvent::Delivered { number, from, body } => {
            json!({ "event": "delivered", "number": number, "session": from, "body": bytes_json(body) })
        }
        GroupEvent::Joined { number, session } => {
            json!({ "event": "joined", "number": number, "session": session, "own": false })
        }
        GroupEvent::Left { number, session } => {
            json!({ "event": "left", "number": number, "session": session })
        }
        GroupEvent::Missed { count, last } => {
            json!({ "event": "missed", "count": count, "last": last })
        }
    }
}

fn plain_line(event: &GroupEvent) -> String {
    match event {
        GroupEvent::Delivered { number, from, body } => {
            format!("delivered {number} {from} {}", one_line(body))
        }
        GroupEvent::Joined { number, session } => format!("joined {number} {session}"),
        GroupEvent::Left { number, session } => format!("left {number} {session}"),
        GroupEvent::Missed { count, last } => format!("missed {count} {last}"),
    }
}

/// A body as one line that tells no terminal what to do.
fn one_line(body: &[u8]) -> String {
    let mut line = String::new();
    for part in body.utf8_chunks() {
        for char in part.valid().chars() {
            match char {
                '\\' => line.push_str("\\\\"),
                char if char.is_control() => line.extend(char.escape_default()),
                char => line.push(char),
            }
        }
        for byte in part.invalid() {
            line.push_str(&format!("\\x{byte:02x}"));
        }
    }
    line
}

impl Send {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let body = self.body()?;
        let session = open(&client, Span(SessionOptions::default().ttl)).await?;
        let sent = self.send(&session, &body).await;
        close(session).await;
        let number = sent?;
        match self.json {
            true => println!("{}", json!({ "name": self.name, "number": number })),
            false => println!("{number}"),
        }
        Ok(ExitCode::SUCCESS)
    }

    fn body(&self) -> Result<Vec<u8>, Ended> {
        let Some(body) = &self.body else {
            let mut body = Vec::new();
            let read = io::stdin()
                .lock()
                .take(BODY_BYTES + 1)
                .read_to_end(&mut body);
            read.map_err(|error| Ended::bad_input(format!("standard input: {error}")))?;
            return match body.len() as u64 <= BODY_BYTES {
                true => Ok(body),
                false => Err(Ended::bad_input(format!(
                    "standard input has more than {BODY_BYTES} bytes, which is the most that one message has"
                ))),
            };
        };
        Ok(body.clone().into_bytes())
    }

    async fn send(&self, session: &Session, body: &[u8]) -> Result<u64, Ended> {
        let name = &self.name;
        let joined = session.join_group(name.as_str()).await;
        let member = joined.map_err(not_run)?;
        if member.members() < 2 {
            let why = format!(
                "nobody is a member of {name}, so nothing was sent; `testigo group join` makes one"
            );
            return Err(Ended::new(NOT_GOOD, why));
        }
        Ok(member.send(body).await?)
    }
}

impl Members {
    async fn talk(&self, client: Client) -> Result<ExitCode, Ended> {
        let group = client.show_group(&self.name).await?;
        if self.json {
            print_json(&group);
        }
        if group == Value::Null {
            let why = format!("nobody is a member of {}", self.name);
            return Err(Ended::new(NOT_GOOD, why));
        }
        if !self.json {
            print_fields(&group);
            println!();
            let members = group.field("members").and_then(Value::list);
            let columns = ["session", "label", "node", "joined_after"];
            print_rows(members.unwrap_or_default(), &columns);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The longest body of a message.
const BODY_BYTES: u64 = Limits::GROUP_BODY_BYTES as u64;

async fn open(client: &Client, Span(ttl): Span) -> Result<Session, Ended> {
    let label = Some(label());
    let options = SessionOptions { ttl, label };
    client.open(options).await.map_err(not_run)
}
