//! The memory manager under strain: matrices that take twice the memory there is, vectors that come and go, and operations
//! that are made to fail. Every result is compared with the CPU's, bit by bit, and every vector with what was written.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use warpfuse::device::{Buffer, Device, DeviceError, MemoryOptions};
use warpfuse::matrix::Features;
use warpfuse::ops::{Matrix, MatrixOptions, OpError, Terms};
use warpfuse::plan::fused::Summation;

use super::{dense, noise, plain_bytes, sparse};

/// Vectors that are held at most.
const VECTORS: usize = 6;
/// Elements of one at most.
const LONGEST: usize = 100_000;
/// The failing operation is among this many.
const FAILS_WITHIN: usize = 60;

/// A matrix on the device, with what its products are.
struct Kept {
    features: Arc<Features<f32>>,
    expected: Vec<u32>,
    matrix: Option<Matrix<f32>>,
}

/// What happened.
#[derive(Default)]
struct Counts {
    operations: u64,
    products: u64,
    reads: u64,
    injected: u64,
    failed: u64,
    refused: u64,
}

/// Strains `device` for `seconds`; every fourth operation has a fault.
pub(super) fn run(device: &Device, seconds: f64) -> Result<()> {
    let mut matrices = vec![
        Kept::new(dense(12_000, 80)?)?,
        Kept::new(sparse(40_000, 3_000, 12, true)?)?,
        Kept::new(sparse(40_000, 90_000, 12, false)?)?,
    ];
    let bytes: u64 = matrices
        .iter()
        .map(|kept| plain_bytes(&kept.features))
        .sum();
    let limit = bytes as usize / 2;
    device.limit_memory(MemoryOptions::limited(limit));
    let before = device.usage();
    let (mut vectors, mut counts, begun) = (Vec::new(), Counts::default(), Instant::now());
    while begun.elapsed().as_secs_f64() < seconds {
        let turn = counts.operations;
        counts.operations += 1;
        let is_faulty = turn % 4 == 3;
        if is_faulty {
            device.fail_after(Some(1 + drawn(turn, 1, FAILS_WITHIN) as u64));
        }
        let done = step(device, &mut matrices, &mut vectors, (turn, &mut counts));
        let was_reached = is_faulty && device.fail_after(None).is_none();
        counts.injected += u64::from(was_reached);
        match done {
            Ok(()) => {}
            Err(Failure::Wrong(error)) => return Err(error),
            Err(Failure::Device(error)) if error.is_out_of_memory() || was_reached => {
                counts.failed += u64::from(was_reached);
                counts.refused += u64::from(!was_reached);
                vectors.truncate(vectors.len() / 2);
                matrices.iter_mut().for_each(|kept| kept.matrix = None);
            }
            Err(Failure::Device(error)) => return Err(error).context("nothing was to fail"),
        }
        ensure!(device.usage().live_bytes <= limit, "more than the limit");
    }
    matrices.iter_mut().for_each(|kept| kept.matrix = None);
    drop(vectors);
    let usage = device.usage();
    ensure!(
        usage.live_bytes == before.live_bytes,
        "memory was left behind"
    );
    ensure!(
        usage.pinned_bytes == before.pinned_bytes,
        "page-locked memory was left behind"
    );
    device.limit_memory(MemoryOptions::default());
    println!(
        "{}",
        json!({
            "what": "soak", "seconds": begun.elapsed().as_secs_f64(), "limit_bytes": limit, "matrix_bytes": bytes,
            "operations": counts.operations, "products": counts.products, "reads": counts.reads,
            "faults": counts.injected, "faults_that_were_errors": counts.failed, "refused": counts.refused,
            "evictions": usage.evictions - before.evictions, "peak_bytes": usage.peak_bytes,
        })
    );
    Ok(())
}

/// Why an operation has no result.
enum Failure {
    Wrong(anyhow::Error),
    Device(OpError),
}

impl From<OpError> for Failure {
    fn from(error: OpError) -> Self {
        Failure::Device(error)
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Failure::Device(error.into())
    }
}

/// A number below `count`, from what it is for.
fn drawn(turn: u64, what: u64, count: usize) -> usize {
    let noise = f64::from(noise(turn * 8 + what)) / 2.0 + 0.5;
    (noise * count as f64) as usize % count
}

fn step(
    device: &Device,
    matrices: &mut [Kept],
    vectors: &mut Vec<(Buffer<u32>, Vec<u32>)>,
    (turn, counts): (u64, &mut Counts),
) -> Result<(), Failure> {
    match drawn(turn, 2, 8) {
        0..=3 => {
            counts.products += 1;
            let which = drawn(turn, 3, matrices.len());
            matrices[which].multiply(device)
        }
        4 => {
            let which = drawn(turn, 3, matrices.len());
            matrices[which].matrix = None;
            Ok(())
        }
        5 | 6 if vectors.len() < VECTORS => {
            let len = 1 + drawn(turn, 4, LONGEST);
            let values: Vec<u32> = (0..len as u64).map(|i| (turn ^ i) as u32).collect();
            vectors.push((device.upload(&values)?, values));
            Ok(())
        }
        _ => match vectors.pop() {
            Some((vector, values)) => {
                counts.reads += 1;
                let found = vector.to_vec()?;
                vectors.insert(0, (vector, values));
                let (_, values) = &vectors[0];
                let is_same = found == *values;
                if vectors.len() == VECTORS {
                    vectors.pop();
                }
                same(is_same, "a vector is not what was written")
            }
            None => Ok(()),
        },
    }
}

fn same(is_same: bool, what: &'static str) -> Result<(), Failure> {
    match is_same {
        true => Ok(()),
        false => Err(Failure::Wrong(anyhow::anyhow!(what))),
    }
}

impl Kept {
    fn new(features: Features<f32>) -> Result<Kept> {
        let features = Arc::new(features);
        let x = matrix(&Device::cpu(), &features)?;
        let Ok(expected) = product(&x) else {
            bail!("the CPU computes");
        };
        Ok(Kept {
            features,
            expected,
            matrix: None,
        })
    }

    /// A product, whose bits are known, of X that is placed if it is not there.
    fn multiply(&mut self, device: &Device) -> Result<(), Failure> {
        let x = match self.matrix.take() {
            Some(x) => x,
            None => matrix(device, &self.features)?,
        };
        let found = product(&x)?;
        self.matrix = Some(x);
        same(
            found == self.expected,
            "a product has other bits than the CPU's",
        )
    }
}

fn matrix(device: &Device, features: &Arc<Features<f32>>) -> Result<Matrix<f32>, OpError> {
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    Matrix::with_options(device, features.clone(), options)
}

fn product(x: &Matrix<f32>) -> Result<Vec<u32>, OpError> {
    let y: Vec<f32> = (0..x.cols() as u64).map(noise).collect();
    let (y, mut w) = (x.device().upload(&y)?, x.device().zeros(x.cols())?);
    x.fused(&y, &Terms::default(), &mut w)?;
    Ok(w.to_vec()?.into_iter().map(f32::to_bits).collect())
}
