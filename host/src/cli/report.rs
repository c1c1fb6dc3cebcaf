//! What is printed: listings for people, and the same figures for programs.

use std::fmt::{self, Display};
use std::path::Path;

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;

use crate::learning::{Convergence, LinearModel};
use crate::matrix::MatrixStats;

/// Coefficients that the report shows.
const COEFFICIENTS: usize = 10;

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

/// A time in the unit that suits it.
pub(super) fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}

/// A fit, as `--json` prints it; as text for people through [`Display`].
#[derive(Debug, Serialize)]
pub(super) struct FitSummary<'a> {
    model: &'static str,
    version: &'static str,
    coef: &'a [f64],
    intercept: f64,
    objective: f64,
    n_iter: usize,
    converged: bool,
    convergence: Convergence,
    gradient_norm_ratio: f64,
    r2: f64,
    rmse: f64,
    device: &'a str,
    device_name: &'a str,
    dtype: String,
    rows: usize,
    cols: usize,
    nnz: u64,
    density: f64,
    parse_seconds: f64,
    transfer_seconds: f64,
    seconds: f64,
    peak_device_bytes: u64,
    saved: Option<&'a Path>,
}

impl<'a> FitSummary<'a> {
    /// Collects the figures of a fit on `device` (such as `cuda:0`) to data that took `parse_seconds` to read.
    pub(super) fn new(
        model: &'a LinearModel,
        stats: &MatrixStats,
        device: &'a str,
        parse_seconds: f64,
        saved: Option<&'a Path>,
    ) -> Self {
        let report = model.report();
        FitSummary {
            model: "linreg",
            version: env!("CARGO_PKG_VERSION"),
            coef: model.coef(),
            intercept: model.intercept(),
            objective: model.objective(),
            n_iter: report.n_iter,
            converged: model.converged(),
            convergence: report.convergence,
            gradient_norm_ratio: report.residual_ratio,
            r2: report.metrics.r2,
            rmse: report.metrics.rmse,
            device,
            device_name: &report.device,
            dtype: model.dtype().to_string(),
            rows: stats.rows,
            cols: stats.cols,
            nnz: stats.nnz,
            density: stats.density(),
            parse_seconds,
            transfer_seconds: report.transfer_seconds,
            seconds: report.seconds,
            peak_device_bytes: report.peak_device_bytes,
            saved,
        }
    }

    fn add_data(&self, lines: &mut Listing) {
        let shape = format!("{} samples x {} features", self.rows, self.cols);
        let stored = format!("{} ({:.4} %)", self.nnz, 100.0 * self.density);
        lines
            .line("data", shape)
            .line("stored entries", stored)
            .line("reading", seconds(self.parse_seconds));
    }

    fn add_course(&self, lines: &mut Listing) {
        let verdict = if self.converged {
            "converged"
        } else {
            "NOT CONVERGED"
        };
        lines
            .line(
                "device",
                format_args!("{} ({}), {}", self.device_name, self.device, self.dtype),
            )
            .line("transfer", seconds(self.transfer_seconds))
            .line("iterations", format_args!("{}, {verdict}", self.n_iter))
            .line("objective", figure(self.objective))
            .line(
                "gradient norm",
                format_args!("{:.1e} of the first", self.gradient_norm_ratio),
            )
            .line("time", seconds(self.seconds))
            .line("peak device memory", bytes(self.peak_device_bytes));
    }

    fn add_result(&self, lines: &mut Listing) {
        lines
            .line("R²", figure(self.r2))
            .line("RMSE", figure(self.rmse))
            .line("intercept", figure(self.intercept));
        for (column, value) in largest(self.coef, COEFFICIENTS) {
            lines.line(&format!("coef[{column}]"), figure(value));
        }
        if self.coef.len() > COEFFICIENTS {
            let rest = self.coef.len() - COEFFICIENTS;
            lines.line(
                "",
                format_args!("and {rest} smaller ones; columns are counted from 0"),
            );
        }
        if let Some(path) = self.saved {
            lines.line("saved", path.display());
        }
    }
}

impl Display for FitSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lines = Listing::new();
        self.add_data(&mut lines);
        self.add_course(&mut lines);
        self.add_result(&mut lines);
        write!(f, "Linear regression\n{lines}")
    }
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
