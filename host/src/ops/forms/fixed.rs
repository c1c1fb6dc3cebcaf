//! Fixed-point sums over sparse rows: begin, walk the rows, finish.
//!
//! Where a plan has two products, the rows are walked twice, first for `v ⊙ (X·y − s)`; the scale is that of the fused
//! product, so that the sums have its bits. So it is where p of `Xᵀ·p` is known to be bounded by one ([`Within`]). The most
//! frequent columns may be kept apart ([`Head`]): integers add up to the same wherever they are added.

use std::ops::Range;
use std::sync::{Arc, MutexGuard};

use gpu_kernels::fused::even::Window;
use gpu_kernels::fused::{
    EvenPlace, FixedArgs, FixedVariant, HeadedArgs, Product as KernelProduct, SparseArgs,
};
use gpu_kernels::{In, Out, Real};

use super::equilibrated::{Equilibrated, ValuesPass, Work, small};
use super::even::windows;
use super::head::{Head, HeadPass, without_head};
use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site, Within};
use crate::device::group::Summand;
use crate::device::{Buffer, Device, Prepared};
use crate::layout::frequent::FrequentTable;
use crate::ops::blocks::{Part, SparseBlock, no_matrix};
use crate::ops::launch::{prepare, slice, slice_mut};
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::plan::fused::{Plan, Product};

/// X as fixed-point sums take it.
pub(in crate::ops) struct FixedRows<'f, T: Number> {
    /// Its rows.
    pub rows: &'f Arc<SparseRows<T>>,
    /// Their scaled values.
    pub equilibrated: &'f Arc<Equilibrated<T>>,
    /// Their most frequent columns, for a kernel that keeps them apart.
    pub head: Option<&'f Arc<Head<T>>>,
    /// Those that a sample of the entries says they are.
    pub frequent: Option<&'f FrequentTable>,
}

/// The launches of one product.
pub(in crate::ops) struct FixedKernels<T: Number> {
    begin: Prepared<T::Fixed>,
    /// The beginning of `Xᵀ·p` in the scale of a fused product.
    begin_within: Option<Prepared<T::Fixed>>,
    /// `X·y`, where `walk` takes what it gives.
    dots: Option<Prepared<T::Sparse>>,
    walk: Prepared<T::Fixed>,
    /// Launches of the walk for each block of rows, each of which adds to a window of columns.
    windows: u32,
    finish: Prepared<T::Fixed>,
    rows: Arc<SparseRows<T>>,
    equilibrated: Arc<Equilibrated<T>>,
    /// Of a walk that keeps columns apart.
    head: Option<Arc<Head<T>>>,
    /// Of a walk that tells them as entries come.
    table: Option<Table>,
}

/// Frequent columns on the device.
struct Table {
    keys: Buffer<u32>,
    multiplier: u32,
}

impl Table {
    fn of<T: Number>(device: &Device, frequent: Option<&FrequentTable>) -> Result<Self, OpError> {
        let none = || FrequentTable::empty(size_of::<T>() as u32);
        let table = frequent.cloned().unwrap_or_else(none);
        Ok(Table {
            keys: device.upload(&table.keys)?,
            multiplier: table.multiplier,
        })
    }
}

impl<T: Number> FixedKernels<T> {
    /// The kernels that a plan names, and those that belong to them.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        x: &FixedRows<'_, T>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let device = &site.device;
        let longer = site.cols.max(site.all_rows() as usize);
        let begin = |product| small::<T>(device, FixedVariant::Begin(product), longer);
        let dots = plan.then.as_ref();
        let dots = dots.map(|_| prepare::<T::Sparse>(device, plan));
        let of_walk = plan.then.as_deref().unwrap_or(plan);
        let walk = prepare::<T::Fixed>(device, of_walk)?;
        let is_headed = matches!(walk.entry().variant, FixedVariant::Headed { .. });
        let has_table = matches!(
            walk.entry().variant,
            FixedVariant::Even {
                place: EvenPlace::Frequent,
                ..
            }
        );
        let table = has_table.then(|| Table::of::<T>(device, x.frequent));
        let is_transposed = plan.product == Product::Transposed;
        let within = is_transposed.then(|| begin(KernelProduct::Fused));
        Ok(FixedKernels {
            begin: begin(KernelProduct::from(plan.product))?,
            begin_within: within.transpose()?,
            dots: dots.transpose()?,
            walk,
            windows: of_walk.windows,
            finish: small::<T>(device, FixedVariant::Finish, site.cols)?,
            rows: x.rows.clone(),
            equilibrated: x.equilibrated.clone(),
            head: x.head.filter(|_| is_headed).cloned(),
            table: table.transpose()?,
        })
    }

    /// Finds the scale of a product; its blocks are added by what this returns.
    pub(in crate::ops) fn begin<'k, 'v>(
        &'k self,
        site: &Site<T>,
        vectors: Vectors<'v, T>,
        output: &mut Buffer<T>,
    ) -> Result<FixedPass<'k, 'v, T>, OpError> {
        let made = self.equilibrated.of(site, &self.rows)?;
        let mut work = made.work();
        let begin = match (vectors.scaled_as(), &self.begin_within) {
            (Product::Fused, Some(begin)) => begin,
            _ => &self.begin,
        };
        work.fit_ranges(&site.device, begin.shape().grid)?;
        work.fit_input(site, vectors.product)?;
        let mut args = vectors.ends(site, &mut work, output, &(0..site.cols));
        if let Some(within) = &vectors.within {
            args.x.input = within.input.input();
            args.x.weights = within.weights.map_or(In::none(), Buffer::input);
            args.scaled = Out::none();
        }
        // It looks at the vectors of these rows.
        args.all_rows = site.rows as u64;
        begin.launch(args)?;
        if let Some(together) = &site.together {
            together.greatest_pair(&mut work.ranges)?;
        }
        Ok(FixedPass {
            kernels: self,
            work,
            values: made.pass(),
            head: self.head.as_ref().map(|head| head.pass()),
            vectors,
        })
    }
}

impl<T: Number> OnDevice<T> for FixedKernels<T> {
    fn writes_all(&self) -> bool {
        true
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let vectors = Vectors {
            product: call.product,
            input: call.input,
            terms: call.terms.of(call.product),
            within: call.within,
        };
        let mut pass = self.begin(site, vectors, call.output)?;
        self.rows.each(call.part, |number, block| {
            let input = call.input;
            pass.add(site, (number, &block), (input, &mut *call.output))
        })?;
        pass.finish(site, call.output)
    }
}

/// A product of which block after block is added.
pub(in crate::ops) struct FixedPass<'k, 'v, T: Number> {
    kernels: &'k FixedKernels<T>,
    work: MutexGuard<'k, Work<T>>,
    values: ValuesPass<'k, T>,
    head: Option<HeadPass<'k, T>>,
    vectors: Vectors<'v, T>,
}

impl<T: Number> FixedPass<'_, '_, T> {
    /// Adds block `number`, of a product with `input`: what it began with, or p that has come to be as far as these rows.
    pub(in crate::ops) fn add(
        &mut self,
        site: &Site<T>,
        (number, block): (usize, &SparseBlock<'_, T>),
        (input, output): (&Buffer<T>, &mut Buffer<T>),
    ) -> Result<(), OpError> {
        let kernels = self.kernels;
        let values = self.values.of(site, (number, block), &mut self.work)?;
        let scaled = SparseBlock { values, ..*block };
        let walk = self
            .vectors
            .walk(site, &scaled, (input, &mut self.work), output);
        let head = self.head.as_mut();
        let headed = |walk: FixedArgs<'_, T>| -> Result<(), OpError> {
            let HeadedArgs { x, order } = match head {
                Some(head) => head.args(number, walk.x)?,
                None => without_head(walk.x),
            };
            let (order, multiplier) = match &kernels.table {
                Some(table) => (table.keys.input(), table.multiplier),
                None => (order, 0),
            };
            for window in windows(x.cols, kernels.windows) {
                kernels.walk.launch(FixedArgs {
                    x,
                    order,
                    multiplier,
                    window,
                    ..walk
                })?;
            }
            Ok(())
        };
        match &kernels.dots {
            None => headed(walk),
            Some(dots) => {
                // First for `p = v ⊙ (X·y − s)`, then for `Xᵀ·p`, with the arguments of one walk for both.
                let rows = block.range();
                site.with_row_vector(|p| {
                    dots.launch(SparseArgs {
                        output: slice_mut(p, &rows),
                        alpha: <T as Real>::ONE,
                        beta: T::ZERO,
                        ..walk.x
                    })?;
                    let x = SparseArgs {
                        input: slice(p, &rows),
                        weights: In::none(),
                        ..walk.x
                    };
                    headed(FixedArgs { x, ..walk })
                })
            }
        }
    }

    /// Writes w, when all blocks have been added.
    pub(in crate::ops) fn finish(
        mut self,
        site: &Site<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let (finish, work, all) = (&self.kernels.finish, &mut self.work, 0..site.cols);
        let vectors = &self.vectors;
        let Some(together) = &site.together else {
            return Ok(finish.launch(vectors.ends(site, work, output, &all))?);
        };
        // The words are added as integers, and beside them what is infinite or no number.
        let sums: &mut [&mut dyn Summand] = &mut [&mut work.sums, &mut *output];
        let wanted = together.wish.of(site.cols);
        let Some(shares) = wanted.or_else(|| together.paying_shares(site)) else {
            together.group.sum_together(sums)?;
            return Ok(finish.launch(vectors.ends(site, work, output, &all))?);
        };
        together.group.sum_shares(sums, &shares)?;
        let own = shares.of(together.group.rank());
        if !own.is_empty() {
            finish.launch(vectors.ends(site, work, &mut *output, &own))?;
        }
        // Of columns that others have finished.
        work.sums.fill_zero()?;
        match wanted {
            Some(_) => Ok(()),
            None => Ok(together.group.gather_shares(output, &shares)?),
        }
    }
}

/// What a product is computed from.
#[derive(Clone, Copy)]
pub(in crate::ops) struct Vectors<'a, T: Number> {
    pub product: Product,
    pub input: &'a Buffer<T>,
    pub terms: Terms<'a, T>,
    /// What bounds p, where sums take the scale of that.
    pub within: Option<Within<'a, T>>,
}

impl<'v, T: Number> Vectors<'v, T> {
    /// The product whose scale sums have.
    fn scaled_as(&self) -> Product {
        self.within.map_or(self.product, |within| within.product)
    }

    /// s, as far as the scale goes.
    fn shift(&self) -> In<'v, T> {
        match &self.within {
            Some(within) => within.shift.map_or(In::none(), Buffer::input),
            None => self.terms.shift(),
        }
    }

    /// The arguments of *begin* and *finish*, of these columns.
    fn ends<'a>(
        &self,
        site: &Site<T>,
        work: &'a mut Work<T>,
        output: &'a mut Buffer<T>,
        own: &Range<usize>,
    ) -> FixedArgs<'a, T>
    where
        'v: 'a,
    {
        let terms = self.terms;
        let words = own.start * T::LIMBS..own.end * T::LIMBS;
        // Behind those of the columns is one for all.
        let exponents = own.start..site.cols + 1;
        FixedArgs {
            x: SparseArgs {
                cols: own.len() as u32,
                input: self.input.input(),
                weights: terms.weights(),
                shift: self.shift(),
                addend: terms.addend.map_or(In::none(), |(_, z)| slice(z, own)),
                output: slice_mut(output, own),
                alpha: terms.alpha,
                beta: terms.beta(),
                ..no_matrix()
            },
            all_rows: site.all_rows(),
            longest: site.longest(self.scaled_as()),
            exponents: slice_mut(&mut work.exponents, &exponents),
            scaled: work.y.output(),
            ranges: work.ranges.output(),
            sums: slice_mut(&mut work.sums, &words),
            order: In::none(),
            multiplier: 0,
            window: Window::all(site.cols as u32),
        }
    }

    /// The arguments of the row walk over one block with scaled values.
    fn walk<'a>(
        &self,
        site: &Site<T>,
        block: &SparseBlock<'a, T>,
        (input, work): (&'a Buffer<T>, &'a mut Work<T>),
        output: &'a mut Buffer<T>,
    ) -> FixedArgs<'a, T>
    where
        'v: 'a,
    {
        let call = Call {
            product: self.product,
            input,
            terms: self.terms,
            output,
            part: Part::All,
            within: None,
        };
        let x = block.args(site.cols, call);
        let input = match self.product {
            Product::Transposed => x.input,
            Product::Fused | Product::Forward => work.y.input(),
        };
        FixedArgs {
            x: SparseArgs {
                input,
                shift: self.shift(),
                ..x
            },
            all_rows: site.all_rows(),
            longest: site.longest(self.scaled_as()),
            exponents: work.exponents.output(),
            scaled: Out::none(),
            ranges: work.ranges.output(),
            sums: work.sums.output(),
            order: In::none(),
            multiplier: 0,
            window: Window::all(site.cols as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Emulator, EmulatorOptions};
    use crate::matrix::{CsrMatrix, Features};
    use crate::ops::{Matrix, MatrixOptions};
    use crate::plan::fused::{Forced, Strategy};
    use crate::plan::limits::DeviceLimits;
    use crate::plan::rates::SizeTable;

    /// An emulated GPU on which fixed-point sums are always the fastest.
    fn device() -> Device {
        let mut limits = DeviceLimits::known("h200").expect("it is known");
        limits.rates.shared_add_f32 = 1e-6;
        limits.rates.scatter_f32 = SizeTable::new([(1.0, 1e-6)]);
        // What private copies are read and written at.
        limits.rates.shared_gather = 1e-6;
        Device::Emulator(Emulator::of(limits, EmulatorOptions::default()))
    }

    #[test]
    fn the_second_of_two_products_may_have_fixed_point_sums() {
        let device = device();
        let x = CsrMatrix::new(
            (3, 2),
            vec![0, 2, 3, 4].into(),
            vec![0, 1, 1, 0].into(),
            vec![1.0_f32, 2.0, 3.0, 4.0].into(),
        );
        let forced = Forced {
            strategy: Some(Strategy::SparseTwoProducts),
            ..Forced::default()
        };
        let options = MatrixOptions {
            forced,
            ..MatrixOptions::default()
        };
        let matrix = Matrix::with_options(&device, Features::Sparse(x), options).expect("a matrix");
        let y = device.upload(&[1.0_f32, 1.0]).expect("y");
        let z = device.upload(&[10.0_f32, 20.0]).expect("z");
        let mut w = device.upload(&[f32::NAN; 2]).expect("w");
        let terms = Terms {
            addend: Some((0.5, &z)),
            ..Terms::default()
        };
        matrix.fused(&y, &terms, &mut w).expect("a product");
        assert_eq!(w.to_vec().expect("w"), [24.0, 25.0]);
        let plan = matrix.used_plan(Product::Fused).expect("a plan");
        let second = plan.and_then(|plan| plan.then.as_deref());
        assert!(
            second.is_some_and(|plan| plan.strategy.is_fixed()),
            "{plan:?}"
        );
    }
}
