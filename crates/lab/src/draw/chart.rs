//! Charts of measurements: lines and grouped bars, with the published bounds in the same picture.
//! The types here are plain data; [`Chart::to_svg`] never fails and says what it left out.

mod columns;
mod curves;
mod frame;
mod paint;
#[cfg(test)]
mod tests;

/// Series beyond this are not drawn.
pub const SERIES_MAX: usize = 64;
/// Categories beyond this are not drawn.
pub const CATEGORIES_MAX: usize = 200;
/// A line with more points is thinned out, keeping its peaks.
pub const POINTS_MAX: usize = 2_000;

/// Everything that a chart shows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    pub title: String,
    pub subtitle: String,
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    pub title: String,
    pub scale: AxisScale,
}

/// How values become distances.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AxisScale {
    #[default]
    Linear,
    /// Equal distances are equal factors; only positive values can be drawn. A band may reach down
    /// to zero: it then ends at the axis.
    Log,
    /// A place for every name, for bars; a line's x is then the index of a name. Further lines of a
    /// name are written smaller. Of the y axis this means the same as `Linear`.
    Categories(Vec<String>),
}

/// One line, one band, or one bar of every group.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub shape: Shape,
    pub origin: Origin,
    /// Series that belong together, such as a measurement and its bound, say the same number here
    /// and share a colour; the name of the bound then stands below that of the line. `None` is a colour that no other series has while there are enough.
    pub colour: Option<usize>,
}

/// The values of a series. Values that are not finite are left out.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Points (x, y), in the order in which they are joined.
    Line(Vec<(f64, f64)>),
    /// A value for every category, as far as there is one.
    Bars(Vec<Option<f64>>),
    /// Ranges (x, least, most).
    Band(Vec<(f64, f64, f64)>),
}

/// Where the values of a series come from, which decides how it is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    #[default]
    Measured,
    /// Measured, beside another series of its colour: a dashed line with a name of its own.
    MeasuredBeside,
    /// Claimed by a source: dashed. Its name is the formula.
    Published,
}

impl Origin {
    pub(super) fn is_measured(self) -> bool {
        self != Origin::Published
    }
}

impl Chart {
    /// Draws the chart. The same data gives the same bytes.
    pub fn to_svg(&self) -> String {
        paint::picture(self)
    }
}
