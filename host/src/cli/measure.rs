//! `warpfuse plan --measure`: launches timed on this machine's GPU beside their predictions.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::args::{DeviceName, DtypeName, GpuName, PlanArgs, matrix_options, summation};
use super::exit::Exit;
use super::progress::Ui;
use super::report::{Listing, indented, number, plain_table};
use super::{data, device, output, pages};
use crate::device::Device;
use crate::io::Columns;
use crate::io::synth::{ColumnDistribution, DenseSpec, RowLengths, SparseSpec, SparseValues, Spec};
use crate::matrix::{Element, Features};
use crate::ops::measure::{Comparison, Measured, Selection};
use crate::ops::{Matrix, Number, Preparation};
use crate::plan::fused::{Problem, Processor, Product, Stored, StoredValues};
use crate::plan::rates::RateSource;
use crate::report::{LaunchGroup, LaunchPage};

/// The seed of data that are made up.
const SEED: u64 = 1;

/// Times launches and prints the fastest `count`.
pub(super) fn run(args: &PlanArgs, count: usize, ui: &Ui) -> Result<Exit> {
    if args.gpu != GpuName::Auto {
        bail!("--measure runs on this machine's GPU: leave out --gpu");
    }
    pages::check(&args.report)?;
    let device = device::open(DeviceName::Auto, ui)?;
    match args.dtype {
        DtypeName::F32 => compare::<f32>(args, count, &device, ui),
        DtypeName::F64 => compare::<f64>(args, count, &device, ui),
    }
}

fn compare<T: Number>(args: &PlanArgs, count: usize, device: &Device, ui: &Ui) -> Result<Exit> {
    let features = features::<T>(args, ui)?;
    let further = match args.reproducible || !features.is_sparse() {
        true => Vec::new(),
        false => Stored::further(Processor::Gpu)
            .filter_map(Preparation::of)
            .collect(),
    };
    let options = matrix_options(args.model, summation(args.reproducible), args.values);
    let mut matrix = Matrix::with_options(device, features.clone(), options)?;
    let product = args.product.into();
    let selection = Selection {
        fastest: count.max(Selection::default().fastest),
        ..Selection::default()
    };
    let comparison = matrix
        .compare_launches(product, selection)
        .context("no launches can be timed")?;
    let prepare = |form| -> Result<Prepared> {
        let mut matrix = Matrix::prepared(device, features.clone(), options, form)?;
        let stored = matrix.problem().stored;
        let comparison = matrix
            .compare_launches(product, selection)
            .with_context(|| format!("no launches can be timed with X stored as {stored}"))?;
        let values = matrix.problem().values;
        let values = (stored == Stored::RowsAndHotColumns).then_some(values);
        Ok(Prepared {
            stored,
            values,
            comparison,
        })
    };
    let prepared: Result<Vec<Prepared>> = further.into_iter().map(prepare).collect();
    let report = Report {
        gpu: device.name(),
        rates: device.limits().map(|limits| limits.rates.source),
        problem: matrix.problem(),
        product,
        regret: comparison.regret(),
        comparison: &comparison,
        prepared: &prepared?,
    };
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(report.text(count))?;
    }
    report.write_page(args, device, ui)?;
    Ok(Exit::Success)
}

/// DATA, or numbers of the shape as typed.
pub(super) fn features<T: Element>(args: &PlanArgs, ui: &Ui) -> Result<Arc<Features<T>>> {
    if let Some(path) = &args.data {
        let loaded = data::load::<T>(path, None, Columns::Infer, &args.read, ui)?;
        return Ok(loaded.features);
    }
    let (Some(rows), Some(cols)) = (args.rows, args.cols) else {
        bail!("expected DATA, or --rows and --cols, found neither");
    };
    let spec = spec(usize::try_from(rows)?, usize::try_from(cols)?, args.nnz)?;
    Ok(Arc::new(spec.generate::<T>()?.dataset.features))
}

/// Rows of equal length with uniform columns, or a dense matrix.
fn spec(rows: usize, cols: usize, nnz: Option<u64>) -> Result<Spec> {
    let (noise, seed) = (0.0, SEED);
    let Some(nnz) = nnz else {
        return Ok(Spec::Dense(DenseSpec {
            rows,
            cols,
            noise,
            seed,
        }));
    };
    let per_row = (nnz as f64 / rows.max(1) as f64).round();
    Ok(Spec::Sparse(SparseSpec {
        rows,
        cols,
        row_lengths: RowLengths::Constant(per_row as u32),
        columns: ColumnDistribution::Uniform,
        values: SparseValues::Normal,
        noise,
        seed,
    }))
}

/// Launches over X in a further form.
#[derive(Serialize)]
struct Prepared {
    stored: Stored,
    /// How values are stored, where that may differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<StoredValues>,
    #[serde(flatten)]
    comparison: Comparison,
}

impl Prepared {
    /// Such as `rows and hot columns, values as bf16`.
    fn form(&self) -> String {
        match self.values {
            Some(values) => format!("{}, {values}", self.stored),
            None => self.stored.to_string(),
        }
    }
}

/// What is printed.
#[derive(Serialize)]
struct Report<'a> {
    gpu: &'a str,
    rates: Option<RateSource>,
    problem: &'a Problem,
    product: Product,
    /// How much longer the chosen launch takes than the fastest.
    regret: f64,
    #[serde(flatten)]
    comparison: &'a Comparison,
    #[serde(skip_serializing_if = "<[Prepared]>::is_empty")]
    prepared: &'a [Prepared],
}

impl Report<'_> {
    /// Writes the page and the figures, where they are requested.
    fn write_page(&self, args: &PlanArgs, device: &Device, ui: &Ui) -> Result<()> {
        if !args.report.is_wanted() {
            return Ok(());
        }
        let forms: Vec<String> = self.prepared.iter().map(Prepared::form).collect();
        let stored = self.problem.stored.to_string();
        let first = LaunchGroup {
            form: &stored,
            comparison: self.comparison,
        };
        let others = self.prepared.iter().zip(&forms);
        let others = others.map(|(prepared, form)| LaunchGroup {
            form,
            comparison: &prepared.comparison,
        });
        let groups: Vec<LaunchGroup<'_>> = [first].into_iter().chain(others).collect();
        let bandwidth = device.limits().map(|limits| limits.memory_bandwidth_gbs);
        let page = LaunchPage {
            gpu: self.gpu,
            problem: &self.problem.to_string(),
            product: &self.product.to_string(),
            command: ui.command(),
            limit: bandwidth.map(|gbs| (self.problem.matrix_bytes(), gbs)),
            groups: &groups,
        };
        pages::write(&args.report, &page.report(), ui)
    }

    fn text(&self, count: usize) -> String {
        let mut head = Listing::new();
        head.line("gpu", self.gpu).line("matrix", self.problem);
        if let Some(source) = self.rates {
            head.line("rates", source);
        }
        head.line("product", self.product)
            .line("chosen", chosen(self.comparison));
        let mut text = format!("{head}{}", fastest(self.comparison, count));
        for prepared in self.prepared {
            let comparison = &prepared.comparison;
            let mut head = Listing::new();
            head.line("stored as", prepared.form())
                .line("chosen", chosen(comparison));
            text += &format!("{head}{}", fastest(comparison, count));
        }
        text
    }
}

fn chosen(comparison: &Comparison) -> String {
    let Comparison { chosen, candidates } = comparison;
    format!(
        "{}, {:.1} µs: {:.1} % above the fastest of {} launches",
        launch(chosen),
        chosen.measured_us,
        100.0 * comparison.regret(),
        candidates.len()
    )
}

fn fastest(comparison: &Comparison, count: usize) -> String {
    let candidates = &comparison.candidates;
    table(&candidates[..count.min(candidates.len())])
}

/// Both kernels where there are two.
fn launch(measured: &Measured) -> String {
    let plan = &measured.plan;
    match &plan.then {
        None => format!("{} bs{} grid{}", plan.kernel, plan.bs, plan.grid),
        Some(next) => format!("{} + {}", plan.kernel, next.kernel),
    }
}

fn table(candidates: &[Measured]) -> String {
    let mut table = plain_table();
    table.set_header([
        "µs",
        "predicted",
        "off by",
        "strategy",
        "launch",
        "bound by",
    ]);
    for candidate in candidates {
        let plan = &candidate.plan;
        let bound = plan
            .prediction
            .map(|prediction| prediction.bound.to_string());
        table.add_row([
            number(format_args!("{:.1}", candidate.measured_us)),
            number(format_args!("{:.1}", candidate.predicted_us)),
            number(format_args!(
                "{:+.0} %",
                100.0 * candidate.prediction_off_by()
            )),
            plan.strategy.name().into(),
            launch(candidate).into(),
            bound.unwrap_or_default().into(),
        ]);
    }
    indented(&table)
}
