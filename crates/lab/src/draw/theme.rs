//! The one style sheet of every picture, in a light and a dark edition. The hues are those of Okabe
//! and Ito, which people with any of the common colour vision deficiencies can tell apart; no
//! meaning rests on hue alone.

/// The class of the root element; every rule is scoped by it, so that a page may embed pictures.
pub(super) const ROOT_CLASS: &str = "testigo-picture";

/// How many hues there are for classes of bars and for series; more repeat them.
pub(super) const HUES: usize = 7;

/// A name in [`COLOURS`], its light value and its dark value.
type Colour = (&'static str, &'static str, &'static str);

const PALETTE: [Colour; 24] = [
    ("$hue0", "#0072b2", "#4aa3df"),
    ("$hue1", "#d55e00", "#f0863a"),
    ("$hue2", "#009e73", "#2fc79b"),
    ("$hue3", "#b8578a", "#dd8fb8"),
    ("$hue4", "#b07a00", "#f0b73c"),
    ("$hue5", "#3391cb", "#9bd3f5"),
    ("$hue6", "#6b6b6b", "#b5b5b5"),
    // The same hues for words, which need more contrast than lines.
    ("$text0", "#00629a", "#6cb8ea"),
    ("$text1", "#a84a00", "#f5a469"),
    ("$text2", "#00745a", "#4fd6ae"),
    ("$text3", "#9a3f70", "#e6a6c7"),
    ("$text4", "#7d5600", "#f0c463"),
    ("$text5", "#1d6d9f", "#b0dcf7"),
    ("$text6", "#5a5a5a", "#c4c4c4"),
    ("$paper", "#ffffff", "#15181d"),
    ("$ink", "#1c1f24", "#e8eaed"),
    ("$dim", "#5b626c", "#a2a9b3"),
    ("$faint", "#e3e6ea", "#2a2f37"),
    ("$lane", "#8b929c", "#7c8590"),
    ("$message", "#3b434e", "#c4cad2"),
    ("$crash", "#d55e00", "#f0863a"),
    ("$pause", "#b07a00", "#f0c75e"),
    ("$wrong", "#c4001d", "#ff4d5f"),
    ("$onwrong", "#ffffff", "#15181d"),
];

/// Rules that name no colour.
const SHAPES: &str = "\
@ text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:11px}
@ .heading{font-size:18px;font-weight:650}
@ .subheading{font-size:13px}
@ .label{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}
@ .middle{text-anchor:middle}
@ .end{text-anchor:end}
@ .name{font-size:13px;font-weight:600}
@ .callout{font-size:12px;font-weight:650}
@ .strong{font-weight:600}
@ .lane{stroke-width:1.3}
@ .dead{stroke-dasharray:2 5}
@ .arrow{stroke-width:1.3;stroke-linejoin:round}
@ .tail{fill:none}
@ .d1{stroke-dasharray:7 3}
@ .d2{stroke-dasharray:2.5 2.5}
@ .d3{stroke-dasharray:10 3 2 3}
@ .d4{stroke-dasharray:14 5}
@ .arrow .head,@ .arrow .cross{stroke-dasharray:none}
@ .flying .head{fill:none}
@ .folded{stroke-width:3;stroke-dasharray:.1 7;stroke-linecap:round}
@ .cross{fill:none;stroke-width:2.4;stroke-linecap:round}
@ .solid{stroke-width:1.4}
@ .hatch{fill:none;stroke-width:7;stroke-dasharray:1.6 3}
@ .edge{stroke-width:1;stroke-dasharray:5 4}
@ .glyph{stroke-width:1.5;stroke-linejoin:round}
@ .bracket{fill:none;stroke-width:1.8}
@ .line{fill:none;stroke-width:2;stroke-linejoin:round}
@ .bound{stroke-width:5;stroke-opacity:.45;stroke-dasharray:9 5}
@ .band{stroke-width:1;stroke-opacity:.55;stroke-dasharray:4 3}
@ .leader{fill:none;stroke-width:.8}
@ .axis-title{font-size:12px}
@ .direct{font-size:11.5px}
@ .claim{fill:none;stroke-width:1.8}
@ .dashed{stroke-dasharray:5 3}
@ .claimback{fill:none;stroke-width:4.4}
";

/// Rules that name colours; written once for each edition.
const COLOURS: &str = "\
@ .paper{fill:$paper}
@ text{fill:$ink}
@ .subheading,@ .quiet{fill:$dim}
@ .label{stroke:$paper}
@ .grid{stroke:$faint}
@ .axis{stroke:$dim}
@ .lane{stroke:$lane}
@ .arrow{stroke:$message;fill:$message}
@ .cutout{fill:$paper}
@ .torn{stroke:$lane;fill:none}
@ .crash{fill:$crash;fill-opacity:.13}
@ .crashed{stroke:$crash;fill:none}
@ .pause{fill:$pause;fill-opacity:.2}
@ .paused{stroke:$pause;fill:none}
@ .partition{fill:$hue5;fill-opacity:.13}
@ .edge{stroke:$hue5}
@ .cycle{fill:$hue3;fill-opacity:.09}
@ .bracket{stroke:$hue3}
@ .hook{fill:$hue3}
@ .ask{fill:$paper;stroke:$ink}
@ .tell{fill:$ink;stroke:$ink}
@ .timer{fill:$paper;stroke:$hue4}
@ .note{fill:$dim;stroke:$dim}
@ .wrong{fill:$wrong;stroke:$wrong}
@ .wrongline{stroke:$wrong;stroke-width:1.6}
@ .wrongback{stroke:$wrong;fill:$wrong;fill-opacity:.16}
@ .onwrong{fill:$onwrong;stroke:$onwrong}
@ .callout{fill:$onwrong;stroke:none}
@ .leader{stroke:$lane}
@ .claim{stroke:$ink}
@ .claimback{stroke:$paper}
";

/// The colours of hue `n`: of an arrow, of words, of a bar, of its hatching, of a line, of a dot, of
/// a band.
const HUE: &str = "\
@ .arrow.h#{stroke:$hue#;fill:$hue#}
@ .t#{fill:$text#}
@ .write.h#{fill:$hue#;stroke:$hue#}
@ .read.h#{fill:$paper;stroke:$hue#}
@ .solid.h#{fill:$tint#;stroke:$hue#}
@ .hatch.h#,@ .line.h#{stroke:$hue#}
@ .dot.h#{fill:$hue#;stroke:$paper}
@ .column.h#{fill:$hue#}
@ .band.h#{fill:$hue#;fill-opacity:.17;stroke:$hue#}
";

/// After the hues, because it holds for arrows of every hue.
const LAST: &str = "\
@ .lost .cross{stroke:$crash}
@ .band.faint{fill-opacity:.06}
@ .band.interval{fill-opacity:.3;stroke:none}
";

/// The whole sheet. Colours are written out instead of as custom properties, because converters
/// outside browsers do not know those.
pub(super) fn style_sheet() -> String {
    let scope = format!(".{ROOT_CLASS}");
    let mut colours = COLOURS.to_string();
    for hue in 0..HUES {
        colours.push_str(&HUE.replace('#', &hue.to_string()));
    }
    colours.push_str(LAST);
    let edition = |value: fn(&Colour) -> &'static str| {
        let mut rules = colours.clone();
        let paper = PALETTE
            .iter()
            .find(|colour| colour.0 == "$paper")
            .map_or("", value);
        for (hue, colour) in PALETTE.iter().take(HUES).enumerate() {
            rules = rules.replace(&format!("$tint{hue}"), &mixed(value(colour), paper));
        }
        // Longer names first: `$wrong` must not eat a longer name that starts with it.
        let mut palette = PALETTE;
        palette.sort_by_key(|(name, ..)| std::cmp::Reverse(name.len()));
        for colour in &palette {
            rules = rules.replace(colour.0, value(colour));
        }
        rules
    };
    let light = edition(|colour| colour.1);
    let dark = edition(|colour| colour.2);
    format!("\n{SHAPES}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
        .replace("@ ", &format!("{scope} "))
}

/// A third of one colour in another: bars must hide the lane that they lie on.
fn mixed(colour: &str, paper: &str) -> String {
    let part = |text: &str, i: usize| {
        let digits = text.get(1 + 2 * i..3 + 2 * i).unwrap_or("0");
        u32::from_str_radix(digits, 16).unwrap_or(0)
    };
    let mix = |i| (part(colour, i) + 2 * part(paper, i)) / 3;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tint_lies_between_its_colours() {
        assert_eq!(mixed("#300060", "#0090c0"), "#1060a0");
    }

    /// The relative luminance of WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let part = |i: usize| {
            let value = u8::from_str_radix(&colour[i..i + 2], 16).expect("hexadecimal");
            match f64::from(value) / 255.0 {
                low if low <= 0.039_28 => low / 12.92,
                high => ((high + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn words_and_lines_stand_out_from_the_paper_in_both_editions() {
        let paper = PALETTE.iter().find(|colour| colour.0 == "$paper");
        let &(_, light, dark) = paper.expect("there is paper");
        for (name, on_light, on_dark) in PALETTE {
            let least = match name.trim_end_matches(|c: char| c.is_ascii_digit()) {
                "$text" | "$ink" | "$dim" => 4.5,
                "$hue" | "$message" | "$lane" | "$wrong" => 3.0,
                _ => continue,
            };
            for (colour, paper) in [(on_light, light), (on_dark, dark)] {
                let found = contrast(colour, paper);
                assert!(found >= least, "{name} {colour}: {found:.2}");
            }
        }
    }

    #[test]
    fn every_colour_is_defined_and_every_rule_is_scoped() {
        let sheet = style_sheet();
        assert!(!sheet.contains('$'), "an unknown colour name");
        assert!(!sheet.contains('<') && !sheet.contains('&'));
        assert_eq!(sheet.matches('{').count(), sheet.matches('}').count());
        for line in sheet.lines().filter(|line| line.contains('{')) {
            assert!(
                line.starts_with('.') || line.starts_with("@media"),
                "{line}"
            );
        }
        for (_, light, dark) in PALETTE {
            assert!(sheet.contains(light) && sheet.contains(dark));
        }
    }
}
