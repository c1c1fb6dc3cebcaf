//! The benchmarks: `cargo bench` for criterion's statistics, `--record OUTDIR` for the files of results.

use std::cell::LazyCell;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, anyhow};
use criterion::{Criterion, Throughput};
use warpfuse::device::{Device, Timer};
use warpfuse::ops::{Matrix, Number, Terms};
use warpfuse_benches::case::{Case, SEED};
use warpfuse_benches::fused::{Entries, Subject, TASKS, Task};
use warpfuse_benches::gpu::Gpu;
use warpfuse_benches::options::Options;
use warpfuse_benches::parser::{self, TextFile};
use warpfuse_benches::sampling::Sampler;
use warpfuse_benches::shape::{MATRICES, Shape};
use warpfuse_benches::{cpu, data, suite};

fn main() -> ExitCode {
    let outcome = match Options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => suite::record(&options),
        Ok(None) => {
            compare(&mut Criterion::default().configure_from_args());
            Ok(())
        }
        Err(mistake) => {
            eprintln!("{mistake}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Criterion mode: against the run before.
fn compare(criterion: &mut Criterion) {
    match suite::gpu() {
        Ok(device) => {
            let gpu = Gpu::new(device, Sampler::brief());
            for shape in MATRICES {
                compare_matrix::<f32>(criterion, &gpu, shape);
                compare_matrix::<f64>(criterion, &gpu, shape);
            }
        }
        Err(reason) => eprintln!("{}: {reason}", suite::NO_GPU),
    }
    cpu::shapes::<f32>()
        .into_iter()
        .for_each(|shape| compare_cpu::<f32>(criterion, shape));
    compare_parser::<f32>(criterion);
    criterion.final_summary();
}

/// The matrix is made when the first of its cases passes criterion's filter.
fn compare_matrix<T: Number>(criterion: &mut Criterion, gpu: &Gpu, shape: Shape) {
    let subject = LazyCell::new(|| Subject::<T>::new(gpu, shape, Entries::Drawn));
    let applies = |task: &Task| task.entries == Entries::Drawn && task.applies_to(&shape);
    for task in TASKS.into_iter().filter(applies) {
        let prepare = || {
            let subject = subject.as_ref().map_err(|error| anyhow!("{error:#}"))?;
            let mut output = subject.output(task)?;
            Ok(move || subject.run(task, &mut output))
        };
        bench(
            criterion,
            &gpu.device,
            &task.case::<T>(shape),
            shape.bytes::<T>(4),
            prepare,
        );
    }
}

fn compare_cpu<T: Number>(criterion: &mut Criterion, shape: Shape) {
    let device = Device::cpu();
    let prepare = || {
        let matrix = Matrix::new(&device, shape.features::<T>(SEED)?)?;
        let y = device.upload(&data::values::<T>(shape.cols(), SEED + 10))?;
        let mut w = device.zeros(shape.cols())?;
        Ok(move || Ok(matrix.fused(&y, &Terms::default(), &mut w)?))
    };
    bench(
        criterion,
        &device,
        &cpu::case::<T>(shape),
        shape.bytes::<T>(8),
        prepare,
    );
}

fn compare_parser<T: Number>(criterion: &mut Criterion) {
    let text = LazyCell::new(TextFile::new::<T>);
    let prepare = || {
        let text = text.as_ref().map_err(|error| anyhow!("{error:#}"))?;
        Ok(move || text.parse::<T>().map(drop))
    };
    let case = parser::case::<T>();
    bench(
        criterion,
        &Device::cpu(),
        &case,
        parser::SHAPE.bytes::<T>(8),
        prepare,
    );
}

/// One case: events (on the CPU the clock) around all of an iteration's calls, so that nothing is counted that
/// was not waited for.
fn bench<W: FnMut() -> Result<()>>(
    criterion: &mut Criterion,
    device: &Device,
    case: &Case,
    bytes: usize,
    prepare: impl Fn() -> Result<W>,
) {
    let mut group = criterion.benchmark_group(case.to_string());
    group
        .throughput(Throughput::Bytes(bytes as u64))
        .sample_size(20);
    let mut work = None;
    group.bench_function("time", |bencher| {
        let work = work.get_or_insert_with(|| prepare().unwrap_or_else(|error| stop(case, &error)));
        bencher.iter_custom(|calls| {
            time(device, calls, work).unwrap_or_else(|error| stop(case, &error))
        });
    });
    group.finish();
}

fn time(device: &Device, calls: u64, work: &mut impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut timer = Timer::new(device)?;
    timer.start()?;
    for _ in 0..calls {
        work()?;
    }
    Ok(Duration::from_secs_f64(timer.stop()? * 1e-6))
}

/// Criterion has no other way to give up a benchmark.
fn stop(case: &Case, error: &anyhow::Error) -> ! {
    panic!("{case}: {error:#}")
}
