//! The columns of T above those of a panel: −T′ · S, T′ the T of all reflectors before, S from
//! [`update`](super::update).
//!
//! A block has 64 rows of one matrix, as columns of Sᵀ·T′ᵀ, which is a [product](super::update::products) over the columns of
//! T′. T′ is a triangle: row i begins with column i.

use super::args::{QrArgs, Site};
use super::pieces::four;
use super::reflector::Ranged;
use super::update::products::{Factors, elements, products};
use super::update::{UPDATE_BLOCK, WORK_WIDTH, in_work, own};
use crate::cta::{Cta, WARP};

/// Threads of a block.
pub const MERGE_BLOCK: u32 = UPDATE_BLOCK;
/// Rows of a block.
pub const MERGE_ROWS: u32 = 64;

/// Shared memory of a block.
pub const fn merge_shared_bytes(bytes: u32) -> u32 {
    elements(WORK_WIDTH, MERGE_ROWS) * bytes
}

/// See the head of the file.
#[inline(always)]
pub fn merge<C: Cta, T: Ranged>(cta: &C, args: &QrArgs<'_, T>) {
    if T::SIZE == 4 {
        cta.launch_bounds::<MERGE_BLOCK, 4>();
    } else {
        cta.launch_bounds::<MERGE_BLOCK, 2>();
    }
    let tiles = args.start.div_ceil(MERGE_ROWS);
    let (matrix, first) = (cta.block() / tiles, cta.block() % tiles * MERGE_ROWS);
    let site = Site::of(cta, args, matrix);
    if args.start >= site.least() {
        return;
    }
    let (start, columns) = (args.start, (site.least() - args.start).min(args.width));
    let of = Blocks {
        cta,
        args,
        site: &site,
        place: (matrix, first, columns),
    };
    const WIDTH: usize = WORK_WIDTH as usize;
    const ROWS: usize = MERGE_ROWS as usize;
    let sums = products::<C, T, WIDTH, ROWS>(cta, (first, start), &of);
    let (row, part) = own::<C, ROWS>(cta);
    four(|i| {
        four(|j| {
            let (row, p) = (first + row + (j * ROWS / 4) as u32, part * 4 + i as u32);
            if row < start && p < columns {
                cta.write(args.t, site.in_t(row, start + p), -sums[i][j]);
            }
        })
    });
}

/// Sᵀ and the block's rows of T′, row for row of the product's sums.
struct Blocks<'a, C, T> {
    cta: &'a C,
    args: &'a QrArgs<'a, T>,
    site: &'a Site,
    /// The matrix, the block's first row and the panel's columns.
    place: (u32, u32, u32),
}

impl<C: Cta, T: Ranged> Factors<T> for Blocks<'_, C, T> {
    #[inline(always)]
    #[track_caller]
    fn v(&self, j: u32, p: u32) -> T {
        let (matrix, _, columns) = self.place;
        match j < self.args.start && p < columns {
            true => self
                .cta
                .read(self.args.work, in_work(self.args, matrix, (j, p))),
            false => T::ZERO,
        }
    }

    #[inline(always)]
    #[track_caller]
    fn c(&self, j: u32, row: u32) -> T {
        let row = self.place.1 + row;
        match j < self.args.start && row <= j {
            true => self.cta.read(self.args.t, self.site.in_t(row, j)),
            false => T::ZERO,
        }
    }

    #[inline(always)]
    fn is_whole(&self, base: u32) -> bool {
        let (_, first, columns) = self.place;
        columns == WORK_WIDTH && base >= first + MERGE_ROWS && base + WARP <= self.args.start
    }

    #[inline(always)]
    #[track_caller]
    fn whole_v(&self, j: u32, p: u32) -> T {
        self.cta
            .read(self.args.work, in_work(self.args, self.place.0, (j, p)))
    }

    #[inline(always)]
    #[track_caller]
    fn whole_c(&self, j: u32, row: u32) -> T {
        self.cta
            .read(self.args.t, self.site.in_t(self.place.1 + row, j))
    }
}
