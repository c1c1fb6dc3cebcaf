//! A line of `<gpu>/<family>.jsonl`; `benches/results/README.md` explains the fields.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

/// One case of one device.
#[derive(Debug, Clone, Deserialize)]
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
    /// When the run began, UTC, as text that sorts.
    #[serde(default)]
    pub date: String,
    /// What was measured, as `git describe` names it.
    #[serde(default)]
    pub commit: String,
}

impl Record {
    /// What tells this case from others, whenever it was measured.
    pub fn key(&self) -> String {
        let Case { work, shape } = &self.case;
        let Record {
            device,
            family,
            dtype,
            ..
        } = self;
        format!("{device}/{family}/{shape:?}/{dtype}/{work}")
    }
}

/// What was computed over what.
#[derive(Debug, Clone, Deserialize)]
pub struct Case {
    /// The product, or whatever was computed.
    pub work: String,
    /// The matrix or the vectors.
    #[serde(flatten)]
    pub shape: Shape,
}

/// A shape with its layout.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "layout", rename_all = "snake_case")]
pub enum Shape {
    /// A dense matrix.
    Dense { rows: u64, cols: u64 },
    /// A sparse matrix with as many nonzeros in every row.
    Sparse { rows: u64, cols: u64, per_row: u64 },
    /// A sparse matrix with row lengths and columns by laws.
    Drawn {
        rows: u64,
        cols: u64,
        per_row: u64,
        lengths: String,
        zipf_percent: u32,
    },
    /// Vectors.
    Vector { len: u64 },
    /// Pairs of points.
    Points {
        targets: u64,
        sources: u64,
        dims: u64,
    },
    /// A convolutional layer with sparse filters.
    Layer {
        batch: u64,
        channels: u64,
        filters: u64,
        side: u64,
        kernel: u64,
        permille: u64,
    },
    /// A matrix product.
    Product { m: u64, n: u64, k: u64 },
    /// Matrices of one shape.
    Batch { count: u64, rows: u64, cols: u64 },
}

/// Figures, or why there are none.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Outcome {
    /// Figures.
    Measured(Measured),
    /// The reason.
    Failed { failed: String },
}

/// The figures of a case.
#[derive(Debug, Clone, Deserialize)]
pub struct Measured {
    /// The kernel with its launch.
    pub variant: String,
    /// The median.
    pub median_us: f64,
    /// Bytes that have to be moved.
    pub bytes: f64,
    /// The rate of a plain read, 10⁹ bytes a second.
    pub ceiling_gbs: Option<f64>,
    /// Share of that rate.
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

/// Of several records of one case the one of the latest run, and of one run the last; in the order of the cases' first
/// records.
pub fn newest(records: Vec<Record>) -> Vec<Record> {
    let mut places = BTreeMap::<String, usize>::new();
    let mut newest = Vec::<Record>::new();
    for record in records {
        match places.get(&record.key()) {
            Some(&place) if record.date >= newest[place].date => newest[place] = record,
            Some(_) => {}
            None => {
                places.insert(record.key(), newest.len());
                newest.push(record);
            }
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_run_of_a_case_counts() {
        let line = |us: f64, date: &str, dtype: &str| {
            format!(
                r#"{{"family":"v","case":{{"work":"dot","layout":"vector","len":9}},"dtype":"{dtype}","variant":"k","#
            ) + &format!(r#""median_us":{us},"bytes":8,"device":"G","date":"{date}"}}"#)
        };
        let lines = [
            line(3.0, "2026-11-20", "f32"),
            line(1.0, "2026-11-21", "f32"),
            line(9.0, "2026-11-21", "f64"),
            line(2.0, "2026-11-21", "f32"),
            line(7.0, "2026-11-19", "f32"),
        ];
        let newest = newest(parse(&lines.join("\n")).expect("records"));
        let medians = newest.iter().map(|record| match &record.outcome {
            Outcome::Measured(measured) => measured.median_us,
            Outcome::Failed { .. } => f64::NAN,
        });
        assert_eq!(medians.collect::<Vec<_>>(), [2.0, 9.0]);
    }

    #[test]
    fn a_broken_line_is_named() {
        let broken = parse("\n{").map(drop).expect_err("not a record");
        assert!(format!("{broken:#}").starts_with("line 2"), "{broken:#}");
    }
}
