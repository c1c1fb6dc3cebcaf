//! `quickstart`: from a fresh clone to a trained model, in one command.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use gpu_kernels_builder::{Arch, Assembly, Install};

use crate::{ptx, step, workspace};

/// The data set in the repository, from the root.
const DATA: &str = "host/examples/data/diabetes.libsvm";

/// Cargo's profile of the program, and of xtask (`.cargo/config.toml`).
const PROFILE: &str = "quickstart";

/// The families whose kernels training, prediction and evaluation launch. The others, almost half of the time that kernels take
/// to compile, are for the library's users, or fit many small models in one launch instead of one by one: an ordinary build has
/// them too.
pub const FAMILIES: [&str; 8] = [
    "fused",
    "objective",
    "vector",
    "cg",
    "design",
    "peers",
    "reduce",
    "stream",
];

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
    let wanted = archs()?;
    let (archs, assembly) = match wanted.is_empty() {
        true => (vec![WITHOUT_GPU], Assembly::Skipped),
        false => (wanted, Assembly::Required),
    };
    eprintln!("==> the tools for PTX");
    if let Err(error) = ptx::obtain_tools(install, assembly) {
        eprintln!("without kernels for the GPU, since {error:#}");
    }
    let names: Vec<&str> = archs.iter().map(|arch| arch.name()).collect();
    let mut build = step::cargo(&["build", "--profile", PROFILE, "--package", "warpfuse"]);
    build.env("WARPFUSE_ARCH", names.join(","));
    if assembly == Assembly::Skipped {
        eprintln!(
            "there is no GPU here: kernels become PTX for {WITHOUT_GPU}, which a driver compiles when it first uses them; \
             WARPFUSE_ARCH=sm_80 or another makes machine code for that"
        );
        build.env("WARPFUSE_PTX_ONLY", "1");
    }
    if std::env::var_os("WARPFUSE_FAMILIES").is_none() {
        build.env("WARPFUSE_FAMILIES", FAMILIES.join(","));
    }
    // One command: the library's build script compiles the kernels beside the dependencies.
    step::run(
        "the kernels and the program (some minutes the first time)",
        &mut build,
    )?;
    let mut train = step::command(program(), &["train", "linreg", DATA]);
    step::run(
        "linear regression on 442 patients of a diabetes study",
        &mut train,
    )?;
    print!("{}", next_steps());
    Ok(())
}

/// For which kernels are made where there is no GPU: the newest architecture that is measured.
const WITHOUT_GPU: Arch = Arch::Sm90;

/// Those that the caller names, or that of the GPU at hand; none without one.
fn archs() -> Result<Vec<Arch>> {
    if let Ok(list) = std::env::var("WARPFUSE_ARCH") {
        return Ok(Arch::parse_list(&list)?);
    }
    let mut ask = step::command(
        "nvidia-smi",
        &["--query-gpu=compute_cap", "--format=csv,noheader"],
    );
    let said = ask.output().map(|output| output.stdout).unwrap_or_default();
    let mut archs: Vec<Arch> = String::from_utf8_lossy(&said)
        .lines()
        .filter_map(arch_of)
        .collect();
    archs.sort_unstable();
    archs.dedup();
    Ok(archs)
}

/// The architecture whose machine code a GPU of this compute capability (such as `8.6`) runs: the oldest of its major number, as
/// it serves all of that number; of an unknown number the newest before it, whose PTX the driver compiles.
fn arch_of(capability: &str) -> Option<Arch> {
    let (major, minor) = capability.trim().split_once('.')?;
    let capability: (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let older = |arch: &Arch| arch.compute_capability() <= capability;
    let same = |arch: &Arch| arch.compute_capability().0 == capability.0;
    let mut known = Arch::ALL.into_iter().filter(older);
    known.clone().find(same).or_else(|| known.next_back())
}

fn program() -> PathBuf {
    let name = format!("warpfuse{}", std::env::consts::EXE_SUFFIX);
    workspace::target_dir().join(PROFILE).join(name)
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
        (
            "the whole program: fits by the CPU in 0.8 of the time, kernels of matrix products, QR and convolutions too",
            "cargo build --release --package warpfuse".into(),
        ),
        ("build and check everything", "cargo xtask test".into()),
    ];
    let line = |(what, command): &(&str, String)| format!("  {what}:\n    {command}\n");
    format!(
        "\nWhat to try next:\n{}",
        steps.iter().map(line).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn families_are_in_the_list_of_all() {
        let known: Vec<&str> = gpu_kernels::families::family_names().collect();
        for family in FAMILIES {
            assert!(known.contains(&family), "{family}");
        }
    }

    /// Packages and features of a build, a line each.
    fn resolved(package: &str) -> BTreeSet<String> {
        let mut tree = step::cargo(&["tree", "--offline", "--edges", "normal,build"]);
        tree.args([
            "--package",
            package,
            "--prefix",
            "none",
            "--format",
            "{p} [{f}]",
        ]);
        let said = tree.output().expect("cargo runs");
        assert!(
            said.status.success(),
            "{}",
            String::from_utf8_lossy(&said.stderr)
        );
        let lines = String::from_utf8_lossy(&said.stdout).into_owned();
        let lines = lines
            .lines()
            .map(|line| line.trim_end_matches(" (*)").to_owned());
        lines.collect()
    }

    /// A package with other features is compiled a second time, with all that depend on it.
    #[test]
    fn what_xtask_and_the_program_need_has_the_same_features() {
        let (own, program) = (resolved("xtask"), resolved("warpfuse"));
        let twice = own.difference(&program);
        let twice: Vec<_> = twice.filter(|line| !line.starts_with("xtask v")).collect();
        assert!(
            own.len() > 30 && twice.is_empty(),
            "compiled twice: {twice:?}; give xtask the same features"
        );
    }

    #[test]
    fn a_gpu_gets_machine_code_that_it_runs() {
        assert_eq!(arch_of("8.6"), Some(Arch::Sm80));
        assert_eq!(arch_of(" 9.0"), Some(Arch::Sm90));
        assert_eq!(arch_of("10.3"), Some(Arch::Sm100));
        assert_eq!(arch_of("12.1"), Some(Arch::Sm120));
        assert_eq!(arch_of("11.0"), Some(Arch::Sm100));
        assert_eq!(arch_of("7.5"), None);
        assert_eq!(arch_of("[N/A]"), None);
    }
}
