//! The space-time diagram of a run: a horizontal lane for every node, time from left to right,
//! messages as arrows between the lanes. The types here are plain data that any trace can be turned
//! into; [`SpaceTime::to_svg`] never fails and says what it left out. A diagram is no wider than its
//! [`View`] allows: lanes and times beyond what can be read are folded and cut out.

mod arrows;
mod fold;
mod frame;
mod key;
mod kinds;
mod labels;
mod lanes;
mod paint;
mod plan;
#[cfg(test)]
mod runs;
mod shown;
#[cfg(test)]
mod tests;
mod windows;

/// The width of a picture that nobody asked to be wider: it fits on a small screen, with a margin.
pub const WIDTH_DEFAULT: u32 = 1_200;
/// A narrower picture would be all margin.
pub const WIDTH_MIN: u32 = 360;
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
    /// What several lanes are called where they are folded, such as `nodes`; empty means `lanes`.
    pub lane_noun: String,
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
    /// Its kind, and behind it what the message carries, such as `Request(3,1)`. Messages of one kind
    /// have one colour and one dash pattern.
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
    /// What the span is, for the legend; bars of one class have one colour. Of a hatched bar, what it
    /// waits for, or `waiting` where there is only one thing to wait for.
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

impl Mark {
    /// Whether it is an access to a register.
    pub(crate) fn is_access(&self) -> bool {
        matches!(self.kind, MarkKind::Read | MarkKind::Write)
    }
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
    /// A register was read, or written: its name, and behind it what it holds. One name has one colour.
    Read,
    Write,
    /// A property was violated here. Drawn so that nobody can miss it.
    Violation,
}

/// The times between which a run repeats for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub from: u64,
    pub until: u64,
}

/// How much of a run is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The width of the whole picture, in pixels, at most; at least [`WIDTH_MIN`] is taken.
    pub width: u32,
    /// Draw every lane and all of the time, however wide that becomes.
    pub whole: bool,
}

impl Default for View {
    fn default() -> Self {
        View {
            width: WIDTH_DEFAULT,
            whole: false,
        }
    }
}

impl SpaceTime {
    /// Draws the diagram for a screen. The same data gives the same bytes.
    pub fn to_svg(&self) -> String {
        self.to_svg_in(View::default())
    }

    /// Draws as much of the diagram as a view asks for.
    pub fn to_svg_in(&self, view: View) -> String {
        paint::picture(self, view)
    }
}
