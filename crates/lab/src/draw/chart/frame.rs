//! What of a chart is drawn, and where: values that have no place are left out and counted, and the
//! [`Frame`] turns the others into coordinates.

use crate::draw::{
    axis::{self, Mapping, Tick, VALUE_MAX},
    chart::{AxisScale, CATEGORIES_MAX, Chart, Origin, POINTS_MAX, SERIES_MAX, Shape, curves},
    text, theme,
};

pub(super) const MARGIN: f64 = 22.0;
const PLOT_WIDTH: f64 = 640.0;
const PLOT_HEIGHT: f64 = 340.0;
/// The widest plot, for a screen; bars of a chart with more categories get thin.
const PLOT_WIDTH_MAX: f64 = 1_100.0;
/// Room for a category whose name has further lines.
const FORMULA_WIDTH: f64 = 132.0;
/// Measurements at more places than this have round numbers at their axis.
const PLACES_MAX: usize = 16;
/// Room for one bar before the plot is widened.
const BAR_WIDTH: f64 = 22.0;
pub(super) const TICKS: usize = 6;

/// A series with only what can be drawn.
#[derive(Debug)]
pub(super) struct Trace<'a> {
    pub(super) name: &'a str,
    pub(super) shape: Shape,
    pub(super) origin: Origin,
    pub(super) hue: usize,
    /// The number by which it belongs to others.
    pub(super) colour: Option<usize>,
}

/// The drawable part of a chart.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) chart: &'a Chart,
    pub(super) traces: Vec<Trace<'a>>,
    /// Names of the categories, if the x axis has any.
    pub(super) categories: Option<Vec<String>>,
    pub(super) notes: Vec<String>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(chart: &'a Chart) -> Self {
        let categories = categories(chart);
        let x_fits = |x: f64| match (&categories, &chart.x.scale) {
            (Some(names), _) => x >= 0.0 && x <= names.len() as f64 - 1.0,
            (None, AxisScale::Log) => drawable(x) && x > 0.0,
            (None, _) => drawable(x),
        };
        let log = chart.y.scale == AxisScale::Log;
        let y_fits = |y: f64| drawable(y) && (!log || y > 0.0);
        // A band that reaches down to zero ends at the axis.
        let floor = |y: f64| match log && y == 0.0 {
            true => ALMOST_ZERO,
            false => y,
        };
        let mut left_out = 0;
        let hues = hues(chart);
        let mut traces = Vec::new();
        for (series, hue) in chart.series.iter().zip(hues) {
            let shape = match &series.shape {
                Shape::Line(points) => {
                    let fits = |p: &&(f64, f64)| x_fits(p.0) && y_fits(p.1);
                    let kept: Vec<_> = points.iter().filter(fits).copied().collect();
                    left_out += points.len() - kept.len();
                    Shape::Line(thinned(kept))
                }
                Shape::Band(ranges) => {
                    let fits = |r: &(f64, f64, f64)| x_fits(r.0) && y_fits(r.1) && y_fits(r.2);
                    let floored = ranges.iter().map(|r| (r.0, floor(r.1), floor(r.2)));
                    let kept = floored.filter(fits).take(POINTS_MAX);
                    let kept: Vec<_> = kept.map(|r| (r.0, r.1.min(r.2), r.1.max(r.2))).collect();
                    left_out += ranges.len() - kept.len();
                    Shape::Band(kept)
                }
                Shape::Bars(values) => {
                    let shown = categories.as_ref().map_or(0, Vec::len);
                    let kept: Vec<_> = values
                        .iter()
                        .take(shown)
                        .map(|v| v.filter(|&v| y_fits(v)))
                        .collect();
                    let count = |values: &[Option<f64>]| values.iter().flatten().count();
                    left_out += count(values) - count(&kept);
                    Shape::Bars(kept)
                }
            };
            traces.push(Trace {
                name: &series.name,
                shape,
                origin: series.origin,
                hue,
                colour: series.colour,
            });
        }
        traces.retain(|trace| !trace.is_empty());
        let mut notes = Vec::new();
        if left_out > 0 {
            notes.push(format!(
                "{left_out} values have no place on the axes and are not drawn"
            ));
        }
        if chart.series.len() > SERIES_MAX {
            let more = chart.series.len() - SERIES_MAX;
            notes.push(format!("{more} more series are not drawn"));
        }
        Scene {
            chart,
            traces,
            categories,
            notes,
        }
    }

    /// Every y value that the axis must reach.
    fn heights(&self) -> Vec<f64> {
        let heights = self.traces.iter().flat_map(|trace| -> Vec<f64> {
            match &trace.shape {
                Shape::Line(points) => points.iter().map(|p| p.1).collect(),
                Shape::Band(ranges) => ranges.iter().flat_map(|r| [r.1, r.2]).collect(),
                Shape::Bars(values) => values.iter().flatten().copied().collect(),
            }
        });
        heights.filter(|&height| height != ALMOST_ZERO).collect()
    }

    fn widths(&self) -> Vec<f64> {
        let widths = self.traces.iter().flat_map(|trace| -> Vec<f64> {
            match &trace.shape {
                Shape::Line(points) => points.iter().map(|p| p.0).collect(),
                Shape::Band(ranges) => ranges.iter().map(|r| r.0).collect(),
                Shape::Bars(_) => Vec::new(),
            }
        });
        widths.collect()
    }

    /// Where the lines with dots were measured, in order, once.
    fn places(&self) -> Vec<f64> {
        let lines = self.traces.iter().filter_map(|trace| match &trace.shape {
            Shape::Line(points) if trace.has_dots() => Some(points.iter().map(|p| p.0)),
            _ => None,
        });
        let mut places: Vec<f64> = lines.flatten().collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// The measured line that the name of a bound or of an interval stands with.
    pub(super) fn partner(&self, of: &Trace<'_>) -> Option<usize> {
        let line =
            |trace: &Trace<'_>| trace.origin.is_measured() && matches!(trace.shape, Shape::Line(_));
        match of.colour.is_none() || line(of) {
            true => None,
            false => {
                (self.traces.iter()).position(|other| line(other) && other.colour == of.colour)
            }
        }
    }

    /// The measured bar series, which stand side by side in every group.
    pub(super) fn columns(&self) -> impl Iterator<Item = &Trace<'a>> {
        (self.traces.iter()).filter(|t| t.origin.is_measured() && matches!(t.shape, Shape::Bars(_)))
    }
}

/// Stands for zero on an axis that has none.
const ALMOST_ZERO: f64 = f64::MIN_POSITIVE;

/// Lines with more points have no dots.
const DOTS_MAX: usize = 80;

impl Trace<'_> {
    /// Whether its points are drawn, because they were measured.
    pub(super) fn has_dots(&self) -> bool {
        match &self.shape {
            Shape::Line(points) => self.origin.is_measured() && points.len() <= DOTS_MAX,
            _ => false,
        }
    }

    fn is_empty(&self) -> bool {
        match &self.shape {
            Shape::Line(points) => points.is_empty(),
            Shape::Band(ranges) => ranges.is_empty(),
            Shape::Bars(values) => values.iter().flatten().next().is_none(),
        }
    }
}

fn drawable(value: f64) -> bool {
    value.abs() <= VALUE_MAX
}

fn categories(chart: &Chart) -> Option<Vec<String>> {
    let bars = chart
        .series
        .iter()
        .filter_map(|series| match &series.shape {
            Shape::Bars(values) => Some(values.len()),
            _ => None,
        });
    match (&chart.x.scale, bars.max()) {
        (AxisScale::Categories(names), _) => {
            Some(names.iter().take(CATEGORIES_MAX).cloned().collect())
        }
        // Bars without names are numbered.
        (_, Some(count)) => Some(
            (1..=count.min(CATEGORIES_MAX))
                .map(|i| i.to_string())
                .collect(),
        ),
        (_, None) => None,
    }
}

/// A hue for each series: the one that was asked for, or the next that nobody asked for.
fn hues(chart: &Chart) -> Vec<usize> {
    let series = &chart.series[..chart.series.len().min(SERIES_MAX)];
    let asked: Vec<usize> = series
        .iter()
        .filter_map(|s| s.colour)
        .map(|c| c % theme::HUES)
        .collect();
    let mut free = (0..theme::HUES)
        .filter(|hue| !asked.contains(hue))
        .collect::<Vec<_>>();
    if free.is_empty() {
        free = (0..theme::HUES).collect();
    }
    let mut next = free.iter().cycle();
    series
        .iter()
        .map(|s| match s.colour {
            Some(colour) => colour % theme::HUES,
            None => *next.next().expect("a cycle over at least one hue"),
        })
        .collect()
}

/// At most about [`POINTS_MAX`] points: of every stretch, its lowest and its highest.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= POINTS_MAX {
        return points;
    }
    let stretch = points.len().div_ceil(POINTS_MAX / 2);
    let mut kept = Vec::with_capacity(POINTS_MAX);
    for part in points.chunks(stretch) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let ends = [part.iter().min_by(by_height), part.iter().max_by(by_height)];
        let mut ends: Vec<_> = ends.into_iter().flatten().copied().collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        kept.extend(ends);
    }
    kept
}

/// Values as coordinates.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) x: Mapping,
    pub(super) y: Mapping,
    /// Places on the x axis, and their words where there is room for them.
    pub(super) x_ticks: Vec<Tick<f64>>,
    /// How many categories share the x axis, if it has any.
    categories: Option<usize>,
}

impl Frame {
    pub(super) fn new(scene: &Scene<'_>, top: f64) -> Self {
        let (low, high) = ends(&scene.heights());
        let y = match scene.chart.y.scale {
            AxisScale::Log => Mapping::log(low, high, true),
            // Lengths can only be compared from zero.
            _ => Mapping::linear(low.min(0.0), high.max(0.0), TICKS, true),
        };
        let (first, last) = ends(&scene.widths());
        let x = match scene.chart.x.scale {
            AxisScale::Log if first > 0.0 => Mapping::log(first, last, false),
            _ => Mapping::linear(first, last, TICKS, false),
        };
        let tick_width = (y.ticks(TICKS).iter())
            .map(|(_, words)| text::width(words, text::LABEL_SIZE))
            .fold(0.0, f64::max);
        let categories = scene.categories.as_ref().map(Vec::len);
        let bars = scene.columns().count().max(1) as f64;
        let lines = (scene.categories.iter().flatten()).any(|name| name.contains('\n'));
        let formula = if lines { FORMULA_WIDTH } else { 0.0 };
        let wanted = categories.unwrap_or(0) as f64 * (bars * BAR_WIDTH + 26.0).max(formula);
        let left = MARGIN + 22.0 + tick_width + 8.0;
        let names = match categories {
            Some(_) => 0.0,
            None => curves::names_height(scene),
        };
        let mut frame = Frame {
            left,
            right: left + wanted.clamp(PLOT_WIDTH, PLOT_WIDTH_MAX),
            top,
            bottom: top + PLOT_HEIGHT.max(names),
            x,
            y,
            x_ticks: Vec::new(),
            categories,
        };
        frame.x_ticks = frame.ticks_at(&scene.places());
        frame
    }

    /// Ticks where it was measured, or at round numbers. Words that would run into others are left out;
    /// those at the ends stay.
    fn ticks_at(&self, places: &[f64]) -> Vec<Tick<f64>> {
        if self.categories.is_some() {
            return Vec::new();
        }
        if places.is_empty() || places.len() > PLACES_MAX {
            return self.x.ticks(2 * TICKS);
        }
        let mut ticks: Vec<Tick<f64>> = places.iter().map(|&x| (x, axis::short(x))).collect();
        let span = |(x, words): &Tick<f64>| {
            let half = text::width(words, text::LABEL_SIZE) / 2.0 + 4.0;
            (self.x(*x) - half, self.x(*x) + half)
        };
        let last = ticks.len() - 1;
        let limit = span(&ticks[last]).0;
        let mut end = f64::NEG_INFINITY;
        for (i, tick) in ticks.iter_mut().enumerate() {
            let (left, right) = span(tick);
            let fits = left >= end && (i == last || right <= limit);
            match fits || i == 0 || i == last {
                true => end = right,
                false => tick.1.clear(),
            }
        }
        ticks
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        let part = match self.categories {
            Some(count) => (value + 0.5) / count.max(1) as f64,
            None => self.x.part(value),
        };
        self.left + (self.right - self.left) * part
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.part(value)
    }

    /// The height from which bars rise.
    pub(super) fn ground(&self) -> f64 {
        self.y(0.0)
    }

    /// Room for one category.
    pub(super) fn category_width(&self) -> f64 {
        (self.right - self.left) / self.categories.unwrap_or(1).max(1) as f64
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    let ends = values
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &value| {
            (low.min(value), high.max(value))
        });
    if values.is_empty() { (0.0, 1.0) } else { ends }
}
