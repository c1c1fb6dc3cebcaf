//! Vectors: fill, linear combination, copies with strides, dot product.
//!
//! Mapping: thread i takes elements i, i + threads of the grid, …. Dot products accumulate in f64; a block
//! writes its partial sum to `partials[block]`, and [`total`](self), or the block of `dot_to` that ends last, adds
//! those in the order of the blocks, so that a result depends on the grid alone. Shared memory: one f64 per warp,
//! for `dot_to` a word more.
//!
//! `dot_to` and `steer` keep scalars on the device, in `figures`: a solver's dot product becomes the factor of its next
//! update without the host.

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
    /// Second operand of `combine` (optional), `dot` and `multiply`.
    pub b: In<'a, T>,
    /// Result of all but `dot`; never the memory of a or b.
    pub out: Out<'a, T>,
    /// One partial sum per block of `dot` and `dot_to`; input of `total`.
    pub partials: Out<'a, f64>,
    /// Steps from one element of a, and of out, to the next, of `strided`.
    pub strides: [u32; 2],
    /// Scalars, of `dot_to` and `steer`.
    pub figures: Out<'a, f64>,
    /// Places of the scalars: p, q, r of `steer`; `dot_to` writes the first.
    pub slots: [u32; 3],
    /// Zero before and after, of `dot_to`.
    pub counter: Out<'a, u32>,
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
    /// `out[i·strides[1]] = α·a[i·strides[0]]`.
    Strided,
    /// `figures[slots[0]] = Σ aᵢ·bᵢ`.
    DotTo,
    /// `out = out + (α·f[p] + β·f[q]) / f[r] · a`, f the figures and p, q, r the slots.
    Steer,
    /// `out = a ⊙ b`.
    Multiply,
}

impl VectorVariant {
    /// Dynamic shared memory that a block of `block` threads needs.
    pub const fn shared_bytes(&self, block: u32) -> u64 {
        match self {
            VectorVariant::Dot | VectorVariant::Total => (block / WARP) as u64 * 8,
            VectorVariant::DotTo => (block / WARP) as u64 * 8 + 8,
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

fn strided<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    let [from, to] = [args.strides[0] as usize, args.strides[1] as usize];
    each_of_grid(cta, args.len, |i| {
        let a: T = cta.load(args.a, i * from, Cache::Once);
        cta.write(args.out, i * to, args.alpha * a);
    });
}

#[inline(always)]
fn dot_of_thread<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) -> f64 {
    let mut sum = 0.0;
    each_of_grid(cta, args.len, |i| {
        let a: T = cta.load(args.a, i, Cache::Once);
        let b: T = cta.load(args.b, i, Cache::Once);
        sum = a.to_f64().fma(b.to_f64(), sum);
    });
    sum
}

fn dot<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    write_partial(cta, args.partials, dot_of_thread(cta, args));
}

fn dot_to<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    write_partial(cta, args.partials, dot_of_thread(cta, args));
    let flag = Shared::<u32>::at(cta.threads() / WARP * 8, 1);
    if is_last(cta, args.counter, flag) {
        let sum = sum_partials(cta, args.partials, cta.blocks());
        if cta.thread() == 0 {
            cta.write(args.figures, args.slots[0] as usize, sum);
        }
    }
}

fn steer<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    let [p, q, r] = args.slots.map(|slot| cta.read(args.figures, slot as usize));
    let above = args.alpha.to_f64().fma(p, args.beta.to_f64() * q);
    let factor = T::of_f64(above / r);
    each_of_grid(cta, args.len, |i| {
        let a: T = cta.load(args.a, i, Cache::Once);
        cta.write(args.out, i, factor.fma(a, cta.read(args.out, i)));
    });
}

fn multiply<C: Cta, T: Real>(cta: &C, args: &VectorArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let a: T = cta.load(args.a, i, Cache::Once);
        cta.write(args.out, i, a * cta.load(args.b, i, Cache::Once));
    });
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

/// Whether this block is the last of the grid to come here, which then sees what all wrote before. The counter is zero
/// before the first and after the last. The whole block calls.
#[inline(always)]
pub(crate) fn is_last<C: Cta>(cta: &C, counter: Out<'_, u32>, flag: Shared<u32>) -> bool {
    cta.sync();
    if cta.thread() == 0 {
        let last = cta.blocks() - 1;
        let ticket = cta.ticket(counter, 0, last);
        cta.shared_write(flag, 0, u32::from(ticket == last));
    }
    cta.sync();
    cta.shared_read(flag, 0) == 1
}

fn check<T: Real>(
    variant: &VectorVariant,
    launch: &Launch,
    args: &VectorArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(launch.block);
    let grid = launch.grid as u64;
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    let [from, to] = args.strides.map(|stride| spread(args.len, stride));
    let (a, b, out) = match variant {
        VectorVariant::Fill => (0, 0, args.len),
        VectorVariant::Combine => (args.len, 0, args.len),
        VectorVariant::Update => (0, 0, args.len),
        VectorVariant::Dot | VectorVariant::DotTo => (args.len, args.len, 0),
        VectorVariant::Total => (0, 0, 1),
        VectorVariant::Strided => (from, 0, to),
        VectorVariant::Steer => (args.len, 0, args.len),
        VectorVariant::Multiply => (args.len, args.len, args.len),
    };
    Violation::at_least("length of out", out, args.out.len())?;
    Violation::at_least("length of a", a, args.a.len())?;
    Violation::at_least("length of b", b, args.b.len())?;
    match variant {
        VectorVariant::Dot => Violation::at_least("length of partials", grid, args.partials.len()),
        VectorVariant::Total => {
            Violation::equal("grid", 1, grid)?;
            Violation::at_least("length of partials", args.len, args.partials.len())
        }
        VectorVariant::DotTo => {
            Violation::at_least("length of partials", grid, args.partials.len())?;
            Violation::at_least("length of the counter", 1, args.counter.len())?;
            check_slots(args, 1)
        }
        VectorVariant::Steer => check_slots(args, 3),
        VectorVariant::Strided | VectorVariant::Multiply => Ok(()),
        _ => super::fused::check_optional(&args.a, "length of a", args.len).and(
            super::fused::check_optional(&args.b, "length of b", args.len),
        ),
    }
}

/// Elements from the first to the last of `len` that lie `stride` apart.
fn spread(len: u64, stride: u32) -> u64 {
    match len {
        0 => 0,
        len => (len - 1).saturating_mul(stride as u64).saturating_add(1),
    }
}

/// Whether the first `count` slots lie within the figures.
fn check_slots<T>(args: &VectorArgs<'_, T>, count: usize) -> Result<(), Violation> {
    for slot in &args.slots[..count] {
        Violation::at_least("length of figures", *slot as u64 + 1, args.figures.len())?;
    }
    Ok(())
}

macro_rules! vector_family {
    ($t:ident) => {
        crate::kernels! {
            family Vectors<$t>, "vector";
            args VectorArgs<'a, $t>;
            variant VectorVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("vector_fill_", stringify!($t)), VectorVariant::Fill => fill::<_, $t>;
            concat!("vector_combine_", stringify!($t)), VectorVariant::Combine => combine::<_, $t>;
            concat!("vector_update_", stringify!($t)), VectorVariant::Update => update::<_, $t>;
            concat!("vector_dot_", stringify!($t)), VectorVariant::Dot => dot::<_, $t>;
            concat!("vector_total_", stringify!($t)), VectorVariant::Total => total::<_, $t>;
            concat!("vector_strided_", stringify!($t)), VectorVariant::Strided => strided::<_, $t>;
            concat!("vector_dot_to_", stringify!($t)), VectorVariant::DotTo => dot_to::<_, $t>;
            concat!("vector_steer_", stringify!($t)), VectorVariant::Steer => steer::<_, $t>;
            concat!("vector_multiply_", stringify!($t)), VectorVariant::Multiply => multiply::<_, $t>;
        }
    };
}

vector_family!(f32);
vector_family!(f64);
