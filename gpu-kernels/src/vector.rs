//! Vectors: fill, linear combination, dot product.
//!
//! Mapping: thread i takes elements i, i + threads of the grid, …. Dot products accumulate in f64; a block
//! writes its partial sum to `partials[block]`, and [`total`](self) adds those in the order of the blocks, so
//! that a result depends on the grid alone. Shared memory: one f64 per warp.

use crate::cta::{Cache, Cta, Shared, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_grid, sum_block};

/// The family of vector kernels.
pub struct Vectors<T>(core::marker::PhantomData<T>);

/// Arguments of every vector kernel; an entry ignores what it does not name.
#[repr(C)]
pub struct VectorArgs<'a, T> {
    /// Number of elements (of partial sums for `total`).
    pub len: u64,
    /// Factor of a, or the value to fill with.
    pub alpha: T,
    /// Factor of b.
    pub beta: T,
    /// First operand, optional in `update`.
    pub a: In<'a, T>,
    /// Second operand of `combine` (optional) and `dot`.
    pub b: In<'a, T>,
    /// Result of all but `dot`; never the memory of a or b.
    pub out: Out<'a, T>,
    /// One partial sum per block of `dot`; input of `total`.
    pub partials: Out<'a, f64>,
}

impl<T: Copy> Clone for VectorArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for VectorArgs<'_, T> {}

/// Which vector kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VectorVariant {
    /// `out = α` everywhere.
    Fill,
    /// `out = α·a + β·b`; without b, `out = α·a`.
    Combine,
    /// `out = α·a + β·out`; without a, `out = β·out`.
    Update,
    /// `partials[block] = Σ aᵢ·bᵢ` over the block's elements.
    Dot,
    /// `out[0] = Σ partials`, one block.
    Total,
}

impl VectorVariant {
    /// Dynamic shared memory that a block of `block` threads needs.
    pub const fn shared_bytes(&self, block: u32) -> u64 {
        match self {
            VectorVariant::Dot | VectorVariant::Total => (block / WARP) as u64 * 8,
            _ => 0,
        }
    }
}

fn fill<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| cta.write(args.out, i, args.alpha));
}

fn combine<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let mut sum = args.alpha * cta.load(args.a, i, Cache::Once);
        if args.b.is_some() {
            sum = args.beta.fma(cta.load(args.b, i, Cache::Once), sum);
        }
        cta.write(args.out, i, sum);
    });
}

fn update<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let mut sum = args.beta * cta.read(args.out, i);
        if args.a.is_some() {
            sum = args.alpha.fma(cta.load(args.a, i, Cache::Once), sum);
        }
        cta.write(args.out, i, sum);
    });
}

fn dot<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    let mut sum = 0.0;
    each_of_grid(cta, args.len, |i| {
        let a: T = cta.load(args.a, i, Cache::Once);
        let b: T = cta.load(args.b, i, Cache::Once);
        sum = a.to_f64().fma(b.to_f64(), sum);
    });
    write_partial(cta, args.partials, sum);
}

fn total<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    let sum = sum_partials(cta, args.partials, args.len as u32);
    if cta.thread() == 0 {
        cta.write(args.out, 0, T::of_f64(sum));
    }
}

/// One f64 per warp.
#[inline(always)]
pub(crate) fn scratch<C: Cta>(cta: &C) -> Shared<f64> {
    Shared::at(0, cta.threads() / WARP)
}

/// Sums `sum` over the block and writes it to the block's place.
#[inline(always)]
pub(crate) fn write_partial<C: Cta>(cta: &C, partials: Out<'_, f64>, sum: f64) {
    let sum = sum_block(cta, sum, scratch(cta));
    if cta.thread() == 0 {
        cta.write(partials, cta.block() as usize, sum);
    }
}

/// The sum of the first `len` partial sums, in every thread.
#[inline(always)]
pub(crate) fn sum_partials<C: Cta>(cta: &C, partials: Out<'_, f64>, len: u32) -> f64 {
    let mut sum = 0.0;
    crate::verbs::each_of_block(cta, len, |i| sum += cta.read(partials, i));
    sum_block(cta, sum, scratch(cta))
}

fn check<T: Real>(
    variant: &VectorVariant,
    launch: &Launch,
    args: &VectorArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(launch.block);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    let out = match variant {
        VectorVariant::Dot => 0,
        VectorVariant::Total => 1,
        _ => args.len,
    };
    Violation::at_least("length of out", out, args.out.len())?;
    if let VectorVariant::Combine | VectorVariant::Dot = variant {
        Violation::at_least("length of a", args.len, args.a.len())?;
    }
    match variant {
        VectorVariant::Dot => {
            Violation::at_least("length of b", args.len, args.b.len())?;
            Violation::at_least(
                "length of partials",
                launch.grid as u64,
                args.partials.len(),
            )
        }
        VectorVariant::Total => {
            Violation::equal("grid", 1, launch.grid as u64)?;
            Violation::at_least("length of partials", args.len, args.partials.len())
        }
        _ => super::fused::check_optional(&args.a, "length of a", args.len).and(
            super::fused::check_optional(&args.b, "length of b", args.len),
        ),
    }
}

macro_rules! vector_family {
    ($t:ident) => {
        crate::kernels! {
            family Vectors<$t>, "vector";
            args VectorArgs<'a, $t>;
            variant VectorVariant;
            check check::<$t>;
            concat!("vector_fill_", stringify!($t)), VectorVariant::Fill => fill::<_, $t>;
            concat!("vector_combine_", stringify!($t)), VectorVariant::Combine => combine::<_, $t>;
            concat!("vector_update_", stringify!($t)), VectorVariant::Update => update::<_, $t>;
            concat!("vector_dot_", stringify!($t)), VectorVariant::Dot => dot::<_, $t>;
            concat!("vector_total_", stringify!($t)), VectorVariant::Total => total::<_, $t>;
        }
    };
}

vector_family!(f32);
vector_family!(f64);
