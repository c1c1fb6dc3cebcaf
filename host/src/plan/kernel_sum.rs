//! Launches of sums over kernels: which body, how large a block, into how many slices the sources are cut.
//!
//! Blocks run in waves of as many as the GPU holds; slices make enough of them that the last wave, partly empty,
//! does not count. One weight vector in up to three dimensions takes the body that keeps targets in registers, and
//! where targets and sources are the same the one that computes each pair once, of near points by products of coordinates; so
//! does the tiled body, for any
//! number of dimensions and vectors.

use gpu_kernels::kernel_sum::{KernelFunction, KernelSumVariant, MAX_POINTS, products, tiled};

use super::PlanError;
use super::limits::{DeviceLimits, MAX_GRID};
use super::problem::Precision;

mod space;

pub use space::{KernelSumPoint, point, points, space};

/// Blocks wanted per SM: some ten waves of two or three resident ones.
const BLOCKS_PER_SM: u64 = 24;
/// Fewest sources of a slice: below, what a block does before and after its loop counts.
const FEWEST: u64 = 1024;
/// Most sources of a slice in f32: a thread of the tiled body adds every 16th, and the error of 4,096 additions stays
/// below 10⁻⁵.
const MOST_F32: u64 = 65_536;
/// Dimensions that the narrow bodies have.
pub const NARROW_DIMS: u32 = 3;

/// What is summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Problem {
    /// k.
    pub function: KernelFunction,
    /// Sum or gradient, and over which points.
    pub work: Work,
    /// M.
    pub targets: u64,
    /// N.
    pub sources: u64,
    /// D.
    pub dims: u32,
    /// Weight vectors.
    pub vectors: u32,
    /// Element type.
    pub precision: Precision,
    /// How far out the points are.
    pub extent: Extent,
}

/// How far the farthest of centred and scaled points is from the origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extent {
    /// ‖u‖² ≤ [`MOST_SQUARE`](gpu_kernels::kernel_sum::products::MOST_SQUARE): distances may be made of products.
    Near,
    /// Anywhere: distances are made of differences.
    Any,
}

impl Extent {
    /// That of points of which the farthest has this ‖u‖².
    pub fn of(largest_square: f64) -> Extent {
        match largest_square <= products::MOST_SQUARE {
            true => Extent::Near,
            false => Extent::Any,
        }
    }
}

/// What a launch computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Work {
    /// Σⱼ k(xᵢ, yⱼ)·wⱼ.
    Sum,
    /// The same where targets and sources are one set of points.
    SymmetricSum,
    /// The gradient with respect to the targets.
    Gradient,
}

/// A launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KernelSumPlan {
    /// The body with its parameters.
    pub variant: KernelSumVariant,
    /// Threads of a block.
    pub bs: u32,
    /// Blocks.
    pub grid: u32,
    /// Slices of the sources.
    pub slices: u32,
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// Plans a launch of at least one target and one source.
///
/// ```
/// use gpu_kernels::kernel_sum::{KernelFunction, KernelSumVariant};
/// use warpfuse::plan::Precision;
/// use warpfuse::plan::kernel_sum::{Extent, Problem, Work, plan};
/// use warpfuse::plan::limits::DeviceLimits;
///
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let problem = Problem {
///     function: KernelFunction::Gaussian,
///     work: Work::SymmetricSum,
///     targets: 1_000_000,
///     sources: 1_000_000,
///     dims: 3,
///     vectors: 1,
///     precision: Precision::F32,
///     extent: Extent::Any,
/// };
/// let plan = plan(&problem, &h200)?;
/// assert!(matches!(plan.variant, KernelSumVariant::Symmetric { dims: 3, .. }));
/// assert_eq!((plan.bs, plan.grid), (256, 489 * 245));
/// # Ok::<(), warpfuse::plan::PlanError>(())
/// ```
///
/// # Errors
/// [`PlanError::TooLarge`] when points or blocks are more than a launch counts.
pub fn plan(problem: &Problem, limits: &DeviceLimits) -> Result<KernelSumPlan, PlanError> {
    for points in [problem.targets, problem.sources] {
        if points > u64::from(MAX_POINTS) {
            return Err(too_large(problem, "the number of points"));
        }
    }
    let body @ (variant, bs) = body(problem, limits);
    let slices = match variant {
        KernelSumVariant::Symmetric { .. } | KernelSumVariant::Products { .. } => 1,
        KernelSumVariant::Folded { .. } => slices(&half_of(problem), tiled::TILE, limits),
        _ => slices(problem, variant.targets_per_block(bs), limits),
    };
    plan_of(problem, body, slices)
}

/// The launch of a body in blocks of a size, over slices of the sources.
fn plan_of(
    problem: &Problem,
    (variant, bs): (KernelSumVariant, u32),
    slices: u32,
) -> Result<KernelSumPlan, PlanError> {
    let grid = variant
        .grid(bs, problem.targets as u32, slices)
        .filter(|&grid| grid <= u64::from(MAX_GRID))
        .ok_or_else(|| too_large(problem, "the number of blocks"))?;
    Ok(KernelSumPlan {
        variant,
        bs,
        grid: grid as u32,
        slices,
        shared_bytes: variant.shared_bytes(bs, problem.precision.bytes()) as u32,
    })
}

fn too_large(problem: &Problem, what: &'static str) -> PlanError {
    PlanError::TooLarge {
        what,
        rows: problem.targets,
        cols: problem.sources,
        bits: 32,
    }
}

/// The body and its block.
fn body(problem: &Problem, limits: &DeviceLimits) -> (KernelSumVariant, u32) {
    let function = problem.function;
    let is_narrow = problem.dims <= NARROW_DIMS && problem.vectors == 1;
    let dims = match (function, problem.precision) {
        (KernelFunction::Gaussian, Precision::F32) => problem.dims,
        _ => NARROW_DIMS,
    };
    let tiled = tiled::THREADS;
    match problem.work {
        Work::Gradient => (KernelSumVariant::Gradient { function }, tiled),
        Work::SymmetricSum if !is_narrow => (KernelSumVariant::Folded { function }, tiled),
        _ if !is_narrow => (KernelSumVariant::Tiled { function }, tiled),
        Work::SymmetricSum => {
            let symmetric = match is_by_products(problem) {
                true => KernelSumVariant::Products { dims },
                false => KernelSumVariant::Symmetric { function, dims },
            };
            match symmetric_block(problem, symmetric, limits) {
                Some(bs) => (symmetric, bs),
                None => narrow(problem, dims),
            }
        }
        Work::Sum => narrow(problem, dims),
    }
}

/// Whether a sum over one set of points of few dimensions has a body that makes distances from products.
fn is_by_products(problem: &Problem) -> bool {
    let is_compiled = problem.dims > 1
        && problem.function == KernelFunction::Gaussian
        && problem.precision == Precision::F32;
    is_compiled && problem.extent == Extent::Near
}

/// The pairs of one set of points that are computed: each target meets half of the sources.
fn half_of(problem: &Problem) -> Problem {
    Problem {
        sources: problem.sources.div_ceil(2),
        ..*problem
    }
}

/// Threads of a narrow block, at most: an f64 body takes twice the registers.
const fn most_threads(precision: Precision) -> u32 {
    match precision {
        Precision::F32 => 256,
        Precision::F64 => 128,
    }
}

/// No larger than the targets need, but two warps.
fn narrow(problem: &Problem, dims: u32) -> (KernelSumVariant, u32) {
    let function = problem.function;
    let variant = KernelSumVariant::Narrow { function, dims };
    let mut bs = most_threads(problem.precision);
    while bs > 64 && u64::from(variant.targets_per_block(bs / 2)) >= problem.targets {
        bs /= 2;
    }
    (variant, bs)
}

/// The largest block whose pairs of tiles fill the GPU a few times; `None` for few points, where slices of a
/// plain sum do.
fn symmetric_block(
    problem: &Problem,
    variant: KernelSumVariant,
    limits: &DeviceLimits,
) -> Option<u32> {
    let enough = u64::from(limits.sms) * BLOCKS_PER_SM / 4;
    let mut bs = most_threads(problem.precision);
    while bs >= 64 {
        let grid = variant.grid(bs, problem.targets as u32, 1)?;
        if grid >= enough {
            return Some(bs);
        }
        bs /= 2;
    }
    None
}

fn slices(problem: &Problem, per_block: u32, limits: &DeviceLimits) -> u32 {
    let tiles = problem.targets.div_ceil(u64::from(per_block)).max(1);
    let wanted = (u64::from(limits.sms) * BLOCKS_PER_SM).div_ceil(tiles);
    let most = problem.sources.div_ceil(FEWEST).max(1);
    let fewest = match problem.precision {
        Precision::F32 => problem.sources.div_ceil(MOST_F32).max(1),
        Precision::F64 => 1,
    };
    // Below MAX_POINTS / FEWEST, hence in 32 bits.
    wanted.clamp(fewest, most) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(work: Work, targets: u64, sources: u64, dims: u32, vectors: u32) -> Problem {
        Problem {
            function: KernelFunction::Cauchy,
            work,
            targets,
            sources,
            dims,
            vectors,
            precision: Precision::F32,
            extent: Extent::Any,
        }
    }

    fn h200() -> DeviceLimits {
        DeviceLimits::known("h200").expect("a listed device")
    }

    #[test]
    fn few_points_are_summed_in_slices_by_small_blocks() {
        let few = plan(&problem(Work::SymmetricSum, 100, 100, 2, 1), &h200()).expect("fits");
        assert!(matches!(
            few.variant,
            KernelSumVariant::Narrow { dims: 3, .. }
        ));
        assert_eq!((few.bs, few.slices, few.grid), (64, 1, 1));
        let long = plan(&problem(Work::Sum, 100, 1_000_000, 2, 1), &h200()).expect("fits");
        assert_eq!((long.slices, long.grid), (977, 977));
    }

    #[test]
    fn many_dimensions_or_vectors_are_tiled_and_f32_slices_stay_short() {
        for (dims, vectors) in [(4, 1), (3, 2)] {
            let plan = plan(
                &problem(Work::Sum, 1 << 20, 1 << 20, dims, vectors),
                &h200(),
            );
            let plan = plan.expect("fits");
            assert!(matches!(plan.variant, KernelSumVariant::Tiled { .. }));
            assert_eq!((plan.bs, plan.slices, plan.grid), (256, 16, 16 << 14));
        }
        let one_set = problem(Work::SymmetricSum, 1 << 20, 1 << 20, 4, 1);
        let folded = plan(&one_set, &h200()).expect("fits");
        assert!(matches!(folded.variant, KernelSumVariant::Folded { .. }));
        assert_eq!((folded.slices, folded.grid), (8, 8 << 14));
    }

    #[test]
    fn near_points_have_distances_by_products() {
        let one_set = |extent, dims, function| Problem {
            function,
            extent,
            ..problem(Work::SymmetricSum, 1 << 20, 1 << 20, dims, 1)
        };
        let is_by_products = |problem: Problem| {
            let plan = plan(&problem, &h200()).expect("fits");
            matches!(plan.variant, KernelSumVariant::Products { .. })
        };
        let gaussian = KernelFunction::Gaussian;
        assert!(
            [2, 3].map(|dims| is_by_products(one_set(Extent::Near, dims, gaussian))) == [true; 2]
        );
        assert!(!is_by_products(one_set(Extent::Near, 1, gaussian)));
        assert!(!is_by_products(one_set(Extent::Any, 3, gaussian)));
        assert!(!is_by_products(one_set(
            Extent::Near,
            3,
            KernelFunction::Cauchy
        )));
    }

    #[test]
    fn more_points_than_a_launch_counts_are_refused() {
        let large = problem(Work::Gradient, 1, u64::from(u32::MAX), 3, 1);
        assert!(matches!(
            plan(&large, &h200()),
            Err(PlanError::TooLarge { .. })
        ));
    }
}
