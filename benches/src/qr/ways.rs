//! Ways in which other columns change, and columns of T are made, of which the planner takes one.

use anyhow::Result;
use gpu_kernels::qr::QrVariant;
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, Qr, TriangleForm};
use warpfuse::plan::qr::{Lying, Made, Others, QrPlan, plan_of};

use super::{Choice, Size, Work, case, measure};
use crate::gpu::Gpu;
use crate::record::Recorder;

/// One of them.
#[derive(Clone, Copy)]
pub struct Way {
    name: &'static str,
    others: Columns,
    made: Made,
    /// Elements that it is timed for.
    dtypes: &'static [Dtype],
}

/// How other columns change.
#[derive(Clone, Copy)]
enum Columns {
    Planned,
    Updated,
    Waiting,
}

const BOTH: &[Dtype] = &[Dtype::F32, Dtype::F64];
const WAYS: [Way; 6] = [
    way("t_at_the_end", Columns::Planned, Made::AtTheEnd, BOTH),
    way("t_in_squares", Columns::Planned, Made::InSquares, BOTH),
    way(
        "updated_with_panels",
        Columns::Updated,
        Made::WithPanels,
        &[Dtype::F64],
    ),
    way(
        "updated_in_squares",
        Columns::Updated,
        Made::InSquares,
        BOTH,
    ),
    way(
        "waiting_at_the_end",
        Columns::Waiting,
        Made::AtTheEnd,
        &[Dtype::F64],
    ),
    way(
        "waiting_in_squares",
        Columns::Waiting,
        Made::InSquares,
        BOTH,
    ),
];

const SIZES: [Size; 5] = [
    (640, 512, 512),
    (1_000, 256, 256),
    (2_000, 128, 128),
    (10_000, 64, 64),
    (60, 1_024, 1_024),
];

const fn way(name: &'static str, others: Columns, made: Made, dtypes: &'static [Dtype]) -> Way {
    Way {
        name,
        others,
        made,
        dtypes,
    }
}

/// Records all ways.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for size in SIZES {
        for way in WAYS {
            one::<f32>(gpu, recorder, size, way)?;
            one::<f64>(gpu, recorder, size, way)?;
        }
    }
    Ok(())
}

fn one<T: Number>(gpu: &Gpu, recorder: &Recorder, size: Size, way: Way) -> Result<()> {
    // Panels of 1,024 rows have 16 columns in f64.
    if !way.dtypes.contains(&T::DTYPE) || (T::SIZE == 8 && size.1 > 512) {
        return Ok(());
    }
    let work = Work::Factor(TriangleForm::Whole);
    recorder.measure(&case(way.name, size, T::DTYPE), || {
        measure::<T>(gpu, size, work, Choice::Way(way))
    })
}

impl Way {
    /// Memory for factors that are made so.
    pub fn qr<T: Number>(self, device: &Device, batch: Batch, form: TriangleForm) -> Result<Qr<T>> {
        let warps = if batch.rows > 512 { 16 } else { 8 };
        let of_step = |update| match self.others {
            Columns::Waiting => Others::Before(QrVariant::Tensor { warps }),
            _ => Others::Behind(update),
        };
        let mut plan = plan_of(batch.shape(), T::SIZE, Lying::Packed);
        if let QrPlan::Panels(steps) = &mut plan {
            for step in steps {
                step.others = of_step(step.update);
            }
        }
        let qr = match self.others {
            Columns::Planned => Qr::new(device, batch, form)?,
            _ => Qr::with_plan(device, batch, form, Some(plan))?,
        };
        Ok(qr.with_columns_of_t(self.made)?)
    }
}
