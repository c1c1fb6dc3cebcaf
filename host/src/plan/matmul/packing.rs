//! Launches that pack the operands of a product of halves.

use gpu_kernels::matmul::MatmulVariant;
use gpu_kernels::matmul::packed::{Operand, packing_blocks, packing_parts};

use super::{LAUNCH, MatmulPlan, Problem, of_candidate};
use crate::plan::PlanError;

/// Bytes that an SM reads and writes in a cycle while it packs, four fifths of an H200's bandwidth.
const BYTES: f64 = 16.0;
/// Blocks of an SM that are needed for that.
const BLOCKS: u64 = 8;
/// Elements are read twice and written once.
const PASSES: f64 = 3.0;

/// The launches that pack an operand, one after the other.
///
/// ```
/// use gpu_kernels::matmul::MatmulVariant;
/// use gpu_kernels::matmul::packed::Operand;
/// use warpfuse::plan::Precision;
/// use warpfuse::plan::matmul::{Arithmetic, Problem, packing};
///
/// let (precision, arithmetic) = (Precision::F32, Arithmetic::SplitF16);
/// let problem = Problem { m: 100, n: 300, k: 4_096, precision, arithmetic };
/// let [first, then] = packing(&problem, Operand::Right)?;
/// assert_eq!(first.variant, MatmulVariant::LargestF16);
/// assert_eq!(then.variant, MatmulVariant::PackF16 { operand: Operand::Right });
/// assert_eq!((first.parts, first.grid), (16, 16 * 384 / 32));
/// # Ok::<(), warpfuse::plan::PlanError>(())
/// ```
///
/// # Errors
/// As [`plan`](super::plan()).
pub fn packing(problem: &Problem, operand: Operand) -> Result<[MatmulPlan; 2], PlanError> {
    let m = match operand {
        Operand::Left => problem.m,
        Operand::Right => problem.n,
    };
    let of_rows = Problem { m, ..*problem };
    let parts = packing_parts(problem.k as u32);
    let plan = |variant| of_candidate(&of_rows, variant, parts);
    Ok([
        plan(MatmulVariant::LargestF16)?,
        plan(MatmulVariant::PackF16 { operand })?,
    ])
}

/// Clock cycles of packing both operands, where `variant` wants that.
pub(super) fn cycles(problem: &Problem, variant: MatmulVariant, sms: u64) -> f64 {
    if variant != MatmulVariant::SplitF16 {
        return 0.0;
    }
    let parts = packing_parts(problem.k as u32);
    let of_rows = |rows: u64| {
        let blocks = packing_blocks(rows as u32) * u64::from(parts);
        let busy = (blocks.min(BLOCKS * sms) as f64 / BLOCKS as f64).max(1.0 / BLOCKS as f64);
        let elements = rows as f64 * problem.k as f64;
        let bytes = PASSES * f64::from(problem.precision.bytes()) * elements;
        2.0 * LAUNCH + bytes / (BYTES * busy)
    };
    of_rows(problem.m) + of_rows(problem.n)
}

#[cfg(test)]
mod tests {
    use super::super::{Arithmetic, candidates};
    use crate::plan::limits::DeviceLimits;
    use crate::plan::problem::Precision;

    use super::*;

    fn cheapest(m: u64, n: u64, k: u64, arithmetic: Arithmetic) -> f64 {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let precision = Precision::F32;
        let problem = Problem {
            m,
            n,
            k,
            precision,
            arithmetic,
        };
        let all = candidates(&problem, &h200).expect("fits");
        let totals = all.iter().map(|candidate| candidate.total());
        totals.fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn packing_costs_more_than_it_gains_where_one_side_is_short() {
        let gain = |m, n, k| {
            let [split, packed] = [Arithmetic::SplitTf32, Arithmetic::SplitF16]
                .map(|arithmetic| cheapest(m, n, k, arithmetic));
            split / packed
        };
        assert!(gain(8_192, 8_192, 8_192) > 1.4);
        assert!(gain(8_192, 16, 8_192) < 1.0);
        assert!(gain(64, 64, 64) < 1.0);
    }
}
