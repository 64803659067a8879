//! What of a run is drawn, and where: the [`Scene`] leaves out what has no place, and the [`Frame`]
//! turns lanes and times into coordinates.

use crate::draw::{
    space_time::{
        Arrow, Bar, Cycle, Fate, Gap, ITEMS_MAX, LANES_MAX, Mark, MarkKind, Partition, Scale,
        SpaceTime,
    },
    text,
};

/// Blank border of the picture.
pub(super) const MARGIN: f64 = 22.0;
/// The narrowest plot of a diagram to scale.
const WIDTH_MIN: f64 = 940.0;
/// The widest plot of a diagram to scale; a run with more events than fit loses labels.
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
    /// Every time at which something happens, in order, once.
    pub(super) times: Vec<u64>,
    /// What the reader must know about what is missing.
    pub(super) notes: Vec<String>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(run: &'a SpaceTime) -> Self {
        let lanes = &run.lanes[..run.lanes.len().min(LANES_MAX)];
        let known = |lane: usize| lane < lanes.len();
        let mut left_out = Vec::new();
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
        let mut scene = Scene {
            run,
            lanes,
            arrows,
            bars,
            gaps,
            partitions,
            marks,
            cycle: run.cycle,
            times: Vec::new(),
            notes: left_out,
        };
        scene.times = scene.all_times();
        scene
    }

    fn all_times(&self) -> Vec<u64> {
        let mut times: Vec<u64> = self.marks.iter().map(|mark| mark.place.time).collect();
        for arrow in &self.arrows {
            times.push(arrow.from.time);
            // The others did not arrive at that time.
            if matches!(arrow.fate, Fate::Delivered | Fate::Duplicate) {
                times.push(arrow.to.time);
            }
        }
        let bars = self.bars.iter().map(|bar| (bar.from, bar.until));
        let gaps = self.gaps.iter().map(|gap| (gap.from, gap.until));
        let partitions = self.partitions.iter().map(|cut| (cut.from, cut.until));
        for (from, until) in bars.chain(gaps).chain(partitions) {
            times.extend([Some(from), until].into_iter().flatten());
        }
        if let Some(cycle) = self.cycle {
            times.extend([cycle.from, cycle.until]);
        }
        times.sort_unstable();
        times.dedup();
        times
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty() || self.times.is_empty()
    }

    /// Where the time axis starts: at zero, unless that would leave much of the picture empty.
    fn first(&self) -> u64 {
        let ends = (self.times.first().copied(), self.times.last().copied());
        let (first, last) = (ends.0.unwrap_or(0), ends.1.unwrap_or(0));
        if first <= (last - first) / 5 {
            0
        } else {
            first
        }
    }

    /// The width at which half of the messages slope gently enough to carry their labels.
    fn gentle_width(&self) -> f64 {
        let across = |arrow: &&&Arrow| arrow.from.lane != arrow.to.lane;
        let mut delays: Vec<u64> = (self.arrows.iter().filter(across))
            .map(|arrow| arrow.to.time.abs_diff(arrow.from.time))
            .collect();
        delays.sort_unstable();
        let median = delays.get(delays.len() / 2).copied().unwrap_or(0).max(1);
        let span = self.times.last().map_or(0, |last| last - self.first());
        (span as f64 / median as f64 * GENTLE_EXTENT).min(GENTLE_WIDTH_MAX)
    }

    pub(super) fn violations(&self) -> impl Iterator<Item = (usize, &'a Mark)> {
        (self.marks.iter().copied().enumerate())
            .filter(|(_, mark)| mark.kind == MarkKind::Violation)
    }

    /// Plot widths to try, ascending: the first at which every label fits is taken.
    pub(super) fn widths(&self) -> Vec<f64> {
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
                    self.times.len() as f64 * column.max(COLUMN_WIDTH_MIN),
                    STEPS_WIDTH_MAX,
                )
            }
        };
        let mut widths: Vec<f64> = growth
            .iter()
            .map(|by| (least * by).min(most).round())
            .collect();
        widths.dedup();
        widths
    }
}

/// Lanes and times as coordinates.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    times: &'a [u64],
    scale: Scale,
    last: u64,
    first: u64,
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
const EVENTS_INSET: (f64, f64) = (26.0, 44.0);

impl<'a> Frame<'a> {
    /// A frame whose lanes' area starts at height zero, until [`Frame::shifted_down`].
    pub(super) fn new(scene: &'a Scene<'_>, plot_width: f64, stretch: f64) -> Self {
        let names = scene
            .lanes
            .iter()
            .map(|name| text::width(&lane_name(name), 13.0));
        let axis_width = text::width(&axis_title(scene.run), text::LABEL_SIZE);
        let name_width = names.fold(axis_width, f64::max) + 12.0;
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
        Frame {
            times: &scene.times,
            scale: scene.run.scale,
            last: scene
                .times
                .last()
                .copied()
                .unwrap_or(0)
                .max(scene.run.until.unwrap_or(0)),
            first: scene.first(),
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

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn x(&self, time: u64) -> f64 {
        let (from, to) = (self.left + EVENTS_INSET.0, self.right - EVENTS_INSET.1);
        let part = match self.scale {
            Scale::Proportional => {
                let span = (self.last - self.first()).max(1);
                let since = time.clamp(self.first(), self.last) - self.first();
                since as f64 / span as f64
            }
            Scale::Steps => {
                let column = self.times.partition_point(|&t| t < time);
                column.min(self.times.len() - 1) as f64 / (self.times.len() - 1).max(1) as f64
            }
        };
        from + (to - from) * part
    }

    /// The end of an open span is the end of the lanes.
    pub(super) fn x_or_end(&self, time: Option<u64>) -> f64 {
        time.map_or(self.right, |time| self.x(time))
    }

    pub(super) fn y(&self, lane: usize) -> f64 {
        self.top + LANES_INSET + self.lane_gap * lane as f64
    }
}

/// Distance of the outer lanes from the ends of their area.
const LANES_INSET: f64 = 44.0;

pub(super) fn lane_name(name: &str) -> String {
    text::cut(name, LANE_NAME_CHARS_MAX)
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
