//! Choices for shapes that no model was fitted with: a list that a seed draws, of which a third is never fitted to.

mod list;

use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use warpfuse::matrix::{Element, Features};
use warpfuse::ops::measure::Selection;
use warpfuse::plan::Summation;
use warpfuse::plan::fused::{Precision, Product};

use super::{Wanted, record_matrix};
use crate::case::Case;
use crate::gpu::Gpu;
use crate::record::Recorder;

pub use list::{Drawn, Part, list};

/// The family, and the name of the file of results.
pub const FAMILY: &str = "plan_drawn";

/// More than for other lists: a model that is fitted to these times takes other launches then.
const SELECTION: Selection = Selection {
    fastest: 16,
    of_each_kernel: 2,
};

/// A matrix in one of both types.
enum Made {
    F32(Result<Features<f32>>),
    F64(Result<Features<f64>>),
}

impl Drawn {
    /// The cases of this shape, as they are recorded.
    pub fn cases(&self, seed: u64) -> Vec<(Product, Case)> {
        let case = |&product: &Product| {
            let work = work(product, self.summation);
            let dtype = match self.dtype {
                Precision::F32 => f32::DTYPE,
                Precision::F64 => f64::DTYPE,
            };
            let case = Case {
                family: FAMILY,
                work,
                shape: self.shape,
                dtype: dtype.into(),
                seed,
            };
            (product, case)
        };
        self.products.iter().map(case).collect()
    }

    fn make(&self, seed: u64) -> Made {
        match self.dtype {
            Precision::F32 => Made::F32(self.shape.features(seed)),
            Precision::F64 => Made::F64(self.shape.features(seed)),
        }
    }
}

/// What a product with such sums is called in records.
fn work(product: Product, summation: Summation) -> &'static str {
    match (summation, product) {
        (Summation::Free, Product::Fused) => "fused",
        (Summation::Free, Product::Forward) => "forward",
        (Summation::Free, Product::Transposed) => "transposed",
        (Summation::Reproducible, Product::Fused) => "fused_reproducible",
        (Summation::Reproducible, Product::Forward) => "forward_reproducible",
        (Summation::Reproducible, Product::Transposed) => "transposed_reproducible",
    }
}

/// Records the device and the cases of the list that `seed` draws, as many as begin within `most`.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder, seed: u64, most: Option<Duration>) -> Result<()> {
    let begun = Instant::now();
    let limits = gpu.device.limits().context("a GPU has limits")?;
    recorder.describe(FAMILY, limits)?;
    let wanted = wanted(recorder, seed);
    std::thread::scope(|scope| {
        let (ready, matrices) = sync_channel(0);
        let all = wanted.iter();
        scope.spawn(move || {
            // Nobody takes them any more when the time is over.
            all.map(|(drawn, _)| drawn.make(seed))
                .all(|made| ready.send(made).is_ok())
        });
        for (done, (_, wanted)) in wanted.iter().enumerate() {
            let spent = begun.elapsed();
            println!("shape {done} after {:.0} s", spent.as_secs_f64());
            if most.is_some_and(|most| spent > most) {
                break;
            }
            match matrices.recv().context("making the next matrix")? {
                Made::F32(features) => record_matrix(gpu, recorder, wanted, features)?,
                Made::F64(features) => record_matrix(gpu, recorder, wanted, features)?,
            }
        }
        Ok(())
    })
}

/// What is requested of the list.
fn wanted(recorder: &Recorder, seed: u64) -> Vec<(Drawn, Wanted)> {
    let all = list(seed).into_iter().map(|drawn| {
        let cases = drawn.cases(seed).into_iter();
        let wanted = Wanted {
            shape: drawn.shape,
            summation: drawn.summation,
            selection: SELECTION,
            cases: cases.filter(|(_, case)| recorder.wants(case)).collect(),
        };
        (drawn, wanted)
    });
    all.filter(|(_, wanted)| !wanted.cases.is_empty()).collect()
}
