//! The layout of a whole diagram: it is tried at growing widths until every label has a place.

use crate::draw::{
    space_time::{
        arrows::{self, Stroke},
        frame::{Frame, MARGIN, Scene},
        labels::{self, CALLOUT_LINE, Callout, Labels},
    },
    text,
};

/// The title is broken at this width even on a wide picture, because a reader starts at its left.
const HEADER_ROOM_MAX: f64 = 1_100.0;
const TITLE_LINE: f64 = 23.0;
const SUBTITLE_LINE: f64 = 18.0;
const CYCLE_ROW: f64 = 34.0;
const PARTITION_ROW: f64 = 20.0;
const CUT_ROW: f64 = 22.0;

/// Up to here a diagram whose labels all fit is widened so that they hide fewer lines.
const CLEARER_WIDTH_MAX: f64 = 1_500.0;

/// A diagram that is laid out and only needs to be painted.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub(super) frame: Frame<'a>,
    pub(super) strokes: Vec<Stroke>,
    pub(super) labels: Labels,
    pub(super) callouts: Vec<Callout>,
    /// Height of the row for the callouts of row zero, and of those above it.
    pub(super) callout_row: f64,
    pub(super) title: Vec<String>,
    pub(super) subtitle: Vec<String>,
    /// Where the bracket of the cycle runs.
    pub(super) cycle_y: f64,
    /// Upper end of the partitions' bands.
    pub(super) bands_top: f64,
}

impl<'a> Plan<'a> {
    /// The narrowest layout that drops the fewest labels and hides few lines.
    pub(super) fn best(scene: &Scene<'a>) -> Self {
        let sizes = scene.sizes();
        let (width, stretch) = sizes[0];
        let mut best = Plan::new(scene, width, stretch);
        for &(width, stretch) in &sizes[1..] {
            let clearer = width <= CLEARER_WIDTH_MAX && best.labels.crowded();
            let wanted = best.labels.dropped > 0 || clearer;
            if !wanted {
                break;
            }
            let plan = Plan::new(scene, width, stretch);
            if plan.labels.better_than(&best.labels) {
                best = plan;
            }
        }
        best
    }

    fn new(scene: &Scene<'a>, plot_width: f64, stretch: f64) -> Self {
        let frame = Frame::new(scene, plot_width, stretch);
        let (title, subtitle, header) = header(scene, frame.width);
        let callouts = labels::callouts(scene, &frame);
        let lines = callouts.iter().map(|callout| callout.lines.len()).max();
        let callout_row = lines.map_or(0.0, |lines| lines as f64 * CALLOUT_LINE + 20.0);
        let rows = callouts.iter().map(|callout| callout.row + 1).max();
        let cycle_row = if scene.cycle.is_some() {
            CYCLE_ROW
        } else {
            0.0
        };
        let partition_row = if scene.partitions.is_empty() {
            0.0
        } else {
            PARTITION_ROW
        };
        let cut_row = match scene.shown.cuts.is_empty() {
            true => 0.0,
            false => CUT_ROW,
        };
        let bands_top = header + cycle_row + cut_row;
        let callouts_height = callout_row * rows.unwrap_or(0) as f64;
        let frame = frame.shifted_down(bands_top + partition_row + callouts_height);
        let strokes = arrows::strokes(scene, &frame);
        let labels = Labels::place(scene, &frame, &strokes);
        Plan {
            frame,
            strokes,
            labels,
            callouts,
            callout_row,
            title,
            subtitle,
            cycle_y: header + 22.0,
            bands_top,
        }
    }
}

/// The lines of the title and of the subtitle, and the height down to which they reach.
pub(super) fn header(scene: &Scene<'_>, width: f64) -> (Vec<String>, Vec<String>, f64) {
    let room = (width - 2.0 * MARGIN).min(HEADER_ROOM_MAX);
    let title = text::wrap(&scene.run.title, 18.0, room, 3);
    let subtitle = text::wrap(&scene.run.subtitle, 13.0, room, 4);
    let height = title.len() as f64 * TITLE_LINE + subtitle.len() as f64 * SUBTITLE_LINE;
    (title, subtitle, height + 14.0)
}

/// Baselines of the header's lines: those of the title, then those of the subtitle.
pub(super) fn baselines(title: usize) -> impl Iterator<Item = f64> {
    let titles = (0..title).map(|i| 30.0 + i as f64 * TITLE_LINE);
    let below = 27.0 + title as f64 * TITLE_LINE;
    titles.chain((0..).map(move |i| below + f64::from(i) * SUBTITLE_LINE))
}
