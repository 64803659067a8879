//! Decisions: many propose, one value is decided, and everybody is told that one.

use crate::client::Client;
use crate::machine::Again;
use crate::refusal::{Call, NotDone};
use crate::request::words;
use crate::value::Value;

impl Client {
    /// Proposes a value, and returns the decided one: the first that was proposed under this name, at this or any other node.
    /// By then it is on the disks of a majority. Repeating the call gives the same value, so it is repeated if an answer is
    /// lost.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let data = tempfile::tempdir()?;
    /// # let testigo = testigo::embed(testigo::Config::embedded(data.path())).await?;
    /// assert_eq!(testigo.decide("release", "7.1").await?, b"7.1");
    /// assert_eq!(testigo.decide("release", "7.2").await?, b"7.1", "it is decided");
    /// assert!(testigo.forget_decision("release").await?);
    /// assert_eq!(testigo.decide("release", "7.2").await?, b"7.2");
    /// # Ok(())
    /// # }
    /// ```
    pub async fn decide(&self, name: &str, value: &str) -> Call<Vec<u8>> {
        let line = words(["DECIDE", name, value]);
        let decided = self.ask(line, Again::Always).await?;
        let unread = || NotDone::Unknown("the answer to DECIDE cannot be read".into());
        decided.bytes().map(<[u8]>::to_vec).ok_or_else(unread)
    }

    /// Forgets a decision, so that the next proposal decides anew. Says whether there was one. If the answer is lost, the
    /// outcome is unknown: others may have decided anew since.
    pub async fn forget_decision(&self, name: &str) -> Call<bool> {
        let line = words(["DECIDE", "FORGET", name]);
        let answer = self.ask(line, Again::Never).await?;
        Ok(answer != Value::Null)
    }
}
