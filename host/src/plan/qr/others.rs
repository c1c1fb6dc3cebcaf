//! Which launches give other columns what the reflectors of a panel make of them.

use gpu_kernels::qr::QrVariant;

use super::{PanelStep, QrPlan, QrShape};
use crate::plan::limits::DeviceLimits;

/// Matrices of one factorisation, and where they are factored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// Rows and columns, the most of any matrix.
    pub shape: QrShape,
    /// Matrices.
    pub count: usize,
    /// Bytes of an element.
    pub bytes: u32,
    /// Streaming multiprocessors of the device.
    pub sms: u32,
    /// The most shared memory of a block.
    pub shared_bytes: u32,
}

impl Batch {
    /// `count` matrices of a shape on a device of these limits.
    pub fn of(shape: QrShape, count: usize, bytes: u32, limits: &DeviceLimits) -> Batch {
        Batch {
            shape,
            count,
            bytes,
            sms: limits.sms,
            shared_bytes: limits.shared_per_block,
        }
    }
}

/// When the columns of later panels change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Others {
    /// Behind each panel: all later columns, by this kernel.
    Behind(QrVariant),
    /// In front of each panel: its own columns, once for all panels before, by this kernel.
    Before(QrVariant),
}

/// Fewer rows leave most of a block of [`QrVariant::Tensor`] without work, as those of 70 × 333 in the table of [`for_batch`].
const LEAST_BEFORE: usize = 129;
/// The same where columns are read and written again for each panel: those of 256 × 256 gain 6 %.
const LEAST_BEHIND: usize = 257;

/// The plan with the way in which other columns change fastest in a batch.
///
/// Columns that wait until all panels before theirs are there are read and written once, and keep in registers meanwhile;
/// but there is a block for each matrix only. Milliseconds of R, V and the triangles of panels, f32, on an H100
/// (2026-11-25):
///
/// | batch | [`QrVariant::Update`] | [`QrVariant::Tensor`] behind panels | before them |
/// |---|--:|--:|--:|
/// | 640 of 512 × 512 | 9.60 | 7.90 | 6.14 |
/// | 1,000 of 256 × 256 | 2.74 | 2.58 | 2.03 |
/// | 60 of 1,024 × 1,024 | 7.88 | 6.18 | 6.57 |
/// | 20 of 511 × 511 | 1.34 | 1.15 | 2.34 |
/// | 300 of 100 × 77 | 0.195 | 0.212 | 0.192 |
/// | 300 of 70 × 333 | 0.408 | 0.574 | 0.691 |
///
/// With all of T, the first took 12.5 and 9.7 ms, the third 10.5 and 9.8 when its columns were made panel by panel; see
/// [`TriangleForm::made`](super::TriangleForm::made).
///
/// What did not help: tiles of eight rows for each warp in turn instead of strips of 32; prefetching the next panel; the
/// products for columns of T on tensor cores (2.2 ms instead of 1.9 for 640 of 512 × 512), and those of a merge (2.5 instead of
/// 1.7). What bounds the kernel (ncu): a third of the issue slots are used; of the time that a warp has no instruction ready it
/// waits a third for the tensor core's last result, a quarter for V, and a fifth for other warps, as panels leave the upper
/// rows without work.
///
/// ```
/// use warpfuse::plan::qr::{Batch, Others, QrPlan, QrShape, for_batch, plan};
/// let shape = QrShape { rows: 512, cols: 512 };
/// let batch = |count| Batch { shape, count, bytes: 4, sms: 132, shared_bytes: 227 << 10 };
/// let last = |count| match for_batch(plan(shape, 4), &batch(count)) {
///     QrPlan::Panels(steps) => steps[15].others,
///     QrPlan::Lanes(_) => unreachable!("too large for one launch"),
/// };
/// assert!(matches!(last(640), Others::Before(_)));
/// assert!(matches!(last(8), Others::Behind(_)));
/// ```
pub fn for_batch(plan: QrPlan, batch: &Batch) -> QrPlan {
    let QrPlan::Panels(steps) = plan else {
        return plan;
    };
    let of = |i| PanelStep {
        others: others(batch, &steps, i),
        ..steps[i]
    };
    QrPlan::Panels((0..steps.len()).map(of).collect())
}

/// How columns change that step `step` of `steps` does not factor.
fn others(batch: &Batch, steps: &[PanelStep], step: usize) -> Others {
    let Batch { shape, count, .. } = *batch;
    let behind = steps[step].update;
    let in_parts = steps.iter().any(PanelStep::is_in_parts);
    let waits = count >= batch.sms as usize && shape.rows >= LEAST_BEFORE && !in_parts;
    if waits && let Some(kernel) = tensor(batch, shape.rows) {
        return Others::Before(kernel);
    }
    let rows = shape.rows - steps[step].start;
    let is_measured = batch.bytes == 4 && rows >= LEAST_BEHIND;
    let kernel = tensor(batch, rows).filter(|_| is_measured);
    Others::Behind(kernel.unwrap_or(behind))
}

/// The smallest kernel with room for all rows, where a block has the shared memory for it.
fn tensor(batch: &Batch, rows: usize) -> Option<QrVariant> {
    let mut kernels = [8, 16].map(|warps| QrVariant::Tensor { warps }).into_iter();
    let kernel = kernels.find(|kernel| kernel.most()[0] as usize >= rows)?;
    let needed = kernel.shared_bytes(batch.shape.cols as u32, batch.bytes);
    (needed <= batch.shared_bytes).then_some(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::qr::{QrPlan, plan};
    use gpu_kernels::qr::Qr;
    use gpu_kernels::table::Family;

    fn batch(shape: QrShape, count: usize) -> Batch {
        Batch {
            shape,
            count,
            bytes: 4,
            sms: 132,
            shared_bytes: 227 << 10,
        }
    }

    #[test]
    fn kernels_have_room_and_are_compiled() {
        for (rows, cols) in [
            (512, 512),
            (1_024, 1_024),
            (1_025, 40),
            (300, 500),
            (4_096, 64),
        ] {
            let shape = QrShape { rows, cols };
            let QrPlan::Panels(steps) = plan(shape, 4) else {
                panic!("{shape:?}");
            };
            for count in [1, 132, 1_000] {
                let batch = batch(shape, count);
                for (i, step) in steps.iter().enumerate() {
                    let (kernel, first) = match others(&batch, &steps, i) {
                        Others::Behind(kernel) => (kernel, step.start),
                        Others::Before(kernel) => (kernel, 0),
                    };
                    assert!(kernel.most()[0] as usize >= rows - first, "{shape:?} {i}");
                    let mut entries = Qr::<f32>::entries().iter();
                    assert!(entries.any(|entry| entry.variant == kernel), "{kernel:?}");
                }
            }
        }
    }

    #[test]
    fn columns_in_f64_wait_where_all_matrices_have_an_sm() {
        let shape = QrShape {
            rows: 512,
            cols: 100,
        };
        let QrPlan::Panels(steps) = plan(shape, 8) else {
            panic!("{shape:?}");
        };
        for (count, expected) in [(131, None), (132, Some(8))] {
            let batch = Batch {
                bytes: 8,
                ..batch(shape, count)
            };
            let found = match others(&batch, &steps, 1) {
                Others::Before(kernel) => Some(kernel),
                Others::Behind(_) => None,
            };
            let expected = expected.map(|warps| QrVariant::Tensor { warps });
            assert_eq!(found, expected, "{count} matrices");
            let has = |kernel| Qr::<f64>::entries().iter().any(|e| e.variant == kernel);
            assert!(expected.is_none_or(has));
        }
    }

    #[test]
    fn all_steps_wait_or_none() {
        let shape = QrShape {
            rows: 512,
            cols: 700,
        };
        let QrPlan::Panels(steps) = plan(shape, 4) else {
            panic!("{shape:?}");
        };
        for count in [131, 132] {
            let batch = batch(shape, count);
            let waits = |i| matches!(others(&batch, &steps, i), Others::Before(_));
            assert!((0..steps.len()).all(|i| waits(i) == (count == 132)));
        }
    }

    #[test]
    fn blocks_that_have_too_little_memory_take_the_other_kernel() {
        let shape = QrShape {
            rows: 1_000,
            cols: 512,
        };
        let QrPlan::Panels(steps) = plan(shape, 4) else {
            panic!("{shape:?}");
        };
        for (kib, before) in [(227, true), (163, false), (99, false)] {
            let batch = Batch {
                shared_bytes: kib << 10,
                ..batch(shape, 1_000)
            };
            let first = others(&batch, &steps, 0);
            assert_eq!(matches!(first, Others::Before(_)), before, "{kib}");
        }
    }
}
