//! `tidy`: what the compiler does not check. Each rule looks at text only, so it is quick and needs no build.

mod arrows;
mod circles;
mod families;
mod files;
mod rooms;
mod source;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};

use crate::workspace;

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the root.
    file: String,
    /// Counted from 1; 0 if it is about the file as a whole.
    line: usize,
    /// What is wrong, and what is expected.
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// Checks this workspace.
///
/// # Errors
/// With all findings, if there are any.
pub fn run() -> Result<()> {
    let findings = findings(workspace::root())?;
    if findings.is_empty() {
        println!("tidy: no findings");
        return Ok(());
    }
    for finding in &findings {
        eprintln!("{finding}");
    }
    bail!("tidy has {} findings", findings.len())
}

/// Applies every rule to the tree below `root`.
fn findings(root: &Path) -> Result<Vec<Finding>> {
    let files = source::files(root)?;
    let mut findings = Vec::new();
    findings.extend(files::findings(&files));
    findings.extend(arrows::findings(&files));
    findings.extend(circles::findings(&files));
    findings.extend(rooms::findings(&files));
    findings.extend(families::findings(&files));
    Ok(findings)
}

#[cfg(test)]
mod tests;
