//! The one entry to all readers.

use std::path::{Path, PathBuf};

use super::cache::Companion;
use super::error::{Fault, ReadError};
use super::options::{CachePolicy, Format, IndexBase, ReadOptions};
use super::scan::Meter;
use super::source::Content;
use super::{cache, csv, libsvm, matrix_market, npy, npz, source};
use crate::matrix::{Dataset, Element, WidthError};

/// Reads a data set; `-` is standard input.
///
/// The arrays of a binary cache are not copied but used where the file is mapped: while the data are in use the file may be
/// replaced or removed, but must not be written to. Where it is cut or written to nevertheless, an operation on the data ends
/// with [`FileChanged`](crate::matrix::FileChanged).
///
/// The format is [`ReadOptions::format`], or what the first bytes say, or what the name says
/// (`.mtx`, `.npy`, `.npz`, `.csv`, `.tsv`, `.wfc`), else LIBSVM. Text may be compressed with gzip or zstd, whatever its
/// name. Files are mapped and parsed by all of rayon's threads; the result does not depend on how
/// many there are.
///
/// # Errors
///
/// [`ReadError`] with the place where the file goes wrong; no file, however damaged, makes this
/// panic or take more memory than [`ReadOptions::memory`] allows.
///
/// ```
/// use warpfuse::io::{read, ReadOptions};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("two.svm");
/// std::fs::write(&path, "+1 1:0.5 3:2\n-1 2:1e-3 # the second sample\n")?;
/// let data = read::<f32>(&path, &ReadOptions::default())?;
/// assert_eq!((data.features.rows(), data.features.cols(), data.features.nnz()), (2, 3, 3));
/// assert_eq!(data.targets, Some(vec![1.0, -1.0]));
///
/// std::fs::write(&path, "+1 1:0.5 3:two\n")?;
/// let error = read::<f32>(&path, &ReadOptions::default()).unwrap_err().to_string();
/// assert!(error.ends_with("two.svm:1:12: expected a number after the colon, found `two`"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read<T: Element>(
    path: impl AsRef<Path>,
    options: &ReadOptions,
) -> Result<Dataset<T>, ReadError> {
    let path = path.as_ref();
    check_columns_wanted(path, options)?;
    let companion = match options.cache {
        CachePolicy::Off => None,
        CachePolicy::Read | CachePolicy::ReadWrite => Companion::of(path, options),
    };
    if let Some(data) = companion.as_ref().and_then(|cache| cache.load(options)) {
        return Ok(data);
    }
    let opened = Opened::new(path, options)?;
    #[cfg(unix)]
    if options.cache == CachePolicy::ReadWrite
        && let Some(cache) = &companion
        && let Some(data) = through_cache(cache, &opened, path, options)?
    {
        return Ok(data);
    }
    let data = read_source(opened, path, options)?;
    if options.cache == CachePolicy::ReadWrite
        && let Some(Err(error)) = companion.map(|cache| cache.store(&data))
    {
        // The data are there; a folder that cannot be written costs time next time, no more.
        tracing::warn!(%error, "the cache could not be written");
    }
    Ok(data)
}

/// Bytes of memory that a byte of LIBSVM text takes while it is read: entries as parsed, and as joined.
#[cfg(unix)]
const MEMORY_OF_TEXT: u64 = 2;

/// Makes a cache of a text that memory does not hold, part by part, and gives what is mapped of it; `None` where memory holds
/// the text, or no cache can be written.
#[cfg(unix)]
fn through_cache<T: Element>(
    cache: &Companion,
    opened: &Opened,
    path: &Path,
    options: &ReadOptions,
) -> Result<Option<Dataset<T>>, ReadError> {
    let needed = (opened.content.len() as u64).saturating_mul(MEMORY_OF_TEXT);
    if opened.format != Format::LibSvm || needed <= options.memory.bytes() {
        return Ok(None);
    }
    tracing::info!("the text is larger than memory: its cache is made part by part");
    let meter = opened.meter(options);
    let convert = |text: &_| cache.convert::<T>((path, text), options, &meter);
    match opened.content.read(convert)? {
        true => Ok(cache.load(options)),
        false => Ok(None),
    }
}

/// Reads the file itself, past any cache of it.
fn read_source<T: Element>(
    opened: Opened,
    path: &Path,
    options: &ReadOptions,
) -> Result<Dataset<T>, ReadError> {
    let told = parse_source(opened, path, options)?;
    match told.texts {
        None => Ok(told.data),
        Some(texts) => {
            let found = texts.first().map_or("", String::as_str).escape_debug();
            let found = format!("texts such as `{found}`");
            Err(ReadError::binary(
                path,
                0,
                "targets that are numbers",
                found,
            ))
        }
    }
}

/// A file, and its format.
pub(super) struct Opened {
    pub(super) content: Content,
    pub(super) format: Format,
}

impl Opened {
    fn new(path: &Path, options: &ReadOptions) -> Result<Opened, ReadError> {
        let content = source::open(path, options.memory.bytes())?;
        let format = options.format.unwrap_or_else(|| detect(path, &content));
        Ok(Opened { content, format })
    }

    /// A meter that has counted nothing yet.
    pub(super) fn meter<'a>(&self, options: &'a ReadOptions) -> Meter<'a> {
        let limit = options.memory.bytes();
        Meter::new(options.progress.as_ref(), self.content.len(), limit)
    }
}

/// Opens a file and tells its format.
pub(super) fn open(path: &Path, options: &ReadOptions) -> Result<Opened, ReadError> {
    check_columns_wanted(path, options)?;
    Opened::new(path, options)
}

/// Whether a file is called as CSV files are.
pub(super) fn is_called_csv(path: &Path, options: &ReadOptions) -> bool {
    let by_name = || matches!(extension(path).as_deref(), Some("csv" | "tsv"));
    options
        .format
        .map_or_else(by_name, |format| format == Format::Csv)
}

/// Data with what is known about their file: a cache does not keep it.
pub(super) struct Told<T> {
    pub(super) data: Dataset<T>,
    pub(super) format: Option<Format>,
    /// The index of the first column of a LIBSVM file.
    pub(super) base: Option<u8>,
    /// Targets that are texts.
    pub(super) texts: Option<Vec<String>>,
}

/// [`read`], with what is known about the file.
pub(super) fn read_told<T: Element>(
    path: &Path,
    options: &ReadOptions,
) -> Result<Told<T>, ReadError> {
    if options.cache == CachePolicy::Off || source::is_stdin(path) {
        let opened = open(path, options)?;
        return parse_source(opened, path, options);
    }
    let base = match options.index_base {
        IndexBase::Auto => None,
        IndexBase::Zero => Some(0),
        IndexBase::One => Some(1),
    };
    Ok(Told {
        data: read(path, options)?,
        format: options.format,
        base,
        texts: None,
    })
}

fn parse_source<T: Element>(
    opened: Opened,
    path: &Path,
    options: &ReadOptions,
) -> Result<Told<T>, ReadError> {
    let Opened { content, format } = &opened;
    let meter = opened.meter(options);
    let told = content.read(|content| parse(path, (content, *format), options, &meter))?;
    let data = widened(told.data, path, options)?;
    Ok(Told { data, ..told })
}

/// Data with as many columns as are wanted.
pub(super) fn widened<T: Element>(
    data: Dataset<T>,
    path: &Path,
    options: &ReadOptions,
) -> Result<Dataset<T>, ReadError> {
    let cols = data.features.cols();
    let width = options.columns.resolve(cols);
    let width = width.map_err(|wanted| WidthError::TooFew { cols, wanted });
    let features = width.and_then(|cols| data.features.with_cols(cols));
    Ok(Dataset {
        features: features.map_err(|source| width_error(path, source))?,
        targets: data.targets,
    })
}

fn parse<T: Element>(
    path: &Path,
    (content, format): (&Content, Format),
    options: &ReadOptions,
    meter: &Meter<'_>,
) -> Result<Told<T>, ReadError> {
    let limit = options.memory.bytes();
    let located = |fault: Fault| fault.locate(path, content);
    let columns = options.columns;
    let (mut base, mut texts) = (None, None);
    let data = match format {
        Format::LibSvm => {
            let (data, first) =
                libsvm::parse(content, options.index_base, columns, meter).map_err(located)?;
            base = Some(first);
            data
        }
        Format::MatrixMarket => matrix_market::parse(content, columns, meter).map_err(located)?,
        Format::Npy => npy::parse(path, npy::Bytes::of_file(content), limit)?,
        Format::Npz => {
            let arrays = npz::parse(path, content, options.target.as_ref(), limit)?;
            texts = arrays.texts;
            arrays.data
        }
        Format::Csv => {
            csv::parse(content, &options.csv, options.target.as_ref(), meter).map_err(located)?
        }
        Format::Cache => cache::parse(path, content, limit)?,
    };
    Ok(Told {
        data,
        format: Some(format),
        base,
        texts,
    })
}

fn check_columns_wanted(path: &Path, options: &ReadOptions) -> Result<(), ReadError> {
    match options.columns.wanted() {
        Some(wanted) if u32::try_from(wanted).is_err() => {
            Err(width_error(path, WidthError::TooMany { wanted }))
        }
        _ => Ok(()),
    }
}

fn width_error(path: &Path, source: WidthError) -> ReadError {
    let path = path.to_owned();
    ReadError::Width { path, source }
}

/// Tells the format from the first bytes, or else from the name.
fn detect(path: &Path, content: &[u8]) -> Format {
    if content.starts_with(npy::MAGIC) {
        return Format::Npy;
    }
    if content.starts_with(npz::MAGIC) {
        return Format::Npz;
    }
    if content.starts_with(cache::MAGIC) {
        return Format::Cache;
    }
    let banner = content.get(..matrix_market::BANNER.len());
    if banner.is_some_and(|start| start.eq_ignore_ascii_case(matrix_market::BANNER)) {
        return Format::MatrixMarket;
    }
    match extension(path).as_deref() {
        Some("mtx" | "mm") => Format::MatrixMarket,
        Some("npy") => Format::Npy,
        Some("npz") => Format::Npz,
        Some("csv" | "tsv") => Format::Csv,
        Some("wfc") => Format::Cache,
        _ => Format::LibSvm,
    }
}

/// The extension in lower case, that of the compression left out.
fn extension(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(&name);
    let extension = PathBuf::from(name);
    extension.extension()?.to_str().map(str::to_owned)
}
