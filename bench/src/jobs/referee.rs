//! Watches every run: what is taken was created, whole, and is in nobody else's hands; nothing comes back that was
//! deleted; and in the end every job is deleted. A number from a run that it stopped is never printed.

use super::body;

/// What the clients' own eyes see. No job is ever given back, so that each is taken once.
#[derive(Debug)]
pub(crate) struct Referee {
    /// The number of the first job; no two runs share one.
    first: u64,
    jobs: Vec<State>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Created,
    Held(usize),
    Deleted,
}

impl Referee {
    pub(crate) fn new(run: usize) -> Referee {
        Referee {
            first: (run as u64) << 32,
            jobs: Vec::new(),
        }
    }

    /// Numbers a job that is about to be created. It may be taken before its creator hears that it is there.
    pub(crate) fn creates(&mut self) -> u64 {
        self.jobs.push(State::Created);
        self.first + self.jobs.len() as u64 - 1
    }

    /// A client was given a job with this body.
    pub(crate) fn takes(&mut self, client: usize, found: &[u8]) -> Result<u64, String> {
        let number = body::number(found).ok_or_else(|| {
            let found = String::from_utf8_lossy(found);
            format!("client {client} took what nobody created: {found:.40}…")
        })?;
        self.holds(client, number)?;
        Ok(number)
    }

    /// A client has a job in its hands.
    pub(crate) fn holds(&mut self, client: usize, number: u64) -> Result<(), String> {
        match self.state(number) {
            Some(state @ State::Created) => *state = State::Held(client),
            Some(State::Held(other)) => {
                return Err(format!(
                    "job {number:x} is in the hands of {other} and {client}"
                ));
            }
            Some(State::Deleted) => {
                return Err(format!("job {number:x} came back after it was deleted"));
            }
            None => return Err(format!("job {number:x} is of another run")),
        }
        Ok(())
    }

    pub(crate) fn deletes(&mut self, client: usize, number: u64) -> Result<(), String> {
        match self.state(number) {
            Some(state) if *state == State::Held(client) => *state = State::Deleted,
            other => return Err(format!("client {client} deleted a job that was {other:?}")),
        }
        Ok(())
    }

    /// How many jobs are neither in somebody's hands nor deleted.
    pub(crate) fn waiting(&self) -> usize {
        let waiting = self.jobs.iter().filter(|job| **job == State::Created);
        waiting.count()
    }

    /// When all clients are done, so are all jobs.
    pub(crate) fn settle(&self) -> Result<(), String> {
        let left = self.jobs.iter().filter(|job| **job != State::Deleted);
        match left.count() {
            0 => Ok(()),
            left => Err(format!("{left} jobs are lost")),
        }
    }

    fn state(&mut self, number: u64) -> Option<&mut State> {
        let at = number.checked_sub(self.first)?;
        self.jobs.get_mut(usize::try_from(at).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(found: Result<impl std::fmt::Debug, String>, sign: &str) {
        assert!(
            found.as_ref().is_err_and(|why| why.contains(sign)),
            "{found:?}"
        );
    }

    #[test]
    fn a_loop_that_is_right_settles() {
        let mut referee = Referee::new(3);
        let job = referee.creates();
        assert_eq!(referee.waiting(), 1);
        assert_eq!(referee.takes(0, &body::body(job)), Ok(job));
        stopped(referee.settle(), "1 jobs are lost");
        assert_eq!(referee.deletes(0, job), Ok(()));
        assert_eq!((referee.waiting(), referee.settle()), (0, Ok(())));
    }

    #[test]
    fn what_is_wrong_is_seen() {
        let mut referee = Referee::new(3);
        let job = referee.creates();
        let found = body::body(job);
        stopped(referee.takes(0, &found[1..]), "nobody created");
        stopped(referee.takes(0, &body::body(job + 1)), "another run");
        stopped(referee.takes(0, &body::body(job - 1)), "another run");
        stopped(referee.deletes(0, job), "was Some(Created)");
        assert_eq!(referee.takes(0, &found), Ok(job));
        stopped(referee.takes(1, &found), "in the hands of 0 and 1");
        stopped(referee.deletes(1, job), "was Some(Held(0))");
        assert_eq!(referee.deletes(0, job), Ok(()));
        stopped(referee.takes(1, &found), "came back");
    }
}
