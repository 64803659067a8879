//! The strokes of messages: where each starts and ends on the paper, and how its fate looks.

use rustc_hash::FxHashMap;

use crate::draw::{
    axis,
    space_time::{
        Arrow, Fate, LaneTime,
        frame::{Frame, Scene},
        kinds::Look,
    },
    svg::{Path, Svg},
    text::{self, TOOLTIP_CHARS_MAX},
};

/// How far a lost message comes, as a share of its way.
const LOST_AT: f64 = 0.55;
/// How far a message in flight has come.
const FLYING_AT: f64 = 0.72;
/// The least horizontal extent of a message that never arrived.
const UNARRIVED_EXTENT: f64 = 30.0;
const HEAD_LENGTH: f64 = 9.0;
const HEAD_HALF: f64 = 3.4;

/// The drawn line of a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
    /// A message of a node to itself goes in an arch above its lane.
    pub(super) arched: bool,
    /// How far the middle of the line is moved aside: upwards for an arch, and else to the left of
    /// who goes along it.
    bow: f64,
    /// It goes on in a time that is cut out, so nothing arrives at its end.
    pub(super) torn: bool,
}

/// The strokes of all messages of a scene. Those that would lie upon each other bow to different sides.
pub(super) fn strokes(scene: &Scene<'_>, frame: &Frame<'_>) -> Vec<Stroke> {
    let events = Events::new(scene, frame);
    let plain: Vec<Stroke> = (scene.arrows.iter())
        .map(|arrow| Stroke::new(arrow, frame))
        .collect();
    let mut alike: FxHashMap<[i64; 4], Vec<usize>> = FxHashMap::default();
    for (i, stroke) in plain.iter().enumerate() {
        alike.entry(stroke.place()).or_default().push(i);
    }
    let placed = |(i, stroke): (usize, &Stroke)| {
        let group = &alike[&stroke.place()];
        match (group.len(), stroke.arched) {
            (1, true) => *stroke,
            (1, false) => events.avoided_by(*stroke, scene.arrows[i], frame),
            (count, arched) => {
                let among = group.binary_search(&i).unwrap_or(0);
                let apart = (APART_ALL / (count - 1) as f64).min(APART);
                let side = match arched {
                    true => among as f64,
                    false => among as f64 - (count - 1) as f64 / 2.0,
                };
                Stroke {
                    bow: stroke.bow + side * apart,
                    ..*stroke
                }
            }
        }
    };
    plain.iter().enumerate().map(placed).collect()
}

/// The distance, in their middle, of two messages that start and end at the same places.
const APART: f64 = 13.0;
/// The distance of the first and the last of many.
const APART_ALL: f64 = 52.0;

impl Stroke {
    /// A straight stroke, for legends.
    pub(super) fn straight(from: (f64, f64), to: (f64, f64)) -> Self {
        Stroke {
            from,
            to,
            arched: false,
            bow: 0.0,
            torn: false,
        }
    }

    /// Where it lies, in whole pixels, to find others there.
    fn place(&self) -> [i64; 4] {
        [self.from.0, self.from.1, self.to.0, self.to.1].map(|value| value.round() as i64)
    }

    fn new(arrow: &Arrow, frame: &Frame<'_>) -> Self {
        let (ends, torn) = frame.torn(arrow);
        let from = (ends.0, frame.y(arrow.from.lane));
        let mut to = (ends.1, frame.y(arrow.to.lane));
        let arched = arrow.from.lane == arrow.to.lane;
        let part = match arrow.fate {
            Fate::Delivered | Fate::Duplicate => 1.0,
            Fate::Lost { .. } => LOST_AT,
            Fate::InFlight => FLYING_AT,
        };
        if part < 1.0 || arched {
            to.0 = to.0.max(from.0 + UNARRIVED_EXTENT).min(frame.right - 4.0);
        }
        let end = (
            from.0 + (to.0 - from.0) * part,
            from.1 + (to.1 - from.1) * part,
        );
        let straight = Stroke::straight(from, end);
        let end_torn = part == 1.0 && torn.1.is_some();
        let (from, end) = (
            torn.0.map_or(from, |x| straight.at(x, from)),
            match end_torn {
                true => torn.1.map_or(end, |x| straight.at(x, end)),
                false => end,
            },
        );
        Stroke {
            arched,
            torn: end_torn,
            bow: if arched {
                (frame.lane_gap * 0.24).min(24.0)
            } else {
                0.0
            },
            ..Stroke::straight(from, end)
        }
    }

    /// The point of a straight stroke with this abscissa, or `end` where it has none.
    fn at(&self, x: f64, end: (f64, f64)) -> (f64, f64) {
        let part = (x - self.from.0) / (self.to.0 - self.from.0);
        match (0.0..=1.0).contains(&part) {
            true => (x, self.from.1 + (self.to.1 - self.from.1) * part),
            false => end,
        }
    }

    /// Unit vector from the straight line to the side to which the stroke bows.
    fn side(&self) -> (f64, f64) {
        let (dx, dy) = (self.to.0 - self.from.0, self.to.1 - self.from.1);
        let length = dx.hypot(dy);
        if self.arched || length == 0.0 {
            return (0.0, -1.0);
        }
        (dy / length, -dx / length)
    }

    /// The point after a share of the way.
    pub(super) fn point(&self, part: f64) -> (f64, f64) {
        let (side, aside) = (self.side(), 4.0 * part * (1.0 - part) * self.bow);
        (
            self.from.0 + (self.to.0 - self.from.0) * part + side.0 * aside,
            self.from.1 + (self.to.1 - self.from.1) * part + side.1 * aside,
        )
    }

    /// The direction there.
    pub(super) fn heading(&self, part: f64) -> (f64, f64) {
        let (side, aside) = (self.side(), 4.0 * (1.0 - 2.0 * part) * self.bow);
        (
            self.to.0 - self.from.0 + side.0 * aside,
            self.to.1 - self.from.1 + side.1 * aside,
        )
    }

    fn tail(&self) -> Path {
        let path = Path::from(self.from.0, self.from.1);
        if self.bow == 0.0 {
            return path.to(self.to.0, self.to.1);
        }
        let (side, middle) = (self.side(), self.point(0.5));
        let control = (middle.0 + side.0 * self.bow, middle.1 + side.1 * self.bow);
        path.bend(control, self.to.0, self.to.1)
    }

    fn head(&self, path: Path) -> Path {
        let (dx, dy) = self.heading(1.0);
        let length = dx.hypot(dy);
        let (ux, uy) = if length > 0.0 {
            (dx / length, dy / length)
        } else {
            (1.0, 0.0)
        };
        let back = HEAD_LENGTH.min(length.max(4.0));
        let (x, y) = (self.to.0 - ux * back, self.to.1 - uy * back);
        path.jump(x - uy * HEAD_HALF, y + ux * HEAD_HALF)
            .to(self.to.0, self.to.1)
            .to(x + uy * HEAD_HALF, y - ux * HEAD_HALF)
    }

    /// Draws the stroke as its kind and its fate ask. A plain delivery is one element, because a long
    /// run has thousands of them.
    pub(super) fn paint(&self, svg: &mut Svg, look: Option<Look>, fate: &Fate, tooltip: &str) {
        let look = look.map_or(String::new(), Look::classes);
        if *fate == Fate::Delivered && self.bow == 0.0 && !self.torn {
            let path = self.head(self.tail()).shut();
            svg.tag("path")
                .attr("class", &format!("arrow{look}"))
                .attr("d", path.as_str())
                .titled(tooltip);
            return;
        }
        let fated = match fate {
            Fate::Delivered => "",
            Fate::Lost { .. } => " lost",
            Fate::InFlight => " flying",
            Fate::Duplicate => " twice",
        };
        svg.group(&format!("arrow{look}{fated}"));
        if !tooltip.is_empty() {
            svg.tag("title").text(tooltip);
        }
        svg.tag("path")
            .attr("class", "tail")
            .attr("d", self.tail().as_str())
            .empty();
        let end = match fate {
            _ if self.torn => None,
            Fate::Lost { .. } => Some(("cross", Path::default().cross(self.to.0, self.to.1, 4.5))),
            Fate::InFlight => Some(("head", self.head(Path::default()))),
            Fate::Delivered => Some(("head", self.head(Path::default()).shut())),
            Fate::Duplicate => {
                let (dx, dy) = self.heading(1.0);
                let length = dx.hypot(dy).max(1.0);
                let back = (-dx / length * HEAD_LENGTH, -dy / length * HEAD_LENGTH);
                let first = Stroke {
                    to: (self.to.0 + back.0, self.to.1 + back.1),
                    ..*self
                };
                let heads = first.head(Path::default()).shut();
                Some(("head", self.head(heads).shut()))
            }
        };
        if let Some((class, end)) = end {
            svg.tag("path")
                .attr("class", class)
                .attr("d", end.as_str())
                .empty();
        }
        svg.close();
    }
}

/// Where something happens on each lane, in order. A message that passes a lane right there would
/// look as if it arrived, so it makes a bow around it.
#[derive(Debug)]
struct Events {
    lanes: Vec<Vec<f64>>,
}

/// How near to an event a message may pass.
const CLEARANCE: f64 = 9.0;
/// Bows to try, the smallest first.
const BOWS: [f64; 5] = [0.0, 14.0, -14.0, 26.0, -26.0];

impl Events {
    fn new(scene: &Scene<'_>, frame: &Frame<'_>) -> Self {
        let mut lanes = vec![Vec::new(); scene.lanes.len()];
        let mut add = |place: LaneTime| lanes[place.lane].push(frame.x(place.time));
        for arrow in &scene.arrows {
            add(arrow.from);
            if arrow.arrived() {
                add(arrow.to);
            }
        }
        scene.marks.iter().for_each(|mark| add(mark.place));
        for events in &mut lanes {
            events.sort_by(f64::total_cmp);
        }
        Events { lanes }
    }

    fn avoided_by(&self, stroke: Stroke, arrow: &Arrow, frame: &Frame<'_>) -> Stroke {
        let (upper, lower) = (
            arrow.from.lane.min(arrow.to.lane),
            arrow.from.lane.max(arrow.to.lane),
        );
        let bowed = |bow: f64| Stroke { bow, ..stroke };
        let clear = |stroke: &Stroke| {
            (upper + 1..lower).all(|lane| self.is_clear(lane, stroke, frame.y(lane)))
        };
        let found = BOWS.iter().map(|&bow| bowed(bow)).find(clear);
        found.unwrap_or(stroke)
    }

    /// Whether a stroke passes a lane away from its events, or ends before it.
    fn is_clear(&self, lane: usize, stroke: &Stroke, y: f64) -> bool {
        let (dx, dy) = (stroke.to.0 - stroke.from.0, stroke.to.1 - stroke.from.1);
        let part = (y - stroke.from.1) / dy;
        if !(0.0..=1.0).contains(&part) {
            return true;
        }
        // At the height of the lane, a bow by `aside` moves the crossing by more the flatter it is.
        let aside = 4.0 * part * (1.0 - part) * stroke.bow;
        let x = stroke.from.0 + dx * part + aside * dx.hypot(dy) / dy;
        let events = &self.lanes[lane];
        let next = events.partition_point(|&event| event < x - CLEARANCE);
        events.get(next).is_none_or(|&event| event > x + CLEARANCE)
    }
}

/// What hovering over a message tells.
pub(super) fn tooltip(scene: &Scene<'_>, arrow: &Arrow) -> String {
    let time = |time| axis::time_label(time, scene.run.ticks_per_unit);
    let lane = |lane: usize| scene.lanes[lane].as_str();
    let (sender, receiver) = (lane(arrow.from.lane), lane(arrow.to.lane));
    let sent = time(arrow.from.time);
    let course = match &arrow.fate {
        Fate::Delivered => format!("{sent} to {}", time(arrow.to.time)),
        Fate::Duplicate => format!("{sent} to {}, a duplicate", time(arrow.to.time)),
        Fate::Lost { reason } if reason.is_empty() => format!("{sent}, lost"),
        Fate::Lost { reason } => format!("{sent}, lost: {reason}"),
        Fate::InFlight => format!("{sent}, in flight at the end"),
    };
    let words = match arrow.label.as_str() {
        "" => format!("{sender} → {receiver}, {course}"),
        label => format!("{label}: {sender} → {receiver}, {course}"),
    };
    text::cut(&words, TOOLTIP_CHARS_MAX)
}
