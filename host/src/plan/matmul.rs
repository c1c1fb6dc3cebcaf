//! Launches of matrix products: which variant and tile, and into how many parts k is divided.
//!
//! A product with few tiles and a long k leaves most of a GPU idle unless several blocks share a tile, each with a part
//! of k; their sums are added by a second launch. [`candidates`] says what each tile and number of parts would cost.

use std::fmt;

use gpu_kernels::matmul::{MAX_SIZE, MatmulVariant, panel::DEPTH};

use super::PlanError;
use super::limits::{DeviceLimits, MAX_GRID};
use super::problem::Precision;

mod generated;
mod packing;

pub use generated::{GeneratedTile, generated, generated_space};
pub use packing::packing;

/// How products of f32 are computed. f64 has one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arithmetic {
    /// Fused multiply-adds of f32.
    #[default]
    Fp32,
    /// Tensor cores, each number as a sum of two of TF32: as accurate for finite numbers, and faster. Infinities
    /// become NaN.
    SplitTf32,
    /// Tensor cores, each number as a sum of two halves of 16 bits, scaled by powers of two, one for each row of op(A) and
    /// column of op(B): faster still where a product is large, as both are packed before. An element of C is off by at most
    /// `3 · 2⁻²² · Σ|aₖ·bₖ| + 2⁻³⁹ · (M(a) · Σ|bₖ| + M(b) · Σ|aₖ|)`, M the largest magnitude of the row or column, and the
    /// errors of adding: as accurate as multiply-adds where magnitudes in a row differ by less than 2¹⁷, and where they differ
    /// by more, relative to the largest. Rows and columns may have any magnitudes. A row or a column with an infinite or NaN
    /// element becomes NaN.
    SplitF16,
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
    /// Parts of k. Beyond one, [`combine`] plans the launch that adds their sums.
    pub parts: u32,
    /// Threads of a block.
    pub bs: u32,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// A way to compute a product, and what it is thought to cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// The variant, which is also the tile.
    pub variant: MatmulVariant,
    /// Parts of k.
    pub parts: u32,
    /// The most blocks that an SM gets.
    pub blocks_per_sm: u64,
    /// Clock cycles of packing the operands.
    pub packing_cycles: f64,
    /// Clock cycles of the product.
    pub cycles: f64,
    /// Clock cycles of adding the parts.
    pub combine_cycles: f64,
}

impl Candidate {
    /// Clock cycles of all.
    pub fn total(&self) -> f64 {
        self.packing_cycles + self.cycles + self.combine_cycles
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, columns) = self.variant.tile();
        write!(
            f,
            "tiles of {rows} x {columns}, k in {} parts: up to {} blocks per SM, {:.0} + {:.0} cycles",
            self.parts, self.blocks_per_sm, self.cycles, self.combine_cycles
        )?;
        match self.packing_cycles {
            0.0 => Ok(()),
            cycles => write!(f, ", after {cycles:.0} of packing"),
        }
    }
}

/// What a variant costs on an H200.
struct Rate {
    variant: MatmulVariant,
    /// Cycles of an SM for one panel of a block, when it has as many blocks as it holds.
    panel: f64,
    /// Cycles of a launch's first copies and last tile, where no other block of the SM hides them.
    alone: f64,
    /// Which share of that rate an SM reaches with one block, two, ...; as many as it holds.
    shares: &'static [f64],
}

/// Cycles of a block's first copies and of writing its tile.
const BLOCK: f64 = 3_000.0;
/// What is added for the first and the last block where an SM holds one.
const ALONE: f64 = 20_000.0;
/// Cycles between two launches.
const LAUNCH: f64 = 5_000.0;
/// Bytes that a GPU adds in a cycle, from its L2 cache, for each SM.
const COMBINED_BYTES: f64 = 12.0;
/// More parts than these are not tried.
const MAX_PARTS: u32 = 32;
/// Panels that a part has at least.
const MIN_PANELS: u32 = 4;

const fn tile(rows: u32, columns: u32, panel: f64, shares: &'static [f64]) -> Rate {
    let variant = MatmulVariant::Pipelined { rows, columns };
    Rate {
        variant,
        panel,
        alone: 0.0,
        shares,
    }
}

const fn tensor_tile(
    (rows, columns): (u32, u32),
    panel: f64,
    alone: f64,
    shares: &'static [f64],
) -> Rate {
    let variant = MatmulVariant::TensorF64 { rows, columns };
    Rate {
        variant,
        panel,
        alone,
        shares,
    }
}

/// Tiles of f32 by multiply-adds: 1.3 cycles for each multiply-add of a lane. A quarter of an SM has one warp of a
/// block, which waits for its own reads.
const FP32: [Rate; 2] = [
    tile(64, 128, 1_330.0, &[0.5, 0.8, 0.95, 1.0]),
    tile(128, 64, 1_330.0, &[0.5, 0.8, 0.95, 1.0]),
];
/// The same of f64; and by tensor cores, 64 cycles of a quarter of an SM for 16 × 8 × 16 of them. At 4,096³, where both
/// tiles of tensor cores fill eight turns, the larger took 2 to 6 % less in three runs on H100s (93.1 to 93.8 % of cuBLAS
/// beside 87.4 to 91.1 %), at 4,097 × 4,095 × 4,099 4 % less, and 3 % more at 8,192 × 129 × 4,096, one turn for both.
const FP64: [Rate; 3] = [
    tile(64, 64, 1_330.0, &[0.5, 0.8, 0.95, 1.0]),
    tensor_tile((64, 128), 1_150.0, 0.0, &[0.75, 1.0]),
    tensor_tile((128, 128), 2_240.0, ALONE, &[1.0]),
];
const SPLIT_TF32: [Rate; 1] = [Rate {
    variant: MatmulVariant::SplitTf32,
    panel: 970.0,
    alone: 0.0,
    shares: &[0.6, 1.0],
}];
/// 380 cycles of a quarter of an SM for a warp's panel, of which there are two: an estimate from the instructions.
const SPLIT_F16: [Rate; 1] = [Rate {
    variant: MatmulVariant::SplitF16,
    panel: 800.0,
    alone: ALONE,
    shares: &[1.0],
}];

/// Plans a product: the cheapest of the [`candidates`].
///
/// ```
/// use gpu_kernels::matmul::MatmulVariant;
/// use warpfuse::plan::Precision;
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::matmul::{Arithmetic, Problem, plan};
///
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let (precision, arithmetic) = (Precision::F32, Arithmetic::Fp32);
/// let large = Problem { m: 4096, n: 4096, k: 4096, precision, arithmetic };
/// assert_eq!(plan(&large, &h200)?.parts, 1);
/// let long = Problem { m: 500, n: 500, k: 20_000, ..large };
/// assert!(plan(&long, &h200)?.parts > 4);
/// let thin = Problem { n: 64, ..large };
/// let tall = MatmulVariant::Pipelined { rows: 128, columns: 64 };
/// assert_eq!(plan(&thin, &h200)?.variant, tall);
/// # Ok::<(), warpfuse::plan::PlanError>(())
/// ```
///
/// # Errors
/// [`PlanError::TooLarge`] when a size or the number of blocks is more than a launch counts.
pub fn plan(problem: &Problem, limits: &DeviceLimits) -> Result<MatmulPlan, PlanError> {
    let candidates = candidates(problem, limits)?;
    let best = candidates
        .iter()
        .min_by(|a, b| a.total().total_cmp(&b.total()))
        .expect("one part is always a candidate");
    of_candidate(problem, best.variant, best.parts)
}

/// What the tiles and numbers of parts would cost.
///
/// An SM works through its blocks as many at a time as it holds; the blocks of the last turn may be fewer, and then
/// wait for memory more. A tile that is partly outside costs as much as a whole one.
///
/// # Errors
/// As [`plan`].
pub fn candidates(problem: &Problem, limits: &DeviceLimits) -> Result<Vec<Candidate>, PlanError> {
    for size in [problem.m, problem.n, problem.k] {
        if size > u64::from(MAX_SIZE) {
            return Err(too_large(problem, "a size"));
        }
    }
    let rates: &[Rate] = match (problem.precision, problem.arithmetic) {
        (Precision::F64, _) => &FP64,
        (Precision::F32, Arithmetic::SplitTf32) => &SPLIT_TF32,
        (Precision::F32, Arithmetic::SplitF16) => &SPLIT_F16,
        (Precision::F32, Arithmetic::Fp32) => &FP32,
    };
    let panels = (problem.k as u32).div_ceil(DEPTH);
    let parts = 1..=(panels / MIN_PANELS).clamp(1, MAX_PARTS);
    let of_rate = |rate| {
        parts
            .clone()
            .map(move |parts| cost(problem, limits, rate, parts))
    };
    Ok(rates.iter().flat_map(of_rate).collect())
}

fn cost(problem: &Problem, limits: &DeviceLimits, rate: &Rate, parts: u32) -> Candidate {
    let sms = u64::from(limits.sms.max(1));
    let panels = (problem.k as u32).div_ceil(DEPTH).div_ceil(parts);
    let tiles = rate.variant.grid(problem.m as u32, problem.n as u32);
    let blocks = tiles.saturating_mul(parts.into()).div_ceil(sms);
    let held = rate.shares.len() as u64;
    let (turns, rest) = (blocks / held, (blocks % held) as usize);
    let share = rest.checked_sub(1).map_or(1.0, |last| rate.shares[last]);
    let at_once = turns as f64 * held as f64 + rest as f64 / share;
    let begins = blocks.div_ceil(held) as f64 * BLOCK + rate.alone;
    let cycles = at_once * f64::from(panels) * rate.panel + begins;
    let elements = problem.m as f64 * problem.n as f64;
    let bytes = elements * f64::from(problem.precision.bytes()) * (2.0 * f64::from(parts) + 1.0);
    Candidate {
        variant: rate.variant,
        parts,
        blocks_per_sm: blocks,
        packing_cycles: packing::cycles(problem, rate.variant, sms),
        cycles,
        combine_cycles: match parts {
            1 => 0.0,
            _ => LAUNCH + bytes / (COMBINED_BYTES * sms as f64),
        },
    }
}

/// The launch of one variant with k in one part, whether or not it is the fastest.
///
/// # Errors
/// As [`plan`].
pub fn of_variant(problem: &Problem, variant: MatmulVariant) -> Result<MatmulPlan, PlanError> {
    of_candidate(problem, variant, 1)
}

/// The launch that adds the sums of a plan's parts.
///
/// # Errors
/// As [`plan`].
pub fn combine(problem: &Problem) -> Result<MatmulPlan, PlanError> {
    of_candidate(problem, MatmulVariant::Combine, 1)
}

fn of_candidate(
    problem: &Problem,
    variant: MatmulVariant,
    parts: u32,
) -> Result<MatmulPlan, PlanError> {
    let tiles = variant.grid(problem.m as u32, problem.n as u32);
    let grid = tiles.saturating_mul(parts.into());
    if grid > u64::from(MAX_GRID) {
        return Err(too_large(problem, "the number of blocks"));
    }
    Ok(MatmulPlan {
        variant,
        parts,
        bs: variant.threads(),
        grid: grid as u32,
        shared_bytes: variant.shared_bytes(problem.precision.bytes()) as u32,
    })
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
            (
                MatmulVariant::TensorF64 {
                    rows: 64,
                    columns: 128,
                },
                2,
            )
        );
    }

    /// Both tiles of tensor cores fill the same turns of 132 SMs.
    #[test]
    fn large_products_of_f64_take_the_larger_tile() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let square = |size| Problem {
            m: size,
            n: size,
            k: size,
            precision: Precision::F64,
            arithmetic: Arithmetic::Fp32,
        };
        let tile = |size| plan(&square(size), &h200).expect("fits").variant.tile();
        assert_eq!([4_096, 8_192].map(tile), [(128, 128); 2]);
        assert_eq!(tile(1_000), (64, 128));
        let thin = Problem {
            m: 8_192,
            n: 129,
            ..square(4_096)
        };
        let chosen = plan(&thin, &h200).expect("fits");
        assert_eq!(chosen.variant.tile(), (64, 128), "one turn for both");
    }

    #[test]
    fn blocks_share_tiles_where_there_are_few() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        let problem = Problem {
            m: 257,
            n: 257,
            k: 65_536,
            precision: Precision::F32,
            arithmetic: Arithmetic::Fp32,
        };
        let alone = cost(&problem, &h200, &FP32[0], 1);
        let chosen = plan(&problem, &h200).expect("fits");
        let shared = cost(&problem, &h200, &FP32[0], chosen.parts);
        assert!(chosen.parts > 16, "{chosen:?}");
        assert!(10.0 * shared.total() < alone.total(), "{alone}; {shared}");
        let tiles = chosen.variant.grid(257, 257) as u32;
        assert_eq!(chosen.grid, tiles * chosen.parts);
    }
}
