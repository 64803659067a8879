//! Names in a picture: how much of one is shown, and how wide that is at most. Which font a browser takes is not known; the
//! widths here are those of the widest that the picture's style asks for.

/// The size of a name's letters, as in the picture's style.
const FONT_SIZE: f64 = 13.0;
/// Names are cut here; the whole name is in the tooltip.
const NAME_CHARS_MAX: usize = 28;

/// A name as it is shown.
pub(super) fn shown(name: &str) -> String {
    match name.chars().count() > NAME_CHARS_MAX {
        true => name.chars().take(NAME_CHARS_MAX - 1).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

/// How wide a browser draws a text, at most.
pub(super) fn text_width(text: &str) -> f64 {
    FONT_SIZE * text.chars().map(width).sum::<f64>()
}

/// A letter's width in units of the font's size.
fn width(c: char) -> f64 {
    match c {
        '.' | 'i' | 'j' | 'l' | 'I' => 0.39,
        '-' | 'f' | 'r' | 't' => 0.5,
        '_' | 'c' | 's' | 'z' | 'J' => 0.6,
        'm' | 'w' | 'M' | 'W' => 1.11,
        'a'..='z' | '0'..='9' => 0.72,
        // Capitals, and letters of western languages with their accents.
        '\0'..='\u{ff}' => 0.86,
        '\u{100}'..'\u{1100}' => 1.11,
        // Chinese, Japanese, Korean and pictures.
        _ => 1.3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DejaVu Sans Bold, in thousandths of its size: what most Linux systems draw with, and wider than the others.
    const WIDEST: [(&str, &[u32]); 4] = [
        (
            "abcdefghijklmnopqrstuvwxyz",
            &[
                675, 716, 593, 716, 678, 435, 716, 712, 343, 343, 665, 343, 1042, 712, 687, 716,
                716, 493, 595, 478, 712, 652, 924, 645, 652, 582,
            ],
        ),
        (
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
            &[
                774, 762, 734, 830, 683, 683, 821, 837, 372, 372, 775, 637, 995, 837, 850, 733,
                850, 770, 720, 682, 812, 774, 1103, 771, 724, 725,
            ],
        ),
        ("0123456789", &[696; 10]),
        ("-._…", &[415, 380, 500, 1000]),
    ];

    #[test]
    fn no_letter_is_drawn_wider_than_it_is_taken_for() {
        for (letters, widths) in WIDEST {
            for (c, wide) in letters.chars().zip(widths) {
                let taken = width(c);
                assert!(taken * 1000.0 >= f64::from(*wide), "{c}: {taken}");
                assert!(taken * 1000.0 < f64::from(*wide) * 1.7, "{c}: {taken}");
            }
        }
        assert!(text_width("注文") >= 2.0 * FONT_SIZE);
    }

    #[test]
    fn long_names_are_cut() {
        let name = "n".repeat(NAME_CHARS_MAX);
        assert_eq!(shown(&name), name);
        let cut = shown(&format!("{name}n"));
        assert_eq!(cut.chars().count(), NAME_CHARS_MAX);
        assert!(cut.ends_with("n…"));
    }
}
