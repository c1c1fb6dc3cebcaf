//! The model file: safetensors, readable from any language.
//!
//! Tensors `coef` (n elements) and `intercept` (1 element, f64); the metadata hold `format`, `version`, `kind`,
//! `params` and `report` as JSON. A file is written beside its target and renamed, so that an interrupted
//! write leaves the old one.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use safetensors::tensor::{Dtype as TensorType, SafeTensors, TensorView, serialize};

use super::{LinearModel, ModelError};
use crate::matrix::Dtype;

const FORMAT: &str = "warpfuse-model";
const KIND: &str = "linreg";

impl LinearModel {
    /// Writes the model to `path`.
    ///
    /// # Errors
    /// [`ModelError::Io`] when the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let bytes = self
            .to_bytes()
            .map_err(|reason| format_error(path, reason))?;
        let io = |source| ModelError::Io {
            action: "write",
            path: path.to_owned(),
            source,
        };
        let folder = path
            .parent()
            .filter(|p| !p.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .prefix(".model-")
            .tempfile_in(folder)
            .map_err(io)?;
        file.write_all(&bytes).map_err(io)?;
        file.as_file().sync_all().map_err(io)?;
        file.persist(path).map_err(|error| io(error.error))?;
        Ok(())
    }

    /// Reads a model that [`LinearModel::save`] wrote.
    ///
    /// # Errors
    /// [`ModelError::Io`] when the file cannot be read, [`ModelError::Format`] when it is something else.
    pub fn load(path: &Path) -> Result<LinearModel, ModelError> {
        let read = std::fs::read(path);
        let bytes = read.map_err(|source| ModelError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        Self::from_bytes(&bytes).map_err(|reason| format_error(path, reason))
    }

    fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let (dtype, coef) = match self.dtype() {
            Dtype::F32 => {
                let narrow: Vec<f32> = self.coef().iter().map(|w| *w as f32).collect();
                (TensorType::F32, bytemuck::cast_slice(&narrow).to_vec())
            }
            Dtype::F64 => (TensorType::F64, bytemuck::cast_slice(self.coef()).to_vec()),
        };
        let intercept = self.intercept().to_le_bytes();
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let coef = TensorView::new(dtype, vec![self.coef().len()], &coef).map_err(|e| text(&e))?;
        let intercept =
            TensorView::new(TensorType::F64, vec![1], &intercept).map_err(|e| text(&e))?;
        let json = |value: Result<String, serde_json::Error>| value.map_err(|e| text(&e));
        let metadata = HashMap::from([
            ("format".to_owned(), FORMAT.to_owned()),
            ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            ("kind".to_owned(), KIND.to_owned()),
            (
                "params".to_owned(),
                json(serde_json::to_string(self.params()))?,
            ),
            (
                "report".to_owned(),
                json(serde_json::to_string(self.report()))?,
            ),
        ]);
        serialize([("coef", coef), ("intercept", intercept)], Some(metadata)).map_err(|e| text(&e))
    }

    fn from_bytes(bytes: &[u8]) -> Result<LinearModel, String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|e| e.to_string())?;
        let metadata = header
            .metadata()
            .as_ref()
            .ok_or("its header has no metadata")?;
        let field = |name: &str| {
            metadata
                .get(name)
                .ok_or(format!("its metadata lack `{name}`"))
        };
        if field("format")? != FORMAT || field("kind")? != KIND {
            return Err(format!("expected format {FORMAT}, kind {KIND}"));
        }
        let params = serde_json::from_str(field("params")?).map_err(|e| e.to_string())?;
        let report = serde_json::from_str(field("report")?).map_err(|e| e.to_string())?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
        let (dtype, coef) = floats(&tensors, "coef")?;
        let (_, intercept) = floats(&tensors, "intercept")?;
        let [intercept] = intercept[..] else {
            return Err("`intercept` is not one number".into());
        };
        Ok(LinearModel::new(dtype, coef, intercept, params, report))
    }
}

fn floats(tensors: &SafeTensors<'_>, name: &str) -> Result<(Dtype, Vec<f64>), String> {
    let tensor = tensors.tensor(name).map_err(|e| e.to_string())?;
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
        TensorType::F64 => Ok((
            Dtype::F64,
            bytes
                .as_chunks()
                .0
                .iter()
                .map(|b| f64::from_le_bytes(*b))
                .collect(),
        )),
        other => Err(format!("`{name}` has type {other:?}, expected F32 or F64")),
    }
}

fn format_error(path: &Path, reason: String) -> ModelError {
    ModelError::Format {
        path: path.to_owned(),
        reason,
    }
}
