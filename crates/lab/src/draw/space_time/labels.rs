//! Which labels of a diagram are drawn, and where. Violations come first and always have a callout;
//! then bars, marks and arrows take what is free, and asks, which bars show as well, what is left. A
//! label that finds no place at its arrow stays as a tooltip.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::draw::{
    layout::{Ink, Sheet, Slab},
    space_time::{
        Bar, BarStyle, Fate, MarkKind,
        arrows::Stroke,
        frame::{Frame, Scene},
        kinds,
    },
    text::{self, LABEL_CHARS_MAX, LABEL_SIZE},
};

/// Half the height of a solid bar.
pub(super) const BAR_HALF: f64 = 8.0;
const LABEL_HEIGHT: f64 = 13.0;
/// Distance of a mark's label from its lane.
const MARK_LIFT: f64 = 17.0;
/// Diagrams with more arrows do not look for the clearest place, only for a free one.
const CLEAREST_ARROWS_MAX: usize = 2_000;
const CALLOUT_SIZE: f64 = 12.0;
const CALLOUT_ROOM: f64 = 330.0;
const CALLOUT_LINES_MAX: usize = 3;
pub(super) const CALLOUT_LINE: f64 = 16.0;
/// Callouts that overlap are stacked this high; later ones keep their red mark and a tooltip.
const CALLOUT_ROWS_MAX: usize = 4;

/// The place and the words of a drawn label.
#[derive(Clone, Debug)]
pub(super) struct Label {
    pub(super) slab: Slab,
    pub(super) text: String,
}

/// The red box with a violation's words.
#[derive(Debug)]
pub(super) struct Callout {
    pub(super) mark: usize,
    pub(super) lines: Vec<String>,
    pub(super) left: f64,
    pub(super) width: f64,
    /// Zero is the row next to the lanes.
    pub(super) row: usize,
}

/// Callouts for the violations, from the first, as far as rows allow.
pub(super) fn callouts(scene: &Scene<'_>, frame: &Frame<'_>) -> Vec<Callout> {
    let mut row_ends: Vec<f64> = Vec::new();
    let mut callouts = Vec::new();
    let mut violations: Vec<_> = scene.violations().collect();
    violations.sort_by_key(|(_, mark)| mark.place.time);
    for (mark, violation) in violations {
        let words = match violation.label.as_str() {
            "" => "violation",
            label => label,
        };
        let lines = text::wrap(words, CALLOUT_SIZE, CALLOUT_ROOM, CALLOUT_LINES_MAX);
        let widths = lines
            .iter()
            .map(|line| text::width(line, CALLOUT_SIZE) * 1.06);
        let width = widths.fold(20.0, f64::max) + 18.0;
        let x = frame.x(violation.place.time);
        let left = (x - width / 2.0).min(frame.right - width).max(frame.left);
        let row = row_ends.iter().position(|&end| end + 8.0 <= left);
        let row = match row {
            Some(row) => row,
            None if row_ends.len() < CALLOUT_ROWS_MAX => {
                row_ends.push(0.0);
                row_ends.len() - 1
            }
            None => continue,
        };
        row_ends[row] = left + width;
        callouts.push(Callout {
            mark,
            lines,
            left,
            width,
            row,
        });
    }
    callouts
}

/// The labels that found a place, by the index of what they belong to.
#[derive(Debug)]
pub(super) struct Labels {
    pub(super) arrows: Vec<Option<Label>>,
    pub(super) marks: Vec<Option<Label>>,
    pub(super) bars: Vec<Option<Label>>,
    pub(super) dropped: usize,
    /// Points of other lines under the labels.
    hidden: usize,
}

impl Labels {
    pub(super) fn place(scene: &Scene<'_>, frame: &Frame<'_>, strokes: &[Stroke]) -> Self {
        let mut sheet = Sheet::new((frame.left, frame.top, frame.right + 2.0, frame.bottom));
        let ink = ink(scene, frame, strokes);
        take_glyphs(scene, frame, strokes, &mut sheet);
        let mut labels = Labels {
            arrows: Vec::new(),
            marks: Vec::new(),
            bars: Vec::new(),
            dropped: 0,
            hidden: 0,
        };
        labels.place_bars(scene, frame, &mut sheet);
        labels.marks.resize(scene.marks.len(), None);
        labels.place_marks(scene, frame, &mut sheet, &ink, false);
        labels.place_arrows(scene, strokes, &mut sheet, &ink);
        labels.place_marks(scene, frame, &mut sheet, &ink, true);
        labels
    }

    /// Whether more room could make this clearly better: labels are missing or hide lines.
    pub(super) fn crowded(&self) -> bool {
        let drawn = [&self.arrows, &self.marks, &self.bars];
        let drawn: usize = drawn
            .iter()
            .map(|labels| labels.iter().flatten().count())
            .sum();
        self.dropped > 0 || self.hidden > drawn
    }

    /// Clearly better, not only a little: width has its price too.
    pub(super) fn better_than(&self, other: &Labels) -> bool {
        self.dropped < other.dropped
            || self.dropped == other.dropped && 4 * self.hidden < 3 * other.hidden
    }

    /// Notes what a label hides or that it was dropped, and gives it if not.
    fn settle(&mut self, found: Option<(Slab, usize)>, text: String) -> Option<Label> {
        let Some((slab, hidden)) = found else {
            self.dropped += 1;
            return None;
        };
        self.hidden += hidden;
        Some(Label { slab, text })
    }

    fn place_bars(&mut self, scene: &Scene<'_>, frame: &Frame<'_>, sheet: &mut Sheet) {
        let mut outside = Vec::new();
        for bar in &scene.bars {
            let (text, width) = measured(&bar.label);
            let (left, right) = span(bar, frame);
            let y = frame.y(bar.lane);
            let room = right - left - width;
            let inside = [0.5, 0.7, 0.3, 0.85, 0.15]
                .into_iter()
                .map(|part| Slab::level(left + width / 2.0 + room * part, y, width, LABEL_HEIGHT));
            let fits = !text.is_empty() && bar.style == BarStyle::Solid && room >= 4.0;
            let slab = if fits { sheet.first_free(inside) } else { None };
            // The colour and the legend tell the class, too.
            let told = bar.class.contains(&bar.label);
            outside.push(slab.is_none() && !told);
            self.bars.push(slab.map(|slab| Label { slab, text }));
        }
        for bar in scene.bars.iter().filter(|bar| bar.style == BarStyle::Solid) {
            let (left, right) = span(bar, frame);
            let middle = (left + right) / 2.0;
            sheet.take(Slab::level(
                middle,
                frame.y(bar.lane),
                right - left,
                2.0 * BAR_HALF,
            ));
        }
        for (i, bar) in scene.bars.iter().enumerate().filter(|(i, _)| outside[*i]) {
            let (text, width) = measured(&bar.label);
            let (left, right) = span(bar, frame);
            let (x, y) = ((left + right) / 2.0, frame.y(bar.lane));
            let around =
                [-MARK_LIFT, MARK_LIFT].map(|lift| Slab::level(x, y + lift, width, LABEL_HEIGHT));
            let found = sheet.first_free(around).map(|slab| (slab, 0));
            self.bars[i] = self.settle(found, text);
        }
    }

    /// Labels of asks, or of all other marks. An ask has its label only where it hides nothing.
    fn place_marks(
        &mut self,
        scene: &Scene<'_>,
        frame: &Frame<'_>,
        sheet: &mut Sheet,
        ink: &Ink,
        asks: bool,
    ) {
        for (i, mark) in scene.marks.iter().enumerate() {
            let (text, width) = measured(&mark.label);
            // A violation's words are in its callout.
            let wanted = !text.is_empty() && mark.kind != MarkKind::Violation;
            if !wanted || (mark.kind == MarkKind::Ask) != asks {
                continue;
            }
            let (x, y) = (frame.x(mark.place.time), frame.y(mark.place.lane));
            let aside = width / 2.0 + 2.0;
            let around = [1.0, 1.8]
                .into_iter()
                .flat_map(|level| [-level * MARK_LIFT, level * MARK_LIFT])
                .flat_map(|lift| [0.0, aside, -aside].map(|shift| (x + shift, y + lift)))
                .map(|(x, y)| Slab::level(x, y, width, LABEL_HEIGHT));
            if asks {
                let found = sheet.clearest(around.take(6), ink, NO_LINE, 0);
                self.marks[i] = found.map(|(slab, _)| Label { slab, text });
                continue;
            }
            let found = sheet.clearest(around, ink, NO_LINE, usize::MAX);
            self.marks[i] = self.settle(found, text);
        }
    }

    /// Labels of arrows: whole, or without the kind, which the colour tells as well.
    fn place_arrows(
        &mut self,
        scene: &Scene<'_>,
        strokes: &[Stroke],
        sheet: &mut Sheet,
        ink: &Ink,
    ) {
        for (i, (arrow, stroke)) in scene.arrows.iter().zip(strokes).enumerate() {
            let kind = kinds::kind(&arrow.label);
            let rest = arrow.label.strip_prefix(&kind).unwrap_or("").trim();
            let mut place = |label: &str| {
                let (text, width) = measured(label);
                let found = match text.is_empty() {
                    true => None,
                    false => sheet.clearest(along(stroke, width), ink, i, HIDDEN_MAX),
                };
                found.map(|found| (found, text))
            };
            let found = place(&arrow.label).or_else(|| place(rest));
            self.dropped += usize::from(found.is_none() && !rest.is_empty());
            self.arrows.push(found.map(|((slab, hidden), text)| {
                self.hidden += hidden;
                Label { slab, text }
            }));
        }
    }
}

/// A label that would hide more points of other lines is left out.
const HIDDEN_MAX: usize = 4;

/// The line of a label that belongs to none.
const NO_LINE: usize = usize::MAX;

/// The ink of lanes and messages; none where there are too many to care.
fn ink(scene: &Scene<'_>, frame: &Frame<'_>, strokes: &[Stroke]) -> Ink {
    let mut ink = Ink::new((frame.left, frame.top, frame.right, frame.bottom));
    if strokes.len() > CLEAREST_ARROWS_MAX {
        return ink;
    }
    for lane in 0..scene.lanes.len() {
        let y = frame.y(lane);
        // Twice: a label on a lane is worse than one across a message.
        ink.add_line(NO_LINE - 1, (frame.left, y), (frame.right, y));
        ink.add_line(NO_LINE - 1, (frame.left, y), (frame.right, y));
    }
    for (i, stroke) in strokes.iter().enumerate() {
        ink.add_line(i, stroke.from, stroke.point(0.5));
        ink.add_line(i, stroke.point(0.5), stroke.to);
    }
    ink
}

/// Keeps labels away from marks, from the ends of gaps and from the crosses of lost messages.
fn take_glyphs(scene: &Scene<'_>, frame: &Frame<'_>, strokes: &[Stroke], sheet: &mut Sheet) {
    for mark in &scene.marks {
        let size = match mark.kind {
            MarkKind::Violation => 26.0,
            _ => 11.0,
        };
        let (x, y) = (frame.x(mark.place.time), frame.y(mark.place.lane));
        sheet.take(Slab::level(x, y, size, size));
    }
    for (left, right) in frame.cuts() {
        let middle = ((left + right) / 2.0, (frame.top + frame.bottom) / 2.0);
        let height = frame.bottom - frame.top;
        sheet.take(Slab::level(middle.0, middle.1, right - left, height));
    }
    for gap in &scene.gaps {
        for x in [frame.x(gap.from), frame.x_or_end(gap.until)] {
            sheet.take(Slab::level(x, frame.y(gap.lane), 14.0, 18.0));
        }
    }
    for (arrow, stroke) in scene.arrows.iter().zip(strokes) {
        if matches!(arrow.fate, Fate::Lost { .. }) {
            sheet.take(Slab::level(stroke.to.0, stroke.to.1, 11.0, 11.0));
        }
    }
}

fn measured(label: &str) -> (String, f64) {
    let text = text::cut(label, LABEL_CHARS_MAX);
    let width = text::width(&text, LABEL_SIZE) + 4.0;
    (text, width)
}

/// The left and right end of a bar; never narrower than can be seen.
pub(super) fn span(bar: &Bar, frame: &Frame<'_>) -> (f64, f64) {
    let left = frame.x(bar.from);
    (left, frame.x_or_end(bar.until).max(left + 2.0))
}

/// Distance of a label's middle line from its arrow.
const ARROW_LIFT: f64 = 8.5;
/// What is left of a message at a cut has no label if it is shorter than this.
const STUB: f64 = 48.0;
/// Arrows steeper than this (radians) prefer level labels beside them.
const STEEP: f64 = 1.3;

/// Places for an arrow's label, best first: along the arrow on either side, then level beside it.
fn along(stroke: &Stroke, width: f64) -> Vec<Slab> {
    if stroke.arched {
        let (x, top) = stroke.point(0.5);
        return [-9.0, -22.0]
            .map(|lift| Slab::level(x, top + lift, width, LABEL_HEIGHT))
            .to_vec();
    }
    let (dx, dy) = (stroke.to.0 - stroke.from.0, stroke.to.1 - stroke.from.1);
    let length = dx.hypot(dy).max(1.0);
    if stroke.torn && length < STUB {
        return Vec::new();
    }
    let mut turned = Vec::new();
    if length >= width + 14.0 {
        let slack = 0.5 - (width / 2.0 + 7.0) / length;
        for share in [0.0, -0.35, 0.35, -0.7, 0.7, -1.0, 1.0] {
            let part = 0.5 + share * slack;
            let (x, y) = stroke.point(part);
            let angle = reading_angle(stroke.heading(part));
            for lift in [ARROW_LIFT, -ARROW_LIFT] {
                let (x, y) = (x + angle.sin() * lift, y - angle.cos() * lift);
                turned.push(Slab::turned(x, y, width, LABEL_HEIGHT, angle));
            }
        }
    }
    let angle = reading_angle((dx, dy)).abs();
    // Clear of the line: half the label's height must fit under the slope.
    let aside = width / 2.0 + 4.0 + LABEL_HEIGHT / 2.0 / angle.tan().max(0.3);
    let mut level = Vec::new();
    for part in [0.5, 0.36, 0.64, 0.24, 0.76] {
        let (x, y) = stroke.point(part);
        level.extend([aside, -aside].map(|by| Slab::level(x + by, y, width, LABEL_HEIGHT)));
    }
    if angle > STEEP {
        level.append(&mut turned);
        level
    } else {
        turned.append(&mut level);
        turned
    }
}

/// The angle of a text along a direction that reads from left to right.
fn reading_angle((dx, dy): (f64, f64)) -> f64 {
    match dy.atan2(dx) {
        angle if angle > FRAC_PI_2 => angle - PI,
        angle if angle < -FRAC_PI_2 => angle + PI,
        angle => angle,
    }
}
