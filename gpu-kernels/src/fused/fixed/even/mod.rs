//! Fixed-point sums of rows of any lengths: every warp has an even share of the entries.
//!
//! Rows, tiles and shares are those of [`even`](crate::fused::even): lane l has entries l, l + 32, … of a tile, whatever their
//! row, so that no lane waits for a longer row while it loads, gathers and adds.
//!
//! The order of a row's sum is promised: VS lanes add up every VS-th product by fused multiply-adds, then a butterfly
//! adds the lanes. A product that is rounded before it is added has other bits. So entries and their elements of y both go to
//! shared memory, where VS lanes walk each row of the tile in that order, 32/VS rows at a time: what is uneven there costs reads
//! of shared memory, not of L2. Rows that are longer than a tile have the same lanes, tile after tile: [`TILE`] is a multiple
//! of VS. Of `Xᵀ·p` nothing is promised but the sums, and rows are cut anywhere.
//!
//! Sums of columns are all in shared memory, or those of frequent columns are: see [`places`].
//!
//! Shared memory: [`EXCHANGED`] elements for each entry of each warp's tile, then y, keys and sums as the place has them. Result:
//! in the sums when the kernel has ended. Guarantees: the bits of every other kernel with fixed-point sums of VS lanes.
//!
//! By count, 80 million entries of f32 in log-normal rows of 20 and 10,000 columns: X is 640 MB, 0.15 ms of an H200. A vector of 8
//! lanes for each row takes 0.76 ms: 62 % of the entries are in rows of more than the 24 that it holds, and those wait for memory
//! once for every 8. Here a tile waits twice for 256, and takes some 90 instructions of a warp for 32 entries, 0.25 ms where the
//! SMs issue all the time.

pub(super) mod places;

use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::even::TILE;
use crate::fused::even::rows::{Rows, Tiles, any_part, whole_rows};
use crate::fused::even::tile::{HELD, NOT_WANTED, Part};
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::{FixedArgs, scale_of};
use crate::fused::{Compute, EvenArgs, SparseArgs};
use crate::verbs::{FULL, lane, load_or, sum_lanes};
use places::EvenSums;

/// Elements of an entry that go to shared memory: itself and that of y.
pub(crate) const EXCHANGED: u32 = 2;
/// Entries that a lane adds at once.
const ADDED: usize = 4;

/// Threads of a block for elements of `size` bytes: as many as registers allow without spilling, on compute capability 8.0 too.
pub(crate) const fn most_threads(size: u32) -> u32 {
    if size == 4 { 896 } else { 512 }
}

/// [`FixedVariant::Even`](crate::fused::FixedVariant::Even).
#[inline(always)]
pub(crate) fn accumulate<C, T, P, S, const VS: u32>(cta: &C, args: &FixedArgs<'_, T>)
where
    C: Cta,
    T: FixedPoint,
    P: Compute,
    S: EvenSums<T>,
{
    // As `most_threads` has it.
    if T::SIZE == 4 {
        cta.launch_bounds::<896, 1>();
    } else {
        cta.launch_bounds::<512, 1>();
    }
    let of_warp = EXCHANGED * TILE * T::SIZE;
    let exchanged = cta.threads() / WARP * of_warp;
    let sums = if P::DOTS {
        S::open::<C, true>(cta, args, exchanged)
    } else {
        S::open::<C, false>(cta, args, exchanged)
    };
    let walk = Walk::<T, S, VS> {
        of_entries: EvenArgs {
            x: args.x,
            keys: args.order,
            multiplier: args.multiplier,
            window: args.window,
        },
        args,
        sums: &sums,
        exchange: Shared::at(cta.thread() / WARP * of_warp, EXCHANGED * TILE),
        scale: scale_of(cta, args),
        shift: load_or(cta, args.x.shift, 0, T::ZERO),
        has_non_finite: cta.read(args.exponents, args.x.cols as usize) != 0,
    };
    if P::DOTS {
        whole_rows(cta, &walk);
    } else {
        any_part(cta, &walk);
    }
    sums.flush(cta, args);
}

struct Walk<'w, 'a, T, S, const VS: u32> {
    of_entries: EvenArgs<'a, T>,
    args: &'w FixedArgs<'a, T>,
    sums: &'w S,
    /// The entries of this warp's tile, then the factor of each; behind them the elements of y.
    exchange: Shared<T>,
    scale: i32,
    shift: T,
    has_non_finite: bool,
}

/// What entries of a row are multiplied by: infinite or no number, or scaled.
#[derive(Clone, Copy)]
struct Factor<T> {
    value: T,
    is_finite: bool,
}

impl<T: FixedPoint, S: EvenSums<T>, const VS: u32> Walk<'_, '_, T, S, VS> {
    /// What a row is multiplied by, besides its product: v, and p where there is no product.
    #[inline(always)]
    fn weight<C: Cta, const DOTS: bool>(&self, cta: &C, row: u32) -> T {
        let x = &self.args.x;
        let weight = load_or(cta, x.weights, row as usize, T::ONE);
        match DOTS {
            true => weight,
            false => weight * cta.load(x.input, row as usize, Cache::Once),
        }
    }

    #[inline(always)]
    fn factor<const DOTS: bool>(&self, weight: T, dot: T) -> Factor<T> {
        let p = match DOTS {
            true => weight * (dot - self.shift),
            false => weight,
        };
        let is_finite = p.exponent_field() != T::NON_FINITE;
        Factor {
            value: if is_finite { p.scaled(self.scale) } else { p },
            is_finite,
        }
    }

    /// Entries and elements of y, for the lanes that add them up.
    #[inline(always)]
    fn exchange<C: Cta>(&self, cta: &C, part: &Part<T>) {
        for k in 0..HELD {
            let at = Part::<T>::at(cta, k) as usize;
            cta.shared_write(self.exchange, at, part.values[k]);
            cta.shared_write(self.exchange, at + TILE as usize, part.inputs[k]);
        }
        cta.sync_warp();
    }

    /// Adds every VS-th product up to `end` to a lane's sum, in order.
    #[inline(always)]
    fn dot<C: Cta>(&self, cta: &C, (mut at, end): (u32, u32), mut sum: T) -> T {
        while at < end {
            let value = cta.shared_read(self.exchange, at as usize);
            let input = cta.shared_read(self.exchange, (at + TILE) as usize);
            sum = value.fma(input, sum);
            at += VS;
        }
        sum
    }

    /// Replaces the entries of a tile by the factors of their rows; says whether all of this lane's are finite.
    #[inline(always)]
    fn factors<C: Cta, const DOTS: bool>(&self, cta: &C, rows: &Rows, weight: T) -> bool {
        let (mut is_finite, mut done) = (true, 0);
        while done < rows.count {
            let of = done + lane(cta) / VS;
            let (begin, end) = rows.bounds(cta, of);
            let weight = cta.shuffle(weight, Shuffle::Index(of), WARP, FULL);
            let end = if of < rows.count { end } else { begin };
            let first = begin + lane(cta) % VS;
            let mut dot = T::ZERO;
            if DOTS {
                dot = self.dot(cta, (first, end), dot);
                dot = sum_lanes::<C, T, VS>(cta, dot);
            }
            let factor = self.factor::<DOTS>(weight, dot);
            is_finite &= factor.is_finite || first >= end;
            let mut at = first;
            while at < end {
                cta.shared_write(self.exchange, at as usize, factor.value);
                at += VS;
            }
            done += WARP / VS;
        }
        is_finite
    }

    /// Adds the entries of a tile times what `factor(at)` gives; `WINDOW` where some may not be wanted.
    #[inline(always)]
    fn add<C: Cta, const WINDOW: bool>(
        &self,
        cta: &C,
        part: &Part<T>,
        factor: (impl Fn(usize) -> T, bool),
    ) {
        let (factor, is_finite) = factor;
        let last = part.count - 1;
        let products: [T; HELD] = core::array::from_fn(|k| {
            part.values[k] * factor(Part::<T>::at(cta, k).min(last) as usize)
        });
        if !is_finite || self.has_non_finite {
            return self.add_any::<C, WINDOW>(cta, part, products);
        }
        let spare = self.sums.spare(cta);
        let is_there =
            |k: usize| Part::<T>::at(cta, k) <= last && (!WINDOW || part.sums[k] != NOT_WANTED);
        for first in (0..HELD).step_by(ADDED) {
            let sums = |k: usize| if is_there(k) { part.sums[k] } else { spare };
            let sums: [u32; ADDED] = core::array::from_fn(|k| sums(first + k));
            let products: [T; ADDED] = core::array::from_fn(|k| products[first + k]);
            self.sums.add(cta, self.args, sums, products);
        }
    }

    /// The same with products that may be infinite or no number.
    #[inline(always)]
    fn add_any<C: Cta, const WINDOW: bool>(&self, cta: &C, part: &Part<T>, products: [T; HELD]) {
        let (mut sums, mut products) = (part.sums, products);
        for k in 0..HELD {
            let (sum, product) = (sums[0], products[0]);
            // An index that the loop counts would put both into local memory.
            (sums, products) = (next(sums), next(products));
            if Part::<T>::at(cta, k) >= part.count || WINDOW && sum == NOT_WANTED {
                continue;
            }
            if product.exponent_field() == T::NON_FINITE {
                let column = self.sums.column(cta, sum);
                cta.add(self.args.x.output, column, product);
            } else {
                self.sums.add(cta, self.args, [sum], [product]);
            }
        }
    }

    #[inline(always)]
    fn part<C: Cta, const DOTS: bool>(&self, cta: &C, (first, count): (u32, u32)) -> Part<T> {
        Part::load::<C, S, DOTS>(cta, &self.of_entries, (self.sums, first, count))
    }
}

impl<'a, T: FixedPoint, S: EvenSums<T>, const VS: u32> Tiles<'a, T> for Walk<'_, 'a, T, S, VS> {
    #[inline(always)]
    fn x(&self) -> &SparseArgs<'a, T> {
        &self.args.x
    }

    #[inline(always)]
    fn tile<C: Cta, const DOTS: bool>(&self, cta: &C, entries: (u32, u32), rows: &Rows) {
        let mut weight = T::ZERO;
        if lane(cta) < rows.count {
            weight = self.weight::<C, DOTS>(cta, rows.first + lane(cta));
        }
        let part = if DOTS {
            self.part::<C, true>(cta, entries)
        } else {
            Part::load_window::<C, S>(cta, &self.of_entries, (self.sums, entries.0, entries.1))
        };
        if DOTS {
            self.exchange(cta, &part);
        }
        let is_finite = self.factors::<C, DOTS>(cta, rows, weight);
        // As well what the others have written.
        let is_finite = cta.ballot(!is_finite, FULL) == 0;
        cta.sync_warp();
        let factor = (|at| cta.shared_read(self.exchange, at), is_finite);
        if DOTS {
            self.add::<C, false>(cta, &part, factor);
        } else {
            self.add::<C, true>(cta, &part, factor);
        }
        // Before the next tile's entries are written.
        cta.sync_warp();
    }

    #[inline(always)]
    fn long_row<C: Cta>(&self, cta: &C, row: u32, (first, end): (u32, u32)) {
        let weight = self.weight::<C, true>(cta, row);
        let mut dot = T::ZERO;
        let mut from = first;
        while from < end {
            let count = (end - from).min(TILE);
            let part = self.part::<C, true>(cta, (from, count));
            self.exchange(cta, &part);
            dot = self.dot(cta, (lane(cta) % VS, count), dot);
            cta.sync_warp();
            from += count;
        }
        let factor = self.factor::<true>(weight, sum_lanes::<C, T, VS>(cta, dot));
        let mut from = first;
        while from < end {
            let count = (end - from).min(TILE);
            let part = self.part::<C, false>(cta, (from, count));
            self.add::<C, false>(cta, &part, (|_| factor.value, factor.is_finite));
            from += count;
        }
    }
}

/// The elements from the second on, then the first.
#[inline(always)]
fn next<E: Copy, const N: usize>(all: [E; N]) -> [E; N] {
    core::array::from_fn(|k| all[(k + 1) % N])
}
