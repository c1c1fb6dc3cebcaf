//! The arrays do not depend on how many threads make them, byte by byte.

use gpu_kernels::fused::fixed_point::FixedPoint;

use super::hot::{HotData, HotLayout, HotSize};
use super::panels::{PanelLayout, PanelSize};
use crate::matrix::{CsrMatrix, Element, Values, csr_from_parts};

/// FNV-1a over the bytes of arrays.
struct Digest(u64);

impl Digest {
    fn add<P: bytemuck::NoUninit>(&mut self, array: &[P]) {
        for byte in bytemuck::cast_slice::<P, u8>(array) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Rows of this many entries, most of them in the first columns.
fn matrix<T: Element>(
    (rows, cols): (usize, usize),
    length: impl Fn(usize) -> usize,
    value: impl Fn(usize, u32) -> f64,
) -> CsrMatrix<T> {
    let mut state = 1_u64;
    let mut draw = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1 << 24) as f64
    };
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows {
        let column = |x: f64| (x * x * x * cols as f64) as u32;
        let mut own: Vec<u32> = (0..length(row)).map(|_| column(draw())).collect();
        own.sort_unstable();
        own.dedup();
        values.extend(own.iter().map(|column| T::from_f64(value(row, *column))));
        indices.extend(own);
        offsets.push(indices.len() as u64);
    }
    csr_from_parts((rows, cols), offsets, indices, values).expect("a matrix")
}

fn of_panels<T: Element>(digest: &mut Digest, layout: &PanelLayout<T>) {
    digest.add(&layout.keys);
    digest.add(&layout.values);
    digest.add(&layout.bases);
    digest.add(&layout.pieces);
    digest.add(&layout.ranges);
    digest.add(layout.order.as_deref().unwrap_or_default());
}

fn of_hot<T: Element + FixedPoint>(digest: &mut Digest, layout: &HotLayout<T>) {
    digest.add(&layout.steps);
    digest.add(&layout.places);
    match &layout.values {
        HotData::Whole(values) => digest.add(values),
        HotData::Single(bits) | HotData::Half(bits) => digest.add(bits),
        HotData::OfRows { constants, .. } => digest.add(constants),
        HotData::Equal { constant, .. } => digest.add(&[*constant]),
    }
    digest.add(&layout.ranks);
    digest.add(&layout.cold_values);
    digest.add(layout.order.as_deref().unwrap_or_default());
    digest.add(&layout.slices);
    digest.add(&layout.columns);
    digest.add(&layout.exponents);
    digest.add(&layout.cold_exponents);
    digest.add(&layout.cold_columns);
    digest.add(layout.cold.indices());
    digest.add(layout.cold.data());
}

fn all<T: Element + FixedPoint>(x: &CsrMatrix<T>) -> u64 {
    let mut digest = Digest(0xcbf2_9ce4_8422_2325);
    let size = HotSize {
        most: 300,
        least: 40,
    };
    for values in [Values::Exact, Values::Bf16] {
        of_hot(
            &mut digest,
            &HotLayout::new(x, size, values).expect("a small matrix"),
        );
    }
    let size = PanelSize {
        widest: 700,
        ranges: 9,
        result: x.cols(),
    };
    of_panels(&mut digest, &PanelLayout::of_rows(x, size));
    of_panels(&mut digest, &PanelLayout::of_columns(x, size));
    let ones = PanelLayout::of_columns_of_ones(x, size);
    assert!(ones.values.is_empty());
    of_panels(&mut digest, &ones);
    digest.0
}

/// The digests of some matrices.
fn digests() -> [u64; 4] {
    let wave = |row: usize, column: u32| (row as f64 * 7.3 + f64::from(column)).sin();
    [
        all::<f32>(&matrix((3_000, 20_000), |_| 28, |_, _| 1.0)),
        all::<f64>(&matrix((3_000, 4_000), |row| row % 97, wave)),
        all::<f32>(&matrix((9_000, 2_000), |_| 20, |row, _| row as f64)),
        all::<f64>(&matrix(
            (4_000, 9_000),
            |row| if row % 900 == 7 { 3_000 } else { 12 },
            |row, column| ((row + column as usize) % 7) as f64,
        )),
    ]
}

#[test]
fn arrays_do_not_depend_on_the_threads() {
    let of_threads = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads").install(digests)
    };
    let one = of_threads(1);
    assert_eq!(of_threads(2), one);
    assert_eq!(of_threads(5), one);
}
