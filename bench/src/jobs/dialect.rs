//! What a client must say to a queue, and how it reads the answers. The generator knows nothing else about the system that
//! it drives, so that all of them are driven alike.

use std::net::TcpStream;

/// One client's side of one system's way to create, take and delete a job.
pub(crate) trait Dialect {
    /// What is said once, before the clock runs.
    fn greet(&mut self, _stream: &mut TcpStream) -> Result<(), String> {
        Ok(())
    }

    /// Makes the queue; only the first client does, before all greet.
    fn prepare(&mut self, _stream: &mut TcpStream) -> Result<(), String> {
        Ok(())
    }

    /// Writes the request to create a job.
    fn create(&mut self, body: &[u8], out: &mut Vec<u8>);

    /// Writes the request for any job.
    fn take(&mut self, out: &mut Vec<u8>);

    /// Writes the request to delete the job that was taken.
    fn delete(&mut self, out: &mut Vec<u8>);

    /// Reads one answer from the front of `input` and says how many bytes it took; nothing while it is incomplete. What
    /// the protocol wants said in return goes to `out`.
    fn read<'a>(
        &mut self,
        input: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(usize, Answer<'a>)>, String>;
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer<'a> {
    Created,
    /// With the job's body, where there are jobs.
    Taken(Option<&'a [u8]>),
    /// No job is there: try again after the customary pause.
    Empty,
    Deleted,
    /// Nothing that concerns a job.
    Aside,
}
