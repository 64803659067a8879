//! Pictures of flows: every node and arrow is there, nothing overlaps, and cycles run back.

use testigo_flow::{Drawing, Flow, MODELS, NodeKind, draw, lay_out, parse};
use testigo_sim::Generator;

const SAMPLE: &str = include_str!("data/sample-1.flow");

fn flow(text: &str) -> Flow {
    parse(text).expect("valid")
}

/// What must hold of every picture.
fn check(flow: &Flow, drawing: &Drawing) {
    assert_eq!(
        drawing.nodes.len(),
        flow.processes.len() + flow.queues.len()
    );
    assert_eq!(drawing.arrows.len(), flow.arrows());
    for (at, node) in drawing.nodes.iter().enumerate() {
        let (left, right) = (node.x - node.width / 2.0, node.x + node.width / 2.0);
        let (top, bottom) = (node.y - node.height / 2.0, node.y + node.height / 2.0);
        assert!(left >= 0.0 && top >= 0.0, "{node:?}");
        assert!(
            right <= drawing.width && bottom <= drawing.height,
            "{node:?}"
        );
        for other in &drawing.nodes[..at] {
            let apart_x = (node.x - other.x).abs() >= (node.width + other.width) / 2.0;
            let apart_y = (node.y - other.y).abs() >= (node.height + other.height) / 2.0;
            assert!(apart_x || apart_y, "{node:?} lies on {other:?}");
        }
    }
    check_ports(drawing);
    for arrow in &drawing.arrows {
        let (from, to) = (&drawing.nodes[arrow.from], &drawing.nodes[arrow.to]);
        assert_ne!(from.kind, to.kind);
        assert_eq!(arrow.back, from.x > to.x, "{} to {}", from.name, to.name);
        assert!(arrow.points.len() >= 2 && arrow.points.len() % 2 == 0);
    }
}

/// Arrowheads are 8 high and bars 14: where arrows and bars meet a side of a node, none lies on another.
fn check_ports(drawing: &Drawing) {
    for (at, node) in drawing.nodes.iter().enumerate() {
        let starts = drawing.arrows.iter().filter(|arrow| arrow.from == at);
        let ends = drawing.arrows.iter().filter(|arrow| arrow.to == at);
        let starts = starts.map(|arrow| arrow.points[0]);
        let ends = ends.map(|arrow| arrow.points[arrow.points.len() - 1]);
        let arrows: Vec<(f64, f64)> = starts.chain(ends).collect();
        let is_near = |a: &(f64, f64), b: &(f64, f64), gap: f64| {
            (a.0 < node.x) == (b.0 < node.x) && (a.1 - b.1).abs() < gap
        };
        for (number, arrow) in arrows.iter().enumerate() {
            let mut others = arrows[..number].iter();
            assert!(!others.any(|other| is_near(arrow, other, 10.9)), "{node:?}");
            let mut bars = node.create.iter().chain(&node.delete);
            assert!(!bars.any(|bar| is_near(arrow, bar, 12.9)), "{node:?}");
        }
    }
}

#[test]
fn the_thesis_scheme_has_its_marks_and_one_arrow_back() {
    let flow = flow(SAMPLE);
    let text = testigo_flow::read(SAMPLE).document;
    let drawing = lay_out(&flow, text.as_ref()).expect("small");
    check(&flow, &drawing);
    let back: Vec<(&str, &str)> = drawing
        .arrows
        .iter()
        .filter(|arrow| arrow.back)
        .map(|arrow| {
            (
                drawing.nodes[arrow.from].name.as_str(),
                drawing.nodes[arrow.to].name.as_str(),
            )
        })
        .collect();
    assert_eq!(back, [("P4", "C3")]);
    let marked = |which: fn(&testigo_flow::Node) -> bool| -> Vec<&str> {
        let marked = drawing.nodes.iter().filter(|node| which(node));
        marked.map(|node| node.name.as_str()).collect()
    };
    assert_eq!(marked(|node| node.create.is_some()), ["P1"]);
    assert_eq!(marked(|node| node.delete.is_some()), ["P5", "P6"]);
    let svg = draw(&flow, None, "Figure 2").expect("small");
    assert_eq!(svg.matches("class=\"process\"").count(), 6);
    assert_eq!(svg.matches("class=\"queue\"").count(), 8);
    assert_eq!(svg.matches("data-kind=").count(), 18);
    assert_eq!(svg.matches("bar creates").count(), 1);
    assert_eq!(svg.matches("bar deletes").count(), 2);
}

#[test]
fn every_model_can_be_drawn_and_the_same_flow_gives_the_same_bytes() {
    for model in MODELS {
        let flow = flow(model.text);
        check(&flow, &lay_out(&flow, None).expect("small"));
        assert_eq!(
            draw(&flow, None, model.name),
            draw(&flow.clone(), None, model.name)
        );
    }
}

#[test]
fn random_flows_can_be_drawn() {
    let mut generator = Generator::new(5);
    for _ in 0..500 {
        let mut text = String::new();
        for _ in 0..generator.between(1, 8) {
            text.push_str(&format!("p{}", generator.below(8)));
            for _ in 0..generator.between(1, 8) {
                text.push_str(&format!(
                    " -> [q{}] -> p{}",
                    generator.below(9),
                    generator.below(8)
                ));
            }
            text.push('\n');
        }
        let flow = flow(&text);
        check(&flow, &lay_out(&flow, None).expect("small"));
    }
}

/// The arrows of a text's picture that run back, as `from to`.
fn back(text: &str) -> Vec<String> {
    let sketched = testigo_flow::sketch(text).expect("small");
    let drawing = sketched.drawing.expect("readable");
    check(&flow(text), &drawing);
    let back = drawing.arrows.iter().filter(|arrow| arrow.back);
    let name = |node: usize| drawing.nodes[node].name.to_string();
    back.map(|arrow| format!("{} {}", name(arrow.from), name(arrow.to)))
        .collect()
}

#[test]
fn a_cycle_is_cut_where_the_text_comes_back_and_not_in_the_main_chain() {
    // Many arrows leave p1, which must not pull it to the left of the queue that it takes from.
    let branching = "make -> [q1] -> p1 -> [q2] -> p2 -> [q3] -> end\n\
                     make -> [q1] -> p1 -> [odd1] -> mend -> [q1] -> p1 -> [q2] -> p2 -> [q3] -> end\n\
                     make -> [q1] -> p1 -> [q2] -> p2 -> [odd2] -> mend -> [q1] -> p1 -> [q2] -> p2 -> [q3] -> end\n";
    assert_eq!(back(branching), ["mend q1"]);
    // What a chain comes back to may be gone on from along another way.
    let other = "a -> [q1] -> p1 -> [q2] -> p2 -> [odd] -> mend -> [q1] -> p1 -> [alt] -> p2 -> [done] -> end\n";
    assert_eq!(back(other), ["mend q1"]);
    // Which of two ways into a cycle is the main one, the text says.
    let main = "z -> [q] -> p -> [odd] -> mend -> [q] -> p -> [done] -> end\n";
    let side = "a -> [odd] -> mend -> [q] -> p -> [done] -> end\n";
    assert_eq!(back(&format!("{main}{side}")), ["mend q"]);
    assert_eq!(back(&format!("{side}{main}")), ["p odd"]);
}

#[test]
fn a_flow_that_nobody_could_read_is_not_drawn() {
    let chain: Vec<String> = (0..250).map(|n| format!("p{n} -> [q{n}]")).collect();
    let flow = flow(&format!("{} -> end", chain.join(" -> ")));
    assert!(lay_out(&flow, None).is_err());
}

/// A process is an ellipse and a queue a rectangle; ⊢ is to the left of who creates, ⊣ to the right of who deletes, and an
/// arrow's head is at what it points to.
#[test]
fn shapes_are_those_of_the_graphical_language() {
    let flow = flow("a -> [q] -> b");
    let drawing = lay_out(&flow, None).expect("small");
    let svg = draw(&flow, None, "Shapes").expect("small");
    let node = |name: &str, kind: NodeKind| {
        let node = drawing.nodes.iter().find(|node| node.name.as_str() == name);
        let node = node.expect("it is drawn");
        assert_eq!(node.kind, kind);
        (node.x, node.y, node.width / 2.0, node.height / 2.0)
    };
    let elements = |having: &str| -> Vec<&str> {
        let lines = svg.lines().filter(|line| line.contains(having));
        let tags = lines.filter_map(|line| line.strip_prefix('<')?.split('>').next());
        tags.collect()
    };
    for (name, mark, side) in [("a", "creates", -1.0), ("b", "deletes", 1.0)] {
        let (x, y, rx, ry) = node(name, NodeKind::Process);
        let (edge, end) = (x + side * rx, x + side * (rx + 14.0));
        let (top, bottom) = (y - 7.0, y + 7.0);
        let ellipse = format!(
            "ellipse class=\"process\" data-process=\"{name}\" cx=\"{x}\" cy=\"{y}\" rx=\"{rx}\" ry=\"{ry}\""
        );
        let bar = format!(
            "path class=\"bar {mark}\" data-process=\"{name}\" d=\"M{edge} {y}L{end} {y}M{end} {top}L{end} {bottom}\""
        );
        assert_eq!(
            elements(&format!("data-process=\"{name}\"")),
            [ellipse, bar]
        );
    }
    let (x, y, rx, ry) = node("q", NodeKind::Queue);
    let (left, top, width, height) = (x - rx, y - ry, 2.0 * rx, 2.0 * ry);
    let rect = format!(
        "rect class=\"queue\" data-queue=\"q\" x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\""
    );
    assert_eq!(elements("data-queue="), [rect]);
    let (b, _, half, _) = node("b", NodeKind::Process);
    let heads = [left, b - half].map(|point| {
        let (base, up, down) = (point - 8.0, y - 4.0, y + 4.0);
        format!("path class=\"head\" d=\"M{point} {y}L{base} {up}L{base} {down}Z\"/")
    });
    assert_eq!(elements("class=\"head\""), heads);
}

#[test]
fn a_node_is_as_high_as_its_arrows_need_and_as_wide_as_its_name() {
    let many: String = (0..12).map(|n| format!("a -> [q{n}] -> b\n")).collect();
    let many = flow(&format!("{many}b -> [back] -> a\n"));
    let drawing = lay_out(&many, None).expect("small");
    check(&many, &drawing);
    let height = |name: &str| {
        let node = drawing.nodes.iter().find(|node| node.name.as_str() == name);
        node.map(|node| node.height)
    };
    assert!(height("a") > Some(150.0) && height("b") > Some(150.0));
    assert_eq!(height("q1"), Some(36.0));

    let wide = "EINGANG -> [MAHNWESEN_GROSSKUNDEN_WWM] -> GROSSKUNDEN_MAHNWESEN_MM -> [OUT] -> END";
    let narrow =
        "eingang -> [iiiiiiiii_iiiiiiiiiii_iii] -> lllllllllll_lllllllll_ll -> [out] -> end";
    let width = |text: &str| {
        let drawing = lay_out(&flow(text), None).expect("small");
        let widths = drawing.nodes.iter().map(|node| node.width);
        widths.fold(0.0, f64::max)
    };
    assert!(width(wide) > 264.0, "{}", width(wide));
    assert!(width(narrow) < 160.0, "{}", width(narrow));
}
