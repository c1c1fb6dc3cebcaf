//! Layers as dense matrix products, on GPUs and emulators.

use std::sync::Mutex;

use gpu_kernels::sparse_conv::{Geometry, SparseConvArgs, SparseConvVariant, Strides};
use gpu_kernels::{In, Launch};

use super::element::{ConvElement, ConvSum};
use super::error::SparseConvError;
use super::launch::{each, no_args, prepare};
use super::layer::Layer;
use super::maps::Maps;
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::filters::SparseFilters;
use crate::ops::OpError;
use crate::parallel::locked;
use crate::plan::sparse_conv::{ConvPlan, ConvShape};

/// Elements of the right factor at most, unless one image has more: images are taken in rounds.
const FACTOR: usize = 1 << 26;

/// A layer of one group with dense filters.
pub(super) struct Lowered<E: ConvElement> {
    plan: ConvPlan,
    shape: ConvShape,
    weights: Buffer<E::Sum>,
    bias: Option<Buffer<E::Sum>>,
    whole: Geometry,
    columns: Prepared<E::Kernels>,
    finish: Prepared<E::Kernels>,
    /// Images of a round.
    images: usize,
    between: Mutex<Between<E>>,
}

/// What lies between launches.
struct Between<E: ConvElement> {
    factor: Buffer<E::Sum>,
    sums: Buffer<E::Sum>,
    workspace: <E::Sum as ConvSum>::Workspace,
}

impl<E: ConvElement> Lowered<E> {
    pub fn new(
        device: &Device,
        plan: ConvPlan,
        shape: &ConvShape,
        filters: &SparseFilters<E::Value>,
        layer: Layer<'_, E::Sum>,
    ) -> Result<Lowered<E>, SparseConvError> {
        let dense = filters.to_dense();
        let weights: Vec<E::Sum> = dense.iter().map(|w| E::sum_of(E::wide(*w))).collect();
        let (taps, [rows, cols]) = (weights.len() / shape.filters, shape.out());
        let images = (FACTOR / (taps * rows * cols).max(1)).clamp(1, shape.batch.max(1));
        let results = shape.results() / shape.batch.max(1) * images;
        let launch = |items: usize| -> Launch { each(items as u64) };
        let factor = taps * rows * cols * images;
        Ok(Lowered {
            columns: prepare::<E>(device, SparseConvVariant::Columns, launch(factor))?,
            finish: prepare::<E>(device, SparseConvVariant::Finish, launch(results))?,
            between: Mutex::new(Between {
                factor: device.zeros(factor)?,
                sums: device.zeros(shape.filters * rows * cols * images)?,
                workspace: Default::default(),
            }),
            weights: device.upload(&weights)?,
            bias: layer.bias.map(|bias| device.upload(bias)).transpose()?,
            whole: shape.geometry(layer.rectify),
            shape: *shape,
            images,
            plan,
        })
    }

    pub fn plan(&self) -> &ConvPlan {
        &self.plan
    }

    pub fn filter_bytes(&self) -> usize {
        size_of::<E::Sum>() * self.weights.len()
    }

    pub fn run(&self, x: &Maps<E>, out: &mut Buffer<E::Sum>) -> Result<(), OpError> {
        let mut between = locked(&self.between);
        let first_images = (0..self.shape.batch).step_by(self.images);
        first_images
            .filter(|_| self.shape.results() > 0)
            .try_for_each(|first| self.round(first, x, &mut between, out))
    }

    /// Some images, from `first` on.
    fn round(
        &self,
        first: usize,
        x: &Maps<E>,
        between: &mut Between<E>,
        out: &mut Buffer<E::Sum>,
    ) -> Result<(), OpError> {
        let images = self.images.min(self.shape.batch - first);
        let cells = (self.whole.out[0] * self.whole.out[1]) as usize;
        let (filters, width) = (self.shape.filters, images * cells);
        let geometry = Geometry {
            batch: images as u32,
            ..self.whole
        };
        let bias = self.bias.as_ref().map_or(In::none(), Buffer::input);
        let args = SparseConvArgs {
            first_image: first as u32,
            ..no_args(x, bias, geometry)
        };
        self.columns.launch(SparseConvArgs {
            out: between.factor.output(),
            ..args
        })?;
        let sizes = [filters, self.weights.len() / filters, width];
        let factors = (&self.weights, &between.factor);
        E::Sum::multiply(&mut between.workspace, sizes, factors, &mut between.sums)?;
        // Filters × images × rows × columns.
        let from = Strides {
            image: cells as u32,
            channel: width as u32,
            row: self.whole.out[1],
            col: 1,
        };
        Ok(self.finish.launch(SparseConvArgs {
            sums: between.sums.input(),
            out: out.output(),
            geometry: Geometry { from, ..geometry },
            ..args
        })?)
    }
}
