//! NCCL, opened at run time. Level: sys.
//!
//! Declared here are the functions that are needed, as NCCL 2.14 and all later versions have them. The library is looked for
//! where `WARPFUSE_NCCL` says, among those that the process has opened already (PyTorch's), in the folders where the package
//! `nvidia-nccl-cu13` puts it, and where the dynamic linker looks.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use cust_raw::CUstream;
use libloading::Library as Opened;

use super::places::candidates;
use crate::device::group::GroupError;

/// `ncclComm_t`.
pub(super) type Comm = *mut c_void;

/// `ncclUniqueId`: by which the members of a communicator find each other.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(super) struct UniqueId(pub(super) [u8; 128]);

/// The part of `ncclConfig_t` that version 2.14 had; NCCL fills in what came later.
#[repr(C)]
struct Config {
    size: usize,
    magic: u32,
    version: u32,
    blocking: c_int,
}

const MAGIC: u32 = 0xcafe_beef;
/// That the configuration is of version 2.14.
const CONFIG_VERSION: u32 = 21_400;

/// `ncclSuccess` and `ncclInProgress`.
const SUCCESS: c_int = 0;
const IN_PROGRESS: c_int = 7;

/// `ncclDataType_t`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum DataType {
    U8 = 1,
    I64 = 4,
    U64 = 5,
    F32 = 7,
    F64 = 8,
}

/// `ncclSum`.
const SUM: c_int = 0;

type Bare = unsafe extern "C" fn() -> c_int;
type Text = unsafe extern "C" fn(c_int) -> *const c_char;
type LastError = unsafe extern "C" fn(Comm) -> *const c_char;
type Version = unsafe extern "C" fn(*mut c_int) -> c_int;
type GetId = unsafe extern "C" fn(*mut UniqueId) -> c_int;
type Init = unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int, *mut Config) -> c_int;
type OfComm = unsafe extern "C" fn(Comm) -> c_int;
type AsyncError = unsafe extern "C" fn(Comm, *mut c_int) -> c_int;
type AllReduce = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    usize,
    DataType,
    c_int,
    Comm,
    CUstream,
) -> c_int;
type AllGather =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, DataType, Comm, CUstream) -> c_int;
type Reduce = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    usize,
    DataType,
    c_int,
    c_int,
    Comm,
    CUstream,
) -> c_int;
/// The integer is the rank whose bytes they are.
type Broadcast = AllReduce;
type Send = unsafe extern "C" fn(*const c_void, usize, DataType, c_int, Comm, CUstream) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, usize, DataType, c_int, Comm, CUstream) -> c_int;

/// Its functions.
#[derive(Debug)]
pub(super) struct Library {
    version: c_int,
    text: Text,
    last_error: Option<LastError>,
    get_id: GetId,
    init: Init,
    finalise: OfComm,
    destroy: OfComm,
    abort: OfComm,
    async_error: AsyncError,
    all_reduce: AllReduce,
    reduce_scatter: AllReduce,
    all_gather: AllGather,
    reduce: Reduce,
    broadcast: Broadcast,
    send: Send,
    receive: Receive,
    group_start: Bare,
    group_end: Bare,
}

static LIBRARY: OnceLock<Result<Library, GroupError>> = OnceLock::new();

/// The oldest version whose communicators need not block.
const OLDEST: c_int = 21_400;

impl Library {
    /// The library, opened on the first call and never closed.
    pub(super) fn find() -> Result<&'static Library, GroupError> {
        LIBRARY
            .get_or_init(Library::open)
            .as_ref()
            .map_err(Clone::clone)
    }

    fn open() -> Result<Library, GroupError> {
        let mut tried = Vec::new();
        for candidate in candidates() {
            match candidate.open() {
                // SAFETY: the library is never closed, and its functions are NCCL's.
                Ok(library) => match unsafe { Library::of(Box::leak(Box::new(library))) } {
                    Ok(library) => return Ok(library),
                    Err(reason) => tried.push(format!("{candidate}: {reason}")),
                },
                Err(reason) => tried.push(reason),
            }
        }
        Err(GroupError::Nccl {
            message: tried.join("; "),
        })
    }

    /// # Safety
    /// The library is NCCL.
    unsafe fn of(library: &'static Opened) -> Result<Library, String> {
        // SAFETY: the types are those of NCCL's header.
        unsafe {
            let version: Version = symbol(library, c"ncclGetVersion")?;
            let mut number = 0;
            version(&raw mut number);
            if number < OLDEST {
                return Err(format!("expected version 2.14 or later, found {number}"));
            }
            Ok(Library {
                version: number,
                text: symbol(library, c"ncclGetErrorString")?,
                last_error: symbol(library, c"ncclGetLastError").ok(),
                get_id: symbol(library, c"ncclGetUniqueId")?,
                init: symbol(library, c"ncclCommInitRankConfig")?,
                finalise: symbol(library, c"ncclCommFinalize")?,
                destroy: symbol(library, c"ncclCommDestroy")?,
                abort: symbol(library, c"ncclCommAbort")?,
                async_error: symbol(library, c"ncclCommGetAsyncError")?,
                all_reduce: symbol(library, c"ncclAllReduce")?,
                reduce_scatter: symbol(library, c"ncclReduceScatter")?,
                all_gather: symbol(library, c"ncclAllGather")?,
                reduce: symbol(library, c"ncclReduce")?,
                broadcast: symbol(library, c"ncclBroadcast")?,
                send: symbol(library, c"ncclSend")?,
                receive: symbol(library, c"ncclRecv")?,
                group_start: symbol(library, c"ncclGroupStart")?,
                group_end: symbol(library, c"ncclGroupEnd")?,
            })
        }
    }

    /// Its version, for people.
    pub(super) fn version(&self) -> String {
        let (major, minor, patch) = (
            self.version / 10_000,
            self.version / 100 % 100,
            self.version % 100,
        );
        format!("NCCL {major}.{minor}.{patch}")
    }

    /// An id for a new communicator; with the variable `NCCL_COMM_ID` one that is the same in every process.
    pub(super) fn unique_id(&self) -> Result<UniqueId, GroupError> {
        let mut id = UniqueId([0; 128]);
        // SAFETY: the pointer is writable.
        self.check("ncclGetUniqueId", unsafe { (self.get_id)(&raw mut id) })?;
        Ok(id)
    }

    /// Begins to join the others; [`Library::state`] says when that is done. The device's context is the thread's.
    pub(super) fn join(&self, id: UniqueId, rank: usize, size: usize) -> Result<Comm, GroupError> {
        let mut comm = ptr::null_mut();
        let mut config = Config {
            size: size_of::<Config>(),
            magic: MAGIC,
            version: CONFIG_VERSION,
            blocking: 0,
        };
        let (rank, size) = (rank as c_int, size as c_int);
        // SAFETY: both pointers are writable during the call, and the configuration says how long it is.
        let code = unsafe { (self.init)(&raw mut comm, size, id, rank, &raw mut config) };
        self.check("ncclCommInitRankConfig", code)?;
        Ok(comm)
    }

    /// Whether all that was begun has been submitted.
    pub(super) fn state(&self, comm: Comm) -> Result<bool, GroupError> {
        let mut code = SUCCESS;
        // SAFETY: the communicator exists, and the pointer is writable.
        self.check("ncclCommGetAsyncError", unsafe {
            (self.async_error)(comm, &raw mut code)
        })?;
        self.check("NCCL's work", code)?;
        Ok(code != IN_PROGRESS)
    }

    /// # Safety
    /// `numbers` of this type lie at `address` on the communicator's device until the stream has done it.
    pub(super) unsafe fn all_reduce(
        &self,
        (address, numbers): (u64, usize),
        of: DataType,
        (comm, stream): (Comm, CUstream),
    ) -> Result<(), GroupError> {
        let at = on_device(address);
        // SAFETY: as the caller promises; in place.
        let code = unsafe { (self.all_reduce)(at, at, numbers, of, SUM, comm, stream) };
        self.check("ncclAllReduce", code)
    }

    /// Sums of as many numbers as `own` times the members: those of the rank's own at the second address.
    ///
    /// # Safety
    /// As [`Library::all_reduce`], of what lies at both addresses.
    pub(super) unsafe fn reduce_scatter(
        &self,
        (all, to): (u64, u64),
        own: usize,
        of: DataType,
        (comm, stream): (Comm, CUstream),
    ) -> Result<(), GroupError> {
        let (all, to) = (on_device(all), on_device(to));
        // SAFETY: as the caller promises.
        let code = unsafe { (self.reduce_scatter)(all, to, own, of, SUM, comm, stream) };
        self.check("ncclReduceScatter", code)
    }

    /// As many bytes of each rank one after the other, of which the rank's own are at the first address; in place.
    ///
    /// # Safety
    /// As [`Library::all_reduce`], of what lies at both addresses.
    pub(super) unsafe fn all_gather(
        &self,
        (own, all): (u64, u64),
        bytes: usize,
        (comm, stream): (Comm, CUstream),
    ) -> Result<(), GroupError> {
        let (own, all) = (on_device(own), on_device(all));
        // SAFETY: as the caller promises.
        let code = unsafe { (self.all_gather)(own, all, bytes, DataType::U8, comm, stream) };
        self.check("ncclAllGather", code)
    }

    /// Sums that one rank gets.
    ///
    /// # Safety
    /// As [`Library::all_reduce`].
    pub(super) unsafe fn reduce(
        &self,
        (address, numbers): (u64, usize),
        of: DataType,
        root: usize,
        (comm, stream): (Comm, CUstream),
    ) -> Result<(), GroupError> {
        let at = on_device(address);
        // SAFETY: as the caller promises; in place.
        let code = unsafe { (self.reduce)(at, at, numbers, of, SUM, root as c_int, comm, stream) };
        self.check("ncclReduce", code)
    }

    /// # Safety
    /// As [`Library::all_reduce`].
    pub(super) unsafe fn broadcast(
        &self,
        (address, bytes): (u64, usize),
        root: usize,
        (comm, stream): (Comm, CUstream),
    ) -> Result<(), GroupError> {
        let (at, of) = (on_device(address), DataType::U8);
        // SAFETY: as the caller promises; in place.
        let code = unsafe { (self.broadcast)(at, at, bytes, of, root as c_int, comm, stream) };
        self.check("ncclBroadcast", code)
    }

    /// # Safety
    /// As [`Library::all_reduce`].
    pub(super) unsafe fn send(
        &self,
        (address, bytes): (u64, usize),
        to: usize,
        (comm, stream): (Comm, CUstream),
    ) -> Result<(), GroupError> {
        let (at, of) = (on_device(address), DataType::U8);
        // SAFETY: as the caller promises.
        let code = unsafe { (self.send)(at, bytes, of, to as c_int, comm, stream) };
        self.check("ncclSend", code)
    }

    /// # Safety
    /// As [`Library::all_reduce`].
    pub(super) unsafe fn receive(
        &self,
        (address, bytes): (u64, usize),
        from: usize,
        (comm, stream): (Comm, CUstream),
    ) -> Result<(), GroupError> {
        let (at, of) = (on_device(address), DataType::U8);
        // SAFETY: as the caller promises.
        let code = unsafe { (self.receive)(at, bytes, of, from as c_int, comm, stream) };
        self.check("ncclRecv", code)
    }

    /// Has `work` begin several operations, which become one.
    pub(super) fn together(
        &self,
        work: impl FnOnce() -> Result<(), GroupError>,
    ) -> Result<(), GroupError> {
        // SAFETY: every start has an end.
        self.check("ncclGroupStart", unsafe { (self.group_start)() })?;
        let begun = work();
        // SAFETY: as above.
        let ended = self.check("ncclGroupEnd", unsafe { (self.group_end)() });
        begun.and(ended)
    }

    /// Ends a communicator that all members end.
    pub(super) fn finalise(&self, comm: Comm) -> Result<(), GroupError> {
        // SAFETY: the communicator exists.
        self.check("ncclCommFinalize", unsafe { (self.finalise)(comm) })
    }

    /// Frees a communicator that has been finalised.
    pub(super) fn destroy(&self, comm: Comm) {
        // SAFETY: nobody uses it afterwards. Where it fails nothing is left to do.
        let _ = unsafe { (self.destroy)(comm) };
    }

    /// Ends a communicator whatever its state, and the kernels that wait for other members.
    pub(super) fn abort(&self, comm: Comm) {
        // SAFETY: nobody uses it afterwards. Where it fails nothing is left to do.
        let _ = unsafe { (self.abort)(comm) };
    }

    fn check(&self, operation: &'static str, code: c_int) -> Result<(), GroupError> {
        if code == SUCCESS || code == IN_PROGRESS {
            return Ok(());
        }
        // SAFETY: NCCL has a text, that lives as long as it, for any code.
        let text = unsafe { CStr::from_ptr((self.text)(code)) }.to_string_lossy();
        let more = self.last_error.map(|last| {
            // SAFETY: without a communicator it is the process's last error; the text is copied at once.
            let more = unsafe { last(ptr::null_mut()) };
            match more.is_null() {
                true => String::new(),
                // SAFETY: it is no null pointer, hence a text.
                false => unsafe { CStr::from_ptr(more) }
                    .to_string_lossy()
                    .trim()
                    .to_owned(),
            }
        });
        let message = match more.filter(|more| !more.is_empty()) {
            Some(more) => format!("{text}: {more}"),
            None => text.into_owned(),
        };
        Err(GroupError::Engine { operation, message })
    }
}

/// A device's address as a pointer, which is never followed here.
fn on_device(address: u64) -> *mut c_void {
    ptr::without_provenance_mut(address as usize)
}

/// # Safety
/// F is the type of the function of this name.
unsafe fn symbol<F: Copy>(library: &'static Opened, name: &CStr) -> Result<F, String> {
    // SAFETY: as the caller promises.
    let found = unsafe { library.get::<F>(name) };
    found
        .map(|function| *function)
        .map_err(|_| format!("it has no {}", name.to_string_lossy()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_those_of_the_header() {
        assert_eq!(size_of::<UniqueId>(), 128);
        assert_eq!(std::mem::offset_of!(Config, blocking), 16);
    }
}
