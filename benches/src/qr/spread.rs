//! Tall matrices in the ways between which the planner chooses: panels in parts, or over the blocks of a cluster; other columns by a
//! block each, or by a cluster.

use anyhow::Result;
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{QrShape, TriangleForm};
use warpfuse::plan::qr::{
    self as plans, Lying, Made, QrPlan, for_batch, over_clusters, plan_of, rows_shared,
};

use super::{Choice, Size, Work, case, measure};
use crate::gpu::Gpu;
use crate::record::Recorder;

/// Timed in either type.
const SIZES: [Size; 7] = [
    (2, 4_096, 4_096),
    (8, 2_048, 2_048),
    (60, 1_024, 1_024),
    (1_024, 1_024, 32),
    (128, 1_024, 256),
    (64, 1_024, 512),
    (64, 4_096, 32),
];

/// What is computed, and how.
const WAYS: [(&str, Work, Rows); 9] = [
    ("panels_in_parts", PANELS, Rows::InParts),
    ("panels_spread", PANELS, Rows::Spread),
    ("panels_shared", PANELS, Rows::Shared),
    ("whole_in_parts", WHOLE, Rows::InParts),
    ("whole_spread", WHOLE, Rows::Spread),
    ("whole_shared", WHOLE, Rows::Shared),
    ("whole_t_shared", WHOLE, Rows::AllShared),
    ("q_in_parts", Work::ExplicitQ, Rows::InParts),
    ("q_shared", Work::ExplicitQ, Rows::Shared),
];

const PANELS: Work = Work::Factor(TriangleForm::Panels);
const WHOLE: Work = Work::Factor(TriangleForm::Whole);

/// Who has the rows of panels that no block holds.
#[derive(Clone, Copy)]
enum Rows {
    /// A block, of a few columns at a time.
    InParts,
    /// A cluster.
    Spread,
    /// A cluster, which has those of other columns, too.
    Shared,
    /// Likewise, and a block those of T.
    AllShared,
}

/// Records all ways; nothing on a device without clusters.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    if !gpu.device.has_clusters() {
        return Ok(());
    }
    for size in SIZES {
        for way in WAYS {
            one::<f32>(gpu, recorder, size, way)?;
            one::<f64>(gpu, recorder, size, way)?;
        }
    }
    Ok(())
}

fn one<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    size: Size,
    (name, work, rows_of): (&'static str, Work, Rows),
) -> Result<()> {
    let (_, rows, _) = size;
    // A block has room for 1,024 rows of f32.
    if T::SIZE == 4 && rows <= 1_024 {
        return Ok(());
    }
    recorder.measure(&case(name, size, T::DTYPE), || {
        let plan = plan::<T>(&gpu.device, size, rows_of);
        let choice = match rows_of {
            Rows::AllShared => Choice::Columns(plan, Made::InSharedSquares),
            _ => Choice::Plan(plan),
        };
        measure::<T>(gpu, size, work, choice)
    })
}

/// The launches on a device that launches.
fn plan<T: Number>(device: &Device, (count, rows, cols): Size, rows_of: Rows) -> Option<QrPlan> {
    let shape = QrShape { rows, cols };
    let batch = plans::Batch::of(shape, count, T::SIZE, device.limits()?);
    let plan = plan_of(shape, T::SIZE, Lying::Packed);
    Some(match rows_of {
        Rows::InParts => for_batch(plan, &batch),
        Rows::Spread => for_batch(over_clusters(plan, shape, T::SIZE), &batch),
        Rows::Shared | Rows::AllShared => rows_shared(
            for_batch(over_clusters(plan, shape, T::SIZE), &batch),
            &batch,
        ),
    })
}
