use ndarray::array;

use crate::io::tests::{file, read_as};
use crate::io::{MemoryLimit, ReadOptions, read, read_vector};
use crate::matrix::Features;

/// An npy file of version 1.
fn npy(descr: &str, order: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let dict = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dict.len() as u16).to_le_bytes());
    bytes.extend(dict.bytes());
    bytes.extend(data);
    bytes
}

fn fault(bytes: &[u8]) -> String {
    let error = read_as("a.npy", bytes, &ReadOptions::default());
    error.expect_err("a bad file").to_string()
}

#[test]
fn every_number_type_and_byte_order_is_read() {
    let expected = vec![1.0, 2.0, 200.0];
    let as_bytes = |f: fn(u8) -> Vec<u8>| [1, 2, 200].into_iter().flat_map(f).collect::<Vec<u8>>();
    for (descr, data) in [
        (
            "<f2",
            as_bytes(|v| half::f16::from(v).to_le_bytes().to_vec()),
        ),
        ("<f4", as_bytes(|v| f32::from(v).to_le_bytes().to_vec())),
        (">f4", as_bytes(|v| f32::from(v).to_be_bytes().to_vec())),
        ("<f8", as_bytes(|v| f64::from(v).to_le_bytes().to_vec())),
        (">f8", as_bytes(|v| f64::from(v).to_be_bytes().to_vec())),
        ("<i2", as_bytes(|v| i16::from(v).to_le_bytes().to_vec())),
        (">i4", as_bytes(|v| i32::from(v).to_be_bytes().to_vec())),
        ("<i8", as_bytes(|v| i64::from(v).to_le_bytes().to_vec())),
        ("<u2", as_bytes(|v| u16::from(v).to_le_bytes().to_vec())),
        ("<u4", as_bytes(|v| u32::from(v).to_le_bytes().to_vec())),
        (">u8", as_bytes(|v| u64::from(v).to_be_bytes().to_vec())),
        ("|u1", as_bytes(|v| vec![v])),
    ] {
        let scratch = file("y.npy", npy(descr, "False", "(3,)", &data));
        assert_eq!(read_vector::<f64>(&scratch.path).expect(descr), expected);
    }
    let scratch = file("y.npy", npy("|i1", "False", "(2,)", &[0xff, 1]));
    assert_eq!(read_vector::<f32>(&scratch.path).expect("i1"), [-1.0, 1.0]);
    let scratch = file("y.npy", npy("|b1", "False", "(2, 1)", &[0, 1]));
    assert_eq!(read_vector::<f32>(&scratch.path).expect("b1"), [0.0, 1.0]);
}

#[test]
fn fortran_order_becomes_row_major() {
    let data: Vec<u8> = [1_i32, 2, 3, 4, 5, 6]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let read_order = |order| {
        let data = read_as(
            "a.npy",
            npy("<i4", order, "(2, 3)", &data),
            &ReadOptions::default(),
        );
        match data.expect("good").features {
            Features::Dense(x) => x,
            _ => panic!("dense features expected"),
        }
    };
    assert_eq!(
        read_order("False"),
        array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    );
    let by_columns = read_order("True");
    assert_eq!(by_columns, array![[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
    assert!(by_columns.is_standard_layout());
}

#[test]
fn shapes_are_checked_before_anything_is_allocated() {
    let eight = 1_f64.to_le_bytes();
    for (shape, expected) in [
        (
            "(9000000000000, 8)",
            "expected 576000000000000 bytes of data for the shape [9000000000000, 8], found 8 bytes",
        ),
        (
            "(4294967296, 4294967296)",
            "expected a shape that fits memory",
        ),
        (
            "(0, 9223372036854775807, 9223372036854775807)",
            "expected at least one element, found the shape [0,",
        ),
        (
            "(0, 3)",
            "expected at least one element, found the shape [0, 3]",
        ),
        ("(99999999999999999999999, 1)", "expected an npy header"),
        (
            "(2, 1)",
            "expected 16 bytes of data for the shape [2, 1], found 8 bytes",
        ),
        (
            "(1,)",
            "expected an array with two axes (samples × features), found the shape [1]",
        ),
        (
            "(1, 1, 1)",
            "expected an array with two axes (samples × features), found the shape [1, 1, 1]",
        ),
        ("(-1, 1)", "expected an npy header"),
    ] {
        let error = fault(&npy("<f8", "False", shape, &eight));
        assert!(error.contains(expected), "{shape}: {error}");
    }
    let error = fault(&npy("<f4", "False", "(1, 1)", &eight));
    assert!(
        error.contains("expected 4 bytes of data for the shape [1, 1], found 8 bytes"),
        "{error}"
    );
}

#[test]
fn damaged_headers_are_errors() {
    let sound = npy("<f8", "False", "(1, 1)", &1_f64.to_le_bytes());
    for length in 0..sound.len() {
        let options = ReadOptions {
            format: Some(crate::io::Format::Npy),
            ..ReadOptions::default()
        };
        assert!(
            read_as("a.npy", &sound[..length], &options).is_err(),
            "{length} bytes"
        );
    }
    assert!(fault(b"\x93NUMPY\x09\x00\x01\x00\n").contains("expected a version"));
    assert!(
        fault(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{")
            .contains("expected a header of 4294967295 bytes")
    );
    let nested = npy("<f8", "False", &"(".repeat(5000), &[]);
    assert!(fault(&nested).contains("expected an npy header"));
    assert!(fault(&npy("<c16", "False", "(1, 1)", &[0; 16])).contains("expected real numbers"));
    assert!(fault(&npy("|O", "False", "(1, 1)", &[0; 8])).contains("expected real numbers"));
}

#[test]
fn values_that_are_not_finite_are_refused_with_their_place() {
    let data: Vec<u8> = [1.0, f64::NAN]
        .iter()
        .flat_map(|v| v.to_le_bytes())
        .collect();
    let error = fault(&npy("<f8", "False", "(1, 2)", &data));
    assert!(
        error.ends_with(
            "expected finite values that fit f64, found NaN at element 1 in storage order"
        ),
        "{error}"
    );
    let scratch = file(
        "a.npy",
        npy("<f8", "False", "(1, 1)", &1e300_f64.to_le_bytes()),
    );
    let error = read::<f32>(&scratch.path, &ReadOptions::default()).expect_err("too large");
    assert!(error.to_string().contains("that fit f32"), "{error}");
}

#[test]
fn the_memory_limit_holds() {
    let bytes = npy("|u1", "False", "(1000, 10)", &[0; 10_000]);
    let options = ReadOptions {
        memory: MemoryLimit::Bytes(50_000),
        ..ReadOptions::default()
    };
    let error = read_as("a.npy", &bytes, &options).expect_err("80,000 bytes of f64");
    assert!(
        error.to_string().contains("found a need for 80000 bytes"),
        "{error}"
    );
}

#[test]
fn files_are_those_that_another_library_writes() {
    let scratch = file("x.npy", Vec::new());
    let other = scratch.path.with_file_name("other.npy");
    for (rows, cols) in [(1, 1), (3, 2), (123_456, 1)] {
        let x = ndarray::Array2::from_shape_fn((rows, cols), |(i, j)| i as f32 - j as f32);
        ndarray_npy::write_npy(&other, &x).expect("written");
        super::write_npy(&scratch.path, &Features::Dense(x)).expect("written");
        let read = |path| std::fs::read(path).expect("written");
        assert_eq!(read(&scratch.path), read(&other), "{rows} x {cols}");
    }
    let y = vec![0.5_f64; 7];
    ndarray_npy::write_npy(&other, &ndarray::ArrayView1::from(&y)).expect("written");
    super::write_vector(&scratch.path, &y).expect("written");
    let read = |path| std::fs::read(path).expect("written");
    assert_eq!(read(&scratch.path), read(&other));
}
