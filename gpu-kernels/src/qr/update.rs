//! What the reflectors of a panel make of other columns: C −= V·Tᵀ·(VᵀC), or with T for Q instead of Qᵀ.
//!
//! | step | what | where |
//! |---|---|---|
//! | 1 | W = VᵀC, over chunks of 32 rows | four by four sums of a thread, chunks in shared memory |
//! | 2 | W = Tᵀ·W (T·W) | shared |
//! | 3 | C −= V·W, over the same chunks | four by four elements of a thread |
//!
//! For columns before the panel, which are those of earlier reflectors, step 2 gives (VᵀV′)ᵀ·T, of which
//! [`merge`](super::merge) makes the columns of T above the panel's: they go to `work`.
//!
//! Loops end at numbers that the compiler takes for unknown: unrolled, their addresses would wait in registers.
//!
//! A block has 128 threads and `COLUMNS` columns of one matrix; `WIDTH` · `COLUMNS` = 2048.

use super::args::{APART, IDENTITY, QrArgs, Site, TRANSPOSED, WHOLE_T};
use super::pieces::{four, read_chunk};
use super::reflector::Ranged;
use crate::cta::{Cta, Shared};
use crate::memory::Out;

/// Threads of a block.
pub const UPDATE_BLOCK: u32 = 128;
/// Rows of a chunk.
const ROWS: u32 = 32;
/// Elements from a column of a chunk to the next: packs of eight neighbouring columns lie in different banks.
const PITCH: u32 = ROWS + 4;
/// Reflectors in `work`.
pub const WORK_WIDTH: u32 = 32;

/// Elements of the two parts of shared memory.
const fn elements(width: u32, columns: u32) -> [u32; 2] {
    [width * PITCH, columns * PITCH]
}

/// Shared memory of a block.
pub const fn update_shared_bytes(width: u32, columns: u32, bytes: u32) -> u32 {
    let [v, c] = elements(width, columns);
    (v + c) * bytes
}

/// Blocks of a matrix: for columns after the panel (or those of `c`), and for those before it.
pub const fn update_tiles<T>(args: &QrArgs<'_, T>, width: u32, columns: u32) -> [u32; 2] {
    let after = if args.mode & IDENTITY != 0 {
        args.c_cols.saturating_sub(args.start)
    } else if args.mode & APART != 0 {
        args.c_cols
    } else {
        args.cols.saturating_sub(args.start + width)
    };
    let before = if args.mode & WHOLE_T != 0 {
        args.start
    } else {
        0
    };
    [after.div_ceil(columns), before.div_ceil(columns)]
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
}

impl<'a, T: Ranged> Target<'a, T> {
    #[inline(always)]
    #[track_caller]
    fn of<C: Cta>(cta: &C, args: &QrArgs<'a, T>, width: u32, columns: u32) -> Self {
        let [after, before] = update_tiles(args, width, columns);
        let (matrix, tile) = (
            cta.block() / (after + before),
            cta.block() % (after + before),
        );
        let site = Site::of(cta, args, matrix);
        let is_apart = args.has(APART);
        let (kind, first_col, end) = if tile >= after {
            (Kind::Earlier, (tile - after) * columns, args.start)
        } else if is_apart {
            let untouched = if args.has(IDENTITY) { args.start } else { 0 };
            (Kind::Changed, untouched + tile * columns, args.c_cols)
        } else {
            (
                Kind::Changed,
                args.start + width + tile * columns,
                site.cols,
            )
        };
        let cols = match args.start < site.least() {
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
            start: args.start,
            rows: site.rows.saturating_sub(args.start),
            steps: site.least().saturating_sub(args.start).min(width),
            kind,
            first_col,
            cols,
            columns: if is_apart { args.c } else { args.f },
            first: base + args.start as u64 * row_step + first_col as u64 * col_step,
            row_step,
            col_step,
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

/// The chunk of V that begins at `base`: four lines of 32 threads.
#[inline(always)]
#[track_caller]
fn stage_v<C: Cta, T: Ranged, const WIDTH: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    (base, to): (u32, Shared<T>),
) {
    let thread = cta.fresh(cta.thread());
    let (of_chunk, line) = (thread % ROWS, thread / ROWS);
    let row = base + of_chunk;
    let (site, start) = (&target.site, target.start);
    // The triangle is in the first rows alone.
    let has_triangle = base < WIDTH as u32;
    for i in 0..WIDTH as u32 / 4 {
        let p = line + 4 * i;
        let mut value = T::ZERO;
        if row < target.rows && p < target.steps && !(has_triangle && row <= p) {
            value = cta.read(args.f, site.in_f(start + row, start + p));
        }
        if has_triangle && row == p && p < target.steps && row < target.rows {
            value = cta.read(args.first, (site.first + (start + p) as u64) as usize);
        }
        cta.shared_write(to, (p * PITCH + of_chunk) as usize, value);
    }
}

/// The chunk of the block's columns that begins at `base`.
#[inline(always)]
#[track_caller]
fn stage_columns<C: Cta, T: Ranged, const COLUMNS: usize>(
    cta: &C,
    target: &Target<'_, T>,
    (base, to): (u32, Shared<T>),
) {
    let thread = cta.fresh(cta.thread());
    let (row, mut col) = (thread % ROWS, thread / ROWS);
    let end = cta.fresh(COLUMNS as u32);
    while col < end {
        let values = four(|i| target.read(cta, base + row, col + 4 * i as u32));
        four(|i| {
            let at = (col + 4 * i as u32) * PITCH + row;
            cta.shared_write(to, at as usize, values[i]);
        });
        col += 16;
    }
}

/// See the head of the file.
#[inline(always)]
pub fn update<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
) {
    // With 128 registers of a thread the walks over 128 and 256 columns spill some thirty words; with 256 none.
    if WIDTH == 8 || WIDTH == 16 {
        cta.launch_bounds::<UPDATE_BLOCK, 2>();
    } else {
        cta.launch_bounds::<UPDATE_BLOCK, 4>();
    }
    let (width, columns) = (WIDTH as u32, COLUMNS as u32);
    let target = Target::of(cta, args, width, columns);
    if target.cols == 0 {
        return;
    }
    let [of_v, of_c] = elements(width, columns);
    let v = Shared::at(0, of_v);
    let c = Shared::at(v.end(), of_c);
    let sums = products::<C, T, WIDTH, COLUMNS>(cta, args, &target, (v, c));
    let sums = with_t::<C, T, WIDTH, COLUMNS>(cta, args, &target, (v, c), sums);
    if target.kind == Kind::Earlier {
        keep::<C, T, COLUMNS>(cta, args, &target, &sums);
        return;
    }
    cta.sync();
    let negative = four(|i| four(|j| -sums[i][j]));
    show::<C, T, COLUMNS>(cta, c, &negative);
    subtract::<C, T, WIDTH, COLUMNS>(cta, args, &target, (v, c));
}

/// The thread's first column, and its four reflectors over 4: its columns are a quarter of the block's apart.
#[inline(always)]
fn own<C: Cta, const COLUMNS: usize>(cta: &C) -> (u32, u32) {
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
    let before = target.matrix as usize * args.rows.min(args.cols) as usize;
    four(|j| {
        let col = first + (j * COLUMNS / 4) as u32;
        if col < target.cols {
            let at = (before + (target.first_col + col) as usize) * WORK_WIDTH as usize;
            four(|i| cta.write(args.work, at + part as usize * 4 + i, sums[i][j]));
        }
    });
}

/// Step 1.
#[inline(always)]
#[track_caller]
fn products<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    (v, c): (Shared<T>, Shared<T>),
) -> [[T; 4]; 4] {
    let mut sums = [[T::ZERO; 4]; 4];
    let mut base = 0;
    while base < target.rows {
        stage_v::<C, T, WIDTH>(cta, args, target, (base, v));
        stage_columns::<C, T, COLUMNS>(cta, target, (base, c));
        cta.sync();
        let (first, part) = own::<C, COLUMNS>(cta);
        let mut row = 0;
        let rows = cta.fresh(ROWS);
        while row < rows {
            let vs: [[T; 4]; 4] =
                four(|i| read_chunk(cta, v, ((part * 4 + i as u32) * PITCH + row) as usize));
            let cs: [[T; 4]; 4] = four(|j| {
                let col = first + (j * COLUMNS / 4) as u32;
                read_chunk(cta, c, (col * PITCH + row) as usize)
            });
            four(|r| {
                four(|i| four(|j| sums[i][j] = vs[i][r].fma(cs[j][r], sums[i][j])));
            });
            row += 4;
        }
        cta.sync();
        base += ROWS;
    }
    sums
}

/// Step 2.
#[inline(always)]
#[track_caller]
fn with_t<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    (v, c): (Shared<T>, Shared<T>),
    sums: [[T; 4]; 4],
) -> [[T; 4]; 4] {
    let width = WIDTH as u32;
    show::<C, T, COLUMNS>(cta, c, &sums);
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
        cta.shared_write(v, (q * width + p) as usize, value);
        e += UPDATE_BLOCK;
    }
    cta.sync();
    let (first, part) = own::<C, COLUMNS>(cta);
    let mut made = [[T::ZERO; 4]; 4];
    let last = cta.fresh(width);
    let mut q = 0;
    while q < last {
        let ts: [T; 4] = read_chunk(cta, v, (q * width + part * 4) as usize);
        let ws = four(|j| {
            let at = q * COLUMNS as u32 + first + (j * COLUMNS / 4) as u32;
            cta.shared_read(c, at as usize)
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

/// Step 3, with −W in the place of the columns' chunks: neighbouring threads have neighbouring rows.
#[inline(always)]
#[track_caller]
fn subtract<C: Cta, T: Ranged, const WIDTH: usize, const COLUMNS: usize>(
    cta: &C,
    args: &QrArgs<'_, T>,
    target: &Target<'_, T>,
    (v, w): (Shared<T>, Shared<T>),
) {
    let mut base = 0;
    while base < target.rows {
        stage_v::<C, T, WIDTH>(cta, args, target, (base, v));
        cta.sync();
        let thread = cta.fresh(cta.thread());
        let (of_chunk, mut col) = (thread % 8 * 4, thread / 8 * 4);
        let row = base + of_chunk;
        let end = cta.fresh(COLUMNS as u32);
        while col < end {
            let mut made: [[T; 4]; 4] =
                four(|j| four(|r| target.read(cta, row + r as u32, col + j as u32)));
            let last = cta.fresh(WIDTH as u32);
            let mut p = 0;
            while p < last {
                four(|u| {
                    let p = p + u as u32;
                    let vs: [T; 4] = read_chunk(cta, v, (p * PITCH + of_chunk) as usize);
                    let ws: [T; 4] = read_chunk(cta, w, (p * COLUMNS as u32 + col) as usize);
                    four(|j| four(|r| made[j][r] = vs[r].fma(ws[j], made[j][r])));
                });
                p += 4;
            }
            four(|j| {
                four(|r| {
                    let (row, col) = (row + r as u32, col + j as u32);
                    if target.has(row, col) {
                        cta.write(target.columns, target.at(row, col), made[j][r]);
                    }
                })
            });
            col += 4 * UPDATE_BLOCK / 8;
        }
        cta.sync();
        base += ROWS;
    }
}
