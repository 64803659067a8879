//! Random schedules, with a log that lags and crashes at any moment, against a model that a child could follow (a list
//! of jobs, searched from end to end) and against the ledger, which knows acknowledgements only.

use std::collections::BTreeMap;

use testigo_core::monitor::{Fate, JobLedger};
use testigo_core::*;

use crate::door::Door;
use crate::random::Random;
use crate::stage::{Stage, rejecting};

const QUEUES: [&str; 3] = ["orders", "priced", "rejected"];
const RETRIES: u32 = 2;

/// A job in the model, in order of its place.
#[derive(Clone, Debug)]
struct Row {
    name: String,
    queue: &'static str,
    place: u64,
    deaths: u32,
}

#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    places: u64,
}

impl Model {
    fn next_place(&mut self) -> u64 {
        self.places += 1;
        self.places
    }

    fn row(&mut self, name: &str) -> &mut Row {
        self.rows.iter_mut().find(|row| row.name == name).unwrap()
    }

    fn waiting(&self, queue: &str, held: &BTreeMap<String, Held>) -> Vec<String> {
        let mut rows: Vec<&Row> = self.rows.iter().collect();
        rows.retain(|row| row.queue == queue && !held.contains_key(&row.name));
        rows.sort_by_key(|row| row.place);
        rows.iter().map(|row| row.name.clone()).collect()
    }
}

/// Who holds a job in the test's own books.
#[derive(Clone, Copy, Debug)]
struct Held {
    worker: Option<SessionId>,
    taken: Taken,
    settling: bool,
}

/// What was submitted to the log and not yet applied, in order.
#[derive(Clone, Debug)]
enum Wish {
    Create(String),
    Pass(String, &'static str),
    Delete(String),
    Die(Vec<String>),
    /// A unit of work: the first is deleted and the second created.
    Replace(String, String),
    /// A unit of work that deletes a job and is then refused.
    Refused(String),
}

pub(crate) struct Run {
    random: Random,
    pub(crate) stage: Stage,
    model: Model,
    ledger: JobLedger,
    held: BTreeMap<String, Held>,
    wishes: Vec<Wish>,
    workers: Vec<SessionId>,
    next: u64,
    crashes: u32,
}

impl Run {
    pub(crate) fn new(seed: u64, door: Door) -> Run {
        let mut run = Run {
            random: Random::new(seed),
            stage: Stage::new(rejecting(RETRIES)),
            model: Model::default(),
            ledger: JobLedger::default(),
            held: BTreeMap::new(),
            wishes: Vec::new(),
            workers: Vec::new(),
            next: 0,
            crashes: 0,
        };
        run.stage.door = door;
        run.hire();
        run
    }

    fn hire(&mut self) {
        while self.workers.len() < 3 {
            self.next += 1;
            self.workers.push(self.stage.session(self.next));
        }
    }

    pub(crate) fn step(&mut self) -> Result<(), String> {
        match self.random.below(22) {
            0..=4 => self.create(),
            5..=8 => self.take()?,
            9..=11 => self.finish(),
            12 => self.give_back()?,
            13 => self.kill(),
            14 if self.random.one_in(10) => self.crash()?,
            15 => self.unit(),
            _ => self.flush()?,
        }
        self.agree()
    }

    fn create(&mut self) {
        self.next += 1;
        let name = format!("j{}", self.next);
        let change = self.stage.create_change("orders", &name);
        self.stage.queued.push_back((change, Vec::new()));
        self.wishes.push(Wish::Create(name));
    }

    fn take(&mut self) -> Result<(), String> {
        let worker = self.random.pick(&self.workers);
        let queue = self.random.pick(&QUEUES);
        let first = self.model.waiting(queue, &self.held).first().cloned();
        let taken = self.stage.take(worker, queue);
        let name = match taken {
            None => None,
            Some(taken) => Some(
                self.stage
                    .replicated
                    .job(taken.job)
                    .unwrap()
                    .name
                    .to_string(),
            ),
        };
        if name != first {
            return Err(format!("{name:?} was taken from {queue}, not {first:?}"));
        }
        if let (Some(name), Some(taken)) = (name, taken) {
            self.ledger.taken(&name, taken.attempt.0, worker.number())?;
            let held = Held {
                worker: Some(worker),
                taken,
                settling: false,
            };
            self.held.insert(name, held);
        }
        Ok(())
    }

    fn some_held(&mut self) -> Option<(String, SessionId, Taken)> {
        let held = self.held.iter().filter(|(_, held)| !held.settling);
        let held = held.filter_map(|(name, held)| Some((name.clone(), held.worker?, held.taken)));
        let held: Vec<_> = held.collect();
        (!held.is_empty()).then(|| held[self.random.below(held.len() as u64) as usize].clone())
    }

    fn finish(&mut self) {
        let Some((name, worker, taken)) = self.some_held() else {
            return;
        };
        self.held.get_mut(&name).unwrap().settling = true;
        match self.random.one_in(2) {
            true => {
                let to = self.random.pick(&QUEUES);
                self.stage.submit_pass(worker, taken, to).unwrap();
                self.wishes.push(Wish::Pass(name, to));
            }
            false => {
                self.stage.submit_delete(worker, taken).unwrap();
                self.wishes.push(Wish::Delete(name));
            }
        }
    }

    /// One job ends and another begins, in one entry of the log; every other time the second name is used twice, which
    /// no log may accept.
    fn unit(&mut self) {
        let Some((gone, worker, taken)) = self.some_held() else {
            return;
        };
        self.held.get_mut(&gone).unwrap().settling = true;
        self.next += 1;
        let come = format!("j{}", self.next);
        let wish = match self.random.one_in(2) {
            true => Wish::Replace(gone, come.clone()),
            false => Wish::Refused(gone),
        };
        let creates = 1 + usize::from(matches!(wish, Wish::Refused(_)));
        self.stage.submit_delete(worker, taken).unwrap();
        let create = self.stage.create_change("orders", &come);
        let unit = self.stage.queued.back_mut().map(|(change, _)| change);
        if let (Some(Change::Jobs(unit)), Change::Jobs(create)) = (unit, create) {
            for _ in 0..creates {
                unit.extend(create.clone());
            }
        }
        self.wishes.push(wish);
    }

    /// Nothing came of a unit: its job is in the same hands as before; if they are gone, that was a death.
    fn refused(&mut self, name: &str) {
        match self.held.get_mut(name) {
            Some(held) if held.worker.is_some() => held.settling = false,
            _ => self.wishes.push(Wish::Die(vec![name.into()])),
        }
    }

    fn give_back(&mut self) -> Result<(), String> {
        let Some((name, worker, taken)) = self.some_held() else {
            return Ok(());
        };
        let given_back = self.stage.ask(worker, &Command::GiveBack(taken));
        given_back.map_err(|refusal| refusal.to_string())?;
        self.held.remove(&name);
        self.ledger
            .accepted(&name, taken.attempt.0, worker.number())
    }

    fn kill(&mut self) {
        let at = self.random.below(self.workers.len() as u64) as usize;
        let worker = self.workers.remove(at);
        let mut died = Vec::new();
        let mut mine: Vec<(&String, &mut Held)> = self.held.iter_mut().collect();
        mine.retain(|(_, held)| held.worker == Some(worker));
        mine.sort_by_key(|(_, held)| held.taken.attempt);
        for (name, held) in mine {
            held.worker = None;
            if !held.settling {
                held.settling = true;
                died.push(name.clone());
            }
        }
        self.stage.kill(worker);
        if !died.is_empty() {
            self.wishes.push(Wish::Die(died));
        }
        self.hire();
    }

    /// The log catches up with one wish, and its wisher is answered.
    fn flush(&mut self) -> Result<(), String> {
        if self.wishes.is_empty() {
            return Ok(());
        }
        let wish = self.wishes.remove(0);
        let outcome = self.stage.flush_one();
        if let Wish::Refused(name) = &wish {
            let word = outcome.err().map(|refusal| refusal.word);
            if word != Some(Word::Duplicate) {
                return Err(format!("{wish:?} ended with {word:?}"));
            }
            self.refused(name);
            return Ok(());
        }
        outcome.map_err(|refusal| format!("{wish:?}: {refusal}"))?;
        self.fulfil(&wish, true)
    }

    /// What a wish does to the model. Unanswered ones are unknown to the ledger.
    fn fulfil(&mut self, wish: &Wish, answered: bool) -> Result<(), String> {
        let fate = match answered {
            true => Fate::Yes,
            false => Fate::Unknown,
        };
        match wish {
            Wish::Create(name) => {
                let place = self.model.next_place();
                self.model.rows.push(Row {
                    name: name.clone(),
                    queue: "orders",
                    place,
                    deaths: 0,
                });
                self.ledger.created(name, fate)?;
            }
            Wish::Pass(name, to) => {
                let place = self.model.next_place();
                let row = self.model.row(name);
                (row.queue, row.place, row.deaths) = (to, place, 0);
                self.released(name, answered)?;
            }
            Wish::Delete(name) => {
                self.model.rows.retain(|row| row.name != *name);
                self.released(name, answered)?;
                self.ledger.deleted(name, fate);
            }
            Wish::Replace(gone, come) => {
                self.model.rows.retain(|row| row.name != *gone);
                let place = self.model.next_place();
                self.model.rows.push(Row {
                    name: come.clone(),
                    queue: "orders",
                    place,
                    deaths: 0,
                });
                self.released(gone, answered)?;
                self.ledger.replaced(gone, come, fate)?;
            }
            Wish::Refused(_) => {}
            Wish::Die(names) => {
                for name in names {
                    self.die(name);
                    self.ledger.let_go(name);
                    self.held.remove(name);
                }
            }
        }
        Ok(())
    }

    fn die(&mut self, name: &str) {
        let row = self.model.row(name).clone();
        let deaths = row.deaths + 1;
        let rejected = row.queue == "orders" && deaths > RETRIES;
        let place = match rejected || deaths >= 2 {
            true => self.model.next_place(),
            false => row.place,
        };
        let row = self.model.row(name);
        (row.deaths, row.place) = (deaths, place);
        if rejected {
            row.queue = "rejected";
        }
    }

    fn released(&mut self, name: &str, answered: bool) -> Result<(), String> {
        let Some(held) = self.held.remove(name) else {
            return Ok(());
        };
        match held.worker.filter(|_| answered) {
            Some(worker) => self
                .ledger
                .accepted(name, held.taken.attempt.0, worker.number()),
            None => {
                self.ledger.let_go(name);
                Ok(())
            }
        }
    }

    /// `kill -9`: of what was submitted a prefix is durable.
    fn crash(&mut self) -> Result<(), String> {
        self.crashes += 1;
        let durable = self.random.below(self.wishes.len() as u64 + 1) as usize;
        for (at, wish) in std::mem::take(&mut self.wishes).iter().enumerate() {
            match at < durable {
                true => self.fulfil(wish, false)?,
                false => {
                    if let Wish::Create(name) = wish {
                        self.ledger.created(name, Fate::Unknown)?;
                    }
                    if let Wish::Delete(name) = wish {
                        self.ledger.deleted(name, Fate::Unknown);
                    }
                    if let Wish::Replace(gone, come) = wish {
                        self.ledger.replaced(gone, come, Fate::Unknown)?;
                    }
                }
            }
        }
        self.stage.crash(durable);
        if self.random.one_in(2) {
            self.stage.restart_from_image();
        }
        self.held.clear();
        self.ledger.restarted();
        self.workers.clear();
        self.hire();
        Ok(())
    }

    /// Model and services agree on every line, and no job is lost or doubled.
    fn agree(&self) -> Result<(), String> {
        for queue in QUEUES {
            let (model, stage) = (
                self.model.waiting(queue, &self.held),
                self.stage.waiting(queue),
            );
            if model != stage {
                return Err(format!("{queue}: {stage:?} wait, not {model:?}"));
            }
            let id = self.stage.queue(queue);
            let rows = self.model.rows.iter().filter(|row| row.queue == queue);
            let (count, model) = (self.stage.replicated.queue(id).unwrap().jobs, rows.count());
            if count != model as u64 {
                return Err(format!("{queue} counts {count} jobs, not {model}"));
            }
        }
        let living = self.stage.replicated.jobs().map(|job| &*job.name);
        let unanswered = self.wishes.is_empty();
        match unanswered {
            true => self.ledger.settle(living),
            false => Ok(()),
        }
    }
}

#[test]
fn random_schedules_agree_with_the_model_and_lose_nothing() {
    let mut crashes = 0;
    for seed in 0..300 {
        let mut run = Run::new(seed, Door::default());
        for step in 0..400 {
            if let Err(wrong) = run.step() {
                panic!("seed {seed}, step {step}: {wrong}");
            }
        }
        crashes += run.crashes;
    }
    assert!(crashes > 100, "only {crashes} crashes were tried");
}
