//! Puts a diagram on paper, from the background to the foreground.

use crate::draw::{
    axis,
    space_time::{
        Scale, SpaceTime, View, arrows,
        frame::{Frame, MARGIN, Scene, axis_title},
        key,
        labels::{CALLOUT_LINE, Callout, Label},
        lanes,
        plan::{self, Plan},
        shown::Shown,
    },
    svg::{Path, Svg, number},
    text::{self, LABEL_SIZE, TOOLTIP_CHARS_MAX},
};

const AXIS_HEIGHT: f64 = 48.0;
const NOTE_LINE: f64 = 17.0;
/// Least distance of two labels of the time axis.
const TICK_DISTANCE: f64 = 72.0;
/// A legend is broken at this width even on a wide picture.
const LEGEND_ROOM_MAX: f64 = 1_100.0;

/// Draws a run.
pub(super) fn picture(run: &SpaceTime, view: View) -> String {
    let shown = Shown::new(run, view);
    let scene = Scene::new(&shown);
    if scene.is_empty() {
        return nothing(&scene);
    }
    let plan = Plan::best(&scene);
    let frame = &plan.frame;
    let legend = key::legend(&scene);
    let room = (frame.width - 2.0 * MARGIN).min(LEGEND_ROOM_MAX);
    let mut notes = scene.notes.clone();
    if plan.labels.dropped > 0 {
        let dropped = plan.labels.dropped;
        notes.push(format!(
            "{dropped} labels have no room and are tooltips only"
        ));
    }
    let lines = notes.iter();
    let notes: Vec<String> = lines
        .flat_map(|note| text::wrap(note, LABEL_SIZE, frame.width - 2.0 * MARGIN, 3))
        .collect();
    let legend_top = frame.bottom + AXIS_HEIGHT;
    let notes_top = legend_top + legend.height(room) + 4.0;
    let height = notes_top + notes.len() as f64 * NOTE_LINE + 12.0;

    let mut svg = Svg::picture(frame.width, height, title(run), &description(&scene));
    paint_header(&mut svg, &plan.title, &plan.subtitle);
    paint_partitions(&mut svg, &scene, &plan);
    paint_cycle(&mut svg, &scene, &plan);
    paint_axis(&mut svg, &scene, frame);
    lanes::paint_gaps(&mut svg, &scene, frame);
    lanes::paint_lanes(&mut svg, &scene, frame);
    lanes::paint_bars(&mut svg, &scene, frame);
    paint_callout_lines(&mut svg, &scene, &plan);
    for (arrow, stroke) in scene.arrows.iter().zip(&plan.strokes) {
        let look = scene.kinds.look(&arrow.label);
        let tooltip = arrows::tooltip(&scene, arrow);
        stroke.paint(&mut svg, look, &arrow.fate, &tooltip);
    }
    lanes::paint_gap_ends(&mut svg, &scene, frame);
    lanes::paint_marks(&mut svg, &scene, frame);
    let labels = &plan.labels;
    paint_cuts(&mut svg, &scene, &plan);
    for (arrow, label) in scene.arrows.iter().zip(&labels.arrows) {
        let Some(label) = label else { continue };
        let class = match scene.kinds.look(&arrow.label) {
            Some(look) => format!("label middle t{}", look.hue),
            None => "label middle".to_string(),
        };
        paint_label(&mut svg, &class, label);
    }
    for label in labels.marks.iter().flatten() {
        paint_label(&mut svg, "label middle", label);
    }
    for (bar, label) in scene.bars.iter().zip(&labels.bars) {
        let Some(label) = label else { continue };
        // Inside its bar a label needs no halo.
        let inside = label.slab.y == frame.y(bar.lane);
        let class = if inside { "middle" } else { "label middle" };
        paint_label(&mut svg, class, label);
    }
    paint_violations(&mut svg, &scene, &plan);
    legend.paint(&mut svg, MARGIN, legend_top, room);
    for (i, note) in notes.iter().enumerate() {
        let y = notes_top + (i as f64 + 0.7) * NOTE_LINE;
        svg.words("quiet note-line", MARGIN, y, note);
    }
    svg.finish()
}

fn title(run: &SpaceTime) -> &str {
    match run.title.as_str() {
        "" => "Space-time diagram",
        title => title,
    }
}

fn description(scene: &Scene<'_>) -> String {
    let names: Vec<_> = scene.lanes.iter().take(12).map(String::as_str).collect();
    let violations = scene.violations().count();
    let wrong = match violations {
        0 => String::new(),
        1 => " 1 violation.".to_string(),
        _ => format!(" {violations} violations."),
    };
    format!(
        "Space-time diagram of {} lanes ({}), {} messages, {} marks, {} bars.{wrong}",
        scene.lanes.len(),
        text::cut(&names.join(", "), TOOLTIP_CHARS_MAX),
        scene.arrows.len(),
        scene.marks.len(),
        scene.bars.len(),
    )
}

/// A picture for a run without lanes or events.
fn nothing(scene: &Scene<'_>) -> String {
    let width = 640.0;
    let (title_lines, subtitle, header) = plan::header(scene, width);
    let mut svg = Svg::picture(width, header + 70.0, title(scene.run), "Nothing to draw.");
    paint_header(&mut svg, &title_lines, &subtitle);
    svg.words(
        "quiet middle",
        width / 2.0,
        header + 34.0,
        "nothing to draw",
    );
    svg.finish()
}

fn paint_header(svg: &mut Svg, title: &[String], subtitle: &[String]) {
    let classes = title.iter().map(|line| ("heading", line));
    let lines = classes.chain(subtitle.iter().map(|line| ("subheading", line)));
    for ((class, line), y) in lines.zip(plan::baselines(title.len())) {
        svg.words(class, MARGIN, y, line);
    }
}

fn paint_partitions(svg: &mut Svg, scene: &Scene<'_>, plan: &Plan<'_>) {
    let (frame, top) = (&plan.frame, plan.bands_top);
    let mut words_end = frame.left;
    for cut in scene.partitions {
        let left = frame.x(cut.from);
        let right = frame.x_or_end(cut.until).max(left + 1.0);
        let time = |time| axis::time_label(time, scene.run.ticks_per_unit);
        let until = cut.until.map_or("the end".to_string(), time);
        let tooltip = format!("network cut, {} to {until}: {}", time(cut.from), cut.label);
        svg.tag("rect")
            .attr("class", "partition")
            .rect(left, top, right - left, frame.bottom - top)
            .titled(&text::cut(&tooltip, TOOLTIP_CHARS_MAX));
        svg.line("edge", (left, top), (left, frame.bottom));
        if cut.until.is_some() {
            svg.line("edge", (right, top), (right, frame.bottom));
        }
        let words = match cut.label.as_str() {
            "" => "network cut".to_string(),
            label => format!("cut: {}", text::cut(label, text::LABEL_CHARS_MAX)),
        };
        let width = text::width(&words, LABEL_SIZE) * 1.05;
        let start = (left + 6.0).min(frame.right - width);
        if start >= words_end {
            svg.words("label strong", start, top + 14.0, &words);
            words_end = start + width + 8.0;
        }
    }
}

/// A strip of paper with torn edges for each time that is cut out, and above it how long that is.
fn paint_cuts(svg: &mut Svg, scene: &Scene<'_>, plan: &Plan<'_>) {
    let (frame, top) = (&plan.frame, plan.bands_top);
    let (top, bottom) = (top - 2.0, frame.bottom + 8.0);
    let teeth = ((bottom - top) / TOOTH).ceil().max(1.0) as usize;
    let edge = |x: f64| {
        (0..=teeth).map(move |i| {
            let shift = if i % 2 == 0 {
                -TOOTH / 4.0
            } else {
                TOOTH / 4.0
            };
            (x + shift, (top + i as f64 * TOOTH).min(bottom))
        })
    };
    let joined = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        points
            .enumerate()
            .fold(Path::default(), |path, (i, (x, y))| match i {
                0 => path.jump(x, y),
                _ => path.to(x, y),
            })
    };
    let mut words_end = frame.left - 60.0;
    for ((left, right), cut) in frame.cuts().into_iter().zip(&scene.shown.cuts) {
        let (left, right) = (left + 10.0, right - 10.0);
        svg.group("cut");
        svg.tag("title")
            .text(&text::cut(&cut.tooltip, TOOLTIP_CHARS_MAX));
        let back: Vec<_> = edge(right).collect();
        let outline = joined(&mut edge(left).chain(back.into_iter().rev())).shut();
        svg.tag("path")
            .attr("class", "cutout")
            .attr("d", outline.as_str())
            .empty();
        for x in [left, right] {
            svg.tag("path")
                .attr("class", "torn")
                .attr("d", joined(&mut edge(x)).as_str())
                .empty();
        }
        let half = text::width(&cut.words, LABEL_SIZE) / 2.0;
        let middle = (left + right) / 2.0;
        let middle = middle.max(words_end + half).min(frame.right - half);
        if middle >= words_end + half {
            svg.words("quiet middle", middle, plan.bands_top - 8.0, &cut.words);
            words_end = middle + half + 8.0;
        }
        svg.close();
    }
}

/// Height of a tooth of a torn edge.
const TOOTH: f64 = 10.0;

fn paint_cycle(svg: &mut Svg, scene: &Scene<'_>, plan: &Plan<'_>) {
    let Some(cycle) = scene.cycle else { return };
    let (frame, y) = (&plan.frame, plan.cycle_y);
    let left = frame.x(cycle.from);
    let right = frame.x(cycle.until).max(left + 8.0);
    svg.tag("rect")
        .attr("class", "cycle")
        .rect(left, y, right - left, frame.bottom - y)
        .empty();
    let path = Path::from(right, y + 12.0)
        .to(right, y)
        .to(left, y)
        .to(left, y + 8.0);
    svg.tag("path")
        .attr("class", "bracket")
        .attr("d", path.as_str())
        .empty();
    let hook = Path::from(left - 4.5, y + 6.0)
        .to(left + 4.5, y + 6.0)
        .to(left, y + 14.0);
    svg.tag("path")
        .attr("class", "hook")
        .attr("d", hook.shut().as_str())
        .empty();
    let words = "repeats for ever";
    let half = text::width(words, LABEL_SIZE) / 2.0;
    let middle = ((left + right) / 2.0)
        .min(frame.right - half)
        .max(frame.left + half);
    svg.words("label strong middle", middle, y - 6.0, words);
}

fn paint_axis(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame<'_>) {
    let run = scene.run;
    let room = ((frame.right - frame.left) / TICK_DISTANCE) as usize;
    let shown: u64 = frame.stretches().map(|(from, until, _)| until - from).sum();
    let ticks: Vec<(u64, String)> = match run.scale {
        Scale::Proportional => {
            let ticks = frame.stretches().flat_map(|(from, until, _)| {
                let share = (until - from) as f64 / shown.max(1) as f64;
                let room = (room as f64 * share) as usize;
                axis::time_ticks(from, until, run.ticks_per_unit, room)
            });
            ticks.collect()
        }
        Scale::Steps => {
            let steps = shown as usize + frame.stretches().count();
            let stride = steps.div_ceil(2 * room.max(1)).max(1);
            let times = scene.times().iter();
            let times = times.filter(|time| scene.shown.shows(**time));
            times
                .step_by(stride)
                .map(|&time| (time, axis::time_label(time, run.ticks_per_unit)))
                .collect()
        }
    };
    let mut words_end = f64::NEG_INFINITY;
    for (time, words) in ticks {
        let x = frame.x(time);
        let half = text::width(&words, LABEL_SIZE) / 2.0;
        if x - half < words_end {
            continue;
        }
        words_end = x + half + 4.0;
        svg.line("grid", (x, frame.top), (x, frame.bottom));
        svg.line("axis", (x, frame.bottom), (x, frame.bottom + 5.0));
        svg.words("quiet middle", x, frame.bottom + 18.0, &words);
    }
    svg.line(
        "axis",
        (frame.left, frame.bottom),
        (frame.right, frame.bottom),
    );
    let words = axis_title(run);
    svg.words("quiet end", frame.left - 10.0, frame.bottom + 18.0, &words);
}

fn paint_label(svg: &mut Svg, class: &str, Label { slab, text }: &Label) {
    let tag = svg
        .tag("text")
        .attr("class", class)
        .num("x", slab.x)
        .num("y", slab.y + 3.9);
    if slab.angle == 0.0 {
        return tag.text(text);
    }
    let degrees = number(slab.angle.to_degrees());
    let turn = format!("rotate({degrees} {} {})", number(slab.x), number(slab.y));
    tag.attr("transform", &turn).text(text);
}

fn callout_box(callout: &Callout, plan: &Plan<'_>) -> (f64, f64) {
    let height = callout.lines.len() as f64 * CALLOUT_LINE + 8.0;
    let bottom = plan.frame.top - 2.0 - plan.callout_row * callout.row as f64;
    (bottom - height, height)
}

/// The lines from the callouts to their marks lie under the messages.
fn paint_callout_lines(svg: &mut Svg, scene: &Scene<'_>, plan: &Plan<'_>) {
    for callout in &plan.callouts {
        let (top, height) = callout_box(callout, plan);
        let place = scene.marks[callout.mark].place;
        let x = plan.frame.x(place.time);
        let y = plan.frame.y(place.lane);
        svg.line("wrongline", (x, top + height), (x, y));
    }
}

fn paint_violations(svg: &mut Svg, scene: &Scene<'_>, plan: &Plan<'_>) {
    for (_, mark) in scene.violations() {
        let (x, y) = (plan.frame.x(mark.place.time), plan.frame.y(mark.place.lane));
        lanes::violation_glyph(svg, x, y, &lanes::mark_tooltip(scene, mark));
    }
    for callout in &plan.callouts {
        let (top, height) = callout_box(callout, plan);
        svg.tag("rect")
            .attr("class", "wrong")
            .rect(callout.left, top, callout.width, height)
            .num("rx", 3.0)
            .empty();
        let middle = callout.left + callout.width / 2.0;
        for (i, line) in callout.lines.iter().enumerate() {
            let y = top + 16.0 + i as f64 * CALLOUT_LINE;
            svg.words("callout middle", middle, y, line);
        }
    }
}
