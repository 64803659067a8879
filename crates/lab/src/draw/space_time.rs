//! The space-time diagram of a run: a horizontal lane for every node, time from left to right,
//! messages as arrows between the lanes. The types here are plain data that any trace can be turned
//! into; [`SpaceTime::to_svg`] never fails and says what it left out.

mod arrows;
mod frame;
mod key;
mod labels;
mod lanes;
mod paint;
mod plan;
#[cfg(test)]
mod tests;

/// Lanes beyond this are not drawn.
pub const LANES_MAX: usize = 128;
/// Arrows beyond this are not drawn; the same holds for marks, and for bars, gaps and partitions.
pub const ITEMS_MAX: usize = 20_000;

/// Everything that a diagram shows. All times are ticks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpaceTime {
    pub title: String,
    pub subtitle: String,
    pub scale: Scale,
    /// Ticks in one unit of the time axis; zero counts as one.
    pub ticks_per_unit: u64,
    /// The name of that unit, for the axis; may be empty.
    pub unit: String,
    /// Names of the lanes, from top to bottom; other fields name a lane by its index.
    pub lanes: Vec<String>,
    pub arrows: Vec<Arrow>,
    pub bars: Vec<Bar>,
    pub gaps: Vec<Gap>,
    pub partitions: Vec<Partition>,
    pub marks: Vec<Mark>,
    /// A part of the run that repeats for ever: the loop of a lasso.
    pub cycle: Option<Cycle>,
    /// When the observation ended, if that was after the last event.
    pub until: Option<u64>,
}

/// How times become distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Distances are proportional to time.
    #[default]
    Proportional,
    /// Every time at which something happens has a column of the same width, wide enough for its
    /// labels: for schedules whose time is a step number.
    Steps,
}

/// A lane at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneTime {
    pub lane: usize,
    pub time: u64,
}

/// A message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrow {
    pub from: LaneTime,
    /// Where it arrived. Of a lost message or one in flight only the lane is certain; its time says
    /// how the arrow slopes.
    pub to: LaneTime,
    pub label: String,
    pub fate: Fate,
}

/// What became of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Delivered,
    /// Never arrives; the reason is shown with the cross.
    Lost { reason: String },
    /// Had not arrived when the observation ended.
    InFlight,
    /// A further delivery of a message that was delivered before.
    Duplicate,
}

/// A span of a lane in which something holds: a node is inside, or it waits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bar {
    pub lane: usize,
    pub from: u64,
    /// `None` when it had not ended.
    pub until: Option<u64>,
    pub style: BarStyle,
    /// What the span is, for the legend; bars of one class have one colour.
    pub class: String,
    /// Words for this very bar; may be empty.
    pub label: String,
}

impl Bar {
    /// The bar of a node that is inside its critical section.
    pub fn inside(lane: usize, from: u64, until: Option<u64>) -> Self {
        Bar {
            lane,
            from,
            until,
            style: BarStyle::Solid,
            class: "inside".to_string(),
            label: String::new(),
        }
    }

    /// The bar of a node that has asked and has not entered.
    pub fn waiting(lane: usize, from: u64, until: Option<u64>) -> Self {
        Bar {
            style: BarStyle::Hatched,
            class: "waiting".to_string(),
            ..Bar::inside(lane, from, until)
        }
    }
}

/// How a bar looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BarStyle {
    #[default]
    Solid,
    /// Thin and hatched: for waiting.
    Hatched,
}

/// A span in which a node does nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub lane: usize,
    pub from: u64,
    /// `None` when the node never came back.
    pub until: Option<u64>,
    pub kind: GapKind,
}

/// Why a node does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// It lost its memory and restarted at the end.
    Crash,
    /// It stood still and went on as if nothing had happened.
    Pause,
}

/// A span in which the network was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Partition {
    pub from: u64,
    /// `None` when it was never healed.
    pub until: Option<u64>,
    /// The sides, such as `p0 p1 | p2`.
    pub label: String,
}

/// A point event of one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    pub place: LaneTime,
    pub kind: MarkKind,
    pub label: String,
}

/// What a mark tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MarkKind {
    /// The local user asked the protocol.
    Ask,
    /// The protocol told the local user.
    Tell,
    Timer,
    Note,
    /// A property was violated here. Drawn so that nobody can miss it.
    Violation,
}

/// The times between which a run repeats for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub from: u64,
    pub until: u64,
}

impl SpaceTime {
    /// Draws the diagram. The same data gives the same bytes.
    pub fn to_svg(&self) -> String {
        paint::picture(self)
    }
}
