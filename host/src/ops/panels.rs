//! Panels of a sparse matrix on a GPU: made once, used by every product whose plan names them.

use gpu_kernels::fused::PanelArgs;
use gpu_kernels::fused::panels::widest_panel;
use gpu_kernels::{In, Out, Real};

use super::fused::{Terms, begin, prepare};
use super::{Matrix, Number, OpError};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::panels::{PanelLayout, PanelSize};
use crate::matrix::CsrMatrix;
use crate::plan::fused::{Plan, Product};

/// Both copies.
pub(super) struct Panels<T> {
    rows: DevicePanels<T>,
    columns: DevicePanels<T>,
}

/// A [`PanelLayout`] on a device.
pub(super) struct DevicePanels<T> {
    outputs: usize,
    inputs: usize,
    width: u32,
    keys: Buffer<u32>,
    /// None where all are 1.
    values: Option<Buffer<T>>,
    bases: Buffer<u32>,
    pieces: Buffer<u32>,
    ranges: Buffer<u32>,
    order: Option<Buffer<u32>>,
}

/// What is launched for a product over panels.
pub(super) struct PanelKernels<T: Number>(Prepared<T::Panels>);

impl<T: Number> PanelKernels<T> {
    pub(super) fn new(matrix: &Matrix<T>, plan: &Plan) -> Result<Self, OpError> {
        Ok(PanelKernels(prepare::<T::Panels>(matrix.device(), plan)?))
    }
}

impl<T: Number> DevicePanels<T> {
    pub(super) fn upload(device: &Device, layout: &PanelLayout<T>) -> Result<Self, OpError> {
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

    /// Arguments without terms.
    pub(super) fn args<'a>(&'a self, input: &'a Buffer<T>, output: Out<'a, T>) -> PanelArgs<'a, T> {
        PanelArgs {
            outputs: self.outputs as u32,
            inputs: self.inputs as u32,
            widest: self.width,
            keys: self.keys.input(),
            values: self.values.as_ref().map_or(In::none(), Buffer::input),
            bases: self.bases.input(),
            pieces: self.pieces.input(),
            ranges: self.ranges.input(),
            order: self.order.as_ref().map_or(In::none(), Buffer::input),
            input: input.input(),
            input_weights: In::none(),
            weights: In::none(),
            shift: In::none(),
            output,
            alpha: <T as Real>::ONE,
        }
    }
}

impl<T: Number> Matrix<T> {
    /// Both copies of `x`.
    pub(super) fn panels_of(&self, x: &CsrMatrix<T>) -> Result<Panels<T>, OpError> {
        let size = PanelSize {
            widest: widest_panel(T::SIZE) as usize,
            ranges: self.device().limits().map_or(1, |limits| limits.sms) as usize,
            result: x.cols(),
        };
        let rows = DevicePanels::upload(self.device(), &PanelLayout::of_rows(x, size))?;
        let columns = DevicePanels::upload(self.device(), &PanelLayout::of_columns(x, size))?;
        Ok(Panels { rows, columns })
    }

    /// One product; an accumulating one adds to `output`.
    pub(super) fn over_panels(
        &self,
        kernels: &PanelKernels<T>,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let panels = self.panels.as_ref().expect("planned after they were made");
        let (alpha, kernel) = (terms.alpha, &kernels.0);
        match product {
            Product::Transposed => Ok(kernel.launch(PanelArgs {
                input_weights: terms.weights.map_or(In::none(), Buffer::input),
                alpha,
                ..panels.columns.args(input, output.output())
            })?),
            Product::Forward => {
                begin(output, terms)?;
                let args = panels.rows.args(input, output.output());
                Ok(kernel.launch(PanelArgs {
                    alpha,
                    ..weighed(args, terms)
                })?)
            }
            Product::Fused => self.with_row_vector(|p| {
                p.fill_zero()?;
                kernel.launch(weighed(panels.rows.args(input, p.output()), terms))?;
                Ok(kernel.launch(PanelArgs {
                    alpha,
                    ..panels.columns.args(p, output.output())
                })?)
            }),
        }
    }
}

/// With v and s, for rows as outputs.
fn weighed<'a, T: Number>(args: PanelArgs<'a, T>, terms: &Terms<'a, T>) -> PanelArgs<'a, T> {
    PanelArgs {
        weights: terms.weights.map_or(In::none(), Buffer::input),
        shift: terms.shift.map_or(In::none(), Buffer::input),
        ..args
    }
}
