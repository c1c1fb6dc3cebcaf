//! Where things lie in this workspace.

use std::env;
use std::path::{Path, PathBuf};

/// The workspace's root: the folder above this package.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the package lies in the workspace")
}

/// cargo's target folder.
pub fn target_dir() -> PathBuf {
    match env::var_os("CARGO_TARGET_DIR") {
        Some(named) => root().join(named),
        None => root().join("target"),
    }
}

/// Where kernels are compiled; `host/build.rs` uses the same folder, so nothing is compiled twice.
pub fn ptx_dir() -> PathBuf {
    target_dir().join("ptx")
}

/// Where a fetched ptxas is kept.
pub fn tools_dir() -> PathBuf {
    target_dir().join("cuda-tools")
}

/// The cargo that is running us.
pub fn cargo() -> PathBuf {
    env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}
