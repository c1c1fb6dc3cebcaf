//! The pass over the tiles by pieces: see [`balanced`](crate::fused::balanced).

use crate::cg::is_over;
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::Forward;
use crate::fused::balanced::scan::Exchange;
use crate::fused::balanced::{BalancedArgs, HELD, Items, Tile, weighted_input, weighted_inputs};
use crate::fused::sparse::{SparseArgs, Weigh, write_row};
use crate::scalar::Real;
use crate::verbs::{FULL, each_of_block, global_warp, global_warps, lane};

/// Where elements of the input come from.
pub(super) trait Inputs<T: Real>: Sized {
    /// Makes them ready; behind the exchanges of all warps. Ends with a barrier where there is something to do.
    fn open<C: Cta>(cta: &C, args: &BalancedArgs<'_, T>) -> Self;
    /// Values times the elements of their columns and the weights of these.
    fn products<C: Cta>(&self, cta: &C, args: &BalancedArgs<'_, T>, part: &Part<T>) -> [T; HELD];
}

/// u ⊙ y in memory.
pub(super) struct InMemory;

impl<T: Real> Inputs<T> for InMemory {
    #[inline(always)]
    fn open<C: Cta>(_: &C, _: &BalancedArgs<'_, T>) -> Self {
        InMemory
    }

    #[inline(always)]
    fn products<C: Cta>(&self, cta: &C, args: &BalancedArgs<'_, T>, part: &Part<T>) -> [T; HELD] {
        let inputs = weighted_inputs(cta, args, part.columns);
        core::array::from_fn(|k| part.values[k] * inputs[k])
    }
}

/// u ⊙ y in the block's shared memory.
pub(super) struct InShared<T>(Shared<T>);

impl<T: Real> Inputs<T> for InShared<T> {
    #[inline(always)]
    fn open<C: Cta>(cta: &C, args: &BalancedArgs<'_, T>) -> Self {
        let input = Shared::at(cta.threads() / WARP * Exchange::<T>::BYTES, args.x.cols);
        each_of_block(cta, args.x.cols, |j| {
            cta.shared_write(input, j, weighted_input(cta, args, j as u32));
        });
        cta.sync();
        InShared(input)
    }

    #[inline(always)]
    fn products<C: Cta>(&self, cta: &C, _: &BalancedArgs<'_, T>, part: &Part<T>) -> [T; HELD] {
        let element = |k: usize| cta.shared_read(self.0, part.columns[k] as usize);
        core::array::from_fn(|k| part.values[k] * element(k))
    }
}

/// This lane's nonzeros of a piece.
pub(super) struct Part<T> {
    columns: [u32; HELD],
    values: [T; HELD],
}

impl<T: Real> Part<T> {
    /// Of nonzeros `from..end`, PIECE of them at most.
    #[inline(always)]
    fn load<C: Cta>(cta: &C, x: &SparseArgs<'_, T>, (from, end): (u32, u32)) -> Self {
        let mut part = Part {
            columns: [0; HELD],
            values: [T::ZERO; HELD],
        };
        for k in 0..HELD {
            let i = from + own(cta, k);
            if i < end {
                part.columns[k] = cta.load(x.indices, i as usize, Cache::Once);
                part.values[k] = cta.load(x.values, i as usize, Cache::Once);
            }
        }
        part
    }

    /// Writes each of the `count` nonzeros of the piece times its element of the input, and zeros behind them.
    #[inline(always)]
    fn write_products<C: Cta, I: Inputs<T>>(
        &self,
        cta: &C,
        (args, inputs): (&BalancedArgs<'_, T>, &I),
        (count, to): (u32, &Exchange<T>),
    ) {
        let mut products = [T::ZERO; HELD];
        // Where there is none, X may have no column.
        if count > 0 {
            products = inputs.products(cta, args, self);
        }
        for (k, product) in products.into_iter().enumerate() {
            let is_own = own(cta, k) < count;
            let product = if is_own { product } else { T::ZERO };
            to.write(cta, own(cta, k), product);
        }
    }
}

/// Which of a piece's nonzeros this lane's `k`-th is.
#[inline(always)]
fn own<C: Cta>(cta: &C, k: usize) -> u32 {
    k as u32 * WARP + lane(cta)
}

/// Where the warp's lanes' rows end: of a warp of rows from `row` on.
#[inline(always)]
fn ends<C: Cta, T: Real>(cta: &C, x: &SparseArgs<'_, T>, row: u32) -> u32 {
    let next = (row as u64 + lane(cta) as u64 + 1).min(x.rows as u64);
    cta.load(x.offsets, next as usize, Cache::Keep)
}

/// Rows that end in a piece, a warp of them at a time.
struct Rows {
    /// The first, and how many there are.
    first: u32,
    count: u32,
    /// Where the first warp of them end.
    ends: u32,
    /// The first nonzero of the piece.
    nonzero: u32,
}

impl Rows {
    /// Those from row `first` on that end in a tile among the nonzeros before `limit`; sets a flag where each that has nonzeros in
    /// the piece ends.
    #[inline(always)]
    fn mark<C: Cta, T: Real>(
        cta: &C,
        (x, exchange): (&SparseArgs<'_, T>, &Exchange<T>),
        (tile, nonzero, limit): (&Tile, u32, u32),
        (first, of_first): (u32, u32),
    ) -> Self {
        let mut rows = Rows {
            first,
            count: 0,
            ends: of_first,
            nonzero,
        };
        let (mut here, mut before) = (of_first, nonzero);
        loop {
            let row = (first + rows.count).saturating_add(lane(cta));
            let has_ended = row < tile.rows[1] && here <= limit;
            let ended = cta.ballot(has_ended, FULL).count_ones();
            let begin = rows.begin(cta, here, before);
            if has_ended && here > begin {
                exchange.end_row(cta, here - 1 - nonzero);
            }
            rows.count += ended;
            if ended < WARP {
                return rows;
            }
            before = cta.shuffle(here, Shuffle::Index(WARP - 1), WARP, FULL);
            here = ends(cta, x, first + rows.count);
        }
    }

    /// Where the part of the lane's row begins that is in the piece, from where it ends and where the warp's first row begins.
    #[inline(always)]
    fn begin<C: Cta>(&self, cta: &C, end: u32, before: u32) -> u32 {
        let begin = cta.shuffle(end, Shuffle::Up(1), WARP, FULL);
        let begin = if lane(cta) == 0 { before } else { begin };
        begin.max(self.nonzero)
    }

    /// Calls `each(row, sum)` for each of them, with what the piece and those before it in the tile have of it; the whole warp calls.
    #[inline(always)]
    fn each_sum<C: Cta, T: Real>(
        &self,
        cta: &C,
        (x, exchange): (&SparseArgs<'_, T>, &Exchange<T>),
        mut each: impl FnMut(u32, T),
    ) {
        let (mut here, mut before) = (self.ends, self.nonzero);
        let mut done = 0;
        while done < self.count {
            if done > 0 {
                here = ends(cta, x, self.first + done);
            }
            let begin = self.begin(cta, here, before);
            before = cta.shuffle(here, Shuffle::Index(WARP - 1), WARP, FULL);
            if done + lane(cta) < self.count {
                let mut sum = T::ZERO;
                if here > begin {
                    sum = exchange.read(cta, here - 1 - self.nonzero);
                }
                each(self.first + done + lane(cta), sum);
            }
            done += WARP;
        }
    }
}

/// [`BalancedVariant::Scan`](crate::fused::BalancedVariant::Scan) with blocks of THREADS threads, BLOCKS of which share an SM.
#[inline(always)]
pub(crate) fn scan<C, T, I, const THREADS: u32, const BLOCKS: u32>(
    cta: &C,
    args: &BalancedArgs<'_, T>,
) where
    C: Cta,
    T: Real,
    I: Inputs<T>,
{
    cta.launch_bounds::<THREADS, BLOCKS>();
    let (items, x) = (Items::of(args), &args.x);
    let is_over = is_over(cta, x.solve);
    let mut step = Weigh::<T, Forward>::new(cta, x);
    let exchange = Exchange::<T>::of_warp(cta.thread() / WARP);
    // No more than there are tiles, which 22 bits count.
    let stride = global_warps(cta).min(items.tiles);
    let mut number = global_warp(cta);
    let mut tile = Tile::read(cta, args, &items, number);
    let mut next = Tile::read(cta, args, &items, number.saturating_add(stride));
    let (mut row, mut nonzero) = tile.start();
    let mut here = ends(cta, x, row);
    let mut part = Part::load(cta, x, (nonzero, tile.piece_end(nonzero)));
    let mut begun: u32 = cta.load(x.offsets, row as usize, Cache::Keep);
    let mut open = T::ZERO;
    let inputs = I::open(cta, args);
    // The first nonzeros are on their way before it is known whether they are wanted.
    while number < items.tiles && !is_over {
        let limit = tile.piece_end(nonzero);
        exchange.clear_ends(cta);
        cta.sync_warp();
        let piece = (&tile, nonzero, limit);
        let rows = Rows::mark(cta, (x, &exchange), piece, (row, here));
        part.write_products(cta, (args, &inputs), (limit - nonzero, &exchange));
        let is_head = begun < tile.nonzeros[0] && rows.first == tile.rows[0];
        // What comes next is on its way while this piece is added up.
        let is_last = limit == tile.nonzeros[1];
        let of = if is_last { next } else { tile };
        (row, nonzero) = if is_last {
            next.start()
        } else {
            (row + rows.count, limit)
        };
        here = ends(cta, x, row);
        part = Part::load(cta, x, (nonzero, of.piece_end(nonzero)));
        if is_last {
            begun = cta.load(x.offsets, row as usize, Cache::Keep);
        }
        cta.sync_warp();
        open = exchange.sum_rows(cta, open);
        cta.sync_warp();
        rows.each_sum(cta, (x, &exchange), |row, sum| {
            if is_head && row == rows.first {
                cta.write(args.heads, number as usize, sum);
            } else {
                write_row(cta, x, &mut step, row, sum);
            }
        });
        if is_last {
            if lane(cta) == 0 {
                cta.write(args.carries, number as usize, open);
            }
            open = T::ZERO;
            number += stride;
            tile = next;
            next = Tile::read(cta, args, &items, number + stride);
        }
        // Before the next piece's products are written.
        cta.sync_warp();
    }
}
