//! Lines and bands, and the names at their right ends.

use crate::draw::{
    axis,
    chart::{
        Origin, Shape,
        frame::{Frame, Scene, Trace},
    },
    svg::{Path, Svg},
    text::{self, LABEL_SIZE, TOOLTIP_CHARS_MAX},
};

/// Height of a name beside the plot, and of a line of the formula below it.
const NAME_LINE: f64 = 17.0;
const FORMULA_LINE: f64 = 14.0;
const FORMULA_ROOM: f64 = 300.0;
const FORMULA_LINES_MAX: usize = 2;
/// Names that need more height than this go into a legend.
const NAMES_HEIGHT_MAX: f64 = 640.0;
/// More bands than this are drawn fainter.
const BANDS_FULL_MAX: usize = 3;
/// From the plot to a name.
pub(super) const NAME_INSET: f64 = 44.0;
const NAME_CHARS_MAX: usize = 38;

/// Bands lie under all lines.
pub(super) fn paint_bands(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame) {
    let bands = |trace: &&Trace<'_>| {
        trace.origin == Origin::Published && matches!(trace.shape, Shape::Band(_))
    };
    let faint = match scene.traces.iter().filter(bands).count() > BANDS_FULL_MAX {
        true => " faint",
        false => "",
    };
    for trace in &scene.traces {
        let Shape::Band(ranges) = &trace.shape else {
            continue;
        };
        let upper = ranges
            .iter()
            .map(|&(x, _, most)| (frame.x(x), frame.y(most)));
        let lower = ranges
            .iter()
            .rev()
            .map(|&(x, least, _)| (frame.x(x), frame.y(least)));
        let path = joined(upper.chain(lower)).shut();
        let class = match trace.origin {
            Origin::Published => faint,
            Origin::Measured | Origin::MeasuredBeside => " interval",
        };
        svg.tag("path")
            .attr("class", &format!("band h{}{class}", trace.hue))
            .attr("d", path.as_str())
            .titled(&text::cut(trace.name, TOOLTIP_CHARS_MAX));
    }
}

pub(super) fn paint_lines(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame) {
    for trace in &scene.traces {
        let Shape::Line(points) = &trace.shape else {
            continue;
        };
        let path = joined(points.iter().map(|&(x, y)| (frame.x(x), frame.y(y))));
        svg.tag("path")
            .attr("class", &line_class(trace.origin, trace.hue))
            .attr("d", path.as_str())
            .titled(&text::cut(trace.name, TOOLTIP_CHARS_MAX));
        if !trace.has_dots() {
            continue;
        }
        for &(x, y) in points {
            let at = match &scene.categories {
                Some(names) => names.get(x as usize).cloned().unwrap_or_default(),
                None => axis::short(x),
            };
            let tooltip = format!("{}: {} at {at}", trace.name, axis::short(y));
            let tooltip = text::cut(&tooltip, TOOLTIP_CHARS_MAX);
            dot(svg, trace, frame.x(x), frame.y(y), &tooltip);
        }
    }
}

fn joined(points: impl Iterator<Item = (f64, f64)>) -> Path {
    points
        .enumerate()
        .fold(Path::default(), |path, (i, (x, y))| match i {
            0 => path.jump(x, y),
            _ => path.to(x, y),
        })
}

fn line_class(origin: Origin, hue: usize) -> String {
    match origin {
        Origin::Measured => format!("line h{hue}"),
        Origin::MeasuredBeside => format!("line dashed h{hue}"),
        Origin::Published => format!("line bound h{hue}"),
    }
}

/// A point; its form repeats what its hue says, and tells apart series that share one.
fn dot(svg: &mut Svg, trace: &Trace<'_>, x: f64, y: f64, tooltip: &str) {
    let class = format!("dot h{}", trace.hue);
    let path = match trace.colour.unwrap_or(trace.hue) % 4 {
        0 => {
            let tag = svg.tag("circle").attr("class", &class);
            return tag.num("cx", x).num("cy", y).num("r", 4.2).titled(tooltip);
        }
        1 => Path::from(x - 4.0, y - 4.0)
            .to(x + 4.0, y - 4.0)
            .to(x + 4.0, y + 4.0)
            .to(x - 4.0, y + 4.0),
        2 => Path::from(x, y - 5.2)
            .to(x + 5.0, y + 3.8)
            .to(x - 5.0, y + 3.8),
        _ => Path::from(x, y - 5.5)
            .to(x + 5.0, y)
            .to(x, y + 5.5)
            .to(x - 5.0, y),
    };
    svg.tag("path")
        .attr("class", &class)
        .attr("d", path.shut().as_str())
        .titled(tooltip);
}

/// What stands for a line or band in a legend or beside its name.
pub(super) fn swatch(svg: &mut Svg, trace: &Trace<'_>, (left, right): (f64, f64), y: f64) {
    if let Shape::Band(_) = trace.shape {
        svg.tag("rect")
            .attr("class", &format!("band h{}", trace.hue))
            .rect(left, y - 5.0, right - left, 10.0)
            .empty();
        return;
    }
    svg.line(&line_class(trace.origin, trace.hue), (left, y), (right, y));
    if trace.origin.is_measured() {
        dot(svg, trace, (left + right) / 2.0, y, "");
    }
}

/// Names beside the right ends of lines and bands.
#[derive(Debug)]
pub(super) struct EndNames {
    names: Vec<EndName>,
}

/// The name of a series that stands alone, and the formulas of the bounds that belong to it.
#[derive(Debug)]
pub(super) struct EndName {
    trace: usize,
    end: (f64, f64),
    formulas: Vec<String>,
    /// Of the middle of its first line.
    pub(super) y: f64,
}

impl EndName {
    pub(super) fn height(&self) -> f64 {
        NAME_LINE + self.formulas.len() as f64 * FORMULA_LINE
    }
}

/// What stands beside the plot, without a place yet.
fn unplaced(scene: &Scene<'_>) -> Vec<EndName> {
    let mut names: Vec<EndName> = Vec::new();
    for (i, trace) in scene.traces.iter().enumerate() {
        if scene.partner(trace).is_none() {
            names.push(EndName {
                trace: i,
                end: (0.0, 0.0),
                formulas: Vec::new(),
                y: 0.0,
            });
        }
    }
    for trace in &scene.traces {
        let partner = scene.partner(trace);
        let Some(name) = names.iter_mut().find(|name| Some(name.trace) == partner) else {
            continue;
        };
        if trace.origin == Origin::Published {
            let words = format!("published: {}", trace.name);
            let lines = text::wrap(&words, LABEL_SIZE, FORMULA_ROOM, FORMULA_LINES_MAX);
            name.formulas.extend(lines);
        }
    }
    names
}

/// The height that the names need.
pub(super) fn names_height(scene: &Scene<'_>) -> f64 {
    let height: f64 = unplaced(scene).iter().map(EndName::height).sum();
    height.min(NAMES_HEIGHT_MAX)
}

impl EndNames {
    /// Places for the names in the order of the lines' ends; `None` when they do not fit.
    pub(super) fn place(scene: &Scene<'_>, frame: &Frame) -> Option<Self> {
        let mut names = unplaced(scene);
        for name in &mut names {
            let (x, y) = match &scene.traces[name.trace].shape {
                Shape::Line(points) => points.last().copied()?,
                Shape::Band(ranges) => ranges.last().map(|r| (r.0, (r.1 + r.2) / 2.0))?,
                Shape::Bars(_) => return None,
            };
            name.end = (frame.x(x), frame.y(y));
        }
        let wanted: Vec<(f64, f64)> = (names.iter())
            .map(|name| (name.end.1, name.height()))
            .collect();
        let heights = spread(&wanted, frame.top, frame.bottom)?;
        for (name, height) in names.iter_mut().zip(heights) {
            name.y = height;
        }
        Some(EndNames { names })
    }

    /// Every name with its place.
    #[cfg(test)]
    pub(super) fn all(&self) -> &[EndName] {
        &self.names
    }

    /// Room to the right of the plot.
    pub(super) fn width(&self, scene: &Scene<'_>) -> f64 {
        let widths = self.names.iter().flat_map(|name| {
            let title = text::cut(scene.traces[name.trace].name, NAME_CHARS_MAX);
            let formulas = name.formulas.iter();
            let formulas = formulas.map(|line| text::width(line, LABEL_SIZE));
            formulas.chain([text::width(&title, LABEL_SIZE * 1.05)])
        });
        widths.fold(0.0, f64::max) + NAME_INSET
    }

    pub(super) fn paint(&self, svg: &mut Svg, scene: &Scene<'_>, frame: &Frame) {
        for name in &self.names {
            let trace = &scene.traces[name.trace];
            let (from, to) = (frame.right + 10.0, frame.right + NAME_INSET);
            let path = Path::from(name.end.0 + 6.0, name.end.1).to(from, name.y);
            svg.tag("path")
                .attr("class", "leader")
                .attr("d", path.as_str())
                .empty();
            swatch(svg, trace, (from, to - 6.0), name.y);
            let title = text::cut(trace.name, NAME_CHARS_MAX);
            let class = format!("direct t{}", trace.hue);
            svg.words(&class, to, name.y + 4.0, &title);
            for (i, line) in name.formulas.iter().enumerate() {
                let y = name.y + 4.0 + (i + 1) as f64 * FORMULA_LINE;
                svg.words("quiet formula", to, y, line);
            }
        }
    }
}

/// Moves heights apart, each by its own size, as little as that takes, keeping their order; `None` when
/// there is no room for all.
fn spread(wanted: &[(f64, f64)], top: f64, bottom: f64) -> Option<Vec<f64>> {
    let all: f64 = wanted.iter().map(|(_, size)| size).sum();
    if all > bottom - top + 1e-6 {
        return None;
    }
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by(|&a, &b| wanted[a].0.total_cmp(&wanted[b].0));
    let mut placed: Vec<f64> = wanted.iter().map(|(height, _)| *height).collect();
    let mut least = top;
    for &i in &order {
        placed[i] = placed[i].max(least);
        least = placed[i] + wanted[i].1;
    }
    let mut most = bottom;
    for &i in order.iter().rev() {
        most -= wanted[i].1;
        placed[i] = placed[i].min(most + NAME_LINE / 2.0);
        most = placed[i] - NAME_LINE / 2.0;
    }
    Some(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_heights_keep_their_order_and_distance() {
        let wanted = [50.0, 10.0, 51.0, 99.0, 98.0].map(|height| (height, 17.0));
        let placed = spread(&wanted, 0.0, 100.0).expect("room");
        let order = [1, 0, 2, 4, 3];
        for pair in order.windows(2) {
            assert!(
                placed[pair[1]] - placed[pair[0]] >= 17.0 - 1e-9,
                "{placed:?}"
            );
        }
        assert!(placed.iter().all(|height| (0.0..=100.0).contains(height)));
        assert_eq!(placed[1], 10.0, "what is alone stays");
        assert_eq!(spread(&[(1.0, 17.0); 7], 0.0, 100.0), None);
        let tall = [(5.0, 45.0), (6.0, 17.0), (7.0, 31.0)];
        let placed = spread(&tall, 0.0, 100.0).expect("room");
        assert!(placed[1] >= placed[0] + 45.0 && placed[2] >= placed[1] + 17.0);
    }
}
