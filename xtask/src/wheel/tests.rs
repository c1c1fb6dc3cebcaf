//! The package's tests, against the extension as cargo builds it for tests: in a fresh environment, without maturin.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::python::Environment;
use crate::{step, workspace};

/// How much of scikit-learn's own tests runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// A fixed sample.
    Sample,
    /// All of them, recorded.
    Full,
}

/// What the package needs, and what its tests do.
const PACKAGES: &[&str] = &[
    "numpy",
    "scipy",
    "scikit-learn>=1.6",
    "pandas",
    "pytest>=8",
    "pytest-xdist>=3",
];

/// Of a whole run besides: the results of R and Stata, the guide's pictures, frames of another library, a type checker.
const PACKAGES_OF_WHOLE: &[&str] = &["statsmodels", "matplotlib", "polars", "mypy"];

/// The folders and files of scikit-learn that test what the package replaces, and what derives from it.
const WHOLE: &[&str] = &[
    "sklearn.linear_model",
    "sklearn.svm",
    "sklearn.decomposition.tests.test_pca",
    "sklearn.decomposition.tests.test_truncated_svd",
    "sklearn.tests.test_kernel_ridge",
];

/// What came of the last whole run.
const RECORD: &str = "python/scikit-learn.md";

/// Of those, what takes seconds.
const SAMPLE: &[&str] = &[
    "sklearn.linear_model.tests.test_base",
    "sklearn.svm.tests.test_svm",
    "sklearn.decomposition.tests.test_truncated_svd",
    "sklearn.tests.test_kernel_ridge",
];

/// Programs, which run when they are imported, and what is for pytest.
const NO_EXAMPLES: [&str; 3] = ["*/testing/*", "*/tests/scripts/*", "*/shared_fits.py"];

/// A fresh environment that has what the tests need.
///
/// # Errors
/// When a package cannot be fetched.
pub fn environment(extent: Extent) -> Result<Environment> {
    let environment = Environment::fresh("tests", PACKAGES)?;
    if extent == Extent::Full {
        environment.install(PACKAGES_OF_WHOLE)?;
    }
    Ok(environment)
}

/// Runs them there on the extension that cargo has built.
///
/// # Errors
/// With the step that failed.
pub fn check(environment: &Environment, extent: Extent) -> Result<()> {
    let package = assemble()?;
    let pytest = |arguments: &[&str]| {
        let mut pytest = environment.python();
        pytest
            .env("PYTHONPATH", &package)
            .args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "auto"])
            .args(arguments);
        pytest
    };
    // One start of the workers for tests and examples: to import scikit-learn takes each of them seconds.
    let mut own = pytest(&["python/tests", "--doctest-modules"]);
    own.args(NO_EXAMPLES.map(|files| format!("--ignore-glob={files}")));
    let sources = package.join("warpfuse");
    step::run("Python tests and examples", own.arg(sources))?;
    let mut foreign = pytest(&["-p", "warpfuse.testing.sklearn"]);
    let suites = match extent {
        Extent::Sample => SAMPLE,
        Extent::Full => {
            foreign.args(["--warpfuse-record", RECORD]);
            WHOLE
        }
    };
    foreign.args(["-W", "ignore", "--pyargs"]).args(suites);
    step::run("scikit-learn's tests", &mut foreign).map(|_| ())
}

/// The package as it is installed, in cargo's target folder.
fn assemble() -> Result<PathBuf> {
    let package = workspace::target_dir().join("python/package");
    let extension = workspace::target_dir().join("debug/lib_native.so");
    let folder = package.join("warpfuse");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    copy(&workspace::root().join("python/warpfuse"), &folder)?;
    let to = folder.join("_native.abi3.so");
    fs::copy(&extension, &to).with_context(|| format!("copying {}", extension.display()))?;
    Ok(package)
}

/// A folder with all that is in it, but for compiled files.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("reading {}", from.display()))? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            if entry.file_name() != "__pycache__" {
                copy(&path, &target)?;
            }
        } else if path.extension().is_none_or(|extension| extension != "so") {
            fs::copy(&path, &target).with_context(|| format!("copying {}", path.display()))?;
        }
    }
    Ok(())
}
