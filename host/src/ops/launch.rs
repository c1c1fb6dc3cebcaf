//! From a plan to a kernel that can be launched, and from vectors to its arguments.

use std::ops::Range;

use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::OpError;
use crate::device::{Buffer, Device, Prepared};
use crate::plan::fused::Plan;
use crate::plan::scaling::TURNS;

/// The kernel of a plan, in its launch.
pub(super) fn prepare<F: Family>(device: &Device, plan: &Plan) -> Result<Prepared<F>, OpError> {
    let launch = Launch {
        grid: plan.grid,
        block: plan.bs,
        shared_bytes: plan.shared_bytes,
    };
    Ok(device.prepare(entry::<F>(plan), launch)?)
}

/// A kernel in more and shorter blocks than run at the same time: one that is beside another gets its places among them.
pub(super) fn in_turns<F: Family>(
    device: &Device,
    kernel: &Prepared<F>,
) -> Result<Prepared<F>, OpError> {
    let launch = kernel.shape();
    let grid = launch.grid.saturating_mul(TURNS);
    Ok(device.prepare(kernel.entry(), Launch { grid, ..launch })?)
}

fn entry<F: Family>(plan: &Plan) -> &'static Entry<F> {
    let found = F::entries().iter().find(|entry| entry.name == plan.kernel);
    found.expect("the planner chose among the entries of this table")
}

/// Elements `range` of a buffer; the caller has checked that they are there.
pub(super) fn slice<'a, T: bytemuck::Pod>(
    buffer: &'a Buffer<T>,
    range: &Range<usize>,
) -> In<'a, T> {
    let all = buffer.input();
    assert!(
        range.end as u64 <= all.len(),
        "rows of the matrix are elements of the vector"
    );
    // SAFETY: the range lies inside the buffer. Rows start at a multiple of 32 elements of a buffer that is aligned to
    // 256 bytes; columns, which start anywhere, are read element by element.
    unsafe { In::new(all.pointer().add(range.start), range.len() as u64) }
}

/// [`slice`] for a result.
pub(super) fn slice_mut<'a, T: bytemuck::Pod>(
    buffer: &'a mut Buffer<T>,
    range: &Range<usize>,
) -> Out<'a, T> {
    let all = buffer.output();
    assert!(
        range.end as u64 <= all.len(),
        "rows of the matrix are elements of the vector"
    );
    // SAFETY: as in `slice`; the buffer is borrowed mutably for as long.
    unsafe { Out::new(all.pointer().add(range.start), range.len() as u64) }
}

/// The first elements of a buffer; the caller has checked that they are there.
pub(super) fn first<T: bytemuck::Pod>(buffer: &Buffer<T>, len: usize) -> In<'_, T> {
    let all = buffer.input();
    assert!(len as u64 <= all.len(), "as many were requested");
    // SAFETY: they are the beginning of the buffer.
    unsafe { In::new(all.pointer(), len as u64) }
}

/// A vector that need not be there.
pub(super) fn optional<T: bytemuck::Pod>(buffer: &Option<Buffer<T>>) -> In<'_, T> {
    buffer.as_ref().map_or(In::none(), Buffer::input)
}
