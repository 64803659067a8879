//! A small SVG writer: it escapes whatever it is given, and writes numbers with one decimal, so that the same flow gives
//! the same bytes.

use std::fmt::Write;

#[derive(Debug, Default)]
pub(super) struct Svg(String);

impl Svg {
    /// An element with nothing in it but a tooltip.
    pub(super) fn element(&mut self, name: &str, attributes: &[(&str, String)], tooltip: &str) {
        self.start(name, attributes);
        if tooltip.is_empty() {
            self.0.push_str("/>\n");
            return;
        }
        self.0.push('>');
        self.text("title", &[], tooltip);
        let _ = writeln!(self.0, "</{name}>");
    }

    pub(super) fn open(&mut self, name: &str, attributes: &[(&str, String)]) {
        self.start(name, attributes);
        self.0.push_str(">\n");
    }

    pub(super) fn close(&mut self, name: &str) {
        let _ = writeln!(self.0, "</{name}>");
    }

    pub(super) fn text(&mut self, name: &str, attributes: &[(&str, String)], text: &str) {
        self.start(name, attributes);
        self.0.push('>');
        escape(text, &mut self.0);
        let _ = writeln!(self.0, "</{name}>");
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    fn start(&mut self, name: &str, attributes: &[(&str, String)]) {
        let _ = write!(self.0, "<{name}");
        for (key, value) in attributes {
            let _ = write!(self.0, " {key}=\"");
            escape(value, &mut self.0);
            self.0.push('"');
        }
    }
}

/// One decimal at most, and never a negative zero.
pub(super) fn number(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0 + 0.0;
    format!("{tenths}")
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML 1.0 has no way to write these.
            '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
}
