//! What a caller may ask of a reader.

use std::fmt;
use std::sync::Arc;

use crate::process::{address_space, container_limit};

/// How a file is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// LIBSVM (SVMlight) text: `label index:value index:value …`, one sample a line.
    LibSvm,
    /// Matrix Market text, coordinate (sparse) or array (dense).
    MatrixMarket,
    /// NumPy's array file: dense.
    Npy,
    /// NumPy's archive of arrays: dense features, and targets beside them.
    Npz,
    /// Text with separated values, one sample a line: dense.
    Csv,
    /// The binary CSR cache of this library.
    Cache,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LibSvm => "LIBSVM",
            Self::MatrixMarket => "Matrix Market",
            Self::Npy => "npy",
            Self::Npz => "npz",
            Self::Csv => "CSV",
            Self::Cache => "CSR cache",
        })
    }
}

/// What the first column of a LIBSVM file is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IndexBase {
    /// Zero if an index 0 occurs anywhere in the file, else one.
    #[default]
    Auto,
    /// 0.
    Zero,
    /// 1, as LIBSVM's own tools have it; an index 0 is then an error.
    One,
}

/// Whether the first line of a CSV file names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Header {
    /// It does if a field of it is no number.
    #[default]
    Auto,
    /// It does.
    Present,
    /// It is a sample.
    Absent,
}

/// How a CSV file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CsvOptions {
    /// The byte between fields; `None` for the one of comma, semicolon, tab and bar that the first line has
    /// most of.
    pub delimiter: Option<u8>,
    /// Whether the first line names the columns.
    pub header: Header,
}

/// Where the targets are in a file that holds them beside the features.
///
/// In a CSV file the name of a column, or its number: from 1 on the left, from −1 on the right. In an npz file the
/// name of an array.
///
/// ```
/// use warpfuse::io::Target;
/// assert_eq!(Target::new("price").name(), "price");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target(String);

impl Target {
    /// The target that `name` names.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// The name or number.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// How many columns the features get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Columns {
    /// As many as the file has: the largest index of a sparse text, the header's count elsewhere.
    #[default]
    Infer,
    /// At least this many; sparse features are widened with empty columns.
    AtLeast(usize),
    /// Exactly this many: as [`Columns::AtLeast`], and more columns in the file are an error.
    Exactly(usize),
}

impl Columns {
    /// The number of columns for a file that has `found`; the number wanted if it has too many.
    pub(super) fn resolve(self, found: usize) -> Result<usize, usize> {
        match self {
            Self::Infer => Ok(found),
            Self::AtLeast(wanted) => Ok(wanted.max(found)),
            Self::Exactly(wanted) if found > wanted => Err(wanted),
            Self::Exactly(wanted) => Ok(wanted),
        }
    }

    /// The number requested, if any.
    pub(super) fn wanted(self) -> Option<usize> {
        match self {
            Self::Infer => None,
            Self::AtLeast(wanted) | Self::Exactly(wanted) => Some(wanted),
        }
    }
}

/// Whether a text file is read through a binary cache next to it.
///
/// The cache of `data.svm` is `data.svm.wfc`. It is used only if it was made from a file of the
/// same size and time of modification, with the same element type and options; otherwise the text
/// is parsed. Dense features are never cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CachePolicy {
    /// Neither look for a cache nor write one.
    #[default]
    Off,
    /// Use a fresh cache if there is one; never write.
    Read,
    /// Use a fresh cache if there is one, else parse the text and write the cache.
    ReadWrite,
}

/// The most memory that a reader may take for its result and for intermediate data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemoryLimit {
    /// What the operating system reports as available when reading starts, or what `ulimit -v` leaves or a container has if
    /// that is less; no limit where it does not say.
    #[default]
    Available,
    /// This many bytes.
    Bytes(u64),
    /// As much as the file asks for.
    Unlimited,
}

impl MemoryLimit {
    /// The limit in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Available => available_memory()
                .unwrap_or(u64::MAX)
                .min(address_space().map_or(u64::MAX, |space| space.left))
                .min(container_limit().unwrap_or(u64::MAX)),
            Self::Bytes(bytes) => bytes,
            Self::Unlimited => u64::MAX,
        }
    }
}

/// What Linux believes can be allocated without swapping.
fn available_memory() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Is told how far a reader has come: bytes done, bytes in all.
///
/// Called from several threads, a few times a second at most on long files; the calls may arrive
/// out of order.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(ReadSoFar) + Send + Sync>);

/// How far a reader has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadSoFar {
    /// Bytes read.
    pub bytes: u64,
    /// Bytes in all.
    pub total_bytes: u64,
    /// Lines read: rows, in formats that have one on each line.
    pub lines: u64,
}

impl Progress {
    /// Wraps a function of (bytes done, bytes in all).
    pub fn new(report: impl Fn(u64, u64) + Send + Sync + 'static) -> Self {
        Self::of(move |so_far| report(so_far.bytes, so_far.total_bytes))
    }

    /// Wraps a function that is told of lines too.
    pub fn of(report: impl Fn(ReadSoFar) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    pub(super) fn report(&self, so_far: ReadSoFar) {
        (self.0)(so_far);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress(..)")
    }
}

/// How to read a data set; the default suits most files.
///
/// ```
/// use warpfuse::io::{CachePolicy, Columns, ReadOptions};
/// let options = ReadOptions {
///     columns: Columns::AtLeast(10),
///     cache: CachePolicy::ReadWrite,
///     ..ReadOptions::default()
/// };
/// # assert_eq!(options.format, None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The format, or `None` to tell it from the content and the name.
    pub format: Option<Format>,
    /// What the first column of a LIBSVM file is called.
    pub index_base: IndexBase,
    /// How many columns the features get.
    pub columns: Columns,
    /// Which column of a CSV file, or array of an npz file, holds the targets.
    pub target: Option<Target>,
    /// How a CSV file is written.
    pub csv: CsvOptions,
    /// Whether to go through a binary cache.
    pub cache: CachePolicy,
    /// The most memory that reading may take.
    pub memory: MemoryLimit,
    /// Is told how far reading has come.
    pub progress: Option<Progress>,
}
