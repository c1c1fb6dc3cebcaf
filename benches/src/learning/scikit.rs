//! scikit-learn's `lbfgs` on the same data, in a process of its own, where `WARPFUSE_BENCH_PYTHON` names an interpreter
//! that has it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use warpfuse::io::synth::NamedShape;
use warpfuse::ops::Number;

use super::problem::Problem;
use super::{NEAR, Race};
use crate::record::Measured;

const SCRIPT: &str = include_str!("scikit.py");

/// What the script prints.
#[derive(Deserialize)]
struct Fit {
    us: f64,
    gap: f64,
    n_iter: f64,
}

/// Seconds that its fits of a problem may take together, where [`SECONDS_VARIABLE`] says nothing else: sparse products take one
/// core there, seconds for the largest data.
const SECONDS: u32 = 30;
const SECONDS_VARIABLE: &str = "WARPFUSE_BENCH_PEER_SECONDS";

fn seconds() -> Result<u32> {
    match std::env::var(SECONDS_VARIABLE) {
        Ok(text) => text
            .parse()
            .with_context(|| format!("{SECONDS_VARIABLE}: expected seconds, found {text:?}")),
        Err(_) => Ok(SECONDS),
    }
}

/// Adds the fit to a record: as a peer where it came near the least objective, else as what an iteration took.
pub fn add<T: Number>(race: &Race<T>, name: NamedShape, measured: &mut Measured) {
    let Some(python) = std::env::var_os("WARPFUSE_BENCH_PYTHON") else {
        return;
    };
    let least = measured.details.get("objective").copied().unwrap_or(0.0);
    match fit(&PathBuf::from(python), &race.problem, name, least) {
        Ok(fit) => {
            let details = &mut measured.details;
            details.insert("sklearn_iterations", fit.n_iter);
            details.insert("sklearn_iteration_us", fit.us / fit.n_iter.max(1.0));
            details.insert("sklearn_gap", fit.gap);
            if fit.gap <= NEAR {
                let peers = &mut measured.peers;
                peers.insert("sklearn_lbfgs".to_owned(), fit.us);
            }
        }
        Err(error) => eprintln!("scikit-learn is left out: {error:#}"),
    }
}

fn fit<T: Number>(
    python: &PathBuf,
    problem: &Problem<T>,
    name: NamedShape,
    least: f64,
) -> Result<Fit> {
    let folder = std::env::temp_dir().join(format!("warpfuse-bench-{}", std::process::id()));
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let told = problem.dump(name, &folder).and_then(|()| {
        let shape = [problem.features.rows(), problem.features.cols()];
        let output = Command::new(python)
            .args(["-c", SCRIPT])
            .arg(&folder)
            .arg(name.name())
            .args(shape.map(|size| size.to_string()))
            .args([format!("{least:e}"), seconds()?.to_string()])
            .output()
            .context("starting the interpreter")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{}", errors.trim_end());
        serde_json::from_slice(&output.stdout).context("reading what the script printed")
    });
    // What cannot be removed lies in the system's temporary folder.
    drop(std::fs::remove_dir_all(&folder));
    told
}
