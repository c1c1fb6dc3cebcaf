//! What fixed-point sums over sparse rows need besides X: exponents of columns, and values scaled by them.

use std::sync::{Mutex, MutexGuard, OnceLock};

use gpu_kernels::fused::even::Window;
use gpu_kernels::fused::fixed_point::column_exponent;
use gpu_kernels::fused::{FixedArgs, FixedVariant};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::rows::SparseRows;
use super::site::Site;
use crate::device::{Buffer, Device, Prepared};
use crate::ops::blocks::{Part, SparseBlock, SparseStream};
use crate::ops::launch::first;
use crate::ops::{Number, OpError, vector};
use crate::parallel::locked;
use crate::plan::fused::Product;

/// Threads of a block of the small kernels.
const THREADS: u32 = 512;
/// Blocks for each SM of the kernel that begins a product, at most: every warp of the row walk looks at what each has found.
const BEGINNING_BLOCKS: u32 = 2;
/// The same of the others: all threads that an SM holds, as what an element takes waits for its column's exponent.
const BLOCKS: u32 = 4;
/// Elements that a thread of a small kernel takes at least.
const PER_THREAD: usize = 4;

/// A kernel that runs over `len` elements.
pub(super) fn small<T: Number>(
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

pub(super) struct Made<T: Number> {
    values: Values<T>,
    /// Locked from the first launch of a product to the last.
    work: Mutex<Work<T>>,
}

/// Values with every column scaled to magnitudes below 1.
enum Values<T: Number> {
    /// Those of each block.
    OfBlocks(Vec<Buffer<T>>),
    /// Those of any block, of rows that stream and whose values are all the same: so are the scaled ones.
    Same(Buffer<T>),
    /// Those of the block at hand, of rows that stream: scaled again in every pass. An entry waits for its column's exponent,
    /// so that it takes three times as long as its bytes (50,000 columns, H100). Locked for a pass.
    OfOne(Prepared<T::Fixed>, Mutex<Buffer<T>>),
}

/// What kernels write on the way.
pub(super) struct Work<T> {
    pub(super) exponents: Buffer<u32>,
    /// y times the columns' scales; empty as long as no product takes one.
    pub(super) y: Buffer<T>,
    pub(super) ranges: Buffer<u32>,
    pub(super) sums: Buffer<u64>,
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
    pub(super) fn fit_input(&mut self, site: &Site<T>, product: Product) -> Result<(), OpError> {
        let takes_y = product != Product::Transposed;
        if takes_y && self.y.len() != site.cols {
            self.y = site.device.zeros(site.cols)?;
        }
        Ok(())
    }

    /// Room for the findings of `blocks` blocks, no more: all of it is looked at.
    pub(super) fn fit_ranges(&mut self, device: &Device, blocks: u32) -> Result<(), OpError> {
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
    pub(super) fn of(&self, site: &Site<T>, rows: &SparseRows<T>) -> Result<&Made<T>, OpError> {
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
            return Ok(Made {
                values: Values::of_streamed(site, stream)?,
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

    pub(super) fn work(&self) -> MutexGuard<'_, Work<T>> {
        locked(&self.work)
    }

    /// The values for one pass over X.
    pub(super) fn pass(&self) -> ValuesPass<'_, T> {
        match &self.values {
            Values::OfBlocks(values) => ValuesPass::OfBlocks(values),
            Values::Same(values) => ValuesPass::Same(values),
            Values::OfOne(scale, scaled) => ValuesPass::OfOne(scale, locked(scaled)),
        }
    }
}

/// Scaled values as a pass over X uses them, block after block.
pub(super) enum ValuesPass<'m, T: Number> {
    OfBlocks(&'m [Buffer<T>]),
    Same(&'m Buffer<T>),
    OfOne(&'m Prepared<T::Fixed>, MutexGuard<'m, Buffer<T>>),
}

impl<T: Number> ValuesPass<'_, T> {
    /// Those of block `number`, which is `block`.
    pub(super) fn of<'a>(
        &'a mut self,
        site: &Site<T>,
        (number, block): (usize, &SparseBlock<'_, T>),
        work: &mut Work<T>,
    ) -> Result<In<'a, T>, OpError> {
        match self {
            ValuesPass::OfBlocks(values) => Ok(values[number].input()),
            ValuesPass::Same(values) => Ok(first(values, block.entries())),
            ValuesPass::OfOne(scale, scaled) => {
                scale.launch(preparation(site, block, work, scaled.output()))?;
                Ok(first(scaled, block.entries()))
            }
        }
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
    fn of_streamed(site: &Site<T>, stream: &SparseStream<T>) -> Result<Self, OpError> {
        let (device, most) = (&site.device, stream.most_entries());
        // Members may have other values in the same columns.
        let equal = stream.equal_value().filter(|_| site.together.is_none());
        let mut scaled = device.zeros(most)?;
        if let Some(value) = equal.and_then(scaled_alone) {
            vector::fill(value, &mut scaled)?;
            return Ok(Values::Same(scaled));
        }
        let scale = small::<T>(device, FixedVariant::Equilibrate, most)?;
        Ok(Values::OfOne(scale, Mutex::new(scaled)))
    }
}

/// A value scaled like a column that has no other; `None` for one that is infinite or no number, which has no exponent.
fn scaled_alone<T: Number>(value: T) -> Option<T> {
    let field = value.exponent_field();
    (field != T::NON_FINITE).then(|| value.scaled(-column_exponent::<T>(field)))
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
        order: In::none(),
        multiplier: 0,
        window: Window::all(site.cols as u32),
    }
}
