//! The worst errors that were seen, by device, family and element type.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use crate::tolerance::Worst;

/// What an error belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The device's name as a user writes it.
    pub device: String,
    /// Kernel family and product.
    pub family: String,
    /// `f32` or `f64`.
    pub dtype: String,
}

/// Collects errors from all threads.
#[derive(Debug, Default)]
pub struct Report(Mutex<BTreeMap<Key, (Worst, usize)>>);

impl Report {
    /// An empty report.
    pub const fn new() -> Report {
        Report(Mutex::new(BTreeMap::new()))
    }

    /// Adds one comparison.
    pub fn record(&self, key: Key, worst: Worst) {
        // The map is changed by one call at a time, so a panic elsewhere leaves it whole.
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (so_far, comparisons) = entries.entry(key).or_default();
        *so_far = so_far.max(worst);
        *comparisons += 1;
    }

    /// As a JSON array, one object per device, family and type.
    pub fn to_json(&self) -> Value {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let object = |(key, (worst, comparisons)): (&Key, &(Worst, usize))| {
            json!({
                "device": key.device,
                "family": key.family,
                "dtype": key.dtype,
                "comparisons": comparisons,
                "worst_error_over_bound": worst.ratio,
                "worst_relative_error": worst.relative,
            })
        };
        Value::Array(entries.iter().map(object).collect())
    }
}

/// A table: the relative error is against f64, over the largest magnitude of the result.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(
            f,
            "worst errors against f64 (error / bound, relative error, comparisons)"
        )?;
        for (
            Key {
                device,
                family,
                dtype,
            },
            (worst, comparisons),
        ) in entries.iter()
        {
            let Worst { ratio, relative } = worst;
            writeln!(
                f,
                "  {device:<8} {dtype} {family:<28} {ratio:8.4} {relative:10.2e} {comparisons:8}"
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_all_comparisons_is_kept() {
        let report = Report::new();
        let key = |family: &str| Key {
            device: "cpu".into(),
            family: family.into(),
            dtype: "f32".into(),
        };
        let worst = |ratio, relative| Worst { ratio, relative };
        report.record(key("fused"), worst(0.1, 1e-7));
        report.record(key("fused"), worst(0.5, 1e-8));
        report.record(key("forward"), worst(0.0, 0.0));
        let json = report.to_json();
        assert_eq!(json[1]["comparisons"], 2);
        assert_eq!(json[1]["worst_error_over_bound"], 0.5);
        assert_eq!(json[1]["worst_relative_error"], 1e-7);
        assert!(report.to_string().contains("fused"));
    }
}
