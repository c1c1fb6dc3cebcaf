//! The columns of T above those of a panel: −T′ · S, T′ the T of all reflectors before, S from
//! [`update`](super::update).
//!
//! A block has 64 rows of one matrix, as columns of Sᵀ·T′ᵀ, which is a [product](super::update::products) over the columns of
//! T′. T′ is a triangle: row i begins with column i. So rows of T need no others: where S is there for [every](EVERY) panel, a block
//! makes its rows panel after panel in one launch.

use super::args::{EVERY, QrArgs, Site};
use super::pieces::four;
use super::reflector::Ranged;
use super::update::products::{Factors, elements, products};
use super::update::{UPDATE_BLOCK, WORK_WIDTH, column_end, in_work, own, work_pitch};
use crate::cta::{Cta, WARP};

/// Threads of a block.
pub const MERGE_BLOCK: u32 = UPDATE_BLOCK;
/// Rows of a block.
pub const MERGE_ROWS: u32 = 64;

/// Shared memory of a block.
pub const fn merge_shared_bytes(bytes: u32) -> u32 {
    elements(WORK_WIDTH, MERGE_ROWS) * bytes
}

/// Blocks of a matrix.
pub const fn merge_tiles<T>(args: &QrArgs<'_, T>) -> u32 {
    let rows = if args.mode & EVERY == 0 {
        args.start - args.since
    } else if args.rows < args.cols {
        args.rows
    } else {
        args.cols
    };
    rows.div_ceil(MERGE_ROWS)
}

/// See the head of the file.
#[inline(always)]
pub fn merge<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>) {
    if T::SIZE == 4 {
        cta.launch_bounds::<MERGE_BLOCK, 4>();
    } else {
        cta.launch_bounds::<MERGE_BLOCK, 2>();
    }
    let first = Rows::of(cta, args);
    let (mut start, end) = match args.has(EVERY) {
        true => (first.row + WORK_WIDTH, first.site.least()),
        false => (args.start, first.site.least().min(args.start + 1)),
    };
    while start < end {
        columns_of(cta, args, start);
        // The next panel's columns take these.
        cta.sync();
        start += WORK_WIDTH;
    }
}

/// A block's rows of T.
struct Rows {
    matrix: u32,
    site: Site,
    /// The first of them.
    row: u32,
}

impl Rows {
    /// Computed again where it is needed, so that it does not wait in registers.
    #[inline(always)]
    #[track_caller]
    fn of<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>) -> Rows {
        let (tiles, block) = (merge_tiles(args), cta.fresh(cta.block()));
        let matrix = block / tiles;
        Rows {
            matrix,
            site: Site::of(cta, args, matrix),
            row: args.since + block % tiles * MERGE_ROWS,
        }
    }
}

/// The block's rows of 32 columns from the panel's first, `start`, on. Those behind a narrower panel are the next one's, which
/// writes them once more: its own width would take registers that are not there.
#[inline(always)]
#[track_caller]
fn columns_of<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>, start: u32) {
    const WIDTH: usize = WORK_WIDTH as usize;
    const ROWS: usize = MERGE_ROWS as usize;
    let sums = {
        let rows = Rows::of(cta, args);
        let of = Blocks {
            cta,
            args,
            first: rows.row,
            start,
            columns: (column_end(args, rows.site.least()) - start).min(WORK_WIDTH),
            work: in_work(args, (rows.matrix, start), (0, 0)) as u64,
            pitch: work_pitch(args, start),
            t: rows.site.in_t(rows.row, 0) as u64,
            t_pitch: rows.site.least(),
        };
        products::<C, T, WIDTH, ROWS>(cta, (rows.row, start), &of)
    };
    let rows = Rows::of(cta, args);
    let columns = (column_end(args, rows.site.least()) - start).min(WORK_WIDTH);
    let (row, part) = own::<C, ROWS>(cta);
    four(|i| {
        four(|j| {
            let (row, p) = (rows.row + row + (j * ROWS / 4) as u32, part * 4 + i as u32);
            if row < start && p < columns {
                cta.write(args.t, rows.site.in_t(row, start + p), -sums[i][j]);
            }
        })
    });
}

/// Sᵀ and the block's rows of T′, row for row of the product's sums.
struct Blocks<'a, C, T> {
    cta: &'a C,
    args: &'a QrArgs<'a, T>,
    /// The block's first row.
    first: u32,
    /// The panel's first column, and its columns.
    start: u32,
    columns: u32,
    /// Where `work` has the panel's, and from one of its reflectors to the next.
    work: u64,
    pitch: u32,
    /// Where the block's first row of T begins, and from a row to the next.
    t: u64,
    t_pitch: u32,
}

impl<C: Cta, T: Ranged> Factors<T> for Blocks<'_, C, T> {
    #[inline(always)]
    #[track_caller]
    fn v(&self, j: u32, p: u32) -> T {
        match j < self.start && p < self.columns {
            true => self.whole_v(j, p),
            false => T::ZERO,
        }
    }

    #[inline(always)]
    #[track_caller]
    fn c(&self, j: u32, row: u32) -> T {
        match j < self.start && self.first + row <= j {
            true => self.whole_c(j, row),
            false => T::ZERO,
        }
    }

    #[inline(always)]
    fn is_whole(&self, base: u32) -> bool {
        let is_below = base >= self.first + MERGE_ROWS;
        self.columns == WORK_WIDTH && is_below && base + WARP <= self.start
    }

    #[inline(always)]
    #[track_caller]
    fn whole_v(&self, j: u32, p: u32) -> T {
        let at = self.work + p as u64 * self.pitch as u64 + j as u64;
        self.cta.read(self.args.work, at as usize)
    }

    #[inline(always)]
    #[track_caller]
    fn whole_c(&self, j: u32, row: u32) -> T {
        let at = self.t + row as u64 * self.t_pitch as u64 + j as u64;
        self.cta.read(self.args.t, at as usize)
    }
}
