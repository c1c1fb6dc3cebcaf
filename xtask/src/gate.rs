//! `test`: sets up, builds, checks everything, and stops at the first step that fails. `.ci/run` calls it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};
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

/// Runs all steps: what takes seconds first; then side by side what is only looked at, the kernels, and the tests, which begin
/// when they are compiled: a lint takes one core for minutes, and fills what the others leave.
///
/// # Errors
/// With the name of the step that failed. Of steps side by side all come to their end before.
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
    let mut toolchain = None;
    named("tools", || {
        toolchain = Some(ptx::obtain_tools(install, Assembly::Required)?);
        Ok(())
    })?;
    let lints = lints(toolchain.as_ref());
    let count = lints.len() + 8;
    let linted = thread::spawn(|| named("tidy", tidy::run).and_then(|()| one_by_one(lints)));
    let checked = thread::spawn(move || named("PTX", || kernels(install)));
    let tested = compile_and_try(install, extent(arguments));
    ended(linted).and(ended(checked)).and(tested)?;
    println!(
        "\nall {count} steps passed in {:.1} min; {}",
        start.elapsed().as_secs_f64() / 60.0,
        cuda_cases()
    );
    Ok(())
}

fn extent(arguments: &Arguments) -> wheel::Extent {
    match arguments.python_full {
        true => wheel::Extent::Full,
        false => wheel::Extent::Sample,
    }
}

/// Compiles the tests and runs them. Beside them come the documentation's examples and Python's tests: executables follow each
/// other, and at the end of each, and while examples are compiled, one core has nothing to do.
fn compile_and_try(install: Install, extent: wheel::Extent) -> Result<()> {
    let prepared = thread::spawn(move || match install {
        Install::Allowed => wheel::for_tests(extent).map(Some),
        Install::Forbidden => Ok(None),
    });
    let compiled = step::run("compiling the tests", &mut all_tests());
    let prepared = ended(prepared);
    compiled?;
    let environment = prepared?;
    let beside = thread::spawn(move || try_beside(environment, extent));
    // Programs and libraries have tests too.
    let tested = step::run(
        "tests",
        &mut tests(&["test", "--workspace", "--tests", "--quiet"]),
    );
    ended(beside).and(tested.map(|_| ()))
}

fn try_beside(environment: Option<wheel::Environment>, extent: wheel::Extent) -> Result<()> {
    step::run(
        "the documentation's examples",
        &mut tests(&["test", "--workspace", "--doc", "--quiet"]),
    )?;
    match environment {
        Some(environment) => named("Python", || wheel::check(&environment, extent)),
        None => {
            eprintln!("Python is left out: a fresh environment fetches packages from PyPI");
            Ok(())
        }
    }
}

fn one_by_one(steps: Vec<(&'static str, Command)>) -> Result<()> {
    for (headline, mut command) in steps {
        step::run(headline, &mut command)?;
    }
    Ok(())
}

fn ended<R>(beside: JoinHandle<Result<R>>) -> Result<R> {
    match beside.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// A cargo command for tests, whose library embeds what [`kernels`] compiles. All of them name the same wrapper: with another
/// one, cargo compiles the workspace's crates again.
fn tests(arguments: &[&str]) -> Command {
    let mut tests = cargo(arguments);
    tests
        .env("WARPFUSE_ARCH", NEWEST.name())
        .env("RUSTC_WORKSPACE_WRAPPER", workspace::root().join(INLINED));
    tests
}

/// Calls the compiler so that tests, which are not optimised, take less time.
const INLINED: &str = "xtask/inlined.sh";

/// All tests, and Python's extension beside them: for the package alone other features of rand, serde and three more would have
/// the library and what it depends on compiled once more (150 s of a processor). Examples are linted, and not made.
fn all_tests() -> Command {
    let mut build = tests(&["build", "--workspace", "--lib", "--tests", "--quiet"]);
    build.args(["--features", "warpfuse-python/emulator"]);
    build
}

/// Compiles and checks the kernels.
fn kernels(install: Install) -> Result<()> {
    ptx::summarise(&ptx::build(&[NEWEST], install, LineInfo::Omitted)?);
    ptx::check_older(install)?;
    ptx::compare_alone(install)
}

/// Kernels are compiled and assembled for one architecture, which takes three minutes of one core (the library's build script
/// waits for it); what differs from one to another is checked besides. `build-ptx` and `bundle` do all.
const NEWEST: Arch = Arch::Sm90;

/// Everything is compiled once: neither what makes the next compilation faster nor debug information pays.
fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = step::cargo(arguments);
    cargo
        .env("CARGO_INCREMENTAL", "0")
        .env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

/// All that is looked at and not run.
fn lints(toolchain: Option<&Toolchain>) -> Vec<(&'static str, Command)> {
    let mut steps = vec![
        ("lint", lint()),
        ("lint without CUDA", lint_without_cuda()),
        ("documentation", documentation()),
    ];
    steps.extend(toolchain.and_then(lint_of_device_code));
    steps
}

fn lint() -> Command {
    let mut lint = looking(&["clippy", "--workspace", "--all-targets", "--quiet"]);
    lint.arg("--").args(LINT_ARGUMENTS);
    lint
}

const LINT_ARGUMENTS: [&str; 2] = ["-D", "warnings"];

/// The library and the program's code where the feature `cuda` is off: other files stand in for the driver's then.
fn lint_without_cuda() -> Command {
    let mut lint = looking(&["clippy", "--package", "warpfuse", "--lib", "--quiet"]);
    lint.args(["--no-default-features", "--features", "cli"]);
    lint.args(["--", "-D", "warnings"]);
    lint
}

/// Of everything that has some. Cargo's examples bring features of dependencies that tests have too, and clippy stands in for
/// the compiler as it did for [`lint`]: what that left of each crate serves here, and no crate is looked at for its users
/// alone.
fn documentation() -> Command {
    let mut doc = looking(&["doc", "--workspace", "--no-deps", "--quiet"]);
    doc.args(["--lib", "--examples"]);
    // All programs but `warpfuse`, whose page the library of that name has.
    doc.args(["--bin", "[!w]*", "--bin", "warpfuse-*"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    if let Some(driver) = clippy() {
        // As `cargo clippy` sets them, which the names of what it left depend on.
        let arguments = LINT_ARGUMENTS.map(|argument| format!("{argument}__CLIPPY_HACKERY__"));
        doc.env("RUSTC_WORKSPACE_WRAPPER", driver);
        doc.env("CLIPPY_ARGS", arguments.concat());
    }
    doc
}

/// Clippy as a compiler, beside the one that cargo takes.
fn clippy() -> Option<PathBuf> {
    let sysroot = step::output(&mut step::command("rustc", &["--print", "sysroot"]))?;
    let driver = Path::new(sysroot.trim()).join("bin/clippy-driver");
    driver.is_file().then_some(driver)
}

/// For what compiles no program: the library's build script makes no PTX then, and what it brings along, of which nothing runs,
/// is not optimised. cargo lets one build at a time into a folder, so these have one of their own; what both need compiled are
/// macros and build scripts.
fn looking(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments);
    for package in ["gpu-kernels-builder", "zstd-sys"] {
        let level = format!("profile.dev.package.{package}.opt-level=0");
        command.args(["--config", &level]);
    }
    command
        .env("DOCS_RS", "1")
        .env("CARGO_TARGET_DIR", lint_dir());
    command
}

fn lint_dir() -> PathBuf {
    workspace::target_dir().join("lint")
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
        .arg(lint_dir())
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
