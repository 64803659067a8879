//! The lanes and what sits on them: gaps, bars and marks. The glyphs are functions of their own,
//! because the legend draws them too.

use crate::draw::{
    axis,
    space_time::{
        Bar, BarStyle, GapKind, Mark, MarkKind,
        frame::{Frame, Scene, lane_name},
        kinds::Look,
        labels::{BAR_HALF, span},
    },
    svg::{Path, Svg},
    text::{self, TOOLTIP_CHARS_MAX},
    theme,
};

/// Half the height of the tint behind a node that does nothing.
const GAP_HALF: f64 = 15.0;

/// Lane lines, broken where a node is crashed, and their names.
pub(super) fn paint_lanes(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame<'_>) {
    let mut crashes: Vec<Vec<(f64, f64)>> = vec![Vec::new(); scene.lanes.len()];
    for gap in scene.gaps.iter().filter(|gap| gap.kind == GapKind::Crash) {
        crashes[gap.lane].push((frame.x(gap.from), frame.x_or_end(gap.until)));
    }
    for (lane, name) in scene.lanes.iter().enumerate() {
        let y = frame.y(lane);
        if scene.shown.folded.get(lane).copied().unwrap_or(false) {
            svg.line("lane folded", (frame.left, y), (frame.right, y));
            svg.words("quiet end", frame.left - 10.0, y + 4.0, name);
            continue;
        }
        let mut alive_from = frame.left;
        crashes[lane].sort_by(|a, b| a.0.total_cmp(&b.0));
        for &(from, until) in &crashes[lane] {
            svg.line("lane", (alive_from, y), (from.max(alive_from), y));
            svg.line("lane dead", (from, y), (until, y));
            alive_from = until.max(alive_from);
        }
        svg.line("lane", (alive_from, y), (frame.right, y));
        let name = lane_name(name);
        svg.words("name end", frame.left - 10.0, y + 4.5, &name);
        if frame.names_twice {
            svg.words("name", frame.right + 10.0, y + 4.5, &name);
        }
    }
}

/// The tints of crashes and pauses, under everything else on the lane.
pub(super) fn paint_gaps(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame<'_>) {
    for gap in &scene.gaps {
        let (left, y) = (frame.x(gap.from), frame.y(gap.lane));
        let right = frame.x_or_end(gap.until).max(left + 2.0);
        let (class, what, end) = match gap.kind {
            GapKind::Crash => ("crash", "crashed", "restarted"),
            GapKind::Pause => ("pause", "paused", "went on"),
        };
        let time = |time| axis::time_label(time, scene.run.ticks_per_unit);
        let end = match gap.until {
            Some(until) => format!("{end} at {}", time(until)),
            None => "for ever".to_string(),
        };
        let name = &scene.lanes[gap.lane];
        let tooltip = format!("{name} {what} at {}, {end}", time(gap.from));
        svg.tag("rect")
            .attr("class", class)
            .rect(left, y - GAP_HALF, right - left, 2.0 * GAP_HALF)
            .titled(&text::cut(&tooltip, TOOLTIP_CHARS_MAX));
    }
}

/// The marks at the ends of crashes and pauses.
pub(super) fn paint_gap_ends(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame<'_>) {
    for gap in &scene.gaps {
        let (x, y) = (frame.x(gap.from), frame.y(gap.lane));
        match gap.kind {
            GapKind::Crash => crash_glyph(svg, x, y),
            GapKind::Pause => pause_glyph(svg, x, y),
        }
        if let (GapKind::Crash, Some(until)) = (gap.kind, gap.until) {
            restart_glyph(svg, frame.x(until), y);
        }
    }
}

pub(super) fn crash_glyph(svg: &mut Svg, x: f64, y: f64) {
    let path = Path::default().cross(x, y, 5.5);
    svg.tag("path")
        .attr("class", "cross crashed")
        .attr("d", path.as_str())
        .empty();
}

pub(super) fn restart_glyph(svg: &mut Svg, x: f64, y: f64) {
    let path = Path::from(x - 4.0, y - 6.0)
        .to(x + 6.0, y)
        .to(x - 4.0, y + 6.0)
        .shut();
    svg.tag("path")
        .attr("class", "glyph crashed restart")
        .attr("d", path.as_str())
        .empty();
}

pub(super) fn pause_glyph(svg: &mut Svg, x: f64, y: f64) {
    let path = Path::from(x - 2.5, y - 6.0).to(x - 2.5, y + 6.0);
    let path = path.jump(x + 2.5, y - 6.0).to(x + 2.5, y + 6.0);
    svg.tag("path")
        .attr("class", "cross paused")
        .attr("d", path.as_str())
        .empty();
}

/// The classes of the bars in the order of their names, each with the hue of its bars of both styles.
pub(super) fn bar_classes<'a>(scene: &Scene<'a>) -> Vec<(&'a str, usize)> {
    let mut names: Vec<&str> = scene.bars.iter().map(|bar| bar.class.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.truncate(CLASSES_MAX);
    let mut next = [2, 0, 4, 3, 1, 5].into_iter().cycle();
    let hued = |name| match name {
        WAITING => (name, WAITING_HUE),
        _ => (name, next.next().unwrap_or(WAITING_HUE)),
    };
    names.into_iter().map(hued).collect()
}

/// Bars of further classes share the last hue.
const CLASSES_MAX: usize = 24;
/// The class of a hatched bar where there is only one thing to wait for.
pub(super) const WAITING: &str = "waiting";
/// A warm hue, so that waiting never looks like being inside.
const WAITING_HUE: usize = 4;

pub(super) fn paint_bars(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame<'_>) {
    let classes = bar_classes(scene);
    for bar in &scene.bars {
        let hue = (classes.iter())
            .find(|class| class.0 == bar.class)
            .map_or(theme::HUES - 1, |class| class.1);
        let (left, right) = span(bar, frame);
        let tooltip = bar_tooltip(scene, bar);
        bar_shape(
            svg,
            bar.style,
            hue,
            (left, right),
            frame.y(bar.lane),
            &tooltip,
        );
    }
}

pub(super) fn bar_shape(
    svg: &mut Svg,
    style: BarStyle,
    hue: usize,
    (left, right): (f64, f64),
    y: f64,
    tooltip: &str,
) {
    match style {
        BarStyle::Solid => svg
            .tag("rect")
            .attr("class", &format!("solid h{hue}"))
            .rect(left, y - BAR_HALF, right - left, 2.0 * BAR_HALF)
            .num("rx", 2.0)
            .titled(tooltip),
        BarStyle::Hatched => svg
            .tag("path")
            .attr("class", &format!("hatch h{hue}"))
            .attr("d", Path::from(left, y).to(right, y).as_str())
            .titled(tooltip),
    }
}

fn bar_tooltip(scene: &Scene<'_>, bar: &Bar) -> String {
    let time = |time| axis::time_label(time, scene.run.ticks_per_unit);
    let until = bar.until.map_or("the end".to_string(), time);
    let class = match (bar.style, bar.class.as_str()) {
        (BarStyle::Hatched, class) if class != WAITING && !class.is_empty() => {
            format!("{WAITING}, {class}")
        }
        (_, class) => class.to_string(),
    };
    let words = match (class.as_str(), bar.label.as_str()) {
        (_, label) if class.contains(label) => class,
        ("", label) => label.to_string(),
        (class, label) => format!("{class} ({label})"),
    };
    let name = &scene.lanes[bar.lane];
    let tooltip = format!("{name} {words}, {} to {until}", time(bar.from));
    text::cut(&tooltip, TOOLTIP_CHARS_MAX)
}

/// Marks other than violations; those come last, over everything.
pub(super) fn paint_marks(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame<'_>) {
    for mark in scene
        .marks
        .iter()
        .filter(|mark| mark.kind != MarkKind::Violation)
    {
        let (x, y) = (frame.x(mark.place.time), frame.y(mark.place.lane));
        let tooltip = mark_tooltip(scene, mark);
        match mark.is_access() {
            true => access_glyph(
                svg,
                mark.kind,
                scene.registers.look(&mark.label),
                (x, y),
                &tooltip,
            ),
            false => mark_glyph(svg, mark.kind, x, y, &tooltip),
        }
    }
}

/// A square in the colour of the register: full where it was written, hollow where it was read.
pub(super) fn access_glyph(
    svg: &mut Svg,
    kind: MarkKind,
    look: Option<Look>,
    (x, y): (f64, f64),
    tooltip: &str,
) {
    let word = if kind == MarkKind::Write {
        "write"
    } else {
        "read"
    };
    let class = format!("glyph {word} h{}", look.map_or(0, |look| look.hue));
    let path = Path::from(x - 3.5, y - 3.5)
        .to(x + 3.5, y - 3.5)
        .to(x + 3.5, y + 3.5)
        .to(x - 3.5, y + 3.5)
        .shut();
    svg.tag("path")
        .attr("class", &class)
        .attr("d", path.as_str())
        .titled(tooltip);
}

/// An ask points into the lane, a tell is a full disc, a timer is a diamond, a note a small disc.
pub(super) fn mark_glyph(svg: &mut Svg, kind: MarkKind, x: f64, y: f64, tooltip: &str) {
    let path = match kind {
        MarkKind::Ask => Path::from(x - 5.0, y - 6.0)
            .to(x + 5.0, y - 6.0)
            .to(x, y + 3.0)
            .shut(),
        MarkKind::Timer => Path::from(x, y - 6.0)
            .to(x + 5.5, y)
            .to(x, y + 6.0)
            .to(x - 5.5, y)
            .shut(),
        _ => {
            let (class, radius) = match kind {
                MarkKind::Tell => ("glyph tell", 4.0),
                MarkKind::Note => ("glyph note", 2.8),
                _ => ("glyph wrong", 11.0),
            };
            svg.tag("circle")
                .attr("class", class)
                .num("cx", x)
                .num("cy", y)
                .num("r", radius)
                .titled(tooltip);
            return;
        }
    };
    let class = if kind == MarkKind::Ask {
        "glyph ask"
    } else {
        "glyph timer"
    };
    svg.tag("path")
        .attr("class", class)
        .attr("d", path.as_str())
        .titled(tooltip);
}

pub(super) fn mark_tooltip(scene: &Scene<'_>, mark: &Mark) -> String {
    let kind = match mark.kind {
        MarkKind::Ask => "asks",
        MarkKind::Tell => "is told",
        MarkKind::Timer => "timer",
        MarkKind::Note => "note",
        MarkKind::Read => "reads",
        MarkKind::Write => "writes",
        MarkKind::Violation => "VIOLATION",
    };
    let time = axis::time_label(mark.place.time, scene.run.ticks_per_unit);
    let name = &scene.lanes[mark.place.lane];
    text::cut(
        &format!("{name} {kind} at {time}: {}", mark.label),
        TOOLTIP_CHARS_MAX,
    )
}

/// A red disc with a cross: larger than any other mark.
pub(super) fn violation_glyph(svg: &mut Svg, x: f64, y: f64, tooltip: &str) {
    svg.tag("circle")
        .attr("class", "wrongback")
        .num("cx", x)
        .num("cy", y)
        .num("r", 17.0)
        .empty();
    mark_glyph(svg, MarkKind::Violation, x, y, tooltip);
    let path = Path::default().cross(x, y, 4.5);
    svg.tag("path")
        .attr("class", "cross onwrong")
        .attr("d", path.as_str())
        .empty();
}
