//! Streams beside the device's own, for launches that need nothing of each other.

use std::array;
use std::sync::{Mutex, OnceLock};

use cust_raw::CUstream;

use super::CudaDevice;
use super::event::Event;
use super::stream::Stream;
use crate::device::error::DeviceError;
use crate::parallel::locked;

/// Streams beside the device's own at most; more parts take them by turns.
const MOST: usize = 8;

/// A stream, and where it leaves the device's own and comes back to it.
#[derive(Debug)]
struct Side {
    ready: Event,
    ended: Event,
    // Dropped last: the events are of no use without it.
    stream: Stream,
}

impl Side {
    fn new() -> Result<Side, DeviceError> {
        Ok(Side {
            ready: Event::new()?,
            ended: Event::new()?,
            stream: Stream::new()?,
        })
    }

    /// Has it wait for what `main` was told so far.
    fn leave(&self, main: CUstream) -> Result<(), DeviceError> {
        self.ready.record(main)?;
        self.ready.hold_back(self.stream.raw())
    }

    /// Has `main` wait for what it was told so far.
    fn join(&self, main: CUstream) -> Result<(), DeviceError> {
        self.ended.record(self.stream.raw())?;
        self.ended.hold_back(main)
    }
}

/// The streams of a device, each made when it is first wanted, and kept as long as the device.
#[derive(Debug)]
pub(super) struct Sides {
    all: [OnceLock<Result<Side, DeviceError>>; MOST],
    /// Held by who uses them: another thread would move the events.
    turn: Mutex<()>,
}

impl Sides {
    /// None is made yet.
    pub(super) fn new() -> Sides {
        Sides {
            all: array::from_fn(|_| OnceLock::new()),
            turn: Mutex::new(()),
        }
    }

    /// Stream `number`, which has been used.
    pub(super) fn raw(&self, number: u8) -> Option<CUstream> {
        let side = self.all[usize::from(number)].get()?.as_ref().ok()?;
        Some(side.stream.raw())
    }

    /// The first `count`, in the current context, which is the device's.
    fn first(&self, count: usize) -> Result<Vec<&Side>, DeviceError> {
        let made = self.all.iter().take(count);
        made.map(|side| side.get_or_init(Side::new).as_ref().map_err(Clone::clone))
            .collect()
    }
}

impl CudaDevice {
    /// Calls `work` for 0 to `parts` − 1, each with this device as one whose launches go to a stream beside its own. They begin when
    /// all that was submitted before has ended, and what is submitted afterwards waits for them.
    /// Parts of a part follow each other in its stream.
    pub(crate) fn at_once<E: From<DeviceError>>(
        &self,
        parts: usize,
        mut work: impl FnMut(usize, CudaDevice) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.2.is_some() {
            return (0..parts).try_for_each(|part| work(part, self.clone()));
        }
        self.enter()?;
        let _turn = locked(&self.0.sides.turn);
        let sides = self.0.sides.first(parts)?;
        let main = self.raw_stream();
        sides.iter().try_for_each(|side| side.leave(main))?;
        let of = |part: usize| {
            let number = Some((part % MOST) as u8);
            CudaDevice(self.0.clone(), self.1.clone(), number)
        };
        let done = (0..parts).try_for_each(|part| work(part, of(part)));
        // Behind a failure too: memory is freed in the order of the device's own stream.
        let joined = sides.iter().map(|side| side.join(main));
        let joined = joined.fold(Ok(()), Result::and);
        done.and(joined.map_err(E::from))
    }
}
