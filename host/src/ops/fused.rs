//! The fused pattern `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z` and its halves.

use gpu_kernels::fused::{DenseArgs, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::balanced::BalancedKernels;
use super::fixed::FixedKernels;
use super::hot::HotKernels;
use super::layout::{DensePart, Layout, SparsePart};
use super::matrix::Matrix;
use super::ordered::OrderedKernels;
use super::panels::PanelKernels;
use super::{Number, OpError, host, vector};
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::Features;
use crate::plan::fused::{Plan, Product, Strategy, Summation};

/// Everything of the pattern besides X and the input vector. The default is α = 1 and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a, T: Number> {
    /// α.
    pub alpha: T,
    /// v, one weight per row.
    pub weights: Option<&'a Buffer<T>>,
    /// s, a buffer of one element that is subtracted from every element of X·y. With `s = x̄·y` the columns
    /// of X are centred without touching X. `transposed` ignores it.
    pub shift: Option<&'a Buffer<T>>,
    /// β and z; z has the length of the result and is not the result itself.
    pub addend: Option<(T, &'a Buffer<T>)>,
}

impl<T: Number> Default for Terms<'_, T> {
    fn default() -> Self {
        Terms {
            alpha: <T as gpu_kernels::Real>::ONE,
            weights: None,
            shift: None,
            addend: None,
        }
    }
}

/// What is launched for one product.
pub(super) struct Launches<T: Number> {
    plan: Plan,
    step: Step<T>,
}

enum Step<T: Number> {
    Sparse(Prepared<T::Sparse>),
    Dense(Prepared<T::Dense>),
    Fixed(FixedKernels<T>),
    Panels(PanelKernels<T>),
    Hot(HotKernels<T>),
    Balanced(BalancedKernels<T>),
    Ordered(OrderedKernels<T>),
    TwoProducts,
}

impl<T: Number> Matrix<T> {
    /// `w = α · Xᵀ( v ⊙ (X·y − s) ) + β · z`: y and w have n elements, v has m. X is read once (twice, when
    /// it is dense and wider than registers hold).
    ///
    /// Where the plan sums fixed-point integers ([`Strategy::is_fixed`](crate::plan::fused::Strategy::is_fixed)),
    /// the first use makes a second copy of the values of X, every column scaled by a power of two. See
    /// [`gpu_kernels::fused::fixed_point`] for the error.
    ///
    /// # Errors
    /// [`OpError::Length`] and [`OpError::OtherDevice`] when a vector does not fit, [`OpError::Plan`] when no
    /// launch does, [`OpError::Device`] when the device fails.
    pub fn fused(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product(Product::Fused, y, terms, w)
    }

    /// `p = α · v ⊙ (X·y − s) + β · z`: y has n elements, p, v and z have m.
    ///
    /// # Errors
    /// As [`Matrix::fused`].
    pub fn forward(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        p: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product(Product::Forward, y, terms, p)
    }

    /// `w = α · Xᵀ( v ⊙ p ) + β · z`: p and v have m elements, w and z have n.
    ///
    /// # Errors
    /// As [`Matrix::fused`].
    pub fn transposed(
        &self,
        p: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.product(Product::Transposed, p, terms, w)
    }

    pub(super) fn product(
        &self,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.check(product, input, terms, output)?;
        if let Layout::Host(x) = &self.layout {
            match (self.options.summation, &**x) {
                (Summation::Reproducible, Features::Sparse(x)) => {
                    let columns = self.columns.get_or_init(|| host::columns(x));
                    host::run_reproducibly(product, (x, columns), input, terms, output);
                }
                (Summation::Reproducible, Features::Dense(x)) => {
                    host::run_in_order(product, x, input, terms, output);
                }
                (_, x) => host::run(product, x, input, terms, output, &self.workspace),
            }
            return Ok(());
        }
        let accumulates = product != Product::Forward;
        if self.rows() == 0 || self.cols() == 0 && accumulates {
            return begin(output, terms);
        }
        let writes_all = matches!(
            self.launches(product)?.step,
            Step::Fixed(_) | Step::Hot(_) | Step::Balanced(_) | Step::Ordered(_)
        );
        if accumulates && !writes_all {
            begin(output, terms)?;
        }
        self.launch(product, input, terms, output)
    }

    /// Launches what was planned, without checks; an accumulating product adds to `output`, where β·z is already, or
    /// writes all of it when its kernels do.
    pub(super) fn launch(
        &self,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        match (&self.launches(product)?.step, &self.layout) {
            (Step::Panels(kernels), _) => self.over_panels(kernels, product, input, terms, output),
            (Step::Sparse(kernel), Layout::Sparse(rows)) => {
                for part in rows.parts()? {
                    kernel.launch(self.sparse_args(part, product, input, terms, output))?;
                }
                Ok(())
            }
            (Step::Dense(kernel), Layout::Dense(part)) => {
                Ok(kernel.launch(self.dense_args(part, product, input, terms, output))?)
            }
            (Step::Fixed(kernels), _) => self.fixed(kernels, product, input, terms, output),
            (Step::Hot(kernels), _) => {
                self.over_hot_columns(kernels, product, input, terms, output)
            }
            (Step::Balanced(kernels), _) => self.balanced(kernels, product, input, terms, output),
            (Step::Ordered(kernels), _) => self.in_order(kernels, product, input, terms, output),
            _ => self.two_products(input, terms, output),
        }
    }

    /// The plan of a product with its prepared kernel, made once.
    fn launches(&self, product: Product) -> Result<&Launches<T>, OpError> {
        let slot = &self.launches[product as usize];
        slot.get_or_init(|| self.make_launches(product))
            .as_ref()
            .map_err(OpError::clone)
    }

    fn make_launches(&self, product: Product) -> Result<Launches<T>, OpError> {
        let plan = self
            .plan(product)?
            .expect("a matrix on a GPU has limits to plan with");
        tracing::debug!(%plan, "planned");
        let step = match &self.layout {
            // Both walks with the scale of the fused product.
            Layout::Sparse(_) if self.is_reproducible() && plan.then.is_some() => {
                Step::Fixed(FixedKernels::prepare(self, &plan)?)
            }
            _ if plan.then.is_some() => Step::TwoProducts,
            Layout::Sparse(_) if plan.strategy.is_fixed() => {
                Step::Fixed(FixedKernels::prepare(self, &plan)?)
            }
            Layout::Sparse(_) if plan.strategy == Strategy::Panels => {
                Step::Panels(PanelKernels::new(self, &plan)?)
            }
            Layout::Sparse(_) if plan.strategy == Strategy::HotColumns => {
                Step::Hot(HotKernels::prepare(self, &plan)?)
            }
            Layout::Sparse(_) if plan.strategy.is_balanced() => {
                Step::Balanced(BalancedKernels::prepare(self, &plan)?)
            }
            Layout::Sparse(_) => Step::Sparse(prepare::<T::Sparse>(self.device(), &plan)?),
            _ if self.is_reproducible() && product != Product::Forward => {
                Step::Ordered(OrderedKernels::prepare(self, &plan)?)
            }
            _ => Step::Dense(prepare::<T::Dense>(self.device(), &plan)?),
        };
        Ok(Launches { plan, step })
    }

    /// The plan that this matrix uses for a product on a GPU, `None` on the CPU.
    ///
    /// # Errors
    /// As [`Matrix::plan`], and [`OpError::Device`] when the kernel cannot be loaded.
    pub fn used_plan(&self, product: Product) -> Result<Option<&Plan>, OpError> {
        if self.device().is_cpu() {
            return Ok(None);
        }
        Ok(Some(&self.launches(product)?.plan))
    }

    fn two_products(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        self.with_row_vector(|p| self.one_after_the_other(y, terms, p, w))
    }

    /// Calls `work` with a vector of m elements, whatever they are.
    pub(super) fn with_row_vector(
        &self,
        work: impl FnOnce(&mut Buffer<T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut between = self
            .between
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        match &mut *between {
            Some(p) => work(p),
            empty => work(empty.insert(self.device().zeros(self.rows())?)),
        }
    }

    fn one_after_the_other(
        &self,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        p: &mut Buffer<T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let Terms { weights, shift, .. } = *terms;
        self.launch(
            Product::Forward,
            y,
            &Terms {
                weights,
                shift,
                ..Terms::default()
            },
            p,
        )?;
        let Terms { alpha, addend, .. } = *terms;
        self.launch(
            Product::Transposed,
            p,
            &Terms {
                alpha,
                addend,
                ..Terms::default()
            },
            w,
        )
    }

    pub(super) fn sparse_args<'a>(
        &self,
        part: &'a SparsePart<T>,
        product: Product,
        input: &'a Buffer<T>,
        terms: &Terms<'a, T>,
        output: &'a mut Buffer<T>,
    ) -> SparseArgs<'a, T> {
        let rows = part.first_row..part.first_row + part.rows;
        let beta = terms.addend.map_or(T::ZERO, |(beta, _)| beta);
        let forward = product == Product::Forward;
        SparseArgs {
            rows: part.rows as u32,
            cols: self.cols() as u32,
            offsets: part.offsets.input(),
            indices: part.indices.input(),
            values: part.values.input(),
            input: if product == Product::Transposed {
                slice(input, &rows)
            } else {
                input.input()
            },
            weights: terms.weights.map_or(In::none(), |v| slice(v, &rows)),
            shift: terms.shift.map_or(In::none(), Buffer::input),
            addend: match terms.addend {
                Some((_, z)) if forward => slice(z, &rows),
                _ => In::none(),
            },
            output: if forward {
                slice_mut(output, &rows)
            } else {
                output.output()
            },
            alpha: terms.alpha,
            beta,
        }
    }

    pub(super) fn dense_args<'a>(
        &self,
        part: &'a DensePart<T>,
        product: Product,
        input: &'a Buffer<T>,
        terms: &Terms<'a, T>,
        output: &'a mut Buffer<T>,
    ) -> DenseArgs<'a, T> {
        DenseArgs {
            rows: self.rows() as u32,
            cols: self.cols() as u32,
            chunks: 0,
            ld: part.ld as u64,
            x: part.values.input(),
            input: input.input(),
            weights: terms.weights.map_or(In::none(), Buffer::input),
            shift: terms.shift.map_or(In::none(), Buffer::input),
            addend: match terms.addend {
                Some((_, z)) if product == Product::Forward => z.input(),
                _ => In::none(),
            },
            output: output.output(),
            alpha: terms.alpha,
            beta: terms.addend.map_or(T::ZERO, |(beta, _)| beta),
        }
    }

    fn check(
        &self,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &Buffer<T>,
    ) -> Result<(), OpError> {
        let (m, n) = (self.rows(), self.cols());
        let (name, from, result, to) = match product {
            Product::Fused => ("y", n, "w", n),
            Product::Forward => ("y", n, "p", m),
            Product::Transposed => ("p", m, "w", n),
        };
        self.check_vector(name, from, input)?;
        self.check_vector(result, to, output)?;
        terms
            .weights
            .map_or(Ok(()), |v| self.check_vector("v", m, v))?;
        terms
            .shift
            .map_or(Ok(()), |s| self.check_vector("the shift", 1, s))?;
        terms
            .addend
            .map_or(Ok(()), |(_, z)| self.check_vector("z", to, z))
    }

    pub(super) fn check_vector<U: bytemuck::Pod>(
        &self,
        what: &'static str,
        expected: usize,
        vector: &Buffer<U>,
    ) -> Result<(), OpError> {
        if vector.len() != expected {
            return Err(OpError::Length {
                what,
                expected,
                found: vector.len(),
            });
        }
        if !vector.device().shares_memory_with(self.device()) {
            let (expected, found) = (self.device().to_string(), vector.device().to_string());
            return Err(OpError::OtherDevice {
                what,
                expected,
                found,
            });
        }
        Ok(())
    }
}

/// `w = β·z`, or zero: what the accumulating kernels add to.
pub(super) fn begin<T: Number>(w: &mut Buffer<T>, terms: &Terms<'_, T>) -> Result<(), OpError> {
    match terms.addend {
        Some((beta, z)) => vector::scaled_copy(beta, z, w),
        None => Ok(w.fill_zero()?),
    }
}

pub(super) fn prepare<F: Family>(device: &Device, plan: &Plan) -> Result<Prepared<F>, OpError> {
    let launch = Launch {
        grid: plan.grid,
        block: plan.bs,
        shared_bytes: plan.shared_bytes,
    };
    Ok(device.prepare(entry::<F>(plan), launch)?)
}

fn entry<F: Family>(plan: &Plan) -> &'static Entry<F> {
    let found = F::entries().iter().find(|entry| entry.name == plan.kernel);
    found.expect("the planner chose among the entries of this table")
}

/// Elements `range` of a buffer; the caller has checked that they are there.
pub(super) fn slice<'a, T: Number>(
    buffer: &'a Buffer<T>,
    range: &std::ops::Range<usize>,
) -> In<'a, T> {
    let all = buffer.input();
    assert!(
        range.end as u64 <= all.len(),
        "rows of the matrix are elements of the vector"
    );
    // SAFETY: the range lies inside the buffer. Rows start at a multiple of 32 elements of a buffer that is aligned to
    // 256 bytes; columns, which start anywhere, are read element by element.
    unsafe { In::new(all.pointer().add(range.start), range.len() as u64) }
}

/// [`slice`] for a result.
pub(super) fn slice_mut<'a, T: Number>(
    buffer: &'a mut Buffer<T>,
    range: &std::ops::Range<usize>,
) -> Out<'a, T> {
    let all = buffer.output();
    assert!(
        range.end as u64 <= all.len(),
        "rows of the matrix are elements of the vector"
    );
    // SAFETY: as in `slice`; the buffer is borrowed mutably for as long.
    unsafe { Out::new(all.pointer().add(range.start), range.len() as u64) }
}
