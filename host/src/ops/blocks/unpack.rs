//! Kernels that make arrays of images, and the arguments that they take of them.

use std::ops::Range;

use bytemuck::Pod;
use gpu_kernels::fused::{UnpackArgs, UnpackVariant};
use gpu_kernels::{Family, In, Launch, Out};

use crate::device::{Buffer, Device, Prepared};
use crate::ops::{Number, OpError};

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks for each SM: as many as it holds at once.
const BLOCKS_PER_SM: u32 = 8;

/// Kernels that unpack.
pub(in crate::ops) struct Unpacking<T: Number>(Vec<Prepared<T::Unpack>>);

/// Of images.
pub(super) const OF_IMAGES: [UnpackVariant; 4] = [
    UnpackVariant::Columns,
    UnpackVariant::Bf16,
    UnpackVariant::Single,
    UnpackVariant::OfRows,
];

impl<T: Number> Unpacking<T> {
    /// Those of these variants.
    pub(in crate::ops) fn new(device: &Device, wanted: &[UnpackVariant]) -> Result<Self, OpError> {
        let sms = device.limits().map_or(1, |limits| limits.sms);
        let launch = Launch {
            grid: sms * BLOCKS_PER_SM,
            block: THREADS,
            shared_bytes: 0,
        };
        let entries = T::Unpack::entries().iter();
        let entries = entries.filter(|entry| wanted.contains(&entry.variant));
        let prepared = entries.map(|entry| device.prepare(entry, launch));
        Ok(Unpacking(prepared.collect::<Result<_, _>>()?))
    }

    pub(in crate::ops) fn launch(
        &self,
        variant: UnpackVariant,
        args: UnpackArgs<'_, T>,
    ) -> Result<(), OpError> {
        let found = self
            .0
            .iter()
            .find(|kernel| kernel.entry().variant == variant);
        let kernel = found.expect("it was requested");
        Ok(kernel.launch(args)?)
    }
}

/// Arguments without arrays, for `len` elements or rows.
pub(in crate::ops) fn no_arrays<'a, T: Number>(len: usize) -> UnpackArgs<'a, T> {
    UnpackArgs {
        len: len as u64,
        packed: In::none(),
        offsets: In::none(),
        constants: In::none(),
        members: In::none(),
        places: In::none(),
        indices: Out::none(),
        values: Out::none(),
        sums: Out::none(),
    }
}

/// Words of an image as what they are.
pub(in crate::ops) fn section<'a, U: Pod>(
    image: &'a Buffer<u32>,
    words: &Range<usize>,
) -> In<'a, U> {
    let all = image.input();
    assert!(
        words.start <= words.end && words.end as u64 <= all.len(),
        "a section lies inside its image"
    );
    let bytes = 4 * words.len();
    // SAFETY: the words lie inside the buffer, for as long as it is borrowed, and any bits are a value of a plain type.
    // Sections begin at multiples of 256 bytes of a buffer that is aligned to as many.
    unsafe {
        let first = all.pointer().add(words.start);
        In::new(first.cast::<U>(), (bytes / size_of::<U>()) as u64)
    }
}
