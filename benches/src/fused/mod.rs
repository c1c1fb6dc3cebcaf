//! The fused pattern and its halves, over the library's own matrices.

mod many;
mod subject;
mod task;

use anyhow::Result;
use warpfuse::ops::Number;

use crate::gpu::Gpu;
use crate::record::Recorder;
use crate::shape::{DENSE_WIDTHS, DRAWN, MATRICES, SPARSE_WIDTHS, Shape};

pub use subject::Subject;
pub use task::{Entries, TASKS, Task};

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    let dense = MATRICES.into_iter().chain(DENSE_WIDTHS);
    for shape in dense.chain(SPARSE_WIDTHS).chain(DRAWN) {
        for entries in [
            Entries::Drawn,
            Entries::Equal,
            Entries::OfRows,
            Entries::Bf16,
        ] {
            record_matrix::<f32>(gpu, recorder, (shape, entries))?;
            record_matrix::<f64>(gpu, recorder, (shape, entries))?;
        }
    }
    for shape in many::MATRICES {
        many::record::<f32>(gpu, recorder, shape)?;
        many::record::<f64>(gpu, recorder, shape)?;
    }
    Ok(())
}

/// All products of one matrix, which is generated and uploaded once.
fn record_matrix<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    (shape, entries): (Shape, Entries),
) -> Result<()> {
    let tasks: Vec<Task> = TASKS
        .into_iter()
        .filter(|task| task.entries == entries && task.applies_to(&shape))
        .collect();
    let cases: Vec<_> = tasks.iter().map(|task| task.case::<T>(shape)).collect();
    if !cases.iter().any(|case| recorder.wants(case)) {
        return Ok(());
    }
    let subject = match Subject::<T>::new(gpu, shape, entries) {
        Ok(subject) => subject,
        Err(reason) => return recorder.fail(&cases, &reason),
    };
    for (task, case) in tasks.iter().zip(&cases) {
        recorder.measure(case, || subject.measure(*task))?;
    }
    Ok(())
}
