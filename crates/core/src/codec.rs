//! How commands and answers are encoded when they travel between nodes or wait for their turn. The frame around them names
//! the version; these bytes have only the content. Bytes from outside never cause a panic, and never make it allocate more
//! than a few times their own length.

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::error::{Refusal, Word};

/// Encodes a [`Command`], an [`Answer`](crate::Answer) or a [`Refusal`].
pub fn encode(value: &impl Serialize) -> Box<[u8]> {
    let bytes = postcard::to_allocvec(value);
    bytes.expect("plain data can be written down").into()
}

/// Decodes what [`encode`] wrote, borrowing its texts. `BADARG` for anything else.
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

/// A [`Command`] that owns its texts, to be kept until it can be carried out, or sent to another node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Box<[u8]>", into = "Box<[u8]>")]
pub struct OwnedCommand(Box<[u8]>);

impl OwnedCommand {
    /// Keeps bytes from another node after checking that they are a command.
    pub fn read(bytes: &[u8]) -> Result<OwnedCommand, Refusal> {
        decode::<Command<'_>>(bytes)?;
        Ok(OwnedCommand(bytes.into()))
    }

    /// The encoded bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The command, to carry it out.
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
