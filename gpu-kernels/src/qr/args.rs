//! The family of QR factorisations, its arguments, and where matrices lie.

use crate::cta::{Cache, Cta};
use crate::memory::{In, Out};
use crate::scalar::Word;

/// The family of QR factorisations.
pub struct Qr<T>(core::marker::PhantomData<T>);

/// Which kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QrVariant {
    /// Matrices of at most `rows` × `lanes`, a lane for each column, 32 / `lanes` matrices in a warp.
    Lanes {
        /// Lanes, and columns, of a matrix.
        lanes: u32,
        /// Registers of a lane for its column.
        rows: u32,
    },
    /// Matrices of at most `rows` × `lanes` · `each`, `each` columns a lane, 32 / `lanes` matrices in a warp.
    Columns {
        /// Lanes of a matrix.
        lanes: u32,
        /// Columns of a lane.
        each: u32,
        /// Registers of a lane for one of its columns.
        rows: u32,
    },
    /// `lanes` columns of a matrix of at most `rows` · `warps` · 32 / `lanes` rows below the first, a block each.
    Panel {
        /// Columns.
        lanes: u32,
        /// Registers of a lane for its piece of a column.
        rows: u32,
        /// Warps of a block.
        warps: u32,
    },
    /// 32 columns of a matrix of at most `rows` · `warps` · `blocks` rows below the first, a cluster of blocks each.
    Spread {
        /// Registers of a lane for its piece of a column.
        rows: u32,
        /// Warps of a block.
        warps: u32,
        /// Blocks of a cluster.
        blocks: u32,
    },
    /// R of blocks of rows of a tall X as least squares wants them ([`Dress`]), at most `rows` · `warps` rows a block and 32
    /// columns.
    Dressed {
        /// Registers of a lane for its piece of a column.
        rows: u32,
        /// Warps of a block.
        warps: u32,
    },
    /// What `width` reflectors make of `columns` other columns, a block each.
    Update {
        /// Reflectors.
        width: u32,
        /// Columns of a block.
        columns: u32,
    },
    /// The same, a cluster of [`UPDATE_BLOCKS`](super::UPDATE_BLOCKS) blocks each, which share the rows.
    SharedUpdate {
        /// Reflectors.
        width: u32,
        /// Columns of a cluster.
        columns: u32,
    },
    /// What earlier reflectors make of 32 columns (16 in f64) that stay in the registers of `warps` warps, on tensor cores.
    Tensor {
        /// Warps of a block, with 64 rows each.
        warps: u32,
    },
    /// The columns of T above a panel's own.
    Merge,
    /// What those columns are made of, in squares of 32 × 32 on tensor cores: VᵢᵀVⱼTⱼ of each pair of panels.
    Pairs,
    /// The columns of T above all panels, from [`Pairs`](QrVariant::Pairs).
    Rows,
    /// The same, eight warps for 32 rows.
    SharedRows,
    /// From any strides to column-major.
    Pack,
    /// Q or Qᵀ times columns, a lane for each, of factors of [`Lanes`](QrVariant::Lanes).
    ApplyLanes {
        /// Reflectors at most.
        lanes: u32,
        /// Registers of a lane for its column.
        rows: u32,
    },
    /// Least squares of one right-hand side of each matrix, as [`Lanes`](QrVariant::Lanes) has them; R is not kept.
    Least {
        /// Lanes, and columns, of a matrix.
        lanes: u32,
        /// Registers of a lane for its column.
        rows: u32,
    },
    /// Least squares of one right-hand side of each matrix, as [`Columns`](QrVariant::Columns) has them, two columns a lane.
    LeastColumns {
        /// Lanes of a matrix.
        lanes: u32,
        /// Registers of a lane for one of its columns.
        rows: u32,
    },
    /// R · x = y for each right-hand side.
    Solve {
        /// Warps of a block.
        warps: u32,
    },
    /// R of one tall matrix of at most 32 columns from AᵀA in f64, where that is known to be as exact (f32).
    Gram {
        /// How it lies.
        lies: Lies,
        /// Whether its rows change on their way.
        is_dressed: bool,
    },
}

/// How a tall matrix lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lies {
    /// Row-major, each row from a whole pack on.
    InRows,
    /// Column-major, each column from a whole pack on.
    InColumns,
    /// In any other way.
    Otherwise,
}

/// Elements from one index to the next.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Steps {
    /// From a row to the next.
    pub row: u64,
    /// From a column to the next.
    pub col: u64,
    /// From a matrix to the next.
    pub each: u64,
}

/// [`QrArgs::mode`]: A is column-major without gaps, and as large as the entry takes: it is moved in packs.
pub const PACKS: u32 = 1;
/// R alone is wanted, with zeros below its diagonal.
pub const R_ONLY: u32 = 2;
/// Reflectors apply in the order of Qᵀ.
pub const TRANSPOSED: u32 = 4;
/// Panels apply to `c` instead of the other columns of the same matrix.
pub const APART: u32 = 8;
/// T has columns above those of a panel.
pub const WHOLE_T: u32 = 16;
/// `c` is the identity before the last panel, and its columns before a panel's first stay as they are.
pub const IDENTITY: u32 = 32;

/// The columns of T above all panels are wanted, whose own triangles are there: of all panels in one launch, and no other columns.
/// All panels have [`WORK_WIDTH`](super::WORK_WIDTH) columns.
pub const EVERY: u32 = 64;

/// Right-hand sides of [`QrVariant::Solve`] are the columns of `f` behind those of R.
pub const BEHIND: u32 = 128;

/// [`QrArgs::status`]: something was not finite, or became so.
pub const NOT_FINITE: u32 = 1;
/// A diagonal element of R is exactly 0.
pub const ZERO_PIVOT: u32 = 2;

/// Words of a matrix in [`QrArgs::table`].
pub const TABLE_WORDS: u32 = 8;

/// Arguments of every variant; an entry ignores what it does not name.
///
/// Factors are column-major without gaps, as are the first components; T is row-major.
#[repr(C)]
pub struct QrArgs<'a, T> {
    /// Matrices to factor; where absent, `f` has them already.
    pub a: In<'a, T>,
    /// R above and on the diagonal, below it the reflectors without their first components.
    pub f: Out<'a, T>,
    /// First components.
    pub first: Out<'a, T>,
    /// T, or absent where only R is wanted.
    pub t: Out<'a, T>,
    /// [`work_elements`](super::work_elements) for each matrix, between an update and a merge.
    pub work: Out<'a, T>,
    /// What Q, Qᵀ or the inverse of R applies to.
    pub c: Out<'a, T>,
    /// One word for each matrix.
    pub status: Out<'a, u32>,
    /// Of matrices of different shapes: rows, columns, then where it begins in `a`, the steps of its rows and columns
    /// there, where it begins in `f`, in `first` and in `t`.
    pub table: In<'a, u64>,
    /// Matrices.
    pub count: u32,
    /// Rows, the most of any matrix.
    pub rows: u32,
    /// Columns, the most of any matrix.
    pub cols: u32,
    /// Rows of the last matrix, where it has fewer; otherwise 0.
    pub last_rows: u32,
    /// Columns of a matrix of `c`.
    pub c_cols: u32,
    /// The panel's first column.
    pub start: u32,
    /// Reflectors of the panel at most; for [`Tensor`](QrVariant::Tensor) columns that change.
    pub width: u32,
    /// The first reflector that [`Tensor`](QrVariant::Tensor) applies; for a part of a panel the panel's first column, with which rows
    /// of T begin.
    pub since: u32,
    /// The end of those that it applies; for a part of a panel the panel's end, with which columns end that change. 0 for all.
    pub until: u32,
    /// Flags: [`PACKS`], [`R_ONLY`], [`TRANSPOSED`], [`APART`], [`WHOLE_T`],
    /// [`IDENTITY`], [`EVERY`], [`BEHIND`].
    pub mode: u32,
    /// Strides of `a`.
    pub a_steps: Steps,
    /// Strides of `f`; but for R alone they are those of column-major without gaps.
    pub f_steps: Steps,
    /// Strides of `c`.
    pub c_steps: Steps,
    /// What becomes of rows on their way into [`QrVariant::Dressed`] and [`QrVariant::Gram`].
    pub dress: Dress<'a, T>,
    /// [`gram_sums`](super::gram_sums) for [`QrVariant::Gram`].
    pub sums: Out<'a, f64>,
    /// [`gram_words`](super::gram_words) of [`QrVariant::Gram`]. Where there are any, [`QrVariant::Dressed`] does nothing unless
    /// the first one says [`REFUSED`](super::REFUSED).
    pub verdict: Out<'a, u32>,
}

/// Row i of X becomes `roots[i] · [x − means, targets[i]]`; what is absent changes nothing.
#[repr(C)]
pub struct Dress<'a, T> {
    /// One for each column of X.
    pub means: In<'a, T>,
    /// One for each row.
    pub roots: In<'a, T>,
    /// One for each row: the last column, which `a` does not have and [`QrArgs::cols`] counts.
    pub targets: In<'a, T>,
}

impl<T> Clone for Dress<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Dress<'_, T> {}

impl<T> Dress<'_, T> {
    /// Whether rows stay as they are.
    #[inline(always)]
    pub fn is_none(&self) -> bool {
        !(self.means.is_some() || self.roots.is_some() || self.targets.is_some())
    }

    /// Rows stay as they are.
    pub const fn none() -> Self {
        Dress {
            means: In::none(),
            roots: In::none(),
            targets: In::none(),
        }
    }
}

impl<T> Clone for QrArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for QrArgs<'_, T> {}

impl<T> QrArgs<'_, T> {
    /// No arrays, and no sizes.
    pub const fn none() -> Self {
        const NOWHERE: Steps = Steps {
            row: 0,
            col: 0,
            each: 0,
        };
        QrArgs {
            a: In::none(),
            f: Out::none(),
            first: Out::none(),
            t: Out::none(),
            work: Out::none(),
            c: Out::none(),
            status: Out::none(),
            table: In::none(),
            count: 0,
            rows: 0,
            cols: 0,
            last_rows: 0,
            c_cols: 0,
            start: 0,
            width: 0,
            since: 0,
            until: 0,
            mode: 0,
            a_steps: NOWHERE,
            f_steps: NOWHERE,
            c_steps: NOWHERE,
            dress: Dress::none(),
            sums: Out::none(),
            verdict: Out::none(),
        }
    }

    /// Whether a flag is set.
    #[inline(always)]
    pub fn has(&self, flag: u32) -> bool {
        self.mode & flag != 0
    }
}

/// One matrix: its shape and where its parts begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site {
    pub rows: u32,
    pub cols: u32,
    pub a: u64,
    pub a_row: u64,
    pub a_col: u64,
    pub f: u64,
    pub f_row: u64,
    pub f_col: u64,
    pub first: u64,
    pub t: u64,
}

impl Site {
    /// Matrix number `b`, which is below the count.
    #[inline(always)]
    #[track_caller]
    pub fn of<C: Cta, T: Word>(cta: &C, args: &QrArgs<'_, T>, b: u32) -> Site {
        if args.table.is_some() {
            return Self::listed(cta, args, b);
        }
        let is_short = args.last_rows > 0 && b + 1 == args.count;
        let rows = if is_short { args.last_rows } else { args.rows };
        let (cols, b) = (args.cols, b as u64);
        let least = rows.min(cols) as u64;
        Site {
            rows,
            cols,
            a: b * args.a_steps.each,
            a_row: args.a_steps.row,
            a_col: args.a_steps.col,
            f: b * args.f_steps.each,
            f_row: args.f_steps.row,
            f_col: args.f_steps.col,
            first: b * least,
            t: b * least * least,
        }
    }

    #[inline(always)]
    #[track_caller]
    fn listed<C: Cta, T: Word>(cta: &C, args: &QrArgs<'_, T>, b: u32) -> Site {
        let word = |i: u32| cta.load(args.table, (b * TABLE_WORDS + i) as usize, Cache::Keep);
        Site {
            rows: word(0) as u32,
            cols: word(1) as u32,
            a: word(2),
            a_row: word(3),
            a_col: word(4),
            f: word(5),
            f_row: 1,
            f_col: word(0),
            first: word(6),
            t: word(7),
        }
    }

    /// No matrix: what lanes without one have.
    pub const NONE: Site = Site {
        rows: 0,
        cols: 0,
        a: 0,
        a_row: 0,
        a_col: 0,
        f: 0,
        f_row: 0,
        f_col: 0,
        first: 0,
        t: 0,
    };

    /// Reflectors, and rows of T.
    #[inline(always)]
    pub fn least(&self) -> u32 {
        self.rows.min(self.cols)
    }

    /// Where element (row, column) of A is.
    #[inline(always)]
    pub fn in_a(&self, row: u32, col: u32) -> usize {
        (self.a + row as u64 * self.a_row + col as u64 * self.a_col) as usize
    }

    /// Where element (row, column) of the factors is.
    #[inline(always)]
    pub fn in_f(&self, row: u32, col: u32) -> usize {
        (self.f + row as u64 * self.f_row + col as u64 * self.f_col) as usize
    }

    /// Where element (row, column) of T is.
    #[inline(always)]
    pub fn in_t(&self, row: u32, col: u32) -> usize {
        (self.t + row as u64 * self.least() as u64 + col as u64) as usize
    }
}
