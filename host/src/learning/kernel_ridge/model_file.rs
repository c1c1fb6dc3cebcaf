//! The model file: safetensors with `points` (N × D) and `dual_coef` (N), f64, and the parameters as metadata.

use std::collections::HashMap;
use std::path::Path;

use ndarray::Array2;
use safetensors::tensor::{Dtype as TensorType, SafeTensors, TensorView, serialize};

use super::KernelModel;
use crate::learning::ModelError;
use crate::learning::model_file::schema_of;
use crate::matrix::Dtype;
use crate::ops::{Kernel, KernelFunction};
use crate::whole::write_whole;

const FORMAT: &str = "warpfuse-model";
const KIND: &str = "kernel-ridge";

impl KernelModel {
    /// Writes the model to `path`; an interrupted write leaves what was there.
    ///
    /// # Errors
    /// [`ModelError::Io`] when the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), ModelError> {
        let bytes = self.to_bytes().map_err(|reason| format(path, reason))?;
        write_whole(path, &bytes).map_err(|source| ModelError::Io {
            action: "write",
            path: path.to_owned(),
            source,
        })
    }

    /// Reads a model that [`KernelModel::save`] wrote.
    ///
    /// # Errors
    /// [`ModelError::Io`] when the file cannot be read, [`ModelError::Format`] when it is something else.
    pub fn load(path: &Path) -> Result<KernelModel, ModelError> {
        let bytes = std::fs::read(path).map_err(|source| ModelError::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        Self::read(path, &bytes)
    }

    /// [`KernelModel::load`] of a file that has been read.
    pub(in crate::learning) fn read(path: &Path, bytes: &[u8]) -> Result<KernelModel, ModelError> {
        Self::from_bytes(bytes).map_err(|reason| format(path, reason))
    }

    fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let points: Vec<f64> = self.points.iter().copied().collect();
        let (rows, columns) = self.points.dim();
        let points = tensor(vec![rows, columns], bytemuck::cast_slice(&points))?;
        let dual = tensor(vec![rows], bytemuck::cast_slice(&self.dual))?;
        let report = serde_json::to_string(&self.report).map_err(|error| error.to_string())?;
        let metadata = [
            ("format", FORMAT.to_owned()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("kind", KIND.to_owned()),
            ("dtype", self.dtype.to_string()),
            ("function", self.kernel.function().name().to_owned()),
            ("length_scale", self.kernel.length_scale().to_string()),
            ("alpha", self.alpha.to_string()),
            ("report", report),
        ];
        let mut metadata: HashMap<String, String> =
            metadata.map(|(key, value)| (key.to_owned(), value)).into();
        if !self.schema.is_empty() {
            let schema = serde_json::to_string(&self.schema).map_err(|error| error.to_string())?;
            metadata.insert("schema".to_owned(), schema);
        }
        let tensors = [("points", points), ("dual_coef", dual)];
        serialize(tensors, Some(metadata)).map_err(|error| error.to_string())
    }

    fn from_bytes(bytes: &[u8]) -> Result<KernelModel, String> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
        let metadata = header
            .metadata()
            .as_ref()
            .ok_or("its header has no metadata")?;
        let field = |name: &str| {
            let found = metadata.get(name).map(String::as_str);
            found.ok_or(format!("its metadata lack `{name}`"))
        };
        let (format, kind) = (field("format")?, field("kind")?);
        if (format, kind) != (FORMAT, KIND) {
            return Err(format!(
                "expected format {FORMAT}, kind {KIND}, found format {format}, kind {kind}"
            ));
        }
        let number = |name: &str| -> Result<f64, String> {
            let text = field(name)?;
            text.parse()
                .map_err(|_| format!("`{name}` is `{text}`, expected a number"))
        };
        let kernel = Kernel::new(function(field("function")?)?, number("length_scale")?);
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| error.to_string())?;
        let (shape, points) = floats(&tensors, "points")?;
        let (_, dual) = floats(&tensors, "dual_coef")?;
        let [rows, columns] = shape[..] else {
            return Err("`points` is no matrix".into());
        };
        if dual.len() != rows {
            return Err(format!(
                "there are {rows} points but {} coefficients",
                dual.len()
            ));
        }
        let points = Array2::from_shape_vec((rows, columns), points);
        let points = points.map_err(|error| error.to_string())?;
        let dtype = match field("dtype")? {
            "f32" => Dtype::F32,
            _ => Dtype::F64,
        };
        let kernel = kernel.map_err(|error| error.to_string())?;
        let report = serde_json::from_str(field("report")?).map_err(|error| error.to_string())?;
        let schema = schema_of(metadata.get("schema"), columns)?;
        let model = KernelModel::new(dtype, kernel, number("alpha")?, points, dual, report);
        Ok(model.with_schema(schema))
    }
}

/// Whether the bytes of a file say that they are a kernel model.
pub(in crate::learning) fn holds_kernel_model(bytes: &[u8]) -> bool {
    let header = SafeTensors::read_metadata(bytes).map(|(_, header)| header);
    let kind = header.ok().and_then(|header| {
        let metadata = header.metadata().as_ref()?;
        metadata.get("kind").cloned()
    });
    kind.as_deref() == Some(KIND)
}

fn tensor(shape: Vec<usize>, bytes: &[u8]) -> Result<TensorView<'_>, String> {
    TensorView::new(TensorType::F64, shape, bytes).map_err(|error| error.to_string())
}

fn floats(tensors: &SafeTensors<'_>, name: &str) -> Result<(Vec<usize>, Vec<f64>), String> {
    let tensor = tensors.tensor(name).map_err(|error| error.to_string())?;
    if tensor.dtype() != TensorType::F64 {
        return Err(format!(
            "`{name}` has type {:?}, expected F64",
            tensor.dtype()
        ));
    }
    let numbers = tensor.data().as_chunks().0.iter();
    let values = numbers.map(|bytes| f64::from_le_bytes(*bytes)).collect();
    Ok((tensor.shape().to_vec(), values))
}

fn function(name: &str) -> Result<KernelFunction, String> {
    let found = KernelFunction::ALL
        .into_iter()
        .find(|function| function.name() == name);
    found.ok_or(format!("`{name}` is no kernel function"))
}

fn format(path: &Path, reason: String) -> ModelError {
    ModelError::Format {
        path: path.to_owned(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::learning::KernelRidge;

    #[test]
    fn a_saved_model_comes_back_and_other_files_do_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("model.safetensors");
        let x = ndarray::array![[0.0, 1.0], [1.0, 0.5], [2.0, -1.0]];
        let params = KernelRidge::params()
            .kernel(KernelFunction::Matern32, 0.7)
            .alpha(0.1);
        let model = params
            .fit(&Device::cpu(), x.view(), &[1.0, 2.0, 3.0])
            .expect("fits");
        model.save(&path).expect("written");
        assert_eq!(KernelModel::load(&path).expect("read"), model);
        std::fs::write(&path, b"something else").expect("written");
        assert!(matches!(
            KernelModel::load(&path),
            Err(ModelError::Format { .. })
        ));
    }
}
