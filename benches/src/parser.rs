//! The LIBSVM parser over generated text.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use warpfuse::device::Device;
use warpfuse::io::{Columns, ReadOptions, read, write_libsvm};
use warpfuse::matrix::{Dataset, Element};
use warpfuse::ops::Number;

use crate::case::{Case, SEED};
use crate::data;
use crate::record::{Measured, Recorder};
use crate::sampling::Sampler;
use crate::shape::Shape;

/// Some 150 MB of text.
pub const SHAPE: Shape = Shape::Sparse {
    rows: 500_000,
    cols: 100_000,
    per_row: 20,
};

/// Records all cases of the family; `recorder` is one for the CPU.
///
/// # Errors
/// When a result cannot be written.
pub fn record(recorder: &Recorder, sampler: &Sampler) -> Result<()> {
    recorder.measure(&case::<f32>(), || measure::<f32>(sampler))?;
    recorder.measure(&case::<f64>(), || measure::<f64>(sampler))
}

/// The name of the case of an element type.
pub fn case<T: Number>() -> Case {
    Case {
        family: "io",
        work: "parse_libsvm",
        shape: SHAPE,
        dtype: T::DTYPE.into(),
        seed: SEED,
    }
}

fn measure<T: Number>(sampler: &Sampler) -> Result<Measured> {
    let (text, data) = TextFile::write(data_set::<T>()?)?;
    ensure!(
        text.parse::<T>()? == data,
        "the data that were read are not those that were written"
    );
    let times = sampler.time(&Device::cpu(), || text.parse::<T>().map(drop))?;
    let variant = format!("{} threads", rayon::current_num_threads());
    // Shortest decimals read back exactly, as was just seen.
    let mut measured = Measured::new(variant, times, text.bytes).with_error(0.0);
    measured
        .details
        .insert("mb_per_s", times.gbs(text.bytes) * 1e3);
    Ok(measured)
}

fn data_set<T: Element>() -> Result<Dataset<T>> {
    let targets = Some(data::values(SHAPE.rows(), SEED + 50));
    Ok(Dataset {
        features: SHAPE.features(SEED)?,
        targets,
    })
}

/// A temporary file, removed when dropped. It stays in the page cache: the parser is measured, not the disk.
pub struct TextFile {
    path: PathBuf,
    /// Its size.
    pub bytes: usize,
}

impl TextFile {
    /// The benchmark's text for an element type.
    ///
    /// # Errors
    /// When there is no room for temporary files.
    pub fn new<T: Element>() -> Result<TextFile> {
        TextFile::write(data_set::<T>()?).map(|(text, _)| text)
    }

    fn write<T: Element>(data: Dataset<T>) -> Result<(TextFile, Dataset<T>)> {
        let name = format!("warpfuse-bench-{}-{}.svm", std::process::id(), T::DTYPE);
        let mut text = TextFile {
            path: std::env::temp_dir().join(name),
            bytes: 0,
        };
        write_libsvm(&text.path, &data)?;
        let size = fs::metadata(&text.path).with_context(|| format!("{}", text.path.display()))?;
        text.bytes = size.len() as usize;
        Ok((text, data))
    }

    /// Reads the file as users do.
    ///
    /// # Errors
    /// When the file is gone.
    pub fn parse<T: Element>(&self) -> Result<Dataset<T>> {
        let options = ReadOptions {
            columns: Columns::Exactly(SHAPE.cols()),
            ..ReadOptions::default()
        };
        Ok(read(&self.path, &options)?)
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        // Where this fails, the system's own cleaning of temporary files is left.
        let _ = fs::remove_file(&self.path);
    }
}
