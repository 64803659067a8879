//! From a trace to a space-time diagram.

use rustc_hash::FxHashMap;
use testigo_protocol::{NodeId, UserId};
use testigo_sim::{Memory, Time};

use crate::draw::{
    Arrow, Bar, BarStyle, Cycle, Fate, Gap, GapKind, LaneTime, Mark, MarkKind, Partition, Scale,
    SpaceTime, View,
};
use crate::trace::{AskKind, Clock, Event, Header, TellKind, Trace};

/// The space-time diagram of a trace, as SVG, as much of it as a view asks for.
pub fn picture(trace: &Trace, view: View) -> String {
    diagram(trace).to_svg_in(view)
}

/// The space-time diagram of a trace, as data.
pub fn diagram(trace: &Trace) -> SpaceTime {
    let lanes = Lanes::new(&trace.header);
    let mut painter = Painter::new(&lanes);
    for (at, event) in &trace.events {
        painter.event(at.0, event);
    }
    let end = trace.events.last().map_or(0, |(at, _)| at.0);
    let header = &trace.header;
    let mut diagram = painter.finish(end);
    let nodes = match header.seats.len() {
        0 => header.users,
        nodes => nodes,
    };
    let threads = (trace.events.iter()).any(|(_, event)| matches!(event, Event::Access(..)));
    let noun = if threads { "processes" } else { "nodes" };
    diagram.title = format!("{}, {nodes} {noun}", header.algorithm);
    diagram.subtitle = header.made_by.clone();
    diagram.scale = match header.clock {
        Clock::Steps => Scale::Steps,
        Clock::Units | Clock::Milliseconds => Scale::Proportional,
    };
    diagram.ticks_per_unit = Time::UNIT;
    diagram.unit = match header.clock {
        Clock::Steps => "steps",
        Clock::Units if threads => "access times",
        Clock::Units => "message times",
        Clock::Milliseconds => "milliseconds",
    }
    .into();
    diagram.lanes = lanes.names;
    diagram.lane_noun = match header.seats.is_empty() {
        true => noun.into(),
        false => "lanes".into(),
    };
    diagram.until = Some(end);
    diagram
}

/// Which lane is whose: a node's, and below it one for each of its users, where they share nodes.
struct Lanes {
    names: Vec<String>,
    nodes: Vec<usize>,
    users: Vec<usize>,
}

impl Lanes {
    fn new(header: &Header) -> Lanes {
        let mut lanes = Lanes {
            names: Vec::new(),
            nodes: Vec::new(),
            users: Vec::new(),
        };
        for (node, name) in header.names.iter().enumerate() {
            lanes.nodes.push(lanes.names.len());
            if header.seats.is_empty() {
                lanes.users.push(lanes.names.len());
            }
            lanes.names.push(name.clone());
            for _ in 0..header.seats.get(node).copied().unwrap_or(0) {
                let user = lanes.users.len();
                lanes.users.push(lanes.names.len());
                lanes.names.push(format!("p{user}"));
            }
        }
        lanes
    }
}

/// What is still open while a trace is read.
struct Painter<'a> {
    lanes: &'a Lanes,
    diagram: SpaceTime,
    /// Messages under way: the index of their arrow.
    arrows: FxHashMap<u64, usize>,
    waiting: FxHashMap<UserId, u64>,
    inside: FxHashMap<UserId, u64>,
    /// What each user asked for last: a class, a room, or nothing.
    wanted: FxHashMap<UserId, String>,
    down: FxHashMap<NodeId, (u64, GapKind)>,
    cut: FxHashMap<String, u64>,
    /// What each actor has read since it last wrote: the mark, and how often.
    turns: FxHashMap<(NodeId, String), (usize, usize)>,
    /// Where the last thing happened, for violations.
    last: usize,
}

impl<'a> Painter<'a> {
    fn new(lanes: &'a Lanes) -> Painter<'a> {
        Painter {
            lanes,
            diagram: SpaceTime::default(),
            arrows: FxHashMap::default(),
            waiting: FxHashMap::default(),
            inside: FxHashMap::default(),
            wanted: FxHashMap::default(),
            down: FxHashMap::default(),
            cut: FxHashMap::default(),
            turns: FxHashMap::default(),
            last: 0,
        }
    }

    fn node(&self, node: NodeId) -> usize {
        self.lanes.nodes[node.index()]
    }

    fn user(&self, user: UserId) -> usize {
        self.lanes.users[user.index()]
    }

    fn event(&mut self, at: u64, event: &Event) {
        match event {
            Event::Start(_) | Event::End(_) | Event::Stop(_) | Event::Set(..) => {}
            Event::Access(actor, what) => {
                self.last = self.node(*actor);
                self.access(at, *actor, what);
            }
            Event::Ask(user, kind, what) => {
                let lane = self.user(*user);
                self.last = lane;
                match kind {
                    AskKind::Requests => {
                        let carried = what.find('(').map_or("", |from| &what[from..]);
                        self.waiting.insert(*user, at);
                        self.wanted.insert(*user, class(carried));
                    }
                    AskKind::Leaves => {
                        if let Some(from) = self.inside.remove(user) {
                            self.bar(*user, BarStyle::Solid, from, Some(at));
                        }
                    }
                    AskKind::Says => {}
                }
                self.mark(lane, at, MarkKind::Ask, what);
            }
            Event::Tell(user, TellKind::Enters, _) => {
                self.waited(*user, at);
                self.inside.insert(*user, at);
            }
            Event::Tell(user, TellKind::Serves, what) => {
                self.waited(*user, at);
                self.mark(self.user(*user), at, MarkKind::Tell, what);
            }
            Event::Tell(user, TellKind::Says, what) => {
                self.mark(self.user(*user), at, MarkKind::Tell, what);
            }
            Event::Timer(..) => {}
            Event::Fire(node, timer) => {
                self.last = self.node(*node);
                self.mark(self.last, at, MarkKind::Timer, &timer.to_string());
            }
            Event::Send {
                number,
                from,
                to,
                label,
                ..
            }
            | Event::Heard {
                number,
                from,
                to,
                label,
                ..
            } => {
                let place = |node: &NodeId| LaneTime {
                    lane: self.node(*node),
                    time: at,
                };
                let arrow = Arrow {
                    from: place(from),
                    to: place(to),
                    label: label.clone(),
                    fate: Fate::InFlight,
                };
                self.arrows.insert(*number, self.diagram.arrows.len());
                self.diagram.arrows.push(arrow);
            }
            Event::Copy(of, number) => {
                if let Some(original) = self
                    .arrows
                    .get(of)
                    .map(|&arrow| self.diagram.arrows[arrow].clone())
                {
                    self.arrows.insert(*number, self.diagram.arrows.len());
                    self.diagram.arrows.push(original);
                }
            }
            Event::Lie(number, label) => {
                if let Some(&arrow) = self.arrows.get(number) {
                    self.diagram.arrows[arrow].label = format!("{label} (a lie)");
                }
            }
            Event::Deliver(number) => self.arrive(at, *number, Fate::Delivered),
            Event::Lose(number, why) => {
                let reason = why.clone();
                self.arrive(at, *number, Fate::Lost { reason });
            }
            Event::Crash(node, memory) => {
                let kind = if *memory == Memory::Whole {
                    GapKind::Pause
                } else {
                    GapKind::Crash
                };
                self.down.insert(*node, (at, kind));
                if kind == GapKind::Crash {
                    let lane = self.node(*node);
                    let below = self.lanes.nodes.get(node.index() + 1);
                    let until = below.copied().unwrap_or(self.lanes.names.len());
                    let gone = |user: &UserId| (lane..until).contains(&self.user(*user));
                    let users = UserId::all(self.lanes.users.len());
                    for user in users.filter(gone).collect::<Vec<_>>() {
                        self.close(user, Some(at));
                    }
                }
            }
            Event::Restart(node) => {
                if let Some((from, kind)) = self.down.remove(node) {
                    let lane = self.node(*node);
                    self.diagram.gaps.push(Gap {
                        lane,
                        from,
                        until: Some(at),
                        kind,
                    });
                }
            }
            Event::Cut(sides) => {
                self.cut.insert(sides.clone(), at);
            }
            Event::Heal(sides) => {
                if let Some(from) = self.cut.remove(sides) {
                    self.partition(from, Some(at), sides);
                }
            }
            Event::Cycle => {
                self.diagram.cycle = Some(Cycle {
                    from: at,
                    until: at,
                });
            }
            Event::Repeat(victim) => {
                self.last = self.user(*victim);
                if let Some(cycle) = &mut self.diagram.cycle {
                    cycle.until = at;
                }
            }
            Event::Violation(kind, what) => {
                self.mark(
                    self.last,
                    at,
                    MarkKind::Violation,
                    &format!("{kind}: {what}"),
                );
            }
        }
    }

    /// An access to a register. Another turn of a wait, which reads what was read before, is folded into the first.
    fn access(&mut self, at: u64, actor: NodeId, what: &str) {
        let (verb, register) = what.split_once(' ').unwrap_or((what, ""));
        let reads = verb == "read";
        if !reads {
            self.turns.retain(|(other, _), _| *other != actor);
        }
        if let Some((mark, times)) = self.turns.get_mut(&(actor, what.to_owned())) {
            *times += 1;
            self.diagram.marks[*mark].label = format!("{register} ×{times}");
            return;
        }
        let kind = if reads {
            MarkKind::Read
        } else {
            MarkKind::Write
        };
        self.mark(self.node(actor), at, kind, register);
        if reads {
            let mark = self.diagram.marks.len() - 1;
            self.turns.insert((actor, what.to_owned()), (mark, 1));
        }
    }

    fn arrive(&mut self, at: u64, number: u64, fate: Fate) {
        let Some(index) = self.arrows.remove(&number) else {
            return;
        };
        let arrow = &mut self.diagram.arrows[index];
        arrow.to.time = at;
        arrow.fate = fate;
        self.last = arrow.to.lane;
    }

    fn mark(&mut self, lane: usize, time: u64, kind: MarkKind, label: &str) {
        self.diagram.marks.push(Mark {
            place: LaneTime { lane, time },
            kind,
            label: label.into(),
        });
    }

    fn partition(&mut self, from: u64, until: Option<u64>, sides: &str) {
        let label = sides.split('@').next().unwrap_or(sides).into();
        self.diagram
            .partitions
            .push(Partition { from, until, label });
    }

    /// Ends the wait of a user.
    fn waited(&mut self, user: UserId, until: u64) {
        if let Some(from) = self.waiting.remove(&user) {
            self.bar(user, BarStyle::Hatched, from, Some(until));
        }
    }

    /// Ends the bars of a user.
    fn close(&mut self, user: UserId, until: Option<u64>) {
        if let Some(from) = self.waiting.remove(&user) {
            self.bar(user, BarStyle::Hatched, from, until);
        }
        if let Some(from) = self.inside.remove(&user) {
            self.bar(user, BarStyle::Solid, from, until);
        }
    }

    /// A bar of a user, in the class that it asked for.
    fn bar(&mut self, user: UserId, style: BarStyle, from: u64, until: Option<u64>) {
        let lane = self.user(user);
        let mut bar = match style {
            BarStyle::Solid => Bar::inside(lane, from, until),
            BarStyle::Hatched => Bar::waiting(lane, from, until),
        };
        if bar.from == until.unwrap_or(u64::MAX) && style == BarStyle::Hatched {
            return;
        }
        if let Some(class) = self.wanted.get(&user).filter(|class| !class.is_empty()) {
            bar.class.clone_from(class);
            if style == BarStyle::Solid {
                bar.label.clone_from(class);
            }
        }
        self.diagram.bars.push(bar);
    }

    fn finish(mut self, end: u64) -> SpaceTime {
        let mut open: Vec<UserId> = self
            .waiting
            .keys()
            .chain(self.inside.keys())
            .copied()
            .collect();
        open.sort_unstable();
        for user in open {
            self.close(user, None);
        }
        let mut down: Vec<_> = std::mem::take(&mut self.down).into_iter().collect();
        down.sort_unstable_by_key(|(node, _)| *node);
        for (node, (from, kind)) in down {
            self.diagram.gaps.push(Gap {
                lane: self.lanes.nodes[node.index()],
                from,
                until: None,
                kind,
            });
        }
        let mut cut: Vec<_> = std::mem::take(&mut self.cut).into_iter().collect();
        cut.sort_unstable();
        for (sides, from) in cut {
            self.partition(from, None, &sides);
        }
        for arrow in &mut self.diagram.arrows {
            if arrow.fate == Fate::InFlight {
                arrow.to.time = end;
            }
        }
        self.diagram
    }
}

/// What an ask to enter carries, as a class of those inside: a number is a room.
fn class(carried: &str) -> String {
    let carried = carried.trim_matches(['(', ')', ' ']);
    match carried.parse::<u64>() {
        Ok(room) => format!("room {room}"),
        Err(_) => carried.to_lowercase(),
    }
}
