//! What a sweep found, as text and as JSON.

use std::collections::HashSet;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use warpfuse_benches::case::Case;

use crate::trial::Trial;

/// Trials that are reported, besides the fastest of each further kernel.
const BEST: usize = 10;

/// The trials of one product of one matrix.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    case: Case,
    dtype: String,
    /// What reading the matrix takes at the rate of a plain read.
    floor_us: f64,
    trials: usize,
    best: Vec<Trial>,
    planned: Option<Planned>,
}

/// The planner's choice.
#[derive(Clone, Debug, Serialize)]
struct Planned {
    #[serde(flatten)]
    trial: Trial,
    /// One more than the number of trials that were faster.
    rank: usize,
}

impl Outcome {
    /// Orders the trials and ranks the planner's among them.
    pub fn new(
        case: Case,
        floor_us: f64,
        mut trials: Vec<Trial>,
        planned: Option<Trial>,
    ) -> Outcome {
        trials.sort_by(|a, b| a.median_us.total_cmp(&b.median_us));
        let count = trials.len();
        let planned = planned.map(|trial| {
            let other = |other: &&Trial| {
                let launch = |t: &Trial| (t.kernel.clone(), t.block, t.grid);
                other.median_us < trial.median_us && launch(other) != launch(&trial)
            };
            Planned {
                rank: 1 + trials.iter().filter(other).count(),
                trial,
            }
        });
        trials = reported(trials);
        Outcome {
            dtype: case.dtype.to_string(),
            case,
            floor_us,
            trials: count,
            best: trials,
            planned,
        }
    }

    fn line(&self, trial: &Trial) -> String {
        let Trial {
            kernel,
            block,
            grid,
            shared_bytes,
            median_us,
        } = trial;
        let share = 100.0 * self.floor_us / median_us;
        format!(
            "{median_us:>10.1} us {share:>5.1} %  {kernel} bs{block} grid{grid} shared {shared_bytes}"
        )
    }
}

/// The best of trials in the order of their times, and of each further kernel its best.
fn reported(trials: Vec<Trial>) -> Vec<Trial> {
    let mut kernels = HashSet::new();
    let is_reported = |(place, trial): &(usize, Trial)| {
        let is_first = kernels.insert(trial.kernel.clone());
        is_first || *place < BEST
    };
    let reported = trials.into_iter().enumerate().filter(is_reported);
    reported.map(|(_, trial)| trial).collect()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: floor {:.1} us", self.case, self.floor_us)?;
        self.best
            .iter()
            .try_for_each(|trial| writeln!(f, "{}", self.line(trial)))?;
        match &self.planned {
            Some(Planned { trial, rank }) => {
                writeln!(
                    f,
                    "planned, number {rank} of {}:\n{}",
                    self.trials,
                    self.line(trial)
                )
            }
            None => writeln!(f, "planned: two products"),
        }
    }
}

/// Opens a file to append to.
pub fn open(path: PathBuf) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.with_context(|| format!("opening {}", path.display()))
}

/// Appends an outcome as one line of JSON.
pub fn append(mut file: &File, outcome: &Outcome) -> Result<()> {
    let mut line = serde_json::to_string(outcome)?;
    line.push('\n');
    Ok(file.write_all(line.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use warpfuse::matrix::Dtype;
    use warpfuse_benches::shape::Shape;

    use super::*;

    fn trial(grid: u32, median_us: f64) -> Trial {
        Trial {
            kernel: "k".into(),
            block: 128,
            grid,
            shared_bytes: 0,
            median_us,
        }
    }

    #[test]
    fn the_best_come_first_and_the_planned_launch_is_ranked() {
        let shape = Shape::Dense { rows: 10, cols: 2 };
        let case = Case {
            family: "sweep",
            work: "fused",
            shape,
            dtype: Dtype::F32.into(),
            seed: 1,
        };
        let trials = vec![trial(3, 9.0), trial(1, 5.0), trial(2, 7.0)];
        // Timed again a little slower than before: it is not behind itself.
        let outcome = Outcome::new(case, 4.5, trials, Some(trial(2, 7.5)));
        let text = outcome.to_string();
        assert!(text.contains("planned, number 2 of 3"), "{text}");
        assert_eq!(outcome.best[0], trial(1, 5.0));
        assert!(text.contains("90.0 %"), "{text}");
    }
}
