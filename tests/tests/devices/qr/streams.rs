//! Parts of a batch in streams of their own: the same bits as of the whole batch.

use anyhow::{Context, Result, ensure};
use warpfuse::device::{Buffer, Device};
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, LeastSquares, Qr, Status, TriangleForm};
use warpfuse::plan::qr as plans;
use warpfuse_tests::Subset;

use super::families::Kind;
use super::{Exact, others};
use crate::suite::{Suite, Test};

const FORMS: [TriangleForm; 2] = [TriangleForm::Whole, TriangleForm::Panels];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    suite.add(Test::new("qr/parts/before/f32"), waiting_columns);
    let name = |case: &str, dtype| format!("qr/parts/{case}/{dtype}");
    let test = |dtype| Test::new(name("few", dtype));
    suite.add_in_both(test, few::<f32>, few::<f64>);
    let test = |dtype| Test::new(name("least", dtype));
    suite.add_in_both(test, least_squares::<f32>, least_squares::<f64>);
    let test = |dtype| Test::new(name("many", dtype)).within(Subset::Full);
    suite.add_in_both(test, many_matrices::<f32>, many_matrices::<f64>);
}

/// All kinds, on emulators nine of them, with a last panel that is narrower; some of nine parts have no matrix.
fn few<T: Number>(device: &Device) -> Result<()> {
    let count = match Subset::of(device) {
        Subset::Small => 9,
        Subset::Full => Kind::ALL.len(),
    };
    let batch = Batch::column_major(66, 40, count);
    let a = device.upload(&drawn::<T>(&batch))?;
    for (form, fewer) in FORMS.into_iter().zip([&[3, 9][..], &[9]]) {
        let numbers = streams_of(device, (fewer, &[3, 9]));
        let qr = || Ok(Qr::<T>::new(device, batch, form)?);
        same_bits(&a, numbers, qr).with_context(|| format!("{form:?}"))?;
    }
    Ok(())
}

/// The first panel reads A where it lies, with gaps between matrices.
fn waiting_columns(device: &Device) -> Result<()> {
    if device.is_cpu() {
        return Ok(());
    }
    let whole = Batch::column_major(70, 45, 9);
    let batch = Batch {
        stride: whole.stride + 6,
        ..whole
    };
    let spread: Vec<f32> = drawn::<f32>(&whole)
        .chunks(whole.stride)
        .flat_map(|matrix| [matrix, &[f32::NAN; 6]].concat())
        .collect();
    let a = device.upload(&spread)?;
    let plan = others::plan::<f32>(batch.shape(), 8, true);
    let qr = || {
        let plan = Some(plan.clone());
        Ok(Qr::<f32>::with_plan(
            device,
            batch,
            TriangleForm::Whole,
            plan,
        )?)
    };
    same_bits(&a, streams_of(device, (&[4], &[2, 4])), qr)
}

/// Numbers of streams to compare with one: an emulator's, and those of others.
fn streams_of<'a>(device: &Device, (fewer, all): (&'a [usize], &'a [usize])) -> &'a [usize] {
    match Subset::of(device) {
        Subset::Small => fewer,
        Subset::Full => all,
    }
}

/// As many as the planner divides by itself.
fn many_matrices<T: Number>(device: &Device) -> Result<()> {
    let (Device::Cuda(_), Some(limits)) = (device, device.limits()) else {
        return Ok(());
    };
    for (turns, streams) in [(2, 2), (4, 3)] {
        let batch = Batch::column_major(257, 256, turns * limits.sms as usize + 10);
        let planned = plans::Batch::of(batch.shape(), batch.count, T::SIZE, limits);
        let found = plans::streams(&planned);
        ensure!(
            found == streams,
            "expected {streams} streams, found {found}"
        );
        let a = device.upload(&drawn::<T>(&batch))?;
        for form in FORMS {
            let planned = bits(Qr::new(device, batch, form)?, &a)?;
            let one = bits(Qr::new(device, batch, form)?.in_streams(1), &a)?;
            ensure!(planned == one, "{streams} streams have other bits");
        }
        let least = || LeastSquares::new(device, batch, 2);
        let one = solved(least()?.in_streams(1), &a, &batch)?;
        let planned = solved(least()?, &a, &batch)?;
        ensure!(planned == one, "solutions of {streams} streams differ");
    }
    Ok(())
}

/// Least squares by columns behind those of A.
fn least_squares<T: Number>(device: &Device) -> Result<()> {
    let count = match Subset::of(device) {
        Subset::Small => 9,
        Subset::Full => Kind::ALL.len(),
    };
    let batch = Batch::column_major(66, 40, count);
    let a = device.upload(&drawn::<T>(&batch))?;
    let least = || LeastSquares::new(device, batch, 2);
    let one = solved(least()?.in_streams(1), &a, &batch)?;
    for streams in streams_of(device, (&[9], &[3, 9])) {
        let found = solved(least()?.in_streams(*streams), &a, &batch)?;
        ensure!(found == one, "{streams} streams have other bits");
    }
    Ok(())
}

/// Solutions of 2 right-hand sides.
fn solved<T: Number>(mut least: LeastSquares<T>, a: &Buffer<T>, batch: &Batch) -> Result<Solved> {
    let of_c = Batch::column_major(batch.rows, 2, batch.count);
    let c: Vec<T> = Kind::Random.draw((of_c.stride, of_c.count), 5);
    let mut x = a.device().upload(&c)?;
    least.solve(a, &mut x, &of_c)?;
    Ok((exact(&x)?, least.statuses()?))
}

/// Matrices of a batch without gaps, all kinds by turns: those that are not finite first.
fn drawn<T: Number>(batch: &Batch) -> Vec<T> {
    let shape = (batch.rows, batch.cols);
    let kinds: Vec<Vec<T>> = Kind::ALL.map(|kind| kind.draw(shape, 31)).into();
    let turns = kinds.iter().rev().cycle().take(batch.count);
    turns.flatten().copied().collect()
}

/// Fails unless each number of streams makes what one makes.
fn same_bits<T: Number>(
    a: &Buffer<T>,
    numbers: &[usize],
    qr: impl Fn() -> Result<Qr<T>>,
) -> Result<()> {
    let one = bits(qr()?.in_streams(1), a)?;
    for &streams in numbers {
        let found = bits(qr()?.in_streams(streams), a)?;
        ensure!(found == one, "{streams} streams have other bits");
    }
    Ok(())
}

pub(super) type Bits = ([Vec<u64>; 3], Vec<Status>);
type Solved = (Vec<u64>, Vec<Status>);

/// All that a factorisation makes, the second time: the first may still be running when it begins.
pub(super) fn bits<T: Number>(mut qr: Qr<T>, a: &Buffer<T>) -> Result<Bits> {
    qr.factor(a)?;
    qr.factor(a)?;
    let arrays = [exact(qr.factors())?, exact(qr.first())?, exact(qr.t())?];
    Ok((arrays, qr.statuses()?))
}

pub(super) fn exact<T: Number>(buffer: &Buffer<T>) -> Result<Vec<u64>> {
    let values = buffer.to_vec()?;
    Ok(values.iter().map(|x| x.to_f64_exact().to_bits()).collect())
}
