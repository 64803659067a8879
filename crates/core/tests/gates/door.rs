//! The door of the local half, as the seeded walks go through it: directly, or by way of the bytes in which a command
//! and its answer travel. What was answered and told is written down, so that two walks can be compared.

use testigo_core::*;

/// How a command gets to the local half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Way {
    #[default]
    Direct,
    Bytes,
    /// The specimen: some of what a command says is lost on the way.
    Lossy,
}

#[derive(Debug, Default)]
pub(crate) struct Door {
    pub(crate) way: Way,
    /// What every command came to, while this is wanted.
    pub(crate) heard: Option<Vec<String>>,
    /// The commands themselves, as they travel.
    pub(crate) sent: Vec<OwnedCommand>,
}

impl Door {
    /// One that notes what it hears.
    pub(crate) fn listening(way: Way) -> Door {
        Door {
            way,
            heard: Some(Vec::new()),
            sent: Vec::new(),
        }
    }

    pub(crate) fn apply(
        &mut self,
        (local, replicated): (&mut Local, &Replicated),
        now: u64,
        session: SessionId,
        command: &Command<'_>,
        events: &mut Vec<Event>,
    ) -> Result<Answer, Refusal> {
        let from = events.len();
        let mut carry_out =
            |command: &Command<'_>| local.apply(now, replicated, session, command, events);
        let answer = match self.way {
            Way::Direct => carry_out(command),
            Way::Bytes => {
                let bytes = encode(command);
                let there = decode(&bytes).and_then(|command| carry_out(&command));
                self.sent.push(OwnedCommand::read(&bytes).unwrap());
                decode(&encode(&there)).unwrap()
            }
            Way::Lossy => carry_out(&lossy(command)),
        };
        if let Some(heard) = &mut self.heard {
            heard.push(format!(
                "{session} {command:?}: {answer:?} {:?}",
                &events[from..]
            ));
        }
        answer
    }
}

fn lossy<'a>(command: &Command<'a>) -> Command<'a> {
    let mut command = command.clone();
    match &mut command {
        Command::Lock(lock) => lock.wait_ms = None,
        Command::Unlock { fence, .. } => *fence = Some(Fence(0)),
        Command::Take(take) => take.wait_ms = None,
        Command::Resume { claims } => {
            for claim in claims.to_mut() {
                claim.proven = false;
            }
        }
        Command::GiveBack(taken) => taken.attempt.0 += 1,
        _ => {}
    }
    command
}
