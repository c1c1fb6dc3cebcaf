//! `test`: sets up, builds, checks everything, and stops at the first step that fails. `.ci/run` calls it.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use anyhow::{Result, bail};
use gpu_kernels_builder::{Arch, Assembly, Install, LineInfo, Origin, Toolchain};

use crate::{ptx, step, tidy, wheel, workspace};

/// The arguments of `test`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install and fetch nothing; say instead what to do.
    #[arg(long)]
    no_install: bool,
    /// Run all of scikit-learn's tests of what the Python package replaces, not a sample.
    #[arg(long)]
    python_full: bool,
}

/// Runs all steps, quick ones first.
///
/// # Errors
/// With the name of the step that failed.
pub fn run(arguments: &Arguments) -> Result<()> {
    let install = if arguments.no_install {
        Install::Forbidden
    } else {
        Install::Allowed
    };
    let start = Instant::now();
    ensure_component("fmt", "rustfmt", install)?;
    ensure_component("clippy", "clippy", install)?;
    step::run("format", &mut step::cargo(&["fmt", "--all", "--check"]))?;
    named("tidy", tidy::run)?;
    let mut toolchain = None;
    named("tools", || {
        toolchain = Some(ptx::obtain_tools(install, Assembly::Required)?);
        Ok(())
    })?;
    // The PTX takes one core for minutes; what needs none has the others meanwhile.
    let kernels = thread::spawn(move || kernels(install));
    let mut steps = vec![
        ("lint", lint()),
        ("lint without CUDA", lint_without_cuda()),
        ("documentation", documentation()),
    ];
    steps.extend(toolchain.and_then(|toolchain| lint_of_device_code(&toolchain)));
    let count = steps.len() + 6;
    for (headline, mut command) in steps {
        step::run(headline, &mut command)?;
    }
    named("PTX", || match kernels.join() {
        Ok(checked) => checked,
        Err(panic) => std::panic::resume_unwind(panic),
    })?;
    // Builds everything, and includes doctests.
    let mut tests = cargo(&["test", "--workspace", "--quiet"]);
    step::run("tests", tests.env("WARPFUSE_ARCH", NEWEST.name()))?;
    named("Python", || python(arguments, install))?;
    println!(
        "\nall {count} steps passed in {:.1} min; {}",
        start.elapsed().as_secs_f64() / 60.0,
        cuda_cases()
    );
    Ok(())
}

/// The package's tests, with the library as the other tests have it.
fn python(arguments: &Arguments, install: Install) -> Result<()> {
    if install == Install::Forbidden {
        eprintln!("left out: a fresh environment fetches packages from PyPI");
        return Ok(());
    }
    let extent = match arguments.python_full {
        true => wheel::Extent::Full,
        false => wheel::Extent::Sample,
    };
    // All that the tests are made of, which is there: for the package alone other features of rand, serde and three more would
    // have the library and what it depends on compiled once more (150 s of a processor).
    let mut build = cargo(&["build", "--workspace", "--lib", "--tests", "--quiet"]);
    build.args(["--features", "warpfuse-python/emulator"]);
    wheel::check(build.env("WARPFUSE_ARCH", NEWEST.name()), extent)
}

/// Compiles and checks the kernels.
fn kernels(install: Install) -> Result<()> {
    ptx::summarise(&ptx::build(&[NEWEST], install, LineInfo::Omitted)?);
    ptx::check_older(install)?;
    ptx::compare_alone(install)
}

/// Kernels are compiled and assembled for one architecture, which takes three minutes of one core; what differs from one
/// to another is checked besides. `build-ptx` and `bundle` do all.
const NEWEST: Arch = Arch::Sm90;

/// Everything is compiled once: neither what makes the next compilation faster nor debug information pays.
fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = step::cargo(arguments);
    cargo
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

fn lint() -> Command {
    let what = ["clippy", "--workspace", "--all-targets", "--quiet"];
    let mut lint = cargo(&what);
    lint.args(["--", "-D", "warnings"]);
    without_kernels(lint)
}

/// The library and the program's code where the feature `cuda` is off: other files stand in for the driver's then.
fn lint_without_cuda() -> Command {
    let mut lint = cargo(&["clippy", "--package", "warpfuse", "--lib", "--quiet"]);
    lint.args(["--no-default-features", "--features", "cli"]);
    lint.args(["--", "-D", "warnings"]);
    without_kernels(lint)
}

/// For what compiles no program: the library's build script makes no PTX then.
fn without_kernels(mut command: Command) -> Command {
    command.env("DOCS_RS", "1");
    command
}

fn documentation() -> Command {
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    without_kernels(doc)
}

/// The code that only the GPU's compilation sees, `unsafe` blocks and all. It needs clippy beside the
/// compiler that has the library source.
fn lint_of_device_code(toolchain: &Toolchain) -> Option<(&'static str, Command)> {
    if toolchain.origin != Origin::Active {
        return None;
    }
    let mut lint = cargo(&[
        "clippy",
        "--package",
        "gpu-kernels",
        "--lib",
        "--target",
        "nvptx64-nvidia-cuda",
        "-Zbuild-std=core",
        "--quiet",
    ]);
    lint.args(["--target-dir"])
        .arg(workspace::ptx_dir().join("lint"))
        // The builder makes the conditions of units.
        .args(["--", "-D", "warnings", "-A", "unexpected_cfgs"])
        .env("RUSTC_BOOTSTRAP", "1");
    Some(("lint of device code", lint))
}

fn named(headline: &str, chore: impl FnOnce() -> Result<()>) -> Result<()> {
    eprintln!("\n==> {headline}");
    chore().map_err(|error| error.context(headline.to_owned()))
}

/// A toolchain may lack rustfmt or clippy although `rust-toolchain.toml` asks for them, if it was there
/// before and rustup installs nothing by itself.
fn ensure_component(subcommand: &str, component: &str, install: Install) -> Result<()> {
    if step::succeeds(&mut step::cargo(&[subcommand, "--version"])) {
        return Ok(());
    }
    if install == Install::Forbidden {
        bail!("{component} is missing: run `rustup component add {component}`");
    }
    if !step::succeeds(&mut step::command("rustup", &["--version"])) {
        bail!(
            "{component} is missing and this Rust is not rustup's: install Rust from https://rustup.rs"
        );
    }
    let mut add = step::command("rustup", &["component", "add", component]);
    step::run(&format!("installing {component}"), &mut add).map(|_| ())
}

fn cuda_cases() -> &'static str {
    if Path::new("/dev/nvidia0").exists() {
        "the CUDA cases ran on this machine's GPU"
    } else {
        "there is no GPU here, so the CUDA cases were ignored: `cargo xtask bundle` takes them to one"
    }
}
