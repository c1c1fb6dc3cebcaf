//! Where a solve begins, and how it ends.

use std::ops::ControlFlow;

use super::choice::Chosen;
use crate::learning::cg::Convergence;
use crate::learning::checkpoint::Record;
use crate::learning::solver::Iteration;

/// Where a solve begins.
#[derive(Debug, Clone)]
pub(in crate::learning) struct Start {
    /// θ, element j of predictor c at `j·k + c`.
    pub(in crate::learning) theta: Vec<f64>,
    /// Whose gradient the tolerance is relative to, where that is not θ's.
    pub(in crate::learning) cold: Option<Vec<f64>>,
    /// Where it stopped, if it is not to begin.
    pub(in crate::learning) found: Option<Record>,
}

/// How a solve ended.
#[derive(Debug, Clone)]
pub(in crate::learning) struct Solved {
    pub(in crate::learning) theta: Vec<f64>,
    pub(in crate::learning) objective: f64,
    pub(in crate::learning) gradient_ratio: f64,
    /// Objective less a lower bound of the minimum, where there is an l1 term and such a bound is known.
    pub(in crate::learning) gap: Option<f64>,
    pub(in crate::learning) n_iter: usize,
    pub(in crate::learning) convergence: Convergence,
    /// How it was solved, where that turned out to be another way than the one chosen.
    pub(in crate::learning) instead: Option<Chosen>,
}

/// Called after each outer iteration, with a function that says where it led; says whether to go on.
pub(super) type Watch<'a> = dyn FnMut(Iteration, &dyn Fn() -> Vec<f64>) -> ControlFlow<()> + 'a;
