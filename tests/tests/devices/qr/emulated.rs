//! What is promised of small matrices: a GPU's bits are an emulator's.

use anyhow::{Result, ensure};
use warpfuse::device::Device;
use warpfuse::device::emulator::{Emulator, EmulatorOptions};
use warpfuse::ops::Number;
use warpfuse::ops::qr::{Batch, Qr, TriangleForm};

use super::families::Kind;
use super::streams::bits;
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
