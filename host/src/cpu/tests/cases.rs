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
        let mut column = gap(share, rng);
        while column < cols as f64 {
            indices.push(column as u32);
            column += 1.0 + gap(share, rng);
        }
        offsets.push(indices.len() as u64);
    }
    let values = values(indices.len(), rng);
    CsrMatrix::new((rows, cols), offsets.into(), indices.into(), values.into())
}

/// Columns without an entry before the next one with one, where each has one with this probability: as many as a draw for each column
/// would give, for one draw.
fn gap(share: f64, rng: &mut impl Rng) -> f64 {
    match share {
        ..=0.0 => f64::INFINITY,
        1.0.. => 0.0,
        _ => {
            let chance: f64 = rng.random_range(0.0..1.0);
            ((1.0 - chance).ln() / (1.0 - share).ln()).floor()
        }
    }
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

/// For each unit of magnitude: the roundings in T of the passes, and those in f64 of the reference (see the room's docs).
fn tolerance<T: Scalar>(x: &impl Rows) -> f64 {
    let roundings = reference::fused::roundings(x);
    let unit = if size_of::<T>() == 4 {
        UNIT_F32
    } else {
        UNIT_F64
    };
    // Sums over rows are added up in f64 from block to block.
    let in_t = gamma(roundings - x.rows() + x.rows().min(BLOCK), unit);
    in_t + 2.0 * gamma(roundings, UNIT_F64)
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

/// A result in f64, and how far from it a pass may be.
struct Truth {
    values: Vec<f64>,
    bound: Vec<f64>,
}

impl Truth {
    fn new(values: Vec<f64>, magnitudes: &[f64], tolerance: f64) -> Truth {
        let bound = magnitudes.iter().map(|magnitude| tolerance * magnitude);
        Truth {
            values,
            bound: bound.collect(),
        }
    }
}

/// What the three passes over a matrix take and what they are to give, whatever its storage.
pub struct Passes<T> {
    which: Which,
    y: Vec<T>,
    p: Vec<T>,
    of_columns: Parts<T>,
    of_rows: Parts<T>,
    fused: Truth,
    transposed: Truth,
    forward: Truth,
    what: String,
}

impl<T: Scalar> Passes<T> {
    /// Of `x` with the terms `which`.
    pub fn new(x: &impl Rows, which: Which, rng: &mut impl Rng) -> Self {
        let (rows, cols, tolerance) = (x.rows(), x.cols(), tolerance::<T>(x));
        let (y, p) = (values::<T>(cols, rng), values::<T>(rows, rng));
        let of_columns = Parts::new(rows, cols, rng);
        let of_rows = Parts::new(rows, rows, rng);
        let (along, across) = (of_columns.expected(which), of_rows.expected(which));
        let fused = Truth::new(
            reference::fused::fused(x, &y, &along),
            &reference::fused::fused_magnitude(x, &y, &along),
            tolerance,
        );
        let transposed = Truth::new(
            reference::fused::transposed(x, &p, &along),
            &reference::fused::transposed_magnitude(x, &p, &along),
            tolerance,
        );
        let forward = Truth::new(
            reference::fused::forward(x, &y, &across),
            &reference::fused::forward_magnitude(x, &y, &across),
            tolerance,
        );
        let what = format!("{rows} × {cols}, {which:?}, {} bytes", size_of::<T>());
        Passes {
            which,
            y,
            p,
            of_columns,
            of_rows,
            fused,
            transposed,
            forward,
            what,
        }
    }

    /// Computes all three.
    pub fn check(&self, x: &impl cpu::RowMatrix<T>) {
        let mut workspace = Workspace::new();
        let given = self.of_columns.given(self.which);
        let mut w = self.of_columns.output(self.which);
        cpu::fused(x, &self.y, &given, &mut w, &mut workspace);
        self.judge("fused", &w, &self.fused);

        let mut w = self.of_columns.output(self.which);
        cpu::transposed(x, &self.p, &given, &mut w, &mut workspace);
        self.judge("Xᵀ·p", &w, &self.transposed);

        let mut q = self.of_rows.output(self.which);
        cpu::forward(x, &self.y, &self.of_rows.given(self.which), &mut q);
        self.judge("X·y", &q, &self.forward);
    }

    fn judge(&self, pass: &str, found: &[T], truth: &Truth) {
        let what = format!("{pass}, {}", self.what);
        assert_within(found, &truth.values, &truth.bound, &what);
    }
}

/// All three passes over `x` with the terms `which`, against the reference.
pub fn check<T: Scalar>(
    reference_x: &impl Rows,
    x: &impl cpu::RowMatrix<T>,
    which: Which,
    rng: &mut impl Rng,
) {
    Passes::new(reference_x, which, rng).check(x);
}
