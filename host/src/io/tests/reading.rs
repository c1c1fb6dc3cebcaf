//! What the readers accept, over all formats.

use std::io::Write;
use std::sync::Mutex;

use super::super::{Columns, Format, MemoryLimit, Progress, ReadError, ReadOptions, read};
use super::{file, read_as, read_sparse};
use crate::matrix::Features;

const TEXT: &[u8] = b"1 1:0.5 3:2\n-1 2:1e-3\n";

#[test]
fn compressed_text_reads_like_plain_text() {
    let plain = read_sparse("a.svm", TEXT);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(TEXT).expect("memory");
    assert_eq!(
        read_sparse("a.svm.gz", gzip.finish().expect("memory")),
        plain
    );
    let zstd = zstd::stream::encode_all(TEXT, 1).expect("memory");
    assert_eq!(read_sparse("a.svm.zst", &zstd), plain);
    assert_eq!(read_sparse("misnamed.svm", &zstd), plain);
}

#[test]
fn damaged_compression_is_an_error() {
    let zstd = zstd::stream::encode_all(TEXT, 1).expect("memory");
    let error = read_as("a.zst", &zstd[..zstd.len() - 5], &ReadOptions::default());
    assert!(matches!(error, Err(ReadError::Io { .. })), "{error:?}");
    let error = read_as("a.gz", b"\x1f\x8b\x08garbage", &ReadOptions::default());
    assert!(matches!(error, Err(ReadError::Io { .. })), "{error:?}");
}

#[test]
fn a_decompression_bomb_stops_at_the_limit() {
    let bomb = zstd::stream::encode_all(&vec![b' '; 50_000_000][..], 1).expect("memory");
    assert!(bomb.len() < 10_000);
    let options = limited(1_000_000);
    let error = read_as("bomb.zst", &bomb, &options).expect_err("too large");
    assert!(
        matches!(
            error,
            ReadError::TooLarge {
                limit: 1_000_000,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn the_memory_limit_holds_for_text_and_for_columns() {
    let text = b"1 1:1 2:2\n".repeat(10_000);
    assert!(read_as("a.svm", &text, &limited(10_000_000)).is_ok());
    let error = read_as("a.svm", &text, &limited(100_000)).expect_err("too large");
    assert!(matches!(error, ReadError::TooLarge { .. }), "{error}");
    let error = read_as("a.svm", "1 4000000000:1\n", &limited(1 << 30)).expect_err("too wide");
    assert!(
        error
            .to_string()
            .contains("vectors over 4000000000 columns"),
        "{error}"
    );
}

fn limited(bytes: u64) -> ReadOptions {
    ReadOptions {
        memory: MemoryLimit::Bytes(bytes),
        ..ReadOptions::default()
    }
}

#[test]
fn a_missing_file_and_a_folder_are_errors() {
    let missing = read::<f32>("no/such/file.svm", &ReadOptions::default());
    let message = missing.expect_err("missing").to_string();
    assert_eq!(message, "cannot read no/such/file.svm");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = read::<f32>(folder.path(), &ReadOptions::default());
    assert!(matches!(error, Err(ReadError::Io { .. })));
}

#[test]
fn content_and_then_the_name_decide_on_the_format() {
    let market = b"%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n";
    assert_eq!(read_sparse("no_extension", market).0.nnz(), 1);
    let error = read_as("text.npy", "1 1:2\n", &ReadOptions::default()).expect_err("no npy");
    assert!(
        error.to_string().contains("magic bytes of an npy file"),
        "{error}"
    );
    let forced = ReadOptions {
        format: Some(Format::LibSvm),
        ..ReadOptions::default()
    };
    let error = read_as("a.mtx", market, &forced).expect_err("no LIBSVM");
    assert!(error.to_string().contains("a label"), "{error}");
}

#[test]
fn columns_may_be_asked_for() {
    let with = |columns| {
        let options = ReadOptions {
            columns,
            ..ReadOptions::default()
        };
        read_as("a.svm", TEXT, &options).map(|data| data.features.cols())
    };
    assert_eq!(with(Columns::Infer).expect("good"), 3);
    assert_eq!(with(Columns::AtLeast(2)).expect("good"), 3);
    assert_eq!(with(Columns::AtLeast(7)).expect("good"), 7);
    assert_eq!(with(Columns::Exactly(7)).expect("good"), 7);
    assert!(with(Columns::Exactly(2)).is_err());
    assert!(matches!(
        with(Columns::AtLeast(1 << 40)),
        Err(ReadError::Width { .. })
    ));
}

#[test]
fn labels_alone_are_samples_when_the_columns_are_known() {
    let options = ReadOptions {
        columns: Columns::Exactly(4),
        ..ReadOptions::default()
    };
    let data = read_as("labels.svm", "1\n2\n", &options).expect("two empty rows");
    assert_eq!((data.features.rows(), data.features.cols()), (2, 4));
}

#[test]
fn progress_ends_at_the_length_of_the_text() {
    static SEEN: Mutex<Vec<(u64, u64)>> = Mutex::new(Vec::new());
    let text = b"1 1:1 2:2\n".repeat(100_000);
    let report = |done, total| SEEN.lock().expect("no panic").push((done, total));
    let options = ReadOptions {
        progress: Some(Progress::new(report)),
        ..ReadOptions::default()
    };
    read_as("a.svm", &text, &options).expect("good");
    let seen = SEEN.lock().expect("no panic");
    let length = text.len() as u64;
    assert_eq!(seen.iter().map(|s| s.0).max(), Some(length));
    assert!(seen.len() > 1 && seen.iter().all(|s| s.1 == length));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let mut text = Vec::new();
    for row in 0..50_000_u32 {
        writeln!(
            text,
            "{row} {}:{}.25 {}:1",
            row % 7 + 1,
            row,
            row % 100 + 10
        )
        .expect("memory");
    }
    let scratch = file("rows.svm", &text);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let options = ReadOptions::default();
        pool.expect("threads")
            .install(|| read::<f64>(&scratch.path, &options).expect("good"))
    };
    let one = with(1);
    let Features::Sparse(x) = &one.features else {
        panic!("sparse features expected");
    };
    assert_eq!((x.rows(), x.cols(), x.nnz()), (50_000, 109, 100_000));
    assert_eq!(with(5), one);
}
