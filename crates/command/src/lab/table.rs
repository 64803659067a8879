//! Plain tables for a terminal: columns as wide as they need, numbers to the right.

/// A table in the making.
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(heads: &[&str]) -> Table {
        Table {
            rows: vec![heads.iter().map(|head| (*head).to_owned()).collect()],
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn print(&self) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let numeric = |column: usize| {
            let cells = || {
                self.rows
                    .iter()
                    .skip(1)
                    .filter_map(move |row| row.get(column))
            };
            cells().next().is_some()
                && cells().all(|cell| cell == "-" || cell.parse::<f64>().is_ok())
        };
        let numeric: Vec<bool> = (0..columns).map(numeric).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let padding = " ".repeat(widths[column] - cell.chars().count());
                let cell = if numeric[column] {
                    format!("{padding}{cell}")
                } else {
                    format!("{cell}{padding}")
                };
                line.push_str(&cell);
                line.push_str("  ");
            }
            println!("{}", line.trim_end());
        }
    }
}

/// A published number as people write it: two decimals at most.
pub(super) fn bound(number: f64) -> String {
    let text = format!("{number:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A published range, and whether what was measured lies outside of it.
pub(super) fn published(range: Option<testigo_lab::Published>, kept: Option<bool>) -> String {
    let Some(range) = range else {
        return "-".into();
    };
    let range = match range.min == range.max {
        true => bound(range.min),
        false => format!("{} to {}", bound(range.min), bound(range.max)),
    };
    match kept {
        Some(false) => format!("{range}, OUTSIDE"),
        _ => range,
    }
}

/// Two decimals, or a dash where there is nothing.
pub(crate) fn number(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.2}"))
}

pub(crate) fn yes(value: bool) -> String {
    if value { "yes" } else { "NO" }.into()
}

/// A number of things: `1 node`, `2 nodes`.
pub(crate) fn many(count: u64, one: &str, several: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { several })
}

/// How many take part: processes where they share memory.
pub(crate) fn members(count: usize, share_memory: bool) -> String {
    match share_memory {
        true => many(count as u64, "process", "processes"),
        false => many(count as u64, "node", "nodes"),
    }
}
