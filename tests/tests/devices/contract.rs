//! Calls that break a contract are refused with a typed error, and leave the device usable.

use anyhow::{Result, ensure};
use gpu_kernels::fused::{DenseArgs, Place, Product as KernelProduct, SparseArgs};
use gpu_kernels::{Entry, Family, In, Kernels, Launch};
use ndarray::Array2;
use warpfuse::device::emulator::Diagnosis;
use warpfuse::device::{Buffer, Device, DeviceError, Prepared};
use warpfuse::matrix::Features;
use warpfuse::ops::{Matrix, OpError, Terms};

use super::suite::{Suite, Test};

type Sparse = <f32 as Kernels>::Sparse;
type Dense = <f32 as Kernels>::Dense;
type Fixed = <f32 as Kernels>::Fixed;

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    suite.add(
        Test::new("contract/launch_shapes").of_entries(),
        launch_shapes,
    );
    suite.add(
        Test::new("contract/sparse_arguments").of_entries(),
        sparse_arguments,
    );
    suite.add(
        Test::new("contract/dense_arguments").of_entries(),
        dense_arguments,
    );
    suite.add(Test::new("contract/clusters").of_entries(), clusters);
    suite.add(
        Test::new("contract/clusters_of_sums").of_entries(),
        clusters_of_sums,
    );
    suite.add(
        Test::new("contract/other_device").of_entries(),
        other_device,
    );
    suite.add(Test::new("contract/vector_lengths"), vector_lengths);
}

fn is_contract(result: Result<(), DeviceError>) -> bool {
    match result {
        Err(DeviceError::Contract { .. }) => true,
        // An emulator has a diagnosis of its own for its limits.
        Err(DeviceError::Fault(fault)) => fault.kind.diagnosis() == Diagnosis::Limit,
        _ => false,
    }
}

fn shared_entry() -> &'static Entry<Sparse> {
    let mut entries = Sparse::entries().iter();
    entries
        .find(|entry| entry.variant.place == Place::Shared)
        .expect("the table has one")
}

fn packed_entry() -> &'static Entry<Dense> {
    let fused = |entry: &&Entry<Dense>| entry.variant.product == KernelProduct::Fused;
    let mut entries = Dense::entries().iter().filter(fused);
    entries
        .find(|entry| entry.variant.width == 4)
        .expect("the table has one")
}

/// What no arguments could make right is refused when the launch is prepared.
fn launch_shapes(device: &Device) -> Result<()> {
    let prepare = |grid, block, shared_bytes| {
        device
            .prepare(
                shared_entry(),
                Launch {
                    grid,
                    block,
                    shared_bytes,
                },
            )
            .map(drop)
    };
    prepare(1, 32, 0)?;
    ensure!(is_contract(prepare(0, 32, 0)), "no blocks");
    ensure!(
        is_contract(prepare(u32::MAX, 32, 0)),
        "more blocks than a grid has"
    );
    ensure!(is_contract(prepare(1, 0, 0)), "no threads");
    ensure!(
        is_contract(prepare(1, 2048, 0)),
        "more threads than a block has"
    );
    ensure!(
        is_contract(prepare(1, 32, 1 << 24)),
        "more shared memory than an SM has"
    );
    Ok(())
}

/// A matrix of 40 × 10 without entries, and vectors of any length.
struct SparseOperands {
    offsets: Buffer<u32>,
    indices: Buffer<u32>,
    values: Buffer<f32>,
    y: Buffer<f32>,
    weights: Buffer<f32>,
    w: Buffer<f32>,
}

impl SparseOperands {
    fn new(device: &Device) -> Result<Self> {
        Ok(SparseOperands {
            offsets: device.zeros(41)?,
            indices: device.zeros(0)?,
            values: device.zeros(0)?,
            y: device.zeros(10)?,
            weights: device.zeros(40)?,
            w: device.zeros(10)?,
        })
    }

    fn args(&mut self) -> SparseArgs<'_, f32> {
        SparseArgs {
            rows: 40,
            cols: 10,
            offsets: self.offsets.input(),
            indices: self.indices.input(),
            values: self.values.input(),
            input: self.y.input(),
            weights: self.weights.input(),
            shift: In::none(),
            addend: In::none(),
            solve: In::none(),
            output: self.w.output(),
            alpha: 1.0,
            beta: 0.0,
        }
    }
}

fn sparse_arguments(device: &Device) -> Result<()> {
    let entry = shared_entry();
    let launch = |block, shared_bytes, operands: &mut SparseOperands| {
        let shape = Launch {
            grid: 2,
            block,
            shared_bytes,
        };
        device.prepare(entry, shape)?.launch(operands.args())
    };
    let good = || SparseOperands::new(device);
    launch(64, 40, &mut good()?)?;
    ensure!(
        is_contract(launch(64, 39, &mut good()?)),
        "too little shared memory"
    );
    ensure!(is_contract(launch(33, 40, &mut good()?)), "part of a warp");
    let refused = |what: &str, change: fn(&Device, &mut SparseOperands) -> Result<()>| {
        let mut operands = good()?;
        change(device, &mut operands)?;
        ensure!(is_contract(launch(64, 40, &mut operands)), "{what}");
        Ok(())
    };
    refused("short offsets", |device, o| {
        o.offsets = device.zeros(40)?;
        Ok(())
    })?;
    refused("fewer values than indices", |device, o| {
        o.indices = device.zeros(1)?;
        Ok(())
    })?;
    refused("short y", |device, o| {
        o.y = device.zeros(9)?;
        Ok(())
    })?;
    refused("short v", |device, o| {
        o.weights = device.zeros(39)?;
        Ok(())
    })?;
    refused("short w", |device, o| {
        o.w = device.zeros(9)?;
        Ok(())
    })?;
    launch(64, 40, &mut good()?)?;
    Ok(device.synchronize()?)
}

fn dense_arguments(device: &Device) -> Result<()> {
    let entry = packed_entry();
    let columns = entry.variant.columns(32) as u32;
    let launch = |cols: u32, ld: u64, elements: usize| {
        let (x, y) = (
            device.zeros::<f32>(elements)?,
            device.zeros::<f32>(cols as usize)?,
        );
        let mut w = device.zeros::<f32>(cols as usize)?;
        let args = DenseArgs {
            rows: 3,
            cols,
            chunks: 0,
            ld,
            x: x.input(),
            input: y.input(),
            weights: In::none(),
            shift: In::none(),
            addend: In::none(),
            output: w.output(),
            alpha: 1.0,
            beta: 0.0,
        };
        let shared_bytes = entry.variant.shared_bytes(32, 0, 4) as u32;
        device
            .prepare(
                entry,
                Launch {
                    grid: 1,
                    block: 32,
                    shared_bytes,
                },
            )?
            .launch(args)
    };
    launch(3, 4, 12)?;
    ensure!(
        is_contract(launch(3, 3, 12)),
        "rows that do not start at a multiple of the load"
    );
    ensure!(
        is_contract(launch(3, 6, 18)),
        "a leading dimension that is no multiple of the load"
    );
    ensure!(is_contract(launch(4, 0, 12)), "a leading dimension below n");
    ensure!(is_contract(launch(3, 4, 11)), "short X");
    let wide = u64::from(columns.next_multiple_of(4)) + 4;
    ensure!(
        is_contract(launch(columns + 1, wide, 3 * wide as usize)),
        "wider than registers hold"
    );
    launch(3, 4, 12)?;
    Ok(device.synchronize()?)
}

/// A grid of whole clusters alone.
fn clusters(device: &Device) -> Result<()> {
    let mut entries = Dense::entries().iter();
    let entry = entries.find(|entry| entry.variant.cluster() == 2);
    let entry = entry.expect("the table has one");
    if !device.has_clusters() {
        ensure!(is_contract(prepare(device, entry, 2).map(drop)), "clusters");
        return Ok(());
    }
    for grid in [1, 3] {
        ensure!(
            is_contract(prepare(device, entry, grid).map(drop)),
            "{grid} blocks in clusters of 2"
        );
    }
    let cols = entry.variant.columns(32);
    let launch = |cols: u64| {
        let (x, y) = (
            device.zeros::<f32>(3 * 4 * cols.div_ceil(4) as usize)?,
            device.zeros::<f32>(cols as usize)?,
        );
        let mut w = device.zeros::<f32>(cols as usize)?;
        prepare(device, entry, 2)?.launch(DenseArgs {
            rows: 3,
            cols: cols as u32,
            chunks: 0,
            ld: cols.next_multiple_of(4),
            x: x.input(),
            input: y.input(),
            weights: In::none(),
            shift: In::none(),
            addend: In::none(),
            output: w.output(),
            alpha: 1.0,
            beta: 0.0,
        })
    };
    launch(cols)?;
    ensure!(is_contract(launch(cols + 1)), "wider than two blocks hold");
    Ok(device.synchronize()?)
}

/// The same for a sparse X.
fn clusters_of_sums(device: &Device) -> Result<()> {
    let mut entries = Fixed::entries().iter();
    let entry = entries.find(|entry| entry.variant.cluster() == 2);
    let entry = entry.expect("the table has one");
    let prepare = |grid| {
        let shape = Launch {
            grid,
            block: 32,
            shared_bytes: entry.variant.shared_bytes(5, 32, 4) as u32,
        };
        device.prepare(entry, shape).map(drop)
    };
    ensure!(is_contract(prepare(1)), "half a cluster");
    ensure!(is_contract(prepare(3)), "a cluster and a half");
    ensure!(
        prepare(2).is_ok() == device.has_clusters(),
        "a cluster where there are none, or none where there are"
    );
    Ok(())
}

fn prepare(
    device: &Device,
    entry: &'static Entry<Dense>,
    grid: u32,
) -> Result<Prepared<Dense>, DeviceError> {
    let shape = Launch {
        grid,
        block: 32,
        shared_bytes: entry.variant.shared_bytes(32, 0, 4) as u32,
    };
    device.prepare(entry, shape)
}

fn matrix(device: &Device) -> Result<Matrix<f64>, OpError> {
    Matrix::new(device, Features::Dense(Array2::ones((5, 3))))
}

fn other_device(device: &Device) -> Result<()> {
    let (x, elsewhere) = (matrix(device)?, Device::cpu());
    let (y, z) = (device.zeros(3)?, elsewhere.zeros(3)?);
    let mut w = device.zeros(3)?;
    let refused = |result| matches!(result, Err(OpError::OtherDevice { .. }));
    ensure!(
        refused(x.fused(&z, &Terms::default(), &mut w)),
        "y on the CPU"
    );
    let terms = Terms {
        addend: Some((1.0, &z)),
        ..Terms::default()
    };
    ensure!(refused(x.fused(&y, &terms, &mut w)), "z on the CPU");
    ensure!(
        refused(x.fused(&y, &Terms::default(), &mut elsewhere.zeros(3)?)),
        "w on the CPU"
    );
    Ok(x.fused(&y, &Terms::default(), &mut w)?)
}

fn vector_lengths(device: &Device) -> Result<()> {
    let x = matrix(device)?;
    let (three, five) = (device.zeros(3)?, device.zeros(5)?);
    let mut w = device.zeros(3)?;
    let mut p = device.zeros(5)?;
    let plain = Terms::default();
    let refused = |result| matches!(result, Err(OpError::Length { .. }));
    ensure!(refused(x.fused(&five, &plain, &mut w)), "y of m elements");
    ensure!(refused(x.fused(&three, &plain, &mut p)), "w of m elements");
    ensure!(
        refused(x.forward(&five, &plain, &mut p)),
        "y of m elements, forward"
    );
    ensure!(
        refused(x.transposed(&three, &plain, &mut w)),
        "p of n elements"
    );
    let weights = Terms {
        weights: Some(&three),
        ..plain
    };
    ensure!(
        refused(x.fused(&three, &weights, &mut w)),
        "v of n elements"
    );
    let shift = Terms {
        shift: Some(&three),
        ..plain
    };
    ensure!(refused(x.fused(&three, &shift, &mut w)), "s of n elements");
    let addend = Terms {
        addend: Some((1.0, &five)),
        ..plain
    };
    ensure!(refused(x.fused(&three, &addend, &mut w)), "z of m elements");
    Ok(x.fused(&three, &plain, &mut w)?)
}
