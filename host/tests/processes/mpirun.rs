//! `mpirun` of Open MPI or MPICH.

use std::process::{Command, Stdio};

use crate::program::{self, Folder, Run};

/// Whether there is one.
pub fn is_there() -> bool {
    let asked = Command::new("mpirun").arg("--version").output();
    asked.is_ok_and(|answer| answer.status.success())
}

/// The program in this many processes. Open MPI's files of the job go into the folder: where two jobs that begin or end together
/// share one, as they do in the system's by default, one of them may fail.
pub fn command(
    processes: usize,
    folder: &Folder,
    environment: &[(&str, &str)],
    arguments: &[&str],
) -> Command {
    let mut command = Command::new("mpirun");
    in_processes(&mut command, processes, environment)
        .env("OMPI_MCA_orte_tmpdir_base", folder.path(""))
        .arg(program::path())
        .args(arguments)
        .args(["--threads", "1"]);
    command
}

/// `mpirun` of what is added to it, in this many processes.
pub fn in_processes<'c>(
    command: &'c mut Command,
    processes: usize,
    environment: &[(&str, &str)],
) -> &'c mut Command {
    command
        // Build machines work as root, have fewer processors than processes, and no network.
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_hwloc_base_binding_policy", "none")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("OMPI_MCA_mpi_yield_when_idle", "1")
        .env("WARPFUSE_GROUP_LIMIT", "120")
        .env_remove("WARPFUSE_LOG")
        .envs(environment.iter().copied())
        .args(["-n", &processes.to_string()])
        .stdin(Stdio::null())
}

/// Runs the program in this many processes.
pub fn mpirun(processes: usize, environment: &[(&str, &str)], arguments: &[&str]) -> Run {
    let folder = Folder::new();
    let mut command = command(processes, &folder, environment, arguments);
    let output = command.output().expect("mpirun runs");
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Run {
        code: output.status.code().expect("no signal"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}
