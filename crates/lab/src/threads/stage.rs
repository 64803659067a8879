//! The threads of a program, their registers, and the observer that watches them. A simulation, a replay and a
//! schedule of the checker differ in who takes the next step; what happens then is here.

use testigo_memory::{Access, CountedMemory, Local, Program, Region, Registers};
use testigo_protocol::{NodeId, Shape, UserId};
use testigo_sim::Time;

use super::passage::{OpenPassage, Passage};
use crate::observer::{Observer, Wrong};
use crate::trace::{AskKind, Event, TellKind, Trace};

pub(crate) struct ThreadStage<'a> {
    pub(crate) program: &'a dyn Program,
    pub(crate) registers: Registers,
    pub(crate) shape: Shape,
    pub(crate) memory: CountedMemory,
    pub(crate) locals: Vec<Local>,
    pub(crate) observer: Observer,
    pub(crate) passages: Vec<Passage>,
    open: Vec<OpenPassage>,
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) behind: u64,
    events: Option<Vec<(Time, Event)>>,
    /// How many of the observer's violations are in the trace.
    told: usize,
}

/// What a step led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stepped {
    pub(crate) entered: bool,
    /// Its exit is over.
    pub(crate) ended: bool,
}

/// The shape of a program: processes, and the actors behind them.
pub(crate) fn shape(program: &dyn Program) -> Shape {
    Shape::with_extra(program.processes(), program.others())
}

/// The actors of a program before their first step.
pub(crate) fn first_locals(program: &dyn Program) -> Vec<Local> {
    let mut locals = vec![Local::REMAINDER; program.processes()];
    locals.resize(locals.len() + program.others().len(), Local::SERVING);
    locals
}

/// What is wrong with those inside, in words.
pub(crate) fn violation(program: &dyn Program, locals: &[Local]) -> Option<String> {
    let inside = || {
        let all = locals.iter().enumerate();
        all.filter(|(_, local)| local.region == Region::Inside)
    };
    let (first, one) = inside().next()?;
    if let Some((second, other)) = inside().find(|(_, local)| local.room != one.room) {
        let (room, another) = (one.room, other.room);
        return Some(format!(
            "p{first} in room {room} and p{second} in room {another} are inside together"
        ));
    }
    match program.permits() {
        Some(permits) if inside().count() > permits => {
            let names: Vec<String> = inside().map(|(process, _)| format!("p{process}")).collect();
            Some(format!("{} are inside together", names.join(" and ")))
        }
        _ => None,
    }
}

impl<'a> ThreadStage<'a> {
    pub(crate) fn new(program: &'a dyn Program, keep_trace: bool) -> ThreadStage<'a> {
        let shape = shape(program);
        let registers = program.registers();
        ThreadStage {
            memory: CountedMemory::new(&registers),
            locals: first_locals(program),
            observer: Observer::new(&shape, &[]),
            passages: Vec::new(),
            open: vec![OpenPassage::default(); shape.users],
            reads: 0,
            writes: 0,
            behind: 0,
            events: keep_trace.then(Vec::new),
            told: 0,
            program,
            registers,
            shape,
        }
    }

    pub(crate) fn record(&mut self, at: Time, event: impl FnOnce() -> Event) {
        if let Some(events) = &mut self.events {
            events.push((at, event()));
            if events.len() > Trace::EVENTS_MAX {
                self.events = None;
            }
        }
    }

    /// What a register holds before anything happens, where that is open.
    pub(crate) fn set(&mut self, register: usize, value: u64) {
        self.memory.words[register] = value;
        let name = self.registers[register].name.clone();
        self.record(Time::ZERO, || Event::Set(name, value));
    }

    /// The next step of an actor: a process in its remainder asks for the room, one that is inside leaves.
    pub(crate) fn step(&mut self, at: Time, actor: usize, room: u8) -> Stepped {
        let user = UserId(actor as u32);
        let mut local = self.locals[actor];
        match local.region {
            Region::Remainder => {
                local = Local::asking(room);
                self.open[actor] = OpenPassage::default();
                self.observer.asked(at, user, u32::from(room));
                let what = match self.program.rooms() {
                    1 => "Enter".to_owned(),
                    _ => format!("Enter({room})"),
                };
                self.record(at, || Event::Ask(user, AskKind::Requests, what));
            }
            Region::Inside if local.is_idle() => {
                local.leave();
                self.observer.left(at, user);
                self.record(at, || Event::Ask(user, AskKind::Leaves, "Leave".into()));
            }
            _ => {}
        }
        let before = local;
        self.memory.accesses.clear();
        self.program.step(actor, &mut local, &mut self.memory);
        self.locals[actor] = local;
        self.count(actor, before);
        for place in 0..self.memory.accesses.len() {
            let access = self.memory.accesses[place];
            let label = access.label(&self.registers);
            self.record(at, || Event::Access(NodeId(actor as u32), label));
        }
        let entered = before.region == Region::Trying && local.region == Region::Inside;
        let ended = before.region == Region::Exiting && local.region == Region::Remainder;
        if entered {
            self.observer.entered(at, user, None);
            self.record(at, || Event::Tell(user, TellKind::Enters, "Entered".into()));
            if let Some(what) = violation(self.program, &self.locals) {
                self.observer.report(at, Wrong::Safety, what);
            }
        }
        if ended {
            self.passages
                .push(std::mem::take(&mut self.open[actor]).ended());
        }
        self.tell_violations();
        Stepped { entered, ended }
    }

    fn count(&mut self, actor: usize, before: Local) {
        let made = &self.memory.accesses;
        let reads = made
            .iter()
            .filter(|access| matches!(access, Access::Read(..)));
        let reads = reads.count() as u64;
        self.reads += reads;
        self.writes += made.len() as u64 - reads;
        if let Some(room) = actor.checked_sub(self.shape.users) {
            self.behind += made.len() as u64;
            // An actor behind the processes serves the room of its number.
            for (local, open) in self.locals.iter().zip(&mut self.open) {
                if local.region != Region::Remainder && usize::from(local.room) == room {
                    open.step_behind(before, made);
                }
            }
            return;
        }
        self.open[actor].step(actor, before, made, &self.registers);
        let processes = self.locals[..self.shape.users].iter().enumerate();
        let active = processes.filter(|(_, local)| local.region != Region::Remainder);
        let active = active.map(|(process, _)| 1 << process).sum::<u64>() | 1 << actor;
        for (process, open) in self.open.iter_mut().enumerate() {
            if active >> process & 1 == 1 {
                open.meets(active);
            }
        }
    }

    /// The run is over, by itself or because it gets nowhere.
    pub(crate) fn end(&mut self, at: Time, stopped: Option<&str>) {
        self.record(at, || Event::End(stopped.unwrap_or("").into()));
        self.observer.end_waiting(at, stopped);
        self.tell_violations();
    }

    /// A cycle without service for this user can go on for ever.
    pub(crate) fn repeat(&mut self, at: Time, victim: UserId) {
        self.record(at, || Event::Repeat(victim));
        self.observer.starves(at, victim, true);
        self.tell_violations();
    }

    /// Nobody gets in, whoever steps.
    pub(crate) fn stuck(&mut self, at: Time) {
        self.end(at, None);
    }

    fn tell_violations(&mut self) {
        for index in self.told..self.observer.violations.len() {
            let found = &self.observer.violations[index];
            let (at, kind, what) = (found.at, found.kind.word().into(), found.what.clone());
            self.record(at, || Event::Violation(kind, what));
        }
        self.told = self.observer.violations.len();
    }

    pub(crate) fn events(&self) -> &[(Time, Event)] {
        self.events.as_deref().unwrap_or(&[])
    }

    pub(crate) fn into_trace(self) -> Option<Vec<(Time, Event)>> {
        self.events
    }
}
