//! What the reflectors of a panel make of other columns: C −= V·Tᵀ·(VᵀC), or with T for Q instead of Qᵀ.
//!
//! | step | what | where |
//! |---|---|---|
//! | 1 | W = VᵀC ([`products`]) | 64 sums of a thread, a quarter of the rows for each warp; chunks of 32 rows in shared memory |
//! | 2 | W = Tᵀ·W (T·W) | shared |
//! | 3 | C −= V·W ([`subtract`]) | 64 elements of a thread; chunks of 128 rows of V, and W, in shared memory |
//!
//! For columns before the panel, which are those of earlier reflectors, step 2 gives (VᵀV′)ᵀ·T, of which
//! [`merge`](super::merge) makes the columns of T above the panel's: they go to `work`.
//!
//! Loops end at numbers that the compiler takes for unknown: unrolled, their addresses would wait in registers.
//!
//! A block has 128 threads and `COLUMNS` columns of one matrix; `WIDTH` · `COLUMNS` = 2048. Where there are few of them, a
//! [cluster](shared) of blocks shares the rows.

pub(super) mod products;
mod shared;
mod subtract;

pub use shared::{UPDATE_BLOCKS, shared_update};

use super::args::{APART, EVERY, IDENTITY, QrArgs, Site, TRANSPOSED, WHOLE_T};
use super::pieces::{four, read_chunk};
use super::reflector::Ranged;
use crate::cta::{Cta, Shared, WARP};
use crate::memory::Out;
use products::{Factors, products};
use subtract::subtract;

/// Threads of a block.
pub const UPDATE_BLOCK: u32 = 128;
/// Reflectors in `work`.
pub const WORK_WIDTH: u32 = 32;
/// Elements of W: reflectors of a panel times columns of a block.
const SUMS: u32 = 2_048;

/// Shared memory of a block: W and, behind it, T or rows of V; before that what step 1 takes.
pub const fn update_shared_bytes(width: u32, columns: u32, bytes: u32) -> u32 {
    let mut most = SUMS + subtract::staged(width);
    let before = products::elements(width, columns);
    if before > most {
        most = before;
    }
    most * bytes
}

/// Blocks of a matrix: for columns after the panel (or those of `c`), and for those before it, or before [every](EVERY) panel.
pub const fn update_tiles<T>(args: &QrArgs<'_, T>, width: u32, columns: u32) -> [u32; 2] {
    if args.mode & EVERY != 0 {
        let least = if args.rows < args.cols {
            args.rows
        } else {
            args.cols
        };
        return [0, tiles_before(least.div_ceil(width), width, columns)];
    }
    let after = if args.mode & IDENTITY != 0 {
        args.c_cols.saturating_sub(args.start)
    } else if args.mode & APART != 0 {
        args.c_cols
    } else {
        column_end(args, args.cols).saturating_sub(args.start + width)
    };
    let before = if args.mode & WHOLE_T != 0 {
        args.start - args.since
    } else {
        0
    };
    [after.div_ceil(columns), before.div_ceil(columns)]
}

/// The end of the columns that change of a matrix of `cols`, or of those of T: all, but for a part of a panel, which ends with it.
pub(super) const fn column_end<T>(args: &QrArgs<'_, T>, cols: u32) -> u32 {
    match args.until {
        0 => cols,
        until if until < cols => until,
        _ => cols,
    }
}

/// Blocks for the columns before each of `panels` panels of `width` columns.
const fn tiles_before(panels: u32, width: u32, columns: u32) -> u32 {
    let (mut all, mut panel) = (0, 0);
    while panel < panels {
        all += (panel * width).div_ceil(columns);
        panel += 1;
    }
    all
}

/// The panel, by its first column, that a block before [every](EVERY) panel is for, and which of its blocks that is.
#[inline(always)]
fn panel_of(tile: u32, width: u32, columns: u32) -> (u32, u32) {
    let (mut start, mut left) = (width, tile);
    while left >= start.div_ceil(columns) {
        left -= start.div_ceil(columns);
        start += width;
    }
    (start, left)
}

/// What becomes of a block's columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// They are changed.
    Changed,
    /// They are earlier reflectors, whose products with these are wanted.
    Earlier,
}

/// A block's columns, and the panel.
struct Target<'a, T> {
    site: Site,
    matrix: u32,
    start: u32,
    /// Rows from the panel's first.
    rows: u32,
    /// Reflectors.
    steps: u32,
    kind: Kind,
    first_col: u32,
    cols: u32,
    /// Where the columns are, and from row to row and from column to column.
    columns: Out<'a, T>,
    first: u64,
    row_step: u64,
    col_step: u64,
    /// Where the panel begins in the factors, whose rows lie side by side.
    reflectors: u64,
}

impl<'a, T: Ranged> Target<'a, T> {
    /// Computed again where it is needed, so that it does not wait in registers.
    #[inline(always)]
    #[track_caller]
    fn of<C: Cta>(cta: &C, args: &QrArgs<'a, T>, [width, columns, blocks]: [u32; 3]) -> Self {
        let [after, before] = update_tiles(args, width, columns);
        let block = cta.fresh(cta.block()) / blocks;
        let (matrix, tile) = (block / (after + before), block % (after + before));
        let site = Site::of(cta, args, matrix);
        let is_apart = args.has(APART);
        let (start, tile) = match args.has(EVERY) {
            true => panel_of(tile, width, columns),
            false => (args.start, tile),
        };
        let (kind, first_col, end) = if tile >= after {
            (Kind::Earlier, args.since + (tile - after) * columns, start)
        } else if is_apart {
            let untouched = if args.has(IDENTITY) { start } else { 0 };
            (Kind::Changed, untouched + tile * columns, args.c_cols)
        } else {
            let end = column_end(args, site.cols);
            (Kind::Changed, start + width + tile * columns, end)
        };
        let cols = match start < site.least() {
            true => end.saturating_sub(first_col).min(columns),
            false => 0,
        };
        let (base, row_step, col_step) = match is_apart {
            true => {
                let steps = &args.c_steps;
                (matrix as u64 * steps.each, steps.row, steps.col)
            }
            false => (site.f, site.f_row, site.f_col),
        };
        Target {
            matrix,
            start,
            rows: site.rows.saturating_sub(start),
            steps: site.least().saturating_sub(start).min(width),
            kind,
            first_col,
            cols,
            columns: if is_apart { args.c } else { args.f },
            first: base + start as u64 * row_step + first_col as u64 * col_step,
            row_step,
            col_step,
            reflectors: site.in_f(start, start) as u64,
            site,
        }
    }

    /// Where (row from the panel's first, column of the block) is.
    #[inline(always)]
    fn at(&self, row: u32, col: u32) -> usize {
        (self.first + row as u64 * self.row_step + col as u64 * self.col_step) as usize
    }

    #[inline(always)]
    fn has(&self, row: u32, col: u32) -> bool {
        row < self.rows && col < self.cols
    }

    /// Component `row` of reflector `p`, 0 where there is none: above its first, behind the last row or reflector.
    #[inline(always)]
    #[track_caller]
    fn component<C: Cta>(&self, cta: &C, args: &QrArgs<'_, T>, (row, p): (u32, u32)) -> T {
        let is_there = row < self.rows && p < self.steps;
        let mut value = T::ZERO;
        if is_there && row > p {
            value = cta.read(args.f, self.site.in_f(self.start + row, self.start + p));
        }
        if is_there && row == p {
            value = cta.read(
                args.first,
                (self.site.first + (self.start + p) as u64) as usize,
            );
        }
        value
    }

    /// Element (row, column) of the block's columns, 0 where there is none.
    #[inline(always)]
    #[track_caller]
    fn read<C: Cta>(&self, cta: &C, row: u32, col: u32) -> T {
        match self.has(row, col) {
            true => cta.read(self.columns, self.at(row, col)),
            false => T::ZERO,
        }
    }
}

/// See the head of the file.
#[inline(always)]
pub fn update<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    // 64 sums in registers, of two words in f64.
    if T::SIZE == 4 {
        cta.launch_bounds::<UPDATE_BLOCK, 4>();
    } else {
        cta.launch_bounds::<UPDATE_BLOCK, 2>();
    }
    columns_of::<C, T, WIDTH, COLUMNS, 1>(cta, args);
}

/// What becomes of the columns of a block, or of the `BLOCKS` blocks of a cluster.
#[inline(always)]
#[track_caller]
fn columns_of<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize, const BLOCKS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    let tile = [WIDTH as u32, COLUMNS as u32, BLOCKS as u32];
    let target = Target::of(cta, args, tile);
    if target.cols == 0 {
        return;
    }
    let w = Shared::at(0, SUMS);
    let v = Shared::at(w.end(), subtract::staged(tile[0]));
    let of = OfPanel {
        cta,
        args,
        target: &target,
        whole: (tile[0], tile[1]),
    };
    let rows = shared::rows::<C, BLOCKS>(cta, target.rows);
    let mut sums = products::<C, T, WIDTH, COLUMNS>(cta, rows, &of);
    if BLOCKS > 1 {
        sums = shared::of_all_blocks::<C, T, BLOCKS>(cta, &sums);
    }
    let target = Target::of(cta, args, tile);
    let sums = with_t::<C, T, WIDTH, COLUMNS>(cta, args, &target, (v, w), sums);
    if target.kind == Kind::Earlier {
        if BLOCKS == 1 || cta.cluster_rank() == 0 {
            keep::<C, T, COLUMNS>(cta, args, &target, &sums);
        }
        return;
    }
    cta.sync();
    let negative = four(|i| four(|j| -sums[i][j]));
    show::<C, T, COLUMNS>(cta, w, &negative);
    let rows = shared::rows::<C, BLOCKS>(cta, target.rows);
    subtract::<C, T, WIDTH, COLUMNS>(cta, args, &target, (v, w, rows));
}

/// The panel's reflectors and the block's columns.
struct OfPanel<'a, C, T> {
    cta: &'a C,
    args: &'a QrArgs<'a, T>,
    target: &'a Target<'a, T>,
    /// Reflectors and columns of a whole block.
    whole: (u32, u32),
}

impl<C: Cta, T: Ranged> Factors<T> for OfPanel<'_, C, T> {
    #[inline(always)]
    #[track_caller]
    fn v(&self, row: u32, col: u32) -> T {
        self.target.component(self.cta, self.args, (row, col))
    }

    #[inline(always)]
    #[track_caller]
    fn c(&self, row: u32, col: u32) -> T {
        self.target.read(self.cta, row, col)
    }

    #[inline(always)]
    fn is_whole(&self, base: u32) -> bool {
        let (target, (width, columns)) = (self.target, self.whole);
        let is_below = base >= width && base + WARP <= target.rows;
        is_below && target.steps == width && target.cols == columns && target.row_step == 1
    }

    #[inline(always)]
    #[track_caller]
    fn whole_v(&self, row: u32, col: u32) -> T {
        let target = self.target;
        let at = target.reflectors + row as u64 + col as u64 * target.site.f_col;
        self.cta.read(self.args.f, at as usize)
    }

    #[inline(always)]
    #[track_caller]
    fn whole_c(&self, row: u32, col: u32) -> T {
        let target = self.target;
        let at = target.first + row as u64 + col as u64 * target.col_step;
        self.cta.read(target.columns, at as usize)
    }
}

/// The thread's first column, and its four reflectors over 4: its columns are a quarter of the block's apart.
#[inline(always)]
pub(super) fn own<C: Cta, const COLUMNS: usize>(cta: &C) -> (u32, u32) {
    let (thread, groups) = (cta.fresh(cta.thread()), COLUMNS as u32 / 4);
    (thread % groups, thread / groups)
}

/// W to shared memory, reflector by reflector.
#[inline(always)]
#[track_caller]
fn show<C: Cta, T: Ranged, const COLUMNS: usize>(cta: &C, to: Shared<T>, sums: &[[T; 4]; 4]) {
    let (first, part) = own::<C, COLUMNS>(cta);
    four(|i| {
        four(|j| {
            let at = (part * 4 + i as u32) * COLUMNS as u32 + first + (j * COLUMNS / 4) as u32;
            cta.shared_write(to, at as usize, sums[i][j]);
        })
    });
}

/// Elements of `work` for a matrix of `least` reflectors: [`WORK_WIDTH`] for each that is before a panel, or before each of
/// [every](EVERY) panel.
pub const fn work_elements(least: usize, is_every: bool) -> usize {
    let width = WORK_WIDTH as usize;
    match (is_every, least.div_ceil(width)) {
        (false, _) => width * least,
        (true, 0) => 0,
        (true, panels) => width * width * (panels * (panels - 1) / 2),
    }
}

/// Where `work` has what belongs to an earlier reflector and reflector `p` of the panel that begins at `start`: those of a
/// panel's reflector lie side by side.
#[inline(always)]
pub fn in_work<T>(
    args: &QrArgs<'_, T>,
    (matrix, start): (u32, u32),
    (earlier, p): (u32, u32),
) -> usize {
    let (all, is_every) = (args.rows.min(args.cols) as usize, args.has(EVERY));
    let of_matrix = matrix as usize * work_elements(all, is_every);
    let of_panel = match is_every {
        true => work_elements(start as usize, true),
        false => 0,
    };
    of_matrix + of_panel + p as usize * work_pitch(args, start) as usize + earlier as usize
}

/// Elements of `work` from a reflector of the panel that begins at `start` to the next.
#[inline(always)]
pub fn work_pitch<T>(args: &QrArgs<'_, T>, start: u32) -> u32 {
    match args.has(EVERY) {
        true => start,
        false => args.rows.min(args.cols),
    }
}

/// W of earlier reflectors to `work`.
#[inline(always)]
#[track_caller]
fn keep<C: Cta, T: Ranged, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    sums: &[[T; 4]; 4],
) {
    let (first, part) = own::<C, COLUMNS>(cta);
    let place = (target.matrix, target.start);
    four(|j| {
        let col = first + (j * COLUMNS / 4) as u32;
        if col < target.cols {
            let of = |i| (target.first_col + col, part * 4 + i as u32);
            four(|i| cta.write(args.work, in_work(args, place, of(i)), sums[i][j]));
        }
    });
}

/// Step 2.
#[inline(always)]
#[track_caller]
fn with_t<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    (t, w): (Shared<T>, Shared<T>),
    sums: [[T; 4]; 4],
) -> [[T; 4]; 4] {
    let width = WIDTH as u32;
    // Everybody has read the sums of warps.
    cta.sync();
    show::<C, T, COLUMNS>(cta, w, &sums);
    let is_transposed = args.is_transposed();
    let mut e = cta.thread();
    while e < width * width {
        // Of the result's row p: T(q, p) for Tᵀ, T(p, q) for T.
        let (row, col) = (e / width, e % width);
        let value = if row < target.steps && col < target.steps {
            cta.read(
                args.t,
                target.site.in_t(target.start + row, target.start + col),
            )
        } else {
            T::ZERO
        };
        let (q, p) = if is_transposed {
            (row, col)
        } else {
            (col, row)
        };
        cta.shared_write(t, (q * width + p) as usize, value);
        e += UPDATE_BLOCK;
    }
    cta.sync();
    let (first, part) = own::<C, COLUMNS>(cta);
    let mut made = [[T::ZERO; 4]; 4];
    let last = cta.fresh(width);
    let mut q = 0;
    while q < last {
        let ts: [T; 4] = read_chunk(cta, t, (q * width + part * 4) as usize);
        let ws = four(|j| {
            let at = q * COLUMNS as u32 + first + (j * COLUMNS / 4) as u32;
            cta.shared_read(w, at as usize)
        });
        four(|i| four(|j| made[i][j] = ts[i].fma(ws[j], made[i][j])));
        q += 1;
    }
    made
}

impl<T> QrArgs<'_, T> {
    /// Whether Tᵀ is meant: Qᵀ, which factoring applies too.
    #[inline(always)]
    fn is_transposed(&self) -> bool {
        !self.has(APART) || self.has(TRANSPOSED)
    }
}
