//! Shapes of well-known data sets.

use std::fmt;
use std::str::FromStr;

use super::{
    ColumnDistribution, DenseSpec, RowLengths, SparseSpec, SparseValues, SynthError, Synthetic,
};
use crate::matrix::Element;

/// A well-known data set, of which the shape (not the content) is imitated.
///
/// Sizes as on the LIBSVM data page; how skewed rows and columns are is an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NamedShape {
    /// KDD Cup 2010, bridge to algebra: 19,264,097 × 29,890,095, 29.4 ones a row, power-law
    /// columns.
    Kddb,
    /// HIGGS: 11,000,000 × 28, dense.
    Higgs,
    /// Reuters news, binary, training part: 20,242 × 47,236, 74 entries in unit rows.
    Rcv1,
    /// Malicious URLs: 2,396,130 × 3,231,961, 115.6 ones a row, power-law columns.
    Url,
}

/// What a name or a user's arguments come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Spec {
    /// Sparse data.
    Sparse(SparseSpec),
    /// Dense data.
    Dense(DenseSpec),
}

impl Spec {
    /// Makes the data.
    ///
    /// # Errors
    ///
    /// As [`SparseSpec::generate`] and [`DenseSpec::generate`].
    pub fn generate<T: Element>(&self) -> Result<Synthetic<T>, SynthError> {
        match self {
            Self::Sparse(spec) => spec.generate(),
            Self::Dense(spec) => spec.generate(),
        }
    }
}

impl NamedShape {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Kddb, Self::Higgs, Self::Rcv1, Self::Url];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kddb => "kddb",
            Self::Higgs => "higgs",
            Self::Rcv1 => "rcv1",
            Self::Url => "url",
        }
    }

    /// Data of this shape with `scale` times the rows (1 for all of them, at least one is left).
    ///
    /// The columns stay as many as they are: what makes these data hard is how wide they are.
    ///
    /// # Errors
    ///
    /// [`SynthError::Parameter`] unless `scale` is a number above 0.
    ///
    /// ```
    /// use warpfuse::io::synth::NamedShape;
    /// let spec = "rcv1".parse::<NamedShape>()?.spec(0.01, 7)?;
    /// let made = spec.generate::<f32>()?;
    /// assert_eq!((made.dataset.features.rows(), made.coef.len()), (202, 47_236));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spec(self, scale: f64, seed: u64) -> Result<Spec, SynthError> {
        super::check_parameter("the scale", scale, "a number above 0", scale > 0.0)?;
        let scaled = |rows: usize| ((rows as f64 * scale).round() as usize).max(1);
        let sparse = |rows, cols, (mean, sigma), exponent, values| {
            Spec::Sparse(SparseSpec {
                rows: scaled(rows),
                cols,
                row_lengths: RowLengths::LogNormal { mean, sigma },
                columns: ColumnDistribution::Zipf { exponent },
                values,
                noise: 0.1,
                seed,
            })
        };
        let ones = SparseValues::Ones;
        let unit = SparseValues::UnitRows;
        Ok(match self {
            Self::Kddb => sparse(19_264_097, 29_890_095, (29.4, 0.3), 1.1, ones),
            Self::Rcv1 => sparse(20_242, 47_236, (74.05, 0.7), 1.0, unit),
            Self::Url => sparse(2_396_130, 3_231_961, (115.6, 0.15), 1.2, ones),
            Self::Higgs => Spec::Dense(DenseSpec {
                rows: scaled(11_000_000),
                cols: 28,
                noise: 0.1,
                seed,
            }),
        })
    }
}

impl fmt::Display for NamedShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is not in [`NamedShape::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected one of kddb, higgs, rcv1, url, found `{found}`")]
pub struct UnknownShape {
    /// What was given.
    pub found: String,
}

impl FromStr for NamedShape {
    type Err = UnknownShape;

    fn from_str(name: &str) -> Result<Self, UnknownShape> {
        let found = name.to_owned();
        Self::ALL
            .into_iter()
            .find(|shape| shape.name().eq_ignore_ascii_case(name))
            .ok_or(UnknownShape { found })
    }
}
