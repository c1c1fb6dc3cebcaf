//! Rows whose most frequent columns are kept apart: made where X lies, used by products and by objectives.

use std::sync::Arc;

use gpu_kernels::In;
use gpu_kernels::fused::{HeadedArgs, SparseArgs, UnpackArgs, UnpackVariant};

use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::head::places_of;
use crate::ops::blocks::{Part, Unpacking, no_arrays};
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::plan::fused::Plan;

/// How large the head is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadSize {
    /// As large as the planner expects to pay; none where columns are about equally frequent.
    Planned,
    /// This many columns, whether or not that pays.
    Places(u32),
}

/// The most frequent columns of a sparse X, and its indices with those columns marked.
pub(in crate::ops) struct Head {
    /// The column of each place.
    pub order: Buffer<u32>,
    /// One buffer for each part of X.
    indices: Vec<Buffer<u32>>,
}

impl Head {
    /// These columns of `rows`, of `cols` in all: marks are made on the device, so that indices cross no link.
    pub(in crate::ops) fn of<T: Number>(
        device: &Device,
        rows: &SparseRows<T>,
        (order, cols): (&[u32], usize),
    ) -> Result<Head, OpError> {
        let variant = UnpackVariant::Marked;
        let kernel = Unpacking::<T>::new(device, &[variant])?;
        let places = device.upload(&places_of(order, cols))?;
        let mut indices = Vec::new();
        rows.each(Part::All, |_, block| {
            let mut marked = device.zeros(block.entries())?;
            let args = UnpackArgs {
                packed: block.indices,
                places: places.input(),
                indices: marked.output(),
                ..no_arrays::<T>(block.entries())
            };
            kernel.launch(variant, args)?;
            indices.push(marked);
            Ok(())
        })?;
        Ok(Head {
            order: device.upload(order)?,
            indices,
        })
    }

    /// The arguments over part `number` of X, which are `x` without a head.
    pub(in crate::ops) fn args<'a, T: Copy>(
        &'a self,
        number: usize,
        x: SparseArgs<'a, T>,
    ) -> HeadedArgs<'a, T> {
        HeadedArgs {
            x: SparseArgs {
                indices: self.indices[number].input(),
                ..x
            },
            order: self.order.input(),
        }
    }
}

/// The arguments of kernels that know of heads, without one.
pub(in crate::ops) fn without_head<T>(x: SparseArgs<'_, T>) -> HeadedArgs<'_, T> {
    HeadedArgs {
        x,
        order: In::none(),
    }
}

/// One kernel over the rows and their head, part after part.
pub(in crate::ops) struct HeadKernel<T: Number> {
    kernel: Prepared<T::Headed>,
    rows: Arc<SparseRows<T>>,
    head: Arc<Head>,
}

impl<T: Number> HeadKernel<T> {
    /// The kernel that a plan names.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        (rows, head): (&Arc<SparseRows<T>>, &Arc<Head>),
        plan: &Plan,
    ) -> Result<Self, OpError> {
        Ok(HeadKernel {
            kernel: prepare::<T::Headed>(&site.device, plan)?,
            rows: rows.clone(),
            head: head.clone(),
        })
    }
}

impl<T: Number> OnDevice<T> for HeadKernel<T> {
    fn writes_all(&self) -> bool {
        false
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        self.rows.each(call.part, |number, block| {
            let of_block = Call {
                output: &mut *call.output,
                ..call
            };
            let x = block.args(site.cols, of_block);
            Ok(self.kernel.launch(self.head.args(number, x))?)
        })
    }
}
