//! Small sums in one launch over each other's memory: [`gpu_kernels::peers`].
//!
//! Each member has a region of device memory that the kernels of all reach: threads of one process by its addresses,
//! processes of one machine by handles that the driver gives out. NCCL, whose sums of a few bytes take several times as
//! long, remains for the larger ones, and for GPUs that do not reach each other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use gpu_kernels::peers::{Addend, MOST_FIGURES, MOST_MEMBERS, PeerArgs, PeerSums, lines, packets};
use gpu_kernels::{Family, Launch, Out};

use super::Group;
use super::between_devices::{NumberKind, Numbers};
use super::error::GroupError;
use crate::device::cuda::{CudaDevice, Foreign};
use crate::device::{Buffer, Device, DeviceError, Prepared};
use crate::parallel::locked;
use crate::process::Process;

/// Bytes of a member's numbers at most: beyond them NCCL's sums, which do not send everything to everybody, are faster.
const ROOM: usize = 256 << 10;
/// Lines of as many bytes, of numbers of 4 bytes as of 8.
const LINES: u64 = lines(ROOM as u64 / 8, 8);
const _: () = assert!(LINES == lines(ROOM as u64 / 4, 4));
/// Threads of a block: one for each line. All blocks of the largest sum run at the same time on any GPU.
const THREADS: u32 = 512;

/// Where things lie in a region.
const STOP: usize = 0;
const PACKETS: usize = 256;

/// Sums have numbers of 32 bits, and memory may hold packets of any earlier one: before they begin again all of it is
/// cleared. The last number.
const LAST: u32 = u32::MAX;
/// The first number: soon before the last one, so that what happens there happens in every longer job.
const FIRST: u32 = LAST - 10_000;

/// The regions of all members, as one of them reaches them.
pub(super) struct Windows {
    device: CudaDevice,
    rank: usize,
    size: usize,
    /// One's own, which the others write; a panic leaves it as it is.
    own: AssertUnwindSafe<Mutex<Buffer<u8>>>,
    own_address: u64,
    addresses: [u64; MOST_MEMBERS],
    _foreign: Vec<Foreign>,
    /// The next sum's number.
    next: AtomicU32,
    kernels: Mutex<Kernels>,
}

/// What a member has by itself: a region, what other processes open it by, and kernels.
type Own = (Buffer<u8>, [u8; 64], Kernels);

/// Where the regions of all members are, and those of other processes.
type Reached = ([u64; MOST_MEMBERS], Vec<Foreign>);

/// Prepared kernels by their blocks.
struct Kernels {
    f32: HashMap<u32, Prepared<PeerSums<f32>>>,
    f64: HashMap<u32, Prepared<PeerSums<f64>>>,
    u64: HashMap<u32, Prepared<PeerSums<u64>>>,
}

impl Kernels {
    /// Those of one block, which are all there or none: a program may have been built without.
    fn of(device: &CudaDevice) -> Result<Kernels, DeviceError> {
        Ok(Kernels {
            f32: HashMap::from([(1, prepare(device, 1)?)]),
            f64: HashMap::from([(1, prepare(device, 1)?)]),
            u64: HashMap::from([(1, prepare(device, 1)?)]),
        })
    }
}

/// The kernel of sums with this number of blocks.
fn prepare<T: Addend>(device: &CudaDevice, grid: u32) -> Result<Prepared<PeerSums<T>>, DeviceError>
where
    PeerSums<T>: for<'a> Family<Args<'a> = PeerArgs<'a, T>>,
{
    let shape = Launch {
        grid,
        block: THREADS,
        shared_bytes: 0,
    };
    Device::Cuda(device.clone()).prepare(&PeerSums::<T>::entries()[0], shape)
}

impl fmt::Debug for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Windows({} of {})", self.rank, self.size)
    }
}

impl Windows {
    /// Opens the regions of all members; `None` where not all reach each other. Every member has to call it.
    pub(super) fn open(group: &Group, device: &CudaDevice) -> Result<Option<Windows>, GroupError> {
        let own = match Windows::alone(group, device) {
            Ok(own) => own,
            Err(error) => {
                tracing::debug!(%error, "no memory that other GPUs reach");
                None
            }
        };
        let Some((own, ticket, kernels)) = all_have(group, own)? else {
            return Ok(None);
        };
        let facts = [
            own.device_address().unwrap_or_default(),
            u64::from(device.ordinal()),
            u64::from(std::process::id()),
        ];
        let facts = group.all_gather(&facts)?;
        let tickets = group.all_gather(&[ticket])?;
        let reached = reach(device, group.rank(), &facts, &tickets);
        let reached = reached.unwrap_or_else(|error| {
            tracing::debug!(%error, "memory of other GPUs is out of reach");
            None
        });
        let Some((addresses, foreign)) = all_have(group, reached)? else {
            return Ok(None);
        };
        Ok(Some(Windows {
            device: device.clone(),
            rank: group.rank(),
            size: group.size(),
            own_address: own.device_address().unwrap_or_default(),
            own: AssertUnwindSafe(Mutex::new(own)),
            addresses,
            _foreign: foreign,
            next: AtomicU32::new(FIRST),
            kernels: Mutex::new(kernels),
        }))
    }

    /// A region, and what other processes open it by; none where members are too many, or on other machines.
    fn alone(group: &Group, device: &CudaDevice) -> Result<Option<Own>, DeviceError> {
        let here = Process::own().unwrap_or(bytemuck::Zeroable::zeroed());
        let all = group.all_gather(&[here])?;
        let size = group.size();
        if size > MOST_MEMBERS || !all.iter().all(|other| here.is_beside(other)) {
            return Ok(None);
        }
        let kernels = Kernels::of(device)?;
        let region = Device::Cuda(device.clone())
            .zeros(PACKETS + 8 * packets(size as u64, LINES) as usize)?;
        let address = region.device_address().unwrap_or_default();
        device.synchronize()?;
        // Once before: what `stop` writes by has to be there when it is called. A thread that loads a module waits for kernels
        // that wait for others, and the driver creates no stream meanwhile.
        device.write_beside(address + STOP as u64, 0)?;
        // Not of every machine: threads of one process need none.
        let ticket = device.ticket(address).unwrap_or([0; 64]);
        Ok(Some((region, ticket, kernels)))
    }

    /// Whether these numbers are few enough.
    pub(super) fn take(&self, numbers: &[Numbers]) -> bool {
        numbers
            .iter()
            .all(|numbers| numbers.len * numbers.kind.bytes() <= ROOM)
    }

    /// Whether there are numbers left for the sums of this number of arrays; [`Windows::begin_again`] if not. All members count
    /// alike.
    pub(super) fn have_numbers(&self, sums: usize) -> bool {
        (LAST - self.next.load(Ordering::Relaxed)) as usize >= sums
    }

    /// Clears this member's memory, in the device's stream, and counts from 1. Every member has to, and nobody may
    /// [sum](Windows::sum) before all have: a sum by NCCL has to lie in between, in every stream.
    pub(super) fn begin_again(&self) -> Result<(), DeviceError> {
        self.next.store(1, Ordering::Relaxed);
        locked(&self.own).fill_zero()
    }

    /// Adds up numbers, which are [few enough](Windows::take), in the device's stream.
    pub(super) fn sum(&self, numbers: &[Numbers]) -> Result<(), DeviceError> {
        let is_small = |of: &&Numbers| of.kind == NumberKind::F64 && of.len as u64 <= MOST_FIGURES;
        let figures = numbers.iter().find(is_small).filter(|_| numbers.len() > 1);
        let mut beside = figures.copied();
        let is_beside = |of: &Numbers| figures.is_some_and(|figures| std::ptr::eq(figures, of));
        for own in numbers.iter().filter(|own| !is_beside(own)) {
            self.launch(own, beside.take())?;
        }
        Ok(())
    }

    fn launch(&self, own: &Numbers, figures: Option<Numbers>) -> Result<(), DeviceError> {
        let mut kernels = locked(&self.kernels);
        match own.kind {
            NumberKind::F32 => self.launch_of::<f32>(&mut kernels.f32, own, figures),
            NumberKind::F64 => self.launch_of::<f64>(&mut kernels.f64, own, figures),
            NumberKind::I64 | NumberKind::U64 => {
                self.launch_of::<u64>(&mut kernels.u64, own, figures)
            }
        }
    }

    fn launch_of<T: Addend>(
        &self,
        kernels: &mut HashMap<u32, Prepared<PeerSums<T>>>,
        own: &Numbers,
        figures: Option<Numbers>,
    ) -> Result<(), DeviceError>
    where
        PeerSums<T>: for<'a> Family<Args<'a> = PeerArgs<'a, T>>,
    {
        let lines = lines(own.len as u64, T::SIZE) as u32;
        let grid = lines.div_ceil(THREADS).max(1).next_power_of_two();
        let kernel = match kernels.entry(grid) {
            Entry::Occupied(kernel) => kernel.into_mut(),
            Entry::Vacant(place) => place.insert(prepare(&self.device, grid)?),
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        kernel.launch(self.args::<T>(own, figures, number))
    }

    fn args<T: Addend>(
        &self,
        own: &Numbers,
        figures: Option<Numbers>,
        number: u32,
    ) -> PeerArgs<'_, T> {
        let each = packets(self.size as u64, LINES) as usize;
        PeerArgs {
            rank: self.rank as u32,
            size: self.size as u32,
            number,
            room: LINES,
            values: out(own.address, own.len),
            figures: figures.map_or(Out::none(), |of| out(of.address, of.len)),
            packets: std::array::from_fn(|member| match member < self.size {
                true => out(self.addresses[member] + PACKETS as u64, each),
                false => Out::none(),
            }),
            stop: out(self.own_address + STOP as u64, 1),
        }
    }

    /// Ends kernels that wait for others.
    pub(super) fn stop(&self) {
        let stop = self.own_address + STOP as u64;
        // Where that fails the context is lost, and its kernels with it.
        let _ = self.device.write_beside(stop, 1);
    }
}

/// Memory of a device as an argument.
fn out<'a, T>(address: u64, len: usize) -> Out<'a, T> {
    let pointer = std::ptr::without_provenance_mut(address as usize);
    // SAFETY: numbers to be added are borrowed by whoever has them added, and freed in the order of the stream; regions
    // live as long as the group, which whoever launches holds. What several members reach they reach as the kernel says.
    unsafe { Out::new(pointer, len as u64) }
}

/// What every member has, if all have it.
fn all_have<R>(group: &Group, own: Option<R>) -> Result<Option<R>, GroupError> {
    let mut missing = [u64::from(own.is_none())];
    group.sum(&mut missing)?;
    Ok(own.filter(|_| missing == [0]))
}

/// The addresses of all regions, by which kernels of this device reach them.
fn reach(
    device: &CudaDevice,
    rank: usize,
    facts: &[u64],
    tickets: &[[u8; 64]],
) -> Result<Option<Reached>, DeviceError> {
    let (mut addresses, mut foreign) = ([0; MOST_MEMBERS], Vec::new());
    let process = u64::from(std::process::id());
    for (member, facts) in facts.chunks(3).enumerate() {
        addresses[member] = if member == rank {
            facts[0]
        } else if facts[2] == process {
            if !device.reach(&CudaDevice::open(facts[1] as u32)?)? {
                return Ok(None);
            }
            facts[0]
        } else {
            let opened = device.open_foreign(tickets[member])?;
            foreign.push(opened);
            foreign.last().map_or(0, Foreign::address)
        };
    }
    Ok(Some((addresses, foreign)))
}
