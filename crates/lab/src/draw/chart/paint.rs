//! Puts a chart on paper, from the background to the foreground.

use crate::draw::{
    chart::{
        Chart, Shape, columns, curves,
        curves::EndNames,
        frame::{Frame, MARGIN, Scene, TICKS},
    },
    legend::{Legend, SWATCH},
    svg::{Svg, number},
    text::{self, LABEL_SIZE},
};

const NOTE_LINE: f64 = 17.0;
const HEADER_ROOM: f64 = 760.0;
const CATEGORY_CHARS_MAX: usize = 24;
const FORMULA_LINE: f64 = 14.0;
const FORMULA_LINES_MAX: usize = 4;
/// Half-slanted names of categories that are too wide for their room.
const SLANT: f64 = 32.0;

/// Draws a chart.
pub(super) fn picture(chart: &Chart) -> String {
    let scene = Scene::new(chart);
    let heading_lines = text::wrap(&chart.title, 18.0, HEADER_ROOM, 3);
    let subtitle = text::wrap(&chart.subtitle, 13.0, HEADER_ROOM, 4);
    let header = 14.0 + heading_lines.len() as f64 * 23.0 + subtitle.len() as f64 * 18.0;
    if scene.traces.is_empty() {
        return nothing(&scene, &heading_lines, &subtitle, header);
    }
    let frame = Frame::new(&scene, header + 24.0);
    let names = match &scene.categories {
        Some(_) => None,
        None => EndNames::place(&scene, &frame),
    };
    let right_room = names.as_ref().map_or(12.0, |names| names.width(&scene));
    let header_width = (heading_lines.iter().map(|line| text::width(line, 18.0)))
        .chain(subtitle.iter().map(|line| text::width(line, 13.0)))
        .fold(0.0, f64::max);
    let width = (frame.right + right_room).max(header_width + MARGIN) + MARGIN;
    let legend = match &names {
        Some(_) => Legend::default(),
        None => legend(&scene),
    };
    let room = width - 2.0 * MARGIN;
    let category_rows = category_height(&scene, &frame);
    let title_y = frame.bottom + 20.0 + category_rows;
    let legend_top = title_y + if chart.x.title.is_empty() { 10.0 } else { 26.0 };
    let notes_top = legend_top + legend.height(room) + 4.0;
    let height = notes_top + scene.notes.len() as f64 * NOTE_LINE + 12.0;

    let mut svg = Svg::picture(width, height, heading(chart), &description(&scene));
    paint_header(&mut svg, &heading_lines, &subtitle);
    paint_axes(&mut svg, &scene, &frame, title_y);
    if scene.categories.is_some() {
        columns::paint_columns(&mut svg, &scene, &frame);
        columns::paint_published(&mut svg, &scene, &frame);
    } else {
        curves::paint_bands(&mut svg, &scene, &frame);
    }
    curves::paint_lines(&mut svg, &scene, &frame);
    if let Some(names) = names {
        names.paint(&mut svg, &scene, &frame);
    }
    legend.paint(&mut svg, MARGIN, legend_top, room);
    for (i, note) in scene.notes.iter().enumerate() {
        let y = notes_top + (i as f64 + 0.7) * NOTE_LINE;
        svg.words("quiet note-line", MARGIN, y, note);
    }
    svg.finish()
}

fn heading(chart: &Chart) -> &str {
    match chart.title.as_str() {
        "" => "Chart",
        title => title,
    }
}

fn description(scene: &Scene<'_>) -> String {
    let names: Vec<_> = scene.traces.iter().map(|trace| trace.name).collect();
    let names = text::cut(&names.join(", "), text::TOOLTIP_CHARS_MAX);
    let (x, y) = (&scene.chart.x.title, &scene.chart.y.title);
    let what = match (y.is_empty(), x.is_empty()) {
        (true, _) => "Chart".to_owned(),
        (false, true) => format!("Chart: {y}"),
        (false, false) => format!("Chart: {y} against {x}"),
    };
    format!("{what}; series: {names}.")
}

fn nothing(scene: &Scene<'_>, title: &[String], subtitle: &[String], header: f64) -> String {
    let width = HEADER_ROOM + 2.0 * MARGIN;
    let height = header + 70.0 + scene.notes.len() as f64 * NOTE_LINE;
    let mut svg = Svg::picture(width, height, heading(scene.chart), "Nothing to draw.");
    paint_header(&mut svg, title, subtitle);
    svg.words(
        "quiet middle",
        width / 2.0,
        header + 34.0,
        "nothing to draw",
    );
    for (i, note) in scene.notes.iter().enumerate() {
        let y = header + 62.0 + i as f64 * NOTE_LINE;
        svg.words("quiet note-line", MARGIN, y, note);
    }
    svg.finish()
}

fn paint_header(svg: &mut Svg, title: &[String], subtitle: &[String]) {
    for (i, line) in title.iter().enumerate() {
        svg.words("heading", MARGIN, 30.0 + i as f64 * 23.0, line);
    }
    let below = 27.0 + title.len() as f64 * 23.0;
    for (i, line) in subtitle.iter().enumerate() {
        svg.words("subheading", MARGIN, below + i as f64 * 18.0, line);
    }
}

fn paint_axes(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame, title_y: f64) {
    for (value, words) in frame.y.ticks(TICKS) {
        let y = frame.y(value);
        svg.line("grid", (frame.left, y), (frame.right, y));
        svg.words("quiet end", frame.left - 8.0, y + 4.0, &words);
    }
    match &scene.categories {
        Some(names) => paint_categories(svg, names, frame),
        None => {
            for (value, words) in &frame.x_ticks {
                let x = frame.x(*value);
                svg.line("axis", (x, frame.bottom), (x, frame.bottom + 5.0));
                if !words.is_empty() {
                    svg.words("quiet middle tick", x, frame.bottom + 18.0, words);
                }
            }
        }
    }
    let ground = if scene.categories.is_some() {
        frame.ground()
    } else {
        frame.bottom
    };
    svg.line("axis", (frame.left, ground), (frame.right, ground));
    let axis_title = |title: &str| text::cut(title, 2 * text::LABEL_CHARS_MAX);
    let middle = (frame.left + frame.right) / 2.0;
    if !scene.chart.x.title.is_empty() {
        svg.words(
            "axis-title middle",
            middle,
            title_y + 14.0,
            &axis_title(&scene.chart.x.title),
        );
    }
    if !scene.chart.y.title.is_empty() {
        let (x, y) = (MARGIN + 4.0, (frame.top + frame.bottom) / 2.0);
        svg.tag("text")
            .attr("class", "axis-title middle")
            .num("x", x)
            .num("y", y)
            .attr(
                "transform",
                &format!("rotate(-90 {} {})", number(x), number(y)),
            )
            .text(&axis_title(&scene.chart.y.title));
    }
}

/// The width of the widest name of a category, and whether the names must be slanted.
fn slanted(names: &[String], frame: &Frame) -> (f64, bool) {
    let widths = names
        .iter()
        .map(|name| text::width(&title(name), LABEL_SIZE));
    let widest = widths.fold(0.0, f64::max);
    (widest, widest + 6.0 > frame.category_width())
}

/// Height that the names of categories need beyond one line.
fn category_height(scene: &Scene<'_>, frame: &Frame) -> f64 {
    match scene.categories.as_ref().map(|names| slanted(names, frame)) {
        Some((widest, true)) => widest * SLANT.to_radians().sin(),
        Some((_, false)) => {
            let names = scene.categories.iter().flatten();
            let lines = names.map(|name| further(name, frame).len()).max();
            lines.unwrap_or(0) as f64 * FORMULA_LINE
        }
        None => 0.0,
    }
}

/// The first line of a category's name.
fn title(name: &str) -> String {
    text::cut(name.lines().next().unwrap_or(""), CATEGORY_CHARS_MAX)
}

/// The further lines of a category's name, as they fit below it.
fn further(name: &str, frame: &Frame) -> Vec<String> {
    let room = frame.category_width() - 6.0;
    let lines = name.lines().skip(1);
    lines
        .flat_map(|line| text::wrap(line, LABEL_SIZE, room, FORMULA_LINES_MAX))
        .collect()
}

fn paint_categories(svg: &mut Svg, names: &[String], frame: &Frame) {
    let (_, slanted) = slanted(names, frame);
    // Even slanted names need the height of a line each.
    let stride = (14.0 / frame.category_width().max(0.1)).ceil().max(1.0) as usize;
    for (i, name) in names.iter().enumerate().step_by(stride) {
        let (x, y) = (frame.x(i as f64), frame.bottom + 18.0);
        let lines = further(name, frame);
        let name = title(name);
        if slanted {
            let turn = format!(
                "rotate({} {} {})",
                number(-SLANT),
                number(x),
                number(y - 4.0)
            );
            let tag = svg
                .tag("text")
                .attr("class", "end")
                .num("x", x + 3.0)
                .num("y", y - 2.0);
            tag.attr("transform", &turn).text(&name);
        } else {
            svg.words("middle", x, y, &name);
            for (i, line) in lines.iter().enumerate() {
                let y = y + (i + 1) as f64 * FORMULA_LINE;
                svg.words("quiet middle formula", x, y, line);
            }
        }
    }
}

fn legend<'a>(scene: &'a Scene<'_>) -> Legend<'a> {
    let mut legend = Legend::default();
    for trace in &scene.traces {
        let in_columns = scene.categories.is_some() && !matches!(trace.shape, Shape::Line(_));
        let words = match scene.partner(trace) {
            Some(line) => format!("{}: {}", scene.traces[line].name, trace.name),
            None => trace.name.to_string(),
        };
        legend.add(&words, move |svg, x, y| match in_columns {
            true => columns::swatch(svg, trace, (x, x + SWATCH), y),
            false => curves::swatch(svg, trace, (x, x + SWATCH), y),
        });
    }
    legend
}
