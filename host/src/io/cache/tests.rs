use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use super::header::{Header, Sizes};
use super::reseal_cache;
#[cfg(unix)]
use super::write_cache_rows;
use crate::io::tests::{Scratch, file, read_as};
use crate::io::{CachePolicy, Columns, Format, MemoryLimit, ReadOptions, read, write_cache};
use crate::matrix::{Dataset, Dtype, Element, Features, csr_from_parts};

const TEXT: &str = "1 1:0.5 3:2\n-1 2:1e-3\n";

fn through_cache() -> ReadOptions {
    ReadOptions {
        cache: CachePolicy::ReadWrite,
        ..ReadOptions::default()
    }
}

fn cache_of(text: &Scratch) -> PathBuf {
    text.path.with_extension("svm.wfc")
}

fn read_text<T: Element>(text: &Scratch, options: &ReadOptions) -> Dataset<T> {
    read(&text.path, options).expect("a good file")
}

/// Replaces the text by another of the same length, with the same time of modification.
fn swap_unnoticed(text: &Scratch) {
    let time = fs::metadata(&text.path)
        .and_then(|file| file.modified())
        .expect("a file");
    fs::write(&text.path, TEXT.replace('2', "7")).expect("writable");
    set_time(text, time);
}

fn set_time(text: &Scratch, time: SystemTime) {
    let file = fs::File::options()
        .write(true)
        .open(&text.path)
        .expect("writable");
    file.set_modified(time).expect("a file system with times");
}

#[test]
fn a_fresh_cache_is_used_and_a_stale_one_is_not() {
    let text = file("a.svm", TEXT);
    let first = read_text::<f64>(&text, &through_cache());
    assert!(cache_of(&text).exists());
    assert_eq!(read_text::<f64>(&text, &ReadOptions::default()), first);

    // The cache is what is read: a swap that leaves size and time alone goes unnoticed.
    swap_unnoticed(&text);
    assert_eq!(read_text::<f64>(&text, &through_cache()), first);
    assert_ne!(read_text::<f64>(&text, &ReadOptions::default()), first);

    // A new time of modification is noticed, and the cache written anew.
    set_time(&text, SystemTime::now() + Duration::from_secs(60));
    let second = read_text::<f64>(&text, &through_cache());
    assert_eq!(second, read_text::<f64>(&text, &ReadOptions::default()));
    fs::write(&text.path, format!("{TEXT}1 1:1\n")).expect("writable");
    assert_eq!(read_text::<f64>(&text, &through_cache()).features.rows(), 3);
}

#[test]
fn another_element_type_or_option_is_another_cache() {
    let text = file("a.svm", TEXT);
    read_text::<f32>(&text, &through_cache());
    swap_unnoticed(&text);
    let changed = read_text::<f64>(&text, &ReadOptions::default());
    assert_eq!(read_text::<f64>(&text, &through_cache()), changed);
    let wide = ReadOptions {
        columns: Columns::AtLeast(9),
        ..through_cache()
    };
    assert_eq!(read_text::<f64>(&text, &wide).features.cols(), 9);
}

#[test]
fn nothing_is_written_unless_asked_for() {
    let text = file("a.svm", TEXT);
    read_text::<f64>(&text, &ReadOptions::default());
    let only_read = ReadOptions {
        cache: CachePolicy::Read,
        ..ReadOptions::default()
    };
    read_text::<f64>(&text, &only_read);
    let folder = text.path.parent().expect("a folder");
    assert_eq!(fs::read_dir(folder).expect("a folder").count(), 1);
}

#[test]
fn an_unsound_cache_is_passed_over() {
    let text = file("a.svm", TEXT);
    let expected = read_text::<f64>(&text, &through_cache());
    let sound = fs::read(cache_of(&text)).expect("written");
    for damaged in [
        &b"not a cache"[..],
        &sound[..100],
        &sound[..sound.len() - 1],
        &[],
    ] {
        fs::write(cache_of(&text), damaged).expect("writable");
        assert_eq!(read_text::<f64>(&text, &through_cache()), expected);
    }
    let mut flipped = sound.clone();
    *flipped.last_mut().expect("not empty") ^= 0x40;
    fs::write(cache_of(&text), &flipped).expect("writable");
    assert_eq!(read_text::<f64>(&text, &through_cache()), expected);
    assert_eq!(fs::read(cache_of(&text)).expect("written anew"), sound);
}

fn small<T: Element>(value: f64) -> Dataset<T> {
    let values = vec![T::one(), T::from_f64(value)];
    let x = csr_from_parts((2, 5), vec![0, 2, 2], vec![1, 4], values).expect("sound");
    Dataset {
        features: Features::Sparse(x),
        targets: None,
    }
}

#[test]
fn a_cache_is_a_file_in_its_own_right() {
    let scratch = file("a.wfc", "");
    write_cache(&scratch.path, &small::<f64>(0.1)).expect("writable");
    assert_eq!(
        read::<f64>(&scratch.path, &through_cache()).expect("good"),
        small(0.1)
    );
    assert_eq!(
        read::<f32>(&scratch.path, &through_cache()).expect("good"),
        small(0.1)
    );
    write_cache(&scratch.path, &small::<f64>(1e300)).expect("writable");
    let error = read::<f32>(&scratch.path, &ReadOptions::default()).expect_err("too large");
    assert!(
        matches!(error, crate::io::ReadError::Cast { .. }),
        "{error}"
    );
    write_cache(&scratch.path, &small::<f64>(f64::NAN)).expect("writable");
    let error = read::<f64>(&scratch.path, &ReadOptions::default()).expect_err("NaN");
    assert!(
        error
            .to_string()
            .contains("expected finite values, found NaN"),
        "{error}"
    );
    assert_eq!(
        fs::read_dir(scratch.path.parent().expect("a folder"))
            .expect("one")
            .count(),
        1
    );
}

#[test]
fn numbers_of_another_type_have_to_fit_the_memory() {
    let scratch = file("small.wfc", []);
    write_cache(&scratch.path, &small::<f32>(0.5)).expect("written");
    let little = ReadOptions {
        memory: MemoryLimit::Bytes(15),
        ..ReadOptions::default()
    };
    assert!(read::<f32>(&scratch.path, &little).is_ok());
    let error = read::<f64>(&scratch.path, &little).expect_err("too large");
    let told = error.to_string();
    assert!(
        told.contains("as f32 they would be read where they lie"),
        "{told}"
    );
}

#[test]
fn a_forged_header_is_found_by_the_length_of_the_file() {
    for (rows, nnz) in [
        (usize::MAX, 0),
        (1, usize::MAX / 4),
        (1 << 40, 1 << 40),
        (1, 1),
    ] {
        let sizes = Sizes {
            rows,
            cols: 1,
            nnz,
            dtype: Dtype::F64,
            has_targets: true,
        };
        let header = Header::new(sizes, super::Source::default(), 0);
        let bytes = bytemuck::bytes_of(&header);
        let options = ReadOptions {
            format: Some(Format::Cache),
            ..ReadOptions::default()
        };
        let error = read_as("a.wfc", bytes, &options)
            .expect_err("no data")
            .to_string();
        assert!(error.ends_with("found 128 bytes"), "{error}");
    }
}

#[test]
fn a_true_checksum_does_not_make_a_matrix() {
    let scratch = file("a.wfc", "");
    write_cache(&scratch.path, &small::<f32>(1.0)).expect("writable");
    let mut bytes = fs::read(&scratch.path).expect("written");
    // The second index, 4, becomes 5, and the checksums are made to agree.
    let place = bytes.len() - 12;
    assert_eq!(bytes[place], 4);
    bytes[place] = 5;
    assert!(reseal_cache(&mut bytes));
    fs::write(&scratch.path, bytes).expect("writable");
    let error = read::<f32>(&scratch.path, &ReadOptions::default()).expect_err("out of range");
    let expected = "found none: expected column indices below 5, but row 0 has 5";
    assert!(error.to_string().ends_with(expected), "{error}");
}

/// A LIBSVM text of many rows, a few of them with comments, blanks and unsorted indices.
fn long_text() -> String {
    (0..20_000)
        .map(|row| match row % 7 {
            0 => format!("{} 3:0.5 1:{row} # a remark\n\n", row % 3),
            1 => format!("{}\n", row % 3),
            _ => format!("{} 1:{row} {}:-2 900:1e-3\n", row % 3, 2 + row % 800),
        })
        .collect()
}

#[cfg(unix)]
#[test]
fn a_text_that_memory_does_not_hold_becomes_the_cache_that_one_read_would_make() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = long_text();
    let read_with = |name: &str, memory: MemoryLimit| {
        let path = folder.path().join(name);
        fs::write(&path, &text).expect("written");
        let options = ReadOptions {
            cache: CachePolicy::ReadWrite,
            memory,
            ..ReadOptions::default()
        };
        let data = read::<f32>(&path, &options);
        (data, fs::read(folder.path().join(format!("{name}.wfc"))))
    };
    let (whole, whole_cache) = read_with("whole.svm", MemoryLimit::Unlimited);
    // Less than the text: what is mapped is not counted, targets are.
    let little = MemoryLimit::Bytes(text.len() as u64 / 2);
    let (parts, parts_cache) = read_with("parts.svm", little);
    assert_eq!(parts.expect("read"), whole.expect("read"));
    let (whole, parts) = (whole_cache.expect("a cache"), parts_cache.expect("a cache"));
    // The header has the times of the texts.
    assert!(parts[128..] == whole[128..]);
    assert_eq!(parts[..56], whole[..56]);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 4);
}

#[cfg(unix)]
#[test]
fn a_fault_of_a_text_that_memory_does_not_hold_has_its_place_and_leaves_no_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bad.svm");
    let text = long_text() + "1 5:x\n";
    fs::write(&path, &text).expect("written");
    let options = ReadOptions {
        cache: CachePolicy::ReadWrite,
        memory: MemoryLimit::Bytes(text.len() as u64 / 2),
        ..ReadOptions::default()
    };
    let error = read::<f32>(&path, &options).expect_err("a fault");
    let line = text.lines().count();
    assert!(
        error.to_string().contains(&format!("bad.svm:{line}:5")),
        "{error}"
    );
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
#[cfg(unix)]
fn rows_that_are_made_where_they_go_are_read_as_they_were_made() {
    // More rows than one task makes, and an odd number of 4-byte indices, so that there is padding.
    let (rows, cols, per_row) = (20_001, 7, 3);
    let path = file("made.wfc", "");
    let first = |row: usize| row % 4;
    let written = write_cache_rows::<f32>(&path.path, (rows, cols, per_row), |range, room| {
        for (place, row) in range.enumerate() {
            for entry in 0..per_row {
                room.indices[place * per_row + entry] = (first(row) + entry) as u32;
                room.values[place * per_row + entry] = row as f32 + 0.25 * entry as f32;
            }
            room.targets[place] = -(row as f32);
        }
    });
    let length = fs::metadata(&path.path).expect("a file").len();
    assert_eq!(written.expect("writable"), length);
    let data: Dataset<f32> = read(&path.path, &ReadOptions::default()).expect("a sound cache");
    let entries = (0..rows).flat_map(|row| (0..per_row).map(move |entry| (row, entry)));
    let (indices, values) = entries
        .map(|(row, entry)| {
            let index = (first(row) + entry) as u32;
            (index, row as f32 + 0.25 * entry as f32)
        })
        .unzip();
    let offsets = (0..=rows).map(|row| (row * per_row) as u64).collect();
    let expected = csr_from_parts((rows, cols), offsets, indices, values).expect("a matrix");
    assert_eq!(data.features, Features::Sparse(expected));
    let targets: Vec<f32> = (0..rows).map(|row| -(row as f32)).collect();
    assert_eq!(data.targets, Some(targets));
}
