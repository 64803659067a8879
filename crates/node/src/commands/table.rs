//! The table of commands, and the way of every command: it is found by its name, authorised, carried out, and answered.

use testigo_core::{Refusal, Word};

use super::redis;
use super::routes::Route;
use super::unit::ends_unit;
use crate::house::{ActsFor, ClientId, House};
use crate::near::did_you_mean;
use crate::wire::{RawCommand, Reply, Words, bad_arg, refuse};

/// A command's answer: at once, or later by whoever unblocks the connection.
pub(crate) enum Answered {
    Now(Reply),
    Later,
}

pub(crate) type Outcome = Result<Answered, Refusal>;

/// One command of the wire.
pub(super) struct CommandRow {
    pub(super) name: &'static str,
    /// What follows the name.
    usage: &'static str,
    /// The minimum number of words, including the name.
    pub(super) words_min: usize,
    run: fn(&mut House, ClientId, Words<'_>) -> Outcome,
    needs: Needs,
}

/// What a command requires of its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing, because the command is how to get there.
    Nothing,
    /// Authenticated, if there is a password; allowed even while it listens to channels in version 2.
    Listening,
    /// Authenticated, if there is a password.
    Ordinary,
    /// The same, and a process of a flow if the user must present itself.
    Working,
}

#[rustfmt::skip]
pub(super) const COMMANDS: &[CommandRow] = &[
    CommandRow { name: "PING", usage: "[text]", words_min: 1, run: House::ping, needs: Needs::Listening },
    CommandRow { name: "LOCK", usage: "name [SHARED|PERMITS h|ROOM r [NEEDS ms]] [CLASS c] [WAIT ms] [REASON text] [ID token] [ASYNC] [RECEIPT|GRANT]", words_min: 2, run: House::lock, needs: Needs::Ordinary },
    CommandRow { name: "UNLOCK", usage: "name [fence]", words_min: 2, run: House::unlock, needs: Needs::Ordinary },
    CommandRow { name: "LOCKALL", usage: "n (name [SHARED|PERMITS h|ROOM r])… [WAIT ms] [REASON text] [ID token] [ASYNC] [RECEIPT|GRANT]", words_min: 3, run: House::lock_all, needs: Needs::Ordinary },
    CommandRow { name: "DOWNGRADE", usage: "name [RECEIPT|GRANT]", words_min: 2, run: House::downgrade, needs: Needs::Ordinary },
    CommandRow { name: "CANCEL", usage: "ticket", words_min: 2, run: House::cancel, needs: Needs::Ordinary },
    CommandRow { name: "FENCE", usage: "CHECK name fence", words_min: 4, run: House::fence, needs: Needs::Ordinary },
    CommandRow { name: "SESSION", usage: "OPEN|RESUME|CLOSE|INFO|LIST|END …", words_min: 2, run: House::session, needs: Needs::Ordinary },
    CommandRow { name: "GATE", usage: "CREATE|SHOW|LIST|DELETE …", words_min: 2, run: House::gate, needs: Needs::Ordinary },
    CommandRow { name: "ELECT", usage: "CAMPAIGN name value [RANK n] [TTL ms] [WAIT ms] [ASYNC] [RECEIPT|GRANT] | RESIGN name [term] | LEADER|SHOW name | LIST [pattern]", words_min: 2, run: House::elect, needs: Needs::Ordinary },
    CommandRow { name: "POOL", usage: "CREATE name SLOTS n|NAMES n slot[:label,…]… [FREELOW f] | TAKE name [COUNT c|UPTO c] [WHERE label] [WAIT ms] [ASYNC] | GIVE name slot… | SHOW name [CELLS n [FROM slot] [TO slot]] | DELETE name | LIST [pattern]", words_min: 2, run: House::pool, needs: Needs::Ordinary },
    CommandRow { name: "TRACE", usage: "name [ARRIVALS since|node instance from]", words_min: 2, run: House::trace, needs: Needs::Ordinary },
    CommandRow { name: "ONCE", usage: "START|DONE|ABANDON|FORGET key …", words_min: 3, run: House::once, needs: Needs::Ordinary },
    CommandRow { name: "DECIDE", usage: "name value | FORGET name", words_min: 3, run: House::decide, needs: Needs::Ordinary },
    CommandRow { name: "GROUP", usage: "JOIN name [ORDER FIFO|CAUSAL|TOTAL] [USING log|isis|sequencer] [AFTER n] | SEND name body | MEMBERS|LEAVE name", words_min: 2, run: House::group_command, needs: Needs::Ordinary },
    CommandRow { name: "FLOW", usage: "APPLY|SHOW|LIST|DELETE|CLIENTS|STATS …", words_min: 2, run: House::flow, needs: Needs::Working },
    CommandRow { name: "PRESENT", usage: "flow process", words_min: 3, run: House::present, needs: Needs::Ordinary },
    CommandRow { name: "JOB", usage: "CREATE|TAKE|PASS|DELETE|BACK|SHOW|HISTORY|FIND|LIST|COUNT|MOVE …", words_min: 2, run: House::job, needs: Needs::Working },
    CommandRow { name: "MULTI", usage: "", words_min: 1, run: House::multi, needs: Needs::Ordinary },
    CommandRow { name: "EXEC", usage: "", words_min: 1, run: House::exec, needs: Needs::Ordinary },
    CommandRow { name: "DISCARD", usage: "", words_min: 1, run: House::discard, needs: Needs::Ordinary },
    CommandRow { name: "QUEUE", usage: "SHOW name | LIST [pattern]", words_min: 2, run: House::queue_command, needs: Needs::Working },
    CommandRow { name: "STATUS", usage: "", words_min: 1, run: House::status, needs: Needs::Ordinary },
    CommandRow { name: "STATE", usage: "[pattern [GATE|SESSIONS|WAITS|FLOWS|LIVE]]", words_min: 1, run: House::state, needs: Needs::Ordinary },
    CommandRow { name: "SUBSCRIBE", usage: "gate:NAME|elect:NAME|group:NAME…", words_min: 2, run: House::subscribe, needs: Needs::Listening },
    CommandRow { name: "UNSUBSCRIBE", usage: "[gate:NAME|elect:NAME|group:NAME…]", words_min: 1, run: House::unsubscribe, needs: Needs::Listening },
    CommandRow { name: "PSUBSCRIBE", usage: "pattern…", words_min: 2, run: House::psubscribe, needs: Needs::Listening },
    CommandRow { name: "PUNSUBSCRIBE", usage: "[pattern…]", words_min: 1, run: House::punsubscribe, needs: Needs::Listening },
    CommandRow { name: "CLIENT", usage: "ID|SETINFO|SETNAME|GETNAME|UNBLOCK|LIST|INFO|END|REDIRECT …", words_min: 2, run: House::client, needs: Needs::Ordinary },
    CommandRow { name: "CLUSTER", usage: "STATUS|LEASE|WAITS|OWNERS|ADD|REMOVE|BACKUP …", words_min: 2, run: House::cluster, needs: Needs::Ordinary },
    CommandRow { name: "OWNER", usage: "[name]", words_min: 1, run: House::owner_command, needs: Needs::Ordinary },
    CommandRow { name: "ECHO", usage: "text", words_min: 2, run: House::echo, needs: Needs::Ordinary },
    CommandRow { name: "HELLO", usage: "[2|3 [AUTH user password] [SETNAME name]]", words_min: 1, run: House::hello, needs: Needs::Nothing },
    CommandRow { name: "AUTH", usage: "[user] password", words_min: 2, run: House::auth, needs: Needs::Nothing },
    CommandRow { name: "COMMAND", usage: "[COUNT|DOCS|LIST|INFO name…]", words_min: 1, run: House::command_command, needs: Needs::Ordinary },
    CommandRow { name: "INFO", usage: "[section]", words_min: 1, run: House::info, needs: Needs::Ordinary },
    CommandRow { name: "SELECT", usage: "0", words_min: 2, run: House::select, needs: Needs::Ordinary },
    CommandRow { name: "QUIT", usage: "", words_min: 1, run: House::quit, needs: Needs::Nothing },
    CommandRow { name: "RESET", usage: "", words_min: 1, run: House::reset, needs: Needs::Nothing },
];

/// Something that serves whole commands.
pub(crate) trait Serves {
    /// Carries out one command of a connection that is not blocked. Afterwards the answer is in its outbox, or the connection
    /// waits for it.
    fn serve(&mut self, id: ClientId, line: RawCommand<'_>) -> Turn;
}

/// The outcome of serving a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It was carried out.
    Done,
    /// Not yet: it must be served again when the log has answered what the connection has under way.
    NotYet,
}

impl Serves for House {
    fn serve(&mut self, id: ClientId, line: RawCommand<'_>) -> Turn {
        // `STALE` before a command: what this node knows is good enough.
        let stale = line.len() > 1 && line.word(0).is_some_and(is_stale);
        let line = if stale { line.behind() } else { line };
        self.serve_line(id, line, if stale { Known::Enough } else { Known::Little })
    }
}

/// How much of what a command reads is known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// Perhaps less than elsewhere.
    Little,
    /// Everything that the log says.
    Log,
    /// Good enough, whatever it is.
    Enough,
}

fn is_stale(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"STALE")
}

/// Carries out a command that has reached its owner, or has waited for the log.
pub(crate) fn serve_settled(house: &mut House, id: ClientId, line: RawCommand<'_>, known: Known) {
    house.serve_line(id, line, known);
}

/// Where a command goes.
pub(crate) fn route_of(house: &House, id: ClientId, line: RawCommand<'_>) -> Route {
    let row = line.word(0).and_then(find);
    row.map_or(Route::Here, |row| house.route(id, row.name, line.words()))
}

impl House {
    /// Carries out a command, or sends it to where it is carried out.
    fn serve_line(&mut self, id: ClientId, line: RawCommand<'_>, known: Known) -> Turn {
        let Some(name) = line.word(0) else {
            return Turn::Done;
        };
        let behind = self.connections.hear(id);
        let row = find(name);
        let route = match row.map_or(Route::Here, |row| self.route(id, row.name, line.words())) {
            Route::Read if known != Known::Little => Route::Here,
            route if known == Known::Enough && route.reads() => Route::Here,
            route => route,
        };
        let here = route == Route::Here;
        let pipelined = here && row.is_some_and(|row| is_pipelined(row, line.words()));
        if behind && !pipelined {
            self.connections.wait_for_the_log(id);
            return Turn::NotYet;
        }
        self.count_command();
        self.connections.cost.hear(line.len(), line.bytes());
        let outcome = match row {
            None => Err(unknown(name)),
            Some(row) => match self.authorise(id, row) {
                Err(refusal) => Ok(Answered::Now(refusal)),
                Ok(_) if line.len() < row.words_min => Err(bad_arg(format!(
                    "{} is not complete; it is {} {}",
                    row.name, row.name, row.usage
                ))),
                Ok(collected) => match self.may_work(id, row) {
                    Err(refusal) => Err(refusal),
                    Ok(()) if collected => self.collect(id, row, line.words()),
                    Ok(()) if here => (row.run)(self, id, line.words()),
                    Ok(()) => self.send_away(id, route, line),
                },
            },
        };
        if behind && !matches!(outcome, Ok(Answered::Later)) {
            // What is still under way may change the outcome, and its answers come first.
            self.uncount_command();
            self.connections.wait_for_the_log(id);
            self.pass_on();
            return Turn::NotYet;
        }
        if pipelined {
            self.connections.go_on_behind(id);
        }
        match outcome {
            Ok(Answered::Now(reply)) => self.connections.send(id, reply),
            Ok(Answered::Later) => {}
            Err(refusal) => {
                match name_is_exec(row) {
                    // Refused before it began; it ends the unit all the same.
                    true => self.drop_unit(id),
                    false => self.spoil(id, &refusal),
                }
                self.connections.send(id, refusal.into());
            }
        }
        // Commands about gates have renewed their session themselves; this is for all others.
        self.renew(id);
        self.pass_on();
        Turn::Done
    }
}

/// Whether a command only submits a change, so that the next one of its kind need not wait for the log. Everything that such
/// a command has checked is checked again when the log applies it.
fn is_pipelined(row: &CommandRow, mut words: Words<'_>) -> bool {
    match row.name {
        "JOB" => {
            // Without FAILED, which follows job and attempt, nothing is logged.
            let failed = words.keyword("BACK") && words.left() > 2;
            let steps = ["CREATE", "PASS", "DELETE", "MOVE"];
            failed || steps.iter().any(|step| words.keyword(step))
        }
        "GATE" => words.keyword("CREATE") || words.keyword("DELETE"),
        "ONCE" | "DECIDE" => true,
        "GROUP" => words.keyword("SEND"),
        _ => false,
    }
}

fn find(name: &[u8]) -> Option<&'static CommandRow> {
    COMMANDS
        .iter()
        .find(|row| row.name.as_bytes().eq_ignore_ascii_case(name))
}

fn unknown(name: &[u8]) -> Refusal {
    let name = String::from_utf8_lossy(&name[..name.len().min(64)]);
    if let Some(instead) = redis::instead(&name) {
        return bad_arg(format!("unknown command '{name}'; {instead}"));
    }
    // A shorter one is a Redis command rather than a typo: GET does not mean GATE.
    let near = COMMANDS.iter().filter(|_| name.len() > 3);
    let hint = did_you_mean(&name, near.map(|row| row.name));
    bad_arg(format!(
        "unknown command '{name}'; {hint}COMMAND lists what there is"
    ))
}

impl House {
    /// Whether a connection may give a command at all; its rights to names are checked where the names are read. Says whether
    /// the command is collected for a unit of work instead of being carried out now.
    fn authorise(&self, id: ClientId, row: &CommandRow) -> Result<bool, Reply> {
        let Some(client) = self.connections.client(id) else {
            return Err(refuse(Word::Unavailable, "the connection is closed").into());
        };
        if client.user.is_none() && row.needs != Needs::Nothing {
            return Err(Reply::Error("NOAUTH Authentication required.".into()));
        }
        let ordinary = matches!(row.needs, Needs::Ordinary | Needs::Working);
        if ordinary && client.only_listens() {
            return Err(bad_arg(format!(
                "a connection that listens to channels takes (P)SUBSCRIBE, (P)UNSUBSCRIBE, PING, QUIT and RESET, \
                 not {}; HELLO 3 lifts that",
                row.name
            ))
            .into());
        }
        Ok(client.unit.is_some() && !ends_unit(row))
    }

    fn may_work(&self, id: ClientId, row: &CommandRow) -> Result<(), Refusal> {
        // The client would take any answer of a node without a lease as a sign that its session lives.
        if self.member().is_some()
            && let Some(client) = self.connections.client(id)
            && matches!(client.acts_for, ActsFor::Opened(_))
            && !["AUTH", "HELLO", "QUIT", "RESET", "POOL"].contains(&row.name)
        {
            self.check_acts()?;
        }
        match row.needs {
            Needs::Working => self.presented_first(id),
            _ => Ok(()),
        }
    }
}

fn name_is_exec(row: Option<&CommandRow>) -> bool {
    row.is_some_and(|row| row.name == "EXEC")
}

/// The refusal of an unknown second word.
pub(super) fn unknown_word(command: &str, word: &str, known: &str) -> Refusal {
    let shown: String = word.chars().take(64).collect();
    let hint = did_you_mean(&shown, known.split(", "));
    bad_arg(format!(
        "{command} {shown:?} is unknown; {hint}it is one of {known}"
    ))
}
