//! What lines of `scaling.jsonl` say.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Case, Sum, Way, Work};

/// What one machine has recorded: the newest line of every case.
#[derive(Debug, Default)]
pub struct Scaling {
    /// The folder's name.
    pub folder: String,
    pub device: String,
    /// Microseconds.
    pub times: BTreeMap<Case, f64>,
    /// Measured times over what the scaling model made of one and two GPUs.
    pub ratios: BTreeMap<Case, f64>,
    /// Microseconds.
    pub sums: BTreeMap<Sum, f64>,
    /// Lines of cross-validations, by shape, summation and GPUs.
    pub validations: BTreeMap<(String, String, u64), Value>,
    /// Lines of fits from a cache, by rows, entries of each and GPUs.
    pub criteo: BTreeMap<(u64, u64, u64), Value>,
}

impl Scaling {
    /// Of a file in this folder; what is later in it counts.
    ///
    /// # Errors
    /// When a line is not JSON.
    pub fn parse(folder: &str, text: &str) -> Result<Scaling> {
        let mut found = Scaling {
            folder: folder.to_owned(),
            ..Scaling::default()
        };
        for (number, line) in text.lines().enumerate() {
            let line: Value =
                serde_json::from_str(line).with_context(|| format!("line {}", number + 1))?;
            found.take(&line);
        }
        Ok(found)
    }

    /// Lines of other kinds are for people.
    fn take(&mut self, line: &Value) {
        match line["what"].as_str() {
            Some("provenance") => {
                // Some have the driver in the same field.
                let device = text(line, "device");
                self.device = device.split(',').next().unwrap_or_default().to_owned();
            }
            Some("product") => {
                for work in [Work::Fused, Work::Newton, Work::Cg] {
                    let us = line[format!("{}_us", work.key())].as_f64();
                    self.note(line, work, us);
                }
            }
            Some("fit") => {
                let us = line["seconds"].as_f64().map(|seconds| 1e6 * seconds);
                self.note(line, Work::Fit, us);
            }
            Some("sum") => self.take_sum(line),
            Some("cross-validation") => {
                let key = (text(line, "shape"), text(line, "summation"), members(line));
                self.validations.insert(key, line.clone());
            }
            // A step that failed has a line of the same name without rows.
            Some("criteo") if line["rows"].is_u64() => {
                let number = |name: &str| line[name].as_u64().unwrap_or(0);
                let key = (number("rows"), number("per_row"), members(line));
                self.criteo.insert(key, line.clone());
            }
            _ => (),
        }
    }

    fn note(&mut self, line: &Value, work: Work, us: Option<f64>) {
        let Some(us) = us else { return };
        let mut shape = text(line, "shape");
        if line["summation"] == "reproducible" {
            shape += ", reproducible";
        }
        let case = Case {
            shape,
            work,
            // Fits were strong before they said so.
            way: match line["scaling"].as_str() {
                Some("weak") => Way::Weak,
                _ => Way::Strong,
            },
            gpus: members(line),
        };
        if let Some(ratio) = line["model"][format!("{}_ratio", work.key())].as_f64() {
            self.ratios.insert(case.clone(), ratio);
        }
        self.times.insert(case, us);
    }

    fn take_sum(&mut self, line: &Value) {
        let (Some(us), Some(bytes)) = (line["us"].as_f64(), line["bytes"].as_u64()) else {
            return;
        };
        let sum = Sum {
            bytes,
            gpus: members(line),
            dtype: text(line, "type"),
            one_launch: bytes <= MOST_OF_ONE && text(line, "engine").contains("small sums"),
        };
        self.sums.insert(sum, us);
    }
}

/// Bytes up to which sums are one launch.
const MOST_OF_ONE: u64 = 256 << 10;

fn text(line: &Value, name: &str) -> String {
    line[name].as_str().unwrap_or_default().to_owned()
}

fn members(line: &Value) -> u64 {
    line["members"].as_u64().unwrap_or(1)
}
