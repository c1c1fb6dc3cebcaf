//! Sums over kernels: `f(xᵢ) = Σⱼ k(xᵢ, yⱼ) · wⱼ`, without the matrix of all k(xᵢ, yⱼ).
//!
//! xᵢ, i < M, are the *targets*, yⱼ, j < N, the *sources*; both are stored coordinate by coordinate
//! (`x[d·M + i]`), scaled as [`radial`] says. Every launch adds up in slices of the sources and leaves its sums in
//! f64 in `partials`; [`finish`](KernelSumVariant::Finish) adds the slices in order. O(M + N) memory.
//!
//! | body | what | who |
//! |---|---|---|
//! | [`narrow`] | one weight vector, 1 to 3 dimensions: 8 targets per thread in registers | plain |
//! | [`exchange`] | the same, each pair once | symmetric |
//! | [`products`] | the Gaussian of near points, 2 or 3 dimensions: distances by products | symmetric |
//! | [`tiled`] | any number of dimensions, up to 4 weight vectors: 4 × 4 pairs per thread | plain |
//! | [`gradient`] | ∂f/∂x in windows of 16 dimensions | plain |
// Loops over indices that are known once they are unrolled keep arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

mod args;
pub mod exchange;
pub mod finish;
pub mod folded;
pub mod gradient;
pub mod narrow;
pub mod products;
pub mod radial;
mod table;
pub mod tiled;

use crate::table::{Launch, Violation};

pub(crate) use args::slice_of;
pub use args::{KernelSumArgs, MAX_POINTS};
pub use radial::{Function, KernelFunction, Radial};

/// The family of kernel sums.
pub struct KernelSums<T>(core::marker::PhantomData<T>);

/// What distinguishes the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KernelSumVariant {
    /// [`narrow`]: D dimensions in registers.
    Narrow {
        /// k.
        function: KernelFunction,
        /// Dimensions that are computed with; missing ones are absent coordinates.
        dims: u32,
    },
    /// [`exchange`]: x = y, each pair once.
    Symmetric {
        /// k.
        function: KernelFunction,
        /// As for `Narrow`.
        dims: u32,
    },
    /// [`products`]: the Gaussian over one set of points, none of which is far from the origin.
    Products {
        /// As for `Narrow`.
        dims: u32,
    },
    /// [`tiled`].
    Tiled {
        /// k.
        function: KernelFunction,
    },
    /// [`folded`]: [`tiled`] with x = y, each pair once.
    Folded {
        /// k.
        function: KernelFunction,
    },
    /// [`gradient`].
    Gradient {
        /// k.
        function: KernelFunction,
    },
    /// [`finish`]: `out = α · Σ partials + β · z`.
    Finish,
}

impl KernelSumVariant {
    /// Targets that a block of `block` threads takes.
    pub const fn targets_per_block(&self, block: u32) -> u32 {
        match self {
            KernelSumVariant::Narrow { .. }
            | KernelSumVariant::Symmetric { .. }
            | KernelSumVariant::Products { .. } => block * narrow::HELD as u32,
            KernelSumVariant::Tiled { .. }
            | KernelSumVariant::Folded { .. }
            | KernelSumVariant::Gradient { .. } => tiled::TILE,
            KernelSumVariant::Finish => block,
        }
    }

    /// Dynamic shared memory that a block of `block` threads needs, for elements of `size` bytes.
    pub const fn shared_bytes(&self, block: u32, size: u32) -> u64 {
        let elements = match self {
            KernelSumVariant::Narrow { dims, .. } => {
                narrow::stage(block) * narrow::record(*dims, size)
            }
            KernelSumVariant::Symmetric { dims, .. } => {
                let returns = block / crate::cta::WARP;
                narrow::stage(block) * (narrow::record(*dims, size) + returns)
            }
            KernelSumVariant::Products { dims } => products::shared_elements(block, *dims, size),
            KernelSumVariant::Tiled { .. } => tiled::SHARED_ELEMENTS,
            KernelSumVariant::Folded { .. } => folded::SHARED_ELEMENTS,
            KernelSumVariant::Gradient { .. } => gradient::SHARED_ELEMENTS,
            KernelSumVariant::Finish => 0,
        };
        elements as u64 * size as u64
    }

    /// Blocks that a launch must have; `None` where any number will do.
    pub const fn grid(&self, block: u32, targets: u32, slices: u32) -> Option<u64> {
        let tiles = targets.div_ceil(self.targets_per_block(block)) as u64;
        match self {
            KernelSumVariant::Finish => None,
            // Every tile with itself and with half of the others.
            KernelSumVariant::Symmetric { .. } | KernelSumVariant::Products { .. } => {
                Some(tiles * (tiles / 2 + 1))
            }
            _ => Some(tiles * slices as u64),
        }
    }

    /// Values per target of a launch, at most.
    const fn most_vectors(&self) -> u32 {
        match self {
            KernelSumVariant::Gradient { .. } => gradient::WINDOW,
            KernelSumVariant::Tiled { .. } | KernelSumVariant::Folded { .. } => {
                tiled::VECTORS as u32
            }
            KernelSumVariant::Finish => u32::MAX,
            _ => 1,
        }
    }
}

/// The contract of every entry.
fn check<T>(
    variant: &KernelSumVariant,
    launch: &Launch,
    args: &KernelSumArgs<'_, T>,
) -> Result<(), Violation>
where
    T: crate::Real,
{
    let (m, n) = (args.targets as u64, args.sources as u64);
    Violation::multiple_of("block", crate::cta::WARP as u64, launch.block as u64)?;
    let shared = variant.shared_bytes(launch.block, T::SIZE);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_most("targets", MAX_POINTS as u64, m)?;
    Violation::at_most("sources", MAX_POINTS as u64, n)?;
    Violation::at_least("slices", 1, args.slices as u64)?;
    if let Some(grid) = variant.grid(launch.block, args.targets, args.slices) {
        Violation::equal("grid", grid, launch.grid as u64)?;
    }
    Violation::at_least("vectors", 1, args.vectors as u64)?;
    Violation::at_most(
        "vectors",
        variant.most_vectors() as u64,
        args.vectors as u64,
    )?;
    let partials = (args.vectors as u64 * args.slices as u64).saturating_mul(m);
    Violation::at_least("length of partials", partials, args.partials.len())?;
    if *variant == KernelSumVariant::Finish {
        return check_finish(args);
    }
    Violation::at_least("dimensions", 1, args.dims as u64)?;
    Violation::at_least("length of x", args.dims as u64 * m, args.x.len())?;
    Violation::at_least("length of y", args.dims as u64 * n, args.y.len())?;
    let vectors = match variant {
        KernelSumVariant::Tiled { .. } | KernelSumVariant::Folded { .. } => args.vectors,
        _ => 1,
    };
    Violation::at_least("length of w", vectors as u64 * n, args.w.len())?;
    check_variant(variant, launch, args)
}

fn check_finish<T>(args: &KernelSumArgs<'_, T>) -> Result<(), Violation> {
    if args.targets == 0 {
        return Ok(());
    }
    let last = (args.targets as u64 - 1)
        .saturating_mul(args.out_row)
        .saturating_add(
            (args.first as u64 + args.vectors as u64 - 1).saturating_mul(args.out_column),
        );
    let len = last.saturating_add(1);
    Violation::at_least("length of out", len, args.out.len())?;
    crate::fused::check_optional(&args.z, "length of z", len)
}

fn check_variant<T>(
    variant: &KernelSumVariant,
    launch: &Launch,
    args: &KernelSumArgs<'_, T>,
) -> Result<(), Violation> {
    match variant {
        KernelSumVariant::Narrow { dims, .. } => {
            Violation::at_most("dimensions", *dims as u64, args.dims as u64)
        }
        KernelSumVariant::Symmetric { dims, .. } | KernelSumVariant::Products { dims } => {
            if let KernelSumVariant::Products { .. } = variant {
                Violation::at_most("block", products::MOST_THREADS as u64, launch.block as u64)?;
            }
            Violation::at_most("dimensions", *dims as u64, args.dims as u64)?;
            Violation::equal("slices", 1, args.slices as u64)?;
            Violation::equal("sources", args.targets as u64, args.sources as u64)
        }
        KernelSumVariant::Folded { .. } => {
            Violation::equal("block", tiled::THREADS as u64, launch.block as u64)?;
            Violation::equal("sources", args.targets as u64, args.sources as u64)
        }
        _ => Violation::equal("block", tiled::THREADS as u64, launch.block as u64),
    }
}
