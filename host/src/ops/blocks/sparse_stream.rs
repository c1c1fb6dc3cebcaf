//! Sparse rows that stream: images of blocks, unpacked for kernels of rows.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use gpu_kernels::Word;
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};

use super::crossing::BlockStream;
use super::unpack::{OF_IMAGES, Unpacking, no_arrays, section};
use super::{Part, Place, SparseBlock};
use crate::device::{Buffer, Device};
use crate::layout::packed::{ImageValues, SparseImage, cut_rows};
use crate::matrix::{CsrMatrix, Features, Storage, Values};
use crate::ops::launch::first;
use crate::ops::{Number, OpError, vector};
use crate::parallel;
use crate::parallel::locked;
use crate::plan::streaming::Residence;

/// Sparse rows in blocks that stay or stream.
pub(in crate::ops) struct SparseStream<T: Number> {
    blocks: BlockStream<T, SparseImage<T>>,
    /// Locked for a pass.
    unpacked: Mutex<Unpacked<T>>,
    kernels: Unpacking<T>,
}

/// What kernels read of a block that is packed.
struct Unpacked<T> {
    indices: Buffer<u32>,
    values: Buffer<T>,
    /// The bits of what all values are.
    filled: Option<u64>,
}

impl<T: Number> SparseStream<T> {
    /// The rows of `source` in blocks.
    pub(in crate::ops) fn new(
        device: &Device,
        source: Arc<Features<T>>,
        place: Place,
        rounding: Values,
    ) -> Result<Self, OpError> {
        let Storage::Sparse(x) = source.storage() else {
            unreachable!("rows of sparse features");
        };
        let images = images(x, place.residence, rounding);
        let most = |needs: fn(&SparseImage<T>) -> bool| {
            let needing = images.iter().filter(|image| needs(image));
            needing.map(|image| image.entries).max().unwrap_or(0)
        };
        let unpacked = Unpacked {
            indices: device.zeros(most(|image| image.is_narrow))?,
            values: device.zeros(most(|image| image.values != ImageValues::Whole))?,
            filled: None,
        };
        Ok(SparseStream {
            kernels: Unpacking::new(device, &OF_IMAGES)?,
            blocks: BlockStream::new(device, source.clone(), images, (&place, unpacked.bytes()))?,
            unpacked: Mutex::new(unpacked),
        })
    }

    /// What streams and what stays.
    pub(in crate::ops) fn blocks(&self) -> &BlockStream<T, SparseImage<T>> {
        &self.blocks
    }

    /// Entries of the largest block.
    pub(in crate::ops) fn most_entries(&self) -> usize {
        let entries = self.blocks.images().iter().map(|image| image.entries);
        entries.max().unwrap_or(0)
    }

    /// What all values are, where images store none; `None` without entries, too.
    pub(in crate::ops) fn equal_value(&self) -> Option<T> {
        let images = self.blocks.images().iter();
        let mut of_blocks =
            images
                .filter(|image| image.entries > 0)
                .map(|image| match image.values {
                    ImageValues::Equal(value) => Some(value),
                    _ => None,
                });
        let first = of_blocks.next()??;
        let is_first = |value: Option<T>| {
            value.is_some_and(|value| Word::to_bits(value) == Word::to_bits(first))
        };
        of_blocks.all(is_first).then_some(first)
    }

    /// Walks over the blocks of a part, each with its number.
    pub(in crate::ops) fn each(
        &self,
        part: Part,
        mut walk: impl FnMut(usize, SparseBlock<'_, T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut unpacked = locked(&self.unpacked);
        self.blocks.each(part, |number, image, words| {
            unpacked.unpack(&self.kernels, image, words)?;
            walk(number, unpacked.block(image, words))
        })
    }
}

fn images<T: Number>(
    x: &CsrMatrix<T>,
    residence: Residence,
    rounding: Values,
) -> Vec<SparseImage<T>> {
    let offsets = x.indptr();
    let offsets = offsets.raw_storage();
    let (limit, rounding) = match residence {
        Residence::Whole => (u64::MAX, None),
        Residence::Blocks(limit) => (limit, None),
        Residence::PackedBlocks(limit) => (limit, Some(rounding)),
    };
    let entry = 4 + size_of::<T>() as u64;
    let size =
        |from: usize, to: usize| 4 * (to - from) as u64 + entry * (offsets[to] - offsets[from]);
    let most = gpu_kernels::fused::sparse::MAX_NONZEROS as u64 * entry;
    let cuts = cut_rows(x.rows(), limit.min(most), size);
    let image = |i: usize| SparseImage::of(x, cuts[i]..cuts[i + 1], rounding);
    parallel::map(cuts.len().saturating_sub(1), image)
}

impl<T: Number> Unpacked<T> {
    fn bytes(&self) -> u64 {
        (4 * self.indices.len() + size_of::<T>() * self.values.len()) as u64
    }

    /// Launches what makes arrays of an image.
    fn unpack(
        &mut self,
        kernels: &Unpacking<T>,
        image: &SparseImage<T>,
        words: &Buffer<u32>,
    ) -> Result<(), OpError> {
        let sections = image.sections();
        let args = UnpackArgs {
            offsets: section::<u32>(words, &sections.offsets),
            ..no_arrays(image.entries)
        };
        if image.is_narrow {
            let args = UnpackArgs {
                packed: section(words, &sections.indices),
                indices: self.indices.output(),
                ..args
            };
            kernels.launch(UnpackVariant::Columns, args)?;
        }
        let (variant, rows) = match image.values {
            ImageValues::Whole => return Ok(()),
            ImageValues::Equal(value) => return self.fill(value),
            ImageValues::Single => (UnpackVariant::Single, None),
            ImageValues::Bf16 => (UnpackVariant::Bf16, None),
            ImageValues::OfRows => (UnpackVariant::OfRows, Some(image.rows)),
        };
        self.filled = None;
        let args = match rows {
            Some(rows) => UnpackArgs {
                len: rows as u64,
                constants: section(words, &sections.values),
                values: self.values.output(),
                ..args
            },
            None => UnpackArgs {
                packed: section(words, &sections.values),
                values: self.values.output(),
                ..args
            },
        };
        kernels.launch(variant, args)
    }

    /// Sets all values, unless they are that already.
    fn fill(&mut self, value: T) -> Result<(), OpError> {
        let bits = Word::to_bits(value);
        if self.filled != Some(bits) {
            vector::fill(value, &mut self.values)?;
            self.filled = Some(bits);
        }
        Ok(())
    }

    /// What kernels of rows read.
    fn block<'a>(&'a self, image: &SparseImage<T>, words: &'a Buffer<u32>) -> SparseBlock<'a, T> {
        let sections = image.sections();
        let entries: Range<usize> = 0..image.entries;
        SparseBlock {
            first_row: image.first_row,
            rows: image.rows,
            offsets: section(words, &sections.offsets),
            indices: match image.is_narrow {
                true => first(&self.indices, entries.len()),
                false => section(words, &sections.indices),
            },
            values: match image.values {
                ImageValues::Whole => section(words, &sections.values),
                _ => first(&self.values, entries.len()),
            },
        }
    }
}
