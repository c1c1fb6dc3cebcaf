//! `warpfuse predict`: model and data → predictions.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use ndarray::Array2;
use serde_json::{Map, Value, json};

use super::applied::{Applied, Details};
use super::args::{ApplyArgs, ComputeArgs, PredictArgs};
use super::data::Loaded;
use super::exit::Exit;
use super::fitted::{figures, warn_undefined};
use super::progress::Ui;
use super::targets::{Known, Task};
use super::{data, device, output, pages};
use crate::device::{Device, Phase, PhaseCost, Phases};
use crate::io::{self, TableTargets};
use crate::learning::{Classifier, Evaluation, Labels, Model, SavedModel};
use crate::matrix::{Dtype, Element, Features};
use crate::ops::Number;

/// Applies a model.
pub(super) fn run(args: &PredictArgs, ui: &Ui) -> Result<Exit> {
    let model = SavedModel::load(&args.apply.model)?;
    match dtype(&args.compute, &model) {
        Dtype::F32 => predict::<f32>(&model, args, ui),
        Dtype::F64 => predict::<f64>(&model, args, ui),
    }
}

/// `--dtype`, or the model's own.
pub(super) fn dtype(args: &ComputeArgs, model: &SavedModel) -> Dtype {
    args.dtype.map_or_else(|| model.dtype(), Dtype::from)
}

/// What a model predicts.
pub(super) fn task(model: &SavedModel) -> Task {
    match model.classifier() {
        Some(_) => Task::Labels,
        None => Task::Numbers,
    }
}

/// What is printed or written.
enum Output<T> {
    Numbers(Vec<T>),
    Names(Vec<String>),
    /// Probabilities or linear predictors: a row per sample.
    Table(Array2<T>),
}

fn predict<T: Number>(model: &SavedModel, args: &PredictArgs, ui: &Ui) -> Result<Exit> {
    if let Some(path) = &args.output {
        ensure!(
            !args.json || !output::is_stdout(path),
            "-o -: expected the name of a file with --json, which is printed to standard output"
        );
        output::check_place(path)?;
    }
    pages::check(&args.report)?;
    let device = device::open_for(args.compute.device, &args.apply.data, 1, ui)?;
    // A sparse file shows only columns that occur in it; the model knows how many there are.
    let reading = args.apply.reading(model, &args.read)?;
    let mut loaded = data::load_as::<T>(&args.apply.data, None, &reading, ui)?;
    let known = known_if_any(&mut loaded, &args.apply, model)?;
    let predicting = ui.doing("predicting");
    let predictions = apply(model, args, &device, loaded.features.clone())?;
    drop(predicting);
    let (evaluation, details) = match &known {
        Some(known) => score(model, args, &device, (&loaded, known), ui)?,
        None => {
            ensure!(
                !args.report.is_wanted(),
                "--report and --figures: expected targets that the model knows, found none; name them with --target, or use \
                 data that have them"
            );
            (None, None)
        }
    };
    if let Some(path) = &args.output {
        write(path, &predictions)?;
    }
    if args.json {
        let device = device.to_string();
        let rows = loaded.stats.rows;
        let figures = (evaluation.as_ref(), details.as_ref());
        print_json(&predictions, figures, (rows, &device), args)?;
    } else if args.output.is_none() {
        output::print(lines(&predictions))?;
    }
    if let Some(evaluation) = evaluation {
        warn_undefined(&evaluation, ui);
        let figures: Vec<String> = figures(&evaluation)
            .into_iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        ui.remark(format_args!(
            "{} on {} samples",
            figures.join(", "),
            loaded.stats.rows
        ));
    }
    Ok(Exit::Success)
}

/// Scores the predictions, with the page where one is requested.
fn score<T: Number>(
    model: &SavedModel,
    args: &PredictArgs,
    device: &Device,
    (loaded, known): (&Loaded<T>, &Known<T>),
    ui: &Ui,
) -> Result<(Option<Evaluation>, Option<Details>)> {
    let mut phases = Phases::default();
    let read = PhaseCost {
        seconds: loaded.seconds,
        read_bytes: loaded.bytes,
        ..PhaseCost::default()
    };
    phases.add(Phase::Read, read);
    let mut applied = Applied {
        model,
        file: &args.apply.model,
        source: &args.apply.data,
        title: "Predictions",
        device,
        args: &args.report,
        outcome: None,
        phases,
    };
    let (evaluation, details) = applied.evaluate(loaded, (known.targets(), None), ui)?;
    Ok((Some(evaluation), details))
}

/// Targets to score with. Labels in DATA that the model does not know may be placeholders: then there is no
/// score, unless `--target` asks for one.
fn known_if_any<T: Element>(
    loaded: &mut Loaded<T>,
    args: &ApplyArgs,
    model: &SavedModel,
) -> Result<Option<Known<T>>> {
    let task = task(model);
    if let Some(path) = &args.target {
        return Known::read(path, loaded.stats.rows, task).map(Some);
    }
    let is_empty = |targets: &TableTargets<T>| match targets {
        TableTargets::Numbers(numbers) => numbers.is_empty(),
        TableTargets::Text(texts) => texts.is_empty(),
    };
    let Some(targets) = loaded.targets.take().filter(|targets| !is_empty(targets)) else {
        return Ok(None);
    };
    let known = Known::of_targets(targets, task)?;
    Ok(match (&known, model.classifier()) {
        (Known::Labels { labels, .. }, Some(classifier)) => {
            classifier.classes().codes(labels).is_ok().then_some(known)
        }
        _ => Some(known),
    })
}

fn apply<T: Number>(
    model: &SavedModel,
    args: &PredictArgs,
    device: &Device,
    features: std::sync::Arc<Features<T>>,
) -> Result<Output<T>> {
    let Some(classifier) = model.classifier() else {
        ensure!(
            !args.proba,
            "--proba: expected a classifier, found a model that predicts numbers"
        );
        return Ok(Output::Numbers(match model {
            SavedModel::Linear(Model::Regressor(model)) if args.decision => {
                model.decision_function(device, features)?
            }
            SavedModel::Linear(model) => model.predict(device, features)?,
            SavedModel::Kernel(model) => model.predict(device, features.to_dense()?.view())?,
        }));
    };
    classify(classifier, args, device, features)
}

fn classify<T: Number>(
    classifier: &Classifier,
    args: &PredictArgs,
    device: &Device,
    features: std::sync::Arc<Features<T>>,
) -> Result<Output<T>> {
    let narrow = |table: Array2<f64>| Output::Table(table.mapv(<T as Element>::from_f64));
    if args.proba {
        if !classifier.is_probabilistic() {
            bail!(
                "--proba: expected a model with probabilities, found a support vector classifier; use --decision, or train logreg"
            );
        }
        return Ok(narrow(classifier.predict_proba(device, features)?));
    }
    if args.decision {
        return Ok(narrow(classifier.decision_function(device, features)?));
    }
    Ok(match classifier.predict(device, features)? {
        Labels::Numbers(numbers) => {
            Output::Numbers(numbers.into_iter().map(<T as Element>::from_f64).collect())
        }
        Labels::Text(names) => Output::Names(names),
    })
}

fn print_json<T: Element>(
    predictions: &Output<T>,
    (evaluation, details): (Option<&Evaluation>, Option<&Details>),
    (rows, device): (usize, &str),
    args: &PredictArgs,
) -> Result<()> {
    let mut all = Map::new();
    all.insert("rows".into(), rows.into());
    all.insert("device".into(), device.into());
    all.insert("output".into(), json!(args.output));
    if args.output.is_none() {
        all.insert("predictions".into(), to_json(predictions));
    }
    match evaluation.map(serde_json::to_value).transpose()? {
        Some(Value::Object(figures)) => all.extend(figures),
        _ => all.extend(["r2", "rmse"].map(|name| (name.to_owned(), Value::Null))),
    }
    if let Some(details) = details {
        pages::extend(&mut all, details)?;
    }
    output::print_json(&all)
}

fn to_json<T: Element>(predictions: &Output<T>) -> Value {
    let wide = |number: &T| number.to_f64();
    match predictions {
        Output::Numbers(numbers) => json!(numbers.iter().map(wide).collect::<Vec<_>>()),
        Output::Names(names) => json!(names),
        Output::Table(table) => {
            let row = |row: ndarray::ArrayView1<'_, T>| row.iter().map(wide).collect::<Vec<_>>();
            json!(table.rows().into_iter().map(row).collect::<Vec<_>>())
        }
    }
}

fn write<T: Element>(path: &Path, predictions: &Output<T>) -> Result<()> {
    match predictions {
        Output::Numbers(numbers) => output::write_numbers(path, numbers),
        Output::Table(table) if output::extension(path) == "npy" => {
            Ok(io::write_npy(path, &Features::Dense(table.clone()))?)
        }
        Output::Names(names) if output::extension(path) == "npy" => {
            Ok(io::write_text_vector(path, names)?)
        }
        _ => output::write_file(path, &lines(predictions)),
    }
}

/// One sample per line; the columns of a table are apart by blanks.
fn lines<T: Element>(predictions: &Output<T>) -> Vec<u8> {
    match predictions {
        Output::Numbers(numbers) => output::lines(numbers),
        Output::Names(names) => {
            let mut text = String::new();
            for name in names {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name}");
            }
            text.into_bytes()
        }
        Output::Table(table) => {
            let mut text = Vec::with_capacity(table.len() * 12);
            for row in table.rows() {
                for (column, number) in row.iter().enumerate() {
                    if column > 0 {
                        text.push(b' ');
                    }
                    number.write_decimal(&mut text);
                }
                text.push(b'\n');
            }
            text
        }
    }
}
