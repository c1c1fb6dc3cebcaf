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
        let made = packed.unpacked_bytes.saturating_sub(written_once);
        if made == 0 {
            return 0.0;
        }
        let moved = (packed.bytes + made) as f64 / (self.planner.stream_gbs() * 1e9);
        let fields = self.fields();
        let launched = self.launched(fields.len() as u64);
        moved.max(fields.into_iter().map(|of| self.requested(of)).sum()) + launched
    }

    /// Seconds until fields of this many bytes, one for each entry, have come to threads that wait for each.
    fn requested(&self, bytes: u32) -> f64 {
        let rows = self.problem.rows.saturating_mul(self.problem.pitch);
        let fields = self.problem.nnz.unwrap_or(rows) as f64;
        fields * f64::from(bytes) / (self.planner.requested_gbs(bytes.max(1)) * 1e9)
    }

    /// Bytes of the fields of which arrays are made: columns of 16 bits, and values.
    fn fields(&self) -> Vec<u32> {
        let dtype = self.problem.dtype;
        let value = self.values.bytes(dtype);
        let makes_values = self.values != StoredValues::Equal && value < dtype.bytes();
        let makes_columns = self.problem.nnz.is_some() && self.problem.cols <= 1 << 16;
        let columns = makes_columns.then_some(2);
        columns
            .into_iter()
            .chain(makes_values.then_some(value))
            .collect()
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
