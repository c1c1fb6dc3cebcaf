//! `train hits`, `train pagerank`, `train svd`: a matrix → scores or singular vectors.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::cli::args::{DtypeName, HitsArgs, MatrixArgs, PageRankArgs, SvdArgs};
use crate::cli::data::{Loaded, Reading};
use crate::cli::exit::Exit;
use crate::cli::memory::MemoryFacts;
use crate::cli::portions::{self, Place};
use crate::cli::progress::Ui;
use crate::cli::report::{Listing, figure, largest, seconds};
use crate::cli::{checkpoints, device, group, output, pages};
use crate::device::group::Group;
use crate::device::{Device, Phase, PhaseCost, Phases};
use crate::io::{self, Columns};
use crate::learning::{Hits, PageRank, SpectralReport, SvdModel, TruncatedSvd};
use crate::matrix::{ColumnMoments, Element, Features};
use crate::ops::Number;
use crate::report::{DataFacts, Hardware, Listed, SpectralPage};

/// Nodes that a report lists.
const LISTED: usize = 10;

/// A matrix in memory and an open device.
struct Input<T> {
    group: Group,
    device: Device,
    data: Loaded<T>,
}

impl<T: Number> Input<T> {
    /// Checks that `outputs` can be written, opens the device, reads the matrix.
    fn new(args: &MatrixArgs, outputs: &[Option<&Path>], ui: &Ui) -> Result<Self> {
        let group = group::join(ui)?;
        group::check(&group, &args.data, false)?;
        for path in outputs.iter().flatten() {
            output::check_place(path)?;
        }
        pages::check(&args.report)?;
        let device = group::device_or(&group, (args.device, ui), || {
            device::open_for(args.device, &args.data, device::FIT_READS, ui)
        })?;
        let reading = Reading::of_numbers(Columns::Infer, &args.read);
        let place = Place {
            data: &args.data,
            reading: &reading,
            // A page counts entries on the host.
            whole: args.report.is_wanted(),
            ui,
        };
        let data = portions::load((&group, &device), place)?;
        Ok(Input {
            group,
            device,
            data,
        })
    }

    /// The rows that this process computes with.
    fn features(&self) -> Arc<Features<T>> {
        let rows = (self.data.features.clone(), self.data.rows);
        group::rows_of((&self.group, &self.device), rows)
    }
}

/// `train hits`.
pub(super) fn hits(args: &HitsArgs, ui: &Ui) -> Result<Exit> {
    match args.matrix.dtype {
        DtypeName::F32 => hits_of::<f32>(args, ui),
        DtypeName::F64 => hits_of::<f64>(args, ui),
    }
}

fn hits_of<T: Number>(args: &HitsArgs, ui: &Ui) -> Result<Exit> {
    let outputs = [args.hubs.as_deref(), args.authorities.as_deref()];
    let input = Input::<T>::new(&args.matrix, &outputs, ui)?;
    let bar = ui.iterations("change", args.tol);
    let params = Hits::params()
        .tolerance(args.tol)
        .max_iter(args.max_iter.get())
        .matrix_options(args.matrix.matrix_options());
    let watch = |step| bar.iteration(step);
    let (device, x) = (&input.device, input.features());
    let model = match &checkpoints::of(&args.matrix.checkpoint, ui) {
        None => params.fit_watched(device, x, watch)?,
        Some(checkpoint) => params.fit_with_checkpoint(device, x, checkpoint, watch)?,
    };
    drop(bar);
    write_scores(args.hubs.as_deref(), model.hubs())?;
    write_scores(args.authorities.as_deref(), model.authorities())?;
    checkpoints::remove(&args.matrix.checkpoint, ui);
    let mut told = Told::new("hits", "Hubs and authorities", &args.matrix, &input);
    told.value("hubs", json!(model.hubs()));
    told.value("authorities", json!(model.authorities()));
    told.ranking("hub", model.hubs());
    told.ranking("authority", model.authorities());
    told.finish(&input, model.report(), args.tol, ui)
}

/// `train pagerank`.
pub(super) fn page_rank(args: &PageRankArgs, ui: &Ui) -> Result<Exit> {
    match args.matrix.dtype {
        DtypeName::F32 => page_rank_of::<f32>(args, ui),
        DtypeName::F64 => page_rank_of::<f64>(args, ui),
    }
}

fn page_rank_of<T: Number>(args: &PageRankArgs, ui: &Ui) -> Result<Exit> {
    let mut input = Input::<T>::new(&args.matrix, &[args.output.as_deref()], ui)?;
    input.data.features = square(input.data.features, input.data.stats.rows)?;
    let mut params = PageRank::params()
        .damping(args.damping)
        .dangling(args.dangling.into())
        .tolerance(args.tol)
        .max_iter(args.max_iter.get())
        .matrix_options(args.matrix.matrix_options());
    if let Some(path) = &args.personalisation {
        let weights = io::read_numbers::<f64>(path)?;
        let (nodes, found) = (input.data.stats.rows, weights.len());
        ensure!(
            found == nodes,
            "{}: expected one weight for each of the {nodes} nodes, found {found}",
            path.display()
        );
        params = params.personalisation(weights);
    }
    let bar = ui.iterations("change", args.tol);
    let watch = |step| bar.iteration(step);
    let (device, x) = (&input.device, input.features());
    let model = match &checkpoints::of(&args.matrix.checkpoint, ui) {
        None => params.fit_watched(device, x, watch)?,
        Some(checkpoint) => params.fit_with_checkpoint(device, x, checkpoint, watch)?,
    };
    drop(bar);
    write_scores(args.output.as_deref(), model.scores())?;
    checkpoints::remove(&args.matrix.checkpoint, ui);
    let mut told = Told::new("pagerank", "PageRank", &args.matrix, &input);
    told.value("scores", json!(model.scores()));
    told.ranking("node", model.scores());
    told.finish(&input, model.report(), args.tol, ui)
}

/// A sparse file shows only columns that occur in it: the last nodes may have no edge that points to them.
fn square<T: Number>(graph: Arc<Features<T>>, nodes: usize) -> Result<Arc<Features<T>>> {
    if !graph.is_sparse() || graph.cols() >= nodes {
        return Ok(graph);
    }
    let graph = Arc::try_unwrap(graph).unwrap_or_else(|shared| (*shared).clone());
    Ok(Arc::new(graph.with_cols(nodes)?))
}

/// `train svd`.
pub(super) fn svd(args: &SvdArgs, ui: &Ui) -> Result<Exit> {
    match args.matrix.dtype {
        DtypeName::F32 => svd_of::<f32>(args, ui),
        DtypeName::F64 => svd_of::<f64>(args, ui),
    }
}

fn svd_of<T: Number>(args: &SvdArgs, ui: &Ui) -> Result<Exit> {
    let outputs = [args.output.as_deref(), args.transformed.as_deref()];
    for path in outputs.iter().flatten() {
        ensure!(
            output::extension(path) == "npy",
            "{}: expected a name that ends in .npy, for an array with two axes",
            path.display()
        );
    }
    let input = Input::<T>::new(&args.matrix, &outputs, ui)?;
    let params = TruncatedSvd::params(args.n_components.get())
        .tolerance(args.tol)
        .max_iter(args.max_iter.get())
        .seed(args.seed)
        .matrix_options(args.matrix.matrix_options());
    let params = if args.centre {
        params.centred()
    } else {
        params
    };
    let bar = ui.iterations("residual", args.tol);
    let watch = |step| bar.iteration(step);
    let (device, x) = (&input.device, input.features());
    let model = match &checkpoints::of(&args.matrix.checkpoint, ui) {
        None => params.fit_watched(device, x, watch)?,
        Some(checkpoint) => params.fit_with_checkpoint(device, x, checkpoint, watch)?,
    };
    drop(bar);
    if let Some(path) = &args.output {
        write_array(path, model.components().clone())?;
    }
    if let Some(path) = &args.transformed {
        // Computed by all processes, of which one writes.
        write_array(path, model.transform(&input.device, input.features())?)?;
    }
    checkpoints::remove(&args.matrix.checkpoint, ui);
    tell_svd(&model, args, &input, ui)
}

fn tell_svd<T: Number>(
    model: &SvdModel,
    args: &SvdArgs,
    input: &Input<T>,
    ui: &Ui,
) -> Result<Exit> {
    let mut told = Told::new("svd", "Singular value decomposition", &args.matrix, input);
    let shares = model.explained_variance_ratio();
    told.value("singular_values", json!(model.singular_values()));
    told.value("explained_variance", json!(model.explained_variance()));
    told.value("explained_variance_ratio", json!(shares));
    if args.output.is_none() {
        let rows: Vec<Vec<f64>> = model
            .components()
            .rows()
            .into_iter()
            .map(|v| v.to_vec())
            .collect();
        told.value("components", json!(rows));
    }
    for (i, (sigma, share)) in model.singular_values().iter().zip(&shares).enumerate() {
        let line = format!("{}, {:.2} % of the variance", figure(*sigma), 100.0 * share);
        told.line(&format!("σ[{i}]"), line);
    }
    let named = model.singular_values().iter().enumerate();
    told.listed.push(Listed {
        title: "Singular values".into(),
        stem: "singular-values".into(),
        value: "singular value".into(),
        all: named
            .map(|(i, sigma)| (format!("σ[{i}]"), *sigma))
            .collect(),
        shares,
    });
    told.finish(input, model.report(), args.tol, ui)
}

/// What there is to say about a result: as JSON and as a listing.
struct Told<'a> {
    args: &'a MatrixArgs,
    title: &'static str,
    device: String,
    memory: MemoryFacts,
    parse_seconds: f64,
    density: f64,
    values: Map<String, Value>,
    lines: Vec<(String, String)>,
    listed: Vec<Listed>,
}

/// Nodes that a page lists.
const ON_PAGE: usize = 50;

/// What a page shows besides; `--json` has it too.
#[derive(serde::Serialize)]
struct Details {
    tolerance: f64,
    data: DataFacts,
    hardware: Hardware,
    phases: Phases,
}

impl<'a> Told<'a> {
    fn new<T>(
        model: &str,
        title: &'static str,
        args: &'a MatrixArgs,
        input: &Input<T>,
    ) -> Told<'a> {
        let mut values = Map::new();
        values.insert("model".into(), model.into());
        values.insert("version".into(), env!("CARGO_PKG_VERSION").into());
        Told {
            args,
            title,
            device: input.device.to_string(),
            memory: MemoryFacts::of(&input.device),
            parse_seconds: input.data.seconds,
            density: input.data.stats.density(),
            values,
            lines: Vec::new(),
            listed: Vec::new(),
        }
    }

    fn value(&mut self, name: &str, value: Value) {
        self.values.insert(name.into(), value);
    }

    fn line(&mut self, name: &str, value: String) {
        self.lines.push((name.into(), value));
    }

    /// Lists the largest scores.
    fn ranking(&mut self, name: &str, scores: &[f64]) {
        for (node, score) in largest(scores, LISTED) {
            self.line(&format!("{name}[{node}]"), figure(score));
        }
        let named = |(node, score): (usize, f64)| (format!("{name} {node}"), score);
        self.listed.push(Listed {
            title: format!("Largest scores: {name}"),
            stem: format!("top-{name}"),
            value: "score".into(),
            all: largest(scores, ON_PAGE).into_iter().map(named).collect(),
            shares: Vec::new(),
        });
    }

    /// The page, where one is requested.
    fn details<T: Number>(
        &self,
        input: &Input<T>,
        report: &SpectralReport,
        tolerance: f64,
    ) -> Option<Details> {
        if !self.args.report.is_wanted() {
            return None;
        }
        let (device, mut phases) = (&input.device, Phases::default());
        let cost = |seconds: f64| PhaseCost {
            seconds,
            ..PhaseCost::default()
        };
        let read = PhaseCost {
            read_bytes: input.data.bytes,
            ..cost(input.data.seconds)
        };
        phases.add(Phase::Read, read);
        phases.add(Phase::Place, cost(report.transfer_seconds));
        phases.add(Phase::Solve, cost(report.seconds - report.transfer_seconds));
        let features = &input.data.features;
        let facts = phases.time(Phase::Report, device, || {
            DataFacts::of(features, &input.data.stats, &ColumnMoments::of(features))
        });
        Some(Details {
            tolerance,
            data: facts,
            hardware: Hardware::of_device(device, T::DTYPE, report.peak_device_bytes),
            phases,
        })
    }

    fn write_page(&self, details: &Details, report: &SpectralReport, ui: &Ui) -> Result<()> {
        let page = SpectralPage {
            title: self.title,
            source: &pages::source(&self.args.data),
            command: ui.command(),
            report,
            tolerance: details.tolerance,
            listed: &self.listed,
            data: &details.data,
            hardware: &details.hardware,
            phases: &details.phases,
        };
        pages::write(&self.args.report, &page.report(), ui)
    }

    /// Prints it, and judges the convergence.
    fn finish<T: Number>(
        mut self,
        input: &Input<T>,
        report: &SpectralReport,
        tolerance: f64,
        ui: &Ui,
    ) -> Result<Exit> {
        let details = self.details(input, report, tolerance);
        if let Some(details) = &details {
            self.write_page(details, report, ui)?;
        }
        if self.args.json {
            self.add_course(report)?;
            if let Some(details) = &details {
                pages::extend(&mut self.values, details)?;
            }
            output::print_json(&self.values)?;
        } else {
            output::print(format!("{}\n{}", self.title, self.listing(report)))?;
        }
        if report.converged {
            return Ok(Exit::Success);
        }
        ui.warn(format_args!(
            "NOT CONVERGED after {} products: the change is {:.1e}, the tolerance is {tolerance:.1e}; raise --max-iter, or raise --tol",
            report.n_iter, report.change
        ));
        Ok(if self.args.strict {
            Exit::NotConverged
        } else {
            Exit::Success
        })
    }

    fn add_course(&mut self, report: &SpectralReport) -> Result<()> {
        let course = serde_json::to_value(report).context("cannot write the report as JSON")?;
        if let Value::Object(course) = course {
            self.values.extend(course);
        }
        self.values
            .insert("device_name".into(), report.device.clone().into());
        self.values
            .insert("device".into(), self.device.clone().into());
        self.values.insert("memory".into(), json!(self.memory));
        self.values
            .insert("dtype".into(), dtype_name(self.args.dtype).into());
        self.values.insert("density".into(), self.density.into());
        self.values
            .insert("parse_seconds".into(), self.parse_seconds.into());
        Ok(())
    }

    fn listing(&self, report: &SpectralReport) -> Listing {
        let verdict = if report.converged {
            "converged"
        } else {
            "NOT CONVERGED"
        };
        let dtype = dtype_name(self.args.dtype);
        let mut lines = Listing::new();
        lines
            .line("matrix", format_args!("{} x {}", report.rows, report.cols))
            .line(
                "stored entries",
                format_args!("{} ({:.4} %)", report.nnz, 100.0 * self.density),
            )
            .line("reading", seconds(self.parse_seconds))
            .line(
                "device",
                format_args!("{} ({}), {dtype}", report.device, self.device),
            )
            .line("transfer", seconds(report.transfer_seconds))
            .line("products", format_args!("{}, {verdict}", report.n_iter))
            .line("last change", format_args!("{:.1e}", report.change))
            .line("time", seconds(report.seconds))
            .line("peak device memory", self.memory.line());
        for (name, value) in &self.lines {
            lines.line(name, value);
        }
        lines
    }
}

fn dtype_name(dtype: DtypeName) -> &'static str {
    match dtype {
        DtypeName::F32 => "f32",
        DtypeName::F64 => "f64",
    }
}

fn write_scores(path: Option<&Path>, scores: &[f64]) -> Result<()> {
    match path {
        Some(path) => output::write_numbers(path, scores),
        None => Ok(()),
    }
}

fn write_array<T: Element>(path: &Path, array: ndarray::Array2<T>) -> Result<()> {
    if output::is_silent() {
        return Ok(());
    }
    Ok(io::write_npy(path, &Features::Dense(array))?)
}
