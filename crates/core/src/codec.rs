//! The bytes in which commands and answers travel between nodes and wait for their turn. What frames them says their
//! version; here is only what they mean. Bytes from outside never panic, and never allocate more than a few times
//! their own length.

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::error::{Refusal, Word};

/// Writes a [`Command`], an [`Answer`](crate::Answer) or a [`Refusal`] down.
pub fn encode(value: &impl Serialize) -> Box<[u8]> {
    let bytes = postcard::to_allocvec(value);
    bytes.expect("plain data can be written down").into()
}

/// Reads what [`encode`] wrote, borrowing its texts. `BADARG` for anything else.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Refusal> {
    let damaged = |why: &str| {
        let length = bytes.len();
        let sentence = format!("{length} bytes that should be a command or its answer: {why}");
        Refusal::new(Word::BadArg, sentence)
    };
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok((_, rest)) => Err(damaged(&format!("{} are left over", rest.len()))),
        Err(error) => Err(damaged(&error.to_string())),
    }
}

/// A [`Command`] that owns its texts: what is kept until it can be carried out, and sent to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Box<[u8]>", into = "Box<[u8]>")]
pub struct OwnedCommand(Box<[u8]>);

impl OwnedCommand {
    /// Keeps what another node has sent, once it is known to be a command.
    pub fn read(bytes: &[u8]) -> Result<OwnedCommand, Refusal> {
        decode::<Command<'_>>(bytes)?;
        Ok(OwnedCommand(bytes.into()))
    }

    /// As it is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// As it is carried out.
    pub fn command(&self) -> Command<'_> {
        decode(&self.0).expect("only a command is kept")
    }
}

impl TryFrom<Box<[u8]>> for OwnedCommand {
    type Error = Refusal;

    fn try_from(bytes: Box<[u8]>) -> Result<OwnedCommand, Refusal> {
        decode::<Command<'_>>(&bytes)?;
        Ok(OwnedCommand(bytes))
    }
}

impl From<OwnedCommand> for Box<[u8]> {
    fn from(command: OwnedCommand) -> Box<[u8]> {
        command.0
    }
}

impl From<&Command<'_>> for OwnedCommand {
    fn from(command: &Command<'_>) -> OwnedCommand {
        OwnedCommand(encode(command))
    }
}
