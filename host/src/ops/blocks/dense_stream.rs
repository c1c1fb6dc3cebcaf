//! Dense rows that stream.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use gpu_kernels::fused::{UnpackArgs, UnpackVariant};

use super::crossing::BlockStream;
use super::unpack::{OF_IMAGES, Unpacking, no_arrays, section};
use super::{DenseBlock, Part, Place};
use crate::device::{Buffer, Device};
use crate::layout::packed::{DenseImage, Image, cut_rows};
use crate::matrix::{Features, Storage, Values};
use crate::ops::launch::first;
use crate::ops::{Number, OpError};
use crate::parallel;
use crate::parallel::locked;
use crate::plan::streaming::Residence;

/// Dense rows in blocks that stay or stream.
pub(in crate::ops) struct DenseStream<T: Number> {
    blocks: BlockStream<T, DenseImage>,
    /// The elements of a block of bfloat16; locked for a pass.
    unpacked: Mutex<Buffer<T>>,
    kernels: Unpacking<T>,
}

impl<T: Number> DenseStream<T> {
    /// The rows of `source` in blocks, `ld` elements apart.
    pub(in crate::ops) fn new(
        device: &Device,
        (source, ld): (Arc<Features<T>>, usize),
        place: Place,
        rounding: Values,
    ) -> Result<Self, OpError> {
        let images = images(&source, ld, place.residence, rounding);
        let packed = images.iter().filter(|image| image.is_bf16);
        let most = packed.map(DenseImage::elements).max().unwrap_or(0);
        let taken = (most * size_of::<T>()) as u64;
        Ok(DenseStream {
            kernels: Unpacking::new(device, &OF_IMAGES)?,
            unpacked: Mutex::new(device.zeros(most)?),
            blocks: BlockStream::new(device, source, images, (&place, taken))?,
        })
    }

    /// What streams and what stays.
    pub(in crate::ops) fn blocks(&self) -> &BlockStream<T, DenseImage> {
        &self.blocks
    }

    /// Walks over the blocks of a part.
    pub(in crate::ops) fn each(
        &self,
        part: Part,
        mut walk: impl FnMut(DenseBlock<'_, T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut unpacked = locked(&self.unpacked);
        self.blocks.each(part, |_, image, words| {
            let all: Range<usize> = 0..Image::<T>::words(image);
            if image.is_bf16 {
                let args = UnpackArgs {
                    packed: section(words, &all),
                    values: unpacked.output(),
                    ..no_arrays(image.elements())
                };
                self.kernels.launch(UnpackVariant::Bf16, args)?;
            }
            walk(DenseBlock {
                first_row: image.first_row,
                rows: image.rows,
                ld: image.ld,
                values: match image.is_bf16 {
                    true => first(&unpacked, image.elements()),
                    false => section(words, &all),
                },
            })
        })
    }
}

fn images<T: Number>(
    source: &Features<T>,
    ld: usize,
    residence: Residence,
    rounding: Values,
) -> Vec<DenseImage> {
    let Storage::Dense(x) = source.storage() else {
        unreachable!("rows of dense features");
    };
    let (limit, rounding) = match residence {
        Residence::Whole => (u64::MAX, None),
        Residence::Blocks(limit) => (limit, None),
        Residence::PackedBlocks(limit) => (limit, Some(rounding)),
    };
    let row = (ld * size_of::<T>()) as u64;
    let cuts = cut_rows(x.nrows(), limit, |from, to| row * (to - from) as u64);
    let image = |i: usize| DenseImage::of(x, ld, cuts[i]..cuts[i + 1], rounding);
    parallel::map(cuts.len().saturating_sub(1), image)
}
