//! Dense synthetic data.

use ndarray::Array2;
use rayon::prelude::*;

use super::random::{Purpose, Stream};
use super::{ROWS_PER_STREAM, SynthError, Synthetic};
use super::{check_memory, check_parameter, check_shape, with_targets};
use crate::matrix::{Element, Features};

/// Dense data with standard normal entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DenseSpec {
    /// Samples, m.
    pub rows: usize,
    /// Features, n.
    pub cols: usize,
    /// Standard deviation of the noise in the targets.
    pub noise: f64,
    /// The seed.
    pub seed: u64,
}

impl DenseSpec {
    /// Makes the data.
    ///
    /// # Errors
    ///
    /// [`SynthError`] for an empty shape, negative noise, or more data than memory.
    ///
    /// ```
    /// use warpfuse::io::synth::DenseSpec;
    /// let spec = DenseSpec { rows: 100, cols: 28, noise: 0.1, seed: 7 };
    /// let made = spec.generate::<f32>()?;
    /// assert_eq!(made.dataset.features.cols(), 28);
    /// # Ok::<(), warpfuse::io::synth::SynthError>(())
    /// ```
    pub fn generate<T: Element>(&self) -> Result<Synthetic<T>, SynthError> {
        let Self { rows, cols, .. } = *self;
        check_shape(rows, cols)?;
        check_parameter("noise", self.noise, "0 or more", self.noise >= 0.0)?;
        check_memory((rows as f64 * (cols as f64 + 1.0)) * size_of::<T>() as f64)?;

        let mut values = vec![T::default(); rows * cols];
        values
            .par_chunks_mut(ROWS_PER_STREAM * cols)
            .enumerate()
            .for_each(|(block, values)| {
                let mut stream = Stream::new(self.seed, Purpose::Entries, block as u64);
                values.fill_with(|| T::from_f64(stream.normal()));
            });
        let x = Array2::from_shape_vec((rows, cols), values).expect("as many as the shape has");
        Ok(with_targets(Features::Dense(x), self.seed, self.noise))
    }
}
