//! What of a run is drawn, and where: the [`Scene`] leaves out what has no place, and the [`Frame`]
//! turns lanes and times into coordinates.

use crate::draw::{
    space_time::{
        Arrow, Bar, Cycle, Gap, ITEMS_MAX, LANES_MAX, Mark, MarkKind, Partition, Scale, SpaceTime,
        kinds::Kinds, shown::Shown,
    },
    text,
};

/// Blank border of the picture.
pub(super) const MARGIN: f64 = 22.0;
/// What a cut takes of the width.
pub(super) const CUT_WIDTH: f64 = 36.0;
/// The narrowest plot of a diagram to scale, where the view allows it.
const WIDTH_MIN: f64 = 940.0;
/// The widest plot of a whole diagram to scale; a run with more events than fit loses labels.
const WIDTH_MAX: f64 = 14_000.0;
/// The same for a diagram in steps.
const STEPS_WIDTH_MAX: f64 = 40_000.0;
/// Room that an event has before the plot is widened.
const EVENT_WIDTH: f64 = 9.0;
/// The horizontal extent at which a message slopes gently.
const GENTLE_EXTENT: f64 = 180.0;
/// A diagram is not made wider than this for gentle slopes alone.
const GENTLE_WIDTH_MAX: f64 = 1_280.0;
const COLUMN_WIDTH_MIN: f64 = 70.0;
const LANE_NAME_CHARS_MAX: usize = 22;
/// Room for the name of a fold.
const FOLD_NAME_WIDTH: f64 = 150.0;
/// From this width on the names of the lanes stand at both ends.
const NAMES_TWICE_FROM: f64 = 2_000.0;
/// Diagrams with more labels are laid out once instead of being widened until every label fits.
const LABELS_FITTED_MAX: usize = 1_200;

/// The items of a run that can be drawn.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) run: &'a SpaceTime,
    pub(super) lanes: &'a [String],
    pub(super) arrows: Vec<&'a Arrow>,
    pub(super) bars: Vec<&'a Bar>,
    pub(super) gaps: Vec<&'a Gap>,
    pub(super) partitions: &'a [Partition],
    pub(super) marks: Vec<&'a Mark>,
    pub(super) cycle: Option<Cycle>,
    pub(super) kinds: Kinds,
    /// The names of registers that are read or written.
    pub(super) registers: Kinds,
    pub(super) shown: &'a Shown,
    /// What the reader must know about what is missing.
    pub(super) notes: Vec<String>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(shown: &'a Shown) -> Self {
        let run = &shown.run;
        let lanes = &run.lanes[..run.lanes.len().min(LANES_MAX)];
        let known = |lane: usize| lane < lanes.len();
        let mut left_out = shown.notes.clone();
        let mut kept = |what: &str, shown: usize, of: usize| {
            if shown < of {
                left_out.push(format!("{} of {of} {what} are not drawn", of - shown));
            }
        };
        let arrows: Vec<_> = (run.arrows.iter())
            .filter(|arrow| known(arrow.from.lane) && known(arrow.to.lane))
            .take(ITEMS_MAX)
            .collect();
        let marks: Vec<_> = (run.marks.iter())
            .filter(|mark| known(mark.place.lane))
            .take(ITEMS_MAX)
            .collect();
        let bars: Vec<_> = (run.bars.iter())
            .filter(|bar| known(bar.lane))
            .take(ITEMS_MAX / 2)
            .collect();
        let gaps: Vec<_> = (run.gaps.iter())
            .filter(|gap| known(gap.lane))
            .take(ITEMS_MAX / 10)
            .collect();
        let partitions = &run.partitions[..run.partitions.len().min(ITEMS_MAX / 10)];
        kept("lanes", lanes.len(), run.lanes.len());
        kept("messages", arrows.len(), run.arrows.len());
        kept("marks", marks.len(), run.marks.len());
        kept("bars", bars.len(), run.bars.len());
        kept("gaps", gaps.len(), run.gaps.len());
        kept("partitions", partitions.len(), run.partitions.len());
        Scene {
            run,
            lanes,
            kinds: Kinds::of(arrows.iter().map(|arrow| arrow.label.as_str())),
            registers: Kinds::of_registers(
                marks
                    .iter()
                    .filter(|mark| mark.is_access())
                    .map(|mark| mark.label.as_str()),
            ),
            arrows,
            bars,
            gaps,
            partitions,
            marks,
            cycle: run.cycle,
            shown,
            notes: left_out,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty() || self.times().is_empty()
    }

    /// Every time at which something happens, in order, once.
    pub(super) fn times(&self) -> &'a [u64] {
        &self.shown.clock.times
    }

    /// The width at which half of the messages slope gently enough to carry their labels.
    fn gentle_width(&self) -> f64 {
        let across = |arrow: &&&Arrow| arrow.from.lane != arrow.to.lane;
        let mut delays: Vec<u64> = (self.arrows.iter().filter(across))
            .map(|arrow| arrow.to.time.abs_diff(arrow.from.time))
            .collect();
        delays.sort_unstable();
        let median = delays.get(delays.len() / 2).copied().unwrap_or(0).max(1);
        let span = self.shown.stretches.last().map_or(0, |last| last.1);
        (span as f64 / median as f64 * GENTLE_EXTENT).min(GENTLE_WIDTH_MAX)
    }

    pub(super) fn violations(&self) -> impl Iterator<Item = (usize, &'a Mark)> {
        (self.marks.iter().copied().enumerate())
            .filter(|(_, mark)| mark.kind == MarkKind::Violation)
    }

    /// Plot widths to try, ascending, and how far the lanes are stretched apart: the first at which
    /// every label fits is taken.
    pub(super) fn sizes(&self) -> Vec<(f64, f64)> {
        let marks = self.marks.iter().map(|mark| mark.label.as_str());
        let labels = marks.chain(self.arrows.iter().map(|arrow| arrow.label.as_str()));
        let (count, longest) = labels.fold((0, 0.0_f64), |(count, longest), label| {
            let width = text::width(&text::cut(label, text::LABEL_CHARS_MAX), text::LABEL_SIZE);
            (count + usize::from(!label.is_empty()), longest.max(width))
        });
        let growth: &[f64] = match count {
            0..=LABELS_FITTED_MAX => &[1.0, 1.25, 1.6, 2.0, 2.6, 3.4],
            _ => &[1.6],
        };
        let (least, most) = match self.run.scale {
            Scale::Proportional => {
                let events = 2 * self.arrows.len() + self.marks.len();
                let crowded = events as f64 * EVENT_WIDTH;
                (crowded.max(self.gentle_width()).max(WIDTH_MIN), WIDTH_MAX)
            }
            Scale::Steps => {
                let column = if count > LABELS_FITTED_MAX {
                    longest
                } else {
                    COLUMN_WIDTH_MIN
                };
                (
                    self.times().len() as f64 * column.max(COLUMN_WIDTH_MIN),
                    STEPS_WIDTH_MAX,
                )
            }
        };
        let most = match self.shown.view.whole {
            true => most,
            false => self.shown.plot_width(),
        };
        // Where more width alone did not help, more height may.
        let size = |(i, by): (usize, &f64)| {
            let stretch = 1.0 + 0.1 * i.saturating_sub(1) as f64;
            ((least * by).min(most).floor(), stretch)
        };
        growth.iter().enumerate().map(size).collect()
    }
}

/// Lanes and times as coordinates.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    shown: &'a Shown,
    /// Pixels for a position.
    scale: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    /// Of the whole picture.
    pub(super) width: f64,
    /// Upper end of the lanes' area; the rows above it are stacked upwards from here.
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) lane_gap: f64,
    pub(super) names_twice: bool,
}

/// Distance of the first event from the left end of the lanes, and of the last from the right end.
pub(super) const EVENTS_INSET: (f64, f64) = (26.0, 44.0);

impl<'a> Frame<'a> {
    /// A frame whose lanes' area starts at height zero, until [`Frame::shifted_down`].
    pub(super) fn new(scene: &Scene<'a>, plot_width: f64, stretch: f64) -> Self {
        let shown = scene.shown;
        let folds = shown.folded.contains(&true);
        let name_width = names_width(scene.run, &shown.folded, folds);
        let names_twice = plot_width >= NAMES_TWICE_FROM;
        let left = MARGIN + name_width;
        let right = left + plot_width;
        let lane_gap = stretch
            * match scene.lanes.len() {
                0..=4 => 96.0,
                5..=7 => 84.0,
                8..=12 => 68.0,
                13..=24 => 54.0,
                _ => 42.0,
            };
        let lanes = scene.lanes.len().max(1) as f64;
        let cuts = shown.stretches.len().saturating_sub(1) as f64;
        let positions = (shown.stretches.iter())
            .map(|(from, until)| (until - from) as f64)
            .sum::<f64>();
        let room = plot_width - EVENTS_INSET.0 - EVENTS_INSET.1 - cuts * CUT_WIDTH;
        Frame {
            shown,
            scale: room / positions.max(1.0),
            left,
            right,
            width: right + if names_twice { name_width } else { 0.0 } + MARGIN,
            top: 0.0,
            bottom: lane_gap * (lanes - 1.0) + 2.0 * LANES_INSET,
            lane_gap,
            names_twice,
        }
    }

    pub(super) fn shifted_down(mut self, by: f64) -> Self {
        self.top += by;
        self.bottom += by;
        self
    }

    /// The stretches that are drawn, in positions, and where each starts.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (u64, u64, f64)> {
        let mut x = self.left + EVENTS_INSET.0;
        self.shown.stretches.iter().map(move |&(from, until)| {
            let start = x;
            x += (until - from) as f64 * self.scale + CUT_WIDTH;
            (from, until, start)
        })
    }

    /// The left and right ends of the cuts.
    pub(super) fn cuts(&self) -> Vec<(f64, f64)> {
        let starts: Vec<f64> = self.stretches().skip(1).map(|stretch| stretch.2).collect();
        starts.into_iter().map(|x| (x - CUT_WIDTH, x)).collect()
    }

    /// Where a time is drawn. One that is cut out lies within its cut.
    pub(super) fn x(&self, time: u64) -> f64 {
        let position = self.shown.clock.position(time);
        let mut before: Option<(u64, f64)> = None;
        for (from, until, start) in self.stretches() {
            if position < from {
                let Some((end, x)) = before else { return start };
                let part = (position - end) as f64 / (from - end) as f64;
                return x + CUT_WIDTH * part;
            }
            let length = (position.min(until) - from) as f64 * self.scale;
            if position <= until {
                return start + length;
            }
            before = Some((until, start + length));
        }
        before.map_or(self.left, |(_, x)| x)
    }

    /// Where the ends of a message would be if the time that is cut out beside them were drawn to
    /// scale, and where its line is torn off at the cuts, if it is.
    pub(super) fn torn(&self, arrow: &Arrow) -> ((f64, f64), (Option<f64>, Option<f64>)) {
        let (mut from, mut to) = (self.x(arrow.from.time), self.x(arrow.to.time));
        let mut torn = (None, None);
        if self.shown.cuts.is_empty() {
            return ((from, to), torn);
        }
        let shown: Vec<_> = self.stretches().collect();
        let clock = &self.shown.clock;
        let (sent, got) = (
            clock.position(arrow.from.time),
            clock.position(arrow.to.time),
        );
        if !self.shown.shows(arrow.from.time)
            && let Some(&(start, _, x)) = shown.iter().find(|stretch| stretch.0 > sent)
        {
            from = x - (start - sent) as f64 * self.scale;
            torn.0 = Some(x - TORN_INTO);
        }
        if !self.shown.shows(arrow.to.time)
            && let Some(&(start, end, x)) = shown.iter().rev().find(|stretch| stretch.1 < got)
        {
            let edge = x + (end - start) as f64 * self.scale;
            to = edge + (got - end) as f64 * self.scale;
            torn.1 = Some(edge + TORN_INTO);
        }
        ((from, to), torn)
    }

    /// The end of an open span is the end of the lanes.
    pub(super) fn x_or_end(&self, time: Option<u64>) -> f64 {
        time.map_or(self.right, |time| self.x(time))
    }

    pub(super) fn y(&self, lane: usize) -> f64 {
        self.top + LANES_INSET + self.lane_gap * lane as f64
    }
}

/// How far a message that is cut off reaches into the cut.
const TORN_INTO: f64 = 12.0;

/// Distance of the outer lanes from the ends of their area.
const LANES_INSET: f64 = 44.0;

pub(super) fn lane_name(name: &str) -> String {
    text::cut(name, LANE_NAME_CHARS_MAX)
}

/// Room for the names of the lanes and, if there are or will be any, of folds.
pub(super) fn names_width(run: &SpaceTime, folded: &[bool], folds: bool) -> f64 {
    let names = run.lanes.iter().zip(folded).take(LANES_MAX);
    let names = names.filter(|(_, folded)| !**folded);
    let names = names.map(|(name, _)| text::width(&lane_name(name), 13.0));
    let fold = if folds { FOLD_NAME_WIDTH } else { 0.0 };
    let least = text::width(&axis_title(run), text::LABEL_SIZE).max(fold);
    names.fold(least, f64::max) + 12.0
}

pub(super) fn axis_title(run: &SpaceTime) -> String {
    let words = match (run.scale, run.unit.as_str()) {
        (Scale::Steps, "") => "step".to_string(),
        (Scale::Steps, unit) => unit.to_string(),
        (Scale::Proportional, "") => "time".to_string(),
        (Scale::Proportional, unit) => format!("time ({unit})"),
    };
    text::cut(&words, LANE_NAME_CHARS_MAX)
}
