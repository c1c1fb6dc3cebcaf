//! What is promised of small matrices: a GPU's bits are an emulator's.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::device::emulator::{Emulator, EmulatorOptions};
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, LeastSquares, Qr, TriangleForm};

use super::families::Kind;
use super::streams::{bits, exact};
use crate::suite::{Suite, Test};

/// Kernels for tiny matrices, and panels.
const SHAPES: [(usize, usize); 6] = [(8, 8), (16, 16), (32, 32), (16, 9), (64, 40), (128, 33)];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    for shape in SHAPES {
        let name = format!("qr/as-emulated-{}x{}", shape.0, shape.1);
        let test = Test::new(format!("{name}/f32"));
        suite.add(test, move |device| as_emulated::<f32>(device, shape));
        let test = Test::new(format!("{name}/f64"));
        suite.add(test, move |device| as_emulated::<f64>(device, shape));
    }
    for cols in [8, 16, 32] {
        suite.add_in_both(
            |dtype| Test::new(format!("qr/least-as-emulated-{cols}x{cols}/{dtype}")),
            move |device| least_as_emulated::<f32>(device, cols),
            move |device| least_as_emulated::<f64>(device, cols),
        );
    }
}

/// Least squares of kinds whose solutions are finite.
fn least_as_emulated<T: Number>(device: &Device, cols: usize) -> Result<()> {
    if !matches!(device, Device::Cuda(_)) {
        return Ok(());
    }
    let kinds = [
        Kind::Random,
        Kind::Clustered,
        Kind::Graded,
        Kind::Huge,
        Kind::Random,
    ];
    let a: Vec<Vec<T>> = kinds.map(|kind| kind.draw((cols, cols), 17)).into();
    let (batch, of_c) = (
        Batch::column_major(cols, cols, a.len()),
        Batch::column_major(cols, 1, a.len()),
    );
    let c: Vec<T> = Kind::Random.draw((cols, a.len()), 18);
    let emulator = Device::Emulator(Emulator::new(EmulatorOptions::schedule(1)));
    let solved = |device: &Device| -> Result<Vec<u64>> {
        let mut x = device.upload(&c)?;
        let mut least = LeastSquares::new(device, batch, 1)?;
        least.solve(&device.upload(&a.concat())?, &mut x, &of_c)?;
        exact(&x)
    };
    let same = solved(device)? == solved(&emulator)?;
    ensure!(same, "an emulator has other bits");
    Ok(())
}

/// Of all kinds that are finite: the bits of a NaN are the processor's.
fn as_emulated<T: Number>(device: &Device, (rows, cols): (usize, usize)) -> Result<()> {
    if !matches!(device, Device::Cuda(_)) {
        return Ok(());
    }
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.is_finite());
    let a: Vec<Vec<T>> = kinds.map(|kind| kind.draw((rows, cols), 17)).collect();
    let batch = Batch::column_major(rows, cols, a.len());
    let emulator = Device::Emulator(Emulator::new(EmulatorOptions::schedule(1)));
    let factored = |device: &Device| {
        let qr = Qr::<T>::new(device, batch, TriangleForm::Whole)?;
        bits(qr, &device.upload(&a.concat())?)
    };
    let same = factored(device)? == factored(&emulator)?;
    ensure!(same, "an emulator has other bits");
    Ok(())
}
