//! Where labels go. A [`Sheet`] knows what is taken and refuses whatever would overlap it; an
//! [`Ink`] knows where lines run, so that a label can choose the place where it hides the fewest.

/// A rectangle, turned about its centre.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slab {
    pub(super) x: f64,
    pub(super) y: f64,
    half_width: f64,
    half_height: f64,
    /// Radians, clockwise on the screen.
    pub(super) angle: f64,
    cos: f64,
    sin: f64,
}

/// Left, top, right, bottom.
pub(super) type Bounds = (f64, f64, f64, f64);

impl Slab {
    pub(super) fn level(x: f64, y: f64, width: f64, height: f64) -> Self {
        Slab::turned(x, y, width, height, 0.0)
    }

    pub(super) fn turned(x: f64, y: f64, width: f64, height: f64, angle: f64) -> Self {
        Slab {
            x,
            y,
            half_width: width / 2.0,
            half_height: height / 2.0,
            angle,
            cos: angle.cos(),
            sin: angle.sin(),
        }
    }

    pub(super) fn bounds(&self) -> Bounds {
        let dx = self.reach(1.0, 0.0);
        let dy = self.reach(0.0, 1.0);
        (self.x - dx, self.y - dy, self.x + dx, self.y + dy)
    }

    /// Half the length of the shadow that the slab throws on a unit direction.
    fn reach(&self, dx: f64, dy: f64) -> f64 {
        self.half_width * (self.cos * dx + self.sin * dy).abs()
            + self.half_height * (self.cos * dy - self.sin * dx).abs()
    }

    /// Two convex shapes are apart exactly when one of their edges' directions separates them.
    pub(super) fn overlaps(&self, other: &Slab) -> bool {
        let (dx, dy) = (other.x - self.x, other.y - self.y);
        [self, other].iter().all(|slab| {
            [(slab.cos, slab.sin), (-slab.sin, slab.cos)]
                .iter()
                .all(|&(ux, uy)| {
                    (dx * ux + dy * uy).abs() < self.reach(ux, uy) + other.reach(ux, uy)
                })
        })
    }

    /// How far a point lies outside of the slab.
    #[cfg(test)]
    pub(super) fn distance(&self, (x, y): (f64, f64)) -> f64 {
        let (dx, dy) = (x - self.x, y - self.y);
        let along = (dx * self.cos + dy * self.sin).abs() - self.half_width;
        let across = (dy * self.cos - dx * self.sin).abs() - self.half_height;
        along.max(0.0).hypot(across.max(0.0))
    }

    fn holds(&self, x: f64, y: f64) -> bool {
        let (dx, dy) = (x - self.x, y - self.y);
        (dx * self.cos + dy * self.sin).abs() <= self.half_width
            && (dy * self.cos - dx * self.sin).abs() <= self.half_height
    }
}

const CELL_WIDTH: f64 = 48.0;
const CELL_HEIGHT: f64 = 24.0;
/// A cell with this many slabs counts as full: no label fits there, and looking stays cheap.
const CELL_SLABS_MAX: usize = 24;
/// A cell remembers this many points of lines; more would not change the choice.
const CELL_INK_MAX: usize = 64;

/// Cells over a rectangle; whatever lies outside belongs to the nearest cell.
#[derive(Debug)]
struct Grid<T> {
    left: f64,
    top: f64,
    columns: usize,
    rows: usize,
    cells: Vec<Vec<T>>,
}

impl<T> Grid<T> {
    fn new((left, top, right, bottom): Bounds) -> Self {
        let columns = ((right - left).max(0.0) / CELL_WIDTH) as usize + 1;
        let rows = ((bottom - top).max(0.0) / CELL_HEIGHT) as usize + 1;
        Grid {
            left,
            top,
            columns,
            rows,
            cells: (0..columns * rows).map(|_| Vec::new()).collect(),
        }
    }

    fn column(&self, x: f64) -> usize {
        (((x - self.left) / CELL_WIDTH).max(0.0) as usize).min(self.columns - 1)
    }

    fn row(&self, y: f64) -> usize {
        (((y - self.top) / CELL_HEIGHT).max(0.0) as usize).min(self.rows - 1)
    }

    /// The cells that a rectangle touches.
    fn touched(&self, bounds: Bounds) -> impl Iterator<Item = usize> + use<T> {
        let columns = self.column(bounds.0)..=self.column(bounds.2);
        let rows = self.row(bounds.1)..=self.row(bounds.3);
        let width = self.columns;
        rows.flat_map(move |row| columns.clone().map(move |column| row * width + column))
    }
}

/// What is taken on the paper.
#[derive(Debug)]
pub(super) struct Sheet {
    bounds: Bounds,
    grid: Grid<Slab>,
}

impl Sheet {
    pub(super) fn new(bounds: Bounds) -> Self {
        Sheet {
            bounds,
            grid: Grid::new(bounds),
        }
    }

    /// Whether a slab lies on the sheet and overlaps nothing taken.
    pub(super) fn is_free(&self, slab: &Slab) -> bool {
        let (left, top, right, bottom) = slab.bounds();
        let on_sheet = left >= self.bounds.0
            && top >= self.bounds.1
            && right <= self.bounds.2
            && bottom <= self.bounds.3;
        on_sheet
            && self.grid.touched(slab.bounds()).all(|cell| {
                let taken = &self.grid.cells[cell];
                taken.len() < CELL_SLABS_MAX && !taken.iter().any(|other| other.overlaps(slab))
            })
    }

    /// Takes the place whether it is free or not: for what is drawn in any case.
    pub(super) fn take(&mut self, slab: Slab) {
        for cell in self.grid.touched(slab.bounds()) {
            let taken = &mut self.grid.cells[cell];
            if taken.len() < CELL_SLABS_MAX {
                taken.push(slab);
            }
        }
    }

    /// Takes the first candidate that is free.
    pub(super) fn first_free(
        &mut self,
        candidates: impl IntoIterator<Item = Slab>,
    ) -> Option<Slab> {
        let slab = candidates.into_iter().find(|slab| self.is_free(slab))?;
        self.take(slab);
        Some(slab)
    }

    /// Takes the free candidate that hides the least ink of lines other than `line`, and says how many
    /// points it hides, at most `hidden_max`; each place in the order of the candidates weighs as much
    /// as two.
    pub(super) fn clearest(
        &mut self,
        candidates: impl IntoIterator<Item = Slab>,
        ink: &Ink,
        line: usize,
        hidden_max: usize,
    ) -> Option<(Slab, usize)> {
        let mut best: Option<(usize, Slab, usize)> = None;
        for (i, slab) in candidates.into_iter().enumerate() {
            if best.is_some_and(|(cost, ..)| cost <= 2 * i) {
                break;
            }
            if !self.is_free(&slab) {
                continue;
            }
            let hidden = ink.hidden_by(&slab, line);
            let cost = 2 * i + hidden;
            if hidden > hidden_max {
                continue;
            }
            if best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, slab, hidden));
            }
        }
        let (_, slab, hidden) = best?;
        self.take(slab);
        Some((slab, hidden))
    }
}

/// Points along the lines of a picture.
#[derive(Debug)]
pub(super) struct Ink {
    grid: Grid<(f64, f64, usize)>,
}

/// Distance of two points of a line: less than the height of a label.
const INK_STEP: f64 = 5.0;

impl Ink {
    pub(super) fn new(bounds: Bounds) -> Self {
        Ink {
            grid: Grid::new(bounds),
        }
    }

    pub(super) fn add_line(&mut self, line: usize, from: (f64, f64), to: (f64, f64)) {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let points = (length / INK_STEP) as usize;
        for i in 0..=points {
            let part = i as f64 / points.max(1) as f64;
            let x = from.0 + (to.0 - from.0) * part;
            let y = from.1 + (to.1 - from.1) * part;
            let cell = self.grid.row(y) * self.grid.columns + self.grid.column(x);
            let points = &mut self.grid.cells[cell];
            if points.len() < CELL_INK_MAX {
                points.push((x, y, line));
            }
        }
    }

    fn hidden_by(&self, slab: &Slab, line: usize) -> usize {
        self.grid
            .touched(slab.bounds())
            .flat_map(|cell| &self.grid.cells[cell])
            .filter(|&&(x, y, of)| of != line && slab.holds(x, y))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::gallery::Lcg;

    const PAPER: Bounds = (0.0, 0.0, 600.0, 400.0);

    fn random_slab(random: &mut Lcg) -> Slab {
        let (x, y) = (random.below(640) as f64, random.below(440) as f64);
        let (width, height) = (
            5.0 + random.below(120) as f64,
            5.0 + random.below(20) as f64,
        );
        Slab::turned(x, y, width, height, random.below(314) as f64 / 100.0 - 1.57)
    }

    /// Overlap by brute force: some point of a fine lattice in `a` lies in `b`.
    fn share_a_point(a: &Slab, b: &Slab) -> bool {
        let lattice = |i: i32| f64::from(i) / 20.0;
        (-20..=20).any(|i| {
            (-20..=20).any(|j| {
                let (u, v) = (lattice(i) * a.half_width, lattice(j) * a.half_height);
                b.holds(a.x + u * a.cos - v * a.sin, a.y + u * a.sin + v * a.cos)
            })
        })
    }

    #[test]
    fn overlap_agrees_with_a_lattice_of_points() {
        let mut random = Lcg(7);
        let mut seen = [0, 0];
        for _ in 0..10_000 {
            let (a, b) = (random_slab(&mut random), random_slab(&mut random));
            let share = share_a_point(&a, &b) || share_a_point(&b, &a);
            // The lattice can miss a sliver, so only this direction must hold.
            assert!(!share || a.overlaps(&b), "{a:?} {b:?}");
            assert_eq!(a.overlaps(&b), b.overlaps(&a));
            seen[usize::from(share)] += 1;
        }
        assert!(
            seen[0] > 100 && seen[1] > 100,
            "both outcomes occur: {seen:?}"
        );
    }

    #[test]
    fn placed_labels_never_overlap_and_stay_on_the_sheet() {
        for seed in 0..20 {
            let mut random = Lcg(seed);
            let mut sheet = Sheet::new(PAPER);
            let ink = Ink::new(PAPER);
            let mut placed = Vec::new();
            for i in 0..400 {
                let candidates = [
                    random_slab(&mut random),
                    random_slab(&mut random),
                    random_slab(&mut random),
                ];
                placed.extend(match i % 2 {
                    0 => sheet.first_free(candidates),
                    _ => {
                        let found = sheet.clearest(candidates, &ink, i, usize::MAX);
                        found.map(|(slab, _)| slab)
                    }
                });
            }
            assert!(
                placed.len() > 20,
                "a sheet holds more than {}",
                placed.len()
            );
            for (i, a) in placed.iter().enumerate() {
                let (left, top, right, bottom) = a.bounds();
                assert!(left >= 0.0 && top >= 0.0 && right <= 600.0 && bottom <= 400.0);
                for b in &placed[..i] {
                    assert!(!share_a_point(a, b) && !share_a_point(b, a));
                }
            }
        }
    }

    #[test]
    fn a_label_avoids_a_line_that_is_not_its_own() {
        let mut ink = Ink::new(PAPER);
        ink.add_line(1, (0.0, 100.0), (600.0, 100.0));
        let on = Slab::level(300.0, 100.0, 80.0, 12.0);
        let off = Slab::level(300.0, 130.0, 80.0, 12.0);
        let place = |line| Sheet::new(PAPER).clearest([on, off], &ink, line, usize::MAX);
        assert_eq!(place(2), Some((off, 0)));
        assert_eq!(Sheet::new(PAPER).clearest([on], &ink, 2, 3), None);
        assert_eq!(place(1), Some((on, 0)), "its own line is no obstacle");
    }

    #[test]
    fn a_place_taken_by_force_is_refused_to_labels() {
        let mut sheet = Sheet::new(PAPER);
        let slab = Slab::level(300.0, 100.0, 500.0, 12.0);
        for _ in 0..1_000 {
            sheet.take(slab);
        }
        assert_eq!(sheet.first_free([slab]), None);
        assert!(sheet.is_free(&Slab::level(300.0, 300.0, 50.0, 12.0)));
    }
}
