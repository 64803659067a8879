//! Pictures: space-time diagrams of runs and charts of measurements, as SVG text. Every function
//! here goes from plain data to a string, so the terminal, the documents and the console show the
//! same picture, and the same data gives the same bytes.

mod axis;
mod layout;
mod legend;
mod svg;
mod text;
mod theme;

mod chart;
mod space_time;

#[cfg(test)]
mod gallery;

pub use chart::{
    Axis, AxisScale, CATEGORIES_MAX, Chart, Origin, POINTS_MAX, SERIES_MAX, Series, Shape,
};
pub use space_time::{
    Arrow, Bar, BarStyle, Cycle, Fate, Gap, GapKind, ITEMS_MAX, LANES_MAX, LaneTime, Mark,
    MarkKind, Partition, Scale, SpaceTime, View, WIDTH_DEFAULT, WIDTH_MIN,
};
