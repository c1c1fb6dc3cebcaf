//! Arguments of sums over kernels, and the slices of their sources.

use crate::memory::{In, Out};

/// Arguments of every entry; an entry ignores what it does not name.
#[repr(C)]
pub struct KernelSumArgs<'a, T> {
    /// M.
    pub targets: u32,
    /// N.
    pub sources: u32,
    /// D.
    pub dims: u32,
    /// Values per target in `partials`: weight vectors of [`tiled`](crate::kernel_sum::tiled), at most [`tiled::VECTORS`](crate::kernel_sum::tiled::VECTORS); dimensions of
    /// [`gradient`](crate::kernel_sum::gradient), at most [`gradient::WINDOW`](crate::kernel_sum::gradient::WINDOW); 1 of [`narrow`](crate::kernel_sum::narrow).
    pub vectors: u32,
    /// Slices that the sources are cut into; the grid has as many blocks for each tile of targets.
    pub slices: u32,
    /// First dimension of the gradient's window; in `finish` number of the first value in `out`.
    pub first: u32,
    /// Factor of the sums in `finish`.
    pub alpha: T,
    /// Factor of z in `finish`.
    pub beta: T,
    /// D·M scaled coordinates of the targets.
    pub x: In<'a, T>,
    /// D·N scaled coordinates of the sources.
    pub y: In<'a, T>,
    /// Weights, one vector of N after the other.
    pub w: In<'a, T>,
    /// z, laid out as `out`; optional.
    pub z: In<'a, T>,
    /// `partials[(slice · vectors + v) · M + i]`; written, but added to by symmetric entries.
    pub partials: Out<'a, f64>,
    /// Result of `finish`: element `i · out_row + (first + v) · out_column`.
    pub out: Out<'a, T>,
    /// Elements between the results of two targets.
    pub out_row: u64,
    /// Elements between two values of a target.
    pub out_column: u64,
}

impl<T: Copy> Clone for KernelSumArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for KernelSumArgs<'_, T> {}

/// The sources of one slice: as many for all slices, but for the last.
#[inline(always)]
pub(crate) fn slice_of(sources: u32, slices: u32, slice: u32) -> (u32, u32) {
    let len = sources.div_ceil(slices);
    let from = slice as u64 * len as u64;
    let end = from + len as u64;
    let sources64 = sources as u64;
    (
        if from < sources64 {
            from as u32
        } else {
            sources
        },
        if end < sources64 { end as u32 } else { sources },
    )
}

/// The most targets and sources: tiles may run past the end before 32 bits overflow.
pub const MAX_POINTS: u32 = u32::MAX - (1 << 16);
