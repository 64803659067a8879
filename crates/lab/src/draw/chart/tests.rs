//! What a chart must show, and what it must survive.

use super::*;
use crate::draw::{
    gallery::{Lcg, delays, messages_per_entry, names, series},
    svg::tests::assert_well_formed,
};

fn line_chart(points: Vec<(f64, f64)>) -> Chart {
    Chart {
        series: vec![series("measured", Origin::Measured, 0, Shape::Line(points))],
        ..Chart::default()
    }
}

#[test]
fn measured_and_published_look_different() {
    let svg = messages_per_entry().to_svg();
    // Each measured line once in the plot and once beside its name; a bound stands below that name.
    assert_eq!(svg.matches("class=\"line bound h").count(), 2);
    assert_eq!(svg.matches("class=\"line h").count(), 2 * 4);
    assert_eq!(svg.matches("class=\"band h").count(), 1);
    for series in messages_per_entry().series {
        let name = match series.origin {
            Origin::Measured | Origin::MeasuredBeside => format!(">{}</text>", series.name),
            Origin::Published => format!(">published: {}</text>", series.name),
        };
        assert_eq!(svg.matches(&name).count(), 1, "{name}");
    }
}

#[test]
fn every_bar_and_every_published_value_is_drawn() {
    let svg = delays().to_svg();
    assert_eq!(svg.matches("class=\"column h").count(), 2 * 4 + 2);
    assert_eq!(svg.matches("class=\"published\"").count(), 2 * 4);
    assert!(svg.contains("Maekawa, synchronisation delay: 2.04"));
}

/// The value of an attribute of the first element that carries a tooltip.
fn attribute(svg: &str, tooltip: &str, name: &str) -> f64 {
    let end = svg.find(tooltip).expect("the tooltip");
    let tag = &svg[svg[..end].rfind("<rect").expect("its bar")..end];
    let value = tag
        .split(&format!(" {name}=\""))
        .nth(1)
        .expect("the attribute");
    value
        .split('"')
        .next()
        .expect("its end")
        .parse()
        .expect("a number")
}

#[test]
fn bars_are_as_long_as_their_values() {
    let mut chart = delays();
    chart.series.truncate(1);
    chart.series[0].shape = Shape::Bars(vec![Some(1.0), Some(4.0), None, Some(-2.0)]);
    let svg = chart.to_svg();
    let height = |tooltip: &str| attribute(&svg, tooltip, "height");
    let one = height("synchronisation delay: 1<");
    assert!((height("synchronisation delay: 4<") - 4.0 * one).abs() < 0.3);
    assert!((height("synchronisation delay: -2<") - 2.0 * one).abs() < 0.3);
    let ground = attribute(&svg, "delay: 4<", "y") + height("delay: 4<");
    assert!(
        (attribute(&svg, "delay: -2<", "y") - ground).abs() < 0.3,
        "it hangs down"
    );
}

#[test]
fn values_without_a_place_are_left_out_and_said() {
    let points = vec![
        (1.0, 2.0),
        (2.0, f64::NAN),
        (f64::INFINITY, 1.0),
        (3.0, 1e300),
        (4.0, 3.0),
    ];
    let svg = line_chart(points).to_svg();
    assert_well_formed(&svg);
    assert!(svg.contains("3 values have no place on the axes"));
    let mut chart = line_chart(vec![(0.0, 1.0), (-4.0, 1.0), (2.0, 1.0)]);
    chart.x.scale = AxisScale::Log;
    assert!(
        chart
            .to_svg()
            .contains("2 values have no place on the axes")
    );
}

#[test]
fn a_chart_without_values_says_so() {
    let nan = line_chart(vec![(f64::NAN, 1.0)]);
    let mut no_bars = delays();
    no_bars.series.truncate(1);
    no_bars.series[0].shape = Shape::Bars(vec![None, Some(f64::NEG_INFINITY)]);
    let mut no_categories = delays();
    no_categories.x.scale = AxisScale::Categories(Vec::new());
    for chart in [
        Chart::default(),
        line_chart(Vec::new()),
        nan,
        no_bars,
        no_categories,
    ] {
        let svg = chart.to_svg();
        assert_well_formed(&svg);
        assert!(svg.contains(">nothing to draw</text>"));
    }
}

#[test]
fn odd_ranges_do_no_harm() {
    let odd = [
        0.0,
        -0.0,
        1e-300,
        -1e99,
        1e99,
        5e-324,
        1.0,
        f64::MAX,
        f64::NAN,
    ];
    for x_scale in [
        AxisScale::Linear,
        AxisScale::Log,
        AxisScale::Categories(names(&["a"])),
    ] {
        for y_scale in [AxisScale::Linear, AxisScale::Log] {
            for a in odd {
                for b in odd {
                    let mut chart = line_chart(vec![(a, b), (b, a)]);
                    chart.x.scale = x_scale.clone();
                    chart.y.scale = y_scale.clone();
                    let band = Shape::Band(vec![(a, b, a), (b, a, b)]);
                    chart
                        .series
                        .push(series("band", Origin::Published, 1, band));
                    assert_well_formed(&chart.to_svg());
                }
            }
        }
    }
}

#[test]
fn one_point_is_a_chart() {
    let svg = line_chart(vec![(3.0, 0.0)]).to_svg();
    assert_well_formed(&svg);
    assert!(svg.contains("measured: 0 at 3"));
}

#[test]
fn words_are_escaped() {
    let mut chart = delays();
    chart.title = "a & b".to_string();
    chart.y.title = "<y>".to_string();
    chart.series[0].name = "\"s\" </text>".to_string();
    chart.x.scale = AxisScale::Categories(names(&["<1>", "2 & 3", "4", "5"]));
    let svg = chart.to_svg();
    assert_well_formed(&svg);
    assert!(svg.contains("&lt;y&gt;") && svg.contains("2 &amp; 3"));
}

#[test]
fn a_long_line_is_thinned_but_keeps_its_peak() {
    let mut random = Lcg(3);
    let mut points: Vec<_> = (0..100_000)
        .map(|i| (f64::from(i), random.below(100) as f64))
        .collect();
    points[54_321].1 = 900.0;
    let svg = line_chart(points).to_svg();
    assert!(svg.len() < 100_000, "{} bytes", svg.len());
    // The axis ends at 1000, so the peak is at nine tenths of the plot.
    let path = svg
        .split("class=\"line h0\" d=\"")
        .nth(1)
        .expect("the line");
    let path = path.split('"').next().expect("its end");
    let heights = path
        .split(['M', 'L'])
        .filter_map(|point| point.split(' ').nth(1));
    let highest = heights
        .map(|y| y.parse::<f64>().expect("a number"))
        .fold(f64::MAX, f64::min);
    assert!(highest < 38.0 + 0.1 * 340.0 + 1.0, "{highest}");
}

#[test]
fn series_that_belong_together_share_a_colour_and_others_do_not() {
    let mut chart = messages_per_entry();
    for series in chart.series.iter_mut().skip(5) {
        series.colour = None;
    }
    let svg = chart.to_svg();
    assert!(svg.contains("class=\"line bound h0\"") && svg.contains("class=\"line h0\""));
    // Hues 0, 1 and 2 are asked for, so the two that do not care get others.
    assert!(svg.contains("class=\"line h3\"") && svg.contains("class=\"line h4\""));
}

#[test]
fn two_measured_lines_of_one_colour_are_told_apart() {
    let mut chart = line_chart(vec![(1.0, 2.0), (2.0, 3.0)]);
    let beside = Shape::Line(vec![(1.0, 1.0), (2.0, 1.0)]);
    chart
        .series
        .push(series("failed", Origin::MeasuredBeside, 0, beside));
    let svg = chart.to_svg();
    // Each in the plot and beside its name.
    assert_eq!(svg.matches("class=\"line h0\"").count(), 2);
    assert_eq!(svg.matches("class=\"line dashed h0\"").count(), 2);
    assert!(svg.contains(">failed</text>"));
    // What axes are not called is not spoken of.
    assert!(svg.contains("<desc>Chart; series: measured, failed.</desc>"));
    chart.y.title = "uses".into();
    assert!(chart.to_svg().contains("<desc>Chart: uses; series"));
}

#[test]
fn ticks_stand_where_it_was_measured() {
    let svg = messages_per_entry().to_svg();
    let ticks: Vec<&str> = (svg.split("class=\"quiet middle tick\"").skip(1))
        .filter_map(|tick| tick.split(['>', '<']).nth(1))
        .collect();
    assert_eq!(ticks, ["2", "4", "8", "16", "32", "64"]);
    // Too near to each other for words: the ends keep theirs.
    let near = (0..12).map(|i| (1_000.0 + f64::from(i * i), 1.0)).collect();
    let mut chart = line_chart(near);
    chart.series[0].shape = match &chart.series[0].shape {
        Shape::Line(points) => {
            let mut points = points.clone();
            points.push((9_000.0, 1.0));
            Shape::Line(points)
        }
        other => other.clone(),
    };
    let svg = chart.to_svg();
    assert!(svg.contains(">1000</text>") && svg.contains(">9000</text>"));
    assert!(svg.matches("middle tick").count() < 6);
}

#[test]
fn a_bound_of_zero_ends_at_the_axis_of_a_log_chart() {
    let mut chart = line_chart(vec![(1.0, 3.0), (8.0, 300.0)]);
    chart.y.scale = AxisScale::Log;
    let band = Shape::Band(vec![(1.0, 0.0, 30.0), (8.0, 0.0, 400.0)]);
    chart
        .series
        .push(series("0 to 50N", Origin::Published, 0, band));
    let svg = chart.to_svg();
    assert!(!svg.contains("have no place"));
    assert!(svg.contains(">published: 0 to 50N</text>"));
    assert!(
        svg.contains(">500</text>") && svg.contains(">2</text>"),
        "the axis"
    );
    assert!(!svg.contains("e-30"), "no tick for zero");
}

#[test]
fn names_beside_the_lines_never_overlap() {
    for seed in 0..40 {
        let mut random = Lcg(seed);
        let mut chart = Chart::default();
        for i in 0..2 + random.below(11) as usize {
            let end = random.below(40) as f64;
            let line = Shape::Line(vec![(0.0, 1.0), (1.0, end)]);
            let name = format!("algorithm {i}");
            chart.series.push(series(&name, Origin::Measured, i, line));
            let formula = "3(K−1), and 3 for each permission recalled, for groups of K = √(2N)";
            let band = Shape::Band(vec![(0.0, 1.0, 2.0), (1.0, end, end + 4.0)]);
            if random.below(3) > 0 {
                chart
                    .series
                    .push(series(formula, Origin::Published, i, band));
            }
        }
        let scene = frame::Scene::new(&chart);
        let frame = frame::Frame::new(&scene, 50.0);
        let placed = curves::EndNames::place(&scene, &frame).expect("there is room");
        let mut names: Vec<_> = placed.all().iter().collect();
        names.sort_by(|a, b| a.y.total_cmp(&b.y));
        for pair in names.windows(2) {
            assert!(
                pair[0].y + pair[0].height() <= pair[1].y + 1e-6,
                "seed {seed}"
            );
        }
        let svg = chart.to_svg();
        let width = svg.split(" width=\"").nth(1).expect("a width");
        let width: f64 = width
            .split('"')
            .next()
            .expect("an end")
            .parse()
            .expect("a number");
        assert!(width <= 1_280.0, "seed {seed}: {width}");
        let empty = "<g class=\"legend\">\n</g>";
        assert!(svg.contains(empty), "no legend beside the names");
    }
}

#[test]
fn too_many_series_are_said() {
    let mut chart = Chart::default();
    for i in 0..SERIES_MAX + 3 {
        let shape = Shape::Line(vec![(0.0, i as f64), (1.0, 1.0)]);
        chart
            .series
            .push(series(&format!("s{i}"), Origin::Measured, i, shape));
    }
    let svg = chart.to_svg();
    assert_well_formed(&svg);
    assert!(svg.contains("3 more series are not drawn"));
}

#[test]
fn names_that_do_not_fit_beside_the_lines_go_into_a_legend() {
    let mut chart = Chart::default();
    for i in 0..SERIES_MAX / 2 {
        let line = Shape::Line(vec![(0.0, i as f64), (1.0, 1.0)]);
        let name = format!("s{i}");
        chart.series.push(series(&name, Origin::Measured, i, line));
        let formula = "3(K−1), and 3 for each permission recalled, for groups of K = √(2N)";
        let band = Shape::Band(vec![(0.0, 1.0, 2.0), (1.0, 1.0, 2.0)]);
        chart
            .series
            .push(series(formula, Origin::Published, i, band));
    }
    let svg = chart.to_svg();
    let (_, legend) = svg.split_once("<g class=\"legend\">").expect("a legend");
    assert!(legend.contains(">s0</text>") && legend.contains(">s0: 3(K−1)"));
}
