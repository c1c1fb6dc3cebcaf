//! Seeded matrices and terms, and the judgement of a result.

use ndarray::ArrayView2;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::cpu::sparse::BLOCK;
use crate::cpu::{self, Addend, Csr, Dense, Scalar, Workspace};
use crate::matrix::CsrMatrix;
use crate::reference::rounding::{UNIT_F32, UNIT_F64, gamma, within};
use crate::reference::{self, Rows};

/// Sizes around the widths of SIMD vectors and of the groups they are taken in.
pub const SIZES: [usize; 24] = [
    0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 28, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257, 1031,
];

pub fn rng(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// `len` values in [-1, 1).
pub fn values<T: Scalar>(len: usize, rng: &mut impl Rng) -> Vec<T> {
    (0..len)
        .map(|_| T::narrow(rng.random_range(-1.0..1.0)))
        .collect()
}

/// A sparse matrix whose row r has about `entries(r)` entries.
pub fn sparse<T: Scalar>(
    rows: usize,
    cols: usize,
    entries: impl Fn(usize) -> usize,
    rng: &mut impl Rng,
) -> CsrMatrix<T> {
    let (mut offsets, mut indices) = (vec![0], Vec::new());
    for row in 0..rows {
        let share = entries(row) as f64 / cols.max(1) as f64;
        indices.extend((0..cols as u32).filter(|_| rng.random_range(0.0..1.0) < share));
        offsets.push(indices.len() as u64);
    }
    let values = values(indices.len(), rng);
    CsrMatrix::new((rows, cols), offsets.into(), indices.into(), values.into())
}

pub fn csr<T: Scalar>(x: &CsrMatrix<T>) -> Csr<'_, T> {
    let offsets = x.indptr().into_raw_storage();
    Csr::new(x.cols(), offsets, x.indices(), x.data()).expect("sprs keeps the invariants")
}

/// The same matrix for the reference and for the passes.
pub struct DenseCase<'a, T> {
    pub view: ArrayView2<'a, T>,
    pub x: Dense<'a, T>,
}

pub fn dense<T: Scalar>(rows: usize, cols: usize, values: &[T]) -> DenseCase<'_, T> {
    let view = ArrayView2::from_shape((rows, cols), values).expect("rows · cols values");
    let x = Dense::new(rows, cols, cols, values).expect("rows · cols values");
    DenseCase { view, x }
}

/// Which terms take part.
#[derive(Debug, Clone, Copy)]
pub enum Which {
    Product,
    Weighted,
    Shifted,
    InPlace,
    All,
}

pub const EVERY: [Which; 5] = [
    Which::Product,
    Which::Weighted,
    Which::Shifted,
    Which::InPlace,
    Which::All,
];

/// Vectors for the terms; what the output held before is `z`.
pub struct Parts<T> {
    weights: Vec<T>,
    z: Vec<T>,
}

impl<T: Scalar> Parts<T> {
    pub fn new(rows: usize, output: usize, rng: &mut impl Rng) -> Self {
        Parts {
            weights: values(rows, rng),
            z: values(output, rng),
        }
    }

    fn given(&self, which: Which) -> cpu::Terms<'_, T> {
        let plain = cpu::Terms::scaled(T::narrow(1.0));
        let weights = Some(&*self.weights);
        let (beta, shift) = (T::narrow(-0.75), Some(T::narrow(0.3)));
        match which {
            Which::Product => plain,
            Which::Weighted => cpu::Terms { weights, ..plain },
            Which::Shifted => cpu::Terms { shift, ..plain },
            Which::InPlace => cpu::Terms {
                addend: Addend::InPlace { beta },
                ..plain
            },
            Which::All => cpu::Terms {
                alpha: T::narrow(1.7),
                weights,
                shift,
                addend: Addend::Vector { beta, z: &self.z },
            },
        }
    }

    fn expected(&self, which: Which) -> reference::fused::Terms<'_, T> {
        let given = self.given(which);
        let (beta, z) = match given.addend {
            Addend::None => (T::default(), None),
            Addend::Vector { beta, .. } | Addend::InPlace { beta } => (beta, Some(&*self.z)),
        };
        let (alpha, weights, shift) = (given.alpha, given.weights, given.shift);
        reference::fused::Terms {
            alpha,
            weights,
            shift,
            beta,
            z,
        }
    }

    /// What the output holds before: NaN where it must not be read.
    fn output(&self, which: Which) -> Vec<T> {
        match which {
            Which::InPlace => self.z.clone(),
            _ => vec![T::narrow(f64::NAN); self.z.len()],
        }
    }
}

/// The roundings in T of the passes, and those in f64 of the reference (see the room's docs).
fn tolerance<T: Scalar>(x: &impl Rows, magnitudes: &[f64]) -> Vec<f64> {
    let longest_row = (0..x.rows())
        .map(|row| x.entries(row).count())
        .max()
        .unwrap_or(0);
    let unit = if size_of::<T>() == 4 {
        UNIT_F32
    } else {
        UNIT_F64
    };
    let in_t = gamma(longest_row + x.rows().min(BLOCK) + 8, unit);
    let in_f64 = 2.0 * gamma(reference::fused::roundings(x), UNIT_F64);
    magnitudes
        .iter()
        .map(|magnitude| (in_t + in_f64) * magnitude)
        .collect()
}

fn assert_within<T: Scalar>(result: &[T], truth: &[f64], bound: &[f64], what: &str) {
    let result: Vec<f64> = result.iter().map(|&value| value.into()).collect();
    if !within(&result, truth, bound) {
        let worst =
            (0..truth.len()).find(|&i| !within(&result[i..=i], &truth[i..=i], &bound[i..=i]));
        let i = worst.unwrap_or_default();
        panic!(
            "{what}: element {i} is {}, expected {} within {}",
            result[i], truth[i], bound[i]
        );
    }
}

/// All three passes over `x` with the terms `which`, against the reference.
pub fn check<T: Scalar>(
    reference_x: &impl Rows,
    x: &impl cpu::RowMatrix<T>,
    which: Which,
    rng: &mut impl Rng,
) {
    let (rows, cols) = (reference_x.rows(), reference_x.cols());
    let what = format!("{rows} × {cols}, {which:?}, {} bytes", size_of::<T>());
    let (y, p) = (values::<T>(cols, rng), values::<T>(rows, rng));
    let mut workspace = Workspace::new();

    let parts = Parts::new(rows, cols, rng);
    let (given, expected) = (parts.given(which), parts.expected(which));
    let mut w = parts.output(which);
    cpu::fused(x, &y, &given, &mut w, &mut workspace);
    let truth = reference::fused::fused(reference_x, &y, &expected);
    let magnitude = reference::fused::fused_magnitude(reference_x, &y, &expected);
    assert_within(
        &w,
        &truth,
        &tolerance::<T>(reference_x, &magnitude),
        &format!("fused, {what}"),
    );

    let mut w = parts.output(which);
    cpu::transposed(x, &p, &given, &mut w, &mut workspace);
    let truth = reference::fused::transposed(reference_x, &p, &expected);
    let magnitude = reference::fused::transposed_magnitude(reference_x, &p, &expected);
    assert_within(
        &w,
        &truth,
        &tolerance::<T>(reference_x, &magnitude),
        &format!("Xᵀ·p, {what}"),
    );

    let parts = Parts::new(rows, rows, rng);
    let (given, expected) = (parts.given(which), parts.expected(which));
    let mut q = parts.output(which);
    cpu::forward(x, &y, &given, &mut q);
    let truth = reference::fused::forward(reference_x, &y, &expected);
    let magnitude = reference::fused::forward_magnitude(reference_x, &y, &expected);
    assert_within(
        &q,
        &truth,
        &tolerance::<T>(reference_x, &magnitude),
        &format!("X·y, {what}"),
    );
}
