//! A line of `<gpu>/<family>.jsonl`; `benches/results/README.md` explains the fields.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One case of one device.
#[derive(Debug, Deserialize)]
pub struct Record {
    /// The family.
    pub family: String,
    /// Work, shape and seed.
    pub case: Case,
    /// The element type.
    pub dtype: String,
    /// What it came to.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The device's name.
    pub device: String,
}

/// What was computed over what.
#[derive(Debug, Deserialize)]
pub struct Case {
    /// The product, or whatever was computed.
    pub work: String,
    /// The matrix or the vectors.
    #[serde(flatten)]
    pub shape: Shape,
}

/// A shape with its layout.
#[derive(Debug, Deserialize)]
#[serde(tag = "layout", rename_all = "snake_case")]
pub enum Shape {
    /// A dense matrix.
    Dense { rows: u64, cols: u64 },
    /// A sparse matrix with as many nonzeros in every row.
    Sparse { rows: u64, cols: u64, per_row: u64 },
    /// Vectors.
    Vector { len: u64 },
    /// Pairs of points.
    Points {
        targets: u64,
        sources: u64,
        dims: u64,
    },
    /// A matrix product.
    Product { m: u64, n: u64, k: u64 },
}

/// Figures, or why there are none.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Figures.
    Measured(Measured),
    /// The reason.
    Failed { failed: String },
}

/// The figures of a case.
#[derive(Debug, Deserialize)]
pub struct Measured {
    /// The kernel with its launch.
    pub variant: String,
    /// The median.
    pub median_us: f64,
    /// Bytes that have to be moved.
    pub bytes: f64,
    /// Share of the rate of a plain read.
    pub fraction_of_ceiling: Option<f64>,
    /// Medians of other libraries.
    #[serde(default)]
    pub peers: BTreeMap<String, f64>,
    /// Relative error against f64.
    pub error: Option<f64>,
    /// Further figures.
    #[serde(default)]
    pub details: BTreeMap<String, f64>,
}

/// Reads the lines of a file; empty ones do not count.
///
/// # Errors
/// With the number of a line that is no record.
pub fn parse(text: &str) -> Result<Vec<Record>> {
    let lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty());
    let record =
        |(index, line)| serde_json::from_str(line).with_context(|| format!("line {}", index + 1));
    lines.map(record).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_line_is_named() {
        let broken = parse("\n{").map(drop).expect_err("not a record");
        assert!(format!("{broken:#}").starts_with("line 2"), "{broken:#}");
    }
}
