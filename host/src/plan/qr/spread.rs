//! Matrices of which a cluster's blocks share the rows: panels that one block has no room for, and other columns of which there
//! are too few for all SMs.

use gpu_kernels::qr::{QrVariant, WORK_WIDTH};

use super::{Batch, Lying, Others, PanelStep, QrPlan, QrShape, for_batch, plan_of};

/// Registers of a lane, and warps of a block.
const BLOCK: [u32; 2] = [32, 16];

/// Fewer rows are not shared: a chunk of 128 for each block.
const LEAST_SHARED: usize = 512;

/// Nor are those of matrices with fewer rows than this: of 128 matrices of 1,024 × 256 in f64 it takes 3.8 ms instead of 3.7, of 8 of
/// 2,048² in f32 13.1 instead of 14.2 (H100).
const LEAST_ROWS: usize = 2_048;

/// The kernels for elements of `bytes` bytes, fewer blocks first. What two have room for in f32, one block has.
pub fn spreads(bytes: u32) -> Vec<QrVariant> {
    let [rows, warps] = BLOCK;
    let kernel = |blocks: &u32| QrVariant::Spread {
        rows,
        warps,
        blocks: *blocks,
    };
    let blocks: &[u32] = if bytes == 4 { &[4, 8] } else { &[2, 4, 8] };
    blocks.iter().map(kernel).collect()
}

/// The plan in which blocks of a cluster share each panel that would be made in [parts](PanelStep::is_in_parts); panels that one
/// block holds stay as they are.
///
/// A part applies its reflectors to the panel's later columns, which takes launches of a block a matrix: on an H100 a panel of
/// 4,096 rows takes 0.8 ms in f32 and 3.7 ms in f64, most of it there. A panel over blocks takes none: two matrices of 4,096² take 44 ms
/// instead of 138 (f64 63 instead of 523), and 31 (48) with shared rows of other columns.
///
/// ```
/// use gpu_kernels::qr::QrVariant;
/// use warpfuse::plan::qr::{QrPlan, QrShape, over_clusters, plan};
/// let shape = QrShape { rows: 4_096, cols: 64 };
/// let QrPlan::Panels(steps) = over_clusters(plan(shape, 8), shape, 8) else {
///     unreachable!("too large for one launch");
/// };
/// assert_eq!(steps[0].panel, QrVariant::Spread { rows: 32, warps: 16, blocks: 8 });
/// ```
pub fn over_clusters(plan: QrPlan, shape: QrShape, bytes: u32) -> QrPlan {
    let QrPlan::Panels(steps) = plan else {
        return plan;
    };
    let kernels = spreads(bytes);
    let over = |step: PanelStep| match kernel(&kernels, &step, shape.rows - step.start) {
        Some(panel) => PanelStep { panel, ..step },
        None => step,
    };
    QrPlan::Panels(steps.into_iter().map(over).collect())
}

/// Blocks of an update that an SM holds, in f32 and in f64.
const RESIDENT: [u32; 2] = [4, 2];

/// The plan in which clusters share the rows of other columns, behind panels whose update has fewer blocks than there is room for.
///
/// On an H100 explicit Q of two matrices of 4,096 × 4,096 takes 27 ms in f32 (40 in f64), 6.8 TFLOP/s, with at most 128 blocks of
/// four warps on 132 SMs, each of which waits for its chunks of rows one after the other. Four blocks have a quarter of the chunks
/// each; two barriers of the cluster and 128 KB between them take some 2 µs a launch.
pub fn rows_shared(plan: QrPlan, batch: &Batch) -> QrPlan {
    let QrPlan::Panels(steps) = plan else {
        return plan;
    };
    let shared = |step: PanelStep| match step.others {
        Others::Behind(QrVariant::Update { width, columns }) if is_shared(&step, batch) => {
            let others = Others::Behind(QrVariant::SharedUpdate { width, columns });
            PanelStep { others, ..step }
        }
        _ => step,
    };
    QrPlan::Panels(steps.into_iter().map(shared).collect())
}

/// Whether the SMs have room for more blocks than update the columns behind a panel, and each of more blocks has rows.
fn is_shared(step: &PanelStep, batch: &Batch) -> bool {
    let QrVariant::Update { columns, .. } = step.update else {
        return false;
    };
    let end = step.start + step.width;
    let tiles = batch
        .shape
        .cols
        .saturating_sub(end)
        .div_ceil(columns as usize);
    let resident = RESIDENT[usize::from(batch.bytes == 8)];
    let room = (batch.sms * resident) as usize;
    let rows = batch.shape.rows - step.start;
    let has_rows = batch.shape.rows >= LEAST_ROWS && rows >= LEAST_SHARED;
    has_rows && tiles * batch.count < room
}

/// The launches of a batch that lies in this way, on a device that has clusters or not: what the planner takes.
///
/// ```
/// use warpfuse::plan::qr::{Batch, Lying, QrPlan, QrShape, planned};
/// let shape = QrShape { rows: 300, cols: 200 };
/// let batch = Batch { shape, count: 10, bytes: 4, sms: 132, shared_bytes: 227 << 10 };
/// assert!(matches!(planned(&batch, Lying::Packed, true), QrPlan::Panels(steps) if steps.len() == 7));
/// ```
pub fn planned(batch: &Batch, lying: Lying, has_clusters: bool) -> QrPlan {
    let plan = plan_of(batch.shape, batch.bytes, lying);
    if has_clusters {
        let plan = for_batch(over_clusters(plan, batch.shape, batch.bytes), batch);
        return rows_shared(plan, batch);
    }
    for_batch(plan, batch)
}

/// The kernel with the fewest blocks that has room for the rows of a panel that is made in parts.
fn kernel(kernels: &[QrVariant], step: &PanelStep, rows: usize) -> Option<QrVariant> {
    let is_wanted = step.is_in_parts() && step.width == WORK_WIDTH as usize;
    let fits = |kernel: &QrVariant| kernel.most()[0] as usize >= rows;
    kernels.iter().copied().filter(|_| is_wanted).find(fits)
}

#[cfg(test)]
mod tests {
    use super::super::{MOST, plan};
    use super::*;
    use gpu_kernels::qr::Qr;
    use gpu_kernels::table::Family;

    fn steps(plan: QrPlan) -> Vec<PanelStep> {
        match plan {
            QrPlan::Panels(steps) => steps,
            QrPlan::Lanes(_) => panic!("too large for one launch"),
        }
    }

    #[test]
    fn no_panel_is_left_in_parts_and_blocks_have_room() {
        let shape = QrShape {
            rows: MOST,
            cols: MOST,
        };
        for bytes in [4, 8] {
            let has = |kernel| match bytes {
                4 => Qr::<f32>::entries().iter().any(|e| e.variant == kernel),
                _ => Qr::<f64>::entries().iter().any(|e| e.variant == kernel),
            };
            for step in steps(over_clusters(plan(shape, bytes), shape, bytes)) {
                assert!(!step.is_in_parts());
                assert!(step.panel.most()[0] as usize >= MOST - step.start);
                assert!(has(step.panel), "{:?}", step.panel);
            }
        }
    }

    #[test]
    fn panels_that_a_block_holds_stay() {
        let shape = QrShape {
            rows: 512,
            cols: 512,
        };
        for bytes in [4, 8] {
            let before = plan(shape, bytes);
            assert_eq!(over_clusters(before.clone(), shape, bytes), before);
        }
    }

    #[test]
    fn rows_are_shared_where_updates_leave_sms_idle() {
        let shape = QrShape {
            rows: MOST,
            cols: MOST,
        };
        let shared = |count, bytes| {
            let batch = Batch {
                shape,
                count,
                bytes,
                sms: 132,
                shared_bytes: 227 << 10,
            };
            let all = steps(rows_shared(plan(shape, bytes), &batch));
            let is_shared = |step: &&PanelStep| step.applying() != step.update;
            all.iter().filter(is_shared).count()
        };
        // But for the panels of the last 512 rows.
        assert_eq!(shared(2, 4), 113);
        // 9 × 29 blocks have room on 132 SMs from 1,856 columns on.
        assert_eq!(shared(9, 8), 128 - 69 - 15);
        assert_eq!(shared(2_000, 4), 0);
    }

    #[test]
    fn devices_without_clusters_have_none() {
        let batch = Batch {
            shape: QrShape {
                rows: MOST,
                cols: 64,
            },
            count: 1,
            bytes: 4,
            sms: 132,
            shared_bytes: 227 << 10,
        };
        let all = steps(planned(&batch, Lying::Packed, false));
        assert!(all.iter().all(|step| step.panel.cluster() == 1));
    }
}
