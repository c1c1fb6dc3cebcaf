//! Several GPUs as Markdown.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde_json::Value;

use super::{Case, Scaling, Sum, Way, Work};
use crate::table::grouped;

/// Bytes of sums that tables show: programs that were tried with small ones left others.
const BYTES: [u64; 10] = [
    224,
    4 << 10,
    32 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
    8 << 20,
    64 << 20,
    256 << 20,
    1 << 30,
];

impl Scaling {
    /// Under a heading of its own.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("### {}\n\n", self.title());
        for (name, _) in self.sheets() {
            let _ = write!(text, "![{}]({name})\n\n", self.title());
        }
        if let Some(forecast) = self.forecast() {
            let _ = write!(text, "{forecast}\n\n");
        }
        text += &self.times_of(
            Way::Strong,
            "As many rows in all: µs (times as fast as one GPU)",
        );
        text += &self.times_of(
            Way::Weak,
            "As many rows of each GPU: µs (of one GPU's work, done by each)",
        );
        text + &self.sums_table() + &self.validations_table() + &self.criteo_table()
    }

    fn times_of(&self, way: Way, title: &str) -> String {
        let mut all = BTreeSet::new();
        let works = Work::ALL.map(|work| {
            let (shapes, gpus) = self.measured(work, way);
            all.extend(gpus);
            (work, shapes)
        });
        if all.is_empty() {
            return String::new();
        }
        let heads = all.iter().map(|gpus| format!(" {gpus} GPUs |"));
        let mut text = format!(
            "{title}\n\n| data | work | 1 GPU |{}\n|---|---|--:|{}\n",
            heads.collect::<String>(),
            "--:|".repeat(all.len())
        );
        for (work, shapes) in works {
            for shape in shapes {
                let case = |way, gpus| Case {
                    shape: shape.to_owned(),
                    work,
                    way,
                    gpus,
                };
                let one = self.times.get(&case(Way::Strong, 1)).copied();
                let _ = write!(
                    text,
                    "| {shape} | {} | {} |",
                    work.name(),
                    one.map(us).unwrap_or_default()
                );
                for gpus in &all {
                    let _ = write!(text, " {} |", self.cell(&case(way, *gpus)));
                }
                text.push('\n');
            }
        }
        text.push('\n');
        text
    }

    fn cell(&self, case: &Case) -> String {
        let (Some(time), Some(gain)) = (self.times.get(case), self.gain(case)) else {
            return String::new();
        };
        let gain = match case.way {
            Way::Strong => format!("{gain:.2}"),
            Way::Weak => format!("{gain:.3}"),
        };
        let model = self.ratios.get(case).map(|ratio| {
            let off = 100.0 * (ratio - 1.0);
            format!(", model {off:+.0} %")
        });
        format!("{} ({gain}{})", us(*time), model.unwrap_or_default())
    }

    fn sums_table(&self) -> String {
        let shown = self.sums.iter();
        let shown: Vec<(&Sum, &f64)> = shown
            .filter(|(sum, _)| BYTES.contains(&sum.bytes))
            .collect();
        if shown.is_empty() {
            return String::new();
        }
        let gpus: BTreeSet<u64> = shown.iter().map(|(sum, _)| sum.gpus).collect();
        let rows: BTreeSet<(u64, &str)> = shown
            .iter()
            .map(|(sum, _)| (sum.bytes, sum.dtype.as_str()))
            .collect();
        let heads = gpus
            .iter()
            .map(|gpus| format!(" {gpus} GPUs, one launch | {gpus} GPUs, NCCL |"));
        let mut text = format!(
            "Sums over the GPUs, µs\n\n| bytes | type |{}\n|--:|---|{}\n",
            heads.collect::<String>(),
            "--:|".repeat(2 * gpus.len())
        );
        for (bytes, dtype) in rows {
            let _ = write!(text, "| {} | {dtype} |", grouped(bytes));
            for gpus in &gpus {
                for one_launch in [true, false] {
                    let sum = Sum {
                        bytes,
                        gpus: *gpus,
                        dtype: dtype.to_owned(),
                        one_launch,
                    };
                    let time = self.sums.get(&sum).map(|us| format!("{us:.1}"));
                    let _ = write!(text, " {} |", time.unwrap_or_default());
                }
            }
            text.push('\n');
        }
        text.push('\n');
        text
    }

    fn validations_table(&self) -> String {
        if self.validations.is_empty() {
            return String::new();
        }
        let mut text = "Cross-validation\n\n| data | fits | sums | GPUs | s | scores of one GPU |\n|---|--:|---|--:|--:|---|\n".to_owned();
        for ((shape, summation, gpus), line) in &self.validations {
            let same = match line["same"].as_bool() {
                Some(true) => "yes".to_owned(),
                _ => format!(
                    "within {:.1e}",
                    line["largest_difference_to_one"]
                        .as_f64()
                        .unwrap_or(f64::NAN)
                ),
            };
            let _ = writeln!(
                text,
                "| {shape} | {} | {summation} | {gpus} | {} | {same} |",
                line["fits"],
                seconds(line, "seconds")
            );
        }
        text + "\n"
    }

    fn criteo_table(&self) -> String {
        if self.criteo.is_empty() {
            return String::new();
        }
        let mut text = "From a binary cache to the model, categories of the Criteo Terabyte's shape\n\n\
            | rows × columns, entries a row | GPUs | GB | s to write it | s from it to the model |\n|---|--:|--:|--:|--:|\n"
            .to_owned();
        for ((rows, per_row, gpus), line) in &self.criteo {
            let bytes = line["file_bytes"].as_f64().unwrap_or(f64::NAN);
            let _ = writeln!(
                text,
                "| {} × {}, {per_row} | {gpus} | {:.1} | {} | {} |",
                grouped(*rows),
                grouped(line["cols"].as_u64().unwrap_or(0)),
                bytes / 1e9,
                seconds(line, "write_seconds"),
                seconds(line, "seconds_from_cache_to_model"),
            );
        }
        text + "\n"
    }
}

fn seconds(line: &Value, name: &str) -> String {
    let seconds = line[name].as_f64();
    seconds
        .map(|seconds| format!("{seconds:.2}"))
        .unwrap_or_default()
}

fn us(us: f64) -> String {
    match us < 100.0 {
        true => format!("{us:.1}"),
        false => grouped(us.round() as u64),
    }
}
