//! How much room a text takes. The reader's font is not known here, so the widths are those of a
//! common sans-serif face, rounded up: a label is rather dropped than drawn over another.

/// Labels longer than this are cut; the whole text is in the tooltip.
pub(super) const LABEL_CHARS_MAX: usize = 40;
/// Tooltips longer than this are cut, so that a hostile trace cannot make an endless file.
pub(super) const TOOLTIP_CHARS_MAX: usize = 240;
/// Size of the labels on arrows, bars and marks.
pub(super) const LABEL_SIZE: f64 = 11.0;

/// The estimated width of `text` at a font size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | '\'' | '.' | ',' | ':' | ';' | '|' | '!' => 0.31,
        'f' | 't' | 'r' | 'I' | '(' | ')' | '[' | ']' | ' ' | '-' | '/' => 0.39,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '→' => 0.95,
        'A'..='Z' | '=' | '+' | '<' | '>' => 0.72,
        '\u{1100}'.. if !('\u{2000}'..'\u{2e00}').contains(&c) => 1.05,
        _ => 0.62,
    }
}

/// The text, cut to a number of characters with an ellipsis, on one line.
pub(super) fn cut(text: &str, chars_max: usize) -> String {
    let mut kept: String = text.chars().take(chars_max).collect();
    if kept.len() < text.len() {
        kept.pop();
        kept.push('…');
    }
    kept.replace(['\n', '\r', '\t'], " ")
}

/// Breaks a text between words into lines of at most `room`; what does not fit into `lines_max`
/// lines is cut with an ellipsis.
pub(super) fn wrap(text: &str, size: f64, room: f64, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = cut(word, (room / size).max(8.0) as usize);
        let room_for_lines = lines.len() < lines_max;
        match lines.last_mut() {
            Some(line) if width(line, size) + width(&word, size) + size * 0.4 <= room => {
                line.push(' ');
                line.push_str(&word);
            }
            _ if room_for_lines => lines.push(word),
            Some(line) => {
                line.push_str(" …");
                break;
            }
            None => break,
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_counts_characters_not_bytes() {
        assert_eq!(cut("señal", 5), "señal");
        assert_eq!(cut("señales", 5), "seña…");
        assert_eq!(cut("two\nlines", 20), "two lines");
    }

    #[test]
    fn wrapped_lines_fit_and_keep_every_word() {
        let text = "mutual exclusion is broken because two processes are inside at once";
        let lines = wrap(text, 12.0, 160.0, 10);
        assert!(lines.len() > 1);
        assert!(lines.iter().all(|line| width(line, 12.0) <= 160.0));
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn what_does_not_fit_is_marked() {
        let lines = wrap("one two three four five six", 12.0, 60.0, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].ends_with('…'));
        assert!(wrap("", 12.0, 60.0, 2).is_empty());
    }
}
