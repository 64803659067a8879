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

/// Lines with more points have no dots.
const DOTS_MAX: usize = 80;
/// Distance of two names beside the plot.
const NAME_LINE: f64 = 17.0;
/// From the plot to a name.
pub(super) const NAME_INSET: f64 = 44.0;
const NAME_CHARS_MAX: usize = 38;

/// Bands lie under all lines.
pub(super) fn paint_bands(svg: &mut Svg, scene: &Scene<'_>, frame: &Frame) {
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
        svg.tag("path")
            .attr("class", &format!("band h{}", trace.hue))
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
        if trace.origin == Origin::Published || points.len() > DOTS_MAX {
            continue;
        }
        for &(x, y) in points {
            let at = match &scene.categories {
                Some(names) => names.get(x as usize).cloned().unwrap_or_default(),
                None => axis::short(x),
            };
            let tooltip = format!("{}: {} at {at}", trace.name, axis::short(y));
            let tooltip = text::cut(&tooltip, TOOLTIP_CHARS_MAX);
            dot(svg, trace.hue, frame.x(x), frame.y(y), &tooltip);
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
        Origin::Published => format!("line bound h{hue}"),
    }
}

/// A point; its form repeats what its hue says.
fn dot(svg: &mut Svg, hue: usize, x: f64, y: f64, tooltip: &str) {
    let class = format!("dot h{hue}");
    let path = match hue % 4 {
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
    if trace.origin == Origin::Measured {
        dot(svg, trace.hue, (left + right) / 2.0, y, "");
    }
}

/// Names beside the right ends of lines and bands.
#[derive(Debug)]
pub(super) struct EndNames {
    /// Index of the trace, height of its end, height of its name.
    places: Vec<(usize, (f64, f64), f64)>,
}

impl EndNames {
    /// Places for the names in the order of the lines' ends; `None` when they do not fit.
    pub(super) fn place(scene: &Scene<'_>, frame: &Frame) -> Option<Self> {
        let mut places: Vec<(usize, (f64, f64), f64)> = Vec::new();
        for (i, trace) in scene.traces.iter().enumerate() {
            let end = match &trace.shape {
                Shape::Line(points) => points.last().copied(),
                Shape::Band(ranges) => ranges.last().map(|r| (r.0, (r.1 + r.2) / 2.0)),
                Shape::Bars(_) => return None,
            };
            let (x, y) = end?;
            places.push((i, (frame.x(x), frame.y(y)), frame.y(y)));
        }
        let heights: Vec<f64> = places.iter().map(|place| place.1.1).collect();
        let heights = spread(&heights, frame.top, frame.bottom, NAME_LINE)?;
        for (place, height) in places.iter_mut().zip(heights) {
            place.2 = height;
        }
        Some(EndNames { places })
    }

    /// Room to the right of the plot.
    pub(super) fn width(&self, scene: &Scene<'_>) -> f64 {
        let names = self.places.iter().map(|&(i, ..)| scene.traces[i].name);
        let widths = names.map(|name| text::width(&text::cut(name, NAME_CHARS_MAX), LABEL_SIZE));
        widths.fold(0.0, f64::max) + NAME_INSET
    }

    pub(super) fn paint(&self, svg: &mut Svg, scene: &Scene<'_>, frame: &Frame) {
        for &(i, end, height) in &self.places {
            let from = frame.right + 10.0;
            let path = Path::from(end.0 + 6.0, end.1).to(from, height);
            svg.tag("path")
                .attr("class", "leader")
                .attr("d", path.as_str())
                .empty();
            swatch(
                svg,
                &scene.traces[i],
                (from, frame.right + NAME_INSET - 6.0),
                height,
            );
            let name = text::cut(scene.traces[i].name, NAME_CHARS_MAX);
            svg.words("direct", frame.right + NAME_INSET, height + 4.0, &name);
        }
    }
}

/// Moves heights apart to at least `gap`, as little as that takes, keeping their order; `None` when
/// there is no room for all.
fn spread(heights: &[f64], top: f64, bottom: f64, gap: f64) -> Option<Vec<f64>> {
    if heights.len() as f64 * gap > bottom - top {
        return None;
    }
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|&a, &b| heights[a].total_cmp(&heights[b]));
    let mut placed = heights.to_vec();
    let mut least = top;
    for &i in &order {
        placed[i] = placed[i].max(least);
        least = placed[i] + gap;
    }
    let mut most = bottom;
    for &i in order.iter().rev() {
        placed[i] = placed[i].min(most);
        most = placed[i] - gap;
    }
    Some(placed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spread_heights_keep_their_order_and_distance() {
        let placed = spread(&[50.0, 10.0, 51.0, 99.0, 98.0], 0.0, 100.0, 17.0).expect("room");
        let order = [1, 0, 2, 4, 3];
        for pair in order.windows(2) {
            assert!(
                placed[pair[1]] - placed[pair[0]] >= 17.0 - 1e-9,
                "{placed:?}"
            );
        }
        assert!(placed.iter().all(|height| (0.0..=100.0).contains(height)));
        assert_eq!(placed[1], 10.0, "what is alone stays");
        assert_eq!(spread(&[1.0; 7], 0.0, 100.0, 17.0), None);
    }
}
