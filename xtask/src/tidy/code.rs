//! Reads Rust just far enough for the checks: blanks out comments and literals, marks which lines are test
//! code, and spells out grouped `use` items. The lines keep their numbers.

use super::file::in_word;

/// The code of a file, line by line.
pub(super) struct Code {
    lines: Vec<String>,
    test: Vec<bool>,
    uses: Vec<(usize, String)>,
}

impl Code {
    /// Line numbers from one, the line without comments and literals, and whether it is test code.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        let lines = self.lines.iter().zip(&self.test).enumerate();
        lines.map(|(i, (line, test))| (i + 1, line.as_str(), *test))
    }

    /// Every path that a `use` item brings in, groups spelled out, with the line on which it ends.
    pub(super) fn uses(&self) -> impl Iterator<Item = (usize, &str, bool)> {
        let uses = self.uses.iter();
        uses.map(|(line, path)| (*line, path.as_str(), self.test[line - 1]))
    }
}

pub(super) fn read(text: &str) -> Code {
    let code = blank(text);
    let lines: Vec<String> = code
        .iter()
        .collect::<String>()
        .lines()
        .map(str::to_owned)
        .collect();
    let mut test = test_lines(&code);
    test.resize(lines.len(), false);
    let uses = uses(&code);
    Code { lines, test, uses }
}

/// The text with spaces for everything inside comments and literals.
fn blank(text: &str) -> Vec<char> {
    let mut chars: Vec<char> = text.chars().collect();
    let mut i = 0;
    while i < chars.len() {
        let rest = &chars[i..];
        let hidden = match rest {
            ['/', '/', ..] => rest.iter().position(|c| *c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => block_comment(rest),
            ['"', ..] => quoted(rest, '"'),
            ['\'', '\\', ..] => quoted(rest, '\''),
            ['\'', _, '\'', ..] => 3,
            ['r', '"' | '#', ..] if starts_literal(&chars[..i]) => raw_string(rest),
            _ => 0,
        };
        for c in &mut chars[i..i + hidden] {
            if *c != '\n' {
                *c = ' ';
            }
        }
        i += hidden.max(1);
    }
    chars
}

/// Whether an `r` after these characters can begin a raw string: alone, or after the `b` or `c` of its kind.
fn starts_literal(before: &[char]) -> bool {
    match before {
        [.., c, 'b' | 'c'] => !in_word(*c),
        ['b' | 'c'] | [] => true,
        [.., c] => !in_word(*c),
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut i, mut depth) = (0, 0);
    while i < rest.len() {
        match rest[i..] {
            ['/', '*', ..] => (i, depth) = (i + 2, depth + 1),
            ['*', '/', ..] => (i, depth) = (i + 2, depth - 1),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut i = 1;
    while i < rest.len() {
        match rest[i] {
            '\\' => i += 2,
            c if c == quote => return i + 1,
            _ => i += 1,
        }
    }
    rest.len()
}

/// The length of a raw string, or 0 for a raw identifier.
fn raw_string(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0;
    }
    let body = hashes + 2;
    let closes = |end: &[char]| end[0] == '"' && end[1..].iter().all(|c| *c == '#');
    match rest[body..].windows(hashes + 1).position(closes) {
        Some(at) => body + at + hashes + 1,
        None => rest.len(),
    }
}

/// Which lines belong to an item under `#[cfg(test)]` or `#[test]`.
fn test_lines(code: &[char]) -> Vec<bool> {
    let mut marks = vec![false; code.iter().filter(|c| **c == '\n').count() + 1];
    let (mut i, mut line) = (0, 0);
    while i < code.len() {
        if let ['#', '[', ..] = code[i..] {
            let attribute = balanced(&code[i + 1..]);
            if is_test_attribute(&code[i + 1..i + 1 + attribute]) {
                let end = i + 1 + attribute + item(&code[i + 1 + attribute..]);
                let length = code[i..end].iter().filter(|c| **c == '\n').count();
                marks[line..=line + length].fill(true);
                (i, line) = (end, line + length);
                continue;
            }
        }
        line += usize::from(code[i] == '\n');
        i += 1;
    }
    marks
}

fn is_test_attribute(attribute: &[char]) -> bool {
    let text: String = attribute.iter().filter(|c| !c.is_whitespace()).collect();
    let test = text.split(|c| !in_word(c)).any(|word| word == "test");
    let condition = text.starts_with("[cfg(") && !text.contains("not(test");
    test && (condition || text == "[test]" || text.ends_with("::test]"))
}

/// The length of an item: to its first block's end, or to a `;` outside all brackets.
fn item(code: &[char]) -> usize {
    let mut i = 0;
    while i < code.len() {
        match code[i] {
            ';' => return i + 1,
            '{' => return i + balanced(&code[i..]),
            '(' | '[' => i += balanced(&code[i..]),
            _ => i += 1,
        }
    }
    i
}

/// The length from an opening bracket to the one that closes it.
fn balanced(code: &[char]) -> usize {
    let mut depth = 0;
    for (i, c) in code.iter().enumerate() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    code.len()
}

fn uses(code: &[char]) -> Vec<(usize, String)> {
    let (mut found, mut line) = (Vec::new(), 1);
    let mut i = 0;
    while i < code.len() {
        let starts = i == 0 || !in_word(code[i - 1]);
        if starts && matches!(code[i..], ['u', 's', 'e', ' ', ..]) {
            let tree = &code[i + 4..];
            let tree = &tree[..tree.iter().position(|c| *c == ';').unwrap_or(tree.len())];
            line = spell_out(tree, line, &mut found);
            i += 4 + tree.len();
        } else {
            line += usize::from(code[i] == '\n');
            i += 1;
        }
    }
    found
}

/// Adds the paths of one `use` tree and returns the line on which it ends.
fn spell_out(tree: &[char], mut line: usize, found: &mut Vec<(usize, String)>) -> usize {
    let mut prefixes = vec![String::new()];
    let mut path = String::new();
    for c in tree.iter().chain(&[',']) {
        match c {
            '{' => prefixes.push(path.clone()),
            ',' | '}' => {
                if !path.is_empty() && !path.ends_with("::") {
                    found.push((line, path.clone()));
                }
                if *c == '}' && prefixes.len() > 1 {
                    path = prefixes.pop().unwrap_or_default();
                } else {
                    path = prefixes.last().cloned().unwrap_or_default();
                }
            }
            '\n' => line += 1,
            // Only a renaming has a space inside a path: keep the words apart.
            ' ' if path.is_empty() || path.ends_with([':', ' ']) => {}
            c => path.push(*c),
        }
    }
    line
}

#[cfg(test)]
mod tests;
