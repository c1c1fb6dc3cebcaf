//! Small sums in one launch over each other's memory: [`gpu_kernels::peers`].
//!
//! Each member has a region of device memory that the kernels of all reach: threads of one process by its addresses,
//! processes of one machine by handles that the driver gives out. NCCL, whose sums of a few bytes take several times as
//! long, remains for the larger ones, and for GPUs that do not reach each other.

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use gpu_kernels::peers::{Addend, MOST_BLOCKS, MOST_FIGURES, MOST_MEMBERS, PeerArgs, PeerSums};
use gpu_kernels::{Family, Launch, Out};

use super::Group;
use super::between_devices::{NumberKind, Numbers};
use super::error::GroupError;
use super::peers::Process;
use crate::device::cuda::{CudaDevice, Foreign};
use crate::device::{Buffer, Device, DeviceError, Prepared};
use crate::parallel::locked;

/// Bytes of a member's numbers at most: beyond them NCCL's sums, which do not send everything to everybody, are faster.
const ROOM: usize = 256 << 10;
/// Threads of a block, and elements that one takes at least.
const THREADS: u32 = 512;
const PER_THREAD: usize = 2;

/// Where things lie in a region.
const STOP: usize = 0;
const FLAGS: usize = 256;
const FIGURES: usize = 1_024;
const PARTS: usize = 4_096;

const _: () = assert!(FLAGS + MOST_MEMBERS * MOST_BLOCKS as usize * 4 <= FIGURES);
const _: () = assert!(FIGURES + 2 * MOST_MEMBERS * MOST_FIGURES as usize * 8 <= PARTS);

/// The regions of all members, as one of them reaches them.
pub(super) struct Windows {
    device: CudaDevice,
    rank: usize,
    size: usize,
    /// One's own, which the others write; a panic leaves it as it is.
    own: AssertUnwindSafe<Buffer<u8>>,
    addresses: [u64; MOST_MEMBERS],
    _foreign: Vec<Foreign>,
    /// Sums so far.
    count: AtomicU32,
    kernels: Mutex<Kernels>,
}

/// A region of one's own, and what other processes open it by.
type Region = (Buffer<u8>, [u8; 64]);

/// Where the regions of all members are, and those of other processes.
type Reached = ([u64; MOST_MEMBERS], Vec<Foreign>);

/// Prepared kernels by their blocks.
#[derive(Default)]
struct Kernels {
    f32: HashMap<u32, Prepared<PeerSums<f32>>>,
    f64: HashMap<u32, Prepared<PeerSums<f64>>>,
    u64: HashMap<u32, Prepared<PeerSums<u64>>>,
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
        let Some((own, ticket)) = all_have(group, own)? else {
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
            own: AssertUnwindSafe(own),
            addresses,
            _foreign: foreign,
            count: AtomicU32::new(0),
            kernels: Mutex::default(),
        }))
    }

    /// A region, and what other processes open it by; none where members are too many, or on other machines.
    fn alone(group: &Group, device: &CudaDevice) -> Result<Option<Region>, DeviceError> {
        let here = Process::own().unwrap_or(bytemuck::Zeroable::zeroed());
        let all = group.all_gather(&[here])?;
        let size = group.size();
        if size > MOST_MEMBERS || !all.iter().all(|other| here.is_beside(other)) {
            return Ok(None);
        }
        device.check_kernels()?;
        let region = Device::Cuda(device.clone()).zeros(PARTS + 2 * size * ROOM)?;
        let address = region.device_address().unwrap_or_default();
        device.synchronize()?;
        // Not of every machine: threads of one process need none.
        let ticket = device.ticket(address).unwrap_or([0; 64]);
        Ok(Some((region, ticket)))
    }

    /// Whether these numbers are few enough.
    pub(super) fn take(&self, numbers: &[Numbers]) -> bool {
        numbers
            .iter()
            .all(|numbers| numbers.len * bytes_of(numbers.kind) <= ROOM)
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
        let blocks = own.len.div_ceil(THREADS as usize * PER_THREAD).max(1);
        let grid = (blocks.next_power_of_two() as u32).min(MOST_BLOCKS);
        let kernel = match kernels.get(&grid) {
            Some(kernel) => kernel.clone(),
            None => {
                let shape = Launch {
                    grid,
                    block: THREADS,
                    shared_bytes: 0,
                };
                let device = Device::Cuda(self.device.clone());
                let made = device.prepare(&PeerSums::<T>::entries()[0], shape)?;
                kernels.entry(grid).or_insert(made).clone()
            }
        };
        let number = self.count.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        kernel.launch(self.args::<T>(own, figures, number))
    }

    fn args<T: Addend>(
        &self,
        own: &Numbers,
        figures: Option<Numbers>,
        number: u32,
    ) -> PeerArgs<'_, T> {
        let room = ROOM / size_of::<T>();
        let each = 2 * self.size;
        let of = |member: usize, offset: usize| self.addresses[member] + offset as u64;
        PeerArgs {
            rank: self.rank as u32,
            size: self.size as u32,
            number,
            room: room as u64,
            values: out(own.address, own.len),
            figures: figures.map_or(Out::none(), |of| out(of.address, of.len)),
            parts: self.each(|member| out(of(member, PARTS), each * room)),
            figure_parts: self
                .each(|member| out(of(member, FIGURES), each * MOST_FIGURES as usize)),
            flags: self.each(|member| {
                let flags = self.size * MOST_BLOCKS as usize;
                out(of(member, FLAGS), flags)
            }),
            stop: out(of(self.rank, STOP), 1),
        }
    }

    fn each<'a, T>(&self, of: impl Fn(usize) -> Out<'a, T>) -> [Out<'a, T>; MOST_MEMBERS] {
        std::array::from_fn(|member| match member < self.size {
            true => of(member),
            false => Out::none(),
        })
    }

    /// Ends kernels that wait for others.
    pub(super) fn stop(&self) {
        let stop = self.own.device_address().unwrap_or_default() + STOP as u64;
        // Where that fails the context is lost, and its kernels with it.
        let _ = self.device.write_beside(stop, 1);
    }
}

fn bytes_of(kind: NumberKind) -> usize {
    match kind {
        NumberKind::F32 => 4,
        NumberKind::F64 | NumberKind::I64 | NumberKind::U64 => 8,
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
