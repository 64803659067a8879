//! From what the nodes of a cluster have recorded of a run to its trace. Steps are put in an order in which every message
//! is sent before it is taken; among those that could come next, the earliest by its node's clock does.

mod users;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use testigo_protocol::{
    NodeId, PacketError, Record, RecordError, RecordHead, RecordedInput, RecordedStep, SetupError,
};
use testigo_sim::Time;

use crate::family::{KnownAlgorithm, LabError, Labeller};
use crate::trace::{AskKind, Clock, Event, Header, TellKind, Trace};

use users::Users;

impl Trace {
    /// The trace of a live run, from the records of its nodes: all of the same instance, each member in at most one.
    ///
    /// Where a record is missing or cut, what its members sent is heard from those who took it. What a node recorded
    /// after the last step of another that it depends on is left out. The last line of the trace says so.
    pub fn live(records: &[Record]) -> Result<Trace, LabError> {
        let Some(first) = records.first() else {
            return Err(LabError::new(
                "there is no record of this run: no node has one",
            ));
        };
        let mut merge = Merge::new(&first.head, records)?;
        merge.run()?;
        merge.into_trace()
    }
}

/// What one node recorded, as far as it is not in the trace yet.
struct Part {
    node: String,
    steps: VecDeque<RecordedStep>,
    /// Whether steps are missing at its end.
    cut: bool,
    over: bool,
}

/// The messages under way on a link, each with its number.
type Link = VecDeque<(u64, Vec<u8>)>;

struct Merge<'a> {
    head: &'a RecordHead,
    began: u64,
    parts: Vec<Part>,
    /// In which part a member is.
    hosts: Vec<Option<usize>>,
    /// What was sent on each link and not yet taken.
    links: FxHashMap<(NodeId, NodeId), Link>,
    labeller: Labeller,
    users: Users,
    seats: Vec<usize>,
    chosen: Vec<(String, String)>,
    numbered: u64,
    now: Time,
    events: Vec<(Time, Event)>,
}

/// Whether a step can come next.
enum Ready {
    Now,
    /// It takes a packet that its sender's record does not have, and cannot have.
    Heard,
    /// It takes a packet that another part will send.
    Later,
    /// It takes a packet that its sender sent after its own record was read.
    Never,
}

impl<'a> Merge<'a> {
    fn new(head: &'a RecordHead, records: &[Record]) -> Result<Merge<'a>, LabError> {
        let name = |id: NodeId| head.members.get(id.index()).cloned();
        let mut hosts = vec![None; head.members.len()];
        let mut parts = Vec::new();
        for (index, record) in records.iter().enumerate() {
            if record.head != *head {
                let (other, own) = (record.head.instance, head.instance);
                return Err(LabError::new(format!(
                    "records of two runs: instance {other:?} of {} and {own:?} of {}",
                    record.head.gate, head.gate
                )));
            }
            for &id in &record.hosted {
                let unknown = || LabError::new(format!("a record of {id}, which is no member"));
                let host = hosts.get_mut(id.index()).ok_or_else(unknown)?;
                if host.replace(index).is_some() {
                    return Err(LabError::new(format!("two records of member {id}")));
                }
            }
            let steps = record.steps();
            let steps = steps.map_err(|RecordError(why)| LabError::new(why))?;
            let first = record.hosted.first().and_then(|&id| name(id));
            parts.push(Part {
                node: first.unwrap_or_default(),
                steps: steps.into(),
                cut: !record.is_whole(),
                over: record.over,
            });
        }
        let algorithm = KnownAlgorithm::find(&head.algorithm)?;
        let bad = |SetupError(why)| LabError::new(why);
        let mut setup = head.setup().map_err(bad)?;
        let labeller = algorithm.labeller(&setup)?;
        let mut shape = algorithm.shape(&setup)?;
        if shape.is_shared() {
            let all = parts.iter().flat_map(|part| &part.steps);
            let classes = users::classes(shape.nodes(), all);
            setup.choose("classes", &classes).map_err(bad)?;
            shape = algorithm.shape(&setup)?;
        }
        if shape.nodes() != head.members.len() {
            let (named, nodes) = (head.members.len(), shape.nodes());
            return Err(LabError::new(format!(
                "the record names {named} members, and {} has {nodes}",
                head.algorithm
            )));
        }
        let chosen = setup.chosen().into_iter();
        Ok(Merge {
            head,
            began: records.iter().map(|r| r.began).min().unwrap_or(0),
            parts,
            hosts,
            links: FxHashMap::default(),
            labeller,
            seats: shape.seats().to_vec(),
            users: Users::new(shape),
            chosen: chosen.map(|(word, value)| (word.into(), value)).collect(),
            numbered: 0,
            now: Time::ZERO,
            events: Vec::new(),
        })
    }

    fn run(&mut self) -> Result<(), LabError> {
        while self.events.len() < Trace::EVENTS_MAX {
            let mut next: Option<(u64, usize, bool)> = None;
            for (index, part) in self.parts.iter().enumerate() {
                let Some(step) = part.steps.front() else {
                    continue;
                };
                let heard = match self.ready(step)? {
                    Ready::Now => false,
                    Ready::Heard => true,
                    Ready::Later | Ready::Never => continue,
                };
                if next.is_none_or(|(at, ..)| step.at < at) {
                    next = Some((step.at, index, heard));
                }
            }
            let Some((_, index, heard)) = next else {
                return self.judge_rest();
            };
            let step = self.parts[index].steps.pop_front();
            self.happen(step.expect("it was the first"), heard)?;
        }
        Ok(())
    }

    fn ready(&self, step: &RecordedStep) -> Result<Ready, LabError> {
        let RecordedInput::Packet { from, message } = &step.input else {
            return Ok(Ready::Now);
        };
        let link = self.links.get(&(*from, step.member));
        if let Some((number, sent)) = link.and_then(VecDeque::front) {
            return match sent == message {
                true => Ok(Ready::Now),
                false => Err(LabError::new(format!(
                    "{} took another message from {} than #{number}, which was the next on this link",
                    self.name(step.member),
                    self.name(*from)
                ))),
            };
        }
        let Some(host) = self.hosts[from.index()].map(|part| &self.parts[part]) else {
            return Ok(Ready::Heard);
        };
        match (host.steps.is_empty(), host.cut, host.over) {
            (false, ..) => Ok(Ready::Later),
            (true, true, _) => Ok(Ready::Heard),
            (true, false, false) => Ok(Ready::Never),
            (true, false, true) => Err(LabError::new(format!(
                "{} took a message from {} that was never sent",
                self.name(step.member),
                self.name(*from)
            ))),
        }
    }

    /// Nothing more can come: because records were read while the run went on, or because they are wrong.
    fn judge_rest(&self) -> Result<(), LabError> {
        let waits = self.parts.iter().filter(|part| !part.steps.is_empty());
        let ended = |part: &Part| part.steps.is_empty() && !part.cut && !part.over;
        match waits.count() > 0 && !self.parts.iter().any(ended) {
            false => Ok(()),
            true => Err(LabError::new(
                "the records cannot be put in order: each goes on with a message that another sends later",
            )),
        }
    }

    fn name(&self, node: NodeId) -> &str {
        &self.head.members[node.index()]
    }

    fn put(&mut self, event: Event) {
        self.events.push((self.now, event));
    }

    fn happen(&mut self, step: RecordedStep, heard: bool) -> Result<(), LabError> {
        let node = step.member;
        let after = (step.at - self.began).min(Time::UNITS_MAX);
        self.now = self.now.max(Time::units(after));
        match step.input {
            RecordedInput::Start => self.put(Event::Start(node)),
            RecordedInput::Fire(timer) => self.put(Event::Fire(node, timer.0)),
            RecordedInput::Ask(what) => {
                let nobody = || LabError::new(format!("nobody at member {node} can ask {what}"));
                let user = self.users.ask(node, &what).ok_or_else(nobody)?;
                self.put(Event::Ask(user, AskKind::read(&what), what));
            }
            RecordedInput::Packet { from, message } => {
                let link = self.links.get_mut(&(from, node));
                let number = match link.and_then(VecDeque::pop_front).filter(|_| !heard) {
                    Some((number, _)) => number,
                    None => self.hear(from, node, message)?,
                };
                self.put(Event::Deliver(number));
            }
        }
        for (to, message) in step.sends {
            self.numbered += 1;
            let (number, label) = (self.numbered, self.label(&message)?);
            self.put(Event::Send {
                number,
                from: node,
                to,
                message: Some(message.clone()),
                label,
            });
            let link = self.links.entry((node, to)).or_default();
            link.push_back((number, message));
        }
        for timer in step.timers {
            self.put(Event::Timer(node, timer.0));
        }
        for what in step.tells {
            let nobody = || {
                let name = self.head.members[node.index()].as_str();
                LabError::new(format!(
                    "{name} was told {what}, and nobody there waits for it"
                ))
            };
            let user = self.users.tell(node, &what).ok_or_else(nobody)?;
            self.put(Event::Tell(user, TellKind::read(&what), what));
        }
        Ok(())
    }

    fn hear(&mut self, from: NodeId, to: NodeId, message: Vec<u8>) -> Result<u64, LabError> {
        self.numbered += 1;
        let (number, label) = (self.numbered, self.label(&message)?);
        self.put(Event::Heard {
            number,
            from,
            to,
            message,
            label,
        });
        Ok(number)
    }

    fn label(&self, message: &[u8]) -> Result<String, LabError> {
        let label = (self.labeller)(message);
        label.map_err(|error: PacketError| LabError::new(error.to_string()))
    }

    fn into_trace(mut self) -> Result<Trace, LabError> {
        let stop = self.stop();
        self.put(Event::Stop(stop));
        let RecordHead { gate, instance, .. } = self.head;
        let gate: String = gate.chars().filter(|c| !c.is_control()).collect();
        let names = self.head.members.iter();
        let header = Header {
            is_old: false,
            algorithm: self.head.algorithm.clone(),
            users: match self.seats.len() {
                0 => self.head.users as usize,
                _ => self.seats.iter().sum(),
            },
            names: names.map(|name| name.replace(' ', "_")).collect(),
            seats: self.seats,
            chosen: self.chosen,
            delay_bound: Time(self.head.delay_bound),
            network: None,
            clock: Clock::Milliseconds,
            made_by: format!(
                "live gate {gate}, instance {}.{}, from {} ms since 1970",
                instance.0, instance.1, self.began
            ),
        };
        let events = self.events;
        with_violations(Trace { header, events })
    }

    /// Why the trace ends where it does.
    fn stop(&self) -> String {
        let mut why = vec!["the record ends here".to_owned()];
        let members = NodeId::all(self.hosts.len());
        for lost in members.filter(|id| self.hosts[id.index()].is_none()) {
            why.push(format!("that of {} is lost", self.name(lost)));
        }
        for part in self.parts.iter().filter(|part| part.cut) {
            why.push(format!("that of {} is cut", part.node));
        }
        let left: usize = self.parts.iter().map(|part| part.steps.len()).sum();
        if left > 0 {
            why.push(format!("{left} later steps are left out"));
        }
        why.join("; ")
    }
}

/// Adds what a replay finds wrong with the run: nodes record what they do, not whether it is right.
fn with_violations(mut trace: Trace) -> Result<Trace, LabError> {
    loop {
        match trace.replay() {
            Err(LabError::Differs(difference)) => match difference.wrong {
                Some(wrong) => trace.events.insert(difference.event - 1, *wrong),
                // What else differs, a replay will say.
                None => return Ok(trace),
            },
            Ok(_) => return Ok(trace),
            Err(error) => return Err(error),
        }
    }
}
