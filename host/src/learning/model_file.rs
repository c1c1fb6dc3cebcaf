//! The model file: safetensors, readable from any language.
//!
//! Tensors `coef` (n elements, or k × n with one row per linear predictor of a classifier) and `intercept` (one
//! element per linear predictor, f64); the metadata hold `format`, `version`, `kind` (`regressor` or `classifier`; files of
//! version 0.1 may say `linreg`), `params` and `report` as JSON, `classes` as JSON for a classifier,
//! and `schema` as JSON where something is known about the columns: index base, names, how a table became numbers. A file is written beside
//! its target and renamed, so that an interrupted write leaves the old one.

mod linreg;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use safetensors::tensor::{Dtype as TensorType, SafeTensors};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::fitted::Fitted;
use super::liblinear::LiblinearModel;
use super::report::FitReport;
use super::weights::Weights;
use super::{Classes, Model, ModelError, RegressorParams};
use crate::matrix::{Dtype, Schema, TableEncoding};
use crate::whole::write_whole;

const FORMAT: &str = "warpfuse-model";
/// How a LIBLINEAR model file begins.
const LIBLINEAR: &[u8] = b"solver_type ";

impl Model {
    /// Writes the model to `path`.
    ///
    /// # Errors
    /// [`ModelError::Io`] when the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let parts = Parts::of(self);
        write(path, parts)
    }

    /// Reads a model that was saved, or one that LIBLINEAR wrote.
    ///
    /// # Errors
    /// [`ModelError::Io`] when the file cannot be read, [`ModelError::Format`] when it is something else.
    pub fn load(path: &Path) -> Result<Model, ModelError> {
        let read = std::fs::read(path);
        let bytes = read.map_err(|source| io_error(path, "read", source))?;
        Self::read(path, &bytes)
    }

    /// [`Model::load`] of a file that has been read.
    pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Model, ModelError> {
        let model = if bytes.starts_with(LIBLINEAR) {
            of_liblinear(bytes)
        } else {
            of_bytes(bytes)
        };
        model.map_err(|reason| format_error(path, reason))
    }
}

/// A model taken apart.
struct Parts {
    kind: &'static str,
    dtype: Dtype,
    /// Of `coef`: n, or k and n.
    shape: Vec<usize>,
    coef: Vec<f64>,
    intercept: Vec<f64>,
    metadata: Vec<(&'static str, String)>,
}

impl Parts {
    fn of(model: &Model) -> Result<Parts, String> {
        let (kind, k) = (model.kind(), model.coef().len());
        let (mut metadata, shape) = match model {
            Model::Regressor(model) => {
                let params = json(model.params())?;
                (vec![("params", params)], vec![model.cols()])
            }
            Model::Classifier(model) => {
                let (classes, params) = (json(model.classes())?, json(model.params())?);
                let metadata = vec![("classes", classes), ("params", params)];
                (metadata, vec![k, model.cols()])
            }
        };
        let report = match model.report() {
            report if report.reproducible => json(&report.without_times())?,
            report => json(report)?,
        };
        metadata.push(("report", report));
        if !model.schema().is_empty() {
            metadata.push(("schema", json(model.schema())?));
        }
        Ok(Parts {
            kind,
            dtype: model.dtype(),
            shape,
            coef: model.coef().concat(),
            intercept: model.intercept(),
            metadata,
        })
    }

    fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let (dtype, coef) = match self.dtype {
            Dtype::F32 => {
                let narrow: Vec<f32> = self.coef.iter().map(|w| *w as f32).collect();
                (TensorType::F32, bytemuck::cast_slice(&narrow).to_vec())
            }
            Dtype::F64 => (TensorType::F64, bytemuck::cast_slice(&self.coef).to_vec()),
        };
        let intercept = bytemuck::cast_slice(&self.intercept);
        let fixed = [
            ("format", FORMAT.to_owned()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("kind", self.kind.to_owned()),
        ];
        let metadata: BTreeMap<&str, String> =
            fixed.into_iter().chain(self.metadata.clone()).collect();
        let end = coef.len() + intercept.len();
        let header = serde_json::json!({
            "__metadata__": metadata,
            "coef": {"dtype": dtype, "shape": self.shape, "data_offsets": [0, coef.len()]},
            "intercept": {
                "dtype": TensorType::F64,
                "shape": [self.intercept.len()],
                "data_offsets": [coef.len(), end],
            },
        });
        // With the keys in order, unlike that of the library, so that equal models are equal files.
        let mut header = header.to_string().into_bytes();
        header.resize(header.len().next_multiple_of(8), b' ');
        let length = (header.len() as u64).to_le_bytes();
        Ok([&length[..], &header, &coef, intercept].concat())
    }
}

fn of_liblinear(bytes: &[u8]) -> Result<Model, String> {
    let content = std::str::from_utf8(bytes).map_err(text)?;
    Ok(LiblinearModel::of_text(content).map_err(text)?.into_model())
}

fn of_bytes(bytes: &[u8]) -> Result<Model, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(text)?;
    let metadata = header.metadata().as_ref();
    let metadata = metadata.ok_or("its header has no metadata")?;
    let field = |name: &str| {
        let found = metadata.get(name);
        found.ok_or(format!("its metadata lack `{name}`"))
    };
    let format = field("format")?;
    if format != FORMAT {
        return Err(format!("expected format {FORMAT}, found {format}"));
    }
    check_version(field("version")?)?;
    let tensors = SafeTensors::deserialize(bytes).map_err(text)?;
    let (dtype, coef) = floats(&tensors, "coef")?;
    let (_, intercept) = floats(&tensors, "intercept")?;
    let weights = weights(coef, intercept)?;
    let (params, report) = (field("params")?, field("report")?);
    let regressor = |params: RegressorParams, report: FitReport| {
        let weights = one_predictor(weights.clone())?;
        Ok(Model::Regressor(Fitted::new(
            dtype,
            weights,
            (),
            params,
            report,
        )))
    };
    let schema = schema_of(metadata.get("schema"), weights.cols())?;
    let model = match field("kind")?.as_str() {
        "linreg" => {
            let (params, report) = linreg::read(params, report, &weights)?;
            regressor(params, report)
        }
        "regressor" => regressor(of_json(params)?, of_json(report)?),
        "classifier" => {
            let classes: Classes = of_json(field("classes")?)?;
            let wanted = if classes.len() == 2 { 1 } else { classes.len() };
            // LIBLINEAR's joint machine has a predictor for each of two classes.
            if classes.len() < 2 || ![wanted, classes.len()].contains(&weights.coef.len()) {
                let (found, k) = (weights.coef.len(), classes.len());
                return Err(format!("it has {found} linear predictors for {k} classes"));
            }
            let (params, report) = (of_json(params)?, of_json(report)?);
            let model = Fitted::new(dtype, weights, classes, params, report);
            Ok(Model::Classifier(model))
        }
        other => Err(format!(
            "expected kind regressor or classifier, found {other}"
        )),
    };
    Ok(model?.with_schema(schema))
}

/// What the file says about its `cols` columns; nothing in files of earlier programs.
pub(super) fn schema_of(found: Option<&String>, cols: usize) -> Result<Schema, String> {
    let Some(found) = found else {
        return Ok(Schema::default());
    };
    let schema: Schema = of_json(found)?;
    let names = schema.names.as_ref().map(Vec::len);
    let table = schema.table.as_ref().map(TableEncoding::width);
    match names.into_iter().chain(table).find(|named| *named != cols) {
        None => Ok(schema),
        Some(named) => Err(format!(
            "its schema is of {named} columns, and there are {cols}"
        )),
    }
}

/// Fails at files of versions that this one knows nothing of.
fn check_version(found: &str) -> Result<(), String> {
    let parse = |version: &str| -> Option<(u32, u32)> {
        let mut numbers = version.split('.').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??))
    };
    let own = env!("CARGO_PKG_VERSION");
    match (parse(found), parse(own)) {
        (Some(found), Some(own)) if found <= own => Ok(()),
        _ => Err(format!(
            "expected a file of version {own} or earlier, found version {found}; read it with the program that wrote it"
        )),
    }
}

/// Coefficients cut into as many lists as there are intercepts.
fn weights(coef: Vec<f64>, intercept: Vec<f64>) -> Result<Weights, String> {
    let k = intercept.len();
    if k == 0 || !coef.len().is_multiple_of(k) {
        return Err(format!(
            "it has {} coefficients for {k} intercepts",
            coef.len()
        ));
    }
    if let Some(at) = coef.iter().chain(&intercept).position(|w| !w.is_finite()) {
        return Err(match at < coef.len() {
            true => format!("coefficient {at} (counted from 0) is {}", coef[at]),
            false => "an intercept is not finite".to_owned(),
        });
    }
    let n = coef.len() / k;
    let coef = (0..k).map(|c| coef[c * n..(c + 1) * n].to_vec()).collect();
    Ok(Weights { coef, intercept })
}

fn one_predictor(weights: Weights) -> Result<Weights, String> {
    match weights.coef.len() {
        1 => Ok(weights),
        found => Err(format!(
            "expected 1 intercept of a regression, found {found}"
        )),
    }
}

fn floats(tensors: &SafeTensors<'_>, name: &str) -> Result<(Dtype, Vec<f64>), String> {
    let tensor = tensors.tensor(name).map_err(text)?;
    let bytes = tensor.data();
    match tensor.dtype() {
        TensorType::F32 => {
            let values = bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| f64::from(f32::from_le_bytes(*b)));
            Ok((Dtype::F32, values.collect()))
        }
        TensorType::F64 => {
            let values = bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b));
            Ok((Dtype::F64, values.collect()))
        }
        other => Err(format!("`{name}` has type {other:?}, expected F32 or F64")),
    }
}

fn write(path: &Path, parts: Result<Parts, String>) -> Result<(), ModelError> {
    let bytes = parts
        .and_then(|parts| parts.to_bytes())
        .map_err(|reason| format_error(path, reason))?;
    write_whole(path, &bytes).map_err(|source| io_error(path, "write", source))
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(text)
}

fn of_json<V: DeserializeOwned>(value: &str) -> Result<V, String> {
    serde_json::from_str(value).map_err(text)
}

fn text(error: impl Display) -> String {
    error.to_string()
}

pub(super) fn io_error(path: &Path, action: &'static str, source: std::io::Error) -> ModelError {
    ModelError::Io {
        action,
        path: path.to_owned(),
        source,
    }
}

fn format_error(path: &Path, reason: String) -> ModelError {
    ModelError::Format {
        path: path.to_owned(),
        reason,
    }
}
