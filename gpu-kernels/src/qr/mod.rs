//! Householder QR factorisations of many matrices: A → R, V, T with Q = I − V·T·Vᵀ and A = Q·R.
//!
//! Step k of a matrix: (v, τ, s) of A(k.., k) as [`reflector`] says; z = −τ·vᵀ·A(k.., ..);
//! A(k.., k + 1..) += v·z(k + 1..); T(..k, k) = T(..k, ..k)·z(..k)ᵀ; T(k, k) = τ; A(k, k) = s. Columns before k hold
//! earlier reflectors, so that one product gives what the later columns and what T need. First components of v are kept
//! apart; all others stay where they were in A.
//!
//! | variant | mapping | for |
//! |---|---|---|
//! | `Lanes` | a lane per column, 1 to 4 matrices in a warp | at most 32 × 32 |
//! | `Columns` | 2 to 4 columns a lane, 2 to 16 matrices in a warp | the same, where there are enough of them |
//! | `Panel` | a block per matrix: 4 to 32 columns, rows in the registers of its warps | the columns of larger ones, 32 at a time; R of tall ones |
//! | `Spread` | as `Panel`, 32 columns over a cluster of blocks | panels of more rows than a block has room for |
//! | `Dressed` | as `Panel` | R of a tall X with targets, centred and weighted on its way |
//! | `Gram` | a warp per 16 rows, products in f64 on tensor cores | R of tall ones in f32, where AᵀA is known to be exact enough |
//! | `Update` | a block per matrix and 64 to 512 columns | what a panel's reflectors make of other columns |
//! | `SharedUpdate` | as `Update`, a cluster of blocks for the rows | the same, where there are few blocks |
//! | `Tensor` | a block per matrix and 32 columns (f64: 16), in registers; products on tensor cores | the same, where rows have room |
//! | `Merge` | a block per matrix and 64 rows | columns of T above a panel's own |
//! | `Pairs`, `Rows` | a warp per 32 × 32 of T, and per 32 rows; products on tensor cores | the same of all panels together, where they are whole |
//! | `SharedRows` | as `Rows`, a block per 32 rows | the same, where there are few matrices |
//! | `Pack` | tiles of 32 × 32 | to column-major, in front of panels |
//! | `Least` | as `Lanes` | least squares of tiny matrices, nothing else kept |
//! | `ApplyLanes`, `Solve` | a lane per column, a block per column | Q, Qᵀ of tiny matrices; R⁻¹ |
//!
//! Sums have an order that only the variant fixes: the same bits on every run and grid, and but for `Tensor`, `Pairs`, `Rows` and `SharedRows` on every device.
//!
//! Source: W. Sid-Lakhdar, T. Davis, X. Li, Autotuning dense batched QR factorizations on GPU, 2018; R. Schreiber and
//! C. Van Loan, A storage-efficient WY representation for products of Householder transformations, 1989.

mod apply;
mod args;
pub(crate) mod columns;
mod dressed;
mod gram;
pub(crate) mod lanes;
mod least;
mod least_columns;
mod merge;
mod pack;
pub(crate) mod panel;
mod pieces;
pub mod reflector;
mod shown;
mod solve;
mod squares;
mod table;
mod tensor;
mod tiny;
mod triangle;
mod update;
mod wide;

pub use apply::{APPLY_BLOCK, apply_shared_bytes};
pub use args::{
    APART, BEHIND, Dress, EVERY, IDENTITY, Lies, NOT_FINITE, PACKS, Qr, QrArgs, QrVariant, R_ONLY,
    Steps, TABLE_WORDS, TRANSPOSED, WHOLE_T, ZERO_PIVOT,
};
pub use columns::{COLUMNS_BLOCK, columns_shared_bytes};
pub use gram::{GRAM_BLOCK, GRAM_ROWS, GROUP, REFUSED, gram_shared_bytes, gram_sums, gram_words};
pub use lanes::{LANES_BLOCK, lanes_shared_bytes};
pub use merge::{MERGE_BLOCK, MERGE_ROWS, merge_shared_bytes, merge_tiles};
pub use pack::{PACK_BLOCK, PACK_TILE, pack_shared_bytes, pack_tiles};
pub use panel::panel_shared_bytes;
pub use solve::solve_shared_bytes;
pub use squares::{
    SHARED_BLOCK, SQUARES_BLOCK, has_squares, pairs_blocks, rows_blocks, shared_rows_blocks,
    shared_rows_bytes,
};
pub use tensor::{TENSOR_COLUMNS, tensor_rows, tensor_shared_bytes, tensor_tiles};
pub use update::{
    UPDATE_BLOCK, UPDATE_BLOCKS, WORK_WIDTH, update_shared_bytes, update_tiles, work_elements,
};
pub use wide::wide_shared_bytes;

use crate::cta::WARP;
use crate::describe::Description;
use crate::scalar::Real;
use crate::table::{Launch, Violation};

impl QrVariant {
    /// Threads of a block.
    pub const fn block(&self) -> u32 {
        match *self {
            QrVariant::Lanes { .. } | QrVariant::Least { .. } => LANES_BLOCK,
            QrVariant::Columns { .. } | QrVariant::LeastColumns { .. } => COLUMNS_BLOCK,
            QrVariant::Panel { warps, .. }
            | QrVariant::Spread { warps, .. }
            | QrVariant::Dressed { warps, .. }
            | QrVariant::Tensor { warps } => warps * WARP,
            QrVariant::Update { .. } | QrVariant::SharedUpdate { .. } => UPDATE_BLOCK,
            QrVariant::Merge => MERGE_BLOCK,
            QrVariant::Pairs | QrVariant::Rows => SQUARES_BLOCK,
            QrVariant::SharedRows => SHARED_BLOCK,
            QrVariant::Pack => PACK_BLOCK,
            QrVariant::ApplyLanes { .. } => APPLY_BLOCK,
            QrVariant::Solve { warps } => warps * WARP,
            QrVariant::Gram { .. } => GRAM_BLOCK,
        }
    }

    /// Dynamic shared memory of a block, for elements of `bytes` bytes and matrices of `cols` columns.
    pub const fn shared_bytes(&self, cols: u32, bytes: u32) -> u32 {
        match *self {
            QrVariant::Lanes { lanes, rows } | QrVariant::Least { lanes, rows } => {
                lanes_shared_bytes(lanes, rows, bytes)
            }
            QrVariant::Columns { lanes, each, rows } => {
                columns_shared_bytes(lanes, each, rows, bytes)
            }
            QrVariant::LeastColumns { lanes, rows } => columns_shared_bytes(lanes, 2, rows, bytes),
            QrVariant::Panel { lanes, rows, warps } => {
                panel_shared_bytes(lanes, rows, [warps, 1], bytes)
            }
            QrVariant::Spread {
                rows,
                warps,
                blocks,
            } => panel_shared_bytes(WARP, rows, [warps, blocks], bytes),
            QrVariant::Dressed { rows, warps } => panel_shared_bytes(WARP, rows, [warps, 1], bytes),
            QrVariant::Update { width, columns } | QrVariant::SharedUpdate { width, columns } => {
                update_shared_bytes(width, columns, bytes)
            }
            QrVariant::Tensor { warps } => match bytes {
                4 => tensor_shared_bytes(warps),
                _ => wide_shared_bytes(warps),
            },
            QrVariant::Merge => merge_shared_bytes(bytes),
            QrVariant::Pairs | QrVariant::Rows => 0,
            QrVariant::SharedRows => shared_rows_bytes(bytes),
            QrVariant::Pack => pack_shared_bytes(bytes),
            QrVariant::ApplyLanes { lanes, rows } => apply_shared_bytes(lanes, rows, bytes),
            QrVariant::Solve { .. } => solve_shared_bytes(cols, bytes),
            QrVariant::Gram { is_dressed, .. } => gram_shared_bytes(is_dressed),
        }
    }

    /// Blocks of the clusters in which it is launched; 1 for blocks by themselves.
    pub const fn cluster(&self) -> u32 {
        match *self {
            QrVariant::Spread { blocks, .. } => blocks,
            QrVariant::SharedUpdate { .. } => UPDATE_BLOCKS,
            _ => 1,
        }
    }

    /// The most rows, and columns, of a matrix (of a panel, below its first row).
    pub const fn most(&self) -> [u32; 2] {
        match *self {
            QrVariant::Lanes { lanes, rows }
            | QrVariant::ApplyLanes { lanes, rows }
            | QrVariant::Least { lanes, rows } => [rows, lanes],
            QrVariant::Columns { lanes, each, rows } => [rows, lanes * each],
            QrVariant::LeastColumns { lanes, rows } => [rows, 2 * lanes],
            QrVariant::Panel { lanes, rows, warps } => [rows * warps * (WARP / lanes), u32::MAX],
            QrVariant::Spread {
                rows,
                warps,
                blocks,
            } => [rows * warps * blocks, u32::MAX],
            QrVariant::Dressed { rows, warps } => [rows * warps, WARP],
            QrVariant::Gram { .. } => [u32::MAX, gram::GRAM_COLUMNS],
            QrVariant::Tensor { warps } => [tensor_rows(warps), u32::MAX],
            _ => [u32::MAX, u32::MAX],
        }
    }
}

const fn described(variant: &QrVariant) -> Description {
    Description {
        cluster: variant.cluster(),
        ..Description::UNPLANNED
    }
}

fn check<T: Real>(
    variant: &QrVariant,
    launch: &Launch,
    args: &QrArgs<'_, T>,
) -> Result<(), Violation> {
    Violation::equal("block", variant.block() as u64, launch.block as u64)?;
    let shared = variant.shared_bytes(args.cols, T::SIZE);
    Violation::at_least("shared bytes", shared as u64, launch.shared_bytes as u64)?;
    let [rows, cols] = variant.most();
    let first = match variant {
        QrVariant::Tensor { .. } => args.since,
        _ => args.start,
    };
    let below = args.rows.saturating_sub(first);
    Violation::at_most("rows", rows as u64, below as u64)?;
    Violation::at_most("columns", cols as u64, args.cols as u64)?;
    let (all, before) = (args.count as u64, args.status.len());
    match *variant {
        QrVariant::Lanes { lanes, .. }
        | QrVariant::Columns { lanes, .. }
        | QrVariant::Least { lanes, .. }
        | QrVariant::LeastColumns { lanes, .. } => {
            check_packs(variant, args)?;
            Violation::at_least("words of status", all, before)?;
            check_grid(
                launch,
                (all * lanes as u64).div_ceil(variant.block() as u64),
            )
        }
        QrVariant::Panel { .. } | QrVariant::Spread { .. } => {
            Violation::at_least("words of status", all, before)?;
            let blocks = all * variant.cluster() as u64;
            Violation::equal("blocks", blocks, launch.grid as u64)
        }
        QrVariant::Dressed { .. } => {
            check_dress(args)?;
            Violation::at_least("words of status", all, before)?;
            Violation::at_most("blocks", all, launch.grid as u64)
        }
        QrVariant::Gram { lies, is_dressed } => check_gram(launch, args, (lies, is_dressed)),
        QrVariant::Update { width, columns } | QrVariant::SharedUpdate { width, columns } => {
            let tiles = update_tiles(args, width, columns).map(u64::from);
            let blocks = all * (tiles[0] + tiles[1]) * variant.cluster() as u64;
            Violation::equal("blocks", blocks, launch.grid as u64)
        }
        QrVariant::Tensor { .. } => {
            let tiles = tensor_tiles(args) as u64;
            Violation::at_most("reflectors", args.start as u64, args.until as u64)?;
            Violation::equal("step of rows", 1, args.f_steps.row)?;
            Violation::equal("blocks", all * tiles, launch.grid as u64)
        }
        QrVariant::Merge => {
            let tiles = merge_tiles(args);
            Violation::equal("blocks", all * tiles as u64, launch.grid as u64)
        }
        QrVariant::Pairs => squares::check(launch, args, pairs_blocks(args)),
        QrVariant::Rows => squares::check(launch, args, rows_blocks(args)),
        QrVariant::SharedRows => squares::check(launch, args, shared_rows_blocks(args)),
        QrVariant::Pack => {
            let tiles = pack_tiles(args.rows, args.cols) as u64;
            Violation::at_most("tiles", u32::MAX as u64 / 2, all * tiles)
        }
        QrVariant::ApplyLanes { lanes, .. } => {
            check_grid(launch, (all * lanes as u64).div_ceil(APPLY_BLOCK as u64))
        }
        QrVariant::Solve { .. } => {
            Violation::equal("blocks", all * args.c_cols as u64, launch.grid as u64)
        }
    }
}

fn check_grid(launch: &Launch, blocks: u64) -> Result<(), Violation> {
    Violation::at_least("blocks", blocks, launch.grid as u64)
}

/// One matrix, with packs where they are read, and room for the sums of the grid.
fn check_gram<T: Real>(
    launch: &Launch,
    args: &QrArgs<'_, T>,
    (lies, is_dressed): (Lies, bool),
) -> Result<(), Violation> {
    check_dress(args)?;
    Violation::equal("matrices", 1, args.count as u64)?;
    let (sums, words) = (gram_sums(launch.grid), gram_words(launch.grid));
    Violation::at_least("sums", sums, args.sums.len())?;
    Violation::at_least("words of verdict", words, args.verdict.len())?;
    let pack = 16 / T::SIZE as u64;
    let steps = &args.a_steps;
    let [inner, outer] = match lies {
        Lies::InRows => [steps.col, steps.row],
        Lies::InColumns => [steps.row, steps.col],
        Lies::Otherwise => return Ok(()),
    };
    Violation::equal("step of elements side by side", 1, inner)?;
    Violation::multiple_of("step of rows, or of columns", pack, outer)?;
    let address = args.a.pointer().addr() as u64;
    Violation::multiple_of("address of A", 16, address)?;
    let is_plain = !(is_dressed && lies == Lies::InColumns);
    Violation::equal("columns that are not dressed", 1, is_plain as u64)
}

/// What rows are dressed with is as long as there are rows and columns.
fn check_dress<T: Real>(args: &QrArgs<'_, T>) -> Result<(), Violation> {
    let dress = &args.dress;
    let before = (args.count as u64).saturating_sub(1) * args.rows as u64;
    let last = match args.last_rows {
        0 => args.rows,
        rows => rows,
    };
    let rows = before + last as u64;
    for (what, found) in [("roots", dress.roots), ("targets", dress.targets)] {
        if found.is_some() {
            Violation::at_least(what, rows, found.len())?;
        }
    }
    if dress.means.is_some() {
        let cols = args.cols - dress.targets.is_some() as u32;
        Violation::at_least("means", cols as u64, dress.means.len())?;
    }
    Ok(())
}

/// Packs are for matrices that fill the entry, one behind the other.
fn check_packs<T: Real>(variant: &QrVariant, args: &QrArgs<'_, T>) -> Result<(), Violation> {
    if !args.has(PACKS) {
        return Ok(());
    }
    let [rows, cols] = variant.most();
    let whole = rows as u64 * cols as u64;
    Violation::equal("rows", rows as u64, args.rows as u64)?;
    Violation::equal("columns", cols as u64, args.cols as u64)?;
    Violation::equal("step of rows", 1, args.a_steps.row)?;
    Violation::equal("step of columns", rows as u64, args.a_steps.col)?;
    Violation::multiple_of("step of matrices", 16 / T::SIZE as u64, args.a_steps.each)?;
    Violation::equal("step of factors", whole, args.f_steps.each)
}
