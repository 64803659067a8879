//! What of a page is shown at a time: all of it where it fits, else as much of its list as the terminal has rows for,
//! between the heading and the question, which stay.

/// A heading, a list, and below it the state of the flow and the news.
#[derive(Default)]
pub(super) struct Page {
    pub(super) heading: String,
    pub(super) lines: Vec<String>,
    pub(super) foot: Vec<String>,
    pub(super) news: Vec<String>,
}

/// A terminal's columns and rows.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) width: usize,
    pub(super) height: usize,
}

/// A part of a page, and the first rows of the parts before and behind it.
pub(super) struct Part {
    pub(super) text: String,
    pub(super) parts: usize,
    pub(super) before: usize,
    pub(super) next: usize,
}

/// Terminals with fewer rows get no empty ones.
const AIRY: usize = 12;

impl Page {
    /// The part that holds the row `at` of the list, with `below` rows left for what is asked.
    pub(super) fn part(&self, at: usize, below: usize, size: Option<Size>) -> Part {
        let width = size.map_or(usize::MAX, |size| size.width);
        let room = size.map_or(usize::MAX, |size| size.height.saturating_sub(below));
        let heading = wrapped("", &self.heading, width);
        let list = rows("  ", &self.lines, width);
        let mut foot = rows("  ", &self.foot, width);
        let mut news = rows("* ", &self.news, width);
        let empty = vec![String::new()];
        let between = if foot.is_empty() { &[][..] } else { &empty };
        let whole = [&heading, &empty, &list, between, &foot, &empty, &news].concat();
        if whole.len() <= room {
            return Part {
                text: whole.join("\n") + "\n",
                parts: 1,
                before: 0,
                next: 0,
            };
        }
        let heading = vec![end(&self.heading, width)];
        news.truncate(room / 3);
        foot.truncate(room / 3);
        let air = if room < AIRY { &[][..] } else { &empty };
        let turn = |part: usize, parts: usize| {
            let text = format!("page {part}/{parts}: Enter on, p back");
            wrapped("", &text, width)
        };
        let turning = turn(list.len(), list.len());
        let fixed = [&heading, air, &turning, air, &news].concat().len();
        // The list comes before the state of the flow.
        foot.truncate(room.saturating_sub(fixed + 1));
        let shown = room.saturating_sub(fixed + foot.len()).max(1);
        let parts = list.len().div_ceil(shown).max(1);
        let part = (at / shown).min(parts - 1);
        let here: Vec<String> = list.into_iter().skip(part * shown).take(shown).collect();
        let turn = match parts {
            1 => Vec::new(),
            parts => turn(part + 1, parts),
        };
        Part {
            text: [&heading, air, &here, &turn, air, &foot, &news]
                .concat()
                .join("\n")
                + "\n",
            parts,
            before: (part + parts - 1) % parts * shown,
            next: (part + 1) % parts * shown,
        }
    }
}

/// The rows that a question takes, with some room for the answer.
pub(super) fn rows_of(question: &str, size: Option<Size>) -> usize {
    let width = size.map_or(usize::MAX, |size| size.width);
    wrapped("", &format!("{question} ____"), width).len()
}

fn rows(mark: &str, lines: &[String], width: usize) -> Vec<String> {
    lines
        .iter()
        .flat_map(|line| wrapped(mark, line, width))
        .collect()
}

/// A line as rows: broken at spaces, and within words that are longer than a row. The mark stands before the first.
fn wrapped(mark: &str, line: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (mark.to_owned(), mark.len());
    let mut bare = true;
    let mut turn = |row: &mut String, used: &mut usize| {
        let indent = " ".repeat(mark.len());
        *used = indent.len();
        rows.push(std::mem::replace(row, indent).trim_end().to_owned());
    };
    for word in line.split_inclusive(' ') {
        let wide: usize = word.trim_end().chars().map(columns).sum();
        if !bare && used + wide > width {
            turn(&mut row, &mut used);
        }
        for c in word.chars() {
            if used + columns(c) > width && c != ' ' && used > mark.len() {
                turn(&mut row, &mut used);
            }
            row.push(c);
            used += columns(c);
        }
        bare = false;
    }
    rows.push(row.trim_end().to_owned());
    rows
}

/// The end of a heading, as much as one row holds: it says where one is.
fn end(heading: &str, width: usize) -> String {
    let mut used = 1;
    let fits = |c: &char| {
        used += columns(*c);
        used <= width
    };
    let kept: Vec<char> = heading.chars().rev().take_while(fits).collect();
    let mark = if kept.len() < heading.chars().count() {
        "…"
    } else {
        ""
    };
    format!("{mark}{}", kept.into_iter().rev().collect::<String>())
}

/// Columns that a character takes on a terminal, never too few.
fn columns(c: char) -> usize {
    match c {
        '\0'..'\u{1100}' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(lines: usize) -> Page {
        Page {
            heading: "orders.flow: queues".into(),
            lines: (0..lines).map(|n| format!("[q{n}]")).collect(),
            foot: vec!["The flow is valid.".into()],
            news: vec!["done".into()],
        }
    }

    #[test]
    fn a_page_that_fits_is_shown_whole() {
        let wanted = "orders.flow: queues\n\n  [q0]\n  [q1]\n\n  The flow is valid.\n\n* done\n";
        let size = Size {
            width: 80,
            height: 9,
        };
        for size in [None, Some(size)] {
            let part = page(2).part(0, 1, size);
            assert_eq!((part.text.as_str(), part.parts), (wanted, 1));
        }
    }

    /// Whatever the terminal: nothing scrolls away, the heading stays, and going on shows every line once.
    #[test]
    fn every_line_can_be_reached_on_every_terminal() {
        let question = "(a)dd, (c)hange, (r)emove, (b)ack:";
        for (width, height) in [(80, 24), (30, 6), (20, 9), (200, 12), (33, 40)] {
            let size = Some(Size { width, height });
            let asked = rows_of(question, size);
            let page = page(40);
            let (mut at, mut seen) = (0, Vec::new());
            loop {
                let part = page.part(at, asked, size);
                let rows = part.text.lines().count() + asked;
                assert!(rows <= height, "{}", part.text);
                assert!(part.text.lines().all(|line| line.chars().count() <= width));
                assert!(part.text.starts_with("orders.flow: queues\n"));
                assert!(part.text.contains("* done"));
                let lines = part.text.lines().map(str::trim);
                seen.extend(lines.filter(|l| l.starts_with('[')).map(str::to_owned));
                assert_eq!(page.part(part.next, asked, size).before, at);
                at = part.next;
                if at == 0 {
                    break;
                }
            }
            assert_eq!(seen, page.lines);
        }
    }

    #[test]
    fn long_lines_are_broken_where_words_end() {
        assert_eq!(wrapped("* ", "one two three", 9), ["* one two", "  three"]);
        assert_eq!(wrapped("", "abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrapped("", "", 3), [""]);
        assert_eq!(end("/srv/orders.flow: queues", 10), "…w: queues");
        assert_eq!(end("orders", 7), "orders");
    }
}
