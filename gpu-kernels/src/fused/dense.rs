//! Dense X (row-major): one pass over the rows, everything in registers.
//!
//! Formula: `w += α · Xᵀ( v ⊙ (X·y − s) )`, X m × n with leading dimension `ld`; w holds β·z (or zero)
//! before. Rows start at multiples of the load width.
//!
//! Mapping: a [`Team`] of threads owns R rows at a time; each thread holds K packs of every row, the same
//! K packs of y for the whole kernel, and K packs of the partial w. Thread `t`'s packs are t, t + size, …
//! so that a team's loads are contiguous. Columns past n are guarded, not padded.
//!
//! [`super::Product::Transposed`] cuts X into panels of `size · K` packs of columns, a block working on one panel,
//! so that any n is possible; [`super::Product::Forward`] walks a row in steps of `size · K` packs.
//!
//! Shared memory: one panel's elements (aggregation over the block's warps), or the sums' scratch for whole
//! blocks. Result: in w when the kernel has ended. Guarantees: atomics add in any order, but with
//! [`DenseArgs::chunks`] no atomic is involved: [`super::dense_order`].
//!
//! Source: registers for y, row and result, coarsening and TL × VS follow the published method for fused
//! dense kernels; rows in flight, 16-byte packs and panels are ours.

use super::dense_flush::flush;
use super::{Compute, Team, TeamSize};
use crate::cta::{Cache, Cta, Shared};
use crate::memory::{In, Out};
use crate::scalar::{Pack, Real, Words};
use crate::verbs::load_or;

/// The family of dense kernels.
pub struct Dense<T>(core::marker::PhantomData<T>);

/// Arguments of every dense kernel.
#[repr(C)]
pub struct DenseArgs<'a, T> {
    /// m.
    pub rows: u32,
    /// n.
    pub cols: u32,
    /// 0: what blocks come to is added to w. Another number: the rows are shared out as to so many blocks (or clusters),
    /// which the launch's take in turn, and what each comes to is written to a row of `output`, without α: the same
    /// bits whatever the grid. [`super::Product::Forward`] ignores it.
    pub chunks: u32,
    /// Elements from the start of a row to the start of the next; at least n.
    pub ld: u64,
    /// m · ld elements, row by row. What lies between n and `ld` must be finite: packed loads reach into it and
    /// multiply it by 0.
    pub x: In<'a, T>,
    /// y (n elements) for [`super::Product::Fused`] and [`super::Product::Forward`], p (m) for the other.
    pub input: In<'a, T>,
    /// v (m elements), optional.
    pub weights: In<'a, T>,
    /// s (one element), optional.
    pub shift: In<'a, T>,
    /// z (m elements), optional; read by [`super::Product::Forward`] alone.
    pub addend: In<'a, T>,
    /// w (n elements), or p (m) for [`super::Product::Forward`]; chunks × n elements where there are chunks.
    pub output: Out<'a, T>,
    /// α.
    pub alpha: T,
    /// β, used by [`super::Product::Forward`] alone.
    pub beta: T,
}

impl<T: Copy> Clone for DenseArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for DenseArgs<'_, T> {}

impl<T: Real> DenseArgs<'_, T> {
    /// The parts into which the rows are shared out, where a launch has `blocks` for them.
    #[inline(always)]
    pub(super) fn slices(&self, blocks: u32) -> u32 {
        match self.chunks {
            0 => blocks,
            chunks => chunks,
        }
    }

    /// Adds what a slice comes to in a column to w, or writes it where it belongs.
    #[inline(always)]
    pub(super) fn keep<C: Cta>(&self, cta: &C, slice: u32, column: u32, sum: T) {
        match self.chunks {
            0 => cta.add(self.output, column as usize, self.alpha * sum),
            _ => {
                let at = slice as u64 * self.cols as u64 + column as u64;
                cta.write(self.output, at as usize, sum);
            }
        }
    }

    /// The same for a pack of columns, as far as they are there. A whole pack is added at once, which costs the L2 cache
    /// as much as one element (n = 32,768: 902 µs in place of 918 on an H200, 98.9 % of a plain read).
    ///
    /// Writing whole packs where there are chunks was left: kernels of clusters, which have no register left, spill then.
    #[inline(always)]
    pub(super) fn keep_pack<C: Cta, P: Pack<T>>(&self, cta: &C, slice: u32, column: u32, pack: &P) {
        let lanes = P::LANES as u32;
        if self.chunks == 0 && P::LANES == T::Pack::LANES && column + lanes <= self.cols {
            let mut sum = T::Pack::ZERO;
            for (to, from) in sum.as_mut().iter_mut().zip(pack.as_ref()) {
                *to = self.alpha * *from;
            }
            return cta.add_pack(self.output, column as usize, sum);
        }
        for (j, element) in pack.as_ref().iter().enumerate() {
            if column + (j as u32) < self.cols {
                self.keep(cta, slice, column + j as u32, *element);
            }
        }
    }
}

/// A thread's packs of a panel: pack k starts at column `start + rank · L + k · size · L`.
pub(super) struct Columns {
    first: u32,
    step: u32,
}

impl Columns {
    #[inline(always)]
    pub(super) fn of<C: Cta, G: Team>(cta: &C, start: u32, lanes: usize) -> Columns {
        let lanes = lanes as u32;
        Columns {
            first: start + G::rank(cta) * lanes,
            step: G::size(cta) * lanes,
        }
    }

    /// Packs that follow one another.
    #[inline(always)]
    pub(super) fn run(first: u32, lanes: u32) -> Columns {
        Columns { first, step: lanes }
    }

    /// The same, to be reckoned again where it is used: kept over the rows, the places of K packs take up to 60 registers
    /// (n = 1,024).
    #[inline(always)]
    pub(super) fn fresh<C: Cta>(&self, cta: &C) -> Columns {
        Columns {
            first: cta.fresh(self.first),
            step: cta.fresh(self.step),
        }
    }

    #[inline(always)]
    pub(super) fn at(&self, k: usize) -> u32 {
        self.first + k as u32 * self.step
    }
}

/// Packs of a vector of n elements, zero past its end.
#[inline(always)]
pub(super) fn load_vector<C: Cta, T: Real, P: Pack<T>, const K: usize>(
    cta: &C,
    vector: In<'_, T>,
    columns: &Columns,
    cols: u32,
) -> [P; K] {
    let mut packs = [P::ZERO; K];
    for (k, pack) in packs.iter_mut().enumerate() {
        for (j, element) in pack.as_mut().iter_mut().enumerate() {
            let column = columns.at(k) + j as u32;
            if column < cols {
                *element = cta.load(vector, column as usize, Cache::Keep);
            }
        }
    }
    packs
}

/// A thread's packs of one row, zero where the row or the columns end.
#[inline(always)]
pub(super) fn load_row<C: Cta, T: Real, P: Pack<T>, const K: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    columns: &Columns,
    row: u64,
) -> [P; K] {
    let mut packs = [P::ZERO; K];
    let start = row * args.ld;
    for (k, pack) in packs.iter_mut().enumerate() {
        let column = columns.at(k);
        if column < args.cols && row < args.rows as u64 {
            *pack = cta.load_pack(args.x, (start + column as u64) as usize, Cache::Once);
        }
    }
    packs
}

/// The R rows of this thread's team when its group is at row `first`: first + team, + TEAMS, …
#[inline(always)]
pub(crate) fn row_of<C: Cta, G: Team>(cta: &C, first: u64, i: usize) -> u64 {
    first + (i as u32 * G::TEAMS + G::team(cta)) as u64
}

/// What a row is multiplied by besides its dot product: v, or v ⊙ p; 0 for a row that is not there.
///
/// Asked for together with the row: after the reduction its latency would stand alone (0.91 → 1.16 ms for
/// 8,000,000 × 128 on an H200).
#[inline(always)]
pub(super) fn multiplier<C: Cta, T: Real, P: Compute>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    row: u64,
) -> T {
    if row >= args.rows as u64 {
        return T::ZERO;
    }
    let row = row as usize;
    let weight = load_or(cta, args.weights, row, T::ONE);
    if P::DOTS {
        weight
    } else {
        weight * cta.load(args.input, row, Cache::Keep)
    }
}

/// The row's factor. A row that is not there has multiplier 0, whatever the shift.
#[inline(always)]
pub(super) fn factor<T: Real, P: Compute>(dot: T, shift: T, multiplier: T) -> T {
    if P::DOTS {
        (dot - shift) * multiplier
    } else {
        multiplier
    }
}

/// What happens to the R rows of a team between their dot products and their addition to w.
pub(crate) trait TeamStep<T: Real> {
    /// Whether rows are multiplied by y.
    const DOTS: bool;
    /// What is asked for together with R rows, so that its latency does not stand alone.
    type Early<const R: usize>;
    /// What the rows' factors are made of once their dot products are known.
    type Ready<const R: usize>;
    /// Loads what holds for all rows.
    fn open<C: Cta>(&mut self, cta: &C);
    /// Asks for what belongs to the rows of a team; `first` is the group's row.
    fn early<C: Cta, G: Team, const R: usize>(&self, cta: &C, first: u64) -> Self::Early<R>;
    /// Takes the dot products. All threads of the group call it.
    fn ready<C: Cta, G: Team, const R: usize>(
        &mut self,
        cta: &C,
        first: u64,
        dots: [T; R],
        early: Self::Early<R>,
    ) -> Self::Ready<R>;
    /// What row i of the team is multiplied by; 0 for one that is not there.
    fn factor<const R: usize>(&self, ready: &Self::Ready<R>, i: usize) -> T;
}

/// The pattern's own step: v ⊙ (X·y − s), or v ⊙ p.
pub(super) struct Weigh<'a, 'b, T, F> {
    args: &'b DenseArgs<'a, T>,
    shift: T,
    product: core::marker::PhantomData<F>,
}

impl<'a, 'b, T: Real, F> Weigh<'a, 'b, T, F> {
    #[inline(always)]
    pub(super) fn new(args: &'b DenseArgs<'a, T>) -> Self {
        Weigh {
            args,
            shift: T::ZERO,
            product: core::marker::PhantomData,
        }
    }
}

impl<T: Real, F: Compute> TeamStep<T> for Weigh<'_, '_, T, F> {
    const DOTS: bool = F::DOTS;
    type Early<const R: usize> = [T; R];
    type Ready<const R: usize> = ([T; R], [T; R]);

    #[inline(always)]
    fn open<C: Cta>(&mut self, cta: &C) {
        self.shift = load_or(cta, self.args.shift, 0, T::ZERO);
    }

    #[inline(always)]
    fn early<C: Cta, G: Team, const R: usize>(&self, cta: &C, first: u64) -> [T; R] {
        core::array::from_fn(|i| {
            multiplier::<C, T, F>(cta, self.args, row_of::<C, G>(cta, first, i))
        })
    }

    #[inline(always)]
    fn ready<C: Cta, G: Team, const R: usize>(
        &mut self,
        _: &C,
        _: u64,
        dots: [T; R],
        early: [T; R],
    ) -> ([T; R], [T; R]) {
        (dots, early)
    }

    #[inline(always)]
    fn factor<const R: usize>(&self, (dots, multipliers): &([T; R], [T; R]), i: usize) -> T {
        factor::<T, F>(dots[i], self.shift, multipliers[i])
    }
}

/// [`super::Product::Fused`] (one panel, n ≤ size · K packs) and [`super::Product::Transposed`] (any n).
#[inline(always)]
pub(super) fn accumulate<C, T, P, G, F, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    P: Pack<T>,
    G: Team,
    F: Compute,
{
    let mut step = Weigh::<T, F>::new(args);
    accumulate_rows::<C, T, P, G, _, K, R>(cta, args, &mut step);
}

/// Walks the rows of the block's panels, adding each times its factor to w.
#[inline(always)]
pub(crate) fn accumulate_rows<C, T, P, G, S, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    step: &mut S,
) where
    C: Cta,
    T: Real,
    P: Pack<T>,
    G: Team,
    S: TeamStep<T>,
{
    let width = G::size(cta) * (K * P::LANES) as u32;
    step.open(cta);
    let (mut unit, mut turn) = (cta.block(), 0);
    loop {
        // Reckoned again each time: registers are for rows. A constant, where a row is held whole, takes 96 registers down
        // to 80 for blocks on a row and 85 up to 106 for lanes (n = 128: 1.01 ms in place of 0.93 with chunks).
        let panels = match (S::DOTS, G::SIZE) {
            (true, TeamSize::Block) => 1,
            _ => cta.fresh(args.cols).div_ceil(width).max(1),
        };
        let slices = args.slices(cta.blocks() / panels);
        let (panel, slice) = (unit % panels, unit / panels);
        if slice >= slices {
            return;
        }
        let columns = Columns::of::<C, G>(cta, panel * width, P::LANES);
        let rows = (slice, slices);
        let w = add_slice::<C, T, P, G, S, K, R>(cta, args, step, (&columns, rows), &mut turn);
        flush::<C, T, P, G, K>(cta, args, (panel * width, slice), &columns, &w);
        unit += cta.blocks();
    }
}

/// What the rows of a slice come to in this thread's columns.
#[inline(always)]
fn add_slice<C, T, P, G, S, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseArgs<'_, T>,
    step: &mut S,
    (columns, (slice, slices)): (&Columns, (u32, u32)),
    turn: &mut u32,
) -> [P; K]
where
    C: Cta,
    T: Real,
    P: Pack<T>,
    G: Team,
    S: TeamStep<T>,
{
    let scratch = Shared::at(0, G::scratch(cta.threads(), R as u32));
    let y: [P; K] = if S::DOTS {
        load_vector(cta, args.input, &columns.fresh(cta), args.cols)
    } else {
        [P::ZERO; K]
    };
    let mut w = [P::ZERO; K];
    let group_rows = (R as u32 * G::TEAMS) as u64;
    let stride = slices as u64 * G::groups(cta) as u64 * group_rows;
    let mut first = (slice * G::groups(cta) + G::group(cta)) as u64 * group_rows;
    while first < args.rows as u64 {
        let rows: [[P; K]; R] =
            core::array::from_fn(|i| load_row(cta, args, columns, row_of::<C, G>(cta, first, i)));
        let early = step.early::<C, G, R>(cta, first);
        let mut dots = [T::ZERO; R];
        if S::DOTS {
            for (row, dot) in rows.iter().zip(&mut dots) {
                for (x, y) in row.iter().zip(&y) {
                    *dot = x.dot(y, *dot);
                }
            }
            dots = G::sum(cta, dots, scratch, *turn);
            *turn += 1;
        }
        let ready = step.ready::<C, G, R>(cta, first, dots, early);
        for (i, row) in rows.iter().enumerate() {
            let p = step.factor(&ready, i);
            for (x, w) in row.iter().zip(&mut w) {
                x.scale_add(p, w);
            }
        }
        first += stride;
    }
    w
}

/// The most columns: a thread's column may run past the end by a step before 32 bits overflow.
pub const MAX_COLUMNS: u32 = u32::MAX - (1 << 20);
