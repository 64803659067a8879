//! A structure of quorums as SVG: who is in which quorum, how often each node is asked, and the curve
//! of availability. Nodes that have a place, in a grid, a triangle or a tree, are drawn there.

mod places;

use std::fmt::Write;

use testigo_protocol::quorum::{Composite, Curve, Layout, NodeSet, Structure, Study, Verdict};

use self::places::{Columns, Places, RADIUS};
use crate::availability::MeasuredAvailability;
use crate::draw::{Axis, Chart, Origin, Series, Shape};

/// Quorums beyond this are not drawn as rows.
const ROWS_MAX: usize = 64;
/// Quorums beyond this are not drawn as panels.
const PANELS_MAX: usize = 16;
/// More nodes than this are drawn as rows, whatever their places.
const PANEL_NODES_MAX: usize = 40;
const MARGIN: f64 = 24.0;
const PAPER_WIDTH: f64 = 860.0;
const CURVE_STEPS: usize = 100;
const MEASURED_STEPS: usize = 20;

/// Draws what a study found, and over it what an algorithm did. The same study gives the same bytes.
pub fn quorum_picture(
    study: &Study,
    structure: &Structure,
    curve: &Curve,
    measured: Option<&MeasuredAvailability>,
) -> String {
    let sets: Vec<NodeSet> = structure.list().map_or(Vec::new(), |family| {
        family.sets().iter().take(ROWS_MAX).copied().collect()
    });
    let mut sheet = Sheet::new(MARGIN + 14.0);
    sheet.words("heading", MARGIN, &title(study), 22.0);
    sheet.words("subheading", MARGIN, &subtitle(study), 30.0);
    let placed = study.nodes <= PANEL_NODES_MAX && structure.layout != Layout::Row;
    let drawn = match placed {
        true => sheet.panels(structure, &sets),
        false => sheet.matrix(study.nodes, &sets),
    };
    if (drawn as u128) < study.quorums {
        let words = match drawn {
            0 => format!("{} quorums are too many to list", study.quorums),
            _ => format!("the first {drawn} of {} quorums", study.quorums),
        };
        sheet.words("quiet", MARGIN, &words, 24.0);
    }
    sheet.loads(&study.load.by_node);
    sheet.chart(&chart(study, curve, measured));
    sheet.finish(&title(study))
}

fn title(study: &Study) -> String {
    let Study {
        construction,
        nodes,
        k,
        ..
    } = study;
    match k {
        1 => format!("{construction}, {nodes} nodes"),
        k => format!("{construction}, {nodes} nodes, k = {k}"),
    }
}

fn subtitle(study: &Study) -> String {
    let sizes = match study.size.min == study.size.max {
        true => format!("of {} nodes", study.size.min),
        false => format!(
            "of {} to {} nodes, {:.2} on average",
            study.size.min, study.size.max, study.size.mean
        ),
    };
    let verdict = |verdict: &Verdict| match verdict.holds {
        Some(true) => verdict.property.clone(),
        Some(false) => match verdict.property.strip_prefix("non-") {
            Some(opposite) => opposite.into(),
            None => format!("not a {}", verdict.property),
        },
        None => format!("perhaps {}", verdict.property),
    };
    let verdicts: Vec<String> = study.verdicts.iter().map(verdict).collect();
    format!("{} quorums {sizes}: {}", study.quorums, verdicts.join(", "))
}

/// Availability against the probability of a live node, with a majority and a single node beside it.
fn chart(study: &Study, curve: &Curve, measured: Option<&MeasuredAvailability>) -> Chart {
    let probabilities = || (0..=CURVE_STEPS).map(|i| i as f64 / CURVE_STEPS as f64);
    let line = |name: &str, colour: usize, value: &dyn Fn(f64) -> f64| Series {
        name: name.into(),
        shape: Shape::Line(probabilities().map(|p| (p, value(p))).collect()),
        origin: match (colour, measured) {
            (0, None) => Origin::Measured,
            _ => Origin::Published,
        },
        colour: Some(colour),
    };
    let mut series = vec![line(study.construction, 0, &|p| curve.at(p))];
    if study.construction != "majority" && study.k == 1 {
        let majority = Composite::majority(NodeSet::first(study.nodes));
        series.push(line("majority", 1, &|p| majority.availability(p).min(1.0)));
    }
    series.push(line("one node", 6, &|p| p));
    series.extend(measured.map(|measured| {
        Series {
            name: format!("{}, measured", measured.algorithm),
            shape: Shape::Line(
                (0..=MEASURED_STEPS)
                    .map(|i| i as f64 / MEASURED_STEPS as f64)
                    .map(|p| (p, measured.at(p)))
                    .collect(),
            ),
            origin: Origin::Measured,
            colour: Some(3),
        }
    }));
    let axis = |title: &str| Axis {
        title: title.into(),
        ..Axis::default()
    };
    Chart {
        title: "Availability".into(),
        subtitle: format!("a quorum is alive: {}", study.availability_method),
        x: axis("probability that a node is alive"),
        y: axis("probability that a quorum is alive"),
        series,
    }
}

/// A picture that grows downwards. Its style sheet is the one that comes with the chart; all words in it
/// are our own, so nothing needs to be escaped.
struct Sheet {
    body: String,
    y: f64,
    width: f64,
}

impl Sheet {
    fn new(y: f64) -> Sheet {
        Sheet {
            body: String::new(),
            y,
            width: PAPER_WIDTH,
        }
    }

    /// A line of words, and how far down the next thing is.
    fn words(&mut self, class: &str, x: f64, words: &str, down: f64) {
        let y = self.y;
        self.text(class, x, y, words);
        self.y += down;
    }

    fn text(&mut self, class: &str, x: f64, y: f64, words: &str) {
        let _ = writeln!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{words}</text>"#
        );
    }

    fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let _ = writeln!(
            self.body,
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"><title>{tip}</title></rect>"#
        );
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.body,
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        );
    }

    /// A row for each quorum, a column for each node. Says how many quorums it drew.
    fn matrix(&mut self, nodes: usize, sets: &[NodeSet]) -> usize {
        if sets.is_empty() {
            return 0;
        }
        let columns = Columns::new(nodes);
        let height = columns.step.clamp(9.0, 18.0);
        self.node_numbers(&columns, nodes);
        for (i, set) in sets.iter().enumerate() {
            let y = self.y + i as f64 * height;
            let middle = y + height / 2.0;
            let right = columns.x(nodes);
            self.line("grid", (columns.x(0), middle), (right, middle));
            self.text(
                "quiet end",
                columns.x(0) - 8.0,
                middle + 4.0,
                &i.to_string(),
            );
            for node in set.iter() {
                let size = (columns.step - 2.0, height - 2.0);
                let place = (columns.x(node) + 1.0, y + 1.0);
                self.rect("column h0", place, size, &format!("quorum {i}: {set}"));
            }
        }
        self.y += sets.len() as f64 * height + 22.0;
        self.width = self.width.max(columns.x(nodes) + MARGIN);
        sets.len()
    }

    fn node_numbers(&mut self, columns: &Columns, nodes: usize) {
        let every = if columns.step < 18.0 { 5 } else { 1 };
        for node in (0..nodes).step_by(every) {
            let x = columns.x(node) + columns.step / 2.0;
            let y = self.y;
            self.text("quiet middle", x, y, &node.to_string());
        }
        self.text("quiet end", columns.x(0) - 8.0, self.y, "node");
        self.y += 8.0;
    }

    /// A small picture of all nodes for each quorum. Says how many quorums it drew.
    fn panels(&mut self, structure: &Structure, sets: &[NodeSet]) -> usize {
        let places = Places::new(structure.layout, structure.nodes);
        let across =
            ((PAPER_WIDTH - 2.0 * MARGIN + 24.0) / (places.width + 24.0)).max(1.0) as usize;
        let shown = &sets[..sets.len().min(PANELS_MAX)];
        for (i, set) in shown.iter().enumerate() {
            let left = MARGIN + (i % across) as f64 * (places.width + 24.0);
            let top = self.y + (i / across) as f64 * (places.height + 34.0);
            self.panel(&places, (left, top), i, *set);
        }
        let rows = shown.len().div_ceil(across);
        self.y += rows as f64 * (places.height + 34.0) + 12.0;
        self.width = self.width.max(places.width + 2.0 * MARGIN);
        shown.len()
    }

    fn panel(&mut self, places: &Places, (left, top): (f64, f64), i: usize, set: NodeSet) {
        self.text(
            "quiet",
            left,
            top + 2.0,
            &format!("quorum {i}: {} nodes", set.len()),
        );
        let at = |node: usize| {
            let (x, y) = places.at[node];
            (left + x, top + 12.0 + y)
        };
        for &(from, to) in &places.edges {
            let class = match set.contains(from) && set.contains(to) {
                true => "line h0",
                false => "axis",
            };
            self.line(class, at(from), at(to));
        }
        for node in 0..places.at.len() {
            let (x, y) = at(node);
            let (class, words) = match set.contains(node) {
                true => ("dot h0", "middle callout"),
                false => ("solid h6", "quiet middle"),
            };
            let radius = RADIUS;
            let _ = writeln!(
                self.body,
                r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius:.1}"/>"#
            );
            self.text(words, x, y + 4.0, &node.to_string());
        }
    }

    /// A bar for each node: the share of quorums that it is in.
    fn loads(&mut self, loads: &[f64]) {
        const HEIGHT: f64 = 70.0;
        self.y += 6.0;
        self.words(
            "name",
            MARGIN,
            "Share of the quorums that each node is in",
            18.0,
        );
        let columns = Columns::new(loads.len());
        let worst = loads.iter().copied().fold(0.0, f64::max).max(1e-9);
        let ground = self.y + HEIGHT;
        for (share, label) in [
            (worst, format!("{:.0}%", 100.0 * worst)),
            (0.0, "0%".into()),
        ] {
            let y = ground - HEIGHT * share / worst;
            self.line("grid", (columns.x(0), y), (columns.x(loads.len()), y));
            self.text("quiet end", columns.x(0) - 8.0, y + 4.0, &label);
        }
        for (node, load) in loads.iter().enumerate() {
            let height = HEIGHT * load / worst;
            let size = ((columns.step - 2.0).min(36.0), height);
            let x = columns.x(node) + (columns.step - size.0) / 2.0;
            let tip = format!("node {node}: {:.1}%", 100.0 * load);
            self.rect("column h2", (x, ground - height), size, &tip);
        }
        self.y = ground + 16.0;
        self.node_numbers(&columns, loads.len());
        self.y += 14.0;
        self.width = self.width.max(columns.x(loads.len()) + MARGIN);
    }

    /// The chart as a picture in the picture.
    fn chart(&mut self, chart: &Chart) {
        let svg = chart.to_svg();
        let (width, height) = (attribute(&svg, "width"), attribute(&svg, "height"));
        let place = format!(r#"<svg x="0.0" y="{:.1}""#, self.y);
        self.body.push_str(&svg.replacen("<svg", &place, 1));
        self.y += height;
        self.width = self.width.max(width);
    }

    fn finish(self, title: &str) -> String {
        let (width, height) = (self.width, self.y + 8.0);
        let body = self.body;
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" class="testigo-picture" viewBox="0 0 {width:.1} {height:.1}" width="{width:.1}" height="{height:.1}" role="img" aria-label="{title}">
<title>{title}</title>
<rect class="paper" width="{width:.1}" height="{height:.1}"/>
{body}</svg>
"#
        )
    }
}

/// The first number that an attribute of this name has.
fn attribute(svg: &str, name: &str) -> f64 {
    let value = svg.split(&format!(" {name}=\"")).nth(1);
    let number = value.and_then(|rest| rest.split('"').next()?.parse().ok());
    number.unwrap_or(PAPER_WIDTH)
}

#[cfg(test)]
mod tests {
    use testigo_protocol::quorum::{Blueprint, Demand};

    use super::*;

    fn drawn(name: &str, nodes: usize, k: usize) -> String {
        let blueprint: Blueprint = name.parse().expect("a name");
        let demand = Demand::new(nodes, k);
        let (study, structure, curve) =
            Study::new(blueprint, &demand, 10, || 0.5).expect("a structure");
        quorum_picture(&study, &structure, &curve, None)
    }

    /// Every tag is closed in order.
    fn assert_well_formed(svg: &str) {
        let mut open = Vec::new();
        for tag in svg.split('<').skip(1) {
            let (tag, _) = tag.split_once('>').expect("a tag ends");
            let name = tag.split([' ', '/']).next().expect("a name");
            match tag.strip_prefix('/') {
                Some(closed) => assert_eq!(open.pop(), Some(closed)),
                None if tag.ends_with('/') => {}
                None => open.push(name),
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
    }

    #[test]
    fn every_kind_of_structure_has_a_picture() {
        for (name, nodes, k) in [
            ("plane", 7, 1),
            ("grid", 8, 1),
            ("triangle", 10, 1),
            ("tree", 12, 1),
            ("majority", 101, 1),
            ("cohorts", 10, 2),
            ("weighted", 1, 1),
            ("arbiter", 128, 3),
        ] {
            let svg = drawn(name, nodes, k);
            assert_well_formed(&svg);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
            assert_eq!(svg, drawn(name, nodes, k));
        }
    }

    #[test]
    fn what_is_left_out_is_said() {
        assert!(drawn("majority", 101, 1).contains("too many to list"));
        assert!(drawn("majority", 9, 1).contains("the first 64 of 126 quorums"));
        assert!(drawn("tree", 15, 1).contains("the first 16 of 255 quorums"));
        assert!(!drawn("tree", 7, 1).contains("the first"));
        assert!(!drawn("plane", 7, 1).contains("the first"));
    }

    #[test]
    fn a_cell_is_drawn_for_every_membership() {
        let svg = drawn("plane", 7, 1);
        assert_eq!(svg.matches("<rect class=\"column h0\"").count(), 21);
        let svg = drawn("triangle", 10, 1);
        assert_eq!(svg.matches("class=\"middle callout\"").count(), 20);
    }
}
