//! How fits went.

use super::cg::Convergence;
use super::solver::host::choice::Chosen;
use super::solver::{Iteration, Solved, Solver};
use crate::ops::Number;

/// How a fit went.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct FitReport {
    /// m.
    pub rows: usize,
    /// Stored entries of X.
    pub nnz: u64,
    /// Outer iterations; of one-vs-rest problems the most of any class.
    pub n_iter: usize,
    /// How the iteration ended; of one-vs-rest problems the worst of any class.
    pub convergence: Convergence,
    /// ‖gradient‖ over that at the start.
    pub gradient_ratio: f64,
    /// The objective at the end, scaled as the estimator documents; of one-vs-rest problems the sum.
    pub objective: f64,
    /// What solved it.
    #[serde(default)]
    pub solver: Solver,
    /// Why that.
    #[serde(default)]
    pub solver_reason: String,
    /// The objective less a lower bound of its minimum, relative to the objective, where an l1 penalty is minimised by
    /// coordinate descent and such a bound is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relative_gap: Option<f64>,
    /// All outer iterations; of one-vs-rest problems one class after the other.
    pub history: Vec<Iteration>,
    /// The device's name.
    pub device: String,
    /// Seconds until the data were on the device.
    pub transfer_seconds: f64,
    /// Seconds in all.
    pub seconds: f64,
    /// The most bytes that buffers held on the device.
    pub peak_device_bytes: u64,
    /// Whether sums were reproducible, by the options of the matrix.
    #[serde(default)]
    pub reproducible: bool,
    /// Whether rows had offsets, which predictions are without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_offset: bool,
}

impl FitReport {
    /// Of a model that was not fitted here but read from a file of `source`.
    pub(super) fn of_import(source: &str) -> FitReport {
        FitReport {
            rows: 0,
            nnz: 0,
            n_iter: 0,
            convergence: Convergence::Converged,
            gradient_ratio: 0.0,
            objective: 0.0,
            solver: Solver::Auto,
            solver_reason: String::new(),
            relative_gap: None,
            history: Vec::new(),
            device: source.to_owned(),
            transfer_seconds: 0.0,
            seconds: 0.0,
            peak_device_bytes: 0,
            reproducible: false,
            has_offset: false,
        }
    }

    /// Without what differs between two fits that are the same otherwise.
    pub(super) fn without_times(&self) -> FitReport {
        let timeless = |iteration: &Iteration| Iteration {
            seconds: 0.0,
            ..*iteration
        };
        FitReport {
            history: self.history.iter().map(timeless).collect(),
            transfer_seconds: 0.0,
            seconds: 0.0,
            peak_device_bytes: 0,
            ..self.clone()
        }
    }
}

/// The figures of one solve or of several.
#[derive(Debug, Clone, Copy)]
pub(super) struct Summary {
    pub(super) n_iter: usize,
    pub(super) convergence: Convergence,
    pub(super) gradient_ratio: f64,
    pub(super) objective: f64,
    pub(super) gap: Option<f64>,
    pub(super) chosen: Chosen,
}

impl Summary {
    pub(super) fn of<T: Number>(solved: &Solved<T>, chosen: Chosen) -> Summary {
        Summary {
            gap: None,
            chosen,
            n_iter: solved.n_iter,
            convergence: solved.convergence,
            gradient_ratio: solved.gradient_ratio,
            objective: solved.objective,
        }
    }

    /// Of two independent problems: the worse end, the sum of the objectives.
    pub(super) fn and(self, other: Summary) -> Summary {
        let worse = if self.convergence.is_success() {
            other
        } else {
            self
        };
        Summary {
            n_iter: self.n_iter.max(other.n_iter),
            convergence: worse.convergence,
            gradient_ratio: self.gradient_ratio.max(other.gradient_ratio),
            objective: self.objective + other.objective,
            gap: None,
            chosen: self.chosen,
        }
    }
}
