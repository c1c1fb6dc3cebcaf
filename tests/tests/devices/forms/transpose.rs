//! The transpose made on the device: that of the host, so that products have the same bits.

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::matrix::Dtype;
use warpfuse::ops::{Matrix, MatrixOptions, Number, Preparation};
use warpfuse::plan::fused::{Forced, Maker, Product, Stored, Strategy};
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{FULL, PLAIN, Sample, Values};

use crate::fused;
use crate::suite::{Suite, Test};

/// One entry, columns of one digit and of several, long columns and rows, columns and rows without entries, none at all.
const MATRICES: [((usize, usize), Pattern); 9] = [
    ((1, 1), Pattern::PerRow(1)),
    ((300, 90), Pattern::PerRow(7)),
    ((257, 129), Pattern::Zipf(40)),
    ((301, 1_000), Pattern::Giant(900)),
    ((3_000, 33), Pattern::OneColumn),
    ((31, 700), Pattern::OneFull),
    ((65, 129), Pattern::Empty),
    ((70, 65_537), Pattern::Growing(40)),
    ((4_500, 4_200), Pattern::PerRow(3)),
];

/// Threads of a block of the products over it.
const BLOCK: u32 = 256;

/// Adds one test for each matrix and type.
pub fn add(suite: &mut Suite) {
    for (shape, pattern) in MATRICES {
        let case = Case::new(shape, pattern, Values::Uniform);
        let test = |dtype: Dtype| {
            let test = Test::new(format!("transpose_making/{case}/{dtype}"));
            test.within(case.subset()).of_entries()
        };
        suite.add_in_both(
            test,
            move |device| check::<f32>(device, &case.sample()),
            move |device| check::<f64>(device, &case.sample()),
        );
    }
}

fn made<T: Number>(device: &Device, sample: &Sample<T>, maker: Maker) -> Result<Matrix<T>> {
    let forced = Forced {
        strategy: Some(Strategy::StoredTranspose),
        bs: matches!(device, Device::Emulator(_)).then_some(BLOCK),
        ..Forced::default()
    };
    let options = MatrixOptions {
        forced,
        maker: Some(maker),
        ..MatrixOptions::default()
    };
    let mut matrix = Matrix::with_options(device, sample.features.clone(), options)?;
    let stored = matrix.prepare(Preparation::Transpose)?;
    ensure!(
        device.is_cpu() || stored == Stored::RowsAndTranspose,
        "stored as {stored}"
    );
    Ok(matrix)
}

fn check<T: Number>(device: &Device, sample: &Sample<T>) -> Result<()> {
    let [own, hosts] = [Maker::Device, Maker::Host].map(|maker| made(device, sample, maker));
    let (own, hosts) = (own?, hosts?);
    for product in [Product::Fused, Product::Transposed] {
        for parts in [PLAIN, FULL] {
            fused::check(&own, sample, product, parts)
                .with_context(|| format!("{product:?} with {parts:?}"))?;
        }
    }
    ensure!(bits(&own)? == bits(&hosts)?, "other bits than the host's");
    Ok(())
}

/// Of Xᵀ·p.
fn bits<T: Number>(x: &Matrix<T>) -> Result<Vec<u64>> {
    let p = |row: usize| T::from_f64(((row * 37 % 101) as f64 - 50.0) / 7.0);
    let p: Vec<T> = (0..x.rows()).map(p).collect();
    let (p, mut w) = (x.device().upload(&p)?, x.device().zeros(x.cols())?);
    x.transposed(&p, &Default::default(), &mut w)?;
    let all = w.to_vec()?.into_iter();
    Ok(all.map(gpu_kernels::Word::to_bits).collect())
}
