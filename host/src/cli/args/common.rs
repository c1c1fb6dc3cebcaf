//! Arguments that several subcommands share.

use std::fmt;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use crate::io::{Format, Header, IndexBase};
use crate::matrix::{Dtype, Values};
use crate::ops::MatrixOptions;
use crate::plan::fused::{Model, Precision, Summation};

/// `--device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum DeviceName {
    /// The first GPU that can be used, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU of this number.
    Cuda(u32),
    /// The emulator with this schedule.
    Emulator(u64),
}

impl FromStr for DeviceName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str =
            "expected `auto`, `cpu`, `cuda`, `cuda:N`, `emulator` or `emulator:N`";
        let (name, number) = match text.split_once(':') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        match (name, number) {
            ("auto", None) => Ok(Self::Auto),
            ("cpu", None) => Ok(Self::Cpu),
            ("cuda", _) => number.unwrap_or("0").parse().map(Self::Cuda),
            ("emulator", _) => number.unwrap_or("0").parse().map(Self::Emulator),
            _ => return Err(EXPECTED),
        }
        .map_err(|_| EXPECTED)
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            Self::Emulator(schedule) => write!(f, "emulator:{schedule}"),
        }
    }
}

/// `--dtype`. Names that say it all have no help of their own: clap then lists them in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum DtypeName {
    F32,
    F64,
}

impl From<DtypeName> for Precision {
    fn from(name: DtypeName) -> Self {
        match name {
            DtypeName::F32 => Precision::F32,
            DtypeName::F64 => Precision::F64,
        }
    }
}

impl From<DtypeName> for Dtype {
    fn from(name: DtypeName) -> Self {
        match name {
            DtypeName::F32 => Dtype::F32,
            DtypeName::F64 => Dtype::F64,
        }
    }
}

/// `--values`: how further forms of a sparse matrix may store values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum StoredName {
    /// Without loss, in as few bits as that takes
    Exact,
    /// Rounded to f32
    F32,
    /// Rounded to bfloat16: 8 significant bits
    Bf16,
}

impl From<StoredName> for Values {
    fn from(name: StoredName) -> Self {
        match name {
            StoredName::Exact => Values::Exact,
            StoredName::F32 => Values::F32,
            StoredName::Bf16 => Values::Bf16,
        }
    }
}

/// `--model`, `--reproducible` and `--values`, as matrices have them.
pub(in crate::cli) fn matrix_options(
    model: ModelName,
    summation: Summation,
    values: StoredName,
) -> MatrixOptions {
    MatrixOptions {
        model: model.into(),
        summation,
        values: values.into(),
        ..MatrixOptions::default()
    }
}

/// Refuses `--model` and `--values` beside `--device cpu`: the CPU has no launches, and keeps values as they are.
pub(in crate::cli) fn check_for_gpu(
    device: DeviceName,
    model: Option<ModelName>,
    values: Option<StoredName>,
) -> Result<(), &'static str> {
    match (device, model, values) {
        (DeviceName::Cpu, Some(_), _) => {
            Err("--model does nothing with --device cpu: it plans launches of a GPU")
        }
        (DeviceName::Cpu, _, Some(_)) => {
            Err("--values does nothing with --device cpu: the CPU keeps values as they are")
        }
        _ => Ok(()),
    }
}

/// `--reproducible`, as planners have it.
pub(in crate::cli) fn summation(reproducible: bool) -> Summation {
    if reproducible {
        Summation::Reproducible
    } else {
        Summation::Free
    }
}

/// `--model`: which launch model plans for a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ModelName {
    /// The most resident warps
    Published,
    /// The least predicted time
    Predicted,
}

impl From<ModelName> for Model {
    fn from(name: ModelName) -> Self {
        match name {
            ModelName::Published => Model::Published,
            ModelName::Predicted => Model::Predicted,
        }
    }
}

/// `--format`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum FormatName {
    /// LIBSVM (SVMlight) text
    Libsvm,
    /// Matrix Market text
    Mtx,
    /// NumPy array
    Npy,
    /// NumPy archive of arrays
    Npz,
    /// Text with separated values
    Csv,
    /// Binary CSR cache
    Wfc,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Libsvm => Format::LibSvm,
            FormatName::Mtx => Format::MatrixMarket,
            FormatName::Npy => Format::Npy,
            FormatName::Npz => Format::Npz,
            FormatName::Csv => Format::Csv,
            FormatName::Wfc => Format::Cache,
        }
    }
}

/// `--index-base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum BaseName {
    /// 0 if the file has an index 0, else 1
    Auto,
    /// The first column is 0
    #[value(name = "0")]
    Zero,
    /// The first column is 1
    #[value(name = "1")]
    One,
}

impl From<BaseName> for IndexBase {
    fn from(name: BaseName) -> Self {
        match name {
            BaseName::Auto => IndexBase::Auto,
            BaseName::Zero => IndexBase::Zero,
            BaseName::One => IndexBase::One,
        }
    }
}

/// `--header`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum HeaderName {
    /// It does if a field of it is no number
    Auto,
    /// It does
    Yes,
    /// It is a sample
    No,
}

impl From<HeaderName> for Header {
    fn from(name: HeaderName) -> Self {
        match name {
            HeaderName::Auto => Header::Auto,
            HeaderName::Yes => Header::Present,
            HeaderName::No => Header::Absent,
        }
    }
}

/// `--delimiter`.
fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        b"\"" | b"\n" | b"\r" | b"#" => Err(format!("expected a delimiter, found {text:?}")),
        &[byte] => Ok(byte),
        _ => Err(format!("expected one byte or `tab`, found {text:?}")),
    }
}

/// How to read DATA.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(in crate::cli) struct ReadArgs {
    /// Format of DATA; told from its content and name if not given. Text may be compressed (.gz, .zst)
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(in crate::cli) format: Option<FormatName>,

    /// What the first column of a LIBSVM file is called
    #[arg(long, value_enum, value_name = "BASE", default_value = "auto")]
    pub(in crate::cli) index_base: BaseName,

    /// Targets in DATA: a CSV file's column by name or number (1 the first, -1 the last), an npz file's array by name
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub(in crate::cli) target_column: Option<String>,

    /// What separates the values of a CSV file, one byte or `tab`; told from its first line if not given
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(in crate::cli) delimiter: Option<u8>,

    /// Whether the first line of a CSV file names the columns
    #[arg(long, value_enum, value_name = "WHETHER", default_value = "auto")]
    pub(in crate::cli) header: HeaderName,

    /// Read through a binary cache next to DATA (DATA.wfc), and write it if it is missing or stale
    #[arg(long)]
    pub(in crate::cli) cache: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_one_byte() {
        assert_eq!(delimiter(";"), Ok(b';'));
        assert_eq!([delimiter("tab"), delimiter("\t")], [Ok(b'\t'), Ok(b'\t')]);
        for wrong in ["", "ab", "\"", "\n", "ü"] {
            assert!(delimiter(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn device_names_are_read_back_as_they_are_printed() {
        let numbered = [DeviceName::Cuda(7), DeviceName::Emulator(3)];
        for name in [DeviceName::Auto, DeviceName::Cpu]
            .into_iter()
            .chain(numbered)
        {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!("cuda".parse(), Ok(DeviceName::Cuda(0)));
        assert_eq!("emulator".parse(), Ok(DeviceName::Emulator(0)));
        for wrong in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:1", "CPU"] {
            assert!(wrong.parse::<DeviceName>().is_err(), "{wrong}");
        }
    }
}
