//! Arguments of `synth`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Subcommand, ValueEnum};

use super::DtypeName;
use crate::io::synth::{ColumnDistribution, NamedShape, SparseValues};

/// Arguments of `synth`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in crate::cli) struct SynthArgs {
    #[command(subcommand)]
    pub(in crate::cli) kind: SynthKind,
}

const EXAMPLES: &str = "\
Examples:
  warpfuse synth sparse --rows 100000 --cols 5000 --nnz-per-row 20 --columns zipf:1.1 -o data.svm
  warpfuse synth dense --rows 100000 --cols 28 -o x.npy --target y.npy
  warpfuse synth shape rcv1 --scale 0.1 --seed 7 -o rcv1.wfc

The same seed gives the same data on every machine, whatever the number of threads. Targets are X·c plus
noise for standard normal c.";

/// Kinds of data.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SynthKind {
    /// Sparse data of chosen row lengths and column frequencies
    Sparse(SparseArgs),
    /// Dense data, standard normal
    Dense(DenseArgs),
    /// Data of the shape of a well-known data set
    Shape(ShapeArgs),
}

/// Arguments of `synth sparse`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  warpfuse synth sparse --rows 1000000 --cols 20000 --nnz-per-row 30 --lengths lognormal -o data.svm"
)]
pub(in crate::cli) struct SparseArgs {
    /// Samples m
    #[arg(long, value_name = "M")]
    pub(in crate::cli) rows: usize,

    /// Features n
    #[arg(long, value_name = "N")]
    pub(in crate::cli) cols: usize,

    /// Entries of a row; their mean with --lengths lognormal
    #[arg(long, value_name = "K")]
    pub(in crate::cli) nnz_per_row: u32,

    /// How often columns occur: uniform, or zipf:EXPONENT
    #[arg(long, value_name = "LAW", default_value = "uniform")]
    pub(in crate::cli) columns: ColumnLaw,

    /// How long rows are: constant, lognormal[:SIGMA] or giants[:LENGTH[:EVERY]]
    #[arg(long, value_name = "LAW", default_value = "constant")]
    pub(in crate::cli) lengths: LengthLaw,

    /// What the entries are
    #[arg(long, value_enum, default_value = "normal")]
    pub(in crate::cli) values: ValuesName,

    #[command(flatten)]
    pub(in crate::cli) random: RandomArgs,

    #[command(flatten)]
    pub(in crate::cli) write: WriteArgs,
}

/// Arguments of `synth dense`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  warpfuse synth dense --rows 100000 --cols 28 -o x.npy")]
pub(in crate::cli) struct DenseArgs {
    /// Samples m
    #[arg(long, value_name = "M")]
    pub(in crate::cli) rows: usize,

    /// Features n
    #[arg(long, value_name = "N")]
    pub(in crate::cli) cols: usize,

    #[command(flatten)]
    pub(in crate::cli) random: RandomArgs,

    #[command(flatten)]
    pub(in crate::cli) write: WriteArgs,
}

/// Arguments of `synth shape`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  warpfuse synth shape kddb --scale 0.01 -o kddb.svm")]
pub(in crate::cli) struct ShapeArgs {
    /// The data set: kddb, higgs, rcv1 or url
    pub(in crate::cli) name: NamedShape,

    /// Part of its rows to make; all of its columns are kept
    #[arg(long, value_name = "FACTOR", default_value = "1")]
    pub(in crate::cli) scale: f64,

    /// The seed
    #[arg(long, value_name = "SEED", default_value = "0")]
    pub(in crate::cli) seed: u64,

    #[command(flatten)]
    pub(in crate::cli) write: WriteArgs,
}

/// What is drawn at random.
#[derive(Debug, Args)]
pub(in crate::cli) struct RandomArgs {
    /// Standard deviation of the noise in the targets
    #[arg(long, value_name = "SIGMA", default_value = "0.1")]
    pub(in crate::cli) noise: f64,

    /// The seed
    #[arg(long, value_name = "SEED", default_value = "0")]
    pub(in crate::cli) seed: u64,
}

/// Where it goes.
#[derive(Debug, Args)]
pub(in crate::cli) struct WriteArgs {
    /// The file; its name says the format: .svm or .libsvm, .mtx, .npy (dense), .wfc (sparse, binary)
    #[arg(short, long, value_name = "FILE")]
    pub(in crate::cli) output: PathBuf,

    /// Where targets go that the format has no place for (.mtx, .npy); FILE.target.npy if not given
    #[arg(long, value_name = "FILE.npy")]
    pub(in crate::cli) target: Option<PathBuf>,

    /// Element type
    #[arg(long, value_enum, default_value = "f64")]
    pub(in crate::cli) dtype: DtypeName,
}

/// `--values`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ValuesName {
    /// Standard normal
    Normal,
    /// All 1
    Ones,
    /// Positive, each row with a sum of squares of 1
    UnitRows,
}

impl From<ValuesName> for SparseValues {
    fn from(name: ValuesName) -> Self {
        match name {
            ValuesName::Normal => SparseValues::Normal,
            ValuesName::Ones => SparseValues::Ones,
            ValuesName::UnitRows => SparseValues::UnitRows,
        }
    }
}

/// `--columns`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cli) struct ColumnLaw(pub(in crate::cli) ColumnDistribution);

impl FromStr for ColumnLaw {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected `uniform` or `zipf:EXPONENT`, such as zipf:1.1";
        match text.split_once(':') {
            None if text == "uniform" => Ok(Self(ColumnDistribution::Uniform)),
            Some(("zipf", exponent)) => {
                let exponent = exponent.parse().map_err(|_| EXPECTED)?;
                Ok(Self(ColumnDistribution::Zipf { exponent }))
            }
            _ => Err(EXPECTED),
        }
    }
}

/// `--lengths`; the typical length is `--nnz-per-row`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::cli) enum LengthLaw {
    /// All the same.
    Constant,
    /// Log-normal with this standard deviation of the logarithm.
    LogNormal {
        /// The standard deviation.
        sigma: f64,
    },
    /// A row of `length` entries among `every` rows.
    Giants {
        /// Entries of a giant.
        length: u32,
        /// One row of this many is a giant.
        every: u32,
    },
}

impl FromStr for LengthLaw {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected `constant`, `lognormal[:SIGMA]` or `giants[:LENGTH[:EVERY]]`";
        let whole = |text: &str| text.parse().map_err(|_| EXPECTED);
        let parts: Vec<&str> = text.split(':').collect();
        match parts[..] {
            ["constant"] => Ok(Self::Constant),
            ["lognormal"] => Ok(Self::LogNormal { sigma: 1.0 }),
            ["lognormal", sigma] => Ok(Self::LogNormal {
                sigma: sigma.parse().map_err(|_| EXPECTED)?,
            }),
            ["giants"] => Ok(Self::Giants {
                length: 100_000,
                every: 10_000,
            }),
            ["giants", length] => Ok(Self::Giants {
                length: whole(length)?,
                every: 10_000,
            }),
            ["giants", length, every] => Ok(Self::Giants {
                length: whole(length)?,
                every: whole(every)?,
            }),
            _ => Err(EXPECTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laws_are_read() {
        assert_eq!(
            "zipf:1.5".parse(),
            Ok(ColumnLaw(ColumnDistribution::Zipf { exponent: 1.5 }))
        );
        assert_eq!(
            "lognormal:0.5".parse(),
            Ok(LengthLaw::LogNormal { sigma: 0.5 })
        );
        assert_eq!(
            "giants:9:3".parse(),
            Ok(LengthLaw::Giants {
                length: 9,
                every: 3
            })
        );
        for wrong in ["", "zipf", "zipf:", "zipf:x", "uniform:1"] {
            assert!(wrong.parse::<ColumnLaw>().is_err(), "{wrong}");
        }
        for wrong in ["", "constant:1", "giants:x", "giants:1:2:3", "lognormal:"] {
            assert!(wrong.parse::<LengthLaw>().is_err(), "{wrong}");
        }
    }
}
