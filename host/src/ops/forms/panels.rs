//! Panels of a sparse X: made once, used by every product whose plan names them.

mod by_columns;
mod making;
mod split;

use std::ops::Range;
use std::sync::Arc;

use gpu_kernels::fused::panels::widest_panel;
use gpu_kernels::fused::{PanelArgs, PanelVariant, UnpackArgs, UnpackVariant};
use gpu_kernels::{Family, In, Launch, Out, Real};

use super::rows::SparsePart;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::columns::columns_of;
use crate::layout::panels::{ByFrequency, PanelLayout, PanelSize};
use crate::matrix::CsrMatrix;
use crate::ops::blocks::{Unpacking, no_arrays};
use crate::ops::catalog::{max_block, registers_on};
use crate::ops::launch::{in_turns, optional, prepare, slice_mut};
use crate::ops::terms::begin;
use crate::ops::{Number, OpError};
use crate::parallel;
use crate::plan::fused::{Plan, Product};
use crate::plan::scaling::TURNS;

pub(in crate::ops) use by_columns::ByColumns;
pub(in crate::ops) use making::Ranked;
pub use making::Step;

/// Both copies.
pub(in crate::ops) struct Panels<T> {
    rows: DevicePanels<T>,
    /// In slices.
    columns: Vec<(Range<usize>, DevicePanels<T>)>,
}

/// A [`PanelLayout`] on a device.
pub(in crate::ops) struct DevicePanels<T> {
    outputs: usize,
    inputs: usize,
    /// Outputs of the widest panel.
    pub(in crate::ops) width: u32,
    keys: Buffer<u32>,
    /// None where all are 1.
    values: Option<Buffer<T>>,
    bases: Buffer<u32>,
    pieces: Buffer<u32>,
    ranges: Buffer<u32>,
    order: Option<Buffer<u32>>,
}

/// What is launched for a product over panels.
pub(in crate::ops) struct PanelKernel<T: Number> {
    kernel: Prepared<T::Panels>,
    /// The same beside a sum.
    beside: Option<Prepared<T::Panels>>,
    panels: Arc<Panels<T>>,
}

impl<T: Number> PanelKernel<T> {
    /// The kernel that a plan names.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        panels: &Arc<Panels<T>>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let kernel = prepare::<T::Panels>(&site.device, plan)?;
        let beside = site
            .slices
            .as_ref()
            .map(|_| in_turns(&site.device, &kernel));
        Ok(PanelKernel {
            kernel,
            beside: beside.transpose()?,
            panels: panels.clone(),
        })
    }
}

impl<T: Number> DevicePanels<T> {
    pub(in crate::ops) fn upload(
        device: &Device,
        layout: &PanelLayout<T>,
    ) -> Result<Self, OpError> {
        let order = layout.order.as_ref().map(|order| device.upload(order));
        Ok(DevicePanels {
            outputs: layout.outputs,
            inputs: layout.inputs,
            width: layout.width,
            keys: device.upload(&layout.keys)?,
            values: match layout.values.is_empty() {
                true => None,
                false => Some(device.upload(&layout.values)?),
            },
            bases: device.upload(&layout.bases)?,
            pieces: device.upload(&layout.pieces)?,
            ranges: device.upload(&layout.ranges)?,
            order: order.transpose()?,
        })
    }

    /// A copy on the host.
    pub(in crate::ops) fn fetch(&self) -> Result<PanelLayout<T>, OpError> {
        let values = self.values.as_ref().map(Buffer::to_vec).transpose()?;
        let order = self.order.as_ref().map(Buffer::to_vec);
        Ok(PanelLayout {
            outputs: self.outputs,
            inputs: self.inputs,
            width: self.width,
            keys: self.keys.to_vec()?,
            values: values.unwrap_or_default(),
            bases: self.bases.to_vec()?,
            pieces: self.pieces.to_vec()?,
            ranges: self.ranges.to_vec()?,
            order: order.transpose()?,
        })
    }

    /// The kernel with a block of at most `bs` threads for each range.
    pub(in crate::ops) fn prepare(
        &self,
        device: &Device,
        bs: u32,
    ) -> Result<Prepared<T::Panels>, OpError> {
        let entry = &T::Panels::entries()[0];
        let launch = Launch {
            grid: self.ranges.len() as u32 - 1,
            block: bs.min(max_block(registers_on(device, entry.name))),
            shared_bytes: PanelVariant.shared_bytes(self.width, T::SIZE) as u32,
        };
        Ok(device.prepare(entry, launch)?)
    }

    /// Arguments without terms.
    pub(in crate::ops) fn args<'a>(
        &'a self,
        input: &'a Buffer<T>,
        output: Out<'a, T>,
    ) -> PanelArgs<'a, T> {
        PanelArgs {
            outputs: self.outputs as u32,
            inputs: self.inputs as u32,
            widest: self.width,
            keys: self.keys.input(),
            values: optional(&self.values),
            bases: self.bases.input(),
            pieces: self.pieces.input(),
            ranges: self.ranges.input(),
            order: optional(&self.order),
            input: input.input(),
            input_weights: In::none(),
            weights: In::none(),
            shift: In::none(),
            output,
            alpha: <T as Real>::ONE,
        }
    }
}

impl<T: Number> Panels<T> {
    /// Both copies of `x`, made by the host.
    pub(in crate::ops) fn of(site: &Site<T>, x: &CsrMatrix<T>) -> Result<Self, OpError> {
        let device = &site.device;
        let (size, slices) = (size_on::<T>(device, x.cols()), site.slices());
        if let [all] = &slices[..] {
            let rows = DevicePanels::upload(device, &PanelLayout::of_rows(x, size))?;
            let columns = PanelLayout::of_columns(x, size);
            let columns = vec![(all.clone(), DevicePanels::upload(device, &columns)?)];
            return Ok(Panels { rows, columns });
        }
        let rows = DevicePanels::upload(device, &PanelLayout::of_rows(x, size))?;
        let columns = slices.into_iter().enumerate().map(|(number, columns)| {
            let turns = if number > 0 { TURNS as usize } else { 1 };
            let ranges = size.ranges * turns;
            let part = columns_of(x, columns.clone());
            let layout = PanelLayout::of_columns(&part, PanelSize { ranges, ..size });
            Ok((columns, DevicePanels::upload(device, &layout)?))
        });
        let columns = columns.collect::<Result<_, OpError>>()?;
        Ok(Panels { rows, columns })
    }

    /// The same of rows that lie on the device, made there; `None` where columns are to be in slices.
    pub(in crate::ops) fn of_rows(
        site: &Site<T>,
        x: &SparsePart<T>,
    ) -> Result<Option<Self>, OpError> {
        let (device, slices) = (&site.device, site.slices());
        let [all] = &slices[..] else {
            return Ok(None);
        };
        let size = size_on::<T>(device, site.cols);
        let (rows, columns) = of_part(device, (x, site.cols), size)?;
        let columns = vec![(all.clone(), columns)];
        Ok(Some(Panels { rows, columns }))
    }
}

/// Panels of rows and of columns.
type OfBoth<T> = (DevicePanels<T>, DevicePanels<T>);

/// Panels of this many columns for a device.
fn size_on<T: Number>(device: &Device, cols: usize) -> PanelSize {
    PanelSize {
        widest: widest_panel(T::SIZE) as usize,
        ranges: device.limits().map_or(1, |limits| limits.sms) as usize,
        result: cols,
    }
}

/// Panels of X, of this many columns, which lies on the device.
fn of_part<T: Number>(
    device: &Device,
    (part, cols): (&SparsePart<T>, usize),
    size: PanelSize,
) -> Result<OfBoth<T>, OpError> {
    let block = part.block();
    let entries = Ranked::of(&block);
    let rows = DevicePanels::of_rows(device, (&entries, cols), (size, |_| Ok(())))?;
    let columns = ByFrequency::of_counts(&counts_of(device, (block.indices, cols))?);
    let ranks = columns.ranks().map(|ranks| device.upload(&ranks));
    let ranks = ranks.transpose()?;
    let entries = Ranked {
        rank_of: optional(&ranks),
        ..entries
    };
    let of_ranks = (&columns.counts[..], device.upload(&columns.order)?);
    let columns = DevicePanels::of_ranked(device, &entries, of_ranks, size)?;
    Ok((rows, columns))
}

/// How often each of this many columns is among these indices, counted on the device.
fn counts_of(device: &Device, (indices, cols): (In<'_, u32>, usize)) -> Result<Vec<u32>, OpError> {
    // Behind them, how many values are not 1: none is looked at.
    let mut sums = device.zeros(cols + 1)?;
    if !indices.is_empty() {
        let kernel = Unpacking::<f32>::new(device, &[UnpackVariant::Counted])?;
        let args = UnpackArgs {
            packed: indices,
            sums: sums.output(),
            ..no_arrays(indices.len() as usize)
        };
        kernel.launch(UnpackVariant::Counted, args)?;
    }
    let sums: Vec<f64> = sums.to_vec()?;
    Ok(parallel::convert(&sums[..cols], |count| *count as u32))
}

impl<T: Number> OnDevice<T> for PanelKernel<T> {
    /// `X·y` begins its own result.
    fn writes_all(&self) -> bool {
        false
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let terms = call.terms;
        match call.product {
            Product::Fused => site.in_two_products(call, |half| self.run(site, half)),
            Product::Transposed => {
                let slices = &self.panels.columns;
                site.in_slices(call.output, slices.len(), |number, w| {
                    let (columns, panels) = &slices[number];
                    let args = panels.args(call.input, slice_mut(w, columns));
                    let beside = self.beside.as_ref().filter(|_| number > 0);
                    Ok(beside.unwrap_or(&self.kernel).launch(PanelArgs {
                        input_weights: terms.weights(),
                        alpha: terms.alpha,
                        ..args
                    })?)
                })
            }
            Product::Forward => {
                begin(call.output, &terms)?;
                let args = self.panels.rows.args(call.input, call.output.output());
                Ok(self.kernel.launch(PanelArgs {
                    weights: terms.weights(),
                    shift: terms.shift(),
                    alpha: terms.alpha,
                    ..args
                })?)
            }
        }
    }
}
