use std::io::Cursor;

use ndarray::{Array1, Array2, array};
use ndarray_npy::NpzWriter;

use crate::io::tests::read_as;
use crate::io::{MemoryLimit, ReadOptions, Target};
use crate::matrix::Features;

/// As `numpy.savez(X=…, y=…)` would write it, with the arrays called so.
fn npz(
    deflated: bool,
    matrices: &[(&str, Array2<f32>)],
    vectors: &[(&str, Array1<i64>)],
) -> Vec<u8> {
    let buffer = Cursor::new(Vec::new());
    let mut writer = if deflated {
        NpzWriter::new_compressed(buffer)
    } else {
        NpzWriter::new(buffer)
    };
    for (name, array) in matrices {
        writer.add_array(*name, array).expect("a new name");
    }
    for (name, array) in vectors {
        writer.add_array(*name, array).expect("a new name");
    }
    writer.finish().expect("a vector grows").into_inner()
}

fn x() -> Array2<f32> {
    array![[1.0, 2.0], [3.0, 4.5]]
}

fn y() -> Array1<i64> {
    array![7, -8]
}

fn options(target: Option<&str>) -> ReadOptions {
    ReadOptions {
        target: target.map(Target::new),
        ..ReadOptions::default()
    }
}

fn read(bytes: &[u8], target: Option<&str>) -> (Array2<f64>, Option<Vec<f64>>) {
    let data = read_as("a.npz", bytes, &options(target)).expect("a good file");
    match data.features {
        Features::Dense(x) => (x, data.targets),
        _ => panic!("dense features expected"),
    }
}

fn fault(bytes: &[u8], target: Option<&str>) -> String {
    let error = read_as("a.npz", bytes, &options(target));
    error.expect_err("a bad file").to_string()
}

#[test]
fn stored_and_deflated_archives_are_read() {
    let expected = array![[1.0, 2.0], [3.0, 4.5]];
    for deflated in [false, true] {
        let bytes = npz(deflated, &[("X", x())], &[("y", y())]);
        assert_eq!(
            read(&bytes, None),
            (expected.clone(), Some(vec![7.0, -8.0]))
        );
        let bytes = npz(deflated, &[("X", x())], &[]);
        assert_eq!(read(&bytes, None), (expected.clone(), None));
    }
}

#[test]
fn arrays_are_found_by_their_names() {
    let both = Some(vec![7.0, -8.0]);
    let bytes = npz(false, &[("arr_0", x())], &[("arr_1", y())]);
    assert_eq!(read(&bytes, None).1, both);
    let bytes = npz(false, &[("table", x())], &[("price", y())]);
    assert_eq!(read(&bytes, Some("price")).1, both);
    assert!(fault(&bytes, None).ends_with(
        "expected an array of features called X, x, data, features, arr_0, found `table`, `price`"
    ));
    assert!(
        fault(&bytes, Some("cost"))
            .ends_with("expected an array of targets called `cost`, found `table`, `price`")
    );
    let bytes = npz(false, &[("noise", x()), ("x", x())], &[("other", y())]);
    assert_eq!(read(&bytes, Some("other")).1, both);
}

#[test]
fn arrays_that_do_not_fit_are_errors() {
    let bytes = npz(false, &[("X", x())], &[("y", array![1, 2, 3])]);
    assert!(
        fault(&bytes, None)
            .ends_with("expected one target for each of the 2 samples, found 3 targets")
    );
    let bytes = npz(false, &[("X", x()), ("y", x())], &[]);
    assert!(
        fault(&bytes, None).contains("y.npy: byte 6: expected an array with one axis (a vector)")
    );
    let bytes = npz(false, &[], &[("X", y())]);
    assert!(fault(&bytes, None).contains("expected an array with two axes"));
    assert!(fault(&npz(false, &[], &[]), None).contains("expected an array of features"));
}

#[test]
fn no_damage_makes_it_panic() {
    for deflated in [false, true] {
        let sound = npz(deflated, &[("X", x())], &[("y", y())]);
        for length in 0..sound.len() {
            let cut = read_as("a.npz", &sound[..length], &ReadOptions::default());
            assert!(cut.is_err(), "{length} of {} bytes", sound.len());
        }
        for at in 0..sound.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = sound.clone();
                damaged[at] = value;
                let _ = read_as("a.npz", &damaged, &ReadOptions::default());
            }
        }
    }
}

#[test]
fn changed_data_are_noticed() {
    let sound = npz(false, &[("X", x())], &[("y", y())]);
    let data = 4.5_f32.to_le_bytes();
    let at = memchr::memmem::find(&sound, &data).expect("stored as it is");
    let mut damaged = sound.clone();
    damaged[at] ^= 1;
    assert!(fault(&damaged, None).contains("with the checksum in the directory"));
}

#[test]
fn the_memory_limit_holds_for_what_is_unpacked() {
    let zeros = Array2::zeros((1000, 1000));
    let bytes = npz(true, &[("X", zeros)], &[]);
    assert!(bytes.len() < 100_000);
    let options = ReadOptions {
        memory: MemoryLimit::Bytes(1_000_000),
        ..ReadOptions::default()
    };
    let error = read_as("a.npz", &bytes, &options).expect_err("four million bytes");
    assert!(
        error.to_string().contains("data that fit 1000000 bytes"),
        "{error}"
    );
}
