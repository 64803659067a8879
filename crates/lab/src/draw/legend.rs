//! A legend: swatches with words, flowing into as many rows as the width asks for.

use super::{
    svg::Svg,
    text::{self, LABEL_SIZE},
};

/// Width of a swatch.
pub(super) const SWATCH: f64 = 28.0;
const ROW: f64 = 20.0;
const ENTRY_GAP: f64 = 22.0;
/// A legend with more entries says how many it left out.
const ENTRIES_MAX: usize = 40;

type Draw<'a> = Box<dyn Fn(&mut Svg, f64, f64) + 'a>;

/// Entries in the order of their first appearance.
#[derive(Default)]
pub(super) struct Legend<'a> {
    entries: Vec<(String, Draw<'a>)>,
    left_out: usize,
}

impl<'a> Legend<'a> {
    /// Adds an entry; `draw` paints the swatch from a left end and a middle height.
    pub(super) fn add(&mut self, words: &str, draw: impl Fn(&mut Svg, f64, f64) + 'a) {
        if self.entries.len() == ENTRIES_MAX {
            self.left_out += 1;
            return;
        }
        let words = text::cut(words, text::LABEL_CHARS_MAX);
        self.entries.push((words, Box::new(draw)));
    }

    pub(super) fn height(&self, room: f64) -> f64 {
        let rows = self.places(room).last().map_or(0, |&(_, row)| row + 1);
        rows as f64 * ROW + if self.left_out > 0 { ROW } else { 0.0 }
    }

    pub(super) fn paint(&self, svg: &mut Svg, left: f64, top: f64, room: f64) {
        svg.group("legend");
        for ((words, draw), (x, row)) in self.entries.iter().zip(self.places(room)) {
            let y = top + row as f64 * ROW + ROW / 2.0;
            draw(svg, left + x, y);
            svg.words("quiet", left + x + SWATCH + 7.0, y + 4.0, words);
        }
        if self.left_out > 0 {
            let words = format!("and {} more", self.left_out);
            let y = top + self.height(room) - ROW / 2.0;
            svg.words("quiet", left, y + 4.0, &words);
        }
        svg.close();
    }

    fn places(&self, room: f64) -> Vec<(f64, usize)> {
        let (mut x, mut row) = (0.0, 0);
        let mut places = Vec::with_capacity(self.entries.len());
        for (words, _) in &self.entries {
            let width = SWATCH + 7.0 + text::width(words, LABEL_SIZE);
            if x > 0.0 && x + width > room {
                (x, row) = (0.0, row + 1);
            }
            places.push((x, row));
            x += width + ENTRY_GAP;
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_flow_into_rows_and_a_long_legend_says_what_it_left_out() {
        let mut legend = Legend::default();
        for i in 0..ENTRIES_MAX + 3 {
            legend.add(&format!("entry {i}"), |_, _, _| {});
        }
        assert!(legend.height(300.0) > legend.height(900.0));
        let places = legend.places(300.0);
        assert!(places.windows(2).all(|pair| pair[0].1 <= pair[1].1));
        let mut svg = Svg::picture(300.0, 900.0, "", "");
        legend.paint(&mut svg, 0.0, 0.0, 300.0);
        assert!(svg.finish().contains("and 3 more"));
    }
}
