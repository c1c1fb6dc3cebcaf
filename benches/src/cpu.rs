//! The fused pass of the CPU device, in turns with a plain multi-threaded sum of the same arrays; of sparse X over its rows and over
//! the form for the CPU. SciPy beside it: `peers/scipy_fused.py`.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use warpfuse::cpu::stream;
use warpfuse::device::Device;
use warpfuse::matrix::{Element, Features, Storage};
use warpfuse::ops::{Matrix, Number, Preparation, Terms, vector};
use warpfuse::plan::fused::Product;

use crate::case::{Case, SEED};
use crate::data;
use crate::record::{Measured, Recorder};
use crate::sampling::Sampler;
use crate::shape::Shape;
use crate::truth::{self, HostTerms};

/// Bytes of every matrix: more than the last-level cache of any processor.
const BYTES: usize = 1 << 30;
const PER_ROW: usize = 20;

/// Records all cases of the family; `recorder` is one for the CPU.
///
/// # Errors
/// When a result cannot be written.
pub fn record(recorder: &Recorder, sampler: &Sampler) -> Result<()> {
    for shape in shapes::<f32>() {
        record_matrix::<f32>(recorder, sampler, shape)?;
    }
    for shape in shapes::<f64>() {
        record_matrix::<f64>(recorder, sampler, shape)?;
    }
    Ok(())
}

/// The shapes for an element type.
pub fn shapes<T>() -> Vec<Shape> {
    let dense = |cols| Shape::Dense {
        rows: BYTES / size_of::<T>() / cols,
        cols,
    };
    let row_bytes = PER_ROW * (size_of::<T>() + size_of::<u32>()) + size_of::<u64>();
    let sparse = |cols| Shape::Sparse {
        rows: BYTES / row_bytes,
        cols,
        per_row: PER_ROW,
    };
    vec![
        dense(28),
        dense(128),
        dense(1_024),
        sparse(1_000),
        sparse(4_000),
        sparse(10_000),
        sparse(40_000),
        sparse(100_000),
    ]
}

/// The name of the case of a shape, X as it comes.
pub fn case<T: Number>(shape: Shape) -> Case {
    case_of::<T>("fused", shape)
}

fn case_of<T: Number>(work: &'static str, shape: Shape) -> Case {
    Case {
        family: "cpu",
        work,
        shape,
        dtype: T::DTYPE.into(),
        seed: SEED,
    }
}

fn record_matrix<T: Number>(recorder: &Recorder, sampler: &Sampler, shape: Shape) -> Result<()> {
    recorder.measure(&case::<T>(shape), || measure::<T>(sampler, shape, None))?;
    if !shape.is_sparse() {
        return Ok(());
    }
    let case = case_of::<T>("fused_sell", shape);
    recorder.measure(&case, || {
        measure::<T>(sampler, shape, Some(Preparation::Sell))
    })
}

fn measure<T: Number>(
    sampler: &Sampler,
    shape: Shape,
    form: Option<Preparation>,
) -> Result<Measured> {
    let device = Device::cpu();
    let features = Arc::new(shape.features::<T>(SEED)?);
    let y = data::values::<T>(shape.cols(), SEED + 10);
    let truth = truth::product(&features, Product::Fused, &y, &HostTerms::default());
    let mut matrix = Matrix::new(&device, Arc::clone(&features))?;
    let begun = Instant::now();
    if let Some(form) = form {
        matrix.prepare(form)?;
    }
    let prepare_ms = form.map(|_| 1e3 * begun.elapsed().as_secs_f64());
    let y = device.upload(&y)?;
    let mut w = device.zeros(shape.cols())?;
    vector::fill(<T as Element>::from_f64(f64::NAN), &mut w)?;
    matrix.fused(&y, &Terms::default(), &mut w)?;
    let error = truth::checked_error(&w.to_vec()?, &truth)?;
    let pass = || Ok(matrix.fused(&y, &Terms::default(), &mut w)?);
    let (times, sum_times) = sampler.alternate::<anyhow::Error>(pass, || {
        black_box(sum(black_box(&features)));
        Ok(())
    })?;
    let bytes = shape.bytes::<T>(size_of::<u64>());
    let variant = format!("{} threads", rayon::current_num_threads());
    let mut measured = Measured::new(variant, times, bytes)
        .with_ceiling(sum_times.gbs(bytes))
        .with_error(error);
    let once = prepare_ms.map(|ms| ("prepare_ms", ms));
    measured.details.extend(once);
    Ok(measured)
}

/// Adds up all arrays of a matrix.
fn sum<T: Number>(features: &Features<T>) -> (f64, u64) {
    match features.storage() {
        Storage::Dense(x) => (
            stream::sum(x.as_slice().expect("benchmark data are in standard layout")),
            0,
        ),
        Storage::Sparse(x) => {
            let offsets = x.indptr();
            let offsets = bytemuck::cast_slice(
                offsets
                    .as_slice()
                    .expect("a whole matrix starts at offset 0"),
            );
            let integers = || {
                (
                    stream::sum_integers(x.indices()),
                    stream::sum_integers(offsets),
                )
            };
            let (values, (indices, offsets)) = rayon::join(|| stream::sum(x.data()), integers);
            (values, indices.wrapping_add(offsets))
        }
    }
}
