//! What a device takes to make panels of columns and of rows, step by step, and products over those of columns beside those over
//! the host's: `panel_making [DEVICE [PARTS]]`, with a part in PARTS of the rows and columns.
//!
//! Prints one JSON line for each matrix and kind of values. Seconds are the least of some runs; what a step takes includes
//! the memory that it allocates.

mod data;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use warpfuse::device::{Buffer, Device, Timer};
use warpfuse::layout::panels::{PanelLayout, PanelSize};
use warpfuse::matrix::CsrMatrix;
use warpfuse::ops::panel_making::{MadePanels, PanelSource};
use warpfuse::ops::{Number, OpError};

use data::Shape;

/// Runs of each kind.
const RUNS: usize = 4;
/// Products that are timed together.
const PRODUCTS: usize = 10;
/// Entries of a range of panels, at least, as forms have them.
const ENTRIES_PER_RANGE: usize = 1 << 12;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let device = arguments.next().unwrap_or_else(|| "cuda:0".to_owned());
    let device: Device = device.parse().context("reading DEVICE")?;
    let parts = arguments.next().map_or(Ok(1), |parts| parts.parse());
    let parts: usize = parts.context("expected PARTS, a whole number")?;
    for shape in data::shapes(parts) {
        measure::<f32>(&device, &shape)?;
        measure::<f64>(&device, &shape)?;
    }
    Ok(())
}

/// The panels of one matrix, with its values and without.
fn measure<T: Number>(device: &Device, shape: &Shape) -> Result<()> {
    let x = shape.matrix::<T>()?;
    let sms = device.limits().map_or(1, |limits| limits.sms as usize);
    let size = PanelSize {
        widest: gpu_kernels::fused::panels::widest_panel(size_of::<T>() as u32) as usize,
        ranges: x.nnz().div_ceil(ENTRIES_PER_RANGE).min(sms),
        result: x.cols(),
    };
    let of = |ones: bool| Bench {
        device,
        x: &x,
        size,
        ones,
    };
    for (kind, bench) in [("values", of(false)), ("ones", of(true))] {
        let mut line = Map::new();
        line.insert(
            "bench".into(),
            json!(format!("panel_making/{}", shape.name)),
        );
        line.insert("type".into(), json!(size_of::<T>()));
        line.insert("kind".into(), json!(kind));
        line.insert("shape".into(), json!([x.rows(), x.cols(), x.nnz()]));
        bench.measure(&mut line)?;
        println!("{}", Value::Object(line));
    }
    Ok(())
}

/// The steps of the fastest of some runs, one at a time: panels take as much memory as X.
fn seconds<T>(make: impl Fn() -> Result<MadePanels<T>, OpError>) -> Result<Value> {
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(make()?.seconds);
    }
    let total = |run: &Vec<_>| run.iter().map(|(_, seconds)| seconds).sum::<f64>();
    runs.sort_by(|a, b| total(a).total_cmp(&total(b)));
    let [least, most] = [&runs[0], &runs[RUNS - 1]].map(total);
    Ok(json!({ "seconds": least, "steps": runs[0], "worst": most }))
}

struct Bench<'a, T> {
    device: &'a Device,
    x: &'a CsrMatrix<T>,
    size: PanelSize,
    /// Values are not looked at.
    ones: bool,
}

impl<T: Number> Bench<'_, T> {
    fn measure(&self, line: &mut Map<String, Value>) -> Result<()> {
        let source = match self.ones {
            true => PanelSource::of_ones(self.device, self.x)?,
            false => PanelSource::new(self.device, self.x)?,
        };
        line.insert("columns".into(), seconds(|| source.make(self.size))?);
        line.insert("rows".into(), seconds(|| source.make_rows(self.size))?);
        let made = source.make(self.size)?;
        line.insert("product_us".into(), json!(self.product_us(&made)?));
        drop(made);
        let start = Instant::now();
        let layout = match self.ones {
            true => PanelLayout::of_columns_of_ones(self.x, self.size),
            false => PanelLayout::of_columns(self.x, self.size),
        };
        line.insert("host_seconds".into(), json!(start.elapsed().as_secs_f64()));
        let of_host = MadePanels::upload(self.device, &layout)?;
        line.insert("host_product_us".into(), json!(self.product_us(&of_host)?));
        Ok(())
    }

    /// The median of some products; none where the device keeps no time.
    fn product_us(&self, panels: &MadePanels<T>) -> Result<Option<f64>> {
        let product = panels.product(self.device)?;
        let p: Buffer<T> = self.device.zeros(self.x.rows())?;
        let mut w: Buffer<T> = self.device.zeros(self.x.cols())?;
        let Device::Cuda(_) = self.device else {
            product.add(&p, &mut w)?;
            return Ok(None);
        };
        let mut timer = Timer::new(self.device)?;
        let mut times = Vec::new();
        for _ in 0..RUNS + 1 {
            timer.start()?;
            for _ in 0..PRODUCTS {
                product.add(&p, &mut w)?;
            }
            times.push(timer.stop()? / PRODUCTS as f64);
        }
        times.sort_by(f64::total_cmp);
        Ok(Some(times[times.len() / 2]))
    }
}
