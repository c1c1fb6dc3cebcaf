//! The pass over the tiles: see [`balanced`](crate::fused::balanced).

use crate::cg::is_over;
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::Forward;
use crate::fused::balanced::finish::{Edge, Span, join};
use crate::fused::balanced::{
    BalancedArgs, Items, PER_THREAD, SPARE_BYTES, THREADS, TILE, Tile, weighted_inputs,
};
use crate::fused::sparse::{SparseArgs, Weigh, write_row};
use crate::memory::In;
use crate::scalar::{Real, Word};
use crate::verbs::{FULL, lane, sum_block, sum_lanes};

/// Of each of a thread's nonzeros of a tile.
type Each<T> = [T; PER_THREAD as usize];

/// This thread's nonzeros of a tile.
struct Part<T> {
    columns: Each<u32>,
    values: Each<T>,
}

impl<T: Real> Part<T> {
    #[inline(always)]
    fn load<C: Cta>(cta: &C, x: &SparseArgs<'_, T>, tile: &Tile) -> Self {
        Part {
            columns: load_each(cta, tile, x.indices),
            values: load_each(cta, tile, x.values),
        }
    }

    /// Each nonzero times its element of the input; zeros where there is none.
    #[inline(always)]
    fn products<C: Cta>(&self, cta: &C, args: &BalancedArgs<'_, T>, tile: &Tile) -> Each<T> {
        products(cta, args, (tile, self.columns), || self.values)
    }
}

/// What an array has for each of this thread's nonzeros; nothing where there is none.
#[inline(always)]
fn load_each<C: Cta, W: Word>(cta: &C, tile: &Tile, from: In<'_, W>) -> Each<W> {
    core::array::from_fn(|k| match place(cta, tile, k as u32) {
        Some(i) => cta.load(from, i as usize, Cache::Once),
        None => W::default(),
    })
}

/// Values times the elements of the input of their columns; zeros where there is no nonzero.
#[inline(always)]
fn products<C: Cta, T: Real>(
    cta: &C,
    args: &BalancedArgs<'_, T>,
    (tile, columns): (&Tile, Each<u32>),
    values: impl FnOnce() -> Each<T>,
) -> Each<T> {
    // X may have no column then.
    if tile.has_no_nonzeros() {
        return [T::ZERO; PER_THREAD as usize];
    }
    let inputs = weighted_inputs(cta, args, columns);
    let values = values();
    core::array::from_fn(|k| match place(cta, tile, k as u32) {
        Some(_) => values[k] * inputs[k],
        None => T::ZERO,
    })
}

/// Where this thread's `k`-th nonzero of a tile is, if there is one.
#[inline(always)]
fn place<C: Cta>(cta: &C, tile: &Tile, k: u32) -> Option<u32> {
    let i = tile.nonzeros[0] + k * THREADS + cta.thread();
    (i < tile.nonzeros[1]).then_some(i)
}

/// [`BalancedVariant::Walk`](crate::fused::BalancedVariant::Walk).
#[inline(always)]
pub(crate) fn walk<C: Cta, T: Real, const BLOCKS: u32>(cta: &C, args: &BalancedArgs<'_, T>) {
    cta.launch_bounds::<THREADS, BLOCKS>();
    let items = Items::of(args);
    let is_over = is_over(cta, args.x.solve);
    let mut step = Weigh::<T, Forward>::new(cta, &args.x);
    // No more than there are tiles, which 22 bits count.
    let stride = cta.blocks().min(items.tiles);
    let mut number = cta.block();
    let mut tile = Tile::read(cta, args, &items, number);
    let mut part = Part::load(cta, &args.x, &tile);
    let mut next = Tile::read(cta, args, &items, number + stride);
    // The first entries are on their way before it is known whether they are wanted.
    while number < items.tiles && !is_over {
        let stage = Stage::begin(cta, &args.x, (&tile, number));
        let own = part.products(cta, args, &tile);
        part = Part::load(cta, &args.x, &next);
        let further = Tile::read(cta, args, &items, number + 2 * stride);
        stage.sum(cta, args, (own, &mut step));
        if !tile.is_within_row() {
            cta.sync();
        }
        (tile, next) = (next, further);
        number += stride;
    }
}

/// [`BalancedVariant::WalkAtOnce`](crate::fused::BalancedVariant::WalkAtOnce).
#[inline(always)]
pub(crate) fn walk_at_once<C: Cta, T: Real, const BLOCKS: u32>(
    cta: &C,
    args: &BalancedArgs<'_, T>,
) {
    cta.launch_bounds::<THREADS, BLOCKS>();
    let items = Items::of(args);
    let is_over = is_over(cta, args.x.solve);
    let number = cta.block();
    let tile = Tile::read(cta, args, &items, number);
    if number >= items.tiles || is_over {
        return;
    }
    let columns = load_each(cta, &tile, args.x.indices);
    let stage = Stage::begin(cta, &args.x, (&tile, number));
    // Values come beside what is multiplied by them: registers do not hold them for longer.
    let own = products(cta, args, (&tile, columns), || {
        load_each(cta, &tile, args.x.values)
    });
    let mut step = Weigh::<T, Forward>::new(cta, &args.x);
    let cut = cut_row(cta, args, &tile);
    stage.sum(cta, args, (own, &mut step));
    cta.sync();
    if cta.thread() < WARP {
        join(cta, args, (&mut step, cut));
    }
}

/// The row that an edge of the tile cuts: its start in the first thread, its end in the second.
#[inline(always)]
fn cut_row<C: Cta, T: Real>(cta: &C, args: &BalancedArgs<'_, T>, tile: &Tile) -> Option<Span> {
    let edge = match cta.thread() {
        0 => Edge::Start,
        1 => Edge::End,
        _ => return None,
    };
    Span::of(cta, args, (tile, edge))
}

#[inline(always)]
fn sum_of<T: Real>(products: Each<T>) -> T {
    let mut sum = T::ZERO;
    for product in products {
        sum = sum + product;
    }
    sum
}

/// Where a tile's rows begin lies behind its products: with as many of either as there can be, two words more than TILE elements.
#[inline(always)]
fn begins<T: Real>(tile: &Tile) -> Shared<u32> {
    let products = tile.nonzeros[1] - tile.nonzeros[0];
    Shared::at(products * T::SIZE, tile.ends() + 2)
}

/// Begins to copy where the rows of a tile begin that end in it, and the one that does not; behind them, where the tile ends.
#[inline(always)]
fn copy_begins<C: Cta, T: Real>(cta: &C, x: &SparseArgs<'_, T>, (tile, to): (&Tile, Shared<u32>)) {
    let ends = tile.ends();
    let mut row = cta.thread();
    while row <= ends {
        let from = (tile.rows[0] + row) as usize;
        cta.copy_one(to, row as usize, x.offsets, from, true);
        row += THREADS;
    }
    cta.end_copies();
    if cta.thread() == 0 {
        cta.shared_write(to, ends as usize + 1, tile.nonzeros[1]);
    }
}

/// Products of a row that each of its threads adds up; of longer rows the whole warp does.
const LONG: u32 = 32;

/// What a block has in shared memory of a tile.
struct Stage<'t, T> {
    tile: &'t Tile,
    number: u32,
    products: Shared<T>,
    begins: Shared<u32>,
}

/// A thread's share of a row.
struct RowShare {
    /// The first entry of the row in the tile, and the first behind it, counted from the tile's first.
    entries: [u32; 2],
    /// Whether it began in an earlier tile.
    is_head: bool,
}

impl<'t, T: Real> Stage<'t, T> {
    /// Begins to copy where rows begin.
    #[inline(always)]
    fn begin<C: Cta>(cta: &C, x: &SparseArgs<'_, T>, (tile, number): (&'t Tile, u32)) -> Self {
        let stage = Stage {
            tile,
            number,
            products: Shared::at(0, TILE),
            begins: begins::<T>(tile),
        };
        if !tile.is_within_row() {
            copy_begins(cta, x, (tile, stage.begins));
        }
        stage
    }

    /// Sums the tile's rows, from the products of each thread's nonzeros.
    #[inline(always)]
    fn sum<C: Cta>(
        &self,
        cta: &C,
        args: &BalancedArgs<'_, T>,
        (own, step): (Each<T>, &mut Weigh<'_, '_, T, Forward>),
    ) {
        if self.tile.is_within_row() {
            let scratch = Shared::at(self.products.end() + SPARE_BYTES, THREADS / WARP);
            let sum = sum_block(cta, sum_of(own), scratch);
            if cta.thread() == 0 {
                cta.write(args.carries, self.number as usize, sum);
            }
            return;
        }
        for (k, product) in own.into_iter().enumerate() {
            if let Some(at) = place(cta, self.tile, k as u32) {
                let at = (at - self.tile.nonzeros[0]) as usize;
                cta.shared_write(self.products, at, product);
            }
        }
        cta.copies_done::<0>();
        cta.sync();
        self.sum_rows(cta, args, step);
    }

    /// A row of the tile, counted from its first; none behind the last.
    #[inline(always)]
    fn row<C: Cta>(&self, cta: &C, row: u32) -> RowShare {
        let from = self.tile.nonzeros[0];
        let mut entries = [from; 2];
        if row <= self.tile.ends() {
            entries = [0, 1].map(|i| cta.shared_read(self.begins, (row + i) as usize));
        }
        let is_head = entries[0] < from;
        RowShare {
            entries: entries.map(|entry| entry.saturating_sub(from)),
            is_head,
        }
    }

    /// Sums the rows, a power of two of threads each.
    #[inline(always)]
    fn sum_rows<C: Cta>(
        &self,
        cta: &C,
        args: &BalancedArgs<'_, T>,
        step: &mut Weigh<'_, '_, T, Forward>,
    ) {
        let (size, last) = (self.tile.threads_per_row(), self.tile.ends());
        let mut row = cta.thread() / size;
        // All threads of a warp go round as often.
        let rounds = (last + 1).div_ceil(THREADS / size);
        for _ in 0..rounds {
            let share = self.row(cta, row);
            let sum = self.sum_row(cta, &share, size);
            if cta.thread().is_multiple_of(size) && row <= last {
                if row == last {
                    cta.write(args.carries, self.number as usize, sum);
                } else if share.is_head {
                    cta.write(args.heads, self.number as usize, sum);
                } else {
                    write_row(cta, &args.x, step, self.tile.rows[0] + row, sum);
                }
            }
            row += THREADS / size;
        }
    }

    /// The sum of a row, in the first of its `size` threads; the whole warp calls.
    #[inline(always)]
    fn sum_row<C: Cta>(&self, cta: &C, share: &RowShare, size: u32) -> T {
        let [begin, end] = share.entries;
        let (own, is_long) = (lane(cta) % size, end - begin > LONG * size);
        let mut sum = T::ZERO;
        if !is_long {
            sum = self.every(cta, (begin + own, end), size);
        }
        sum = sum_group(cta, sum, size);
        let mut long = cta.ballot(is_long && own == 0, FULL);
        while long != 0 {
            let of = long.trailing_zeros();
            let [begin, end] =
                [begin, end].map(|end| cta.shuffle(end, Shuffle::Index(of), WARP, FULL));
            let all = sum_lanes::<C, T, WARP>(cta, self.every(cta, (begin + lane(cta), end), WARP));
            if lane(cta) == of {
                sum = all;
            }
            long &= long - 1;
        }
        sum
    }

    /// The sum of every `stride`-th product.
    #[inline(always)]
    fn every<C: Cta>(&self, cta: &C, (mut i, end): (u32, u32), stride: u32) -> T {
        let read = |i: u32| cta.shared_read(self.products, i as usize);
        let mut sum = T::ZERO;
        while i < end {
            sum = sum + read(i);
            i += stride;
        }
        sum
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
