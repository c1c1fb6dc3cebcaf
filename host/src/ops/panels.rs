//! Panels of a sparse matrix on a GPU: made once, used by every product whose plan names them.

use gpu_kernels::fused::PanelArgs;
use gpu_kernels::fused::panels::widest_panel;
use gpu_kernels::{In, Out, Real};

use super::fused::{Terms, begin, prepare};
use super::layout::{Layout, SparsePart};
use super::{Matrix, Number, OpError};
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::panels::{PanelLayout, PanelSize};
use crate::matrix::{CsrMatrix, csr_from_parts};
use crate::plan::fused::{Plan, Product, Stored};

/// What to store besides the rows of a sparse matrix, before it is multiplied many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preparation {
    /// Whatever the planner expects to pay over so many evaluations of the fused product; nothing, if nothing does.
    For {
        /// Evaluations that are to come.
        evaluations: u64,
    },
    /// Panels of rows and of columns, whether or not they pay: two more copies of X, of 8 bytes (f64: 12) an entry.
    Panels,
}

/// Both copies.
pub(super) struct Panels<T> {
    rows: DevicePanels<T>,
    columns: DevicePanels<T>,
}

/// A [`PanelLayout`] on a device.
struct DevicePanels<T> {
    outputs: usize,
    inputs: usize,
    width: u32,
    keys: Buffer<u32>,
    values: Buffer<T>,
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
    fn upload(device: &Device, layout: &PanelLayout<T>) -> Result<Self, OpError> {
        let order = layout.order.as_ref().map(|order| device.upload(order));
        Ok(DevicePanels {
            outputs: layout.outputs,
            inputs: layout.inputs,
            width: layout.width,
            keys: device.upload(&layout.keys)?,
            values: device.upload(&layout.values)?,
            bases: device.upload(&layout.bases)?,
            pieces: device.upload(&layout.pieces)?,
            ranges: device.upload(&layout.ranges)?,
            order: order.transpose()?,
        })
    }

    /// Arguments without terms.
    fn args<'a>(&'a self, input: &'a Buffer<T>, output: Out<'a, T>) -> PanelArgs<'a, T> {
        PanelArgs {
            outputs: self.outputs as u32,
            inputs: self.inputs as u32,
            widest: self.width,
            keys: self.keys.input(),
            values: self.values.input(),
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
    /// Stores a sparse matrix in a further form that makes products quicker, and plans them anew. The host does the
    /// work; what is stored already stays. Returns in which forms X is stored then: [`Stored::Rows`] also where there
    /// is nothing to prepare, on the CPU and for a dense matrix.
    ///
    /// Results differ from those before by rounding. With [`Summation::Reproducible`](crate::plan::fused::Summation)
    /// panels are not used.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::{Matrix, Preparation};
    ///
    /// let x = Features::Dense(ndarray::array![[1.0, 2.0], [0.0, 3.0]]);
    /// let mut x = Matrix::new(&Device::cpu(), x)?;
    /// let stored = x.prepare(Preparation::For { evaluations: 1_000 })?;
    /// assert_eq!(stored.to_string(), "rows");
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory, [`OpError::Plan`] when no launch fits it.
    pub fn prepare(&mut self, preparation: Preparation) -> Result<Stored, OpError> {
        let Layout::Sparse(parts) = &self.layout else {
            return Ok(Stored::Rows);
        };
        if self.panels.is_none() && self.rows() > 0 && self.cols() > 0 && self.pays(preparation)? {
            let x = download(parts, (self.rows(), self.cols()))?;
            self.panels = Some(self.panels_of(&x)?);
            self.problem = self.problem.with_stored(Stored::RowsAndPanels);
            self.replan(self.options);
        }
        Ok(self.problem.stored)
    }

    fn pays(&self, preparation: Preparation) -> Result<bool, OpError> {
        let Preparation::For { evaluations } = preparation else {
            return Ok(true);
        };
        let weighing = self.planning(|planner| Ok(planner.weigh_panels(&self.problem)?))?;
        Ok(weighing
            .flatten()
            .is_some_and(|weighing| weighing.pays_for(evaluations)))
    }

    fn panels_of(&self, x: &CsrMatrix<T>) -> Result<Panels<T>, OpError> {
        let size = PanelSize {
            widest: widest_panel(T::SIZE) as usize,
            ranges: self.device().limits().map_or(1, |limits| limits.sms) as usize,
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

/// X as the host had it.
fn download<T: Number>(
    parts: &[SparsePart<T>],
    shape: (usize, usize),
) -> Result<CsrMatrix<T>, OpError> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for part in parts {
        let base = indices.len() as u64;
        let own = part.offsets.to_vec()?;
        offsets.extend(own[1..].iter().map(|offset| base + u64::from(*offset)));
        indices.extend(part.indices.to_vec()?);
        values.extend(part.values.to_vec()?);
    }
    Ok(csr_from_parts(shape, offsets, indices, values).expect("it was one when it was uploaded"))
}
