//! Property tests: what is written is read back, and no bytes whatever make a reader panic.

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::{
    Columns, Format, MemoryLimit, ReadOptions, read, read_vector, write_cache, write_libsvm,
    write_matrix_market, write_npy, write_vector,
};
use super::file;
use crate::matrix::strategy::{dense, finite, sparse_dataset};
use crate::matrix::{Dataset, Features};

/// Sparse features and targets, compared bit for bit (−0 is not 0).
fn bits(data: &Dataset<f64>) -> (Vec<u64>, Vec<u32>, Vec<u64>, Vec<u64>) {
    let Features::Sparse(x) = &data.features else {
        panic!("sparse features expected");
    };
    let offsets = x.indptr().raw_storage().to_vec();
    let values = x.data().iter().map(|v| v.to_bits()).collect();
    let targets = data.targets.iter().flatten().map(|v| v.to_bits());
    (offsets, x.indices().to_vec(), values, targets.collect())
}

fn with_columns(cols: usize) -> ReadOptions {
    ReadOptions {
        columns: Columns::Exactly(cols),
        ..ReadOptions::default()
    }
}

proptest! {
    #[test]
    fn libsvm(data in sparse_dataset()) {
        let scratch = file("data.svm", "");
        write_libsvm(&scratch.path, &data).unwrap();
        let back = read(&scratch.path, &with_columns(data.features.cols())).unwrap();
        prop_assert_eq!(bits(&back), bits(&data));
    }

    #[test]
    fn matrix_market_sparse(data in sparse_dataset()) {
        let scratch = file("data.mtx", "");
        write_matrix_market(&scratch.path, &data.features).unwrap();
        let back = read::<f64>(&scratch.path, &ReadOptions::default()).unwrap();
        let expected = Dataset { targets: None, ..data };
        prop_assert_eq!(bits(&back), bits(&expected));
    }

    #[test]
    fn matrix_market_and_npy_dense(x in dense()) {
        let features = Features::Dense(x);
        let market = file("data.mtx", "");
        write_matrix_market(&market.path, &features).unwrap();
        let npy = file("data.npy", "");
        write_npy(&npy.path, &features).unwrap();
        for path in [&market.path, &npy.path] {
            let back = read::<f64>(path, &ReadOptions::default()).unwrap();
            prop_assert_eq!(&back.features, &features);
        }
    }

    #[test]
    fn cache(data in sparse_dataset()) {
        let scratch = file("data.wfc", "");
        write_cache(&scratch.path, &data).unwrap();
        let back = read(&scratch.path, &ReadOptions::default()).unwrap();
        prop_assert_eq!(bits(&back), bits(&data));
    }

    #[test]
    fn vectors(values in vec(finite(), 1..100)) {
        let scratch = file("y.npy", "");
        write_vector(&scratch.path, &values).unwrap();
        prop_assert_eq!(read_vector::<f64>(&scratch.path).unwrap(), values);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..300)) {
        read_in_every_format(&bytes);
    }

    #[test]
    fn no_plausible_text_makes_a_reader_panic(text in "([0-9.:#e+%, \r\n-]|qid:|nan|1 1:1\n){0,60}") {
        read_in_every_format(text.as_bytes());
        let market = format!("%%MatrixMarket matrix coordinate real general\n{text}");
        read_in_every_format(market.as_bytes());
        let array = format!("%%MatrixMarket matrix array integer symmetric\n{text}");
        read_in_every_format(array.as_bytes());
    }

    #[test]
    fn no_npy_header_makes_a_reader_panic(
        shape in "(\\([0-9]{1,20}, ?[0-9]{0,20}\\)|[(]{1,200}|\\[\\])",
        descr in "('[<>|=][fiubc][1248]'|\\[\\('a', '<f8'\\)\\])",
        data in vec(any::<u8>(), 0..100),
    ) {
        let dict = format!("{{'descr': {descr}, 'fortran_order': True, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((dict.len() as u16).to_le_bytes());
        bytes.extend(dict.bytes());
        bytes.extend(data);
        read_in_every_format(&bytes);
    }

    #[test]
    fn no_damage_to_a_cache_goes_unnoticed(
        data in sparse_dataset(),
        place in any::<prop::sample::Index>(),
        bit in 0..8_u32,
        cut in any::<prop::sample::Index>(),
    ) {
        let scratch = file("data.wfc", "");
        write_cache(&scratch.path, &data).unwrap();
        let sound = std::fs::read(&scratch.path).unwrap();
        let mut damaged = sound.clone();
        damaged[place.index(sound.len())] ^= 1 << bit;
        std::fs::write(&scratch.path, damaged).unwrap();
        // A flipped bit of padding changes nothing; anything else is found.
        if let Ok(back) = read(&scratch.path, &ReadOptions::default()) {
            prop_assert_eq!(bits(&back), bits(&data));
        }
        std::fs::write(&scratch.path, &sound[..cut.index(sound.len())]).unwrap();
        let options = ReadOptions { format: Some(Format::Cache), ..ReadOptions::default() };
        prop_assert!(read::<f64>(&scratch.path, &options).is_err());
    }
}

/// Reads `bytes` as every format; that there is a result at all is the test.
fn read_in_every_format(bytes: &[u8]) {
    let scratch = file("bytes", bytes);
    for format in [
        None,
        Some(Format::LibSvm),
        Some(Format::MatrixMarket),
        Some(Format::Npy),
        Some(Format::Cache),
    ] {
        let options = ReadOptions {
            format,
            memory: MemoryLimit::Bytes(256 << 20),
            ..ReadOptions::default()
        };
        let _ = read::<f32>(&scratch.path, &options);
        let _ = read::<f64>(&scratch.path, &options);
    }
    let _ = read_vector::<f64>(&scratch.path);
}
