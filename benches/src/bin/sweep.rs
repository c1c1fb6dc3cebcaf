//! Times every compatible kernel entry over block sizes and blocks per SM, beside the planner's choice.

use gpu_kernels::fused::{DenseArgs, Product, SparseArgs};
use gpu_kernels::stream::{Stream, StreamArgs};
use gpu_kernels::{Entry, Family, In, Launch};
use warpfuse::device::{Buffer, Device, Timer};
use warpfuse::ops::Number;
use warpfuse::plan::fused::{Planner, Problem};
use warpfuse_benches::data;

type Result<T> = anyhow::Result<T>;

struct Trial {
    name: &'static str,
    launch: Launch,
    microseconds: f64,
}

fn main() -> Result<()> {
    let device = Device::cuda(0)?;
    let filter: Vec<String> = std::env::args().skip(1).collect();
    let wants = |name: &str| filter.is_empty() || filter.iter().any(|f| name.contains(f.as_str()));
    println!("{} driver {:?}", device.name(), device.driver_version());
    for (m, n) in [
        (11_000_000, 28),
        (8_000_000, 128),
        (2_000_000, 512),
        (1_000_000, 1024),
        (250_000, 4096),
        (100_000, 10_000),
        (1_000_000, 1000),
        (2_000_000, 500),
        (10_000_000, 100),
        (100_000_000, 8),
    ] {
        if wants("dense") && wants(&format!("{n}")) {
            dense::<f32>(&device, m, n)?;
        }
        if wants("dense64") && wants(&format!("{n}")) {
            dense::<f64>(&device, m / 2, n)?;
        }
    }
    for (m, n, k) in [
        (4_000_000, 1000, 20),
        (4_000_000, 10_000, 20),
        (4_000_000, 40_000, 20),
        (4_000_000, 1_000_000, 20),
        (8_000_000, 20_000_000, 28),
    ] {
        if wants("sparse") {
            sparse::<f32>(&device, m, n, k)?;
        }
        if wants("sparse64") {
            sparse::<f64>(&device, m, n, k)?;
        }
    }
    Ok(())
}

fn time_all<F: Family>(
    device: &Device,
    entry: &'static Entry<F>,
    launch: Launch,
    args: F::Args<'_>,
) -> Result<Trial> {
    let kernel = device.prepare::<F>(entry, launch)?;
    let mut timer = Timer::new(device)?;
    kernel.launch(args)?;
    let mut times = vec![];
    for _ in 0..5 {
        timer.start()?;
        kernel.launch(args)?;
        times.push(timer.stop()?);
    }
    times.sort_by(f64::total_cmp);
    Ok(Trial {
        name: entry.name,
        launch,
        microseconds: times[2],
    })
}

fn ceiling(device: &Device, x: &Buffer<f32>) -> Result<f64> {
    let mut total = device.zeros::<f32>(1)?;
    let sms = device.limits().map_or(1, |l| l.sms);
    let mut best = f64::MAX;
    for blocks in [4, 8, 16] {
        for block in [256, 512] {
            let launch = Launch {
                grid: sms * blocks,
                block,
                shared_bytes: 0,
            };
            let args = StreamArgs {
                x: x.input(),
                total: total.output(),
            };
            let trial = time_all::<Stream<f32>>(device, &Stream::<f32>::entries()[0], launch, args);
            if let Ok(trial) = trial {
                best = best.min(trial.microseconds);
            }
        }
    }
    Ok(best)
}

fn report(
    title: &str,
    floor: f64,
    bytes: f64,
    mut trials: Vec<Trial>,
    planned: Option<(String, u32, u32)>,
) {
    trials.sort_by(|a, b| a.microseconds.total_cmp(&b.microseconds));
    println!("{title}: floor {floor:.1} us");
    for trial in trials.iter().take(6) {
        println!(
            "   {:.1} us {:.0} GB/s {:.1}% {} bs{} grid{}",
            trial.microseconds,
            bytes / trial.microseconds / 1e3,
            100.0 * floor / trial.microseconds,
            trial.name,
            trial.launch.block,
            trial.launch.grid
        );
    }
    if let Some((name, bs, grid)) = planned {
        let rank = trials
            .iter()
            .position(|t| t.name == name && t.launch.block == bs && t.launch.grid == grid);
        println!(
            "   planned {name} bs{bs} grid{grid}: rank {rank:?} of {} {:?}",
            trials.len(),
            rank.map(|r| trials[r].microseconds)
        );
    }
}

const BLOCKS: [u32; 4] = [128, 256, 512, 1024];
const PER_SM: [u32; 6] = [1, 2, 3, 4, 8, 16];

fn dense<T: Number>(device: &Device, m: usize, n: usize) -> Result<()> {
    let values: Vec<T> = data::values(m * n, 1);
    let x = device.upload(&values)?;
    drop(values);
    let y = device.upload(&data::values::<T>(n.max(m), 2))?;
    let mut w = device.zeros::<T>(n.max(m))?;
    let bytes = (m * n * size_of::<T>()) as f64;
    // The ceiling reads as many bytes from a buffer of its own.
    let floor = {
        let words = ((bytes / 4.0) as usize).min(1 << 29);
        let fresh = device.upload(&data::values::<f32>(words, 3))?;
        ceiling(device, &fresh)? * bytes / (words as f64 * 4.0)
    };
    let kernels = warpfuse::ops::candidates::<T>("sm_90");
    let sms = device.limits().expect("a GPU").sms;
    for product in [Product::Fused, Product::Forward, Product::Transposed] {
        let mut trials = vec![];
        for entry in T::Dense::entries()
            .iter()
            .filter(|e| e.variant.product == product && n as u32 % e.variant.width == 0)
        {
            for block in BLOCKS {
                if product == Product::Fused
                    && (entry.variant.columns(block) < n as u64
                        || entry.variant.columns(block) > 4 * n as u64 + 64)
                {
                    continue;
                }
                for per_sm in PER_SM {
                    let launch = Launch {
                        grid: sms * per_sm,
                        block,
                        shared_bytes: entry.variant.shared_bytes(block, size_of::<T>() as u32)
                            as u32,
                    };
                    let args = DenseArgs {
                        rows: m as u32,
                        cols: n as u32,
                        ld: n as u64,
                        x: x.input(),
                        input: y.input(),
                        weights: In::none(),
                        shift: In::none(),
                        addend: In::none(),
                        output: w.output(),
                        alpha: <T as gpu_kernels::Real>::ONE,
                        beta: <T as gpu_kernels::Real>::ZERO,
                    };
                    if let Ok(prepared) = device.prepare::<T::Dense>(entry, launch) {
                        if prepared.blocks_per_sm()? < per_sm {
                            continue;
                        }
                        if let Ok(trial) = time_all::<T::Dense>(device, entry, launch, args) {
                            trials.push(trial);
                        }
                    }
                }
            }
        }
        let plan_product = match product {
            Product::Fused => warpfuse::plan::fused::Product::Fused,
            Product::Forward => warpfuse::plan::fused::Product::Forward,
            Product::Transposed => warpfuse::plan::fused::Product::Transposed,
        };
        let plan = Planner::new(device.limits().expect("a GPU"), &kernels).plan(
            &Problem::dense(m as u64, n as u64, T::PRECISION),
            plan_product,
        );
        let planned = plan.ok().map(|p| (p.kernel.to_string(), p.bs, p.grid));
        report(
            &format!("dense {} {m}x{n} {product:?}", T::DTYPE),
            floor,
            bytes,
            trials,
            planned,
        );
    }
    Ok(())
}

fn sparse<T: Number>(device: &Device, m: usize, n: usize, k: usize) -> Result<()> {
    let x = data::stratified::<T>(m, n, k, 7)?;
    let offsets: Vec<u32> = (0..=m).map(|r| (r * k) as u32).collect();
    let (offsets, indices, values) = (
        device.upload(&offsets)?,
        device.upload(x.indices())?,
        device.upload(x.data())?,
    );
    let y = device.upload(&data::values::<T>(n.max(m), 2))?;
    let mut w = device.zeros::<T>(n.max(m))?;
    let bytes = (m * k * (4 + size_of::<T>()) + 4 * m) as f64;
    let floor = {
        let words = ((bytes / 4.0) as usize).min(1 << 29);
        let fresh = device.upload(&data::values::<f32>(words, 3))?;
        ceiling(device, &fresh)? * bytes / (words as f64 * 4.0)
    };
    let kernels = warpfuse::ops::candidates::<T>("sm_90");
    let sms = device.limits().expect("a GPU").sms;
    for product in [Product::Fused, Product::Forward, Product::Transposed] {
        let mut trials = vec![];
        for entry in T::Sparse::entries()
            .iter()
            .filter(|e| e.variant.product == product)
        {
            for block in [128, 256, 512, 768, 1024] {
                for per_sm in [1, 2, 3, 4, 6, 8, 12, 16] {
                    let shared = entry.variant.shared_bytes(n as u32, size_of::<T>() as u32);
                    if shared > 227 * 1024 {
                        continue;
                    }
                    let launch = Launch {
                        grid: sms * per_sm,
                        block,
                        shared_bytes: shared as u32,
                    };
                    let args = SparseArgs {
                        rows: m as u32,
                        cols: n as u32,
                        offsets: offsets.input(),
                        indices: indices.input(),
                        values: values.input(),
                        input: y.input(),
                        weights: In::none(),
                        shift: In::none(),
                        addend: In::none(),
                        output: w.output(),
                        alpha: <T as gpu_kernels::Real>::ONE,
                        beta: <T as gpu_kernels::Real>::ZERO,
                    };
                    if let Ok(prepared) = device.prepare::<T::Sparse>(entry, launch) {
                        if prepared.blocks_per_sm()? != per_sm
                            && !(prepared.blocks_per_sm()? > per_sm && per_sm * block >= 1024)
                        {
                            continue;
                        }
                        if let Ok(trial) = time_all::<T::Sparse>(device, entry, launch, args) {
                            trials.push(trial);
                        }
                    }
                }
            }
        }
        let plan_product = match product {
            Product::Fused => warpfuse::plan::fused::Product::Fused,
            Product::Forward => warpfuse::plan::fused::Product::Forward,
            Product::Transposed => warpfuse::plan::fused::Product::Transposed,
        };
        let plan = Planner::new(device.limits().expect("a GPU"), &kernels).plan(
            &Problem::sparse(m as u64, n as u64, (m * k) as u64, T::PRECISION),
            plan_product,
        );
        let planned = plan.ok().map(|p| (p.kernel.to_string(), p.bs, p.grid));
        report(
            &format!("sparse {} {m}x{n} {product:?}", T::DTYPE),
            floor,
            bytes,
            trials,
            planned,
        );
    }
    Ok(())
}
