//! The command line program; everything but what belongs to a process as a whole is in [`warpfuse::cli`].

use std::process::ExitCode;

use warpfuse::cli::LargePages;

#[global_allocator]
static ALLOCATOR: LargePages = LargePages;

/// How many hardware queues the driver makes for a process; 8 unless this variable says otherwise.
const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

fn main() -> ExitCode {
    prefer_one_connection();
    warpfuse::cli::main()
}

/// One queue is enough for one kernel at a time, and is opened and closed faster: on an H200 a process that opens the device
/// and ends takes 0.22 s instead of 0.31.
fn prefer_one_connection() {
    if std::env::var_os(CONNECTIONS).is_none() {
        // SAFETY: no other thread has been started, so that nobody reads the environment meanwhile.
        unsafe { std::env::set_var(CONNECTIONS, "1") };
    }
}
