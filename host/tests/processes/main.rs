//! Several processes that share the rows: `mpirun -n 4 warpfuse train …`, against one process.
//!
//! Needs `mpirun` of Open MPI (Debian's packages `openmpi-bin` and `libopenmpi3`) or of MPICH; without it the cases are
//! ignored. The build machine installs it.

mod fits;
mod killed;
mod mpirun;
#[path = "../cli/program.rs"]
#[allow(dead_code)]
mod program;
mod spread;
mod words;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Names of cases, and what they do.
macro_rules! cases {
    ($($module:ident: $($case:ident),*;)*) => {
        [$($((concat!(stringify!($module), "::", stringify!($case)), $module::$case as fn()),)*)*]
    };
}

fn main() -> ExitCode {
    if std::env::var_os(spread::MEMBER).is_some() {
        spread::member();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::from_args();
    let absent = !mpirun::is_there();
    let all = cases! {
        fits: reproducible_fits_have_the_bits_of_one_process, fits_agree_with_one_process, caches_are_read_and_written_by_all, weights_and_validation_are_of_all_rows, penalties_are_compared_by_all, graphs_and_vectors_agree_with_one_process, kernel_ridge_has_the_bits_of_one_process, processes_read_lines_of_their_own, a_bad_line_of_one_process_ends_all, fewer_rows_than_processes_are_enough;
        killed: a_killed_process_is_named_and_ends_the_job, killed_jobs_go_on_from_their_checkpoints;
        spread: spread_vectors_have_the_bits_of_one_process;
        words: one_process_prints_and_writes, an_error_of_all_is_printed_once_and_ends_all, what_processes_cannot_share_is_refused, a_process_may_stay_alone, processes_that_cannot_talk_are_told_why;
    };
    let trial = |(name, case): (&str, fn())| {
        let trial = Trial::test(name, move || {
            case();
            Ok(())
        });
        trial.with_ignored_flag(absent)
    };
    libtest_mimic::run(&arguments, all.map(trial).into()).exit_code()
}
