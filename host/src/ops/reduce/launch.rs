//! From a plan to a launch.

use gpu_kernels::reduce::{ORDER_FIXED, ORDER_INTERLEAVED, ReduceArgs, ReduceVariant, Total};
use gpu_kernels::{In, Launch, Out};

use super::{Reducer, Reducible, entry};
use crate::device::{Buffer, Device, DeviceError, Prepared};
use crate::ops::{OpError, checks};
use crate::plan::reduce::{BLOCK, Order};

/// Arguments without arrays.
pub(super) fn no_arguments<'a, T>() -> ReduceArgs<'a, T> {
    ReduceArgs {
        x: In::none(),
        y: In::none(),
        offsets: In::none(),
        len: 0,
        parts: 0,
        cols: 0,
        pitch: 0,
        chunks: 0,
        rows_per_chunk: 1,
        order: ORDER_FIXED,
        choice: 0,
        tile: 1,
        partials: Out::none(),
        tickets: Out::none(),
        out: Out::none(),
    }
}

/// The number that kernels know an order by.
pub(super) fn order_number(order: Order) -> u32 {
    match order {
        Order::Fixed => ORDER_FIXED,
        Order::Interleaved => ORDER_INTERLEAVED,
    }
}

/// An entry with its launch shape.
pub(super) fn prepare<T: Reducible>(
    device: &Device,
    variant: ReduceVariant,
    grid: u32,
) -> Result<Prepared<T::Reduce>, OpError> {
    let shape = Launch {
        grid,
        block: BLOCK,
        shared_bytes: variant.shared_bytes(),
    };
    Ok(device.prepare(entry::<T>(variant), shape)?)
}

/// Launches an entry once.
pub(super) fn launch<T: Reducible>(
    device: &Device,
    variant: ReduceVariant,
    grid: u32,
    args: ReduceArgs<'_, T>,
) -> Result<(), OpError> {
    Ok(prepare::<T>(device, variant, grid)?.launch(args)?)
}

/// A total from its words.
pub(super) fn total<R: Total>(words: &[u64]) -> R {
    let mut all = [0; gpu_kernels::reduce::total::MOST_WORDS];
    all[..R::WORDS].copy_from_slice(&words[..R::WORDS]);
    R::from_words(all)
}

impl Reducer {
    /// Makes room for the totals of this many chunks and for this many counters.
    pub(super) fn reserve(&mut self, words: u64, tickets: u64) -> Result<(), OpError> {
        let too_large = |what, found| OpError::TooLarge {
            what,
            limit: usize::MAX as u64,
            found,
        };
        let words =
            usize::try_from(words).map_err(|_| too_large("words of partial results", words))?;
        let tickets =
            usize::try_from(tickets).map_err(|_| too_large("tiles of columns", tickets))?;
        grow(&self.device, &mut self.partials, words)?;
        grow(&self.device, &mut self.tickets, tickets)?;
        Ok(())
    }

    /// Fails unless `x` lies on this device.
    pub(super) fn expect_here<T: Reducible>(
        &self,
        what: &'static str,
        x: &Buffer<T>,
    ) -> Result<(), OpError> {
        checks::same_device(what, &self.device, &x.device())
    }
}

fn grow<T: bytemuck::Pod>(
    device: &Device,
    buffer: &mut Buffer<T>,
    len: usize,
) -> Result<(), DeviceError> {
    if buffer.len() < len {
        *buffer = device.zeros(len)?;
    }
    Ok(())
}
