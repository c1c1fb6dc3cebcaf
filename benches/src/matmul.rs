//! Matrix products beside cuBLAS: the ladder, large squares, and twenty awkward shapes.

use anyhow::Result;
use gpu_kernels::matmul::MatmulVariant;
use rayon::prelude::*;
use warpfuse::device::Buffer;
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse::ops::matmul::{Choice, Factor, Layout, Workspace, choose, matmul_with};
use warpfuse::plan::matmul::Arithmetic;

use crate::case::{Case, SEED};
use crate::data;
use crate::gpu::Gpu;
use crate::peers::gemm::Gemm;
use crate::record::{Measured, Recorder};
use crate::shape::Shape;
use crate::truth;

/// Rows of C whose truth is computed.
const JUDGED: usize = 8;

/// m, n, k.
type Size = (usize, usize, usize);

const LADDER: [(&str, MatmulVariant); 8] = [
    ("naive", MatmulVariant::Naive),
    ("registers", MatmulVariant::Registers),
    ("shared", MatmulVariant::Shared),
    ("blocked", MatmulVariant::Blocked { each: 8 }),
    ("pipelined", pipelined(64, 128)),
    ("pipelined_tall", pipelined(128, 64)),
    ("split_tf32", MatmulVariant::SplitTf32),
    ("split_f16", MatmulVariant::SplitF16),
];

/// The same of f64, from the first that stages panels ahead.
const LADDER_F64: [(&str, MatmulVariant); 3] = [
    ("pipelined", pipelined(64, 64)),
    ("tensor", tensor(64, 128)),
    ("tensor_square", tensor(128, 128)),
];

const fn tensor(rows: u32, columns: u32) -> MatmulVariant {
    MatmulVariant::TensorF64 { rows, columns }
}

const fn pipelined(rows: u32, columns: u32) -> MatmulVariant {
    MatmulVariant::Pipelined { rows, columns }
}

/// Odd, thin, wide, short and just beyond a tile.
const AWKWARD: [Size; 20] = [
    (1_000, 1_000, 1_000),
    (1_001, 999, 1_003),
    (2_049, 2_047, 2_050),
    (4_097, 4_095, 4_099),
    (3_000, 5_000, 777),
    (129, 8_192, 4_096),
    (8_192, 129, 4_096),
    (64, 16_384, 2_048),
    (16_384, 64, 2_048),
    (10_000, 33, 1_000),
    (33, 10_000, 1_000),
    (500, 500, 20_000),
    (257, 257, 65_536),
    (100_000, 128, 128),
    (128, 100_000, 128),
    (20_000, 300, 17),
    (1_537, 1_537, 1_537),
    (6_000, 6_000, 100),
    (2_500, 1_300, 3_100),
    (7_777, 3_333, 1_111),
];

/// Of these the ones that fill an SM a few times, by either tile of tensor cores.
const LARGE: [Size; 5] = [AWKWARD[2], AWKWARD[3], AWKWARD[4], AWKWARD[6], AWKWARD[19]];

/// Records all cases of the family.
///
/// # Errors
/// When a result cannot be written.
pub fn record(gpu: &Gpu, recorder: &Recorder) -> Result<()> {
    for (name, variant) in LADDER {
        one::<f32>(
            gpu,
            recorder,
            (name, (4_096, 4_096, 4_096)),
            Choice::Variant(variant),
        )?;
    }
    let split = Choice::With(Arithmetic::SplitTf32);
    one::<f32>(gpu, recorder, ("best", (8_192, 8_192, 8_192)), Choice::Best)?;
    one::<f32>(gpu, recorder, ("best_split", (8_192, 8_192, 8_192)), split)?;
    let halves = Choice::With(Arithmetic::SplitF16);
    one::<f32>(
        gpu,
        recorder,
        ("best_halves", (8_192, 8_192, 8_192)),
        halves,
    )?;
    one::<f64>(gpu, recorder, ("best", (4_096, 4_096, 4_096)), Choice::Best)?;
    for (name, variant) in LADDER_F64 {
        one::<f64>(
            gpu,
            recorder,
            (name, (4_096, 4_096, 4_096)),
            Choice::Variant(variant),
        )?;
    }
    for size in LARGE {
        for (name, variant) in &LADDER_F64[1..] {
            one::<f64>(gpu, recorder, (name, size), Choice::Variant(*variant))?;
        }
    }
    for size in AWKWARD {
        one::<f32>(gpu, recorder, ("awkward", size), Choice::Best)?;
        one::<f64>(gpu, recorder, ("awkward", size), Choice::Best)?;
    }
    Ok(())
}

fn one<T: Number>(
    gpu: &Gpu,
    recorder: &Recorder,
    (work, (m, n, k)): (&'static str, Size),
    choice: Choice,
) -> Result<()> {
    let case = Case {
        family: "matmul",
        work,
        shape: Shape::Product { m, n, k },
        dtype: T::DTYPE.into(),
        seed: SEED,
    };
    recorder.measure(&case, || measure::<T>(gpu, (m, n, k), choice))
}

/// Matrices in host memory and on the GPU.
struct Matrices<T> {
    host: [Vec<T>; 2],
    a: Buffer<T>,
    b: Buffer<T>,
    c: Buffer<T>,
}

fn measure<T: Number>(gpu: &Gpu, (m, n, k): Size, choice: Choice) -> Result<Measured> {
    let device = &gpu.device;
    let host = [
        data::values::<T>(m * k, SEED + 50),
        data::values::<T>(k * n, SEED + 51),
    ];
    let mut matrices = Matrices {
        a: device.upload(&host[0])?,
        b: device.upload(&host[1])?,
        c: device.zeros(m * n)?,
        host,
    };
    let Matrices { a, b, c, .. } = &mut matrices;
    let (left, right) = (Factor::new(a, m, k), Factor::new(b, k, n));
    let (one, zero) = (<T as Element>::from_f64(1.0), T::default());
    let layout = Layout::dense(m, n);
    let mut kept = Workspace::default();
    let mut run = || {
        let c = (&mut *c, layout);
        matmul_with(&mut kept, one, &left, &right, zero, c, choice)
    };
    run()?;
    let times = gpu.sampler.time(device, &mut run)?;
    let exact = rows_of_truth(&matrices.host, (m, n, k));
    let error = error(&matrices.c.to_vec()?, &exact, (m, n))?;
    let plan = choose::<T>(device, (m, n, k), choice)?;
    let bytes = Shape::Product { m, n, k }.bytes::<T>(0);
    let variant = format!("{:?} parts{} grid{}", plan.variant, plan.parts, plan.grid);
    let mut measured = Measured::new(variant, times, bytes).with_error(error);
    let flops = 2.0 * m as f64 * n as f64 * k as f64;
    measured
        .details
        .insert("tflops", flops / measured.times.median_us / 1e6);
    add_peer(gpu, &mut matrices, (m, n, k), &exact, &mut measured)?;
    Ok(measured)
}

/// cuBLAS with f32 (f64) arithmetic alone.
fn add_peer<T: Number>(
    gpu: &Gpu,
    matrices: &mut Matrices<T>,
    (m, n, k): Size,
    exact: &[f64],
    measured: &mut Measured,
) -> Result<()> {
    let Some(handle) = gpu.libraries().cublas() else {
        return Ok(());
    };
    let Matrices { a, b, c, .. } = matrices;
    let mut gemm = Gemm::new(handle, [a, b], c, (m, n, k))?;
    gemm.run()?;
    let times = gpu.sampler.time(&gpu.device, || gemm.run())?;
    measured.peers.insert("cublas".into(), times.median_us);
    measured.details.insert(
        "of_cublas_percent",
        100.0 * times.median_us / measured.times.median_us,
    );
    let error = error(&c.to_vec()?, exact, (m, n))?;
    // In units of 10⁻⁹, as small figures are printed with one decimal.
    measured.details.insert("cublas_error_1e9", error * 1e9);
    Ok(())
}

/// Rows that are judged, spread over all.
fn judged(m: usize) -> Vec<usize> {
    (0..JUDGED).map(|i| i * (m - 1) / (JUDGED - 1)).collect()
}

fn rows_of_truth<T: Element>([a, b]: &[Vec<T>; 2], (m, n, k): Size) -> Vec<f64> {
    let row = |i: usize| {
        let mut sums = vec![0.0; n];
        for (step, a) in a[i * k..][..k].iter().enumerate() {
            let a = a.to_f64();
            let b = &b[step * n..][..n];
            sums.iter_mut()
                .zip(b)
                .for_each(|(sum, b)| *sum += a * b.to_f64());
        }
        sums
    };
    judged(m).into_par_iter().flat_map_iter(row).collect()
}

fn error<T: Element>(c: &[T], exact: &[f64], (m, n): (usize, usize)) -> Result<f64> {
    let rows = judged(m)
        .into_iter()
        .flat_map(|i| c[i * n..][..n].iter().copied());
    truth::checked_error(&rows.collect::<Vec<T>>(), exact)
}
