//! Launches of matrix products: which variant and tile.

use gpu_kernels::matmul::{MAX_SIZE, MatmulVariant};

use super::PlanError;
use super::fused::{MAX_GRID, Precision};
use super::limits::DeviceLimits;

/// How products of f32 are computed. f64 has one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arithmetic {
    /// Fused multiply-adds of f32.
    #[default]
    Fp32,
    /// Tensor cores, each number as a sum of two of TF32: as accurate for finite numbers, and quicker. Infinities
    /// become NaN.
    SplitTf32,
}

/// A product of an m × k by a k × n matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem {
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Length of its dot products.
    pub k: u64,
    /// Element type.
    pub precision: Precision,
    /// See [`Arithmetic`].
    pub arithmetic: Arithmetic,
}

/// A launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatmulPlan {
    /// The rung of the ladder.
    pub variant: MatmulVariant,
    /// Threads of a block.
    pub bs: u32,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// What a tile costs, in parts of what its multiplications alone would, and how many of its blocks an SM holds.
struct Tile {
    each: u32,
    cost: u64,
    resident: u64,
}

/// Tiles of f32; the small one reads twice as much from shared memory for each multiplication.
const TILES_F32: [Tile; 2] = [
    Tile {
        each: 8,
        cost: 10,
        resident: 2,
    },
    Tile {
        each: 4,
        cost: 14,
        resident: 3,
    },
];

/// Plans a product.
///
/// ```
/// use gpu_kernels::matmul::MatmulVariant;
/// use warpfuse::plan::fused::Precision;
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::matmul::{Arithmetic, Problem, plan};
///
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let (precision, arithmetic) = (Precision::F32, Arithmetic::Fp32);
/// let large = Problem { m: 4096, n: 4096, k: 4096, precision, arithmetic };
/// assert_eq!(plan(&large, &h200)?.variant, MatmulVariant::Pipelined { each: 8 });
/// let small = Problem { m: 500, n: 500, ..large };
/// assert_eq!(plan(&small, &h200)?.variant, MatmulVariant::Pipelined { each: 4 });
/// # Ok::<(), warpfuse::plan::PlanError>(())
/// ```
///
/// # Errors
/// [`PlanError::TooLarge`] when a size or the number of blocks is more than a launch counts.
pub fn plan(problem: &Problem, limits: &DeviceLimits) -> Result<MatmulPlan, PlanError> {
    for size in [problem.m, problem.n, problem.k] {
        if size > u64::from(MAX_SIZE) {
            return Err(too_large(problem, "a size"));
        }
    }
    let variant = match (problem.precision, problem.arithmetic) {
        (Precision::F64, _) => MatmulVariant::Pipelined { each: 4 },
        (Precision::F32, Arithmetic::SplitTf32) => MatmulVariant::SplitTf32,
        (Precision::F32, Arithmetic::Fp32) => quickest(problem, limits),
    };
    of_variant(problem, variant)
}

/// The launch of one variant, whether or not it is the quickest.
///
/// # Errors
/// As [`plan`].
pub fn of_variant(problem: &Problem, variant: MatmulVariant) -> Result<MatmulPlan, PlanError> {
    let grid = variant.grid(problem.m as u32, problem.n as u32);
    if grid > u64::from(MAX_GRID) {
        return Err(too_large(problem, "the number of blocks"));
    }
    Ok(MatmulPlan {
        variant,
        bs: MatmulVariant::THREADS,
        grid: grid as u32,
        shared_bytes: variant.shared_bytes(problem.precision.bytes()) as u32,
    })
}

/// The tile whose waves of blocks cost least; a tile that is partly outside costs as much as a whole one.
fn quickest(problem: &Problem, limits: &DeviceLimits) -> MatmulVariant {
    let cost = |tile: &&Tile| {
        let variant = MatmulVariant::Pipelined { each: tile.each };
        let blocks = variant.grid(problem.m as u32, problem.n as u32);
        let sms = u64::from(limits.sms.max(1));
        // Blocks of a wave share their SM; a last wave of at most one block per SM takes as long as one of those.
        let rounds = blocks / (sms * tile.resident) * tile.resident
            + (blocks % (sms * tile.resident)).div_ceil(sms);
        rounds * u64::from(variant.tile()).pow(2) * tile.cost
    };
    let best = TILES_F32.iter().min_by_key(cost);
    MatmulVariant::Pipelined {
        each: best.map_or(8, |tile| tile.each),
    }
}

fn too_large(problem: &Problem, what: &'static str) -> PlanError {
    PlanError::TooLarge {
        what,
        rows: problem.m,
        cols: problem.n,
        bits: 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_beyond_a_launch_are_refused() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let problem = |m, n| Problem {
            m,
            n,
            k: 1,
            precision: Precision::F64,
            arithmetic: Arithmetic::SplitTf32,
        };
        assert!(plan(&problem(1 << 31, 1), &h200).is_err());
        assert!(plan(&problem(1 << 30, 1 << 30), &h200).is_err());
        let fits = plan(&problem(65, 64), &h200).expect("fits");
        assert_eq!(
            (fits.variant, fits.grid),
            (MatmulVariant::Pipelined { each: 4 }, 2)
        );
    }
}
