//! Arguments of `plan`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{ArgGroup, Args, ValueEnum};
use serde_json::{Map, Value};

use super::{DtypeName, ModelName, ReadArgs, ReportArgs, StoredName};
use crate::plan::fused::{Forced, Product};

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("forms").args(["measure", "evaluations"]))]
pub(in crate::cli) struct PlanArgs {
    /// Data whose shape is planned for; - is stdin
    #[arg(required_unless_present = "rows", conflicts_with_all = ["rows", "cols", "nnz"])]
    pub(in crate::cli) data: Option<PathBuf>,

    /// Rows m, instead of DATA
    #[arg(long, value_name = "M", requires = "cols")]
    pub(in crate::cli) rows: Option<u64>,

    /// Columns n
    #[arg(long, value_name = "N", requires = "rows")]
    pub(in crate::cli) cols: Option<u64>,

    /// Stored entries of a sparse matrix
    #[arg(long, value_name = "K", requires = "rows", conflicts_with = "dense")]
    #[arg(required_unless_present_any = ["data", "dense"])]
    pub(in crate::cli) nnz: Option<u64>,

    /// Plan for a dense matrix
    #[arg(long)]
    pub(in crate::cli) dense: bool,

    /// The GPU; auto is that of this machine, or the H200 where there is none
    #[arg(long, value_enum, default_value = "auto")]
    pub(in crate::cli) gpu: GpuName,

    /// Element type
    #[arg(long, value_enum, default_value = "f64")]
    pub(in crate::cli) dtype: DtypeName,

    /// What is computed
    #[arg(long, value_enum, default_value = "fused")]
    pub(in crate::cli) product: ProductName,

    /// Launch model
    #[arg(long, value_enum, default_value = "predicted")]
    pub(in crate::cli) model: ModelName,

    /// Plan for sums that have the same bits on every run and device
    #[arg(long)]
    pub(in crate::cli) reproducible: bool,

    /// Registers per thread, instead of what the compiled kernels have
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=255))]
    pub(in crate::cli) registers: Option<u32>,

    /// List the launches that the predicted model compared, the fastest COUNT of them
    #[arg(long, value_name = "COUNT", num_args = 0..=1, require_equals = true, default_missing_value = "20")]
    pub(in crate::cli) candidates: Option<usize>,

    /// Run launches on this machine's GPU, on DATA or on random numbers of its shape, and list the fastest COUNT
    /// with predicted and measured times
    #[arg(long, value_name = "COUNT", num_args = 0..=1, require_equals = true, default_missing_value = "20")]
    #[arg(conflicts_with_all = ["registers", "force", "model"])]
    pub(in crate::cli) measure: Option<usize>,

    /// Weigh the further forms that a sparse matrix can be stored in against N evaluations of the product: what each
    /// costs once, what an evaluation takes with it, from how many on it pays, and which is chosen
    #[arg(long, value_name = "N", conflicts_with_all = ["force", "model"])]
    pub(in crate::cli) evaluations: Option<u64>,

    /// Say what a fit by this trainer would take on the CPU, on a GPU that has the data, and on one through which they
    /// stream (--gpu-memory says how much of it they may take)
    #[arg(long, value_name = "TRAINER")]
    #[arg(value_parser = ["linreg", "ridge", "lasso", "elasticnet", "glm", "logreg", "svc", "svr"])]
    pub(in crate::cli) fit: Option<String>,

    /// With --gpus: machines of this many GPUs that share the rows
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    pub(in crate::cli) nodes: u32,

    /// With --gpus: microseconds that the product takes one GPU, as measured; those of several follow from them
    #[arg(long, value_name = "US", value_parser = rate)]
    pub(in crate::cli) one_gpu_us: Option<f64>,

    /// With --one-gpu-us: microseconds that it takes two GPUs, their sum included; those of more follow from both then
    #[arg(long, value_name = "US", value_parser = rate, requires = "one_gpu_us")]
    pub(in crate::cli) two_gpus_us: Option<f64>,

    /// With --nodes: 10⁹ bytes a second of the network port that each GPU has
    #[arg(long, value_name = "RATE", default_value_t = crate::plan::scaling::NETWORK.gb_s, value_parser = rate)]
    pub(in crate::cli) network_gb_s: f64,

    /// With --nodes: microseconds of the smallest message between machines
    #[arg(long, value_name = "US", default_value_t = crate::plan::scaling::NETWORK.start_us, value_parser = rate)]
    pub(in crate::cli) network_us: f64,

    /// With --measure or --evaluations: how further forms of a sparse matrix may store its values
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        default_value = "exact",
        requires = "forms"
    )]
    pub(in crate::cli) values: StoredName,

    /// Fix a part of the plan; may be repeated. Keys: strategy, vs, bs, tl, rows_in_flight, width,
    /// blocks_per_sm
    #[arg(long, value_name = "KEY=VALUE")]
    pub(in crate::cli) force: Vec<ForcedPart>,

    /// Print one JSON object
    #[arg(long)]
    pub(in crate::cli) json: bool,

    #[command(flatten)]
    pub(in crate::cli) report: ReportArgs,

    #[command(flatten)]
    pub(in crate::cli) read: ReadArgs,
}

const EXAMPLES: &str = "\
Examples:
  warpfuse plan data.svm
  warpfuse plan --rows 4000000 --cols 10000 --nnz 80000000 --gpu h200 --dtype f32 --candidates=5
  warpfuse plan data.svm --dtype f32 --measure=10 --values bf16
  warpfuse plan data.svm --measure --report launches.html
  warpfuse plan data.svm --dtype f32 --evaluations 500
  warpfuse plan --rows 11000000 --cols 28 --dense --dtype f32 --gpus 8 --nodes 4
  warpfuse --gpu-memory 8GiB plan --fit logreg data.svm
  warpfuse plan --rows 11000000 --cols 28 --dense --gpu a100 --force tl=4 --force bs=256
  warpfuse plan --rows 500000 --cols 1024 --nnz 5000000 --gpu titan --model published --json";

/// A number above 0.
fn rate(text: &str) -> Result<f64, &'static str> {
    let number = text
        .parse()
        .ok()
        .filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    number.ok_or("expected a number above 0")
}

/// `--gpu`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum GpuName {
    /// This machine's, or the H200 where there is none
    Auto,
    /// GTX Titan, the GPU of the published model
    Titan,
    /// A100 SXM
    A100,
    /// H100 SXM
    H100,
    /// H200 SXM
    H200,
}

/// `--product`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum ProductName {
    /// Xᵀ(v ⊙ (X·y))
    Fused,
    /// X·y
    Forward,
    /// Xᵀ·p
    Transposed,
}

impl From<ProductName> for Product {
    fn from(name: ProductName) -> Self {
        match name {
            ProductName::Fused => Product::Fused,
            ProductName::Forward => Product::Forward,
            ProductName::Transposed => Product::Transposed,
        }
    }
}

/// One `--force KEY=VALUE`: a field of [`Forced`] by the name that it has when serialised.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct ForcedPart {
    key: String,
    value: Value,
}

impl FromStr for ForcedPart {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text
            .split_once('=')
            .ok_or("expected KEY=VALUE, such as bs=256")?;
        let value = value
            .parse::<u32>()
            .map_or_else(|_| Value::from(value), Value::from);
        let part = ForcedPart {
            key: key.to_owned(),
            value,
        };
        Self::combine(std::slice::from_ref(&part)).map(|_| part)
    }
}

impl ForcedPart {
    /// All parts together; of several with the same key the last counts.
    ///
    /// # Errors
    /// A sentence about the first key or value that there is not.
    pub(in crate::cli) fn combine(parts: &[ForcedPart]) -> Result<Forced, String> {
        let fields: Map<_, _> = parts
            .iter()
            .map(|part| (part.key.clone(), part.value.clone()))
            .collect();
        serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fused::Strategy;

    #[test]
    fn forced_parts_are_fields_of_a_plan() {
        let parts: Vec<ForcedPart> = ["strategy=global_w", "bs=128", "bs=256"]
            .map(|text| text.parse().expect(text))
            .into();
        let expected = Forced {
            strategy: Some(Strategy::GlobalW),
            bs: Some(256),
            ..Forced::default()
        };
        assert_eq!(ForcedPart::combine(&parts), Ok(expected));
    }

    #[test]
    fn a_key_or_value_that_there_is_not_is_refused_with_those_there_are() {
        let unknown = "block=256".parse::<ForcedPart>().expect_err("unknown");
        assert!(unknown.contains("`bs`"), "{unknown}");
        for wrong in ["bs", "bs=many", "strategy=7", "strategy=magic", "bs=-1"] {
            assert!(wrong.parse::<ForcedPart>().is_err(), "{wrong}");
        }
    }
}
