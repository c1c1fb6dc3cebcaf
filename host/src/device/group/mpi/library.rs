//! An MPI library, opened at run time. Level: sys.
//!
//! MPI names functions and not their binary interface, of which two are about. In Open MPI a communicator, a data type, a
//! request are pointers, and those that exist from the beginning are variables of the library. In MPICH, and what shares its
//! interface (Intel's and Cray's libraries, MVAPICH), they are C integers with values that its header lists. Both are held
//! here in a word: as an argument a function takes the whole of it or its lower half, and a result of 32 bits is written into
//! a word of zeros. That is right where integer arguments are passed in registers of 64 bits or in the lower half of a word
//! of the stack, and bytes are little-endian: on x86-64 and on AArch64.

use std::error::Error;
use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library as Opened;

use super::super::error::GroupError;

/// A communicator, a data type, an error handler or a request: a pointer, or a C integer in the lower half.
pub(super) type Handle = usize;

/// A call that nobody waits for yet, with the memory that it reads and writes.
pub(super) struct Request {
    handle: Handle,
    own: Vec<u8>,
    into: Vec<u8>,
    counts: Vec<Vec<c_int>>,
}

impl Request {
    fn new(own: &[u8], len: usize, counts: Vec<Vec<c_int>>) -> Request {
        Request {
            handle: 0,
            own: own.to_vec(),
            into: vec![0; len],
            counts,
        }
    }

    /// What came, once it is done.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.into
    }
}

type InitThread = unsafe extern "C" fn(*mut c_int, *mut c_void, c_int, *mut c_int) -> c_int;
type Flag = unsafe extern "C" fn(*mut c_int) -> c_int;
type Finalise = unsafe extern "C" fn() -> c_int;
type CommOut = unsafe extern "C" fn(Handle, *mut c_int) -> c_int;
type CommDup = unsafe extern "C" fn(Handle, *mut Handle) -> c_int;
type CommSet = unsafe extern "C" fn(Handle, Handle) -> c_int;
type CommAbort = unsafe extern "C" fn(Handle, c_int) -> c_int;
type Test = unsafe extern "C" fn(*mut Handle, *mut c_int, *mut c_void) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int, *mut c_char, *mut c_int) -> c_int;
type Send =
    unsafe extern "C" fn(*const u8, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type Receive =
    unsafe extern "C" fn(*mut u8, c_int, Handle, c_int, c_int, Handle, *mut Handle) -> c_int;
type AllGather = unsafe extern "C" fn(
    *const u8,
    c_int,
    Handle,
    *mut u8,
    *const c_int,
    *const c_int,
    Handle,
    Handle,
    *mut Handle,
) -> c_int;
type AllToAll = unsafe extern "C" fn(
    *const u8,
    *const c_int,
    *const c_int,
    Handle,
    *mut u8,
    *const c_int,
    *const c_int,
    Handle,
    Handle,
    *mut Handle,
) -> c_int;

/// Its functions and constants.
#[derive(Debug)]
pub(super) struct Library {
    name: String,
    world: Handle,
    byte: Handle,
    errors_return: Handle,
    /// `MPI_STATUS_IGNORE`.
    ignored: usize,
    init_thread: InitThread,
    initialised: Flag,
    finalised: Flag,
    finalise: Finalise,
    rank: CommOut,
    size: CommOut,
    duplicate: CommDup,
    set_handler: CommSet,
    abort: CommAbort,
    test: Test,
    error_string: ErrorString,
    send: Send,
    receive: Receive,
    all_gather: AllGather,
    all_to_all: AllToAll,
}

/// Open MPI's file names, then those of MPICH and its kin.
const OPEN_MPI: [&str; 1] = ["libmpi.so.40"];
const MPICH: [&str; 3] = ["libmpi.so.12", "libmpich.so.12", "libmpi_cray.so.12"];
const ANY: [&str; 1] = ["libmpi.so"];
/// Messages that functions of MPI write at most; Open MPI's limit is 256.
const LONGEST_MESSAGE: usize = 512;
/// Calls of one thread at a time.
const SERIALIZED: c_int = 2;

static LIBRARY: OnceLock<Result<Library, GroupError>> = OnceLock::new();

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
        for name in names() {
            match opened(&name) {
                // SAFETY: the library is never closed, and its functions are those of the standard of MPI 3.
                Ok(library) => match unsafe { Library::of(name, Box::leak(Box::new(library))) } {
                    Ok(library) => return Ok(library),
                    Err(reason) => tried.push(reason),
                },
                Err(reason) => tried.push(reason),
            }
        }
        tried.dedup();
        Err(GroupError::Library {
            message: tried.join("; "),
        })
    }

    /// # Safety
    /// `library` has to be an MPI library, if it has these names.
    unsafe fn of(name: String, library: &'static Opened) -> Result<Library, String> {
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the type is that of the function in the standard.
                *unsafe { library.get($name) }.map_err(|error| format!("{name}: {error}"))?
            };
        }
        let [world, byte, errors_return, ignored] = constants(library);
        Ok(Library {
            world,
            byte,
            errors_return,
            ignored,
            init_thread: function!(b"MPI_Init_thread\0"),
            initialised: function!(b"MPI_Initialized\0"),
            finalised: function!(b"MPI_Finalized\0"),
            finalise: function!(b"MPI_Finalize\0"),
            rank: function!(b"MPI_Comm_rank\0"),
            size: function!(b"MPI_Comm_size\0"),
            duplicate: function!(b"MPI_Comm_dup\0"),
            set_handler: function!(b"MPI_Comm_set_errhandler\0"),
            abort: function!(b"MPI_Abort\0"),
            test: function!(b"MPI_Test\0"),
            error_string: function!(b"MPI_Error_string\0"),
            send: function!(b"MPI_Isend\0"),
            receive: function!(b"MPI_Irecv\0"),
            all_gather: function!(b"MPI_Iallgatherv\0"),
            all_to_all: function!(b"MPI_Ialltoallv\0"),
            name,
        })
    }

    /// The file's name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn check(&self, operation: &'static str, code: c_int) -> Result<(), GroupError> {
        if code == 0 {
            return Ok(());
        }
        let mut text = [0_u8; LONGEST_MESSAGE];
        let mut len = 0;
        // SAFETY: the text is as long as any message, and both outlive the call.
        let told = unsafe { (self.error_string)(code, text.as_mut_ptr().cast(), &mut len) };
        let len = if told == 0 { len.max(0) as usize } else { 0 };
        let message = String::from_utf8_lossy(&text[..len.min(LONGEST_MESSAGE)]);
        Err(GroupError::Engine {
            operation,
            message: format!("{message} (code {code})"),
        })
    }

    /// Whether MPI was initialised here, and not before by somebody else.
    pub(super) fn initialise(&self) -> Result<bool, GroupError> {
        let (mut before, mut after) = (0, 0);
        // SAFETY: both functions may be called at any time, and write an integer that outlives the call.
        self.check("MPI_Initialized", unsafe {
            (self.initialised)(&mut before)
        })?;
        // SAFETY: as above.
        self.check("MPI_Finalized", unsafe { (self.finalised)(&mut after) })?;
        if after != 0 {
            return Err(GroupError::Engine {
                operation: "MPI_Init_thread",
                message: "MPI has been ended in this process and cannot begin again".to_owned(),
            });
        }
        if before != 0 {
            return Ok(false);
        }
        let mut provided = 0;
        let (argc, argv) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: MPI is not initialised; no arguments are an allowed choice.
        let code = unsafe { (self.init_thread)(argc, argv, SERIALIZED, &mut provided) };
        self.check("MPI_Init_thread", code)?;
        if provided >= SERIALIZED {
            return Ok(true);
        }
        Err(GroupError::Engine {
            operation: "MPI_Init_thread",
            message: format!(
                "the library takes calls of one thread only (level {provided} of threads)"
            ),
        })
    }

    /// A communicator of all processes that nobody else uses.
    pub(super) fn duplicate_world(&self) -> Result<Handle, GroupError> {
        let mut world = 0;
        // SAFETY: MPI is initialised, and the handle is a word of zeros that outlives the call.
        let code = unsafe { (self.duplicate)(self.world, &mut world) };
        self.check("MPI_Comm_dup", code)?;
        // SAFETY: the communicator was just made, and the handler is one of the library's own.
        let code = unsafe { (self.set_handler)(world, self.errors_return) };
        self.check("MPI_Comm_set_errhandler", code)?;
        Ok(world)
    }

    pub(super) fn rank_and_size(&self, world: Handle) -> Result<(usize, usize), GroupError> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: both write an integer that outlives the call.
        self.check("MPI_Comm_rank", unsafe { (self.rank)(world, &mut rank) })?;
        // SAFETY: as above.
        self.check("MPI_Comm_size", unsafe { (self.size)(world, &mut size) })?;
        Ok((rank as usize, size as usize))
    }

    pub(super) fn send(
        &self,
        bytes: &[u8],
        to: usize,
        tag: c_int,
        world: Handle,
    ) -> Result<Request, GroupError> {
        let mut request = Request::new(bytes, 0, Vec::new());
        let (from, len) = (request.own.as_ptr(), request.own.len() as c_int);
        let handle = &mut request.handle;
        // SAFETY: the request holds the memory until the call is done.
        let code = unsafe { (self.send)(from, len, self.byte, to as c_int, tag, world, handle) };
        self.check("MPI_Isend", code)?;
        Ok(request)
    }

    pub(super) fn receive(
        &self,
        len: usize,
        from: usize,
        tag: c_int,
        world: Handle,
    ) -> Result<Request, GroupError> {
        let mut request = Request::new(&[], len, Vec::new());
        let (into, rank) = (request.into.as_mut_ptr(), from as c_int);
        let handle = &mut request.handle;
        let len = len as c_int;
        // SAFETY: the request holds the memory until the call is done.
        let code = unsafe { (self.receive)(into, len, self.byte, rank, tag, world, handle) };
        self.check("MPI_Irecv", code)?;
        Ok(request)
    }

    /// `counts` bytes of each member.
    pub(super) fn all_gather(
        &self,
        own: &[u8],
        counts: &[usize],
        world: Handle,
    ) -> Result<Request, GroupError> {
        let numbers = vec![integers(counts), integers(&super::starts(counts))];
        let mut request = Request::new(own, counts.iter().sum(), numbers);
        let (from, len) = (request.own.as_ptr(), request.own.len() as c_int);
        let into = request.into.as_mut_ptr();
        let [counts, starts] = [0, 1].map(|i: usize| request.counts[i].as_ptr());
        let handle = &mut request.handle;
        // SAFETY: the request holds the memory and the numbers until the call is done, and they describe the memory.
        let code = unsafe {
            (self.all_gather)(
                from, len, self.byte, into, counts, starts, self.byte, world, handle,
            )
        };
        self.check("MPI_Iallgatherv", code)?;
        Ok(request)
    }

    /// `sent` bytes to each member, `received` from each.
    pub(super) fn exchange(
        &self,
        own: &[u8],
        (sent, received): (&[usize], &[usize]),
        world: Handle,
    ) -> Result<Request, GroupError> {
        let numbers = [
            sent,
            &super::starts(sent),
            received,
            &super::starts(received),
        ]
        .map(integers);
        let mut request = Request::new(own, received.iter().sum(), numbers.to_vec());
        let (from, into) = (request.own.as_ptr(), request.into.as_mut_ptr());
        let [out, out_at, come, come_at] = [0, 1, 2, 3].map(|i: usize| request.counts[i].as_ptr());
        let (byte, handle) = (self.byte, &mut request.handle);
        // SAFETY: the request holds the memory and the numbers until the call is done, and they describe the memory.
        let code = unsafe {
            (self.all_to_all)(
                from, out, out_at, byte, into, come, come_at, byte, world, handle,
            )
        };
        self.check("MPI_Ialltoallv", code)?;
        Ok(request)
    }

    /// Whether a request is done; lets others get on.
    pub(super) fn is_done(&self, request: &mut Request) -> Result<bool, GroupError> {
        let mut flag = 0;
        let ignored = ptr::without_provenance_mut(self.ignored);
        // SAFETY: the request is under way or done, and holds its memory.
        let code = unsafe { (self.test)(&mut request.handle, &mut flag, ignored) };
        self.check("MPI_Test", code)?;
        Ok(flag != 0)
    }

    /// Ends all processes.
    pub(super) fn abort(&self, world: Handle, code: c_int) {
        // SAFETY: MPI is initialised. Where it fails, the process ends by itself.
        let _ = unsafe { (self.abort)(world, code) };
    }

    /// Ends MPI.
    pub(super) fn finalise(&self) {
        // SAFETY: MPI is initialised, and nothing is under way.
        let _ = unsafe { (self.finalise)() };
    }
}

fn integers(numbers: &[usize]) -> Vec<c_int> {
    // Below the limit of a round.
    numbers.iter().map(|number| *number as c_int).collect()
}

/// Files to try: what the user names, what the launcher belongs to, the others.
fn names() -> Vec<String> {
    if let Ok(name) = std::env::var("WARPFUSE_MPI") {
        return vec![name];
    }
    let of_open_mpi = std::env::var_os("OMPI_COMM_WORLD_SIZE").is_some();
    let of_mpich = std::env::var_os("PMI_RANK").is_some();
    let names = match of_mpich && !of_open_mpi {
        true => MPICH.iter().chain(&OPEN_MPI).chain(&ANY),
        false => OPEN_MPI.iter().chain(&MPICH).chain(&ANY),
    };
    names.map(|name| (*name).to_owned()).collect()
}

#[cfg(unix)]
fn opened(name: &str) -> Result<Opened, String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // Open MPI opens parts of itself that look for its symbols among those of the whole process.
    // SAFETY: the initialisers of an MPI library are made to run in any process that opens it.
    let library = unsafe { Library::open(Some(name), RTLD_NOW | RTLD_GLOBAL) };
    library
        .map(Into::into)
        .map_err(|error| reason(name, &error))
}

#[cfg(not(unix))]
fn opened(name: &str) -> Result<Opened, String> {
    // SAFETY: the initialisers of an MPI library are made to run in any process that opens it.
    unsafe { Opened::new(name) }.map_err(|error| reason(name, &error))
}

/// The dynamic linker's own words.
fn reason(name: &str, error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| format!("{name}: {error}"), ToString::to_string)
}

/// `MPI_COMM_WORLD`, `MPI_BYTE`, `MPI_ERRORS_RETURN` and `MPI_STATUS_IGNORE`: variables of Open MPI, numbers of MPICH.
fn constants(library: &Opened) -> [usize; 4] {
    let address = |name: &[u8]| -> Option<usize> {
        // SAFETY: only the address is taken.
        let symbol = unsafe { library.get::<*const c_void>(name) };
        symbol.ok().map(|symbol| (*symbol).addr())
    };
    let world = address(b"ompi_mpi_comm_world\0");
    let byte = address(b"ompi_mpi_byte\0");
    let errors = address(b"ompi_mpi_errors_return\0");
    match (world, byte, errors) {
        (Some(world), Some(byte), Some(errors)) => [world, byte, errors, 0],
        _ => [0x4400_0000, 0x4c00_010d, 0x5400_0001, 1],
    }
}
