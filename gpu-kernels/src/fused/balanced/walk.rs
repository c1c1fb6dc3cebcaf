//! The pass over the tiles: see [`balanced`](crate::fused::balanced).

use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::Forward;
use crate::fused::balanced::{BalancedArgs, Items, PER_THREAD, THREADS, TILE, Tile};
use crate::fused::sparse::{SparseArgs, Weigh, write_row};
use crate::scalar::Real;
use crate::verbs::{FULL, sum_block};

/// This thread's nonzeros of a tile.
struct Part<T> {
    columns: [u32; PER_THREAD as usize],
    values: [T; PER_THREAD as usize],
}

impl<T: Real> Part<T> {
    #[inline(always)]
    fn load<C: Cta>(cta: &C, x: &SparseArgs<'_, T>, tile: &Tile) -> Self {
        let mut part = Part {
            columns: [0; PER_THREAD as usize],
            values: [T::ZERO; PER_THREAD as usize],
        };
        for k in 0..PER_THREAD {
            if let Some(i) = place(cta, tile, k) {
                part.columns[k as usize] = cta.load(x.indices, i as usize, Cache::Once);
                part.values[k as usize] = cta.load(x.values, i as usize, Cache::Once);
            }
        }
        part
    }

    /// Each nonzero times its element of y.
    #[inline(always)]
    fn products<C: Cta>(
        &self,
        cta: &C,
        args: &BalancedArgs<'_, T>,
        tile: &Tile,
    ) -> [T; PER_THREAD as usize] {
        let mut products = [T::ZERO; PER_THREAD as usize];
        for (k, product) in products.iter_mut().enumerate() {
            if place(cta, tile, k as u32).is_some() {
                let column = self.columns[k] as usize;
                let mut y: T = cta.load(args.x.input, column, Cache::Keep);
                if args.input_weights.is_some() {
                    y = y * cta.load(args.input_weights, column, Cache::Keep);
                }
                *product = self.values[k] * y;
            }
        }
        products
    }
}

/// Where this thread's `k`-th nonzero of a tile is, if there is one.
#[inline(always)]
fn place<C: Cta>(cta: &C, tile: &Tile, k: u32) -> Option<u32> {
    let i = tile.nonzeros[0] + k * THREADS + cta.thread();
    (i < tile.nonzeros[1]).then_some(i)
}

/// [`BalancedVariant::Walk`](crate::fused::BalancedVariant::Walk).
#[inline(always)]
pub(crate) fn walk<C: Cta, T: Real>(cta: &C, args: &BalancedArgs<'_, T>) {
    let items = Items::of(cta, &args.x);
    let mut step = Weigh::<T, Forward>::new(cta, &args.x);
    let products = Shared::<T>::at(0, TILE);
    let scratch = Shared::<T>::at(products.end(), THREADS / WARP);
    let stride = cta.blocks() as u64;
    let mut number = cta.block() as u64;
    let mut tile = Tile::read(cta, args, &items, number);
    let mut part = Part::load(cta, &args.x, &tile);
    let mut next = Tile::read(cta, args, &items, number + stride);
    while number < items.tiles as u64 {
        let own = part.products(cta, args, &tile);
        part = Part::load(cta, &args.x, &next);
        let further = Tile::read(cta, args, &items, number + 2 * stride);
        if tile.is_within_row() {
            let sum = sum_block(cta, sum_of(own), scratch);
            if cta.thread() == 0 {
                cta.write(args.carries, number as usize, sum);
            }
        } else {
            let mut at = cta.thread();
            for product in own {
                cta.shared_write(products, at as usize, product);
                at += THREADS;
            }
            let rows = Rows::new(cta, args, &tile);
            cta.sync();
            rows.sum(cta, args, (products, number), &mut step);
            cta.sync();
        }
        (tile, next) = (next, further);
        number += stride;
    }
}

#[inline(always)]
fn sum_of<T: Real>(products: [T; PER_THREAD as usize]) -> T {
    let mut sum = T::ZERO;
    for product in products {
        sum = sum + product;
    }
    sum
}

/// This thread's rows of a tile, one after the other.
struct Rows<'t> {
    tile: &'t Tile,
    /// Threads for each row.
    size: u32,
    row: u32,
    /// The row's first nonzero, which may lie before the tile, and the one after its last.
    nonzeros: [u32; 2],
}

impl<'t> Rows<'t> {
    /// The first of them. Its offsets are requested before the products are there.
    #[inline(always)]
    fn new<C: Cta, T: Real>(cta: &C, args: &BalancedArgs<'_, T>, tile: &'t Tile) -> Self {
        let size = tile.threads_per_row();
        let row = tile.rows[0] + cta.thread() / size;
        Rows {
            tile,
            size,
            row,
            nonzeros: Self::bounds(cta, args, tile, row),
        }
    }

    /// The nonzeros of a row up to the end of the tile; none if it does not begin there.
    #[inline(always)]
    fn bounds<C: Cta, T: Real>(
        cta: &C,
        args: &BalancedArgs<'_, T>,
        tile: &Tile,
        row: u32,
    ) -> [u32; 2] {
        let [_, last] = tile.rows;
        let offset = |row: u32, is_there: bool| match is_there {
            true => cta.load(args.x.offsets, row as usize, Cache::Keep),
            false => tile.nonzeros[1],
        };
        [
            offset(row, row <= last),
            offset(row.wrapping_add(1), row < last),
        ]
    }

    /// Sums them from the products of the tile with this number.
    #[inline(always)]
    fn sum<C: Cta, T: Real>(
        mut self,
        cta: &C,
        args: &BalancedArgs<'_, T>,
        (products, number): (Shared<T>, u64),
        step: &mut Weigh<'_, '_, T, Forward>,
    ) {
        let [first, last] = self.tile.rows;
        let from = self.tile.nonzeros[0];
        // All threads of a warp go round as often.
        let rounds = (last - first + 1).div_ceil(THREADS / self.size);
        for _ in 0..rounds {
            let [begin, end] = self.nonzeros;
            let mut i = begin.max(from) + cta.thread() % self.size;
            let mut sum = T::ZERO;
            while i < end {
                sum = sum + cta.shared_read(products, (i - from) as usize);
                i += self.size;
            }
            sum = sum_group(cta, sum, self.size);
            if cta.thread().is_multiple_of(self.size) && self.row <= last {
                if self.row == last {
                    cta.write(args.carries, number as usize, sum);
                } else if begin < from {
                    cta.write(args.heads, number as usize, sum);
                } else {
                    write_row(cta, &args.x, step, self.row, sum);
                }
            }
            self.row += THREADS / self.size;
            self.nonzeros = Self::bounds(cta, args, self.tile, self.row);
        }
    }
}

/// The sum over groups of `size` lanes, a power of two up to 32; the whole warp calls.
#[inline(always)]
fn sum_group<C: Cta, T: Real>(cta: &C, mut value: T, size: u32) -> T {
    let mut distance = size / 2;
    while distance > 0 {
        value = value + cta.shuffle(value, Shuffle::Xor(distance), WARP, FULL);
        distance /= 2;
    }
    value
}
