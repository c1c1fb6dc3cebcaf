//! Kernels that order and copy, and what the host adds up between them.

use gpu_kernels::forms::hot::{
    CHUNK, HotOrder, MakingArgs, MakingVariant, OrderArgs, OrderVariant, Rounding, StoredAs,
};
use gpu_kernels::fused::hot::CLASSES;
use gpu_kernels::{Entry, Family, In, Launch, Out, Word};

use crate::device::{Buffer, Device};
use crate::ops::{Number, OpError};

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks for each SM, at most.
const BLOCKS_PER_SM: u32 = 8;
/// Lanes of a warp.
pub(super) const WARP: usize = 32;

/// A launch of as many blocks as give each of `threads` one element, as far as an SM holds them at once.
fn launch_over(device: &Device, threads: usize, shared_bytes: impl Fn(u32) -> u64) -> Launch {
    let sms = device.limits().map_or(1, |limits| limits.sms);
    let most = (sms * BLOCKS_PER_SM) as usize;
    Launch {
        grid: threads.div_ceil(THREADS as usize).clamp(1, most) as u32,
        block: THREADS,
        shared_bytes: shared_bytes(THREADS) as u32,
    }
}

/// The entry of a variant.
fn entry<F: Family>(variant: F::Variant) -> &'static Entry<F> {
    let mut entries = F::entries().iter();
    let found = entries.find(|entry| entry.variant == variant);
    found.expect("the table has every variant")
}

/// A device that orders.
pub(super) struct Order<'d> {
    pub(super) device: &'d Device,
}

/// How many elements of each key the chunks have.
pub(super) struct Tallies {
    /// Chunk by chunk.
    counts: Vec<u32>,
    /// Of each key.
    pub(super) totals: Vec<u32>,
}

impl Tallies {
    /// Where each chunk's elements of each key go, where those of a key begin there.
    fn bases(&self, mut starts: Vec<u32>) -> Vec<u32> {
        let mut bases = Vec::with_capacity(self.counts.len());
        for chunk in self.counts.chunks(starts.len()) {
            for (next, count) in starts.iter_mut().zip(chunk) {
                bases.push(*next);
                *next += count;
            }
        }
        bases
    }
}

impl<'d> Order<'d> {
    pub(super) fn new(device: &'d Device) -> Self {
        Order { device }
    }

    /// Launches a kernel for this many threads.
    pub(super) fn run(
        &self,
        variant: OrderVariant,
        threads: usize,
        args: OrderArgs<'_>,
    ) -> Result<(), OpError> {
        let width = match variant {
            OrderVariant::Counted => args.columns.len() as u32,
            _ => args.width,
        };
        let bytes = |block| variant.shared_bytes(block, width);
        let launch = launch_over(self.device, threads, bytes);
        let kernel = self.device.prepare(entry::<HotOrder>(variant), launch)?;
        Ok(kernel.launch(args)?)
    }

    /// How often each of `width` keys is in the chunks.
    pub(super) fn tally(&self, keys: &Buffer<u32>, width: usize) -> Result<Tallies, OpError> {
        let chunks = keys.len().div_ceil(CHUNK as usize);
        let mut tallies = self.device.zeros(chunks * width)?;
        let args = OrderArgs {
            width: width as u32,
            fields: keys.input(),
            to: tallies.output(),
            ..no_order(keys.len())
        };
        self.run(OrderVariant::Tallied, chunks * WARP, args)?;
        let counts = tallies.to_vec()?;
        let mut totals = vec![0; width];
        for chunk in counts.chunks(width) {
            totals
                .iter_mut()
                .zip(chunk)
                .for_each(|(all, own)| *all += own);
        }
        Ok(Tallies { counts, totals })
    }

    /// The elements in the order of their keys, of which each key's begin there; and where each element went.
    pub(super) fn sort(
        &self,
        keys: &Buffer<u32>,
        (tallies, starts): (&Tallies, Vec<u32>),
        (to, went_to): (&mut Buffer<u32>, Option<&mut Buffer<u32>>),
    ) -> Result<(), OpError> {
        let width = starts.len() as u32;
        let bases = self.device.upload(&tallies.bases(starts))?;
        let args = OrderArgs {
            width,
            fields: keys.input(),
            bases: bases.input(),
            to: to.output(),
            second: went_to.map_or(Out::none(), Buffer::output),
            ..no_order(keys.len())
        };
        let chunks = keys.len().div_ceil(CHUNK as usize);
        self.run(OrderVariant::Sorted, chunks * WARP, args)
    }

    /// Replaces each number by the sum of those before it.
    pub(super) fn scan(&self, numbers: &mut Buffer<u32>) -> Result<(), OpError> {
        let (len, chunks) = (numbers.len(), numbers.len().div_ceil(CHUNK as usize));
        let mut sums = self.device.zeros(chunks)?;
        let args = OrderArgs {
            fields: numbers.input(),
            to: sums.output(),
            ..no_order(len)
        };
        self.run(OrderVariant::Summed, chunks * WARP, args)?;
        let mut before = 0_u32;
        let bases = sums.to_vec()?.into_iter().map(|sum| {
            before += sum;
            before - sum
        });
        let bases = self.device.upload(&bases.collect::<Vec<u32>>())?;
        let args = OrderArgs {
            bases: bases.input(),
            to: numbers.output(),
            ..no_order(len)
        };
        self.run(OrderVariant::Scanned, chunks * WARP, args)
    }

    /// The number of each of some columns, `width` of them in a word, of as many bits as fit; `field` where there are none.
    pub(super) fn pack(
        &self,
        columns: &Buffer<u32>,
        (fields, field): (Option<&Buffer<u32>>, u32),
        width: usize,
    ) -> Result<Buffer<u32>, OpError> {
        let words = columns.len().div_ceil(width);
        let mut packed = self.device.zeros(words)?;
        if words > 0 {
            let args = OrderArgs {
                width: width as u32,
                field,
                columns: columns.input(),
                fields: fields.map_or(In::none(), Buffer::input),
                to: packed.output(),
                ..no_order(words)
            };
            self.run(OrderVariant::Packed, words, args)?;
        }
        Ok(packed)
    }
}

/// Arguments without arrays, for `len` elements.
pub(super) fn no_order<'a>(len: usize) -> OrderArgs<'a> {
    OrderArgs {
        len: len as u64,
        rows: 0,
        step: 1,
        width: 0,
        field: 0,
        slices: [0; CLASSES],
        offsets: In::none(),
        indices: In::none(),
        members: In::none(),
        places: In::none(),
        columns: In::none(),
        fields: In::none(),
        bases: In::none(),
        order: In::none(),
        hot_lengths: In::none(),
        cold_lengths: In::none(),
        counts: Out::none(),
        to: Out::none(),
        second: Out::none(),
        third: Out::none(),
        steps: Out::none(),
    }
}

/// Launches a kernel that judges values or copies entries, for this many threads.
pub(super) fn launch_making<T: Number>(
    device: &Device,
    (variant, threads): (MakingVariant, usize),
    args: MakingArgs<'_, T>,
) -> Result<(), OpError> {
    let bytes = |block| variant.shared_bytes(block, <T as Word>::SIZE);
    let launch = launch_over(device, threads, bytes);
    let kernel = device.prepare(entry::<T::HotMaking>(variant), launch)?;
    Ok(kernel.launch(args)?)
}

/// Arguments without arrays, for `len` entries or rows.
pub(super) fn no_copy<'a, T: Number>(len: usize) -> MakingArgs<'a, T> {
    MakingArgs {
        len: len as u64,
        rows: 0,
        hot_columns: 0,
        field: 0,
        rounding: Rounding::Exact,
        stored: StoredAs::Constant,
        slices: [0; CLASSES],
        first: T::default(),
        offsets: In::none(),
        indices: In::none(),
        values: In::none(),
        members: In::none(),
        places: In::none(),
        labels: In::none(),
        fields: In::none(),
        order: In::none(),
        steps: In::none(),
        cold_offsets: In::none(),
        flags: Out::none(),
        largest: Out::none(),
        to_places: Out::none(),
        to_values: Out::none(),
        to_packed: Out::none(),
        to_constants: Out::none(),
        to_ranks: Out::none(),
        to_cold_values: Out::none(),
        cold_ranks: Out::none(),
        cold_entries: Out::none(),
    }
}
