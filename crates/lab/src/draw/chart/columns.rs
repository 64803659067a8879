//! Grouped bars, with published values drawn across the bars that they speak of.

use crate::draw::{
    axis,
    chart::{
        Origin, Shape,
        frame::{Frame, Scene, Trace},
    },
    layout::{Sheet, Slab},
    svg::{Path, Svg},
    text::{self, LABEL_SIZE, TOOLTIP_CHARS_MAX},
};

/// Share of a category's room that its bars fill.
const FILLED: f64 = 0.78;

pub(super) fn paint_columns(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame) {
    let Some(categories) = &scene.categories else {
        return;
    };
    let mut sheet = Sheet::new((frame.left, frame.top - 14.0, frame.right, frame.bottom));
    // Published values first claim their place, so that no number is written over them.
    for trace in &scene.traces {
        for (category, least, most) in published(trace) {
            let (left, right) = extent(scene, frame, trace, category);
            let (low, high) = (frame.y(least), frame.y(most));
            let middle = ((left + right) / 2.0, (low + high) / 2.0);
            let width = if least < most { 4.0 } else { right - left };
            sheet.take(Slab::level(middle.0, middle.1, width, low - high + 3.0));
        }
    }
    for trace in scene.columns() {
        let Shape::Bars(values) = &trace.shape else {
            continue;
        };
        for (category, value) in values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let (left, right) = extent(scene, frame, trace, category);
            let (top, bottom) = order(frame.y(value), frame.ground());
            let words = axis::short(value);
            let name = categories[category].lines().next().unwrap_or("");
            let tooltip = format!("{name}, {}: {words}", trace.name);
            svg.tag("rect")
                .attr("class", &format!("column h{}", trace.hue))
                .rect(left, top, right - left, (bottom - top).max(1.0))
                .titled(&text::cut(&tooltip, TOOLTIP_CHARS_MAX));
            let width = text::width(&words, LABEL_SIZE);
            let middle = (left + right) / 2.0;
            // Above the bar, or beside the whisker that stands there.
            let quarter = (right - left) / 4.0;
            let above = [-8.0, -20.0, -32.0].map(|lift| (middle, top + lift));
            let beside = [-quarter, quarter].map(|shift| (middle + shift, top - 8.0));
            let places = above.into_iter().chain(beside);
            let places = places.map(|(x, y)| Slab::level(x, y, width, 12.0));
            if width <= (right - left) * 1.6
                && let Some(slab) = sheet.first_free(places)
            {
                svg.words("label middle", slab.x, slab.y + 4.0, &words);
            }
        }
    }
}

/// Published values of a category chart: dashes across, or a whisker for a range.
pub(super) fn paint_published(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame) {
    for trace in &scene.traces {
        for (category, least, most) in published(trace) {
            let (left, right) = extent(scene, frame, trace, category);
            svg.group("published");
            svg.tag("title")
                .text(&text::cut(trace.name, TOOLTIP_CHARS_MAX));
            match trace.shape {
                Shape::Band(_) if least < most => {
                    whisker(svg, (left, right), frame.y(least), frame.y(most));
                }
                _ => dash(svg, left - 4.0, right + 4.0, frame.y(most)),
            }
            svg.close();
        }
    }
}

/// The categories, least and most values that a trace claims; empty for lines and for measured bars.
fn published(trace: &Trace<'_>) -> Vec<(usize, f64, f64)> {
    match &trace.shape {
        Shape::Bars(values) if trace.origin == Origin::Published => {
            let known = values
                .iter()
                .enumerate()
                .filter_map(|(i, v)| v.map(|v| (i, v, v)));
            known.collect()
        }
        Shape::Band(ranges) => ranges
            .iter()
            .map(|r| (r.0.round() as usize, r.1, r.2))
            .collect(),
        _ => Vec::new(),
    }
}

/// The left and right end of what a trace draws for a category: the bar of its colour, or else the
/// whole group.
fn extent(scene: &Scene<'_>, frame: &Frame, trace: &Trace<'_>, category: usize) -> (f64, f64) {
    let room = frame.category_width() * FILLED;
    let left = frame.x(category as f64) - room / 2.0;
    let bars = scene.columns().count().max(1) as f64;
    let width = (room / bars).min(64.0);
    let start = left + (room - width * bars) / 2.0;
    let measured = trace.origin.is_measured() && matches!(trace.shape, Shape::Bars(_));
    let own = scene.columns().position(|column| match measured {
        true => std::ptr::eq(column, trace),
        false => column.colour.is_some() && column.colour == trace.colour,
    });
    match own {
        Some(i) => (
            start + width * i as f64 + 1.0,
            start + width * (i as f64 + 1.0) - 1.0,
        ),
        None => (start, start + width * bars),
    }
}

fn order(a: f64, b: f64) -> (f64, f64) {
    (a.min(b), a.max(b))
}

fn dash(svg: &mut Svg, left: f64, right: f64, y: f64) {
    svg.line("claimback", (left, y), (right, y));
    svg.line("claim dashed", (left, y), (right, y));
}

fn whisker(svg: &mut Svg, (left, right): (f64, f64), low: f64, high: f64) {
    let (middle, reach) = (
        (left + right) / 2.0,
        ((right - left) * 0.22).clamp(3.0, 9.0),
    );
    let path = Path::from(middle, low).to(middle, high);
    let path = path.jump(middle - reach, low).to(middle + reach, low);
    let path = path.jump(middle - reach, high).to(middle + reach, high);
    for class in ["claimback", "claim"] {
        svg.tag("path")
            .attr("class", class)
            .attr("d", path.as_str())
            .empty();
    }
}

/// What stands for a bar series in the legend.
pub(super) fn swatch(svg: &mut Svg, trace: &Trace<'_>, (left, right): (f64, f64), y: f64) {
    match (&trace.shape, trace.origin) {
        (Shape::Band(_), _) => whisker(svg, (left, right), y + 7.0, y - 7.0),
        (_, Origin::Published) => dash(svg, left, right, y),
        (_, Origin::Measured | Origin::MeasuredBeside) => svg
            .tag("rect")
            .attr("class", &format!("column h{}", trace.hue))
            .rect(left + 6.0, y - 6.0, right - left - 12.0, 12.0)
            .empty(),
    }
}
