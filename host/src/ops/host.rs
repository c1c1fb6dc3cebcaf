//! The pattern on the CPU device: buffers as slices, handed to [`crate::cpu`].

use std::sync::{Arc, Mutex, OnceLock};

use ndarray::ArrayView2;

use super::forms::Within;
use super::forms::sell::SellRows;
use super::share::{self, Share};
use super::terms::Terms;
use super::{Number, OpError};
use crate::cpu::fixed::{self, Columns};
use crate::cpu::{self, Addend, Csr, Workspace, ordered};
use crate::device::Buffer;
use crate::device::group::Group;
use crate::matrix::{CsrMatrix, Features, Storage, rows_of};
use crate::parallel::locked;
use crate::plan::fused::{Product, Summation};

/// X as it came, with what its products keep from one to the next.
pub(super) struct HostRows<T: Number> {
    pub(super) features: Arc<Features<T>>,
    pub(super) workspace: Mutex<Workspace>,
    /// Which rows of all members of a group they are.
    pub(super) share: Option<Share>,
    /// A further form, which free sums are computed from where it has been made.
    pub(super) sell: Option<Box<SellRows<T>>>,
    /// What reproducible sums need to know, looked up when they are first wanted.
    columns: OnceLock<Columns>,
}

impl<T: Number> HostRows<T> {
    /// All rows.
    pub(super) fn new(features: Arc<Features<T>>) -> Self {
        HostRows {
            features: by_rows(features),
            workspace: Mutex::new(Workspace::new()),
            share: None,
            sell: None,
            columns: OnceLock::new(),
        }
    }

    /// The rows of a member of a group, if there is one.
    pub(super) fn of_member(
        features: Arc<Features<T>>,
        group: Option<&Group>,
    ) -> Result<Self, OpError> {
        let rows = HostRows::new(features);
        let share = group.map(|group| Share::of(group, &*rows.features));
        Ok(HostRows {
            share: share.transpose()?.flatten(),
            ..rows
        })
    }

    /// Computes `product`; shapes and devices have been checked.
    pub(super) fn product(
        &self,
        (product, summation): (Product, Summation),
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.reading(|| match &self.share {
            None => {
                self.run(product, summation, input, terms, output);
                Ok(())
            }
            Some(share) => {
                let vectors = (slice(input), output.as_host_slice_mut().expect(ON_HOST));
                self.run_shared(share, (product, summation), vectors, &host_terms(terms))
            }
        })?
    }

    /// `w = Xᵀ·p` in fixed-point sums over sparse rows, in the scale of what bounds p.
    pub(super) fn transposed_within(
        &self,
        p: &Buffer<T>,
        within: &Within<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let Storage::Sparse(x) = self.features.storage() else {
            unreachable!("dense rows have sums in an order");
        };
        let columns = self.columns(x)?;
        let own = |vector| match &self.share {
            Some(share) => share.part(slice(vector), 1),
            None => slice(vector),
        };
        let of_product = within.product == Product::Fused;
        let of = fixed::Within {
            of_product,
            input: match of_product {
                true => slice(within.input),
                false => own(within.input),
            },
            weights: within.weights.map(own),
            shift: within.shift.map(|shift| slice(shift)[0]),
        };
        let (input, plain) = (
            fixed::Input::Bounded(own(p), of),
            host_terms(&Terms::default()),
        );
        let w = w.as_host_slice_mut().expect(ON_HOST);
        self.reading(|| {
            with_csr(x, |x| match &self.share {
                Some(share) => summed((x, share), columns, input, &plain, w),
                None => {
                    fixed::transpose(x, columns, input, &plain, w);
                    Ok(())
                }
            })
        })?
    }

    /// [`Features::reading`].
    pub(super) fn reading<R>(&self, work: impl FnOnce() -> R) -> Result<R, OpError> {
        Ok(self.features.reading(work)?)
    }

    /// What reproducible sums need to know of X; of the columns of all members.
    fn columns(&self, x: &CsrMatrix<T>) -> Result<&Columns, OpError> {
        if let Some(columns) = self.columns.get() {
            return Ok(columns);
        }
        let mut columns = with_csr(x, |x| Columns::of(x));
        if let Some(share) = &self.share {
            let exponents = columns.exponents_mut();
            let mut most: Vec<i64> = exponents.iter().map(|e| i64::from(*e)).collect();
            share.group().max(&mut most)?;
            let pairs = exponents.iter_mut().zip(most);
            pairs.for_each(|(exponent, most)| *exponent = most as i32);
        }
        Ok(self.columns.get_or_init(|| columns))
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
                let columns = self.columns(x).expect("nobody else is asked");
                run_reproducibly(product, (x, columns), input, terms, output);
            }
            (Summation::Reproducible, Storage::Dense(x)) => {
                run_in_order(product, x, input, terms, output);
            }
            (Summation::Free, _) => {
                let terms = host_terms(terms);
                let output = output.as_host_slice_mut().expect(ON_HOST);
                run(product, self, slice(input), &terms, output);
            }
        }
    }

    /// A product over the rows of all members; vectors hold an element for each of them.
    fn run_shared(
        &self,
        share: &Share,
        (product, summation): (Product, Summation),
        (input, output): (&[T], &mut [T]),
        terms: &cpu::Terms<'_, T>,
    ) -> Result<(), OpError> {
        let own = cpu::Terms {
            weights: terms.weights.map(|v| share.part(v, 1)),
            ..*terms
        };
        if product == Product::Forward {
            let addend = match terms.addend {
                Addend::Vector { beta, z } => Addend::Vector {
                    beta,
                    z: share.part(z, 1),
                },
                other => other,
            };
            let own = cpu::Terms { addend, ..own };
            self.forward_shared(share, summation, input, &own, share.part_mut(output, 1));
            return share.gather(output, 1);
        }
        let input = match product {
            Product::Transposed => share.part(input, 1),
            _ => input,
        };
        match (summation, self.features.storage()) {
            (Summation::Free, _) => {
                let bare = cpu::Terms {
                    addend: Addend::None,
                    ..own
                };
                run(product, self, input, &bare, output);
                share.sum(output, share::addend_of(terms.addend))
            }
            (Summation::Reproducible, Storage::Sparse(x)) => {
                let input = match product {
                    Product::Fused => fixed::Input::Product(input),
                    _ => fixed::Input::Given(input),
                };
                let columns = self.columns(x)?;
                with_csr(x, |x| summed((x, share), columns, input, &own, output))
            }
            (Summation::Reproducible, Storage::Dense(x)) => {
                let input = match product {
                    Product::Fused => ordered::Input::Product(input),
                    _ => ordered::Input::Given(input),
                };
                with_dense(x, |x| carried((x, share), input, &own, output))
            }
        }
    }

    /// X·y of the rows of this member; v and z are theirs.
    fn forward_shared(
        &self,
        share: &Share,
        summation: Summation,
        y: &[T],
        terms: &cpu::Terms<'_, T>,
        p: &mut [T],
    ) {
        match (summation, self.features.storage()) {
            (Summation::Free, _) => run(Product::Forward, self, y, terms, p),
            (Summation::Reproducible, Storage::Sparse(x)) => {
                with_csr(x, |x| fixed::forward_of((x, share.whole()), y, terms, p));
            }
            (Summation::Reproducible, Storage::Dense(x)) => {
                with_dense(x, |x| ordered::forward_of((x, share.place()), y, terms, p));
            }
        }
    }
}

/// Fixed-point sums of all members: the greatest ranges of all, and the sums of their sums, which are exact.
fn summed<T: Number>(
    (x, share): (&Csr<'_, T>, &Share),
    columns: &Columns,
    input: fixed::Input<'_, T>,
    terms: &cpu::Terms<'_, T>,
    w: &mut [T],
) -> Result<(), OpError> {
    let (group, n) = (share.group(), x.cols());
    let walk = fixed::Walk::new((x, share.whole()), columns, input, terms);
    let own = walk.ranges();
    let mut most = [own.input, own.weights].map(u64::from);
    group.max(&mut most)?;
    let [input, weights] = most.map(|field| field as u32);
    let walk = walk.within(fixed::Ranges {
        input,
        weights,
        ..own
    });
    let mut sums = walk.sums();
    // High and low words, which wrap alike, and how many sums have a part that is no number.
    let mut words = Vec::with_capacity(2 * n + 1);
    words.extend(sums.iter().map(|sum| sum.high.cast_unsigned()));
    words.extend(sums.iter().map(|sum| sum.low));
    let zero = <T as gpu_kernels::Real>::ZERO;
    words.push(sums.iter().filter(|sum| sum.special != zero).count() as u64);
    group.sum(&mut words)?;
    for (j, sum) in sums.iter_mut().enumerate() {
        (sum.high, sum.low) = (words[j].cast_signed(), words[n + j]);
    }
    if words[2 * n] > 0 {
        let mut special: Vec<f64> = sums.iter().map(|sum| sum.special.into()).collect();
        group.sum(&mut special)?;
        let pairs = sums.iter_mut().zip(special);
        pairs.for_each(|(sum, special)| sum.special = <T as cpu::Scalar>::narrow(special));
    }
    walk.finish(&sums, terms, w);
    Ok(())
}

/// Messages into which sums on their way from member to member are cut, so that members work at the same time.
const PARTS: usize = 8;

/// Sums of floats in the order of the rows, from one member to the next.
fn carried<T: Number>(
    (x, share): (&cpu::Dense<'_, T>, &Share),
    input: ordered::Input<'_, T>,
    terms: &cpu::Terms<'_, T>,
    w: &mut [T],
) -> Result<(), OpError> {
    let (group, place) = (share.group(), share.place());
    let Some(sums) = ordered::Sums::of((x, place), input, terms) else {
        let ordered::Input::Product(y) = input else {
            unreachable!("panels hold any number of columns");
        };
        let mut p = vec![T::default(); x.rows()];
        let one = <T as gpu_kernels::Real>::ONE;
        let first = cpu::Terms {
            alpha: one,
            addend: Addend::None,
            ..*terms
        };
        ordered::forward_of((x, place), y, &first, &mut p);
        let then = cpu::Terms {
            weights: None,
            shift: None,
            ..*terms
        };
        return carried((x, share), ordered::Input::Given(&p), &then, w);
    };
    let parts = PARTS.min(sums.chunks());
    let chunks = sums.chunks().div_ceil(parts);
    // Chunks that there are not come to zero, and are not looked at.
    let mut on_the_way = vec![T::default(); parts * chunks * sums.of_chunk()];
    group.carry((&mut on_the_way, parts), |part, values| {
        let first = part * chunks;
        let there = chunks.min(sums.chunks().saturating_sub(first));
        sums.add(first, &mut values[..there * sums.of_chunk()]);
    })?;
    if place.is_last {
        sums.finish(&on_the_way, terms, w);
    }
    Ok(group.broadcast(group.size() - 1, w)?)
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
pub(super) fn with_csr<T: Number, R>(x: &CsrMatrix<T>, run: impl FnOnce(&Csr<'_, T>) -> R) -> R {
    let indptr = x.indptr();
    let offsets = indptr.raw_storage();
    // SAFETY: sprs holds the same invariants: ascending offsets that end at the number of values, the first 0
    // as the matrix is owned; as many indices as values, indices below the number of columns.
    let x = unsafe { Csr::new_unchecked(x.cols(), offsets, x.indices(), x.data()) };
    run(&x)
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
    let input = match product {
        Product::Forward => {
            return with_dense(x, |x| ordered::forward(x, input, &terms, output));
        }
        Product::Fused => ordered::Input::Product(input),
        Product::Transposed => ordered::Input::Given(input),
    };
    with_dense(x, |x| ordered::transpose(x, input, &terms, output));
}

/// Has `run` work on a dense matrix as the CPU's bodies take it.
fn with_dense<T: Number, R>(x: ArrayView2<'_, T>, run: impl FnOnce(&cpu::Dense<'_, T>) -> R) -> R {
    let standard = x.as_standard_layout();
    let values = standard.as_slice().expect("standard layout is contiguous");
    let (rows, cols) = x.dim();
    run(&cpu::Dense::new(rows, cols, cols, values).expect("an array holds its elements"))
}

/// Computes `product` of the rows of `x` on the CPU; shapes and devices have been checked.
fn run<T: Number>(
    product: Product,
    x: &HostRows<T>,
    input: &[T],
    terms: &cpu::Terms<'_, T>,
    output: &mut [T],
) {
    let mut workspace = locked(&x.workspace);
    if let Some(sell) = &x.sell {
        return dispatch(product, &sell.view(), input, terms, output, &mut workspace);
    }
    with_rows!(&*x.features, |x| dispatch(
        product,
        &x,
        input,
        terms,
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
