//! From measurements to pictures: a trace as a space-time diagram, a comparison as a chart.

use rustc_hash::FxHashMap;
use testigo_protocol::NodeId;
use testigo_sim::{Memory, Time};

use crate::compare::Row;
use crate::draw::{
    Arrow, Axis, AxisScale, Bar, Chart, Cycle, Fate, Gap, GapKind, Mark, MarkKind, Origin,
    Partition, Place, Scale, Series, Shape, SpaceTime,
};
use crate::trace::{Event, Trace};

/// The space-time diagram of a trace, as SVG.
pub fn picture(trace: &Trace) -> String {
    let mut painter = Painter::default();
    for (at, event) in &trace.events {
        painter.event(at.0, event);
    }
    let end = trace.events.last().map_or(0, |(at, _)| at.0);
    let header = &trace.header;
    let mut diagram = painter.finish(end);
    diagram.title = format!("{}, {} nodes", header.algorithm, header.users);
    diagram.subtitle = header.made_by.clone();
    diagram.scale = if header.steps {
        Scale::Steps
    } else {
        Scale::Proportional
    };
    diagram.ticks_per_unit = Time::UNIT;
    diagram.unit = if header.steps {
        "steps"
    } else {
        "message times"
    }
    .into();
    diagram.lanes = header.names.clone();
    diagram.until = Some(end);
    diagram.to_svg()
}

/// What is still open while a trace is read.
#[derive(Default)]
struct Painter {
    diagram: SpaceTime,
    /// Messages under way: the index of their arrow.
    arrows: FxHashMap<u64, usize>,
    waiting: FxHashMap<NodeId, u64>,
    inside: FxHashMap<NodeId, u64>,
    down: FxHashMap<NodeId, (u64, GapKind)>,
    cut: FxHashMap<String, u64>,
    /// Where the last thing happened, for violations.
    last: usize,
}

impl Painter {
    fn event(&mut self, at: u64, event: &Event) {
        match event {
            Event::Start(_) | Event::End(_) => {}
            Event::Ask(node, what) => {
                self.last = node.index();
                if what.starts_with("Enter") {
                    self.waiting.insert(*node, at);
                } else if let Some(from) = self.inside.remove(node) {
                    self.diagram
                        .bars
                        .push(Bar::inside(node.index(), from, Some(at)));
                }
                self.mark(node.index(), at, MarkKind::Ask, what);
            }
            Event::Tell(node, what) if what.starts_with("Entered") => {
                if let Some(from) = self.waiting.remove(node) {
                    self.diagram
                        .bars
                        .push(Bar::waiting(node.index(), from, Some(at)));
                }
                self.inside.insert(*node, at);
            }
            Event::Tell(node, what) => self.mark(node.index(), at, MarkKind::Tell, what),
            Event::Timer(..) => {}
            Event::Fire(node, timer) => {
                self.last = node.index();
                self.mark(node.index(), at, MarkKind::Timer, &timer.to_string());
            }
            Event::Send {
                number,
                from,
                to,
                label,
            } => {
                let place = |node: &NodeId| Place {
                    lane: node.index(),
                    time: at,
                };
                self.arrows.insert(*number, self.diagram.arrows.len());
                self.diagram.arrows.push(Arrow {
                    from: place(from),
                    to: place(to),
                    label: label.clone(),
                    fate: Fate::InFlight,
                });
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
                    self.close(*node, Some(at));
                }
            }
            Event::Restart(node) => {
                if let Some((from, kind)) = self.down.remove(node) {
                    self.diagram.gaps.push(Gap {
                        lane: node.index(),
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
                self.last = victim.index();
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
            place: Place { lane, time },
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

    /// Ends the bars of a node.
    fn close(&mut self, node: NodeId, until: Option<u64>) {
        if let Some(from) = self.waiting.remove(&node) {
            self.diagram
                .bars
                .push(Bar::waiting(node.index(), from, until));
        }
        if let Some(from) = self.inside.remove(&node) {
            self.diagram
                .bars
                .push(Bar::inside(node.index(), from, until));
        }
    }

    fn finish(mut self, end: u64) -> SpaceTime {
        let mut open: Vec<NodeId> = self
            .waiting
            .keys()
            .chain(self.inside.keys())
            .copied()
            .collect();
        open.sort_unstable();
        for node in open {
            self.close(node, None);
        }
        let mut down: Vec<_> = std::mem::take(&mut self.down).into_iter().collect();
        down.sort_unstable_by_key(|(node, _)| *node);
        for (node, (from, kind)) in down {
            self.diagram.gaps.push(Gap {
                lane: node.index(),
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

/// Messages an entry, measured and published, as SVG: lines against the number of nodes, or bars
/// where there is only one.
pub fn comparison_chart(rows: &[Row]) -> String {
    let mut names: Vec<&str> = rows.iter().map(|row| row.algorithm).collect();
    names.dedup();
    let one_size = rows.windows(2).all(|pair| pair[0].nodes == pair[1].nodes);
    let (x, series) = match (one_size, rows.first()) {
        (true, Some(row)) => (categories(&names, row.nodes), bars(rows)),
        _ => (axis("nodes"), lines(rows, &names)),
    };
    Chart {
        title: "Messages an entry".into(),
        subtitle: "measured, and as published".into(),
        x,
        y: axis("messages an entry"),
        series,
    }
    .to_svg()
}

fn axis(title: &str) -> Axis {
    Axis {
        title: title.into(),
        ..Axis::default()
    }
}

fn categories(names: &[&str], nodes: usize) -> Axis {
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    Axis {
        title: format!("with {nodes} nodes"),
        scale: AxisScale::Categories(names),
    }
}

fn bars(rows: &[Row]) -> Vec<Series> {
    let series = |name: &str, origin, value: fn(&Row) -> Option<f64>| Series {
        name: name.into(),
        shape: Shape::Bars(rows.iter().map(value).collect()),
        origin,
        colour: None,
    };
    vec![
        series("published, best", Origin::Published, |row| {
            Some(row.published_messages_per_entry?.min)
        }),
        series("measured", Origin::Measured, |row| row.messages_per_entry),
        series("published, worst", Origin::Published, |row| {
            Some(row.published_messages_per_entry?.max)
        }),
    ]
}

fn lines(rows: &[Row], names: &[&str]) -> Vec<Series> {
    let mut series = Vec::new();
    for (colour, name) in names.iter().enumerate() {
        let mine = || rows.iter().filter(move |row| row.algorithm == *name);
        let measured = mine().filter_map(|row| Some((row.nodes as f64, row.messages_per_entry?)));
        series.push(Series {
            name: (*name).into(),
            shape: Shape::Line(measured.collect()),
            origin: Origin::Measured,
            colour: Some(colour),
        });
        let ranges: Vec<(f64, f64, f64)> = mine()
            .filter_map(|row| {
                let range = row.published_messages_per_entry?;
                Some((row.nodes as f64, range.min, range.max))
            })
            .collect();
        if ranges.is_empty() {
            continue;
        }
        let exact = ranges.iter().all(|(_, min, max)| min == max);
        series.push(Series {
            name: format!("{name}, published"),
            shape: match exact {
                true => Shape::Line(
                    ranges
                        .iter()
                        .map(|(nodes, min, _)| (*nodes, *min))
                        .collect(),
                ),
                false => Shape::Band(ranges),
            },
            origin: Origin::Published,
            colour: Some(colour),
        });
    }
    series
}
