//! Packs the files of many similar kernels: each can be unpacked alone, with the help of a dictionary that all share.
//!
//! The dictionary is the files of some kernels, evenly spread over the sorted names. So packed, 24 MB of machine code for one
//! architecture are 3, and 39 MB of PTX 5; each file packed for itself they would be 7 and 7.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::{fs, io, thread};

use gpu_kernels_builder::{BuildError, Image};
use zstd::bulk::Compressor;
use zstd::dict::EncoderDictionary;

/// Bytes of the dictionary of a form, about. Those of machine code pack 4.0 MB into 2.9 with four times as much, which takes
/// some milliseconds longer to unpack before the first kernel; PTX gains nothing by it.
fn dictionary_bytes(form: &str) -> usize {
    match form {
        "cubin" => 4 << 20,
        _ => 1 << 20,
    }
}

/// How much time is taken for size.
#[derive(Clone, Copy)]
pub enum Effort {
    /// Seconds.
    Usual,
    /// Twenty times as long, for a sixth less: what is packed once and fetched often.
    Most,
}

impl Effort {
    /// zstd's level.
    fn level(self) -> i32 {
        match self {
            Effort::Usual => 9,
            Effort::Most => 19,
        }
    }
}

/// What was packed.
pub struct Archive {
    /// The file with the packed dictionary, beside the generated source.
    pub dictionary: String,
    /// Bytes of the dictionary when unpacked.
    pub dictionary_bytes: usize,
    /// The file with all packed kernels.
    pub content: String,
    /// Where each kernel of the image begins in it, its bytes there, and its bytes when unpacked.
    pub parts: Vec<(usize, usize, usize)>,
}

/// Packs the PTX (`ptx`) or the machine code (`cubin`) of an image into files of the folder `out`.
///
/// # Errors
/// [`BuildError::Io`].
pub fn archive(
    image: &Image,
    form: &str,
    effort: Effort,
    out: &Path,
) -> Result<Archive, BuildError> {
    let contents = contents(image, form)?;
    let dictionary = dictionary(&contents, dictionary_bytes(form));
    let content_file = format!("{}.{form}", image.arch);
    let dictionary_file = format!("{content_file}.dictionary");
    let path = out.join(&content_file);
    let failed = |source| failure(&path, "packed", source);
    let level = effort.level();
    let each = packed_each(&contents, &dictionary, level).map_err(failed)?;
    let (mut packed, mut parts) = (Vec::new(), Vec::new());
    for (part, content) in each.into_iter().zip(&contents) {
        parts.push((packed.len(), part.len(), content.len()));
        packed.extend(part);
    }
    write(&path, &packed)?;
    let alone = zstd::bulk::compress(&dictionary, level).map_err(failed)?;
    write(&out.join(&dictionary_file), &alone)?;
    Ok(Archive {
        dictionary: dictionary_file,
        dictionary_bytes: dictionary.len(),
        content: content_file,
        parts,
    })
}

/// Every file with the help of the dictionary, by all cores.
fn packed_each(contents: &[Vec<u8>], dictionary: &[u8], level: i32) -> io::Result<Vec<Vec<u8>>> {
    let prepared = EncoderDictionary::copy(dictionary, level);
    let of_some = &|contents: &[Vec<u8>]| -> io::Result<Vec<Vec<u8>>> {
        let mut compressor = Compressor::with_prepared_dictionary(&prepared)?;
        contents.iter().map(|c| compressor.compress(c)).collect()
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let shares = contents.chunks(contents.len().div_ceil(cores).max(1));
    thread::scope(|scope| {
        let threads: Vec<_> = shares
            .map(|share| scope.spawn(move || of_some(share)))
            .collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().expect("packing does not panic")?);
        }
        Ok(all)
    })
}

fn contents(image: &Image, form: &str) -> Result<Vec<Vec<u8>>, BuildError> {
    let read = |kernel: &String| {
        let path = image.ptx(kernel).with_extension(form);
        fs::read(&path).map_err(|source| failure(&path, "read", source))
    };
    image.kernels.iter().map(read).collect()
}

fn dictionary(contents: &[Vec<u8>], bytes: usize) -> Vec<u8> {
    let total: usize = contents.iter().map(Vec::len).sum();
    let step = total.div_ceil(bytes).max(1);
    contents.iter().step_by(step).flatten().copied().collect()
}

fn write(path: &Path, content: &[u8]) -> Result<(), BuildError> {
    fs::write(path, content).map_err(|source| failure(path, "written", source))
}

fn failure(path: &Path, action: &'static str, source: io::Error) -> BuildError {
    let path: PathBuf = path.to_owned();
    BuildError::Io {
        path,
        action,
        source,
    }
}
