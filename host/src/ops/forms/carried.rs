//! Products of dense rows that stream, with sums in an order: taken up in each block where the block before left them.
//!
//! The order of sums ([`gpu_kernels::fused::dense_order`]) runs through all rows with a stride. What every thread of the
//! kernel that reads all rows at once has in registers stays in memory here, from block to block: the bits are the same,
//! wherever blocks end.

use std::sync::{Arc, Mutex, MutexGuard};

use gpu_kernels::fused::dense::carried::SCRATCH;
use gpu_kernels::fused::{
    CarriedArgs, CarriedOrder, CarriedVariant, DenseArgs, DenseOrder, Product as KernelProduct,
};
use gpu_kernels::{Entry, Family, Launch, Out};

use super::dense::DenseRows;
use super::ordered::Totals;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::ops::blocks::{DenseBlock, Part};
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::Product;

/// Threads of a kernel that adds on each SM.
const THREADS_PER_SM: u32 = 1_024;
/// Threads of a block of the kernel that folds, and such blocks on each SM.
const FOLD_THREADS: u32 = 256;
const FOLDS_PER_SM: u32 = 8;

/// The launches of one product.
pub(in crate::ops) struct CarriedKernels<T: Number> {
    add: Prepared<T::DenseCarried>,
    fold: Prepared<T::DenseCarried>,
    totals: Totals<T>,
    order: CarriedOrder,
    /// Locked from the first launch of a product to the last.
    sums: Mutex<Sums<T>>,
    rows: Arc<DenseRows<T>>,
}

/// What sums have come to.
pub(in crate::ops) struct Sums<T> {
    of_threads: Buffer<T>,
    of_chunks: Buffer<T>,
}

impl<T: Number> CarriedKernels<T> {
    /// For a product other than [`Product::Forward`]; `None` where no kernel holds a row, and its order has none either.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        rows: &Arc<DenseRows<T>>,
        product: Product,
    ) -> Result<Option<Self>, OpError> {
        let (device, cols) = (&site.device, site.cols as u32);
        let product = KernelProduct::from(product);
        let found = DenseOrder::of(product, site.rows as u64, site.cols as u64, T::SIZE);
        let Some((found, order)) = found.and_then(|found| Some((found, CarriedOrder::of(&found)?)))
        else {
            return Ok(None);
        };
        let state = order.state_len(cols, found.width) as usize;
        let of_chunks = order.chunks as usize * site.cols;
        let (add, fold) = (
            CarriedVariant::Add(found.width),
            CarriedVariant::Fold(found.width),
        );
        Ok(Some(CarriedKernels {
            add: device.prepare(entry::<T>(add), of_add::<T>(device, order.threads))?,
            fold: device.prepare(entry::<T>(fold), of_fold(device))?,
            totals: Totals::prepare(device, site.cols, order.chunks)?,
            order,
            sums: Mutex::new(Sums {
                of_threads: device.zeros(state)?,
                of_chunks: device.zeros(of_chunks)?,
            }),
            rows: rows.clone(),
        }))
    }

    /// Begins a product: its blocks follow in their order.
    pub(in crate::ops) fn begin(&self) -> Carrying<'_, T> {
        Carrying {
            kernels: self,
            sums: locked(&self.sums),
        }
    }
}

/// A product that has been begun.
pub(in crate::ops) struct Carrying<'k, T: Number> {
    kernels: &'k CarriedKernels<T>,
    sums: MutexGuard<'k, Sums<T>>,
}

impl<T: Number> Carrying<'_, T> {
    /// Adds the rows of a block; the output of `call` is not touched.
    pub(in crate::ops) fn add(
        &mut self,
        site: &Site<T>,
        block: &DenseBlock<'_, T>,
        call: Call<'_, '_, T>,
    ) -> Result<(), OpError> {
        let x = DenseArgs {
            output: Out::none(),
            ..block.args(site.cols, call)
        };
        let kernels = self.kernels;
        let args = self.args(site, block);
        Ok(kernels.add.launch(CarriedArgs { x, ..args })?)
    }

    /// Completes w, once all blocks have been added.
    pub(in crate::ops) fn finish(
        mut self,
        site: &Site<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let nothing = DenseBlock::empty();
        let kernels = self.kernels;
        let args = self.args(site, &nothing);
        kernels.fold.launch(args)?;
        kernels.totals.launch(&self.sums.of_chunks, terms, w)
    }

    fn args<'a>(&'a mut self, site: &Site<T>, block: &DenseBlock<'a, T>) -> CarriedArgs<'a, T> {
        let Sums {
            of_threads,
            of_chunks,
        } = &mut *self.sums;
        CarriedArgs {
            x: block.arrays(site.cols),
            order: self.kernels.order,
            first_row: block.first_row as u64,
            is_last: u32::from(block.range().end == site.rows),
            state: of_threads.output(),
            sums: of_chunks.output(),
        }
    }
}

fn entry<T: Number>(variant: CarriedVariant) -> &'static Entry<T::DenseCarried> {
    let entries = T::DenseCarried::entries();
    let found = entries.iter().find(|entry| entry.variant == variant);
    found.expect("the table has all widths of orders")
}

fn of_add<T: Number>(device: &Device, threads: u32) -> Launch {
    let sms = device.limits().map_or(1, |limits| limits.sms);
    Launch {
        grid: sms * (THREADS_PER_SM / threads).max(1),
        block: threads,
        shared_bytes: SCRATCH * T::SIZE,
    }
}

fn of_fold(device: &Device) -> Launch {
    let sms = device.limits().map_or(1, |limits| limits.sms);
    Launch {
        grid: sms * FOLDS_PER_SM,
        block: FOLD_THREADS,
        shared_bytes: 0,
    }
}

impl<T: Number> OnDevice<T> for CarriedKernels<T> {
    fn writes_all(&self) -> bool {
        true
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let mut carrying = self.begin();
        let Call { terms, output, .. } = call;
        self.rows.each(Part::All, |block| {
            let of_block = Call {
                output: &mut *output,
                ..call
            };
            carrying.add(site, &block, of_block)
        })?;
        carrying.finish(site, &terms, output)
    }
}
