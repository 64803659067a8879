//! The legend of a diagram: only what occurs in it.

use crate::draw::{
    legend::{Legend, SWATCH},
    space_time::{
        BarStyle, Fate, GapKind, MarkKind,
        arrows::Stroke,
        frame::Scene,
        kinds::Look,
        lanes::{
            WAITING, access_glyph, bar_classes, bar_shape, crash_glyph, mark_glyph, pause_glyph,
            restart_glyph, violation_glyph,
        },
    },
    svg::{Path, Svg},
};

pub(super) fn legend(scene: &Scene<'_>) -> Legend<'static> {
    let mut legend = Legend::default();
    add_arrows(&mut legend, scene);
    add_bars(&mut legend, scene);
    add_gaps(&mut legend, scene);
    if !scene.partitions.is_empty() {
        legend.add("network cut", |svg, x, y| swatch(svg, "partition", x, y));
    }
    for (kind, words) in [
        (MarkKind::Ask, "ask"),
        (MarkKind::Tell, "tell"),
        (MarkKind::Timer, "timer"),
        (MarkKind::Note, "note"),
    ] {
        if scene.marks.iter().any(|mark| mark.kind == kind) {
            legend.add(words, move |svg, x, y| {
                mark_glyph(svg, kind, x + SWATCH / 2.0, y, "");
            });
        }
    }
    add_accesses(&mut legend, scene);
    if scene.violations().next().is_some() {
        legend.add("violation", |svg, x, y| {
            svg.tag("g")
                .attr("transform", &small(x + SWATCH / 2.0, y))
                .open();
            violation_glyph(svg, 0.0, 0.0, "");
            svg.close();
        });
    }
    if scene.cycle.is_some() {
        legend.add("repeats for ever", |svg, x, y| {
            let path = Path::from(x, y + 5.0)
                .to(x, y - 3.0)
                .to(x + SWATCH, y - 3.0);
            let path = path.to(x + SWATCH, y + 5.0);
            svg.tag("path")
                .attr("class", "bracket")
                .attr("d", path.as_str())
                .empty();
        });
    }
    legend
}

/// The registers or their arrays, each in its colour, and how a read differs from a write.
fn add_accesses(legend: &mut Legend<'static>, scene: &Scene<'_>) {
    for (place, name) in scene.registers.names.iter().enumerate() {
        legend.add(name, move |svg, x, y| {
            let at = (x + SWATCH / 2.0, y);
            access_glyph(svg, MarkKind::Write, Some(Look::of(place)), at, "");
        });
    }
    if scene.marks.iter().any(|mark| mark.kind == MarkKind::Read) {
        legend.add("read: hollow", |svg, x, y| {
            let at = (x + SWATCH / 2.0, y);
            access_glyph(svg, MarkKind::Read, Some(Look::of(0)), at, "");
        });
    }
}

/// The kinds of messages, then what may become of one.
fn add_arrows(legend: &mut Legend<'static>, scene: &Scene<'_>) {
    for (place, name) in scene.kinds.names.iter().enumerate() {
        legend.add(name, move |svg, x, y| {
            sample(
                svg,
                (x, x + SWATCH, y),
                Some(Look::of(place)),
                &Fate::Delivered,
            );
        });
    }
    let unnamed =
        |fate: &Fate, label: &str| *fate != Fate::Delivered || scene.kinds.look(label).is_none();
    let lost = Fate::Lost {
        reason: String::new(),
    };
    for (fate, words) in [
        (Fate::Delivered, "message"),
        (lost, "lost message"),
        (Fate::InFlight, "in flight at the end"),
        (Fate::Duplicate, "duplicate"),
    ] {
        let same = |of: &Fate| std::mem::discriminant(of) == std::mem::discriminant(&fate);
        let mut arrows = scene.arrows.iter();
        if !arrows.any(|arrow| same(&arrow.fate) && unnamed(&arrow.fate, &arrow.label)) {
            continue;
        }
        let length = if matches!(fate, Fate::Lost { .. }) {
            20.0
        } else {
            SWATCH
        };
        legend.add(words, move |svg, x, y| {
            sample(svg, (x, x + length, y), None, &fate);
        });
    }
}

fn sample(svg: &mut Svg, (left, right, y): (f64, f64, f64), look: Option<Look>, fate: &Fate) {
    svg.group("sample");
    Stroke::straight((left, y), (right, y)).paint(svg, look, fate, "");
    svg.close();
}

/// The classes, also those that somebody only waits for; one entry for all who wait.
fn add_bars(legend: &mut Legend<'static>, scene: &Scene<'_>) {
    let classes = bar_classes(scene);
    let occurs = |style: BarStyle, class: &str| {
        let mut bars = scene.bars.iter();
        bars.any(|bar| bar.style == style && bar.class == class)
    };
    for &(class, hue) in &classes {
        if class != WAITING || occurs(BarStyle::Solid, class) {
            let words = if class.is_empty() { "inside" } else { class };
            legend.add(words, move |svg, x, y| {
                bar_shape(svg, BarStyle::Solid, hue, (x, x + SWATCH), y, "");
            });
        }
    }
    let mut waiting = (classes.iter()).filter(|class| occurs(BarStyle::Hatched, class.0));
    let Some(&(class, hue)) = waiting.next() else {
        return;
    };
    let alone = waiting.next().is_none() && class == WAITING;
    let (words, hue) = match alone {
        true => (WAITING, hue),
        false => ("waiting (same colours)", 6),
    };
    legend.add(words, move |svg, x, y| {
        bar_shape(svg, BarStyle::Hatched, hue, (x, x + SWATCH), y, "");
    });
}

fn add_gaps(legend: &mut Legend<'static>, scene: &Scene<'_>) {
    if scene.gaps.iter().any(|gap| gap.kind == GapKind::Crash) {
        legend.add("crashed until restarted", |svg, x, y| {
            swatch(svg, "crash", x, y);
            crash_glyph(svg, x + 5.5, y);
            restart_glyph(svg, x + SWATCH - 6.0, y);
        });
    }
    if scene.gaps.iter().any(|gap| gap.kind == GapKind::Pause) {
        legend.add("paused", |svg, x, y| {
            swatch(svg, "pause", x, y);
            pause_glyph(svg, x + SWATCH / 2.0, y);
        });
    }
}

fn swatch(svg: &mut Svg, class: &str, x: f64, y: f64) {
    svg.tag("rect")
        .attr("class", class)
        .rect(x, y - 7.0, SWATCH, 14.0)
        .empty();
}

fn small(x: f64, y: f64) -> String {
    use crate::draw::svg::number;
    format!("translate({} {}) scale(0.6)", number(x), number(y))
}
