//! Rows that readers put together against those of one reader.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::*;
use crate::io::{Columns, IndexBase, Missing, TableTargets, Target, read_table, write_cache};
use crate::matrix::{Features, Schema, Storage};

/// Entries as (row, column, value) of all readers' rows, targets and their schemas.
type Put = (
    Vec<(usize, usize, f64)>,
    Option<TableTargets<f64>>,
    (usize, usize),
    Schema,
);

fn entries(x: &Features<f64>, first: usize) -> Vec<(usize, usize, f64)> {
    let of_row = |row: usize, j: usize, value: f64| (first + row, j, value);
    match x.storage() {
        Storage::Sparse(x) => {
            let rows = x.outer_iterator().enumerate();
            rows.flat_map(|(i, row)| {
                let entries: Vec<_> = row.iter().map(|(j, v)| of_row(i, j, *v)).collect();
                entries
            })
            .collect()
        }
        Storage::Dense(x) => x
            .indexed_iter()
            .map(|((i, j), v)| of_row(i, j, *v))
            .collect(),
    }
}

/// What the file says to one reader.
fn by_one(path: &Path, options: &ReadOptions) -> Put {
    by_one_as(path, options, &TableOptions::default())
}

fn by_one_as(path: &Path, options: &ReadOptions, table: &TableOptions) -> Put {
    let table = read_table::<f64>(path, options, table).expect("a file");
    let (rows, cols) = (table.features.rows(), table.features.cols());
    let all = entries(&table.features, 0);
    (all, table.targets, (rows, cols), table.schema)
}

/// What it says to `of` readers.
fn by_readers(path: &Path, options: &ReadOptions, of: usize, step: usize) -> Put {
    by_readers_as(path, (options, &TableOptions::default()), of, step)
}

fn by_readers_as(
    path: &Path,
    (options, table): (&ReadOptions, &TableOptions),
    of: usize,
    step: usize,
) -> Put {
    let read = |number| {
        let portion = Portion::new(number, of);
        let read = read_portion::<f64>(path, options, table, portion);
        read.expect("lines").expect("text")
    };
    let all: Vec<_> = (0..of).map(read).collect();
    let facts: Vec<_> = all.iter().map(ReadPortion::facts).collect();
    let (mut found, mut targets, mut next) = (Vec::new(), Vec::new(), 0);
    let mut texts = Vec::new();
    let (mut shape, mut schema) = ((0, 0), Schema::default());
    for reader in all {
        let rows = reader
            .complete(&facts, step)
            .expect("rows")
            .expect("numbers");
        assert!(rows.first == next && (next % step == 0 || next == rows.all));
        next += rows.table.features.rows();
        found.extend(entries(&rows.table.features, rows.first));
        shape = (rows.all, rows.table.features.cols());
        schema = rows.table.schema;
        match rows.table.targets {
            Some(TableTargets::Numbers(own)) => targets.extend(own),
            Some(TableTargets::Text(own)) => texts.extend(own),
            None => {}
        }
        let known = targets.len() + texts.len();
        assert!(known == 0 || known == next);
    }
    assert_eq!(next, shape.0);
    let targets = match texts.is_empty() {
        true => (!targets.is_empty()).then_some(TableTargets::Numbers(targets)),
        false => Some(TableTargets::Text(texts)),
    };
    (found, targets, shape, schema)
}

fn file(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, text).expect("written");
    (folder, path)
}

/// Rows of all lengths, comments, blank lines, CRLF, no newline at the end.
fn sparse(rows: usize, labelled: bool) -> String {
    let mut text = "\u{feff}# a comment\n\n".to_owned();
    for i in 0..rows {
        if labelled {
            write!(text, "{} ", i % 3).expect("text");
        }
        for j in 0..=i * i % 9 {
            write!(text, "{}:{} ", 1 + j * 3 + i % 3, i + j).expect("text");
        }
        text += ["\n", "# said\r\n", "\n\n", "\n   \n#\n"][i % 4];
    }
    text.trim_end().to_owned()
}

fn dense(rows: usize) -> String {
    let mut text = "a,b,y\n".to_owned();
    for i in 0..rows {
        let end = ["\n", "\r\n", "\n\n", "\n# said\n"][i % 4];
        write!(text, "{},{}.5,{}{end}", i * 7 % 5, i, i % 2).expect("text");
    }
    text
}

#[test]
fn readers_together_have_what_one_has() {
    let target = ReadOptions {
        target: Some(Target::new("y")),
        ..ReadOptions::default()
    };
    for rows in [1, 2, 5, 64, 201] {
        for (name, text, options) in [
            ("a.svm", sparse(rows, true), ReadOptions::default()),
            ("a.svm", sparse(rows, false), ReadOptions::default()),
            ("a.csv", dense(rows), target.clone()),
            ("a.csv", dense(rows), ReadOptions::default()),
        ] {
            let (_folder, path) = file(name, &text);
            let expected = by_one(&path, &options);
            for (of, step) in [(1, 1), (2, 1), (3, 1), (4, 64), (7, 2), (40, 3)] {
                let found = by_readers(&path, &options, of, step);
                assert_eq!(found, expected, "{name}, {rows} rows, {of} readers, {step}");
            }
        }
    }
}

/// Blocks of a cache are checked by one reader each.
#[test]
fn readers_together_have_what_a_cache_has() {
    for (rows, wide, readers) in [
        (1, 1, &[(1, 1), (2, 1)][..]),
        (5000, 40, &[(2, 1), (3, 64), (7, 2)]),
        // Several blocks.
        (300_000, 40, &[(3, 64)]),
    ] {
        let (folder, text) = file("a.svm", &sparse(rows, true));
        let data = crate::io::read::<f64>(&text, &ReadOptions::default()).expect("a text");
        let path = folder.path().join("a.wfc");
        write_cache(&path, &data).expect("written");
        let options = ReadOptions {
            columns: Columns::AtLeast(wide),
            ..ReadOptions::default()
        };
        let expected = by_one(&path, &options);
        for &(of, step) in readers {
            let found = by_readers(&path, &options, of, step);
            assert!(found == expected, "{rows} rows, {of} readers, {step}");
        }
    }
}

/// Damage anywhere is everybody's error, the one of a single reader.
#[test]
fn damage_of_a_cache_is_found_by_all() {
    let (folder, text) = file("a.svm", &sparse(300_000, true));
    let data = crate::io::read::<f64>(&text, &ReadOptions::default()).expect("a text");
    let path = folder.path().join("a.wfc");
    write_cache(&path, &data).expect("written");
    let sound = std::fs::read(&path).expect("a cache");
    let (options, table) = (ReadOptions::default(), TableOptions::default());
    for at in [130, sound.len() / 3, sound.len() / 2, sound.len() - 20] {
        let mut damaged = sound.clone();
        damaged[at] ^= 0x40;
        std::fs::write(&path, damaged).expect("written");
        let whole = read_table::<f64>(&path, &options, &table).expect_err("damage");
        let read = |number| read_portion::<f64>(&path, &options, &table, Portion::new(number, 3));
        let all: Vec<_> = (0..3)
            .map(|n| read(n).expect("blocks").expect("a cache"))
            .collect();
        let facts: Vec<_> = all.iter().map(ReadPortion::facts).collect();
        for reader in all {
            let error = reader.complete(&facts, 1).expect_err("damage");
            assert_eq!(error.to_string(), whole.to_string(), "byte {at}");
        }
    }
}

/// An index 0 in the last line moves the columns of all, a column of the first line widens all.
#[test]
fn columns_are_those_of_the_whole_file() {
    let (_folder, path) = file("a.svm", "1 9:1\n2 3:4\n3 2:1\n1 0:1 1:1\n");
    let options = ReadOptions::default();
    let found = by_readers(&path, &options, 4, 1);
    assert_eq!(found, by_one(&path, &options));
    assert_eq!((found.2, found.3.index_base), ((4, 10), Some(0)));
    let from_one = ReadOptions {
        index_base: IndexBase::One,
        ..options
    };
    let table = TableOptions::default();
    let read = |number| read_portion::<f64>(&path, &from_one, &table, Portion::new(number, 2));
    let (a, b) = (read(0).expect("lines"), read(1).expect("lines"));
    let (a, b) = (a.expect("text"), b.expect("text"));
    let facts = [a.facts(), b.facts()];
    let errors = [a, b].map(|own| own.complete(&facts, 1).expect_err("an index 0").to_string());
    let whole = read_table::<f64>(&path, &from_one, &table).expect_err("an index 0");
    assert_eq!(errors, [whole.to_string(), whole.to_string()]);
}

#[test]
fn a_fault_is_found_by_the_reader_of_its_line() {
    let (_folder, path) = file("a.svm", "1 1:1\n2 3:4\n3 2:1\n1 2:x\n");
    let (options, table) = (ReadOptions::default(), TableOptions::default());
    let read = |number| read_portion::<f64>(&path, &options, &table, Portion::new(number, 2));
    assert!(read(0).is_ok());
    let whole = read_table::<f64>(&path, &options, &table).expect_err("no number");
    let own = read(1).err().expect("no number");
    assert_eq!(own.to_string(), whole.to_string());
}

/// Categories, gaps, columns to be left out, and labels of text.
fn table(rows: usize) -> String {
    let mut text = "id,size,colour,kind\n".to_owned();
    for i in 0..rows {
        let size = if i % 7 == 5 {
            String::new()
        } else {
            format!("{}.25", i * 5 % 11)
        };
        let colour = ["red", "green", "blue"][i * i % 3];
        let end = ["\n", "\r\n", "\n\n", "\n# said\n"][i % 4];
        write!(text, "{i},{size},{colour},{}{end}", ["no", "yes"][i % 2]).expect("text");
    }
    text
}

#[test]
fn readers_together_have_what_a_table_has() {
    let options = ReadOptions {
        target: Some(Target::new("kind")),
        ..ReadOptions::default()
    };
    let plain = TableOptions {
        missing: Missing::Indicator,
        drop: vec!["id".to_owned()],
        ..TableOptions::default()
    };
    let hashed = TableOptions {
        buckets: Some(16),
        ..plain.clone()
    };
    for rows in [1, 30, 301] {
        let (_folder, path) = file("a.csv", &table(rows));
        for table in [&plain, &hashed] {
            let expected = by_one_as(&path, &options, table);
            for (of, step) in [(2, 1), (3, 64), (7, 2)] {
                let found = by_readers_as(&path, (&options, table), of, step);
                assert_eq!(found, expected, "{rows} rows, {of} readers, {step}");
            }
        }
    }
}

/// First lines of numbers alone, and a text after them: one reader says what is wrong.
#[test]
fn a_late_text_is_left_to_one_reader() {
    let text = format!("a,b\n{}5,red\n", "1,2\n".repeat(2000));
    let (_folder, path) = file("a.csv", &text);
    let (options, table) = (ReadOptions::default(), TableOptions::default());
    let read = |number| read_portion::<f64>(&path, &options, &table, Portion::new(number, 3));
    let all: Vec<_> = (0..3)
        .map(|number| read(number).expect("lines").expect("text"))
        .collect();
    let facts: Vec<_> = all.iter().map(ReadPortion::facts).collect();
    for reader in all {
        assert_eq!(reader.complete(&facts, 1).expect("facts"), None);
    }
}

#[test]
fn what_has_no_lines_is_left_to_one_reader() {
    let (folder, path) = file("a.svm", "1 1:1\n2 2:1\n");
    let (options, table) = (ReadOptions::default(), TableOptions::default());
    let portion = Portion::new(0, 2);
    let cached = ReadOptions {
        cache: CachePolicy::Read,
        ..options.clone()
    };
    assert!(matches!(
        read_portion::<f64>(&path, &cached, &table, portion),
        Ok(None)
    ));
    let empty = folder.path().join("empty.svm");
    std::fs::write(&empty, "").expect("written");
    assert!(matches!(
        read_portion::<f64>(&empty, &options, &table, portion),
        Ok(None)
    ));
}

#[test]
fn files_of_different_lengths_are_refused() {
    let (_folder, path) = file("a.svm", "1 1:1\n2 2:1\n");
    let (options, table) = (ReadOptions::default(), TableOptions::default());
    let own = read_portion::<f64>(&path, &options, &table, Portion::new(1, 2));
    let own = own.expect("lines").expect("text");
    let mut facts = [own.facts(), own.facts()];
    facts[0].bytes += 1;
    let error = own
        .complete(&facts, 1)
        .expect_err("another file")
        .to_string();
    assert!(
        error.contains("a file of 13 bytes, as reader 0 has it"),
        "{error}"
    );
}
