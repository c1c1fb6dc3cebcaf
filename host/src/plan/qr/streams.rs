//! Streams in which parts of a batch are factored beside each other.

use super::Batch;

/// Fewer reflectors are few launches, each short: nothing was measured there.
const LEAST_REFLECTORS: usize = 256;

/// Streams for a batch of one shape that is factored in panels: each has launches for its part of the batch, where that is faster
/// than launches for all of it.
///
/// A launch has a block for each matrix, of which two share an SM: of 640 matrices and 132 SMs three turns, the last of which fills
/// less than half. Launches of another part take the places that are left. Of many more matrices the last turn is of no account, and
/// of fewer than there are places nothing has to wait. Milliseconds of R, V and T on an H100 (2026-11-26, bench `qr`):
///
/// | batch | type | streams: 1 | 2 | 3 | 4 | 6 | 8 |
/// |---|---|--:|--:|--:|--:|--:|--:|
/// | 640 of 512 × 512 | f32 | 9.09 | 8.15 | 8.01 | 8.13 | 8.31 | 8.39 |
/// | 1,000 of 256 × 256 | f32 | 2.79 | 2.58 | 2.56 | 2.60 | 2.63 | 2.68 |
///
/// ```
/// use warpfuse::plan::qr::{Batch, QrShape, streams};
/// let of = |size, count| streams(&Batch {
///     shape: QrShape { rows: size, cols: size },
///     count,
///     bytes: 4,
///     sms: 132,
///     shared_bytes: 227 << 10,
/// });
/// assert_eq!([60, 300, 640, 10_000].map(|count| of(512, count)), [1, 2, 3, 1]);
/// assert_eq!(of(64, 640), 1);
/// ```
pub fn streams(batch: &Batch) -> usize {
    if batch.shape.least() < LEAST_REFLECTORS {
        return 1;
    }
    match batch.count / batch.sms.max(1) as usize {
        2..=3 => 2,
        4..=16 => 3,
        _ => 1,
    }
}
