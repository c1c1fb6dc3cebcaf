//! The end of the program when memory is refused: exit code 1 with the need and the limit, instead of SIGABRT.
//!
//! Readers check what they foresee. What nobody foresaw ends here: the allocator notes the block that it was refused,
//! the standard library aborts, as it does wherever nobody asks whether a block was given, and the handler of that signal
//! prints what was needed. Libraries that ask and then panic end the same way, before the panic is told: telling it takes
//! memory too. The C library ends the program by itself where a thread that has just been started lacks what it keeps there; then
//! no block of its own is left either. An abort or a panic for another reason stays one.

#[cfg(unix)]
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the largest block that was refused; 0 before. After the first, the report of it may be refused blocks too.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Notes that a block of `size` bytes was refused.
pub(super) fn note(size: usize) {
    REFUSED.fetch_max(size, Ordering::Relaxed);
}

/// Has the program end so, and has a file that grows beyond `ulimit -f` be an error of its write instead of a signal.
#[cfg(unix)]
pub(super) fn end_with_exit_code() {
    let handler: extern "C" fn(libc::c_int) = ended;
    // SAFETY: the handler calls what may be called in one: it formats into its own stack, writes, and ends the process.
    // The other signal is ignored.
    unsafe {
        libc::signal(libc::SIGABRT, handler as *const () as libc::sighandler_t);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let refused = REFUSED.load(Ordering::Relaxed);
        let message = panic.payload_as_str();
        if refused > 0 && is_refusal(message) {
            end(refused);
        }
        if is_of_threads(message) {
            let _ = writeln!(std::io::stderr(), "{NO_THREADS}");
            std::process::exit(1);
        }
        usual(panic);
    }));
}

/// Whether a panic tells that a block was refused.
#[cfg(unix)]
fn is_refusal(message: Option<&str>) -> bool {
    message.is_some_and(|message| message.contains("AllocError"))
}

/// What to say where the system starts no threads.
#[cfg(unix)]
const NO_THREADS: &str = "error: expected threads to compute with, found that the system starts no more of them\n  try: \
    `--threads 1`; or raise the limit: of processes (ulimit -u), of a container, or of memory (ulimit -v)";

/// Whether a panic tells that a thread could not be started: of parallel loops, when the first of them began, or beside them. One
/// that has been started may lack what it needs besides, which it tells itself.
#[cfg(unix)]
fn is_of_threads(message: Option<&str>) -> bool {
    let told = [
        "thread pool has not been initialized",
        "failed to spawn thread",
        "failed to allocate an alternative stack",
    ];
    message.is_some_and(|message| told.iter().any(|text| message.contains(text)))
}

#[cfg(not(unix))]
pub(super) fn end_with_exit_code() {}

#[cfg(unix)]
extern "C" fn ended(signal: libc::c_int) {
    let refused = match REFUSED.load(Ordering::Relaxed) {
        0 if is_refused(BLOCK_OF_LIBC) => BLOCK_OF_LIBC,
        refused => refused,
    };
    if refused == 0 {
        // SAFETY: the default is to end with this signal, which whoever raised it does next.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    end(refused);
}

/// What the C library requests at least where its heap cannot grow, bytes.
#[cfg(unix)]
const BLOCK_OF_LIBC: usize = 1 << 20;

/// Whether the system refuses a block of this size; may be called in a handler.
#[cfg(unix)]
fn is_refused(size: usize) -> bool {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping, which nobody else knows, is given back at once.
    unsafe {
        let block = libc::mmap(std::ptr::null_mut(), size, access, kind, -1, 0);
        block == libc::MAP_FAILED || libc::munmap(block, size) != 0
    }
}

/// Prints the message and ends the program.
#[cfg(unix)]
fn end(refused: usize) -> ! {
    let mut text = [0_u8; 512];
    let length = message(&mut text, refused);
    // SAFETY: the text is that long; both calls may be made in a handler.
    unsafe {
        libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), length);
        libc::_exit(1);
    }
}

/// Writes the message to `text`, without allocating; how long it is.
#[cfg(unix)]
fn message(text: &mut [u8], refused: usize) -> usize {
    let room = text.len();
    let mut rest = &mut text[..];
    // What does not fit is cut.
    let _ = write!(
        rest,
        "error: out of memory: expected {refused} bytes more, found none"
    );
    let _ = match crate::process::address_space_limit() {
        Some(limit) => write!(
            rest,
            "; the limit of this process is {limit} bytes (ulimit -v)"
        ),
        None => Ok(()),
    };
    let remedy = super::remedy::of_full_memory(true);
    let _ = writeln!(rest, "\n  try: {remedy}");
    room - rest.len()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_system_lacks_is_refused() {
        assert!(!is_refused(BLOCK_OF_LIBC));
        assert!(is_refused(usize::MAX >> 2));
    }
}
