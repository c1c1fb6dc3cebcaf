//! One text of PTX for several architectures.
//!
//! Code for an older architecture runs on every newer one, and ptxas makes the best of it for the one that it
//! assembles for: LLVM's texts for two architectures differ in their heads only. So rustc compiles once, for the
//! oldest, which takes half of the time of a build.

use std::fs;
use std::path::{Path, PathBuf};

use crate::stamp::Stamp;
use crate::{Arch, BuildError, Image};

/// Writes the PTX beside itself for a newer architecture, and returns that file.
///
/// # Errors
/// [`BuildError::Io`] with the path that could not be read or written.
pub(crate) fn copy_for(arch: Arch, ptx: &Path) -> Result<PathBuf, BuildError> {
    let folder = ptx.parent().unwrap_or(Path::new("."));
    let copy = Image::ptx_in(folder, arch);
    if copy == ptx {
        return Ok(copy);
    }
    let text = fs::read_to_string(ptx).map_err(BuildError::io(ptx, "read"))?;
    // What is there may have been compiled for this architecture alone, and will be again.
    Stamp::forget(&copy)?;
    fs::write(&copy, retargeted(&text, arch)).map_err(BuildError::io(&copy, "written"))?;
    Ok(copy)
}

/// The text with the head of another architecture.
fn retargeted(ptx: &str, arch: Arch) -> String {
    let mut text = String::with_capacity(ptx.len() + 16);
    for line in ptx.split_inclusive('\n') {
        if line.starts_with(".version ") {
            text.push_str(&format!(".version {}\n", arch.ptx_version()));
        } else if line.starts_with(".target ") {
            text.push_str(&format!(".target {arch}\n"));
        } else {
            text.push_str(line);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_head_changes() {
        let body = ".address_size 64\n\t// .target is a word\n.visible .entry a()\n{ ret; }\n";
        let text = format!("//\n.version 8.6\n.target sm_80\n{body}");
        let newer = retargeted(&text, Arch::Sm120);
        assert_eq!(newer, format!("//\n.version 8.7\n.target sm_120\n{body}"));
        assert_eq!(retargeted(&text, Arch::Sm80), text);
    }
}
