//! `quickstart`: from a fresh clone to a trained model, in one command.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use gpu_kernels_builder::{Arch, Install, LineInfo};

use crate::{ptx, step, workspace};

/// The data set in the repository, from the root.
const DATA: &str = "host/examples/data/diabetes.libsvm";

/// The arguments of `quickstart`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install and fetch nothing; without a PTX compiler the CPU is used.
    #[arg(long)]
    no_install: bool,
}

/// Sets up, builds, trains, and says what to try next.
///
/// # Errors
/// If the build or the training fails. A PTX compiler that cannot be had is no error: the CPU remains.
pub fn run(arguments: &Arguments) -> Result<()> {
    let install = if arguments.no_install {
        Install::Forbidden
    } else {
        Install::Allowed
    };
    let data = workspace::root().join(DATA);
    ensure!(
        data.is_file(),
        "expected the data set {DATA}, found nothing"
    );
    eprintln!("==> kernels: Rust to PTX");
    match ptx::build(&Arch::DEFAULT, install, LineInfo::Omitted) {
        Ok(output) => ptx::summarise(&output),
        Err(error) => eprintln!("without kernels for the GPU, since {error:#}"),
    }
    let mut build = step::cargo(&["build", "--release", "--package", "warpfuse"]);
    step::run("the program (some minutes the first time)", &mut build)?;
    let mut train = step::command(program(), &["train", "linreg", DATA]);
    step::run(
        "linear regression on 442 patients of a diabetes study",
        &mut train,
    )?;
    print!("{}", next_steps());
    Ok(())
}

fn program() -> PathBuf {
    let name = format!("warpfuse{}", std::env::consts::EXE_SUFFIX);
    workspace::target_dir().join("release").join(name)
}

fn next_steps() -> String {
    let program = program();
    let program = program.strip_prefix(workspace::root()).unwrap_or(&program);
    let program = program.display();
    let steps = [
        (
            "save the model",
            format!("{program} train linreg {DATA} -o model.safetensors"),
        ),
        (
            "and use it",
            format!("{program} predict model.safetensors {DATA}"),
        ),
        ("devices and limits", format!("{program} info")),
        (
            "how a GPU would be used, and why",
            format!("{program} plan {DATA} --gpu h200"),
        ),
        ("everything else", format!("{program} --help")),
        ("build and check everything", "cargo xtask test".into()),
    ];
    let line = |(what, command): &(&str, String)| format!("  {what}:\n    {command}\n");
    format!(
        "\nWhat to try next:\n{}",
        steps.iter().map(line).collect::<String>()
    )
}
