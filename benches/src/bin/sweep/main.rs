//! Times every kernel entry that suits a matrix over block sizes and blocks per SM, beside the planner's choice:
//! how launch models are judged, and where their constants come from.

mod bench;
mod dense;
mod fixed;
mod report;
mod sparse;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use warpfuse::ops::Number;
use warpfuse_benches::gpu::Gpu;
use warpfuse_benches::options::Filter;
use warpfuse_benches::sampling::Sampler;
use warpfuse_benches::shape::{DENSE_WIDTHS, MATRICES, SPARSE_WIDTHS, Shape};
use warpfuse_benches::suite;

use bench::Bench;

const USAGE: &str = "usage: sweep [--out FILE] [FILTER[,FILTER…]]…
  FILTER: a part of a name such as `sweep/dense-11000000x28/f32/fused`
  --out:  appends one JSON object per matrix and product to FILE";

fn main() -> ExitCode {
    let (filter, out) = match arguments(std::env::args().skip(1)) {
        Some(arguments) => arguments,
        None => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let device = match suite::gpu() {
        Ok(device) => device,
        Err(reason) => {
            eprintln!("{}: {reason}", suite::NO_GPU);
            return ExitCode::SUCCESS;
        }
    };
    let gpu = Gpu::new(device, Sampler::brief());
    match sweep(&gpu, &filter, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn arguments(mut rest: impl Iterator<Item = String>) -> Option<(Filter, Option<PathBuf>)> {
    let (mut filter, mut out) = (Filter::default(), None);
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--out" => out = Some(rest.next()?.into()),
            option if option.starts_with('-') => return None,
            text => filter.add(text),
        }
    }
    Some((filter, out))
}

fn sweep(gpu: &Gpu, filter: &Filter, out: Option<PathBuf>) -> Result<()> {
    let out = out.map(report::open).transpose()?;
    let sparse = MATRICES.into_iter().chain(SPARSE_WIDTHS);
    for shape in sparse.chain(DENSE_WIDTHS) {
        sweep_matrix::<f32>(gpu, filter, out.as_ref(), shape)?;
        sweep_matrix::<f64>(gpu, filter, out.as_ref(), shape)?;
    }
    Ok(())
}

/// A matrix that fails, for want of memory for instance, does not stop the others.
fn sweep_matrix<T: Number>(
    gpu: &Gpu,
    filter: &Filter,
    out: Option<&std::fs::File>,
    shape: Shape,
) -> Result<()> {
    let bench = Bench::<T>::of(shape);
    if !bench.is_wanted(filter) {
        return Ok(());
    }
    match bench.run(gpu, filter) {
        Ok(outcomes) => outcomes.iter().try_for_each(|outcome| {
            print!("{outcome}");
            out.map_or(Ok(()), |file| report::append(file, outcome))
                .context("writing an outcome")
        }),
        Err(error) => {
            println!("{shape} {}: FAILED: {error:#}", T::DTYPE);
            Ok(())
        }
    }
}
