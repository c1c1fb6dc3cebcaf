//! The entries over panels: rows as outputs and columns, panels of a few outputs.

use anyhow::{Context, Result};
use gpu_kernels::fused::PanelArgs;
use gpu_kernels::{Entry, In};
use warpfuse::device::{Buffer, Device};
use warpfuse::layout::panels::{PanelLayout, PanelSize};
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, launch};
use warpfuse_tests::sample::{PLAIN, Part, Sample};

use super::fused::Operands;
use super::{Shape, argument, cases, launches, words};

const SIZES: [PanelSize; 3] = [
    PanelSize {
        widest: 7,
        ranges: 4,
        result: 5_000,
    },
    PanelSize {
        widest: 64,
        ranges: 50,
        result: 300,
    },
    PanelSize {
        widest: 4_000,
        ranges: 1,
        result: 300_000,
    },
];

/// Runs one entry on every matrix, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Panels>,
    subset: Subset,
) -> Result<()> {
    for case in cases(subset, &[], &LARGE) {
        let sample = case.sample::<T>();
        let Features::Sparse(x) = &*sample.features else {
            continue;
        };
        for size in SIZES {
            check_size::<T>(device, entry, (&sample, x), size, subset)
                .with_context(|| format!("{case} in {size:?}"))?;
        }
    }
    Ok(())
}

const LARGE: [Shape; 2] = [
    ((65, 300_000), Pattern::PerRow(9)),
    ((3_000, 9), Pattern::OneColumn),
];

fn check_size<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Panels>,
    (sample, x): (&Sample<T>, &CsrMatrix<T>),
    size: PanelSize,
    subset: Subset,
) -> Result<()> {
    let columns = PanelLayout::of_columns(x, size);
    let of_columns = OnDevice::upload(device, &columns)?;
    for parts in [PLAIN, &[Part::Weights]] {
        let operands = Operands::new(device, sample, Product::Transposed, parts)?;
        of_columns.check(entry, &operands, subset)?;
    }
    Ok(())
}

/// The layout, and its arrays; guarded where kernels do not take the length from them.
struct OnDevice<'a, T> {
    device: &'a Device,
    layout: &'a PanelLayout<T>,
    keys: Buffer<u32>,
    values: Buffer<T>,
    bases: Buffer<u32>,
    pieces: Buffer<u32>,
    ranges: Buffer<u32>,
    order: Option<Guarded<u32>>,
}

impl<'a, T: Number> OnDevice<'a, T> {
    fn upload(device: &'a Device, layout: &'a PanelLayout<T>) -> Result<Self> {
        let order = layout.order.as_deref();
        Ok(OnDevice {
            device,
            layout,
            keys: device.upload(&layout.keys)?,
            values: device.upload(&layout.values)?,
            bases: device.upload(&layout.bases)?,
            pieces: device.upload(&layout.pieces)?,
            ranges: device.upload(&layout.ranges)?,
            order: order.map(|order| words(device, order)).transpose()?,
        })
    }

    fn check(
        &self,
        entry: &'static Entry<T::Panels>,
        operands: &Operands<'_, T>,
        subset: Subset,
    ) -> Result<()> {
        let shared = entry.variant.shared_bytes(self.layout.width, T::SIZE);
        for shape in launches(self.device, entry, subset, |_| shared)? {
            operands.check(entry.name, shape, |output| {
                let given = operands.given();
                let args = PanelArgs {
                    outputs: self.layout.outputs as u32,
                    inputs: self.layout.inputs as u32,
                    widest: self.layout.width,
                    keys: self.keys.input(),
                    values: self.values.input(),
                    bases: self.bases.input(),
                    pieces: self.pieces.input(),
                    ranges: self.ranges.input(),
                    order: argument(&self.order),
                    input: given.input,
                    input_weights: given.weights,
                    weights: In::none(),
                    shift: In::none(),
                    output: output.output(),
                    alpha: given.alpha,
                };
                launch(self.device, entry, shape, args)
            })?;
        }
        Ok(())
    }
}
