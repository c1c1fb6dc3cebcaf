//! `warpfuse emulate`: a product on an emulated GPU, checked and counted; or the emulator checked itself.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::Serialize;

use super::args::{DtypeName, EmulateArgs};
use super::exit::Exit;
use super::progress::Ui;
use super::{data, output};
use crate::device::emulator::{Counting, Profile, self_check};
use crate::device::{Device, Emulator, EmulatorOptions};
use crate::io::Columns;
use crate::ops::{Matrix, Number, Terms};
use crate::plan::fused::Product;
use crate::plan::limits::DeviceLimits;

/// Emulates.
pub(super) fn run(args: &EmulateArgs, ui: &Ui) -> Result<Exit> {
    match (args.self_check, args.speed, args.dtype) {
        (true, _, _) => check(args, ui),
        (_, true, _) => speed(args),
        (_, _, DtypeName::F32) => emulate::<f32>(args, ui),
        (_, _, DtypeName::F64) => emulate::<f64>(args, ui),
    }
}

/// Measures.
fn speed(args: &EmulateArgs) -> Result<Exit> {
    let speed = self_check::lane_speed();
    if args.json {
        output::print_json(&speed)?;
    } else {
        output::print(format!(
            "lane steps per second   {:.1} million\nswitch between lanes    {:.1} ns\n",
            speed.steps_per_second / 1e6,
            speed.nanoseconds_per_switch
        ))?;
    }
    Ok(Exit::Success)
}

/// Tells broken kernels from right ones.
fn check(args: &EmulateArgs, ui: &Ui) -> Result<Exit> {
    let report = self_check::run(args.seeds);
    for failure in &report.failures {
        ui.remark(failure);
    }
    if args.json {
        output::print_json(&report)?;
    } else {
        let (broken, twins) = (report.broken, report.twins);
        output::print(format!(
            "broken kernels caught   {} of {}\nright kernels accused   {} of {}\n\
             lane steps per second   {:.1} million\n",
            broken.caught,
            broken.of,
            twins.accused,
            twins.of,
            report.lane_steps_per_second / 1e6
        ))?;
    }
    Ok(if report.is_right() {
        Exit::Success
    } else {
        Exit::CheckFailed
    })
}

/// Computes one product and prints what its kernels did.
fn emulate<T: Number>(args: &EmulateArgs, ui: &Ui) -> Result<Exit> {
    let Some(path) = &args.data else {
        unreachable!("clap asks for DATA without --self-check");
    };
    // Before the data are read: this build may have no emulator.
    let emulator = emulator(args)?;
    let data = data::load::<T>(path, None, Columns::Infer, &args.read, ui)?;
    let device = Device::Emulator(emulator.clone());
    let matrix = Matrix::new(&device, data.features)?;
    multiply(&device, &matrix, args.product.into())?;
    let profiles = emulator.profiles();
    if args.json {
        output::print_json(&Summary {
            device: emulator.name(),
            kernels: &profiles,
        })?;
    } else {
        output::print(text(emulator.name(), &profiles))?;
    }
    Ok(Exit::Success)
}

fn emulator(args: &EmulateArgs) -> Result<Emulator> {
    let limits = DeviceLimits::known(args.gpu.name()).expect("every name of --gpu is known");
    let options = EmulatorOptions {
        counting: Counting::Sites,
        ..EmulatorOptions::schedule(args.schedule)
    };
    Ok(Emulator::open(Some(limits), options)?)
}

fn multiply<T: Number>(device: &Device, matrix: &Matrix<T>, product: Product) -> Result<()> {
    let (rows, cols) = (matrix.rows(), matrix.cols());
    let (input, output) = product.lengths(rows, cols);
    let ones = device.upload(&vec![<T as gpu_kernels::Real>::ONE; input])?;
    let mut result = device.zeros(output)?;
    match product {
        Product::Fused => matrix.fused(&ones, &Terms::default(), &mut result)?,
        Product::Forward => matrix.forward(&ones, &Terms::default(), &mut result)?,
        Product::Transposed => matrix.transposed(&ones, &Terms::default(), &mut result)?,
    }
    Ok(())
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    device: &'a str,
    kernels: &'a BTreeMap<&'static str, Profile>,
}

fn text(device: &str, profiles: &BTreeMap<&'static str, Profile>) -> String {
    let kernels = profiles
        .iter()
        .map(|(entry, profile)| format!("\n{entry}\n{profile}"));
    std::iter::once(format!("{device}: no fault\n"))
        .chain(kernels)
        .collect()
}
