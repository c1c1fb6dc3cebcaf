//! NCCL: GPUs of one machine or of many.
//!
//! Joining, and everything afterwards, is submitted without waiting; a [watch](watch) looks at what has become of it. A member
//! that does not come, an error that NCCL has noticed, a process that has ended: each ends the communicator,
//! which frees the kernels that wait for it, and is the error of whatever is wanted next.

mod library;
mod places;
mod watch;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use self::library::{Comm, DataType, Library, UniqueId};
use self::watch::{Watch, Watched};
use super::between_devices::{DeviceCommunicator, NumberKind, Numbers};
use super::communicator::Communicator;
use super::error::GroupError;
use super::liveness::Liveness;
use super::peers::{End, Others};
use super::{Shares, slices_of};
use crate::device::cuda::{Beside, CudaDevice};
use crate::device::{Buffer, Device, DeviceError};
use crate::process::Process;

/// How long members wait for each other at the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// A member's place in a communicator. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Nccl(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    library: &'static Library,
    device: CudaDevice,
    rank: usize,
    size: usize,
    watched: Arc<Watched>,
    /// A second stream, made when it is first needed.
    beside: OnceLock<Result<Beside, DeviceError>>,
    _watch: Watch,
}

impl Nccl {
    /// Whether NCCL can be opened.
    pub(super) fn find() -> Result<(), GroupError> {
        Library::find().map(drop)
    }

    /// An id by which members find each other: to be given to each of them.
    pub(super) fn id() -> Result<[u8; 128], GroupError> {
        Ok(Library::find()?.unique_id()?.0)
    }

    /// Joins the other members; returns when all have come, or somebody is known not to.
    pub(super) fn join(
        device: &CudaDevice,
        id: [u8; 128],
        (rank, size): (usize, usize),
        (limit, others): (Duration, Others),
    ) -> Result<Nccl, GroupError> {
        let library = Library::find()?;
        device.enter().map_err(failed)?;
        let comm = library.join(UniqueId(id), rank, size)?;
        if let Err(error) = wait_for_all(library, comm, (limit, &others)) {
            give_up(library, device, comm, Waiting::Members);
            return Err(error);
        }
        let departed = others.departed;
        let watched = Arc::new(Watched::new(library, comm, device, (rank, size), departed)?);
        Ok(Nccl(Arc::new(Inner {
            library,
            device: device.clone(),
            rank,
            size,
            _watch: Watch::begin(watched.clone())?,
            watched,
            beside: OnceLock::new(),
        })))
    }

    /// Its version, for people.
    pub(super) fn version(&self) -> String {
        self.0.library.version()
    }

    /// Tells the watch which processes of this machine the others are.
    pub(super) fn know(&self, others: Vec<(usize, Process)>) {
        self.0.watched.know(others);
    }

    /// Has `end` be called when the communicator is ended before its time.
    pub(super) fn at_the_end(&self, end: End) {
        self.0.watched.at_the_end(end);
    }

    /// Watches work that others than NCCL submit to the device's stream.
    pub(super) fn beside(
        &self,
        work: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), GroupError> {
        self.0.watched.beside(work)
    }

    /// Begins an operation in the device's stream, and has it watched.
    fn begin(
        &self,
        work: impl FnOnce(&Library, (Comm, cust_raw::CUstream)) -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        let Inner {
            library,
            device,
            watched,
            ..
        } = &*self.0;
        device.enter().map_err(failed)?;
        watched.submit(|comm| library.together(|| work(library, (comm, device.raw_stream()))))
    }

    /// The stream of work beside the device's.
    fn side(&self) -> Result<&Beside, GroupError> {
        let beside = &self.0.beside;
        let made = beside.get_or_init(|| Beside::new(&self.0.device));
        made.as_ref().map_err(|error| failed(error.clone()))
    }

    /// Waits until what was begun has ended.
    fn wait(&self, peer: usize, until: Instant) -> Result<(), GroupError> {
        let mut tries = 0_u32;
        while !self.0.watched.has_passed()? {
            tries += 1;
            if tries > 64 {
                thread::yield_now();
            }
            if Instant::now() >= until {
                let error = super::missing(peer);
                self.0.watched.end(error.clone());
                return Err(error);
            }
        }
        Ok(())
    }

    fn buffer(&self, bytes: usize) -> Result<Buffer<u8>, GroupError> {
        let device = Device::Cuda(self.0.device.clone());
        device.zeros(bytes).map_err(failed)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let Some(comm) = self.watched.take() else {
            return;
        };
        let orderly = !thread::panicking()
            && self.device.enter().is_ok()
            && self.library.finalise(comm).is_ok();
        let until = Instant::now() + FAREWELL;
        while orderly && Instant::now() < until {
            match self.library.state(comm) {
                Ok(true) => return self.library.destroy(comm),
                Ok(false) => thread::sleep(Duration::from_millis(1)),
                Err(_) => break,
            }
        }
        self.watched.give_up(comm);
    }
}

/// Waits until all members have joined.
fn wait_for_all(
    library: &Library,
    comm: Comm,
    (limit, others): (Duration, &Others),
) -> Result<(), GroupError> {
    let until = Instant::now() + limit;
    loop {
        if let Some(error) = (others.departed)() {
            return Err(error);
        }
        match library.state(comm) {
            Ok(true) => return Ok(()),
            Ok(false) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            Ok(false) => {
                return Err(GroupError::Missing {
                    ranks: (others.absent)(),
                    operation: "the start of NCCL",
                    seconds: limit.as_secs(),
                });
            }
            // NCCL does not say who it was: whoever knows may not have heard of it yet.
            Err(error) => return Err(watch::named(error, &*others.departed)),
        }
    }
}

/// What waits for members that do not come, when a communicator is given up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Kernels on the device.
    Kernels,
    /// NCCL's threads, for members to join.
    Members,
    /// Nothing of ours.
    Nothing,
}

/// Gives a communicator up. It is aborted where somebody would wait for ever, and else left as it is: NCCL's abort waits for
/// threads of its own that may wait for a process that is no more, and ended processes by a fault where it met them at the wrong
/// moment (7 of 77 on two H100, version 2.28.9). Nobody waits for it.
fn give_up(library: &'static Library, device: &CudaDevice, comm: Comm, waiting: Waiting) {
    super::GIVEN_UP.store(true, Ordering::Relaxed);
    if waiting == Waiting::Nothing {
        return;
    }
    let (comm, device) = (watch::Handle(comm), device.clone());
    // Without a thread kernels wait on, and the process ends all the same.
    let _ = thread::Builder::new().spawn(move || {
        let comm = comm;
        let _ = device.enter();
        library.abort(comm.0);
    });
}

fn failed(error: DeviceError) -> GroupError {
    GroupError::Engine {
        operation: "the device of a member",
        message: error.to_string(),
    }
}

/// Has numbers added up in a stream.
fn add_up(
    library: &Library,
    numbers: &[Numbers],
    on: (Comm, cust_raw::CUstream),
) -> Result<(), GroupError> {
    numbers.iter().try_for_each(|numbers| {
        let of = DataType::from(numbers.kind);
        // SAFETY: whoever has them added borrows their buffer, which stays allocated until the device's stream, in which
        // it was written and is freed, has done this or waits for the stream that does.
        unsafe { library.all_reduce((numbers.address, numbers.len), of, on) }
    })
}

impl DeviceCommunicator for Nccl {
    fn name(&self) -> String {
        self.version()
    }

    fn sum(&self, numbers: &[Numbers]) -> Result<(), GroupError> {
        self.begin(|library, on| add_up(library, numbers, on))
    }

    fn sum_beside(&self, numbers: &[Numbers]) -> Result<(), GroupError> {
        let Inner {
            library, watched, ..
        } = &*self.0;
        let side = self.side()?;
        let stream = side.begin().map_err(failed)?;
        watched
            .submit_beside(|comm| library.together(|| add_up(library, numbers, (comm, stream))))?;
        side.give_way().map_err(failed)
    }

    fn join(&self) -> Result<(), GroupError> {
        self.side()?.join().map_err(failed)?;
        self.0.watched.joined()
    }

    fn sum_shares(&self, numbers: &[Numbers], shares: &Shares) -> Result<(), GroupError> {
        let (rank, size) = (self.0.rank, self.0.size);
        let (columns, each) = (shares.columns(), shares.each());
        self.begin(|library, on| {
            for numbers in numbers {
                let (of, of_column) = (DataType::from(numbers.kind), numbers.len / columns);
                let bytes = numbers.kind.bytes() * of_column;
                let shared = each * size;
                if each > 0 {
                    let own = numbers.address + (rank * each * bytes) as u64;
                    let from = numbers.address;
                    // SAFETY: as in `sum`; a member's share lies where it lies in all of them.
                    unsafe { library.reduce_scatter((from, own), each * of_column, of, on) }?;
                }
                let rest = columns - shared;
                if rest > 0 {
                    let at = numbers.address + (shared * bytes) as u64;
                    // SAFETY: as in `sum`.
                    unsafe { library.reduce((at, rest * of_column), of, size - 1, on) }?;
                }
            }
            Ok(())
        })
    }

    fn gather(&self, address: u64, lengths: &[usize]) -> Result<(), GroupError> {
        let rank = self.0.rank;
        self.begin(|library, on| {
            // As many of each, and what the last one has besides.
            let (last, others) = lengths.split_last().expect("a group has members");
            let each = others.first().copied().unwrap_or(*last);
            if each > 0 && each <= *last && others.iter().all(|bytes| *bytes == each) {
                let own = address + (rank * each) as u64;
                // SAFETY: as in `sum`; each member's bytes lie where they lie in all of them.
                unsafe { library.all_gather((own, address), each, on) }?;
                let (rest, at) = (last - each, address + (lengths.len() * each) as u64);
                return match rest {
                    0 => Ok(()),
                    // SAFETY: as in `sum`.
                    _ => unsafe { library.broadcast((at, rest), others.len(), on) },
                };
            }
            let mut at = address;
            for (rank, bytes) in lengths.iter().enumerate() {
                if *bytes > 0 {
                    // SAFETY: as in `sum`.
                    unsafe { library.broadcast((at, *bytes), rank, on) }?;
                }
                at += *bytes as u64;
            }
            Ok(())
        })
    }

    fn check(&self) -> Result<(), GroupError> {
        self.0.watched.check()
    }

    fn set_limit(&self, limit: Duration) {
        self.0.watched.set_limit(limit);
    }

    fn end(&self, error: GroupError) {
        self.0.watched.end(error);
    }
}

/// Processes that `torchrun` and its kin started: what members tell each other of the host goes the way of what lies on
/// devices.
#[derive(Debug)]
pub(super) struct Processes {
    nccl: Nccl,
    liveness: Option<Arc<Liveness>>,
}

impl Processes {
    /// Processes that have joined, and what they hear of each other's end.
    pub(super) fn new(nccl: Nccl, liveness: Option<Arc<Liveness>>) -> Processes {
        Processes { nccl, liveness }
    }
}

impl Communicator for Processes {
    fn name(&self) -> String {
        format!("{}, {} processes", self.nccl.version(), self.nccl.0.size)
    }

    fn rank(&self) -> usize {
        self.nccl.0.rank
    }

    fn size(&self) -> usize {
        self.nccl.0.size
    }

    fn send(&self, to: usize, bytes: &[u8], until: Instant) -> Result<(), GroupError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut buffer = self.nccl.buffer(bytes.len())?;
        buffer.copy_from_slice(bytes).map_err(failed)?;
        let place = (address(&mut buffer), bytes.len());
        self.nccl.begin(|library, on| {
            // SAFETY: the buffer lives until the end of the wait, or is freed in the order of the stream.
            unsafe { library.send(place, to, on) }
        })?;
        self.nccl.wait(to, until)
    }

    fn receive(&self, from: usize, bytes: &mut [u8], until: Instant) -> Result<(), GroupError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut buffer = self.nccl.buffer(bytes.len())?;
        let place = (address(&mut buffer), bytes.len());
        self.nccl.begin(|library, on| {
            // SAFETY: as in `send`.
            unsafe { library.receive(place, from, on) }
        })?;
        self.nccl.wait(from, until)?;
        buffer.copy_to_slice(bytes).map_err(failed)
    }

    fn all_gather(
        &self,
        own: &[u8],
        lengths: &[usize],
        all: &mut [u8],
        until: Instant,
    ) -> Result<(), GroupError> {
        if all.is_empty() {
            return Ok(());
        }
        let mut buffer = self.nccl.buffer(all.len())?;
        let first: usize = lengths[..self.rank()].iter().sum();
        buffer.write(first, own).map_err(failed)?;
        self.nccl.gather(address(&mut buffer), lengths)?;
        self.nccl.wait(self.rank(), until)?;
        buffer.copy_to_slice(all).map_err(failed)
    }

    fn exchange(
        &self,
        (parts, sent): (&[u8], &[usize]),
        (all, received): (&mut [u8], &[usize]),
        until: Instant,
    ) -> Result<(), GroupError> {
        let mut from = self.nccl.buffer(parts.len())?;
        let mut to = self.nccl.buffer(all.len())?;
        from.copy_from_slice(parts).map_err(failed)?;
        let (mut out, mut come) = (address(&mut from), address(&mut to));
        self.nccl.begin(|library, on| {
            for (peer, (sent, received)) in sent.iter().zip(received).enumerate() {
                if *sent > 0 {
                    // SAFETY: as in `send`.
                    unsafe { library.send((out, *sent), peer, on) }?;
                }
                if *received > 0 {
                    // SAFETY: as in `send`.
                    unsafe { library.receive((come, *received), peer, on) }?;
                }
                out += *sent as u64;
                come += *received as u64;
            }
            Ok(())
        })?;
        self.nccl.wait(self.rank(), until)?;
        for (place, piece) in slices_of(all, received)
            .into_iter()
            .zip(pieces(&to, received)?)
        {
            place.copy_from_slice(&piece);
        }
        Ok(())
    }

    fn departed(&self) -> Option<GroupError> {
        let lost = self.liveness.as_ref().and_then(|liveness| liveness.lost());
        lost.or_else(|| self.nccl.check().err())
    }

    fn report(&self, message: &str) {
        if let Some(liveness) = &self.liveness {
            liveness.report(message);
        }
    }

    fn abandon(&self) {
        self.nccl.0.watched.end(GroupError::Engine {
            operation: "the group",
            message: "this member gave it up".to_owned(),
        });
    }
}

impl From<NumberKind> for DataType {
    fn from(kind: NumberKind) -> DataType {
        match kind {
            NumberKind::F32 => DataType::F32,
            NumberKind::F64 => DataType::F64,
            NumberKind::I64 => DataType::I64,
            NumberKind::U64 => DataType::U64,
        }
    }
}

fn address(buffer: &mut Buffer<u8>) -> u64 {
    buffer.output().pointer().addr() as u64
}

/// What lies in a buffer, in pieces of these lengths.
fn pieces(buffer: &Buffer<u8>, lengths: &[usize]) -> Result<Vec<Vec<u8>>, GroupError> {
    let all = buffer.to_vec().map_err(failed)?;
    let mut rest = &all[..];
    let each = lengths.iter().map(|len| {
        let (piece, others) = rest.split_at(*len);
        rest = others;
        piece.to_vec()
    });
    Ok(each.collect())
}
