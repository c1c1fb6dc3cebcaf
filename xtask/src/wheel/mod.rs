//! The Python package: the wheel for its users (`cargo xtask wheel`), and its tests (a step of `cargo xtask test`).

mod python;
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub use tests::{Extent, check};

use crate::{step, workspace};
use python::Environment;

/// The arguments of `wheel`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the wheel goes.
    #[arg(long, default_value = "target/wheels")]
    out: PathBuf,
    /// Link against an old C library, so that the wheel runs on distributions from 2018 on (fetches Zig from PyPI).
    #[arg(long)]
    portable: bool,
}

/// The oldest C library that `--portable` links against: of Debian 10, Ubuntu 18.10, RHEL 8.
const PORTABLE: &str = "manylinux_2_28";

/// What a first user does, in the environment that the wheel was installed into.
const FIRST_FIT: &str = "import warpfuse; \
    model = warpfuse.Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0]); \
    assert abs(model.coef_[0] - 1.0) < 1e-9, model.coef_; \
    print('warpfuse', warpfuse.__version__, 'has kernels:', warpfuse._native.has_kernels)";

/// Builds the wheel, checks what it asks of a machine, and fits once in a fresh environment.
///
/// # Errors
/// With the step that failed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let out = workspace::root().join(&arguments.out);
    let tools = Environment::fresh(
        "wheel-tools",
        &["maturin>=1.9.4,<2", "abi3audit", "auditwheel"],
    )?;
    if arguments.portable {
        tools.install(&["ziglang"])?;
    }
    step::run("building the wheel", &mut maturin(&tools, arguments, &out))?;
    let wheel = newest_wheel(&out)?;
    step::run("stable ABI", tools.program("abi3audit").arg(&wheel))?;
    let mut audit = tools.program("auditwheel");
    step::run("what it links to", audit.arg("show").arg(&wheel))?;
    let users = Environment::fresh("wheel-user", &[])?;
    users.install(&[&wheel.to_string_lossy()])?;
    step::run("first fit", users.python().args(["-c", FIRST_FIT]))?;
    step::run("command line", users.program("warpfuse").arg("info"))?;
    let bytes = fs::metadata(&wheel)?.len();
    println!("{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    Ok(())
}

fn maturin(tools: &Environment, arguments: &Arguments, out: &Path) -> Command {
    let mut maturin = tools.program("maturin");
    maturin
        .args([
            "build",
            "--release",
            "--strip",
            "--manifest-path",
            "python/Cargo.toml",
            "--out",
        ])
        .arg(out);
    if arguments.portable {
        maturin.args(["--zig", "--compatibility", PORTABLE]);
    }
    maturin
}

/// The wheel that was written last.
fn newest_wheel(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let wheels = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    let newest = wheels.max_by_key(|path| path.metadata().and_then(|data| data.modified()).ok());
    match newest {
        Some(wheel) => Ok(wheel),
        None => bail!("maturin left no wheel in {}", folder.display()),
    }
}
