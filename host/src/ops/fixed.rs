//! Products with fixed-point sums on a GPU: begin, walk the rows, finish.
//!
//! Where a plan has two products, the rows are walked twice, first for `v ⊙ (X·y − s)`; the scale is that of the fused
//! product, so that the sums have its bits.

use std::sync::Mutex;

use gpu_kernels::fused::{FixedArgs, FixedVariant, Product as KernelProduct, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch, Out, Real};

use super::fused::{Terms, prepare, slice, slice_mut};
use super::layout::{Layout, SparsePart};
use super::{Matrix, Number, OpError};
use crate::device::{Buffer, Device, Prepared};
use crate::plan::fused::{Plan, Product};

/// Threads of a block of the small kernels.
const THREADS: u32 = 512;
/// Blocks of a small kernel for each SM, at most: every warp of the row walk looks at what each has found.
const BLOCKS_PER_SM: u32 = 2;
/// Elements that a thread of a small kernel takes at least.
const PER_THREAD: usize = 4;

/// The launches of one product.
pub(super) struct FixedKernels<T: Number> {
    begin: Prepared<T::Fixed>,
    /// `X·y`, where `walk` takes what it gives.
    dots: Option<Prepared<T::Sparse>>,
    walk: Prepared<T::Fixed>,
    finish: Prepared<T::Fixed>,
}

impl<T: Number> FixedKernels<T> {
    /// The kernels that a plan names, and the two that belong to them.
    pub(super) fn prepare(matrix: &Matrix<T>, plan: &Plan) -> Result<Self, OpError> {
        let device = matrix.device();
        let product = KernelProduct::from(plan.product);
        let longer = matrix.rows().max(matrix.cols());
        let dots = plan.then.as_ref();
        let dots = dots.map(|_| prepare::<T::Sparse>(device, plan));
        Ok(FixedKernels {
            begin: small::<T>(device, FixedVariant::Begin(product), longer)?,
            dots: dots.transpose()?,
            walk: prepare::<T::Fixed>(device, plan.then.as_deref().unwrap_or(plan))?,
            finish: small::<T>(device, FixedVariant::Finish, matrix.cols())?,
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
    let most = (sms * BLOCKS_PER_SM) as usize;
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

/// What fixed-point sums need besides X.
pub(super) struct Equilibrated<T> {
    /// The values of each part, every column scaled to magnitudes below 1.
    values: Vec<Buffer<T>>,
    /// Locked from the first launch of a product to the last.
    work: Mutex<Work<T>>,
}

/// What kernels write on the way.
struct Work<T> {
    exponents: Buffer<u32>,
    y: Buffer<T>,
    ranges: Buffer<u32>,
    sums: Buffer<u64>,
}

impl<T: Number> Work<T> {
    fn new(device: &Device, cols: usize) -> Result<Self, OpError> {
        Ok(Work {
            exponents: device.zeros(cols + 1)?,
            y: device.zeros(cols)?,
            ranges: device.zeros(2)?,
            sums: device.zeros(cols * T::LIMBS)?,
        })
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

impl<T: Number> Matrix<T> {
    fn equilibrated(&self, parts: &[SparsePart<T>]) -> Result<&Equilibrated<T>, OpError> {
        let made = self.equilibrated.get_or_init(|| self.equilibrate(parts));
        made.as_ref().map_err(OpError::clone)
    }

    /// Finds the exponents of the columns and scales a copy of the values.
    fn equilibrate(&self, parts: &[SparsePart<T>]) -> Result<Equilibrated<T>, OpError> {
        let device = self.device();
        let mut work = Work::new(device, self.cols())?;
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            let nonzeros = part.values.len();
            let find = small::<T>(device, FixedVariant::Columns, nonzeros)?;
            find.launch(self.preparation(part, &mut work, Out::none()))?;
            values.push(device.zeros(nonzeros)?);
        }
        for (part, scaled) in parts.iter().zip(&mut values) {
            let scale = small::<T>(device, FixedVariant::Equilibrate, part.values.len())?;
            scale.launch(self.preparation(part, &mut work, scaled.output()))?;
        }
        let work = Mutex::new(work);
        Ok(Equilibrated { values, work })
    }

    fn preparation<'a>(
        &self,
        part: &'a SparsePart<T>,
        work: &'a mut Work<T>,
        scaled: Out<'a, T>,
    ) -> FixedArgs<'a, T> {
        FixedArgs {
            x: SparseArgs {
                rows: part.rows as u32,
                cols: self.cols() as u32,
                offsets: part.offsets.input(),
                indices: part.indices.input(),
                values: part.values.input(),
                ..no_matrix()
            },
            all_rows: self.rows() as u64,
            longest: 1,
            exponents: work.exponents.output(),
            scaled,
            ranges: Out::none(),
            sums: Out::none(),
        }
    }

    /// One product; shapes and devices have been checked, and there are rows and columns.
    pub(super) fn fixed(
        &self,
        kernels: &FixedKernels<T>,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let Layout::Sparse(rows) = &self.layout else {
            unreachable!("fixed-point sums are planned for sparse matrices alone")
        };
        let parts = rows.parts()?;
        let equilibrated = self.equilibrated(parts)?;
        let mut work = equilibrated
            .work
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        work.fit_ranges(self.device(), kernels.begin.shape().grid)?;
        // p has been shifted already.
        let shift = terms.shift.filter(|_| product != Product::Transposed);
        let terms = Terms { shift, ..*terms };
        kernels
            .begin
            .launch(self.ends(product, input, &terms, &mut work, output))?;
        for (part, values) in parts.iter().zip(&equilibrated.values) {
            let walk = self.walk((part, values), product, input, &terms, &mut work, output);
            match &kernels.dots {
                Some(dots) => self.walk_twice((dots, &kernels.walk), part, walk)?,
                None => kernels.walk.launch(walk)?,
            }
        }
        Ok(kernels
            .finish
            .launch(self.ends(product, input, &terms, &mut work, output))?)
    }

    /// Walks the rows of a part for `p = v ⊙ (X·y − s)`, then for `Xᵀ·p`, with the arguments of one walk for both.
    fn walk_twice(
        &self,
        (dots, walk): (&Prepared<T::Sparse>, &Prepared<T::Fixed>),
        part: &SparsePart<T>,
        args: FixedArgs<'_, T>,
    ) -> Result<(), OpError> {
        let rows = part.first_row..part.first_row + part.rows;
        self.with_row_vector(|p| {
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
            Ok(walk.launch(FixedArgs { x, ..args })?)
        })
    }

    fn longest(&self, product: Product) -> u32 {
        match product {
            Product::Transposed => 1,
            _ => self.problem().longest_row.unwrap_or(self.problem().cols) as u32,
        }
    }

    /// The arguments of *begin* and *finish*.
    fn ends<'a>(
        &self,
        product: Product,
        input: &'a Buffer<T>,
        terms: &Terms<'a, T>,
        work: &'a mut Work<T>,
        output: &'a mut Buffer<T>,
    ) -> FixedArgs<'a, T> {
        let (beta, addend) = match terms.addend {
            Some((beta, z)) => (beta, z.input()),
            None => (T::ZERO, In::none()),
        };
        FixedArgs {
            x: SparseArgs {
                cols: self.cols() as u32,
                input: input.input(),
                weights: terms.weights.map_or(In::none(), Buffer::input),
                shift: terms.shift.map_or(In::none(), Buffer::input),
                addend,
                output: output.output(),
                alpha: terms.alpha,
                beta,
                ..no_matrix()
            },
            all_rows: self.rows() as u64,
            longest: self.longest(product),
            exponents: work.exponents.output(),
            scaled: work.y.output(),
            ranges: work.ranges.output(),
            sums: work.sums.output(),
        }
    }

    /// The arguments of the row walk over one part.
    fn walk<'a>(
        &self,
        (part, values): (&'a SparsePart<T>, &'a Buffer<T>),
        product: Product,
        input: &'a Buffer<T>,
        terms: &Terms<'a, T>,
        work: &'a mut Work<T>,
        output: &'a mut Buffer<T>,
    ) -> FixedArgs<'a, T> {
        let x = self.sparse_args(part, product, input, terms, output);
        let input = match product {
            Product::Transposed => x.input,
            _ => work.y.input(),
        };
        FixedArgs {
            x: SparseArgs {
                values: values.input(),
                input,
                ..x
            },
            all_rows: self.rows() as u64,
            longest: self.longest(product),
            exponents: work.exponents.output(),
            scaled: Out::none(),
            ranges: work.ranges.output(),
            sums: work.sums.output(),
        }
    }
}

/// Arguments without anything.
fn no_matrix<'a, T: Number>() -> SparseArgs<'a, T> {
    SparseArgs {
        rows: 0,
        cols: 0,
        offsets: In::none(),
        indices: In::none(),
        values: In::none(),
        input: In::none(),
        weights: In::none(),
        shift: In::none(),
        addend: In::none(),
        output: Out::none(),
        alpha: <T as Real>::ONE,
        beta: T::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Emulator, EmulatorOptions};
    use crate::matrix::{CsrMatrix, Features};
    use crate::ops::MatrixOptions;
    use crate::plan::fused::{Forced, Strategy};
    use crate::plan::limits::DeviceLimits;
    use crate::plan::rates::SizeTable;

    /// An emulated GPU on which fixed-point sums are always the quickest.
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
