//! Matrix products on the CPU: bands of rows over threads, each by `faer`.

use faer::linalg::matmul::matmul as multiply;
use faer::traits::ComplexField;
use faer::{Accum, MatMut, MatRef, Par};
use ndarray::{ArrayView2, ArrayViewMut2, Axis, LinalgScalar};
use rayon::prelude::*;

use super::Scalar;

/// Multiplications that make a band worth handing to another thread, and the packing of B that each band repeats.
const MIN_WORK: usize = 1 << 22;
/// Rows of a band are a multiple of what the inner loops hold.
const ROWS: usize = 16;

/// An element type that matrix products know: f32 or f64.
pub trait Multiply: Scalar {
    /// `C = α · A · B + β · C`, by one thread.
    #[doc(hidden)]
    fn multiply(
        alpha: Self,
        a: ArrayView2<'_, Self>,
        b: ArrayView2<'_, Self>,
        beta: Self,
        c: ArrayViewMut2<'_, Self>,
    );
}

macro_rules! multiplied {
    ($($t:ty),*) => { $(
        impl Multiply for $t {
            fn multiply(
                alpha: Self,
                a: ArrayView2<'_, Self>,
                b: ArrayView2<'_, Self>,
                beta: Self,
                c: ArrayViewMut2<'_, Self>,
            ) {
                band(alpha, a, b, beta, c);
            }
        }
    )* };
}
multiplied!(f32, f64);

fn band<T: ComplexField + LinalgScalar + Default>(
    alpha: T,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    beta: T,
    mut c: ArrayViewMut2<'_, T>,
) {
    let start = if beta == T::default() {
        Accum::Replace
    } else {
        c.mapv_inplace(|value| beta * value);
        Accum::Add
    };
    multiply(written(c), start, read(&a), read(&b), alpha, Par::Seq);
    super::clear_upper();
}

/// The same matrix for `faer`.
fn read<'a, T: ComplexField>(view: &'a ArrayView2<'_, T>) -> MatRef<'a, T> {
    let ((rows, cols), strides) = (view.dim(), view.strides());
    // SAFETY: a view's pointer, sizes and strides, in elements, describe initialised elements that stay and are not
    // written while it is borrowed.
    unsafe { MatRef::from_raw_parts(view.as_ptr(), rows, cols, strides[0], strides[1]) }
}

/// The same matrix for `faer`, which alone has it.
fn written<T: ComplexField>(mut view: ArrayViewMut2<'_, T>) -> MatMut<'_, T> {
    let ((rows, cols), strides) = (view.dim(), [view.strides()[0], view.strides()[1]]);
    // SAFETY: as in `read`; nobody else has the elements of a mutable view, of which no two are the same, and the result
    // lives as long as what was lent to the view that is given away.
    unsafe { MatMut::from_raw_parts_mut(view.as_mut_ptr(), rows, cols, strides[0], strides[1]) }
}

/// `C = α · A · B + β · C`; where β = 0, C is not read. The same bits for every number of threads.
///
/// # Panics
/// When the shapes do not fit.
///
/// ```
/// use ndarray::array;
/// let (a, b, mut c) = (array![[1.0, 2.0]], array![[3.0], [4.0]], array![[f64::NAN]]);
/// warpfuse::cpu::matmul::matmul(1.0, a.view(), b.view(), 0.0, c.view_mut());
/// assert_eq!(c, array![[11.0]]);
/// ```
pub fn matmul<T: Multiply>(
    alpha: T,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
    beta: T,
    mut c: ArrayViewMut2<'_, T>,
) {
    assert_eq!(a.ncols(), b.nrows(), "columns of A and rows of B");
    assert_eq!(c.dim(), (a.nrows(), b.ncols()), "shape of C");
    let per_row = b.len().max(1);
    let rows = MIN_WORK.div_ceil(per_row).next_multiple_of(ROWS);
    let bands = c.axis_chunks_iter_mut(Axis(0), rows).into_par_iter();
    let of_a = a.axis_chunks_iter(Axis(0), rows).into_par_iter();
    bands
        .zip(of_a)
        .for_each(|(c, a)| T::multiply(alpha, a, b, beta, c));
}
