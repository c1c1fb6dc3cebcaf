//! What is printed: listings for people, and the same figures for programs.

use std::fmt::{self, Display};

use comfy_table::{Cell, CellAlignment, Table, presets};

/// A time in the unit that suits it.
pub(super) use crate::plan::alternatives::readable as seconds;

/// Names and values in two columns.
pub(super) struct Listing(Table);

impl Listing {
    /// An empty listing.
    pub(super) fn new() -> Listing {
        Listing(plain_table())
    }

    /// Adds a line.
    pub(super) fn line(&mut self, name: &str, value: impl Display) -> &mut Self {
        self.0.add_row([name.to_owned(), value.to_string()]);
        self
    }
}

impl Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&indented(&self.0))
    }
}

/// A table without lines.
pub(super) fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// A table as text, without the blanks that fill its last column.
pub(super) fn indented(table: &Table) -> String {
    table
        .lines()
        .map(|line| format!(" {}\n", line.trim_end()))
        .collect()
}

/// A cell with a number: aligned at its right.
pub(super) fn number(value: impl Display) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}

/// A number of bytes in the unit that suits it.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} bytes");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number to six places, with an exponent where those would not show it.
pub(super) fn figure(value: f64) -> String {
    if value == 0.0 || (1e-3..1e9).contains(&value.abs()) {
        format!("{value:.6}")
    } else {
        format!("{value:.6e}")
    }
}

/// The `count` largest coefficients by magnitude, with their columns.
pub(super) fn largest(coef: &[f64], count: usize) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> = coef.iter().copied().enumerate().collect();
    let order =
        |a: &(usize, f64), b: &(usize, f64)| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0));
    if count < ranked.len() {
        ranked.select_nth_unstable_by(count, order);
        ranked.truncate(count);
    }
    ranked.sort_unstable_by(order);
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_coefficients_come_first_whatever_their_sign() {
        assert_eq!(largest(&[1.0, -3.0, 2.0, 0.5], 2), [(1, -3.0), (2, 2.0)]);
        assert_eq!(largest(&[1.0, -1.0], 5), [(0, 1.0), (1, -1.0)]);
        assert!(largest(&[], 5).is_empty());
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!(bytes(1023), "1023 bytes");
        assert_eq!(bytes(3 << 30), "3.0 GiB");
        assert_eq!(seconds(0.0025), "2.5 ms");
        assert_eq!(seconds(2.5e-5), "25 µs");
        assert_eq!(seconds(61.0), "61.00 s");
    }

    #[test]
    fn figures_show_small_and_large_numbers() {
        assert_eq!(figure(-0.5), "-0.500000");
        assert_eq!(figure(0.0), "0.000000");
        assert_eq!(figure(1.5e-7), "1.500000e-7");
        assert_eq!(figure(f64::NAN), "NaN");
    }

    #[test]
    fn a_listing_is_aligned() {
        let mut lines = Listing::new();
        lines.line("a", 1).line("longer", 2);
        assert_eq!(lines.to_string(), "  a       1\n  longer  2\n");
    }
}
