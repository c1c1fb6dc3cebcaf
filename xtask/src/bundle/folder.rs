//! Files and folders, with their names in the errors.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Marks a folder that we made, and may remove.
const MARK: &str = "about.json";

/// Makes an empty folder; what an earlier bundle left is removed, anything else is not.
pub fn start_afresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        ensure!(
            folder.join(MARK).is_file() || is_empty(folder)?,
            "{} holds something that is not a bundle: choose another folder",
            folder.display()
        );
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    // Written first, so that a bundle that was not finished may be replaced as well.
    write(&folder.join(MARK), "{}\n")
}

fn is_empty(folder: &Path) -> Result<bool> {
    let mut entries =
        fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    Ok(entries.next().is_none())
}

/// Copies a file, making the folder that it goes into.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    fs::copy(from, to)
        .map(|_| ())
        .with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

/// Copies a folder with what is in it.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).with_context(|| format!("reading {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy_tree(&path, &copied)?;
        } else {
            copy(&path, &copied)?;
        }
    }
    Ok(())
}

/// Bytes of all files below a folder.
pub fn size(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        bytes += if path.is_dir() {
            size(&path)?
        } else {
            path.metadata()?.len()
        };
    }
    Ok(bytes)
}

/// Writes a text file.
pub fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

/// Writes a text file that can be run.
pub fn write_script(path: &Path, text: &str) -> Result<()> {
    write(path, text)?;
    make_executable(path)
}

/// Lets a file be run.
pub fn make_executable(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("making {} executable", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_folder_is_left_alone_and_a_bundle_is_replaced() {
        let folder = std::env::temp_dir().join(format!("warpfuse-bundle-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a writable temporary folder");
        write(&folder.join("thesis.txt"), "five years of work").expect("writable");
        let refused = start_afresh(&folder);
        let kept = folder.join("thesis.txt").is_file();
        write(&folder.join(MARK), "{}").expect("writable");
        let replaced = start_afresh(&folder);
        let emptied = !folder.join("thesis.txt").exists();
        let bytes = size(&folder);
        let _ = fs::remove_dir_all(&folder);
        assert!(refused.is_err() && kept);
        assert!(replaced.is_ok() && emptied);
        assert_eq!(bytes.ok(), Some(3));
    }
}
