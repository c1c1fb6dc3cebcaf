//! Packs the files of many similar kernels, neighbours by name together: variants of one kernel differ in a few lines.
//!
//! A program unpacks the group of the kernel that it launches, machine code in 1.5 ms. So packed, the 944 kernels of training for
//! one architecture take 3.3 MB of PTX and 3.1 of machine code with the most effort (40 and 26 MB as they are); in groups of a
//! mebibyte 894 took 4.0 and 3.3 MB, 3.3 and 2.9 with the most effort, and one by one with the help of a dictionary 4.8 and 3.7.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::{fs, io, thread};

use gpu_kernels_builder::{BuildError, Image};

/// How much time is taken for size.
#[derive(Clone, Copy)]
pub enum Effort {
    /// Two seconds: whoever changes a kernel waits for all to be packed again.
    Usual,
    /// Ten times as long, for a sixth less: what is packed once and fetched often.
    Most,
}

impl Effort {
    /// zstd's level.
    fn level(self) -> i32 {
        match self {
            Effort::Usual => 12,
            Effort::Most => 19,
        }
    }

    /// Bytes of a group before it is packed, at most, unless one kernel has more. Groups twice as large are 3 to 4 % smaller when
    /// packed and take twice as long to unpack before the first kernel: 1.5 ms for a mebibyte. PTX takes a driver seconds to
    /// compile, beside which that is nothing.
    fn group(self, form: &str) -> usize {
        match (form, self) {
            ("ptx", _) => 8 << 20,
            (_, Effort::Usual) => 1 << 20,
            (_, Effort::Most) => 2 << 20,
        }
    }
}

/// Where something begins and how long it is, as the fields say.
type Place = (usize, usize, usize);

/// What was packed.
pub struct Archive {
    /// The file with all packed groups, beside the generated source.
    pub content: String,
    /// Where each group begins in it, its bytes there, and its bytes when unpacked.
    pub groups: Vec<Place>,
    /// The group of each kernel of the image, where it begins there when unpacked, and its bytes.
    pub parts: Vec<Place>,
}

/// Packs the PTX (`ptx`) or the machine code (`cubin`) of an image into a file of the folder `out`.
///
/// # Errors
/// [`BuildError::Io`].
pub fn archive(
    image: &Image,
    form: &str,
    effort: Effort,
    out: &Path,
) -> Result<Archive, BuildError> {
    let (joined, parts) = grouped(&contents(image, form)?, effort.group(form));
    let content = format!("{}.{form}", image.arch);
    let path = out.join(&content);
    let each = packed_each(&joined, effort.level());
    let each = each.map_err(|source| failure(&path, "packed", source))?;
    let (mut packed, mut groups) = (Vec::new(), Vec::new());
    for (group, joined) in each.into_iter().zip(&joined) {
        groups.push((packed.len(), group.len(), joined.len()));
        packed.extend(group);
    }
    fs::write(&path, &packed).map_err(|source| failure(&path, "written", source))?;
    Ok(Archive {
        content,
        groups,
        parts,
    })
}

/// The files one behind the other in groups of `most` bytes, and where each is.
fn grouped(contents: &[Vec<u8>], most: usize) -> (Vec<Vec<u8>>, Vec<Place>) {
    let (mut groups, mut parts) = (vec![Vec::new()], Vec::new());
    for content in contents {
        let last = groups.last().map_or(0, Vec::len);
        if last > 0 && last + content.len() > most {
            groups.push(Vec::new());
        }
        let at = groups.len() - 1;
        parts.push((at, groups[at].len(), content.len()));
        groups[at].extend_from_slice(content);
    }
    (groups, parts)
}

/// Every group, by all cores.
fn packed_each(groups: &[Vec<u8>], level: i32) -> io::Result<Vec<Vec<u8>>> {
    let of_some = |groups: &[Vec<u8>]| -> io::Result<Vec<Vec<u8>>> {
        let packed = groups.iter().map(|g| zstd::bulk::compress(g, level));
        packed.collect()
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let shares = groups.chunks(groups.len().div_ceil(cores).max(1));
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

fn failure(path: &Path, action: &'static str, source: io::Error) -> BuildError {
    let path: PathBuf = path.to_owned();
    BuildError::Io {
        path,
        action,
        source,
    }
}
