//! Layers between arrays of the host.

use super::element::ConvElement;
use super::error::SparseConvError;
use super::layer::Layer;
use super::maps::Maps;
use super::{ConvShape, SparseConv};
use crate::device::exchange::Exchange;
use crate::device::{Buffer, Device, DeviceError};
use crate::matrix::filters::SparseFilters;
use crate::ops::{OpError, checks};

/// Bytes of a part's inputs at least: shorter copies leave the link idle between them.
const PART_BYTES: usize = 2 << 20;
/// Parts at most: what does not overlap is the first part's copy and the last one's.
const MOST_PARTS: usize = 8;

/// A layer from an array of the host to another, both page-locked, images in parts: on a CUDA device one part is copied
/// there, another computed, a third copied back at the same time.
///
/// Inputs are written where they cross from ([`inputs`](Self::inputs)), so that nothing is copied on the host.
/// [`SparseConv::run_on_host_arrays`] takes any arrays, one after the other.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::matrix::filters::SparseFilters;
/// use warpfuse::ops::sparse_conv::{ArrayConv, ConvShape, I16, Layer};
///
/// let shape = ConvShape { batch: 2, ..ConvShape::new(1, [1, 2], 1, [1, 1]) };
/// let filters = SparseFilters::from_dense(shape.filter_shape(), &[3_i16])?;
/// let mut layer = ArrayConv::<I16>::new(&Device::auto(), &shape, &filters, Layer::default())?;
/// layer.inputs().copy_from_slice(&[1, 2, 3, 4]);
/// assert_eq!(layer.run()?, [3, 6, 9, 12]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArrayConv<E: ConvElement> {
    shape: ConvShape,
    parts: Vec<Part<E>>,
    /// Layers of a whole part's images, and of the last part's where there are fewer.
    layers: Vec<SparseConv<E>>,
    exchange: Exchange,
}

/// Some images on the device.
struct Part<E: ConvElement> {
    layer: usize,
    x: Maps<E>,
    out: Buffer<E::Sum>,
}

impl<E: ConvElement> ArrayConv<E> {
    /// As [`SparseConv::new`], with arrays for inputs and results, which are zero.
    ///
    /// # Errors
    /// As [`SparseConv::new`], and when there is too little memory that may be page-locked.
    pub fn new(
        device: &Device,
        shape: &ConvShape,
        filters: &SparseFilters<E::Value>,
        layer: Layer<'_, E::Sum>,
    ) -> Result<ArrayConv<E>, SparseConvError> {
        let bytes = shape.inputs() * size_of::<E::Value>();
        let parts = (bytes / PART_BYTES).clamp(1, MOST_PARTS);
        ArrayConv::in_parts(device, shape, filters, layer, parts)
    }

    /// [`new`](Self::new) with a number of parts; there is at least an image in each.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn in_parts(
        device: &Device,
        shape: &ConvShape,
        filters: &SparseFilters<E::Value>,
        layer: Layer<'_, E::Sum>,
        parts: usize,
    ) -> Result<ArrayConv<E>, SparseConvError> {
        shape.check()?;
        let images = shape.batch.div_ceil(parts.max(1)).max(1);
        let of = |batch: usize| ConvShape { batch, ..*shape };
        let mut layers = vec![SparseConv::new(
            device,
            &of(images.min(shape.batch)),
            filters,
            layer,
        )?];
        let last = shape.batch % images;
        if last > 0 && shape.batch > images {
            layers.push(SparseConv::new(device, &of(last), filters, layer)?);
        }
        let part = |first: usize| -> Result<Part<E>, DeviceError> {
            let layer = usize::from(shape.batch - first < images && layers.len() > 1);
            let shape = layers[layer].shape();
            Ok(Part {
                layer,
                x: Maps::zeros(device, shape.inputs())?,
                out: device.zeros(shape.results())?,
            })
        };
        let firsts = (0..shape.batch).step_by(images);
        let parts: Vec<Part<E>> = firsts.map(part).collect::<Result<_, _>>()?;
        let bytes = [
            shape.inputs() * size_of::<E::Value>(),
            shape.results() * size_of::<E::Sum>(),
        ];
        Ok(ArrayConv {
            shape: *shape,
            exchange: Exchange::new(device, bytes, parts.len())?,
            parts,
            layers,
        })
    }

    /// Sizes.
    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    /// The layer of a part's images.
    pub fn layer(&self) -> &SparseConv<E> {
        &self.layers[0]
    }

    /// The array of inputs, images × channels × rows × columns in the layout of the shape.
    pub fn inputs(&mut self) -> &mut [E::Value] {
        bytemuck::cast_slice_mut(self.exchange.input())
    }

    /// The results of the last run.
    pub fn results(&self) -> &[E::Sum] {
        bytemuck::cast_slice(self.exchange.output())
    }

    /// Convolves the inputs, and waits for the results.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device fails.
    pub fn run(&mut self) -> Result<&[E::Sum], OpError> {
        let (parts, layers) = (&mut self.parts, &self.layers);
        self.exchange.round(|round| {
            let (mut there, mut back) = (0, 0);
            for (number, part) in parts.iter_mut().enumerate() {
                let bytes = part.x.len() * size_of::<E::Value>();
                round.send(number, there..there + bytes, part.x.words_mut())?;
                round.compute(number, || layers[part.layer].run(&part.x, &mut part.out))?;
                round.fetch(number, &part.out, back)?;
                there += bytes;
                back += part.out.len() * size_of::<E::Sum>();
            }
            Ok::<(), OpError>(())
        })?;
        Ok(self.results())
    }

    /// [`run`](Self::run) on inputs that lie elsewhere: they are copied first.
    ///
    /// # Errors
    /// [`OpError::Length`] when there are more or fewer, and as [`run`](Self::run).
    pub fn run_on(&mut self, x: &[E::Value]) -> Result<&[E::Sum], OpError> {
        checks::length("x", self.shape.inputs(), x.len())?;
        self.inputs().copy_from_slice(x);
        self.run()
    }
}
