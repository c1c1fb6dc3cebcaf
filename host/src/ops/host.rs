//! The pattern on the CPU device: buffers as slices, handed to [`crate::cpu`].

use std::sync::{Arc, Mutex, OnceLock};

use ndarray::ArrayView2;

use super::terms::Terms;
use super::{Number, OpError};
use crate::cpu::fixed::{self, Columns};
use crate::cpu::{self, Addend, Csr, Workspace, ordered};
use crate::device::Buffer;
use crate::matrix::{CsrMatrix, Features, Storage, rows_of};
use crate::parallel::locked;
use crate::plan::fused::{Product, Summation};

/// X as it came, with what its products keep from one to the next.
pub(super) struct HostRows<T> {
    pub(super) features: Arc<Features<T>>,
    pub(super) workspace: Mutex<Workspace>,
    /// What reproducible sums need to know, looked up when they are first wanted.
    columns: OnceLock<Columns>,
}

impl<T: Number> HostRows<T> {
    pub(super) fn new(features: Arc<Features<T>>) -> Self {
        HostRows {
            features: by_rows(features),
            workspace: Mutex::new(Workspace::new()),
            columns: OnceLock::new(),
        }
    }

    /// Computes `product`; shapes and devices have been checked.
    pub(super) fn product(
        &self,
        (product, summation): (Product, Summation),
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.reading(|| self.run(product, summation, input, terms, output))
    }

    /// [`Features::reading`].
    pub(super) fn reading<R>(&self, work: impl FnOnce() -> R) -> Result<R, OpError> {
        Ok(self.features.reading(work)?)
    }

    fn run(
        &self,
        product: Product,
        summation: Summation,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) {
        match (summation, self.features.storage()) {
            (Summation::Reproducible, Storage::Sparse(x)) => {
                let columns = self.columns.get_or_init(|| columns(x));
                run_reproducibly(product, (x, columns), input, terms, output);
            }
            (Summation::Reproducible, Storage::Dense(x)) => {
                run_in_order(product, x, input, terms, output);
            }
            (Summation::Free, _) => {
                run(
                    product,
                    &self.features,
                    input,
                    terms,
                    output,
                    &self.workspace,
                );
            }
        }
    }
}

/// Dense features with their rows one after the other, as products read them; copied once if they lie otherwise.
fn by_rows<T: Number>(features: Arc<Features<T>>) -> Arc<Features<T>> {
    let rows = match features.storage() {
        Storage::Dense(x) if !x.is_standard_layout() => rows_of(x),
        _ => return features,
    };
    Arc::new(Features::Dense(rows))
}

const ON_HOST: &str = "the operation has checked that its buffers lie on the CPU";

fn slice<T: Number>(buffer: &Buffer<T>) -> &[T] {
    buffer.as_host_slice().expect(ON_HOST)
}

fn host_terms<'a, T: Number>(terms: &Terms<'a, T>) -> cpu::Terms<'a, T> {
    cpu::Terms {
        alpha: terms.alpha,
        weights: terms.weights.map(slice),
        shift: terms.shift.map(|shift| slice(shift)[0]),
        addend: terms
            .addend
            .map_or(Addend::None, |(beta, z)| Addend::Vector {
                beta,
                z: slice(z),
            }),
    }
}

/// Evaluates an expression with `x` as the CPU's view of features, a [`Csr`](crate::cpu::Csr) or a
/// [`Dense`](crate::cpu::Dense).
macro_rules! with_rows {
    ($features:expr, |$x:ident| $run:expr) => {
        match $features.storage() {
            $crate::matrix::Storage::Sparse(x) => {
                let indptr = x.indptr();
                let offsets = indptr
                    .as_slice()
                    .expect("an owned CSR matrix starts at offset 0");
                // SAFETY: sprs holds the same invariants: ascending offsets that end at the number of
                // values, as many indices as values, indices below the number of columns.
                let $x = unsafe {
                    $crate::cpu::Csr::new_unchecked(x.cols(), offsets, x.indices(), x.data())
                };
                $run
            }
            $crate::matrix::Storage::Dense(x) => {
                let standard = x.as_standard_layout();
                let values = standard.as_slice().expect("standard layout is contiguous");
                let (rows, cols) = x.dim();
                let $x = $crate::cpu::Dense::new(rows, cols, cols, values)
                    .expect("an array holds its elements");
                $run
            }
        }
    };
}
pub(super) use with_rows;

/// Has `run` work on the matrix as the CPU's bodies take it.
fn with_csr<T: Number, R>(x: &CsrMatrix<T>, run: impl FnOnce(&Csr<'_, T>) -> R) -> R {
    let indptr = x.indptr();
    let offsets = indptr.raw_storage();
    // SAFETY: sprs holds the same invariants: ascending offsets that end at the number of values, the first 0
    // as the matrix is owned; as many indices as values, indices below the number of columns.
    let x = unsafe { Csr::new_unchecked(x.cols(), offsets, x.indices(), x.data()) };
    run(&x)
}

/// What reproducible sums need to know of a matrix.
fn columns<T: Number>(x: &CsrMatrix<T>) -> Columns {
    with_csr(x, |x| Columns::of(x))
}

/// [`run`] with the bits that every device gets.
fn run_reproducibly<T: Number>(
    product: Product,
    (x, columns): (&CsrMatrix<T>, &Columns),
    input: &Buffer<T>,
    terms: &Terms<'_, T>,
    output: &mut Buffer<T>,
) {
    let terms = host_terms(terms);
    let (input, output) = (slice(input), output.as_host_slice_mut().expect(ON_HOST));
    with_csr(x, |x| {
        let input = match product {
            Product::Forward => return fixed::forward(x, input, &terms, output),
            Product::Fused => fixed::Input::Product(input),
            Product::Transposed => fixed::Input::Given(input),
        };
        fixed::transpose(x, columns, input, &terms, output);
    });
}

/// [`run_reproducibly`] for a dense matrix.
fn run_in_order<T: Number>(
    product: Product,
    x: ArrayView2<'_, T>,
    input: &Buffer<T>,
    terms: &Terms<'_, T>,
    output: &mut Buffer<T>,
) {
    let terms = host_terms(terms);
    let (input, output) = (slice(input), output.as_host_slice_mut().expect(ON_HOST));
    let standard = x.as_standard_layout();
    let values = standard.as_slice().expect("standard layout is contiguous");
    let (rows, cols) = x.dim();
    let x = cpu::Dense::new(rows, cols, cols, values).expect("an array holds its elements");
    let input = match product {
        Product::Forward => return ordered::forward(&x, input, &terms, output),
        Product::Fused => ordered::Input::Product(input),
        Product::Transposed => ordered::Input::Given(input),
    };
    ordered::transpose(&x, input, &terms, output);
}

/// Computes `product` on the CPU; shapes and devices have been checked.
fn run<T: Number>(
    product: Product,
    x: &Features<T>,
    input: &Buffer<T>,
    terms: &Terms<'_, T>,
    output: &mut Buffer<T>,
    workspace: &Mutex<Workspace>,
) {
    let terms = host_terms(terms);
    let (input, output) = (slice(input), output.as_host_slice_mut().expect(ON_HOST));
    let mut workspace = locked(workspace);
    with_rows!(x, |x| dispatch(
        product,
        &x,
        input,
        &terms,
        output,
        &mut workspace
    ));
}

fn dispatch<T: Number>(
    product: Product,
    x: &impl cpu::RowMatrix<T>,
    input: &[T],
    terms: &cpu::Terms<'_, T>,
    output: &mut [T],
    workspace: &mut Workspace,
) {
    match product {
        Product::Fused => cpu::fused(x, input, terms, output, workspace),
        Product::Forward => cpu::forward(x, input, terms, output),
        Product::Transposed => cpu::transposed(x, input, terms, output, workspace),
    }
}
