//! What the solvers of the host tell a checkpoint. Those that tell nothing are done again from their start.

use super::newton::Newton;
use super::outcome::Solved;
use crate::learning::checkpoint::{Record, session};
use crate::learning::solver::stops::begun;
use crate::ops::OpError;

/// How a solve ended, in a record.
const SOLVED: &str = "solved";

impl Solved {
    /// Keeps how it ended for the checkpoints to come, unless it is not known why it was solved so.
    pub(in crate::learning) fn keep(&self) -> Result<(), OpError> {
        if self.instead.is_some() {
            return Ok(());
        }
        session::end(|record| {
            record.numbers("theta", &self.theta);
            let [has_gap, gap] = self.gap.map_or([0.0, 0.0], |gap| [1.0, gap]);
            let n_iter = self.n_iter as f64;
            let figures = [self.objective, self.gradient_ratio, has_gap, gap, n_iter];
            record.numbers(SOLVED, &figures);
            record.json("convergence", &self.convergence);
            Ok(())
        })
    }

    /// How it ended, if it did.
    pub(in crate::learning) fn recall(from: &Record) -> Result<Option<Solved>, OpError> {
        if !from.has(SOLVED) {
            return Ok(None);
        }
        let [objective, gradient_ratio, has_gap, gap, n_iter] = from.array(SOLVED)?;
        Ok(Some(Solved {
            theta: from.list_of("theta")?,
            objective,
            gradient_ratio,
            gap: (has_gap == 1.0).then_some(gap),
            n_iter: n_iter as usize,
            convergence: from.json_of("convergence")?,
            instead: None,
        }))
    }
}

impl Newton<'_, '_> {
    /// Writes where it stands, if that is due.
    pub(super) fn save_if_due(&self) -> Result<(), OpError> {
        // Preconditioners of a softmax are of the point before.
        let is_whole = self.blocks.is_none() || self.n_iter % 2 == 1;
        if !(self.is_recorded && self.n_iter > 0 && is_whole && session::is_due()) {
            return Ok(());
        }
        session::save(|record| {
            record.numbers("theta", &self.at.theta);
            if let Some(best) = &self.best {
                record.numbers("best point", &best.theta);
            }
            let [n_iter, idle] = [self.n_iter, self.idle].map(|count| count as f64);
            let seconds = self.begun.elapsed().as_secs_f64();
            let figures = [self.first_norm, self.first_value, n_iter, idle, seconds];
            record.numbers("newton", &figures);
            Ok(())
        })
    }

    /// Goes back to where a solve was recorded.
    pub(super) fn go_back(&mut self, from: &Record) -> Result<(), OpError> {
        let [first_norm, first_value, n_iter, idle, seconds] = from.array("newton")?;
        (self.first_norm, self.first_value) = (first_norm, first_value);
        (self.n_iter, self.idle) = (n_iter as usize, idle as usize);
        self.begun = begun(seconds);
        self.at = self.problem.at(from.list_of("theta")?);
        if from.has("best point") {
            self.best = Some(self.problem.at(from.list_of("best point")?));
        }
        Ok(())
    }
}
