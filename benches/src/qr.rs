//! Batched QR factorisations: R, V and T; explicit Q; least squares; R of a tall matrix.
//!
//! Peers are in `peers/qr.py` and, without PyTorch, `peers/geqrf.py`, which run in the same session on the same GPU.

use anyhow::{Result, ensure};
use warpfuse::device::Buffer;
use warpfuse::matrix::{Dtype, Element};
use warpfuse::ops::Number;
use warpfuse::ops::qr::{
    Batch, LeastSquares, Order, Piece, Qr, Status, TallQr, TallSource, TriangleForm,
};
use warpfuse::plan::qr::{Made, QrPlan, QrShape, panels, plan_with};
use warpfuse::reference::qr::Factors;

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::record::{Measured, Recorder};
use crate::shape::Shape;

mod spread;
mod ways;

/// Matrices of a batch that are judged, spread over all.
const JUDGED: usize = 6;
/// Elements of the batches of the table.
const TABLE_ELEMENTS: usize = 1 << 25;
/// Sides of the matrices of the table.
const TABLE: [usize; 9] = [4, 8, 16, 32, 64, 128, 256, 512, 1_024];

/// Matrices, rows, columns.
type Size = (usize, usize, usize);

const SIZES: [Size; 11] = [
    (1_000_000, 16, 16),
    (100_000, 32, 32),
    (10_000, 64, 64),
    (2_000, 128, 128),
    (1_000, 256, 256),
    (640, 512, 512),
    (60, 1_024, 1_024),
    (8, 2_048, 2_048),
    (2, 4_096, 4_096),
    (1_000, 512, 32),
    (4_000, 32, 128),
];

/// R of a tall matrix, as it lies.
const TALL: [(&str, Order); 2] = [
    ("tall_r", Order::RowMajor),
    ("tall_r_columns", Order::ColumnMajor),
];

/// Batches that are factored in some numbers of streams, and the numbers.
const IN_STREAMS: [Size; 2] = [(640, 512, 512), (1_000, 256, 256)];
const STREAMS: [(&str, usize); 6] = [
    ("streams_1", 1),
    ("streams_2", 2),
    ("streams_3", 3),
    ("streams_4", 4),
    ("streams_6", 6),
    ("streams_8", 8),
];

/// Who says how a batch is factored.
enum Choice {
    Planner,
    Plan(Option<QrPlan>),
    Columns(Option<QrPlan>, Made),
    Streams(usize),
    Way(ways::Way),
}

/// What is computed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Factor(TriangleForm),
    ExplicitQ,
    LeastSquares,
}

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for size in SIZES {
        both(
            gpu,
            recorder,
            "factor",
            size,
            Work::Factor(TriangleForm::Whole),
        )?;
        both(
            gpu,
            recorder,
            "factor_panels",
            size,
            Work::Factor(TriangleForm::Panels),
        )?;
        both(gpu, recorder, "explicit_q", size, Work::ExplicitQ)?;
        both(gpu, recorder, "least_squares", size, Work::LeastSquares)?;
    }
    for rows in [10_000_000, 1_000_000] {
        for (work, order) in TALL {
            tall::<f32>(gpu, recorder, (work, rows, order))?;
            tall::<f64>(gpu, recorder, (work, rows, order))?;
        }
    }
    crate::ridge::record(gpu, recorder)?;
    by_panels(gpu, recorder)?;
    by_streams(gpu, recorder)?;
    ways::record(gpu, recorder)?;
    spread::record(gpu, recorder)?;
    for rows in TABLE {
        for cols in TABLE {
            let count = (TABLE_ELEMENTS / (rows * cols)).clamp(1, 1_000_000);
            let work = Work::Factor(TriangleForm::Whole);
            both(gpu, recorder, "table", (count, rows, cols), work)?;
        }
    }
    Ok(())
}

fn case(work: &'static str, (count, rows, cols): Size, dtype: Dtype) -> Case {
    Case {
        family: "qr",
        work,
        shape: Shape::Batch { count, rows, cols },
        dtype: dtype.into(),
        seed: SEED,
    }
}

fn both(gpu: &Gpu, recorder: &Recorder, name: &'static str, size: Size, work: Work) -> Result<()> {
    one::<f32>(gpu, recorder, name, size, work)?;
    one::<f64>(gpu, recorder, name, size, work)
}

fn one<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    name: &'static str,
    size: Size,
    work: Work,
) -> Result<()> {
    recorder.measure(&case(name, size, T::DTYPE), || {
        measure::<T>(gpu, size, work, Choice::Planner)
    })
}

/// Every panel that a factorisation of 512² can have, for the table of panels.
fn by_panels(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    let size @ (_, rows, cols) = (640, 512, 512);
    for panel in panels(4) {
        let most = panel.most()[0] as usize;
        if most < rows || most > 2 * rows {
            continue;
        }
        let mut wanted: Vec<_> = panels(4);
        wanted.retain(|other| other.most()[0] < panel.most()[0]);
        wanted.push(panel);
        let plan = plan_with(&wanted, QrShape { rows, cols });
        let work = Work::Factor(TriangleForm::Panels);
        recorder.measure(&case("panel_choice", size, Dtype::F32), || {
            measure::<f32>(gpu, size, work, Choice::Plan(plan))
        })?;
    }
    Ok(())
}

/// Some numbers of streams, of which the planner takes one.
fn by_streams(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for size in IN_STREAMS {
        for (name, streams) in STREAMS {
            let work = Work::Factor(TriangleForm::Whole);
            recorder.measure(&case(name, size, Dtype::F32), || {
                measure::<f32>(gpu, size, work, Choice::Streams(streams))
            })?;
        }
    }
    Ok(())
}

fn measure<T: Number>(
    gpu: &Gpu,
    (count, rows, cols): Size,
    work: Work,
    choice: Choice,
) -> Result<Measured> {
    let device = &gpu.device;
    let host = data::values::<T>(count * rows * cols, SEED + 60);
    let a = device.upload(&host)?;
    let batch = Batch::column_major(rows, cols, count);
    let form = match work {
        Work::Factor(form) => form,
        _ => TriangleForm::Panels,
    };
    let mut qr = match choice {
        Choice::Plan(plan @ Some(_)) => Qr::with_plan(device, batch, form, plan)?,
        Choice::Columns(plan, made) => {
            Qr::with_plan(device, batch, form, plan)?.with_columns_of_t(made)?
        }
        Choice::Streams(streams) => Qr::new(device, batch, form)?.in_streams(streams),
        Choice::Way(way) => way.qr(device, batch, form)?,
        Choice::Planner | Choice::Plan(None) => Qr::new(device, batch, form)?,
    };
    qr.factor(&a)?;
    let mut error = judge(&qr, &host)?;
    let least = rows.min(cols);
    let bytes = count * (2 * rows * cols + least * least + least) * size_of::<T>();
    let times = match work {
        Work::Factor(_) => gpu.sampler.time(device, || qr.factor(&a))?,
        Work::ExplicitQ => {
            let mut q = device.zeros(count * rows * least)?;
            let batch = Batch::column_major(rows, least, count);
            gpu.sampler.time(device, || qr.explicit_q(&mut q, &batch))?
        }
        Work::LeastSquares => {
            ensure!(rows >= cols, "no least squares of fewer rows than columns");
            let host_c = data::values::<T>(count * rows, SEED + 61);
            let sides = device.upload(&host_c)?;
            let mut c: Buffer<T> = device.zeros(count * rows)?;
            let batch = Batch::column_major(rows, 1, count);
            let mut least = LeastSquares::new(device, qr.matrices().clone(), 1)?;
            c.copy_from(&sides)?;
            least.solve(&a, &mut c, &batch)?;
            error = not_least((count, rows, cols), &host, &host_c, &c.to_vec()?)?;
            gpu.sampler.time(device, || {
                c.copy_from(&sides)?;
                least.solve(&a, &mut c, &batch)
            })?
        }
    };
    let variant = told(qr.plan());
    let ceiling = gpu.ceiling_gbs(bytes.min(1 << 31))?;
    let mut measured = Measured::new(variant, times, bytes)
        .with_error(error)
        .with_ceiling(ceiling);
    let (m, n) = (rows.max(cols) as f64, least as f64);
    let flops = count as f64 * 2.0 * n * n * (m - n / 3.0);
    measured
        .details
        .insert("gflops", flops / measured.times.median_us / 1e3);
    Ok(measured)
}

/// The largest ‖Aᵀ(A·x − c)‖ / (‖A‖·(‖A‖·‖x‖ + ‖c‖)) over some matrices of the batch, in f64.
fn not_least<T: Number>((count, rows, cols): Size, a: &[T], c: &[T], x: &[T]) -> Result<f64> {
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let mut worst = 0.0_f64;
    for i in judged(count) {
        let of = |all: &[T], each: usize, len: usize| -> Vec<f64> {
            all[i * each..][..len].iter().map(|x| wide(*x)).collect()
        };
        let (a, x) = (of(a, rows * cols, rows * cols), of(x, rows, cols));
        let c = of(c, rows, rows);
        let mut rest = c.clone();
        for (column, x) in a.chunks(rows).zip(&x) {
            rest.iter_mut().zip(column).for_each(|(r, a)| *r -= a * x);
        }
        let along = |column: &[f64]| column.iter().zip(&rest).map(|(a, r)| a * r).sum::<f64>();
        let gradient: Vec<f64> = a.chunks(rows).map(along).collect();
        let found = norm(&gradient) / (norm(&a) * (norm(&a) * norm(&x) + norm(&c)));
        ensure!(found < 1e-5, "matrix {i}: the gradient is {found:.1e}");
        worst = worst.max(found);
    }
    Ok(worst)
}

/// Numbers of the matrices that are judged.
fn judged(count: usize) -> impl Iterator<Item = usize> {
    let some = JUDGED.min(count);
    (0..some).map(move |i| i * (count - 1) / some.max(2).saturating_sub(1))
}

fn told(plan: Option<&QrPlan>) -> String {
    match plan {
        Some(QrPlan::Lanes(variant)) => format!("{variant:?}"),
        Some(QrPlan::Panels(steps)) => {
            let first = steps.first().map(|step| step.panel);
            format!("{} panels, first {first:?}", steps.len())
        }
        None => "on the CPU".into(),
    }
}

/// The largest of ‖A·x − Q·R·x‖ / ‖A·x‖ over some matrices of the batch, Q applied in f64 by V and the blocks of T.
fn judge<T: Number>(qr: &Qr<T>, a: &[T]) -> Result<f64> {
    let count = qr.matrices().count();
    ensure!(
        qr.statuses()?.iter().all(|status| *status == Status::FINE),
        "a matrix of random numbers has a status"
    );
    let mut worst = 0.0_f64;
    for i in judged(count) {
        let parts = qr.parts(i);
        let QrShape { rows, cols } = parts.shape;
        let a: Vec<f64> = a[parts.factors..][..rows * cols]
            .iter()
            .map(|x| wide(*x))
            .collect();
        let least = rows.min(cols);
        let read = |buffer: &Buffer<T>, start: usize, len: usize| -> Result<Vec<f64>> {
            let mut part = vec![T::default(); len];
            buffer.read(start, &mut part)?;
            Ok(part.iter().map(|x| wide(*x)).collect())
        };
        let factors = Factors {
            rows,
            cols,
            packed: read(qr.factors(), parts.factors, rows * cols)?,
            first: read(qr.first(), parts.first, least)?,
            t: read(qr.t(), parts.t, least * least)?,
        };
        worst = worst.max(distance(&a, &factors));
    }
    ensure!(worst < 1e-4, "A and Q·R differ by {worst:.1e}");
    Ok(worst)
}

fn distance(a: &[f64], factors: &Factors) -> f64 {
    let Factors { rows, cols, .. } = *factors;
    let x: Vec<f64> = (0..cols)
        .map(|i| data::uniform(SEED + 62, i) - 0.5)
        .collect();
    let times = |matrix: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..rows)
            .map(|row| (0..cols).map(|col| matrix(row, col) * x[col]).sum())
            .collect()
    };
    let exact = times(&|row, col| a[col * rows + row]);
    let mut found = times(&|row, col| match row <= col {
        true => factors.packed[col * rows + row],
        false => 0.0,
    });
    for k in (0..rows.min(cols)).rev() {
        let tail = &factors.packed[k * rows + k + 1..(k + 1) * rows];
        let below: f64 = tail.iter().zip(&found[k + 1..]).map(|(v, c)| v * c).sum();
        let z = -factors.t[k * rows.min(cols) + k] * (factors.first[k] * found[k] + below);
        found[k] += factors.first[k] * z;
        found[k + 1..]
            .iter_mut()
            .zip(tail)
            .for_each(|(c, v)| *c += v * z);
    }
    let norm = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
    let difference: Vec<f64> = found.iter().zip(&exact).map(|(a, b)| a - b).collect();
    norm(&difference) / norm(&exact)
}

fn tall<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    (work, rows, order): (&'static str, usize, Order),
) -> Result<()> {
    let cols = 32;
    recorder.measure(&case(work, (1, rows, cols), T::DTYPE), || {
        let host = data::values::<T>(rows * cols, SEED + 63);
        let a = gpu.device.upload(&host)?;
        let ld = match order {
            Order::RowMajor => cols,
            Order::ColumnMajor => rows,
        };
        let piece = Piece {
            rows,
            cols,
            offset: 0,
            order,
            ld,
        };
        let mut tall = TallQr::new(&gpu.device, piece)?;
        tall.factor(&a)?;
        let error = of_gram(&host, &tall.r()?, (rows, order));
        ensure!(error < 1e-3, "RᵀR and AᵀA differ by {error:.1e}");
        let times = gpu.sampler.time(&gpu.device, || tall.factor(&a))?;
        let bytes = rows * cols * size_of::<T>();
        let ceiling = gpu.ceiling_gbs(bytes)?;
        let variant = match tall.source()? {
            TallSource::Products => "R alone, from products",
            TallSource::Reflectors => "R alone",
        };
        Ok(Measured::new(variant, times, bytes)
            .with_error(error)
            .with_ceiling(ceiling))
    })
}

/// The largest difference of RᵀR and AᵀA over the largest element, of a few columns.
fn of_gram<T: Number>(a: &[T], r: &ndarray::Array2<T>, (rows, order): (usize, Order)) -> f64 {
    let mut worst = 0.0_f64;
    let cols = r.ncols();
    let element = |row: usize, col: usize| match order {
        Order::RowMajor => wide(a[row * cols + col]),
        Order::ColumnMajor => wide(a[col * rows + row]),
    };
    for (i, j) in [(0, 0), (3, 3), (cols - 1, cols - 1), (0, cols - 1), (7, 11)] {
        let gram: f64 = (0..rows).map(|row| element(row, i) * element(row, j)).sum();
        let of_r: f64 = (0..cols).map(|k| wide(r[[k, i]]) * wide(r[[k, j]])).sum();
        let scale = rows as f64 / 12.0;
        worst = worst.max((gram - of_r).abs() / scale);
    }
    worst
}

/// In f64, without rounding.
fn wide<T: Element>(value: T) -> f64 {
    value.to_f64()
}
