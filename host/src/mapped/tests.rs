use std::io::Write as _;

use super::*;

/// Large enough for several pages of any size.
const BYTES: usize = 1 << 20;

fn mapped(folder: &tempfile::TempDir) -> (PathBuf, MappedFile) {
    let path = folder.path().join("bytes");
    std::fs::write(&path, vec![7_u8; BYTES]).expect("a folder for files");
    let file = File::open(&path).expect("it was just written");
    let mapped = MappedFile::new(&path, file).expect("a file can be mapped");
    (path, mapped)
}

fn cut(path: &Path, bytes: u64) {
    let file = File::options().write(true).open(path);
    file.and_then(|file| file.set_len(bytes))
        .expect("it is ours");
}

#[test]
fn a_file_that_stays_is_sound() {
    let folder = tempfile::tempdir().expect("a folder for files");
    let (_, mapped) = mapped(&folder);
    assert!(mapped.iter().all(|byte| *byte == 7));
    assert_eq!(mapped.check(), Ok(()));
}

#[test]
#[cfg(unix)]
fn a_file_that_shrinks_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir().expect("a folder for files");
    let (path, mapped) = mapped(&folder);
    cut(&path, 100);
    // The rest of the first page is zeros by the system, all others by the guard.
    assert_eq!(mapped[99], 7);
    assert!(mapped[BYTES / 2..].iter().all(|byte| *byte == 0));
    assert!(mapped[100..].iter().all(|byte| *byte == 0));
    let changed = mapped.check().expect_err("it was cut");
    assert_eq!(
        (changed.expected_bytes, changed.found_bytes),
        (BYTES as u64, Some(100))
    );
    let text = changed.to_string();
    assert!(
        text.contains("expected 1048576 bytes as they were, found 100 bytes"),
        "{text}"
    );
}

#[test]
#[cfg(unix)]
fn pages_that_were_lost_stay_lost() {
    let folder = tempfile::tempdir().expect("a folder for files");
    let (path, mapped) = mapped(&folder);
    cut(&path, 0);
    assert_eq!(mapped[BYTES - 1], 0);
    cut(&path, BYTES as u64);
    assert!(mapped.check_beginning().is_err());
}

#[test]
#[cfg(unix)]
fn all_threads_and_many_mappings_are_guarded() {
    let folders: Vec<_> = (0..8)
        .map(|_| tempfile::tempdir().expect("a folder"))
        .collect();
    let files: Vec<_> = folders.iter().map(mapped).collect();
    for (path, _) in files.iter().step_by(2) {
        cut(path, 1);
    }
    std::thread::scope(|scope| {
        for (_, mapped) in &files {
            scope.spawn(|| mapped.iter().map(|byte| u64::from(*byte)).sum::<u64>());
        }
    });
    for (number, (_, mapped)) in files.iter().enumerate() {
        assert_eq!(mapped.check().is_ok(), number % 2 == 1);
    }
}

#[test]
fn a_file_that_grows_is_sound_at_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder for files");
    let (path, mapped) = mapped(&folder);
    let file = File::options().append(true).open(&path);
    file.and_then(|mut file| file.write_all(b"more"))
        .expect("it is ours");
    assert!(mapped.check().is_err());
    assert_eq!(mapped.check_beginning(), Ok(()));
}

#[test]
fn a_file_that_is_replaced_is_still_mapped() {
    let folder = tempfile::tempdir().expect("a folder for files");
    let (path, mapped) = mapped(&folder);
    let other = folder.path().join("other");
    std::fs::write(&other, b"others").expect("a folder for files");
    std::fs::rename(other, path).expect("a folder for files");
    assert!(mapped.iter().all(|byte| *byte == 7));
    assert_eq!(mapped.check(), Ok(()));
}
