//! Results as JSON lines.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use warpfuse::plan::fused::Problem;
use warpfuse::plan::limits::DeviceLimits;

use crate::case::Case;
use crate::options::Options;
use crate::outside::Outside;
use crate::provenance::Provenance;
use crate::sampling::Times;

/// What a case came to.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// The kernel entry with its launch, or the method.
    pub variant: String,
    /// Microseconds.
    #[serde(flatten)]
    pub times: Times,
    /// The fewest bytes that have to be moved: inputs read once, results written once.
    pub bytes: usize,
    /// What a plain read of about as many bytes reached in the same run, 10⁹ bytes a second.
    pub ceiling_gbs: Option<f64>,
    /// `bytes` over the median time, as a fraction of the ceiling.
    pub fraction_of_ceiling: Option<f64>,
    /// Median microseconds of other libraries for the same work, by name.
    pub peers: BTreeMap<String, f64>,
    /// ‖result − truth‖ / ‖truth‖, the truth computed in f64.
    pub error: Option<f64>,
    /// Further figures of a family.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<&'static str, f64>,
    /// Launches that a planner could have chosen, by what it knew of the problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<Choice>,
}

/// A problem as a planner sees it, and launches for it with their times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The problem, in one form of storage.
    pub problem: Problem,
    /// The fastest first.
    pub launches: Vec<TimedLaunch>,
}

/// A launch with its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimedLaunch {
    /// The kernel entry with its launch.
    pub variant: String,
    /// What the planner expected, microseconds.
    pub predicted_us: f64,
    /// The median, microseconds.
    pub measured_us: f64,
}

impl Measured {
    /// Times and bytes; everything else is absent.
    pub fn new(variant: impl Into<String>, times: Times, bytes: usize) -> Measured {
        Measured {
            variant: variant.into(),
            times,
            bytes,
            ceiling_gbs: None,
            fraction_of_ceiling: None,
            peers: BTreeMap::new(),
            error: None,
            details: BTreeMap::new(),
            choices: Vec::new(),
        }
    }

    /// With a ceiling, in 10⁹ bytes a second.
    pub fn with_ceiling(self, gbs: f64) -> Measured {
        let fraction_of_ceiling = Some(self.times.gbs(self.bytes) / gbs);
        Measured {
            ceiling_gbs: Some(gbs),
            fraction_of_ceiling,
            ..self
        }
    }

    /// With an error.
    pub fn with_error(self, error: f64) -> Measured {
        Measured {
            error: Some(error),
            ..self
        }
    }
}

/// One line of a file of results.
#[derive(Serialize)]
struct Line<'a> {
    family: &'static str,
    case: &'a Case,
    dtype: String,
    #[serde(flatten)]
    outcome: Outcome,
    #[serde(flatten)]
    provenance: &'a Provenance,
}

/// A line that describes the device.
#[derive(Serialize)]
struct Described<'a> {
    family: &'static str,
    limits: &'a DeviceLimits,
    #[serde(flatten)]
    provenance: &'a Provenance,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Outcome {
    Measured(Measured),
    Failed { failed: String },
}

/// Appends results to one file per family, and prints them.
#[derive(Clone, Debug)]
pub struct Recorder {
    options: Options,
    folder: PathBuf,
    provenance: Provenance,
    outside: Outside,
}

impl Recorder {
    /// Writes below the folder of the options, in one for the device.
    ///
    /// # Errors
    /// When the folder cannot be made, or a file of peers cannot be read.
    pub fn new(options: &Options, provenance: Provenance) -> Result<Recorder> {
        let folder = options.out.join(provenance.folder());
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let outside = options.peers.as_deref().map(Outside::read).transpose()?;
        Ok(Recorder {
            options: options.clone(),
            folder,
            provenance,
            outside: outside.unwrap_or_default(),
        })
    }

    /// The same files for results of another device of the same machine.
    pub fn with(&self, provenance: Provenance) -> Recorder {
        Recorder {
            provenance,
            ..self.clone()
        }
    }

    /// Whether a case was requested.
    pub fn wants(&self, case: &Case) -> bool {
        self.options.filter.wants(&case.to_string())
    }

    /// Measures a case if it was requested. Failures, panics included, become a line too: one case does not
    /// stop the others.
    ///
    /// # Errors
    /// When the line cannot be written.
    pub fn measure(&self, case: &Case, work: impl FnOnce() -> Result<Measured>) -> Result<()> {
        if !self.wants(case) {
            return Ok(());
        }
        let outcome =
            catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(told(&*panic)));
        self.write(case, outcome)
    }

    /// Records all `cases` as failed for one reason.
    ///
    /// # Errors
    /// As [`Recorder::measure`].
    pub fn fail(&self, cases: &[Case], reason: &anyhow::Error) -> Result<()> {
        cases
            .iter()
            .try_for_each(|case| self.measure(case, || Err(anyhow!("{reason:#}"))))
    }

    /// Writes what planners know of the device into the results of a family.
    ///
    /// # Errors
    /// As [`Recorder::measure`].
    pub fn describe(&self, family: &'static str, limits: &DeviceLimits) -> Result<()> {
        let provenance = &self.provenance;
        let line = Described {
            family,
            limits,
            provenance,
        };
        self.append(family, &line)
    }

    fn write(&self, case: &Case, outcome: Result<Measured>) -> Result<()> {
        let outcome = match outcome {
            Ok(mut measured) => {
                measured.peers.extend(self.outside.beside(case));
                Outcome::Measured(measured)
            }
            Err(error) => Outcome::Failed {
                failed: format!("{error:#}"),
            },
        };
        println!("{case}: {}", summary(&outcome));
        let (dtype, provenance) = (case.dtype.to_string(), &self.provenance);
        let line = Line {
            family: case.family,
            case,
            dtype,
            outcome,
            provenance,
        };
        self.append(case.family, &line)
    }

    fn append(&self, family: &str, line: &impl Serialize) -> Result<()> {
        let path = self.folder.join(format!("{family}.jsonl"));
        let mut text = serde_json::to_string(line).context("writing a result as JSON")?;
        text.push('\n');
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
        written.with_context(|| format!("appending to {}", path.display()))
    }
}

fn told(panic: &(dyn std::any::Any + Send)) -> anyhow::Error {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    anyhow!("panicked: {}", text.unwrap_or("without a message"))
}

fn summary(outcome: &Outcome) -> String {
    let measured = match outcome {
        Outcome::Measured(measured) => measured,
        Outcome::Failed { failed } => return format!("FAILED: {failed}"),
    };
    let Measured {
        times,
        bytes,
        variant,
        ..
    } = measured;
    let mut text = format!("{:.1} us, {:.0} GB/s", times.median_us, times.gbs(*bytes));
    if let Some(fraction) = measured.fraction_of_ceiling {
        text += &format!(", {:.1} % of the ceiling", 100.0 * fraction);
    }
    if let Some(error) = measured.error {
        text += &format!(", error {error:.1e}");
    }
    for (name, us) in &measured.peers {
        text += &format!(", {name} {us:.1} us");
    }
    for (name, figure) in &measured.details {
        text += &format!(", {name} {figure:.1}");
    }
    format!("{text} [{variant}]")
}
