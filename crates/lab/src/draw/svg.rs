//! A tiny SVG writer. It escapes whatever it is given, closes what it opened and writes numbers with
//! one decimal, so a picture is well-formed and repeats byte for byte whatever the data was.

use std::fmt::Write;

use super::theme;

/// Coordinates beyond this are a mistake of the layout; they are cut so that the file stays valid.
const COORDINATE_MAX: f64 = 1e7;

/// A picture under construction.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
    open: Vec<&'static str>,
}

impl Svg {
    /// Opens a picture with its style sheet, background and accessible description. It keeps its size
    /// on a narrow page, which scrolls, because words that shrink cannot be read.
    pub(super) fn picture(width: f64, height: f64, title: &str, description: &str) -> Self {
        let mut svg = Svg {
            text: String::new(),
            open: Vec::new(),
        };
        let view = format!("0 0 {} {}", number(width), number(height));
        svg.tag("svg")
            .attr("xmlns", "http://www.w3.org/2000/svg")
            .attr("class", theme::ROOT_CLASS)
            .attr("viewBox", &view)
            .num("width", width)
            .num("height", height)
            .attr("role", "img")
            .attr("aria-label", title)
            .open();
        svg.tag("title").text(title);
        svg.tag("desc").text(description);
        svg.tag("style").text(&theme::style_sheet());
        svg.tag("rect")
            .attr("class", "paper")
            .num("width", width)
            .num("height", height)
            .empty();
        svg
    }

    /// Starts an element; its attributes follow, then one of the ends of [`Tag`].
    pub(super) fn tag(&mut self, name: &'static str) -> Tag<'_> {
        self.text.push('<');
        self.text.push_str(name);
        Tag { svg: self, name }
    }

    /// A group that holds the elements until [`Svg::close`].
    pub(super) fn group(&mut self, class: &str) {
        self.tag("g").attr("class", class).open();
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.tag("line")
            .attr("class", class)
            .num("x1", from.0)
            .num("y1", from.1)
            .num("x2", to.0)
            .num("y2", to.1)
            .empty();
    }

    /// A line of text, anchored as the style sheet says for `class`.
    pub(super) fn words(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.tag("text")
            .attr("class", class)
            .num("x", x)
            .num("y", y)
            .text(text);
    }

    /// Closes the element opened last.
    pub(super) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            let _ = writeln!(self.text, "</{name}>");
        }
    }

    /// Closes everything and gives the text.
    pub(super) fn finish(mut self) -> String {
        while !self.open.is_empty() {
            self.close();
        }
        self.text
    }
}

/// An element whose attributes are being written.
#[derive(Debug)]
#[must_use]
pub(super) struct Tag<'a> {
    svg: &'a mut Svg,
    name: &'static str,
}

impl Tag<'_> {
    pub(super) fn attr(self, name: &str, value: &str) -> Self {
        let _ = write!(self.svg.text, " {name}=\"");
        escape(value, &mut self.svg.text);
        self.svg.text.push('"');
        self
    }

    pub(super) fn num(self, name: &str, value: f64) -> Self {
        let _ = write!(self.svg.text, " {name}=\"{}\"", number(value));
        self
    }

    pub(super) fn rect(self, x: f64, y: f64, width: f64, height: f64) -> Self {
        self.num("x", x)
            .num("y", y)
            .num("width", width.max(0.0))
            .num("height", height.max(0.0))
    }

    pub(super) fn empty(self) {
        self.svg.text.push_str("/>\n");
    }

    pub(super) fn text(self, text: &str) {
        self.svg.text.push('>');
        escape(text, &mut self.svg.text);
        let _ = writeln!(self.svg.text, "</{}>", self.name);
    }

    /// Ends the element with a tooltip as its only content.
    pub(super) fn titled(self, title: &str) {
        if title.is_empty() {
            return self.empty();
        }
        self.svg.text.push_str("><title>");
        escape(title, &mut self.svg.text);
        let _ = writeln!(self.svg.text, "</title></{}>", self.name);
    }

    pub(super) fn open(self) {
        self.svg.text.push_str(">\n");
        self.svg.open.push(self.name);
    }
}

/// The `d` of a path.
#[derive(Debug, Default)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn from(x: f64, y: f64) -> Self {
        Path::default().jump(x, y)
    }

    pub(super) fn jump(self, x: f64, y: f64) -> Self {
        self.put('M', &[x, y])
    }

    pub(super) fn to(self, x: f64, y: f64) -> Self {
        self.put('L', &[x, y])
    }

    pub(super) fn bend(self, control: (f64, f64), x: f64, y: f64) -> Self {
        self.put('Q', &[control.0, control.1, x, y])
    }

    pub(super) fn shut(mut self) -> Self {
        self.0.push('Z');
        self
    }

    /// The two strokes of a cross.
    pub(super) fn cross(self, x: f64, y: f64, reach: f64) -> Self {
        self.jump(x - reach, y - reach)
            .to(x + reach, y + reach)
            .jump(x - reach, y + reach)
            .to(x + reach, y - reach)
    }

    fn put(mut self, command: char, numbers: &[f64]) -> Self {
        self.0.push(command);
        for (i, value) in numbers.iter().enumerate() {
            if i > 0 {
                self.0.push(' ');
            }
            self.0.push_str(&number(*value));
        }
        self
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One decimal, always; never `-0.0`, never anything but a number.
pub(super) fn number(value: f64) -> String {
    let finite = if value.is_finite() { value } else { 0.0 };
    let tenths = (finite.clamp(-COORDINATE_MAX, COORDINATE_MAX) * 10.0).round();
    // Adding zero turns a negative zero into a plain one.
    format!("{:.1}", tenths / 10.0 + 0.0)
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            // XML 1.0 has no way to write these.
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Panics unless every tag is closed in order and no bare `<` or `&` is left.
    pub(crate) fn assert_well_formed(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg;
        let mut roots = 0;
        while let Some(at) = rest.find('<') {
            assert_entities(&rest[..at]);
            let end = at + rest[at..].find('>').expect("a tag ends");
            let tag = &rest[at + 1..end];
            assert!(!tag.contains('<'), "a tag inside a tag: {tag}");
            assert_entities(tag);
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name), "closed out of order");
                continue;
            }
            assert_eq!(tag.matches('"').count() % 2, 0, "an open quote: {tag}");
            roots += usize::from(open.is_empty());
            let name = tag.split([' ', '/']).next().expect("a name");
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
        assert_eq!(roots, 1, "one root");
        assert!(rest.trim().is_empty(), "text after the root");
        assert!(
            !svg.contains("NaN") && !svg.contains("inf\""),
            "not a number"
        );
    }

    fn assert_entities(text: &str) {
        for (at, _) in text.match_indices('&') {
            let known = ["&amp;", "&lt;", "&gt;", "&quot;", "&#39;"];
            assert!(
                known.iter().any(|entity| text[at..].starts_with(entity)),
                "a bare ampersand: {text}"
            );
        }
    }

    #[test]
    fn whatever_the_text_says_it_stays_text() {
        let mut svg = Svg::picture(10.0, 10.0, "a<b & \"c\"", "]]>");
        svg.tag("text").attr("class", "\"><script>").text("</svg>");
        svg.words("label", f64::NAN, f64::INFINITY, "nul \0 and \u{ffff}");
        let text = svg.finish();
        assert_well_formed(&text);
        assert!(!text.contains("<script"));
        assert!(text.contains("a&lt;b &amp; &quot;c&quot;"));
        assert!(text.contains("nul \u{fffd} and \u{fffd}"));
    }

    #[test]
    fn numbers_have_one_decimal_and_no_negative_zero() {
        assert_eq!(number(-0.04), "0.0");
        assert_eq!(number(2.25), "2.3");
        assert_eq!(number(-1e300), "-10000000.0");
        assert_eq!(number(f64::NAN), "0.0");
    }

    #[test]
    fn finishing_closes_what_is_open() {
        let mut svg = Svg::picture(1.0, 1.0, "t", "d");
        svg.group("a");
        svg.group("b");
        assert_well_formed(&svg.finish());
    }

    #[test]
    #[should_panic(expected = "closed out of order")]
    fn the_check_notices_a_wrong_nesting() {
        assert_well_formed("<svg><g></svg></g>");
    }
}
