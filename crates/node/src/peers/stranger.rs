//! A stranger at the door between nodes, until it is known who it is.

use std::io;
use std::net::IpAddr;
use std::time::Instant;

use bytes::BytesMut;

use super::frames::{Opener, Sealer, UNPROVEN};
use super::greeting::{HELLO_BYTES, Hello, PROOF_BYTES, Purpose, Secrets, Side};
use super::identity::Identity;
use super::join::{self, ASK_BYTES_MAX};
use super::stream::Stream;
use super::warnings::About;

/// How much is read from a stranger: more than any greeting has.
const STRANGER_BYTES_MAX: usize = 2 * ASK_BYTES_MAX;

/// A stranger at the door.
#[derive(Debug)]
pub(super) struct Stranger {
    pub(super) stream: Stream,
    pub(super) from: IpAddr,
    /// When it is cut off.
    pub(super) until: Instant,
    heard: BytesMut,
    unsent: Vec<u8>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Hello,
    Proof {
        hello: Hello,
        secrets: Secrets,
    },
    Join {
        opener: Opener,
        sealer: Sealer,
    },
    /// Everything is said.
    Leaves,
}

/// What happens to it.
#[derive(Debug)]
pub(super) enum Fate {
    /// More is to come.
    Waits,
    /// It is a member.
    Member(Box<Member>),
    /// It is cut off, for this reason if that is worth logging.
    Gone(Option<String>),
}

/// Another node, which is heard from now on.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) hello: Hello,
    pub(super) opener: Opener,
    pub(super) heard: BytesMut,
}

impl Stranger {
    pub(super) fn new(stream: Stream, from: IpAddr, until: Instant) -> Stranger {
        Stranger {
            stream,
            from,
            until,
            heard: BytesMut::new(),
            unsent: Vec::new(),
            stage: Stage::Hello,
        }
    }

    /// The socket has something to read, or room to write. `judge` says whether a node may come in; `answers` answers a
    /// newcomer.
    pub(super) fn go_on(
        &mut self,
        identity: &Identity,
        judge: impl Fn(&Hello) -> Result<(), String>,
        answers: impl Fn(testigo_core::Newcomer) -> join::JoinAnswer,
    ) -> Fate {
        let mut buffer = [0; 1024];
        let mut ended = false;
        while self.heard.len() < STRANGER_BYTES_MAX {
            match self.stream.read(&mut buffer) {
                Ok(0) => {
                    ended = true;
                    break;
                }
                Ok(count) => self.heard.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Fate::Gone(Some(error.to_string())),
            }
        }
        let member = match self.advance(identity, judge, answers) {
            Ok(member) => member,
            Err(why) => return Fate::Gone(Some(why)),
        };
        match (self.send(), member) {
            (Err(error), _) => Fate::Gone(Some(error.to_string())),
            (Ok(true), Some(member)) => Fate::Member(Box::new(member)),
            (Ok(false), Some(_)) => Fate::Gone(Some("it takes no verdict".into())),
            (Ok(true), None) if matches!(self.stage, Stage::Leaves) => Fate::Gone(None),
            _ if ended => Fate::Gone(None),
            _ if self.heard.len() >= STRANGER_BYTES_MAX => {
                Fate::Gone(Some("it says too much".into()))
            }
            _ => Fate::Waits,
        }
    }

    fn advance(
        &mut self,
        identity: &Identity,
        judge: impl Fn(&Hello) -> Result<(), String>,
        answers: impl Fn(testigo_core::Newcomer) -> join::JoinAnswer,
    ) -> Result<Option<Member>, String> {
        loop {
            match &mut self.stage {
                Stage::Hello => {
                    if !Hello::may_begin_with(&self.heard) {
                        return Err("it does not speak as a node does".into());
                    }
                    let Some(theirs) = self.heard.first_chunk::<HELLO_BYTES>().copied() else {
                        return Ok(None);
                    };
                    drop(self.heard.split_to(HELLO_BYTES));
                    self.greet(identity, &theirs)?;
                    if let Stage::Hello = self.stage {
                        let hello = Hello::read(&theirs).map_err(|error| error.to_string())?;
                        if let Some(member) = self.let_in(identity, hello, None, &judge) {
                            return Ok(Some(member));
                        }
                    }
                }
                Stage::Proof { hello, secrets } => {
                    if self.heard.len() < PROOF_BYTES {
                        return Ok(None);
                    }
                    let proof = self.heard.split_to(PROOF_BYTES);
                    if let Err(error) = secrets.check(&proof) {
                        let why = format!("node {}: {error}", hello.from);
                        self.unsent.extend_from_slice(&UNPROVEN);
                        return Err(self.turned_away(identity, why));
                    }
                    let Stage::Proof { hello, secrets } =
                        std::mem::replace(&mut self.stage, Stage::Leaves)
                    else {
                        return Ok(None);
                    };
                    if let Some(member) = self.let_in(identity, hello, Some(&secrets), &judge) {
                        return Ok(Some(member));
                    }
                }
                Stage::Join { opener, sealer } => {
                    let ask = opener.next(&mut self.heard);
                    let Some(ask) = ask.map_err(|error| error.to_string())? else {
                        return Ok(None);
                    };
                    sealer.seal(&join::answer(&ask, &answers), &mut self.unsent);
                    self.stage = Stage::Leaves;
                }
                Stage::Leaves => return Ok(None),
            }
        }
    }

    /// Answers a hello. A node with another version or no secret learns that from the answer.
    fn greet(&mut self, identity: &Identity, theirs: &[u8; HELLO_BYTES]) -> Result<(), String> {
        let read = Hello::read(theirs);
        let purpose = read.as_ref().map_or(Purpose::Frames, |hello| hello.purpose);
        let to = read.as_ref().map_or(0, |hello| hello.from);
        let mine = identity
            .hello(purpose, to)
            .map_err(|error| error.to_string())?;
        // Only members need to know which cluster this is.
        let cluster = testigo_core::ClusterId::default();
        let mine = Hello { cluster, ..mine }.write();
        self.unsent.extend_from_slice(&mine);
        let fits = read.and_then(|hello| {
            hello.fits(identity.secret.is_some(), identity.lease_ms)?;
            Ok(hello)
        });
        let hello = match fits {
            Ok(hello) => hello,
            Err(error) => return Err(self.turned_away(identity, error.to_string())),
        };
        if let Some(secret) = &identity.secret {
            let secrets = Secrets::new(secret, theirs, &mine);
            self.stage = Stage::Proof { hello, secrets };
        }
        Ok(())
    }

    /// Sends what tells it why it cannot come in, and says so here.
    fn turned_away(&mut self, identity: &Identity, why: String) -> String {
        let _ = self.send();
        let from = self.from;
        identity
            .warnings
            .say(About::Refused, 0, || format!("{from} is refused: {why}"));
        why
    }

    /// Gives the verdict.
    fn let_in(
        &mut self,
        identity: &Identity,
        hello: Hello,
        secrets: Option<&Secrets>,
        judge: impl Fn(&Hello) -> Result<(), String>,
    ) -> Option<Member> {
        let key = |side| secrets.map(|secrets| secrets.frame_key(side));
        let mut sealer = Sealer::new(key(Side::Acceptor));
        let opener = Opener::new(key(Side::Dialler), ASK_BYTES_MAX);
        let verdict = judge(&hello);
        let said = verdict.as_ref().err().map_or("", String::as_str);
        sealer.seal(said.as_bytes(), &mut self.unsent);
        match (verdict, hello.purpose) {
            (Err(why), _) => {
                let at = self.from;
                let refused = || format!("node {} at {at} is refused: {why}", hello.from);
                identity.warnings.say(About::Refused, hello.from, refused);
                self.stage = Stage::Leaves;
                None
            }
            (Ok(()), Purpose::Join) => {
                self.stage = Stage::Join { opener, sealer };
                None
            }
            (Ok(()), Purpose::Frames) => Some(Member {
                hello,
                opener,
                heard: std::mem::take(&mut self.heard),
            }),
        }
    }

    /// Sends what is unsent; false if the socket does not take all of it.
    fn send(&mut self) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.stream.send()
    }
}
