//! The picture of a drawing: shapes, arrows, bars. Names stand in `data-` attributes, so that a page can bring it to life.

use super::lettering::shown;
use super::place::BAR;
use super::svg::{Svg, number};
use super::{Arrow, Drawing, Node, NodeKind};
use crate::{Graph, Process};

/// Scoped by the root's class, in a light and a dark edition; the hues are those of the laboratory's pictures.
const STYLE: &str = "
.testigo-flow{max-width:100%;height:auto}
.testigo-flow text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:13px;fill:#1c1f24}
.testigo-flow .name{text-anchor:middle;font-weight:600}
.testigo-flow .heading{font-size:17px;font-weight:650}
.testigo-flow .paper{fill:#ffffff}
.testigo-flow .process{fill:#e3f0f8;stroke:#0072b2;stroke-width:1.6}
.testigo-flow .queue{fill:#fbf3e0;stroke:#c98a00;stroke-width:1.6}
.testigo-flow .reject{stroke:#c4001d;stroke-dasharray:5 3}
.testigo-flow .arrow{fill:none;stroke:#3b434e;stroke-width:1.4}
.testigo-flow .back{stroke:#b8578a}
.testigo-flow .head{fill:#3b434e}
.testigo-flow .head.back{fill:#b8578a;stroke:none}
.testigo-flow .bar{fill:none;stroke:#0072b2;stroke-width:2.4}
@media (prefers-color-scheme:dark){
.testigo-flow text{fill:#e8eaed}
.testigo-flow .paper{fill:#15181d}
.testigo-flow .process{fill:#17303f;stroke:#4aa3df}
.testigo-flow .queue{fill:#3a2f17;stroke:#f0b73c}
.testigo-flow .reject{stroke:#ff4d5f}
.testigo-flow .arrow{stroke:#c4cad2}
.testigo-flow .back{stroke:#dd8fb8}
.testigo-flow .head{fill:#c4cad2}
.testigo-flow .head.back{fill:#dd8fb8}
.testigo-flow .bar{stroke:#4aa3df}
}
";
const HEAD: f64 = 8.0;

pub(super) fn picture(graph: &Graph, drawing: &Drawing, title: &str) -> String {
    let mut svg = Svg::default();
    let (width, height) = (number(drawing.width), number(drawing.height));
    svg.open(
        "svg",
        &[
            ("xmlns", "http://www.w3.org/2000/svg".into()),
            ("class", "testigo-flow".into()),
            ("viewBox", format!("0 0 {width} {height}")),
            ("width", width.clone()),
            ("height", height.clone()),
            ("role", "img".into()),
            ("aria-label", title.into()),
        ],
    );
    svg.text("title", &[], title);
    svg.text("style", &[], STYLE);
    let paper = [
        ("class", "paper".into()),
        ("width", width),
        ("height", height),
    ];
    svg.element("rect", &paper, "");
    let place = [
        ("class", "heading".into()),
        ("x", "20".into()),
        ("y", "30".into()),
    ];
    svg.text("text", &place, title);
    for arrow in &drawing.arrows {
        draw_arrow(&mut svg, graph, drawing, arrow);
    }
    for node in &drawing.nodes {
        draw_node(&mut svg, graph, node);
    }
    svg.close("svg");
    svg.finish()
}

fn draw_node(svg: &mut Svg, graph: &Graph, node: &Node) {
    let (x, y) = (number(node.x), number(node.y));
    match node.kind {
        NodeKind::Process => {
            let shape = [
                ("class", "process".into()),
                ("data-process", node.name.to_string()),
                ("cx", x.clone()),
                ("cy", y),
                ("rx", number(node.width / 2.0)),
                ("ry", number(node.height / 2.0)),
            ];
            let process = graph.processes.get(&node.name);
            svg.element(
                "ellipse",
                &shape,
                &process.map(|p| about(&node.name, p)).unwrap_or_default(),
            );
        }
        NodeKind::Queue => {
            let is_reject = graph.reject_queues().contains(&node.name);
            let class = if is_reject { "queue reject" } else { "queue" };
            let shape = [
                ("class", class.into()),
                ("data-queue", node.name.to_string()),
                ("x", number(node.x - node.width / 2.0)),
                ("y", number(node.y - node.height / 2.0)),
                ("width", number(node.width)),
                ("height", number(node.height)),
            ];
            let kind = if is_reject { "reject queue" } else { "queue" };
            let limit = graph.queues.get(&node.name).and_then(|queue| queue.limit);
            let limit = limit.map_or(String::new(), |limit| format!(", at most {limit} jobs"));
            svg.element("rect", &shape, &format!("{kind} {}{limit}", node.name));
        }
    }
    let place = [
        ("class", "name".into()),
        ("x", x),
        ("y", number(node.y + 4.5)),
    ];
    svg.text("text", &place, &shown(&node.name));
    if let Some(place) = node.create {
        draw_bar(svg, place, -BAR, "creates", &node.name);
    }
    if let Some(place) = node.delete {
        draw_bar(svg, place, BAR, "deletes", &node.name);
    }
}

/// A process in a sentence.
fn about(name: &str, process: &Process) -> String {
    let list = |word: &str, queues: &std::collections::BTreeSet<crate::Name>| {
        let names: Vec<String> = queues.iter().map(|queue| format!("[{queue}]")).collect();
        (!names.is_empty()).then(|| format!("{word} {}", names.join(" ")))
    };
    let parts = [
        list("creates into", &process.creates),
        list("takes from", &process.takes),
        list("puts into", &process.passes),
        list("deletes from", &process.deletes),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{name} {}", parts.join(", "))
}

/// ⊢ or ⊣: a stroke from the process, and a bar across its end.
fn draw_bar(svg: &mut Svg, (x, y): (f64, f64), reach: f64, class: &str, process: &str) {
    let (end, top, bottom) = (number(x + reach), number(y - 7.0), number(y + 7.0));
    let (x, y) = (number(x), number(y));
    let shape = [
        ("class", format!("bar {class}")),
        ("data-process", process.to_owned()),
        (
            "d",
            format!("M{x} {y}L{end} {y}M{end} {top}L{end} {bottom}"),
        ),
    ];
    svg.element("path", &shape, &format!("{process} {class}"));
}

fn draw_arrow(svg: &mut Svg, graph: &Graph, drawing: &Drawing, arrow: &Arrow) {
    let (from, to) = (&drawing.nodes[arrow.from], &drawing.nodes[arrow.to]);
    let back = if arrow.back { " back" } else { "" };
    let direction = if arrow.back { -1.0 } else { 1.0 };
    let (tooltip, marked) = match from.kind {
        NodeKind::Process => {
            let creates = graph
                .processes
                .get(&from.name)
                .is_some_and(|p| p.creates.contains(&to.name));
            let word = if creates { "creates and puts" } else { "puts" };
            (format!("{} {word} into [{}]", from.name, to.name), creates)
        }
        NodeKind::Queue => {
            let deletes = graph
                .processes
                .get(&to.name)
                .is_some_and(|p| p.deletes.contains(&from.name));
            let word = if deletes {
                "takes and deletes"
            } else {
                "takes"
            };
            (format!("{} {word} from [{}]", to.name, from.name), deletes)
        }
    };
    let mut attributes = vec![
        ("class", format!("arrow{back}")),
        ("data-from", from.name.to_string()),
        ("data-to", to.name.to_string()),
        (
            "data-kind",
            if from.kind == NodeKind::Process {
                "pass".into()
            } else {
                "take".into()
            },
        ),
    ];
    if marked {
        attributes.push(("data-ends", "true".into()));
    }
    attributes.push(("d", path(arrow, direction)));
    svg.element("path", &attributes, &tooltip);
    let (x, y) = arrow.points.last().copied().unwrap_or_default();
    let base = number(x - direction * HEAD);
    let (top, bottom) = (number(y - HEAD / 2.0), number(y + HEAD / 2.0));
    let head = format!("M{} {}L{base} {top}L{base} {bottom}Z", number(x), number(y));
    svg.element("path", &[("class", format!("head{back}")), ("d", head)], "");
}

/// Curves between columns, which leave and arrive level; straight lines across them.
fn path(arrow: &Arrow, direction: f64) -> String {
    let mut points = arrow.points.clone();
    // The line ends inside the head.
    if let Some(last) = points.last_mut() {
        last.0 -= direction * (HEAD - 1.0);
    }
    let mut path = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let (x1, y1) = (number(*x), number(*y));
        if at == 0 {
            path.push_str(&format!("M{x1} {y1}"));
        } else if at % 2 == 0 {
            path.push_str(&format!("L{x1} {y1}"));
        } else {
            let (x0, y0) = points[at - 1];
            let middle = number(f64::midpoint(x0, *x));
            path.push_str(&format!("C{middle} {} {middle} {y1} {x1} {y1}", number(y0)));
        }
    }
    path
}
