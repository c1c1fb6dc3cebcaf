//! Strategies for property tests of everything that takes a matrix or a data set.

use std::collections::BTreeMap;

use ndarray::Array2;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::{CsrMatrix, Dataset, Features, csr_from_parts};

/// Finite numbers of all magnitudes, both signs of zero included.
pub(crate) fn finite() -> impl Strategy<Value = f64> {
    use proptest::num::f64::{NEGATIVE, NORMAL, POSITIVE, SUBNORMAL, ZERO};
    POSITIVE | NEGATIVE | NORMAL | SUBNORMAL | ZERO
}

/// Sparse matrices with up to 40 rows and 30 columns; empty rows and columns are common.
pub(crate) fn csr() -> impl Strategy<Value = CsrMatrix<f64>> {
    (1..30_usize).prop_flat_map(|cols| {
        let row = btree_map(0..cols as u32, finite(), 0..=cols.min(8));
        vec(row, 1..40).prop_map(move |rows| from_rows(cols, &rows))
    })
}

/// Sparse features with one target per row.
pub(crate) fn sparse_dataset() -> impl Strategy<Value = Dataset<f64>> {
    csr().prop_flat_map(|x| {
        vec(finite(), x.rows()).prop_map(move |targets| Dataset {
            features: Features::Sparse(x.clone()),
            targets: Some(targets),
        })
    })
}

/// Dense matrices with up to 20 rows and columns.
pub(crate) fn dense() -> impl Strategy<Value = Array2<f64>> {
    (1..20_usize, 1..20_usize).prop_flat_map(|(rows, cols)| {
        vec(finite(), rows * cols).prop_map(move |values| {
            Array2::from_shape_vec((rows, cols), values).expect("as many as the shape")
        })
    })
}

fn from_rows(cols: usize, rows: &[BTreeMap<u32, f64>]) -> CsrMatrix<f64> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        indices.extend(row.keys());
        values.extend(row.values());
        offsets.push(indices.len() as u64);
    }
    csr_from_parts((rows.len(), cols), offsets, indices, values).expect("sorted by the map")
}
