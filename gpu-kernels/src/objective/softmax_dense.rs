//! Dense X (row-major) times k columns, a softmax, and back, in one pass, for X of few columns.
//!
//! Formula: see [`super::softmax`]. Mapping: a team of CG · VS lanes owns a row; lane (g, c) owns class c of the packs
//! g, g + CG, … of columns, at most N elements, with Y's and W's elements of these in registers. Lanes of
//! one column read the same element of X in the same instruction. Products are added over the CG column groups by
//! shuffles; a lane's elements of W go through the block's shared memory to global memory once, at the end.
//!
//! Shared memory: n·k elements, and at least one f64 per thread.

use super::softmax::{SoftmaxRows, Teams, check_launch};
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::DenseArgs;
use crate::math::Elementary;
use crate::scalar::{Pack, Words};
use crate::table::{Launch, Violation};
use crate::verbs::{FULL, flush_shared, global_warp, global_warps, lane, zero_shared};

/// The family of dense softmax objectives.
pub struct DenseSoftmax<T>(core::marker::PhantomData<T>);

/// Arguments of dense softmax objectives.
#[repr(C)]
pub struct DenseSoftmaxArgs<'a, T> {
    /// X, with Y as `input` and W as `output`; its weights, shift and addend are not used.
    pub x: DenseArgs<'a, T>,
    /// The rows.
    pub rows: SoftmaxRows<'a, T>,
}

impl<T: Copy> Clone for DenseSoftmaxArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for DenseSoftmaxArgs<'_, T> {}

/// What distinguishes dense softmax objectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DenseSoftmaxVariant {
    /// VS: lanes per column group of a row, and the most classes.
    pub vs: u32,
    /// CG: column groups.
    pub groups: u32,
    /// N: columns per lane at most.
    pub per_lane: u32,
}

impl DenseSoftmaxVariant {
    /// The most columns.
    pub const fn columns(&self) -> u32 {
        self.groups * self.per_lane
    }

    /// Dynamic shared memory of a block of `block` threads for `elements` elements of W of `size` bytes.
    pub const fn shared_bytes(&self, block: u32, elements: u64, size: u32) -> u64 {
        let copy = elements * size as u64;
        let scratch = super::softmax::scratch_bytes(block);
        if copy > scratch { copy } else { scratch }
    }
}

/// A lane's packs of columns.
struct Place {
    class: u32,
    group: u32,
}

impl Place {
    #[inline(always)]
    fn of<C: Cta, const VS: u32, const CG: u32>(cta: &C) -> Self {
        Place {
            class: lane(cta) % VS,
            group: lane(cta) / VS % CG,
        }
    }

    /// The first column of pack i.
    #[inline(always)]
    fn column<const CG: u32>(&self, i: usize, width: usize) -> u32 {
        (i as u32 * CG + self.group) * width as u32
    }
}

/// This lane's packs of a row; zeros past its end and for a row that is not there.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn load_row<C: Cta, T: Elementary, const CG: u32, const P: usize>(
    cta: &C,
    x: &DenseArgs<'_, T>,
    place: &Place,
    row: u64,
) -> [T::Pack; P] {
    let width = <T::Pack as Words<T>>::LANES;
    let mut packs = [T::Pack::ZERO; P];
    if row >= x.rows as u64 {
        return packs;
    }
    let start = row * x.ld;
    let aligned = x.ld.is_multiple_of(width as u64);
    for (i, pack) in packs.iter_mut().enumerate() {
        let column = place.column::<CG>(i, width);
        if column >= x.cols {
            continue;
        }
        let at = (start + column as u64) as usize;
        if aligned {
            *pack = cta.load_pack(x.x, at, Cache::Keep);
            continue;
        }
        for (j, value) in pack.as_mut().iter_mut().enumerate() {
            if column + (j as u32) < x.cols {
                *value = cta.load(x.x, at + j, Cache::Keep);
            }
        }
    }
    packs
}

/// This lane's elements of Y, zeros past its end.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn load_factors<C: Cta, T: Elementary, const CG: u32, const P: usize>(
    cta: &C,
    args: &DenseSoftmaxArgs<'_, T>,
    place: &Place,
) -> [T::Pack; P] {
    let width = <T::Pack as Words<T>>::LANES;
    let mut packs = [T::Pack::ZERO; P];
    for (i, pack) in packs.iter_mut().enumerate() {
        for (j, value) in pack.as_mut().iter_mut().enumerate() {
            let column = place.column::<CG>(i, width) + j as u32;
            if column < args.x.cols && place.class < args.rows.classes {
                let at = column as usize * args.rows.classes as usize + place.class as usize;
                *value = cta.load(args.x.input, at, Cache::Keep);
            }
        }
    }
    packs
}

/// Adds this lane's elements of W to the block's copy.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn store_sums<C: Cta, T: Elementary, const CG: u32, const P: usize>(
    cta: &C,
    args: &DenseSoftmaxArgs<'_, T>,
    place: &Place,
    sums: &[T::Pack; P],
    copy: Shared<T>,
) {
    let width = <T::Pack as Words<T>>::LANES;
    for (i, pack) in sums.iter().enumerate() {
        for (j, value) in pack.as_ref().iter().enumerate() {
            let column = place.column::<CG>(i, width) + j as u32;
            if column < args.x.cols && place.class < args.rows.classes {
                let at = column as usize * args.rows.classes as usize + place.class as usize;
                cta.shared_add(copy, at, *value);
            }
        }
    }
}

#[inline(always)]
fn softmax<C, T, const VS: u32, const CG: u32, const P: usize>(
    cta: &C,
    args: &DenseSoftmaxArgs<'_, T>,
) where
    C: Cta,
    T: Elementary,
{
    if crate::cg::is_over(cta, args.rows.solve) {
        return;
    }
    let x = &args.x;
    let place = Place::of::<C, VS, CG>(cta);
    let factors = load_factors::<C, T, CG, P>(cta, args, &place);
    let mut sums = [T::Pack::ZERO; P];
    let mut teams = Teams::<T, VS, 1>::new(cta, &args.rows);
    let rows_of_warp = WARP / (VS * CG);
    let mut first = global_warp(cta) as u64 * rows_of_warp as u64;
    while first < x.rows as u64 {
        let row = first + (lane(cta) / (VS * CG)) as u64;
        let packs = load_row::<C, T, CG, P>(cta, x, &place, row);
        let mut dot = T::ZERO;
        for (pack, factor) in packs.iter().zip(&factors) {
            dot = pack.dot(factor, dot);
        }
        let mut distance = VS;
        while distance < VS * CG {
            dot = dot + cta.shuffle(dot, Shuffle::Xor(distance), WARP, FULL);
            distance *= 2;
        }
        let there = (row < x.rows as u64).then_some(row as usize);
        let [slope] = teams.slopes(cta, there, place.group == 0, [dot]);
        for (pack, sum) in packs.iter().zip(&mut sums) {
            pack.scale_add(slope, sum);
        }
        first += global_warps(cta) as u64 * rows_of_warp as u64;
    }
    let elements = x.cols * args.rows.classes;
    let copy = Shared::<T>::at(0, elements);
    zero_shared(cta, copy);
    cta.sync();
    store_sums::<C, T, CG, P>(cta, args, &place, &sums, copy);
    cta.sync();
    flush_shared(cta, copy, elements, T::ONE, x.output);
    teams.finish(cta);
}

fn check<T: Elementary>(
    variant: &DenseSoftmaxVariant,
    launch: &Launch,
    args: &DenseSoftmaxArgs<'_, T>,
) -> Result<(), Violation> {
    let (x, k) = (&args.x, args.rows.classes as u64);
    let elements = x.cols as u64 * k;
    check_launch(
        launch,
        variant.shared_bytes(launch.block, elements, T::SIZE),
    )?;
    Violation::at_most("columns", variant.columns() as u64, x.cols as u64)?;
    Violation::at_least("leading dimension", x.cols as u64, x.ld)?;
    let needed = (x.rows as u64).saturating_mul(x.ld);
    Violation::at_least("length of x", needed, x.x.len())?;
    Violation::at_least("length of input", elements, x.input.len())?;
    Violation::at_least("length of output", elements, x.output.len())?;
    args.rows.check(x.rows as u64, variant.vs)
}

macro_rules! dense_softmax {
    ($t:ident, $packs:literal, $columns:literal: $( ($vs:literal, $cg:literal) )*) => {
        crate::kernels! {
            family DenseSoftmax<$t>, "objective";
            args DenseSoftmaxArgs<'a, $t>;
            variant DenseSoftmaxVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            $(
                concat!("softmax_dense_", stringify!($t), "_vs", $vs, "_g", $cg),
                DenseSoftmaxVariant { vs: $vs, groups: $cg, per_lane: $columns }
                    => softmax::<_, $t, $vs, $cg, $packs>;
            )*
        }
    };
}

// As many columns per lane as registers hold three times: Y, W and a row.
dense_softmax!(f32, 8, 32: (4, 1) (4, 2) (4, 4) (4, 8) (8, 1) (8, 2) (8, 4) (16, 1) (16, 2) (32, 1));
dense_softmax!(f64, 8, 16: (4, 1) (4, 2) (4, 4) (4, 8) (8, 1) (8, 2) (8, 4) (16, 1) (16, 2) (32, 1));
