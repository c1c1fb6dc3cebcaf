//! The Python package: the wheel for its users (`cargo xtask wheel`), and its tests (a step of `cargo xtask test`).

mod python;
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub use python::Environment;
pub use tests::{Extent, check, environment as for_tests};

use crate::quickstart::FAMILIES;
use crate::{step, workspace};

/// The arguments of `wheel`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Where the wheel goes.
    #[arg(long, default_value = "target/wheels")]
    out: PathBuf,
    /// Link against an old C library, so that the wheel runs on distributions from 2018 on (fetches Zig from PyPI).
    #[arg(long)]
    portable: bool,
    /// Build for Python 3.14 without a global lock, where the other wheel is for all that have one. The wheel is tried where
    /// $PYTHON names such an interpreter (python3.14t), and built without one.
    #[arg(long)]
    free_threaded: bool,
}

/// The oldest C library that `--portable` links against: of Debian 10, Ubuntu 18.10, RHEL 8.
const PORTABLE: &str = "manylinux_2_28";

/// The first Python of which the package has a wheel without the global lock.
const FREE_THREADED: &str = "python3.14t";

/// What the package may add to a download of NumPy, SciPy and scikit-learn, in bytes.
const LARGEST: u64 = 20_000_000;

/// What a first user does, in the environment that the wheel was installed into.
const FIRST_FIT: &str = "import warpfuse; \
    model = warpfuse.Ridge(alpha=2.0).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0]); \
    assert abs(model.coef_[0] - 1.0) < 1e-9, model.coef_; \
    assert warpfuse._native.has_kernels, 'the wheel was built without kernels'; \
    print('warpfuse', warpfuse.__version__, 'on', warpfuse.get_config()['device'])";

/// What importing the package takes of a processor's time after scikit-learn: the least of five processes.
const IMPORT_TIME: &str = "import subprocess, sys
program = '''import time, sklearn.linear_model
start = time.process_time()
import warpfuse
middle = time.process_time()
import warpfuse.linear_model
print(middle - start, time.process_time() - middle)'''
runs = [subprocess.check_output([sys.executable, '-c', program]).split() for _ in range(5)]
package, models = (min(float(run[i]) for run in runs) * 1e3 for i in (0, 1))
print(f'import warpfuse: {package:.1f} ms, its models: {models:.1f} ms')";

/// Builds the wheel, checks what it asks of a machine, and fits once in a fresh environment without Rust.
///
/// # Errors
/// With the step that failed; when the wheel is larger than it may be.
pub fn run(arguments: &Arguments) -> Result<()> {
    let interpreter = Interpreter::of(arguments)?;
    let out = workspace::root().join(&arguments.out);
    let tools = Environment::fresh(
        "wheel-tools",
        &["maturin>=1.9.4,<2", "abi3audit", "auditwheel"],
    )?;
    if arguments.portable {
        tools.install(&["ziglang"])?;
    }
    step::run(
        "building the wheel",
        &mut maturin(&tools, arguments, interpreter, &out),
    )?;
    let wheel = newest_wheel(&out)?;
    if !arguments.free_threaded {
        let mut abi = tools.program("abi3audit");
        step::run("stable ABI", abi.args(["--strict", "--report"]).arg(&wheel))?;
    }
    audit(&tools, &wheel)?;
    if interpreter == Interpreter::Absent {
        println!(
            "not tried: name an interpreter without the global lock by the variable PYTHON, such as {FREE_THREADED}"
        );
    } else {
        let users = Environment::fresh("wheel-user", &[])?;
        users.install(&[&wheel.to_string_lossy()])?;
        use_it(&users)?;
    }
    let bytes = fs::metadata(&wheel)?.len();
    println!("{}: {:.1} MB", wheel.display(), bytes as f64 / 1e6);
    if bytes > LARGEST {
        bail!("the wheel is larger than {} MB", LARGEST / 1_000_000);
    }
    Ok(())
}

/// What the wheel is built for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Interpreter {
    /// All that have a global lock, by the stable ABI.
    Locked,
    /// The Python of this machine, which has none.
    Free,
    /// One without the lock that is not here: maturin knows what it looks like.
    Absent,
}

impl Interpreter {
    fn of(arguments: &Arguments) -> Result<Interpreter> {
        Ok(
            match (arguments.free_threaded, python::is_free_threaded()?) {
                (false, _) => Interpreter::Locked,
                (true, true) => Interpreter::Free,
                (true, false) => Interpreter::Absent,
            },
        )
    }
}

/// What the wheel asks of a machine: the C library that its name says; no library of NVIDIA.
fn audit(tools: &Environment, wheel: &Path) -> Result<()> {
    let mut show = tools.program("auditwheel");
    step::run("what it links to", show.arg("show").arg(wheel))?;
    let libraries = tools
        .program("auditwheel")
        .arg("show")
        .arg(wheel)
        .output()?;
    let told = String::from_utf8_lossy(&libraries.stdout);
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    if !name.contains("manylinux") {
        bail!("{name} is not for all Linux distributions of an age: auditwheel says\n{told}");
    }
    if ["libcuda", "libnvidia"]
        .iter()
        .any(|library| told.contains(library))
    {
        bail!("the wheel links to NVIDIA's driver, which it should open at run time:\n{told}");
    }
    Ok(())
}

/// The first minutes of somebody who has no Rust.
fn use_it(users: &Environment) -> Result<()> {
    let python = |arguments: &[&str]| {
        let mut python = users.for_user("python");
        python.args(arguments);
        python
    };
    step::run("first fit", &mut python(&["-c", FIRST_FIT]))?;
    step::run("imports", &mut python(&["-c", IMPORT_TIME]))?;
    step::run("command line", users.for_user("warpfuse").arg("info"))?;
    step::run(
        "accelerated scripts",
        &mut python(&["-m", "warpfuse", "--help"]),
    )
    .map(|_| ())
}

/// What the package launches beyond the families of `quickstart`. With all others two architectures would take more than the wheel
/// may.
const OF_PACKAGE: [&str; 2] = ["fits", "kernel_sum"];

fn maturin(
    tools: &Environment,
    arguments: &Arguments,
    interpreter: Interpreter,
    out: &Path,
) -> Command {
    let mut maturin = tools.program("maturin");
    // Built once, fetched often.
    maturin.env("WARPFUSE_SMALL", "1");
    if std::env::var_os("WARPFUSE_FAMILIES").is_none() {
        let families = FAMILIES.iter().chain(&OF_PACKAGE);
        let families: Vec<&str> = families.copied().collect();
        maturin.env("WARPFUSE_FAMILIES", families.join(","));
    }
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
    // There is no stable ABI without the lock before 3.15: PyO3 leaves it out.
    match interpreter {
        Interpreter::Locked => {}
        // Its environment has the interpreter that it was made of.
        Interpreter::Free => {
            maturin.args(["--interpreter", "python"]);
        }
        Interpreter::Absent => {
            maturin.args(["--interpreter", FREE_THREADED]);
        }
    }
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
