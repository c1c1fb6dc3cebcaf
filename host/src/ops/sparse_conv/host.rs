//! Layers on the CPU.

use gpu_kernels::sparse_conv::Geometry;

use super::element::ConvElement;
use super::layer::Layer;
use super::maps::Maps;
use crate::cpu::sparse_conv as cpu;
use crate::device::Buffer;
use crate::matrix::filters::SparseFilters;
use crate::plan::sparse_conv::ConvShape;

/// Filters as the CPU reads them.
pub(super) struct OnHost<E: ConvElement> {
    geometry: Geometry,
    starts: Vec<u32>,
    taps: Vec<cpu::Tap<E>>,
    bias: Option<Vec<E::Sum>>,
}

impl<E: ConvElement> OnHost<E> {
    pub fn new(
        shape: &ConvShape,
        filters: &SparseFilters<E::Value>,
        layer: Layer<'_, E::Sum>,
    ) -> OnHost<E> {
        let (mut starts, mut taps) = (vec![0], Vec::with_capacity(filters.nnz()));
        for filter in 0..shape.filters {
            taps.extend(filters.of_filter(filter).map(|(channel, n)| {
                let weight = E::wide(n.value);
                (channel as u32, n.row.into(), n.col.into(), weight)
            }));
            starts.push(taps.len() as u32);
        }
        OnHost {
            geometry: shape.geometry(layer.rectify),
            starts,
            taps,
            bias: layer.bias.map(<[_]>::to_vec),
        }
    }

    pub fn filter_bytes(&self) -> usize {
        size_of_val(&*self.starts) + size_of_val(&*self.taps)
    }

    pub fn run(&self, x: &Maps<E>, out: &mut Buffer<E::Sum>) {
        let slices = x.words().as_host_slice().zip(out.as_host_slice_mut());
        if let Some((x, out)) = slices {
            let layer: cpu::Layer<'_, E> = cpu::Layer {
                geometry: self.geometry,
                x,
                starts: &self.starts,
                taps: &self.taps,
                bias: self.bias.as_deref(),
            };
            cpu::convolve(&layer, out);
        }
    }
}
