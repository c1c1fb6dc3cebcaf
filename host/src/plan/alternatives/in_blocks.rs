//! What the kernels of one pass over an X in blocks take, the link apart.

use crate::plan::fused::{Plan, Planner, Summation};
use crate::plan::streaming::Packed;
use crate::plan::{PlanError, Problem, Product, StoredValues};

/// X in blocks that are unpacked where kernels read them.
pub(super) struct InBlocks<'a> {
    pub planner: &'a Planner<'a>,
    pub problem: &'a Problem,
    pub values: StoredValues,
    /// How many.
    pub blocks: u64,
}

impl InBlocks<'_> {
    /// Seconds of all launches.
    pub fn seconds(&self) -> Result<f64, PlanError> {
        Ok(self.products()? + self.unpacked() + self.scaled())
    }

    /// Those of a fused product. What begins and ends it is launched once, each kernel over rows for every block, where launches
    /// queue up behind those of the block before.
    fn products(&self) -> Result<f64, PlanError> {
        let block = self.problem.part(self.blocks);
        let plans = match self.problem.nnz {
            Some(_) => self.planner.streamed(self.problem, self.blocks)?,
            None => vec![self.planner.plan(&block, Product::Fused)?],
        };
        let once: u64 = plans.iter().filter_map(Plan::predicted_launch_ns).sum();
        let of_kernels: u64 = plans.iter().map(|plan| self.of_block(plan, &block)).sum();
        let launched = plans.len() as f64 * self.planner.launch_seconds();
        Ok(once as f64 / 1e9 + self.blocks as f64 * (of_kernels as f64 / 1e9 + launched))
    }

    fn of_block(&self, plan: &Plan, block: &Problem) -> u64 {
        match self.problem.nnz {
            Some(_) => self.planner.ns_of_block(plan, block),
            // It is planned for one, with the order of sums that bits are promised of.
            None => {
                let [all, launch] =
                    [plan.predicted_ns(), plan.predicted_launch_ns()].map(|ns| ns.unwrap_or(0));
                all.saturating_sub(launch)
            }
        }
    }

    /// Those of kernels that make arrays of what crossed: its bytes are read, and those of the arrays written.
    fn unpacked(&self) -> f64 {
        let packed = Packed::of(self.problem, self.values);
        // What all values are is written once, and not for every block.
        let written_once = match (self.values, self.problem.nnz) {
            (StoredValues::Equal, Some(nnz)) => nnz * u64::from(self.problem.dtype.bytes()),
            _ => 0,
        };
        match packed.unpacked_bytes.saturating_sub(written_once) {
            0 => 0.0,
            bytes => {
                let all = (packed.bytes + bytes) as f64;
                all / (self.planner.stream_gbs() * 1e9) + self.launched(self.unpackings())
            }
        }
    }

    /// Arrays that are made of each block.
    fn unpackings(&self) -> u64 {
        let dtype = self.problem.dtype;
        let makes_values =
            self.values != StoredValues::Equal && self.values.bytes(dtype) < dtype.bytes();
        let makes_columns = self.problem.nnz.is_some() && self.problem.cols <= 1 << 16;
        u64::from(makes_values) + u64::from(makes_columns)
    }

    /// Those of values that fixed-point sums take scaled, each by its column's exponent, of a block at hand in every pass. Where
    /// all are the same, so are the scaled ones.
    fn scaled(&self) -> f64 {
        let is_scaled =
            self.planner.sums() == Summation::Reproducible && self.values != StoredValues::Equal;
        let Some(nnz) = self.problem.nnz.filter(|_| is_scaled) else {
            return 0.0;
        };
        let bytes = nnz * (4 + 2 * u64::from(self.problem.dtype.bytes()));
        let from = (nnz, 4 * self.problem.cols);
        self.planner.gathered_seconds(bytes, from) + self.launched(1)
    }

    /// Seconds of this many launches more for each block.
    fn launched(&self, count: u64) -> f64 {
        (count * self.blocks) as f64 * self.planner.launch_seconds()
    }
}
