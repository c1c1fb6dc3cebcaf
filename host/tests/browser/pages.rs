//! The pages that are looked at: those of the snapshots, that of the benchmarks, and fresh ones of the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use libtest_mimic::Failed;

/// A page.
#[derive(Debug, Clone)]
pub enum Page {
    /// A file of the repository.
    Stored(PathBuf),
    /// Of a run of the program; `DATA` is a file of two classes, `NUMBERS` one of a regression.
    Made(&'static str),
}

/// Commands that write pages.
const MADE: [&str; 4] = [
    "train logreg DATA --penalty none --solver lbfgs --validation DATA",
    "train glm NUMBERS --family poisson",
    "cv lasso NUMBERS --path auto:30",
    "train svd NUMBERS --n-components 5",
];

/// All pages.
pub fn all() -> Vec<Page> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let golden = fs::read_dir(root.join("src/report/golden")).expect("the folder of the snapshots");
    let mut stored: Vec<PathBuf> = golden.map(|file| file.expect("a file").path()).collect();
    stored.push(root.join("../benches/results/report.html"));
    stored.sort();
    let stored = stored.into_iter().map(Page::Stored);
    stored.chain(MADE.map(Page::Made)).collect()
}

impl Page {
    /// What the case is called.
    pub fn name(&self) -> String {
        match self {
            Page::Stored(path) => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                format!("stored {stem}")
            }
            Page::Made(command) => {
                let words: Vec<&str> = command.split(' ').take(2).collect();
                words.join(" ")
            }
        }
    }

    /// The file, which a run of the program writes into `folder` first.
    pub fn make(&self, folder: &Path) -> Result<PathBuf, Failed> {
        let command = match self {
            Page::Stored(path) => return Ok(fs::canonicalize(path)?),
            Page::Made(command) => command,
        };
        let numbers = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data/diabetes.libsvm");
        fs::copy(numbers, folder.join("NUMBERS"))?;
        fs::write(folder.join("DATA"), two_classes())?;
        let run = Command::new(env!("CARGO_BIN_EXE_warpfuse"))
            .args(command.split(' '))
            .args(["--device", "cpu", "--report", "page.html"])
            .current_dir(folder)
            .output()?;
        match run.status.success() {
            true => Ok(folder.join("page.html")),
            false => Err(String::from_utf8_lossy(&run.stderr).into_owned().into()),
        }
    }
}

/// Two classes that overlap, and a constant column.
fn two_classes() -> String {
    let row = |i: usize| {
        let (a, b) = ((i * 37 % 101) as f64 / 10.0, (i * 53 % 89) as f64 / 10.0);
        let class = u8::from(a + b + (i * 29 % 83) as f64 / 10.0 > 13.0);
        format!("{class} 1:{a} 2:{b} 3:1\n")
    };
    (0..300).map(row).collect()
}
