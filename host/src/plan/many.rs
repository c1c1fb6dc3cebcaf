//! Launches with several right-hand sides: how many sides at once, which entry, how many blocks.
//!
//! Sides are taken eight at a time, and the last four or fewer by an entry for four. A dense X wider than a block holds
//! is cut into panels of columns, and the fused product into its halves. A sparse W is kept in shared memory or added to
//! in global memory, whichever the device's rates say is faster: both take an atomic addition per
//! side and nonzero.

use gpu_kernels::fused::{DenseManyVariant, Place, SparseManyVariant, TeamSize};

use super::PlanError;
use super::limits::{DeviceLimits, MAX_GRID};
use super::occupancy::{Usage, occupancy};
use super::problem::{Precision, Problem, Product};

/// Right-hand sides that one launch takes at most.
pub const MOST_SIDES: u32 = 8;
/// Sides of the smaller entries.
const FEW_SIDES: u32 = 4;
/// Threads of a block where teams are parts of a warp.
const THREADS: u32 = 256;
/// Threads of a block that has W in shared memory: one W serves many.
const SHARED_THREADS: u32 = 512;
/// Nonzeros of a row up to which four lanes are best, which hold 20 in registers.
const SHORT_ROW: f64 = 40.0;

/// An entry and what the planner has to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel<V> {
    /// Its name.
    pub name: &'static str,
    /// Its parameters.
    pub variant: V,
    /// Registers of a thread.
    pub registers: u32,
}

/// A launch, made for each group of sides (and for each panel of a dense X).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManyPlan {
    /// The entry.
    pub kernel: &'static str,
    /// Threads of a block.
    pub bs: u32,
    /// Blocks.
    pub grid: u32,
    /// Dynamic shared memory of a block, bytes.
    pub shared_bytes: u32,
    /// Columns of a panel; n where there is one.
    pub panel: u64,
}

/// The groups that `sides` right-hand sides are taken in, `most` at a time (at least one): the first of each and how
/// many.
///
/// ```
/// use warpfuse::plan::many::groups;
/// assert_eq!(groups(19, 8).collect::<Vec<_>>(), [(0, 8), (8, 8), (16, 3)]);
/// ```
pub fn groups(sides: u32, most: u32) -> impl Iterator<Item = (u32, u32)> {
    let starts = (0..sides).step_by(most as usize);
    starts.map(move |first| (first, (sides - first).min(most)))
}

/// Sides of the entry that takes a group of `count`.
const fn entry_sides(count: u32) -> u32 {
    if count <= FEW_SIDES {
        FEW_SIDES
    } else {
        MOST_SIDES
    }
}

/// Plans one group of sides of a dense X; `None` where the fused product needs its halves.
///
/// # Errors
/// [`PlanError::NoKernel`] when no entry fits the device.
pub fn dense(
    problem: &Problem,
    (product, count): (Product, u32),
    kernels: &[Kernel<DenseManyVariant>],
    limits: &DeviceLimits,
) -> Result<Option<ManyPlan>, PlanError> {
    let wanted = |kernel: &&Kernel<DenseManyVariant>| {
        let variant = &kernel.variant;
        variant.product == product.into() && variant.sides == entry_sides(count)
    };
    let fits = kernels.iter().filter(wanted);
    let held = |(kernel, bs): &(&Kernel<DenseManyVariant>, u32)| kernel.variant.columns(*bs);
    let blocks = fits.map(|kernel| (kernel, dense_block(kernel, problem, limits)));
    // The narrowest that holds a row; else the widest.
    let (mut narrowest, mut widest) = (None, None);
    for one in blocks {
        if held(&one) >= problem.cols && narrowest.as_ref().is_none_or(|n| held(n) > held(&one)) {
            narrowest = Some(one);
        }
        if widest.as_ref().is_none_or(|w| held(w) < held(&one)) {
            widest = Some(one);
        }
    }
    if narrowest.is_none() && product == Product::Fused {
        return Ok(None);
    }
    let Some((kernel, bs)) = narrowest.or(widest) else {
        return Err(no_kernel(problem, product, kernels.len()));
    };
    let Kernel {
        name,
        variant,
        registers,
    } = *kernel;
    let shared = variant.shared_bytes(bs, problem.dtype.bytes());
    let per_block = u64::from(bs / variant.team.threads(bs)) * u64::from(variant.rows);
    let panel = variant.columns(bs).min(problem.cols.max(1));
    let grid = grid(problem, per_block, (bs, registers, shared), limits);
    let grid = grid.ok_or_else(|| no_kernel(problem, product, kernels.len()))?;
    Ok(Some(ManyPlan {
        kernel: name,
        bs,
        grid,
        shared_bytes: shared as u32,
        panel,
    }))
}

/// Threads of a block: as many warps as a row fills, where the whole block works on it.
fn dense_block(kernel: &Kernel<DenseManyVariant>, problem: &Problem, limits: &DeviceLimits) -> u32 {
    let warp = limits.warp_size.max(1);
    let per_warp = kernel.registers.max(1).saturating_mul(warp);
    let per_warp = per_warp.next_multiple_of(limits.register_allocation_unit.max(1));
    // Whole groups of four warps, as the registers' partitions want them.
    let most = (limits.registers_per_sm / per_warp / 4 * 4 * warp).max(warp);
    let most = most
        .min(limits.max_threads_per_block)
        .min(kernel.variant.most_threads());
    match kernel.variant.team {
        TeamSize::Lanes(_) => THREADS.min(most),
        TeamSize::Block => {
            let lanes = problem.cols.div_ceil(u64::from(kernel.variant.width));
            let threads = lanes.max(1).saturating_mul(u64::from(kernel.variant.split));
            let threads = threads.next_multiple_of(u64::from(warp));
            u32::try_from(threads).unwrap_or(u32::MAX).min(most)
        }
    }
}

/// Plans one group of sides of a sparse X.
///
/// # Errors
/// [`PlanError::NoKernel`] when no entry fits the device.
pub fn sparse(
    problem: &Problem,
    (product, count): (Product, u32),
    kernels: &[Kernel<SparseManyVariant>],
    limits: &DeviceLimits,
) -> Result<ManyPlan, PlanError> {
    let sides = entry_sides(count);
    let vs = if problem.mean_row() <= SHORT_ROW || sides == FEW_SIDES {
        4
    } else {
        32
    };
    let place = place(problem, product, sides, limits);
    let wanted = SparseManyVariant {
        product: product.into(),
        place,
        vs,
        held: 0,
        sides,
    };
    let found = kernels.iter().find(|kernel| {
        let held = kernel.variant.held;
        kernel.variant == SparseManyVariant { held, ..wanted }
    });
    let none = || no_kernel(problem, product, kernels.len());
    let Kernel {
        name,
        variant,
        registers,
    } = *found.ok_or_else(none)?;
    let bs = match place {
        Place::Shared => SHARED_THREADS,
        _ => THREADS,
    };
    let cols = u32::try_from(problem.cols).unwrap_or(u32::MAX);
    let shared = variant.shared_bytes(cols, problem.dtype.bytes());
    let per_block = u64::from(bs / vs);
    let grid = grid(problem, per_block, (bs, registers, shared), limits).ok_or_else(none)?;
    Ok(ManyPlan {
        kernel: name,
        bs,
        grid,
        shared_bytes: shared as u32,
        panel: problem.cols,
    })
}

/// Where W is faster.
fn place(problem: &Problem, product: Product, sides: u32, limits: &DeviceLimits) -> Place {
    if product == Product::Forward {
        return Place::Absent;
    }
    let size = u64::from(problem.dtype.bytes());
    let bytes = problem.cols.saturating_mul(u64::from(sides) * size);
    let rates = &limits.rates;
    let (shared, global) = match problem.dtype {
        Precision::F32 => (rates.shared_add_f32, &rates.scatter_f32),
        Precision::F64 => (rates.shared_add_f64, &rates.scatter_f64),
    };
    let is_quicker = shared >= global.at(bytes as f64);
    if bytes <= u64::from(limits.shared_per_block) && is_quicker {
        Place::Shared
    } else {
        Place::Global
    }
}

/// As many blocks as the device holds, no more than there are rows for; `None` where an SM does not hold one.
fn grid(
    problem: &Problem,
    per_block: u64,
    (block_size, registers, shared_bytes): (u32, u32, u64),
    limits: &DeviceLimits,
) -> Option<u32> {
    let usage = Usage {
        block_size,
        registers,
        shared_bytes,
    };
    let held = occupancy(limits, usage).blocks_per_sm;
    let most = u64::from(held) * u64::from(limits.sms);
    let needed = problem.rows.div_ceil(per_block.max(1)).max(1);
    let grid = most.min(needed).min(u64::from(MAX_GRID));
    (held > 0).then_some(grid as u32)
}

fn no_kernel(problem: &Problem, product: Product, considered: usize) -> PlanError {
    PlanError::NoKernel {
        product,
        precision: problem.dtype,
        wanted: " with several right-hand sides".to_owned(),
        considered,
        remedy: "build the kernels for this device, or multiply one right-hand side after the other",
    }
}

#[cfg(test)]
mod tests {
    use gpu_kernels::Family;
    use gpu_kernels::fused::{DenseMany, SparseMany};

    use super::*;

    fn h200() -> DeviceLimits {
        DeviceLimits::known("h200").expect("a listed device")
    }

    fn dense_kernels() -> Vec<Kernel<DenseManyVariant>> {
        let entries = DenseMany::<f32>::entries().iter();
        let kernel = |entry: &gpu_kernels::Entry<DenseMany<f32>>| Kernel {
            name: entry.name,
            variant: entry.variant,
            registers: 128,
        };
        entries.map(kernel).collect()
    }

    fn sparse_kernels() -> Vec<Kernel<SparseManyVariant>> {
        let entries = SparseMany::<f32>::entries().iter();
        let kernel = |entry: &gpu_kernels::Entry<SparseMany<f32>>| Kernel {
            name: entry.name,
            variant: entry.variant,
            registers: 64,
        };
        entries.map(kernel).collect()
    }

    #[test]
    fn the_narrowest_team_that_holds_a_row_is_taken() {
        let plan = |cols| {
            let problem = Problem::dense(1_000_000, cols, Precision::F32);
            let plan = dense(&problem, (Product::Fused, 8), &dense_kernels(), &h200());
            plan.expect("a plan").map(|plan| (plan.kernel, plan.bs))
        };
        assert_eq!(plan(28), Some(("dense_many_fused_f32_t8_s2_l8_b4_r4", 128)));
        assert_eq!(
            plan(100),
            Some(("dense_many_fused_f32_t16_s4_l32_b2_r2", 128))
        );
        assert_eq!(
            plan(1_000),
            Some(("dense_many_fused_f32_block_s2_l16_b4_r4", 128))
        );
        assert_eq!(plan(10_000), None, "in two products");
    }

    #[test]
    fn wide_halves_are_cut_into_panels() {
        let problem = Problem::dense(100_000, 10_000, Precision::F32);
        for product in [Product::Forward, Product::Transposed] {
            let plan = dense(&problem, (product, 3), &dense_kernels(), &h200());
            let plan = plan.expect("a plan").expect("a half");
            assert_eq!((plan.bs, plan.panel), (512, 2_048));
            assert!(plan.kernel.ends_with("block_b4_r4"), "{}", plan.kernel);
        }
    }

    #[test]
    fn a_small_sparse_w_is_in_shared_memory() {
        let plan = |cols| {
            let problem = Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32);
            sparse(&problem, (Product::Fused, 8), &sparse_kernels(), &h200()).expect("a plan")
        };
        assert_eq!(plan(1_000).kernel, "sparse_many_fused_shared_f32_vs4_b8");
        assert_eq!(
            plan(1_000_000).kernel,
            "sparse_many_fused_global_f32_vs4_b8"
        );
        assert_eq!(plan(1_000).shared_bytes, 32_000);
    }
}
