//! Filters on a device, in the format of a kernel.

use gpu_kernels::Word as _;
use gpu_kernels::sparse_conv::{SparseConvArgs, StagedGeometry, TensorGeometry};

use super::choose::starts_of_filters;
use super::element::ConvElement;
use super::error::SparseConvError;
use crate::device::{Buffer, Device};
use crate::layout::sparse_conv::{ConvSteps, ranges};
use crate::matrix::filters::{CooFilters, FilterValue, PackedFilters, PackedLayout, SparseFilters};
use crate::plan::sparse_conv::{ConvPlan, ConvShape, ConvStrategy, Tiles};

/// Filters in the format of a kernel.
pub(super) enum Format<E: ConvElement> {
    Coo {
        starts: Buffer<u32>,
        rows: Buffer<u32>,
        cols: Buffer<u32>,
        values: Buffer<E::Wide>,
        bytes: usize,
    },
    Packed {
        starts: Buffer<u32>,
        words: Buffer<E::Packed>,
        bits: [u32; 2],
        bytes: usize,
    },
    Direct {
        starts: Buffer<u32>,
        places: Buffer<u32>,
        values: Buffer<E::Wide>,
    },
    Tensor {
        starts: Buffer<u32>,
        words: Buffer<u32>,
        tiles: TensorGeometry,
    },
    Staged {
        starts: Buffer<u32>,
        pairs: Buffer<u32>,
        tiles: StagedGeometry,
    },
}

impl<E: ConvElement> Format<E> {
    pub(super) fn new(
        device: &Device,
        plan: &ConvPlan,
        (shape, filters): (&ConvShape, &SparseFilters<E::Value>),
        steps: Option<ConvSteps>,
    ) -> Result<Format<E>, SparseConvError> {
        let wide: Vec<E::Wide> = filters
            .nonzeros()
            .iter()
            .map(|n| E::wide(n.value))
            .collect();
        Ok(match (plan.strategy, plan.tiles, steps) {
            (ConvStrategy::Staged, Tiles::Staged(tiles), _) => {
                let ranges = ranges(filters, shape.dilation, &tiles.geometry, |value| {
                    E::wide(value).to_bits() as u32
                });
                Format::Staged {
                    starts: device.upload(&ranges.starts)?,
                    pairs: device.upload(&ranges.pairs)?,
                    tiles: tiles.geometry,
                }
            }
            (ConvStrategy::Tensor, Tiles::Tensor(tiles), Some(steps)) => Format::Tensor {
                starts: device.upload(&steps.starts)?,
                words: device.upload(&steps.words)?,
                tiles: tiles.geometry,
            },
            (ConvStrategy::Coo, ..) => {
                let coo = CooFilters::from(filters);
                let words =
                    |short: &[u16]| -> Vec<u32> { short.iter().map(|s| (*s).into()).collect() };
                Format::Coo {
                    starts: device.upload(filters.starts())?,
                    rows: device.upload(&words(&coo.rows))?,
                    cols: device.upload(&words(&coo.cols))?,
                    values: device.upload(&wide)?,
                    bytes: coo.bytes(),
                }
            }
            (ConvStrategy::Packed, ..) => {
                let bits = 8 * size_of::<E::Packed>() as u32;
                let layout = PackedLayout::new(bits, &filters.shape());
                let packed = PackedFilters::pack(filters, layout)?;
                let words: Vec<E::Packed> = packed.words().iter().map(|w| E::packed(*w)).collect();
                Format::Packed {
                    starts: device.upload(filters.starts())?,
                    words: device.upload(&words)?,
                    bits: [layout.row_bits, layout.col_bits],
                    bytes: packed.bytes(),
                }
            }
            _ => Format::Direct {
                starts: device.upload(&starts_of_filters(filters))?,
                places: device.upload(&places(filters))?,
                values: device.upload(&wide)?,
            },
        })
    }

    /// Sets the arguments that filters are.
    pub(super) fn fill<'a>(&'a self, args: &mut SparseConvArgs<'a, E>) {
        match self {
            Format::Coo {
                starts,
                rows,
                cols,
                values,
                ..
            } => {
                args.starts = starts.input();
                args.places = rows.input();
                args.cols = cols.input();
                args.values = values.input();
            }
            Format::Packed {
                starts,
                words,
                bits,
                ..
            } => {
                args.starts = starts.input();
                args.packed = words.input();
                args.packed_bits = *bits;
            }
            Format::Direct {
                starts,
                places,
                values,
            } => {
                args.starts = starts.input();
                args.places = places.input();
                args.values = values.input();
            }
            Format::Tensor {
                starts,
                words,
                tiles,
            } => {
                args.starts = starts.input();
                args.steps = words.input();
                args.tensor = *tiles;
            }
            Format::Staged {
                starts,
                pairs,
                tiles,
            } => {
                args.starts = starts.input();
                args.steps = pairs.input();
                args.staged = *tiles;
            }
        }
    }

    /// Bytes of all arrays.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Format::Coo { bytes, .. } | Format::Packed { bytes, .. } => *bytes,
            Format::Direct {
                starts,
                places,
                values,
            } => 4 * (starts.len() + places.len()) + size_of::<E::Wide>() * values.len(),
            Format::Tensor { starts, words, .. } => 4 * (starts.len() + words.len()),
            Format::Staged { starts, pairs, .. } => 4 * (starts.len() + pairs.len()),
        }
    }
}

/// Channel, row and column of each nonzero in one word.
fn places<V>(filters: &SparseFilters<V>) -> Vec<u32>
where
    V: FilterValue,
{
    let each = (0..filters.shape().filters).flat_map(|filter| filters.of_filter(filter));
    each.map(|(channel, n)| (channel as u32) << 8 | u32::from(n.row) << 4 | u32::from(n.col))
        .collect()
}
