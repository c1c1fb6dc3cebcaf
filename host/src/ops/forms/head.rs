//! Rows whose most frequent columns are kept apart: made where X lies, used by products and by objectives.

use std::sync::{Arc, Mutex, MutexGuard};

use gpu_kernels::In;
use gpu_kernels::fused::{HeadedArgs, SparseArgs, UnpackArgs, UnpackVariant};

use super::rows::SparseRows;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::head::HeadColumns;
use crate::ops::blocks::{Part, Unpacking, no_arrays};
use crate::ops::launch::{first, prepare};
use crate::ops::{Number, OpError};
use crate::parallel::locked;
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
pub(in crate::ops) struct Head<T: Number> {
    /// The column of each place.
    pub order: Buffer<u32>,
    marks: Marks<T>,
}

/// Indices with marks.
enum Marks<T: Number> {
    /// One buffer for each part of X, all of which lies on the device.
    Kept(Vec<Buffer<u32>>),
    /// Made of each block that stays or streams when a pass has come to it: the link carries X as it is, and marks take the
    /// memory of one block.
    OfBlock {
        marking: Box<Marking<T>>,
        /// As long as the largest block. Locked for a pass.
        marked: Mutex<Buffer<u32>>,
    },
}

/// What makes marks: on the device, so that indices cross no link for it.
struct Marking<T: Number> {
    kernel: Unpacking<T>,
    /// [`HeadColumns`].
    members: Buffer<u32>,
    places: Buffer<u32>,
}

impl<T: Number> Marking<T> {
    fn new(device: &Device, (order, cols): (&[u32], usize)) -> Result<Self, OpError> {
        let columns = HeadColumns::of(order, cols);
        Ok(Marking {
            kernel: Unpacking::new(device, &[UnpackVariant::Marked])?,
            members: device.upload(&columns.members)?,
            places: device.upload(&columns.places)?,
        })
    }

    fn mark(&self, indices: In<'_, u32>, marked: &mut Buffer<u32>) -> Result<(), OpError> {
        let args = UnpackArgs {
            packed: indices,
            members: self.members.input(),
            places: self.places.input(),
            indices: marked.output(),
            ..no_arrays::<T>(indices.len() as usize)
        };
        self.kernel.launch(UnpackVariant::Marked, args)
    }
}

impl<T: Number> Head<T> {
    /// These columns of `rows`, of `cols` in all.
    pub(in crate::ops) fn of(
        device: &Device,
        rows: &SparseRows<T>,
        (order, cols): (&[u32], usize),
    ) -> Result<Self, OpError> {
        let marking = Marking::new(device, (order, cols))?;
        let marks = match rows.streamed()? {
            Some(stream) => Marks::OfBlock {
                marking: Box::new(marking),
                marked: Mutex::new(device.zeros(stream.most_entries())?),
            },
            None => Marks::Kept(marks_of(device, rows, &marking)?),
        };
        Ok(Head {
            order: device.upload(order)?,
            marks,
        })
    }

    /// For one pass over X.
    pub(in crate::ops) fn pass(&self) -> HeadPass<'_, T> {
        let marks = match &self.marks {
            Marks::Kept(indices) => PassMarks::Kept(indices),
            Marks::OfBlock { marking, marked } => PassMarks::OfBlock(marking, locked(marked)),
        };
        HeadPass {
            order: &self.order,
            marks,
        }
    }
}

fn marks_of<T: Number>(
    device: &Device,
    rows: &SparseRows<T>,
    marking: &Marking<T>,
) -> Result<Vec<Buffer<u32>>, OpError> {
    let mut all = Vec::new();
    rows.each(Part::All, |_, block| {
        let mut marked = device.zeros(block.entries())?;
        marking.mark(block.indices, &mut marked)?;
        all.push(marked);
        Ok(())
    })?;
    Ok(all)
}

/// A head as a pass over X uses it, part after part.
pub(in crate::ops) struct HeadPass<'h, T: Number> {
    order: &'h Buffer<u32>,
    marks: PassMarks<'h, T>,
}

enum PassMarks<'h, T: Number> {
    Kept(&'h [Buffer<u32>]),
    OfBlock(&'h Marking<T>, MutexGuard<'h, Buffer<u32>>),
}

impl<T: Number> HeadPass<'_, T> {
    /// The arguments over part `number` of X, which are `x` without a head.
    pub(in crate::ops) fn args<'a>(
        &'a mut self,
        number: usize,
        x: SparseArgs<'a, T>,
    ) -> Result<HeadedArgs<'a, T>, OpError> {
        let indices = match &mut self.marks {
            PassMarks::Kept(indices) => indices[number].input(),
            PassMarks::OfBlock(marking, marked) => {
                marking.mark(x.indices, marked)?;
                first(marked, x.indices.len() as usize)
            }
        };
        Ok(HeadedArgs {
            x: SparseArgs { indices, ..x },
            order: self.order.input(),
        })
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
    head: Arc<Head<T>>,
}

impl<T: Number> HeadKernel<T> {
    /// The kernel that a plan names.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        (rows, head): (&Arc<SparseRows<T>>, &Arc<Head<T>>),
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
        let mut head = self.head.pass();
        self.rows.each(call.part, |number, block| {
            let of_block = Call {
                output: &mut *call.output,
                ..call
            };
            let x = block.args(site.cols, of_block);
            Ok(self.kernel.launch(head.args(number, x)?)?)
        })
    }
}
