use super::*;

const SHAPE: FilterShape = FilterShape {
    filters: 2,
    channels: 3,
    height: 3,
    width: 3,
};

/// One nonzero in slice (1, 2), at (2, 1).
fn one<V: FilterValue>(value: V) -> SparseFilters<V> {
    let nonzero = Nonzero {
        row: 2,
        col: 1,
        value,
    };
    SparseFilters::from_slices(SHAPE, &[0, 0, 0, 0, 0, 1], vec![nonzero]).expect("a good place")
}

#[test]
fn formats_are_converted_there_and_back() {
    let dense: Vec<i16> = (0..54)
        .map(|i| if i % 4 == 0 { i - 27 } else { 0 })
        .collect();
    let filters = SparseFilters::from_dense(SHAPE, &dense).expect("a good shape");
    assert_eq!(filters.to_dense(), dense);
    assert_eq!(CooFilters::from(&filters).to_filters(), Ok(filters.clone()));
    for bits in [16, 32, 64] {
        let packed = PackedFilters::pack(&filters, PackedLayout::new(bits, &SHAPE));
        let packed = packed.expect("small values");
        assert_eq!(packed.bytes(), filters.nnz() * bits as usize / 8 + 12);
        assert_eq!(packed.unpack(), Ok(filters.clone()));
    }
}

#[test]
fn packing_ends_at_its_limits() {
    let layout = PackedLayout::new(16, &SHAPE);
    for value in [-2_048_i16, 2_047] {
        let packed = PackedFilters::pack(&one(value), layout).expect("a field of 12 bits");
        assert_eq!(packed.unpack::<i16>(), Ok(one(value)));
    }
    for value in [-2_049_i16, 2_048] {
        let error = PackedFilters::pack(&one(value), layout).expect_err("13 bits");
        let text = error.to_string();
        for part in [
            &*value.to_string(),
            "filter 1",
            "channel 2",
            "row 2",
            "column 1",
            "12 bits",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }
    for value in [i16::MIN, i16::MAX] {
        let packed = PackedFilters::pack(&one(value), PackedLayout::new(32, &SHAPE));
        assert_eq!(packed.expect("28 bits").unpack::<i16>(), Ok(one(value)));
    }
}

#[test]
fn floats_are_packed_whole_or_not_at_all() {
    let wide = PackedLayout::new(64, &SHAPE);
    for value in [1.0e-40_f32, f32::MAX, -0.5] {
        let packed = PackedFilters::pack(&one(value), wide).expect("32 bits");
        assert_eq!(packed.unpack::<f32>(), Ok(one(value)));
    }
    assert!(PackedFilters::pack(&one(0.5_f64), wide).is_ok());
    assert!(PackedFilters::pack(&one(0.1_f64), wide).is_err());
    let narrow = PackedLayout::new(16, &SHAPE);
    assert!(PackedFilters::pack(&one(half::f16::ONE), narrow).is_err());
}

#[test]
fn nonzeros_outside_or_out_of_order_are_refused() {
    let at = |row, col| Nonzero {
        row,
        col,
        value: 1_i8,
    };
    let shape = FilterShape {
        filters: 1,
        channels: 1,
        ..SHAPE
    };
    for nonzeros in [
        [at(0, 0), at(3, 0)],
        [at(0, 0), at(0, 3)],
        [at(1, 0), at(0, 2)],
        [at(1, 1); 2],
    ] {
        let found = SparseFilters::from_slices(shape, &[2], nonzeros.to_vec());
        assert!(matches!(found, Err(FilterError::Place { .. })), "{found:?}");
    }
    let twelve = FilterShape {
        height: 12,
        ..shape
    };
    let found = SparseFilters::<i8>::from_dense(twelve, &[0; 36]);
    assert!(matches!(found, Err(FilterError::Side { side: 12, .. })));
}

#[test]
fn n_of_m_keeps_the_largest_of_each_group() {
    let shape = FilterShape {
        filters: 2,
        channels: 5,
        height: 1,
        width: 1,
    };
    let weights = [1.0_f32, -4.0, 3.0, 2.0, 9.0, 0.0, 0.0, 0.0, -1.0, 5.0];
    let kept = n_of_m(shape, &weights, (2, 4)).expect("2:4");
    assert_eq!(
        kept.to_dense(),
        [0.0, -4.0, 3.0, 0.0, 9.0, 0.0, 0.0, 0.0, -1.0, 5.0]
    );
    assert!(n_of_m(shape, &weights, (5, 4)).is_err());
    assert!(magnitude(shape, &weights, f64::NAN).is_err());
}
