//! Kernels for R of a tall and narrow matrix: from AᵀA, and block by block of its rows.

use gpu_kernels::cta::WARP;
use gpu_kernels::qr::{GRAM_BLOCK, GRAM_ROWS, QrVariant};

use super::limits::DeviceLimits;

/// Most columns of a tall matrix.
pub const MOST_TALL: usize = 32;

/// The kernel for R of blocks of rows of a tall matrix of at most 32 columns.
pub const fn tall_panel(bytes: u32) -> QrVariant {
    match bytes {
        4 => QrVariant::Panel {
            lanes: 32,
            rows: 64,
            warps: 8,
        },
        _ => QrVariant::Panel {
            lanes: 32,
            rows: 32,
            warps: 8,
        },
    }
}

/// [`tall_panel`] for rows that change on their way, of as many rows.
pub const fn tall_dressed(bytes: u32) -> QrVariant {
    match tall_panel(bytes) {
        QrVariant::Panel { rows, warps, .. } => QrVariant::Dressed { rows, warps },
        other => other,
    }
}

/// Blocks that share an SM, and take turns at a tall matrix.
const RESIDENT: u32 = 2;
/// Times that each warp reads 16 rows at least, as long as there are more.
const TURNS: u64 = 2;

/// Blocks for R of a tall matrix from AᵀA, where that is faster than reflectors and may be as exact: of f32, on GPUs whose tensor
/// cores multiply in f64 at the rate of their other units or above, for rows that no single block of reflectors holds.
///
/// Microseconds of R alone of 32 columns in f32 on an H100 (3,100 GB/s of a plain read, 2026-11-26):
///
/// | rows | plain read of A | row-major | column-major | reflectors, row-major |
/// |---|--:|--:|--:|--:|
/// | 10⁷ | 434 | 439 | 581 | 3,613 |
/// | 10⁶ | 44 | | 82 | 453 |
///
/// Row-major A is read as fast as a plain read (ncu: 90 % of memory's peak) since eight lanes copy a row of 128 bytes: 696 in the
/// same run where they copied 32 bytes of each of four rows, and waited for the unit of memory instructions eight times as long
/// as they issued. Products and addresses (some 200 instructions of a warp for six products) do not bound it: a third of the issue
/// slots, 59 % of the tensor cores' time. Column-major A is copied in pieces of 64 bytes: 67 %. Not tried: 32 rows at once
/// there. Some 25 to 40 are the sums of blocks, R, and launches that have nothing to do.
///
/// ```
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::tall::tall_gram;
/// let limits = DeviceLimits::known("h200").expect("a listed device");
/// assert_eq!(tall_gram(4, 10_000_000, &limits), Some(2 * limits.sms));
/// assert_eq!(tall_gram(8, 10_000_000, &limits), None);
/// assert_eq!(tall_gram(4, 100, &limits), None);
/// ```
pub fn tall_gram(bytes: u32, rows: usize, limits: &DeviceLimits) -> Option<u32> {
    let has_rate =
        matches!(limits.compute_capability.major, 8..=10) && limits.compute_capability.minor == 0;
    let rows = u32::try_from(rows).ok()?;
    if bytes != 4 || !has_rate || rows <= tall_panel(bytes).most()[0] {
        return None;
    }
    let turns = u64::from(GRAM_BLOCK / WARP) * TURNS;
    let blocks = u64::from(rows.div_ceil(GRAM_ROWS)).div_ceil(turns);
    Some(blocks.min(u64::from(RESIDENT * limits.sms)) as u32)
}

/// Blocks that factor `count` blocks of rows by turns, where [`tall_gram`] was refused.
pub fn tall_turns(count: u32, limits: &DeviceLimits) -> u32 {
    count.min(RESIDENT * limits.sms)
}
