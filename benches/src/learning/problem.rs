//! The data of a fit: features with the labels that a noisy linear function gives.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use warpfuse::io::synth::NamedShape;
use warpfuse::matrix::{ColumnMoments, Element, Features, Storage};
use warpfuse::ops::Number;

use crate::case::SEED;

/// The share of labels that are the other one.
const FLIPPED: f64 = 0.1;

/// Features and labels of one shape.
pub struct Problem<T: Number> {
    /// X.
    pub features: Arc<Features<T>>,
    /// b, 0 or 1 each.
    pub targets: Vec<T>,
}

impl<T: Number> Problem<T> {
    /// Made from the seed of all cases.
    ///
    /// # Errors
    /// When the data do not fit memory.
    pub fn new(name: NamedShape) -> Result<Self> {
        let made = name.spec(1.0, SEED)?.generate::<T>()?;
        let scores = made.dataset.targets;
        let scores = scores.context("synthetic data have targets")?;
        let mean = scores.iter().map(|b| Element::to_f64(*b)).sum::<f64>() / scores.len() as f64;
        let label = |(row, score): (usize, &T)| {
            let flipped = crate::data::uniform(SEED + 40, row) < FLIPPED;
            let yes = (Element::to_f64(*score) > mean) != flipped;
            <T as Element>::from_f64(f64::from(u8::from(yes)))
        };
        Ok(Problem {
            targets: scores.iter().enumerate().map(label).collect(),
            features: Arc::new(made.dataset.features),
        })
    }

    /// The preconditioner of the estimator: the inverse of the diagonal of ¼·XᵀX / m + λ, 0 for empty columns.
    pub fn inverse_diagonal(&self, l2: f64) -> Vec<T> {
        let moments = ColumnMoments::of(&self.features);
        let rows = self.features.rows() as f64;
        let squares = moments.sum_of_squares.iter();
        squares
            .map(|square| match *square {
                0.0 => T::default(),
                square => <T as Element>::from_f64(1.0 / (0.25 * square / rows + l2)),
            })
            .collect()
    }

    /// Writes the arrays into a folder, for another program.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn dump(&self, name: NamedShape, folder: &Path) -> Result<()> {
        let write = |what: &str, bytes: &[u8]| {
            let path = folder.join(format!("{name}.{what}"));
            std::fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))
        };
        write("targets", bytemuck::cast_slice(&self.targets))?;
        match self.features.storage() {
            Storage::Dense(x) => {
                let values = x.as_slice().context("made row by row")?;
                write("values", bytemuck::cast_slice(values))
            }
            Storage::Sparse(x) => {
                write("offsets", bytemuck::cast_slice(x.indptr().raw_storage()))?;
                write("indices", bytemuck::cast_slice(x.indices()))?;
                write("values", bytemuck::cast_slice(x.data()))
            }
        }
    }
}
