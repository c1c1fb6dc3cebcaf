//! Fixed-point sums over sparse rows: begin, walk the rows, finish.
//!
//! Where a plan has two products, the rows are walked twice, first for `v ⊙ (X·y − s)`; the scale is that of the fused
//! product, so that the sums have its bits.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use gpu_kernels::fused::{FixedArgs, FixedVariant, Product as KernelProduct, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch, Out, Real};

use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::group::Summand;
use crate::device::{Buffer, Device, Prepared};
use crate::ops::blocks::{Part, SparseBlock, no_matrix};
use crate::ops::launch::{first, prepare, slice, slice_mut};
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::{Plan, Product};

/// Threads of a block of the small kernels.
const THREADS: u32 = 512;
/// Blocks for each SM of the kernel that begins a product, at most: every warp of the row walk looks at what each has found.
const BEGINNING_BLOCKS: u32 = 2;
/// The same of the others: all threads that an SM holds, as what an element takes waits for its column's exponent.
const BLOCKS: u32 = 4;
/// Elements that a thread of a small kernel takes at least.
const PER_THREAD: usize = 4;

/// The launches of one product.
pub(in crate::ops) struct FixedKernels<T: Number> {
    begin: Prepared<T::Fixed>,
    /// `X·y`, where `walk` takes what it gives.
    dots: Option<Prepared<T::Sparse>>,
    walk: Prepared<T::Fixed>,
    finish: Prepared<T::Fixed>,
    rows: Arc<SparseRows<T>>,
    equilibrated: Arc<Equilibrated<T>>,
}

impl<T: Number> FixedKernels<T> {
    /// The kernels that a plan names, and the two that belong to them.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        (rows, equilibrated): (&Arc<SparseRows<T>>, &Arc<Equilibrated<T>>),
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let device = &site.device;
        let product = KernelProduct::from(plan.product);
        let longer = site.cols.max(site.all_rows() as usize);
        let dots = plan.then.as_ref();
        let dots = dots.map(|_| prepare::<T::Sparse>(device, plan));
        Ok(FixedKernels {
            begin: small::<T>(device, FixedVariant::Begin(product), longer)?,
            dots: dots.transpose()?,
            walk: prepare::<T::Fixed>(device, plan.then.as_deref().unwrap_or(plan))?,
            finish: small::<T>(device, FixedVariant::Finish, site.cols)?,
            rows: rows.clone(),
            equilibrated: equilibrated.clone(),
        })
    }
}

/// A kernel that runs over `len` elements.
fn small<T: Number>(
    device: &Device,
    variant: FixedVariant,
    len: usize,
) -> Result<Prepared<T::Fixed>, OpError> {
    let entry = entry::<T>(variant);
    let sms = device.limits().map_or(1, |limits| limits.sms);
    let of_sm = match variant {
        FixedVariant::Begin(_) => BEGINNING_BLOCKS,
        _ => BLOCKS,
    };
    let most = (sms * of_sm) as usize;
    let grid = len.div_ceil(THREADS as usize * PER_THREAD).clamp(1, most) as u32;
    let shared_bytes = variant.shared_bytes(0, THREADS, T::SIZE) as u32;
    let launch = Launch {
        grid,
        block: THREADS,
        shared_bytes,
    };
    Ok(device.prepare(entry, launch)?)
}

fn entry<T: Number>(variant: FixedVariant) -> &'static Entry<T::Fixed> {
    let entries = T::Fixed::entries();
    let found = entries.iter().find(|entry| entry.variant == variant);
    found.expect("the table has every step")
}

/// What fixed-point sums need besides X, made when they are first used.
pub(in crate::ops) struct Equilibrated<T: Number>(OnceLock<Result<Made<T>, OpError>>);

struct Made<T: Number> {
    values: Values<T>,
    /// Locked from the first launch of a product to the last.
    work: Mutex<Work<T>>,
}

/// Values with every column scaled to magnitudes below 1.
enum Values<T: Number> {
    /// Those of each block.
    OfBlocks(Vec<Buffer<T>>),
    /// Those of the block at hand, of rows that stream: scaled again in every pass, at many times the rate of the link.
    /// Locked for a pass.
    OfOne(Prepared<T::Fixed>, Mutex<Buffer<T>>),
}

/// What kernels write on the way.
struct Work<T> {
    exponents: Buffer<u32>,
    /// y times the columns' scales; empty as long as no product takes one.
    y: Buffer<T>,
    ranges: Buffer<u32>,
    sums: Buffer<u64>,
}

impl<T: Number> Work<T> {
    fn new(device: &Device, cols: usize) -> Result<Self, OpError> {
        Ok(Work {
            exponents: device.zeros(cols + 1)?,
            y: device.zeros(0)?,
            ranges: device.zeros(2)?,
            sums: device.zeros(cols * T::LIMBS)?,
        })
    }

    /// Room for what a product takes of y.
    fn fit_input(&mut self, site: &Site<T>, product: Product) -> Result<(), OpError> {
        let takes_y = product != Product::Transposed;
        if takes_y && self.y.len() != site.cols {
            self.y = site.device.zeros(site.cols)?;
        }
        Ok(())
    }

    /// Room for the findings of `blocks` blocks, no more: all of it is looked at.
    fn fit_ranges(&mut self, device: &Device, blocks: u32) -> Result<(), OpError> {
        let len = 2 * blocks as usize;
        if self.ranges.len() != len {
            self.ranges = device.zeros(len)?;
        }
        Ok(())
    }
}

impl<T: Number> Default for Equilibrated<T> {
    fn default() -> Self {
        Equilibrated(OnceLock::new())
    }
}

impl<T: Number> Equilibrated<T> {
    fn of(&self, site: &Site<T>, rows: &SparseRows<T>) -> Result<&Made<T>, OpError> {
        let made = self.0.get_or_init(|| Made::new(site, rows));
        made.as_ref().map_err(OpError::clone)
    }
}

impl<T: Number> Made<T> {
    /// Finds the exponents of the columns and scales a copy of the values.
    fn new(site: &Site<T>, rows: &SparseRows<T>) -> Result<Self, OpError> {
        let device = &site.device;
        let mut work = Work::new(device, site.cols)?;
        if let Some(stream) = rows.streamed()? {
            let most = stream.most_entries();
            let find = small::<T>(device, FixedVariant::Columns, most)?;
            rows.each(Part::All, |_, block| {
                Ok(find.launch(preparation(site, &block, &mut work, Out::none()))?)
            })?;
            agree(site, &mut work)?;
            let scale = small::<T>(device, FixedVariant::Equilibrate, most)?;
            return Ok(Made {
                values: Values::OfOne(scale, Mutex::new(device.zeros(most)?)),
                work: Mutex::new(work),
            });
        }
        let mut values = Vec::new();
        rows.each(Part::All, |_, block| {
            let nonzeros = block.entries();
            let find = small::<T>(device, FixedVariant::Columns, nonzeros)?;
            find.launch(preparation(site, &block, &mut work, Out::none()))?;
            values.push(device.zeros(nonzeros)?);
            Ok(())
        })?;
        agree(site, &mut work)?;
        rows.each(Part::All, |number, block| {
            let scaled: &mut Buffer<T> = &mut values[number];
            let scale = small::<T>(device, FixedVariant::Equilibrate, scaled.len())?;
            Ok(scale.launch(preparation(site, &block, &mut work, scaled.output()))?)
        })?;
        Ok(Made {
            values: Values::OfBlocks(values),
            work: Mutex::new(work),
        })
    }

    fn work(&self) -> MutexGuard<'_, Work<T>> {
        locked(&self.work)
    }
}

/// Columns of all members have one exponent.
fn agree<T: Number>(site: &Site<T>, work: &mut Work<T>) -> Result<(), OpError> {
    match &site.together {
        Some(together) => together.greatest(&mut work.exponents),
        None => Ok(()),
    }
}

impl<T: Number> Values<T> {
    /// Room for those of the block at hand, where they are scaled in every pass.
    fn of_one(&self) -> Option<MutexGuard<'_, Buffer<T>>> {
        match self {
            Values::OfBlocks(_) => None,
            Values::OfOne(_, scaled) => Some(locked(scaled)),
        }
    }
}

fn preparation<'a, T: Number>(
    site: &Site<T>,
    block: &SparseBlock<'a, T>,
    work: &'a mut Work<T>,
    scaled: Out<'a, T>,
) -> FixedArgs<'a, T> {
    FixedArgs {
        x: block.arrays(site.cols),
        all_rows: site.all_rows(),
        longest: 1,
        exponents: work.exponents.output(),
        scaled,
        ranges: Out::none(),
        sums: Out::none(),
    }
}

impl<T: Number> OnDevice<T> for FixedKernels<T> {
    fn writes_all(&self) -> bool {
        true
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let made = self.equilibrated.of(site, &self.rows)?;
        let mut work = made.work();
        work.fit_ranges(&site.device, self.begin.shape().grid)?;
        work.fit_input(site, call.product)?;
        let vectors = Vectors {
            product: call.product,
            input: call.input,
            terms: call.terms.of(call.product),
        };
        let output = call.output;
        let all = 0..site.cols;
        let mut begin = vectors.ends(site, &mut work, &mut *output, &all);
        // It looks at the vectors of these rows.
        begin.all_rows = site.rows as u64;
        self.begin.launch(begin)?;
        if let Some(together) = &site.together {
            together.greatest_pair(&mut work.ranges)?;
        }
        let mut of_one = made.values.of_one();
        self.rows.each(call.part, |number, block| {
            let values = match (&made.values, &mut of_one) {
                (Values::OfOne(scale, _), Some(scaled)) => {
                    scale.launch(preparation(site, &block, &mut work, scaled.output()))?;
                    first(scaled, block.entries())
                }
                (Values::OfBlocks(values), _) => values[number].input(),
                (Values::OfOne(..), None) => unreachable!("locked above"),
            };
            let scaled = SparseBlock { values, ..block };
            let walk = vectors.walk(site, &scaled, &mut work, &mut *output);
            match &self.dots {
                Some(dots) => self.walk_twice(dots, site, (&scaled, walk)),
                None => Ok(self.walk.launch(walk)?),
            }
        })?;
        let Some(together) = &site.together else {
            return Ok(self
                .finish
                .launch(vectors.ends(site, &mut work, output, &all))?);
        };
        // The words are added as integers, and beside them what is infinite or no number.
        let sums: &mut [&mut dyn Summand] = &mut [&mut work.sums, &mut *output];
        let wanted = together.wish.of(site.cols);
        let Some(shares) = wanted.or_else(|| together.paying_shares(site)) else {
            together.group.sum_together(sums)?;
            return Ok(self
                .finish
                .launch(vectors.ends(site, &mut work, output, &all))?);
        };
        together.group.sum_shares(sums, &shares)?;
        let own = shares.of(together.group.rank());
        if !own.is_empty() {
            self.finish
                .launch(vectors.ends(site, &mut work, &mut *output, &own))?;
        }
        // Of columns that others have finished.
        work.sums.fill_zero()?;
        match wanted {
            Some(_) => Ok(()),
            None => Ok(together.group.gather_shares(output, &shares)?),
        }
    }
}

impl<T: Number> FixedKernels<T> {
    /// Walks the rows of a block for `p = v ⊙ (X·y − s)`, then for `Xᵀ·p`, with the arguments of one walk for both.
    fn walk_twice(
        &self,
        dots: &Prepared<T::Sparse>,
        site: &Site<T>,
        (block, args): (&SparseBlock<'_, T>, FixedArgs<'_, T>),
    ) -> Result<(), OpError> {
        let rows = block.range();
        site.with_row_vector(|p| {
            dots.launch(SparseArgs {
                output: slice_mut(p, &rows),
                alpha: <T as Real>::ONE,
                beta: T::ZERO,
                ..args.x
            })?;
            let x = SparseArgs {
                input: slice(p, &rows),
                weights: In::none(),
                ..args.x
            };
            Ok(self.walk.launch(FixedArgs { x, ..args })?)
        })
    }
}

/// What a product is computed from.
struct Vectors<'a, T: Number> {
    product: Product,
    input: &'a Buffer<T>,
    terms: Terms<'a, T>,
}

impl<'v, T: Number> Vectors<'v, T> {
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
                shift: terms.shift(),
                addend: terms.addend.map_or(In::none(), |(_, z)| slice(z, own)),
                output: slice_mut(output, own),
                alpha: terms.alpha,
                beta: terms.beta(),
                ..no_matrix()
            },
            all_rows: site.all_rows(),
            longest: site.longest(self.product),
            exponents: slice_mut(&mut work.exponents, &exponents),
            scaled: work.y.output(),
            ranges: work.ranges.output(),
            sums: slice_mut(&mut work.sums, &words),
        }
    }

    /// The arguments of the row walk over one block with scaled values.
    fn walk<'a>(
        &self,
        site: &Site<T>,
        block: &SparseBlock<'a, T>,
        work: &'a mut Work<T>,
        output: &'a mut Buffer<T>,
    ) -> FixedArgs<'a, T>
    where
        'v: 'a,
    {
        let call = Call {
            product: self.product,
            input: self.input,
            terms: self.terms,
            output,
            part: Part::All,
        };
        let x = block.args(site.cols, call);
        let input = match self.product {
            Product::Transposed => x.input,
            Product::Fused | Product::Forward => work.y.input(),
        };
        FixedArgs {
            x: SparseArgs { input, ..x },
            all_rows: site.all_rows(),
            longest: site.longest(self.product),
            exponents: work.exponents.output(),
            scaled: Out::none(),
            ranges: work.ranges.output(),
            sums: work.sums.output(),
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
