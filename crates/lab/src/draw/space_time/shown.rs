//! What of a run a view shows. A run that is too long for its width loses the time between its most
//! telling stretches, and one with too many lanes has those folded that show nothing of their own.
//! What was left out is said: at the cut, in the name of the fold, and below the picture.

use crate::draw::{
    axis,
    space_time::{
        Arrow, BarStyle, Fate, Mark, MarkKind, Scale, SpaceTime, View, WIDTH_MIN, fold,
        frame::{self, CUT_WIDTH, EVENTS_INSET, MARGIN},
        windows::{self, Moment, Room, Stretch},
    },
};

/// A run with more lanes has some folded.
const LANES_UNFOLDED_MAX: usize = 12;
/// So many violations, and so many faults of a kind, are looked at.
pub(super) const MOMENTS_MAX: usize = 3;
/// Messages of one kind that would be drawn nearer to each other than this at a fold become one.
const MERGED_WITHIN: f64 = 12.0;

/// A plot of less than this is narrow.
const NARROW: f64 = 500.0;

/// The part of a run that is drawn.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) run: SpaceTime,
    pub(super) view: View,
    pub(super) clock: Clock,
    /// What is drawn, in positions, in order; never empty.
    pub(super) stretches: Vec<Stretch>,
    pub(super) cuts: Vec<Cut>,
    /// By lane, whether it stands for several.
    pub(super) folded: Vec<bool>,
    /// What the reader must know about what is missing.
    pub(super) notes: Vec<String>,
}

/// A time that is left out between two stretches.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    pub(super) words: String,
    pub(super) tooltip: String,
}

/// Times as positions: themselves, or the number of the step.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    scale: Scale,
    /// Every time at which something happens, in order, once.
    pub(super) times: Vec<u64>,
}

impl Clock {
    fn new(run: &SpaceTime) -> Self {
        let mut times: Vec<u64> = run.marks.iter().map(|mark| mark.place.time).collect();
        for arrow in &run.arrows {
            times.push(arrow.from.time);
            // The others did not arrive at that time.
            if arrow.arrived() {
                times.push(arrow.to.time);
            }
        }
        let bars = run.bars.iter().map(|bar| (bar.from, bar.until));
        let gaps = run.gaps.iter().map(|gap| (gap.from, gap.until));
        let partitions = run.partitions.iter().map(|cut| (cut.from, cut.until));
        for (from, until) in bars.chain(gaps).chain(partitions) {
            times.extend([Some(from), until].into_iter().flatten());
        }
        if let Some(cycle) = run.cycle {
            times.extend([cycle.from, cycle.until]);
        }
        times.sort_unstable();
        times.dedup();
        Clock {
            scale: run.scale,
            times,
        }
    }

    pub(super) fn position(&self, time: u64) -> u64 {
        match self.scale {
            Scale::Proportional => time,
            Scale::Steps => {
                let step = self.times.partition_point(|&other| other < time);
                step.min(self.times.len().saturating_sub(1)) as u64
            }
        }
    }

    /// All of the run. It starts at zero, unless that would leave much of the picture empty.
    fn whole(&self, run: &SpaceTime) -> Stretch {
        let ends = (self.times.first().copied(), self.times.last().copied());
        let (first, last) = (ends.0.unwrap_or(0), ends.1.unwrap_or(0));
        match self.scale {
            Scale::Steps => (0, self.position(last)),
            Scale::Proportional => {
                let start = if first <= (last - first) / 5 {
                    0
                } else {
                    first
                };
                (start, last.max(run.until.unwrap_or(0)))
            }
        }
    }

    /// The positions in which a message makes its way, typically, and how many pixels they need at
    /// least where all fits and where it does not.
    fn unit(&self, run: &SpaceTime) -> (u64, f64, f64) {
        if self.scale == Scale::Steps {
            return (1, 44.0, 58.0);
        }
        let across = |arrow: &&Arrow| arrow.arrived() && arrow.from.lane != arrow.to.lane;
        let mut delays: Vec<u64> = (run.arrows.iter().filter(across))
            .map(|arrow| arrow.to.time.abs_diff(arrow.from.time))
            .collect();
        delays.sort_unstable();
        let median = delays.get(delays.len() / 2).copied().unwrap_or(0);
        match median {
            0 => (run.ticks_per_unit.max(1), 52.0, 84.0),
            median => (median, 52.0, 84.0),
        }
    }
}

impl Arrow {
    pub(super) fn arrived(&self) -> bool {
        matches!(self.fate, Fate::Delivered | Fate::Duplicate)
    }
}

impl Shown {
    pub(super) fn new(run: &SpaceTime, view: View) -> Self {
        let clock = Clock::new(run);
        let whole = clock.whole(run);
        let mut shown = Shown {
            run: run.clone(),
            view: View {
                width: view.width.max(WIDTH_MIN),
                ..view
            },
            stretches: vec![whole],
            cuts: Vec::new(),
            folded: vec![false; run.lanes.len()],
            notes: Vec::new(),
            clock,
        };
        let (unit, least, ample) = shown.clock.unit(run);
        for arrow in &mut shown.run.arrows {
            // Nobody knows where it is; its stub shows that it left.
            if arrow.fate == Fate::InFlight && run.scale == Scale::Proportional {
                let by = arrow.from.time.saturating_add(unit);
                arrow.to.time = arrow.to.time.min(by);
            }
        }
        if view.whole || shown.clock.times.is_empty() || run.lanes.is_empty() {
            return shown;
        }
        let plot = shown.plot_width() - EVENTS_INSET.0 - EVENTS_INSET.1;
        // On a narrow picture steep messages are better than none.
        let ample = if plot < NARROW { least } else { ample };
        if (whole.1 - whole.0) as f64 / unit as f64 * least > plot {
            let per_pixel = unit as f64 / ample;
            shown.cut(Room {
                all: (plot * per_pixel) as u64,
                cut: ((CUT_WIDTH * per_pixel) as u64).max(1),
                idle: unit.saturating_mul(4),
            });
        }
        if run.lanes.len() > LANES_UNFOLDED_MAX {
            let drawn: u64 = (shown.stretches.iter())
                .map(|(from, until)| until - from)
                .fold(0, u64::saturating_add);
            let near = drawn as f64 / plot * MERGED_WITHIN;
            fold::fold(&mut shown, (near as u64).max(1));
        }
        shown
    }

    /// Between the names of the lanes and the right margin.
    pub(super) fn plot_width(&self) -> f64 {
        let folds = self.folded.contains(&true) || self.run.lanes.len() > LANES_UNFOLDED_MAX;
        let names = frame::names_width(&self.run, &self.folded, folds);
        (f64::from(self.view.width) - 2.0 * MARGIN - names).max(160.0)
    }

    /// Whether a time is drawn.
    pub(super) fn shows(&self, time: u64) -> bool {
        let position = self.clock.position(time);
        let shows = |&(from, until): &Stretch| (from..=until).contains(&position);
        self.stretches.iter().any(shows)
    }

    /// Whether some of a span is drawn; an open one lasts until the end.
    fn shows_some(&self, from: u64, until: Option<u64>) -> bool {
        let from = self.clock.position(from);
        let until = until.map_or(u64::MAX, |until| self.clock.position(until));
        let shows = |stretch: &Stretch| from.max(stretch.0) <= until.min(stretch.1);
        self.stretches.iter().any(shows)
    }

    fn cut(&mut self, room: Room) {
        let events: Vec<u64> = (self.clock.times.iter())
            .map(|&time| self.clock.position(time))
            .collect();
        let chosen = windows::choose(&events, &moments(&self.run, &self.clock), room);
        if chosen.is_empty() {
            return;
        }
        self.stretches = chosen;
        let mut run = std::mem::take(&mut self.run);
        for pair in 1..self.stretches.len() {
            let (from, until) = (self.stretches[pair - 1].1, self.stretches[pair].0);
            self.tell_cut(&run, from, until);
        }
        let violations = |run: &SpaceTime| {
            let wrong = |mark: &&Mark| mark.kind == MarkKind::Violation;
            run.marks.iter().filter(wrong).count()
        };
        let before = violations(&run);
        run.arrows.retain(|arrow| {
            self.shows(arrow.from.time) || arrow.arrived() && self.shows(arrow.to.time)
        });
        run.marks.retain(|mark| self.shows(mark.place.time));
        run.bars.retain(|bar| self.shows_some(bar.from, bar.until));
        run.gaps.retain(|gap| self.shows_some(gap.from, gap.until));
        run.partitions
            .retain(|cut| self.shows_some(cut.from, cut.until));
        let lost = before - violations(&run);
        if lost > 0 {
            let violations = counted(lost, "violation", "violations");
            self.notes.push(format!("not drawn: {violations}"));
        }
        self.run = run;
    }

    /// Says what lies between two stretches.
    fn tell_cut(&mut self, run: &SpaceTime, from: u64, until: u64) {
        let within = |time: u64| {
            let position = self.clock.position(time);
            from < position && position < until
        };
        let sent = run.arrows.iter().filter(|arrow| within(arrow.from.time));
        let solid = run.bars.iter().filter(|bar| bar.style == BarStyle::Solid);
        let (sent, entries) = (sent.count(), solid.filter(|bar| within(bar.from)).count());
        let is_access = |mark: &&Mark| matches!(mark.kind, MarkKind::Read | MarkKind::Write);
        let accesses = || run.marks.iter().filter(is_access);
        let happened = match accesses().next() {
            Some(_) => {
                let cut = accesses().filter(|mark| within(mark.place.time));
                counted(cut.count(), "square", "squares")
            }
            None => counted(sent, "message", "messages"),
        };
        let length = length(run, until - from);
        let tooltip = format!(
            "{length} after {} are cut out, with {happened} and {}",
            self.named(run, from),
            counted(entries, "entry", "entries"),
        );
        self.notes.push(tooltip.clone());
        self.cuts.push(Cut {
            words: format!("… {length}"),
            tooltip,
        });
    }

    /// A position as the axis names it.
    fn named(&self, run: &SpaceTime, position: u64) -> String {
        let time = match run.scale {
            Scale::Proportional => position,
            Scale::Steps => self.clock.times[position as usize],
        };
        axis::time_rounded(time, run.ticks_per_unit)
    }
}

/// What a reader of a long run wants to see, the most telling first.
fn moments(run: &SpaceTime, clock: &Clock) -> Vec<Moment> {
    let mut moments = Vec::new();
    let mut add = |time: u64, before: f64, after: f64| {
        let at = clock.position(time);
        moments.push(Moment { at, before, after });
    };
    let ends = (clock.times.first().copied(), clock.times.last().copied());
    add(ends.0.unwrap_or(0), 0.0, 0.3);
    add(ends.1.unwrap_or(0), 0.15, 0.0);
    let mut violations: Vec<u64> = (run.marks.iter())
        .filter(|mark| mark.kind == MarkKind::Violation)
        .map(|mark| mark.place.time)
        .collect();
    violations.sort_unstable();
    violations.dedup();
    for &time in violations.iter().take(MOMENTS_MAX) {
        add(time, 0.2, 0.03);
    }
    if let Some(cycle) = run.cycle {
        add(cycle.from, 0.03, 0.15);
        add(cycle.until, 0.15, 0.03);
    }
    let gaps = run.gaps.iter().map(|gap| (gap.from, gap.until));
    let partitions = run.partitions.iter().map(|cut| (cut.from, cut.until));
    let faults = (gaps.take(MOMENTS_MAX)).chain(partitions.take(MOMENTS_MAX));
    for (from, until) in faults {
        add(from, 0.04, 0.08);
        if let Some(until) = until {
            add(until, 0.03, 0.06);
        }
    }
    moments
}

/// So many positions, in the words of the axis.
fn length(run: &SpaceTime, positions: u64) -> String {
    let per_unit = run.ticks_per_unit.max(1);
    let (amount, unit) = match run.scale {
        Scale::Steps => (positions.saturating_sub(1).to_string(), "steps"),
        Scale::Proportional => {
            let exact = positions < 10 * per_unit;
            let rounded = positions / per_unit * per_unit;
            let ticks = if exact { positions } else { rounded };
            (axis::time_rounded(ticks, per_unit), run.unit.as_str())
        }
    };
    format!("{amount} {unit}").trim_end().to_string()
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        _ => format!("{count} {many}"),
    }
}
