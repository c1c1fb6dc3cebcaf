//! The members of a zip file: stored or deflated, with sizes of 32 or 64 bits.
//!
//! Only what NumPy writes: one part, no encryption. Every number is checked against the bytes that there are
//! before it is used, and nothing is allocated for what a header promises.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;

use super::super::error::{Fault, ReadError};

/// How a zip file starts that has at least one member.
pub(in super::super) const MAGIC: &[u8] = b"PK\x03\x04";

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const LOCATOR_64: &[u8] = b"PK\x06\x07";
const ENTRY: &[u8] = b"PK\x01\x02";
/// Bytes of the records without their parts of variable length.
const END_BYTES: usize = 22;
const LOCATOR_BYTES: usize = 20;
const ENTRY_BYTES: usize = 46;
const LOCAL_BYTES: usize = 30;
/// The longest comment at the end of the file.
const MAX_COMMENT: usize = 0xffff;
/// What stands for a number that is in a record of 64 bits instead.
const IN_64: u64 = 0xffff_ffff;
/// The kind of extra field that holds numbers of 64 bits.
const EXTRA_64: u16 = 1;

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// A file in the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name.
    pub(super) name: String,
    /// Where its local header starts, in bytes.
    pub(super) at: usize,
    method: u16,
    packed: usize,
    unpacked: u64,
    checksum: u32,
}

/// The directory of an archive.
#[derive(Debug)]
pub(super) struct Archive {
    /// In the order of the directory.
    pub(super) members: Vec<Member>,
}

impl Archive {
    /// Reads the directory at the end of `content`.
    pub(super) fn open(path: &Path, content: &[u8]) -> Result<Archive, ReadError> {
        let tail = content.len().saturating_sub(END_BYTES + MAX_COMMENT);
        let end = memchr::memmem::rfind(&content[tail..], END)
            .map(|at| tail + at)
            .filter(|&at| content.len() - at >= END_BYTES)
            .ok_or_else(|| {
                let expected = "the directory at the end of an npz file";
                fault(path, content.len(), expected, "the end of the file")
            })?;
        let (count, start) = directory(content, end)
            .filter(|&(_, start)| start <= end as u64)
            .ok_or_else(|| fault(path, end, "a directory within the file", "one beyond it"))?;
        let mut members = Vec::new();
        // At most the file's length, as was checked.
        let mut at = start as usize;
        for _ in 0..count {
            let (member, length) = entry(&content[..end], at).ok_or_else(|| {
                let expected = format!("an entry for each of the {count} files in the directory");
                fault(path, at, expected, format!("{} entries", members.len()))
            })?;
            members.push(member);
            at += length;
        }
        Ok(Archive { members })
    }
}

/// The number of members and the start of the directory, as the end record at `end` says.
fn directory(content: &[u8], end: usize) -> Option<(u64, u64)> {
    let count = u64::from(u16_at(content, end + 10)?);
    let start = u64::from(u32_at(content, end + 16)?);
    if count != 0xffff && start != IN_64 {
        return Some((count, start));
    }
    let locator = end.checked_sub(LOCATOR_BYTES)?;
    if !content[locator..].starts_with(LOCATOR_64) {
        return Some((count, start));
    }
    let record = usize::try_from(u64_at(content, locator + 8)?).ok()?;
    content.get(record..)?.starts_with(END_64).then_some(())?;
    Some((u64_at(content, record + 32)?, u64_at(content, record + 48)?))
}

/// The entry of the directory at `at`, and its length.
fn entry(content: &[u8], at: usize) -> Option<(Member, usize)> {
    content.get(at..)?.starts_with(ENTRY).then_some(())?;
    let lengths = [28, 30, 32].map(|field| u16_at(content, at + field).map(usize::from));
    let [Some(name), Some(extra), Some(comment)] = lengths else {
        return None;
    };
    let name_at = at + ENTRY_BYTES;
    let text = content.get(name_at..name_at + name)?;
    let extra = content.get(name_at + name..name_at + name + extra)?;
    let mut sizes = [
        u64::from(u32_at(content, at + 24)?),
        u64::from(u32_at(content, at + 20)?),
        u64::from(u32_at(content, at + 42)?),
    ];
    widen(&mut sizes, extra)?;
    let [unpacked, packed, local] = sizes;
    let member = Member {
        name: String::from_utf8_lossy(text).into_owned(),
        at: usize::try_from(local).ok()?,
        method: u16_at(content, at + 10)?,
        packed: usize::try_from(packed).ok()?,
        unpacked,
        checksum: u32_at(content, at + 16)?,
    };
    Some((member, ENTRY_BYTES + name + extra.len() + comment))
}

/// Replaces the sizes that do not fit 32 bits by those of the extra field, which has them in this order.
fn widen(sizes: &mut [u64; 3], mut extra: &[u8]) -> Option<()> {
    if !sizes.contains(&IN_64) {
        return Some(());
    }
    while extra.len() >= 4 {
        let (kind, length) = (u16_at(extra, 0)?, usize::from(u16_at(extra, 2)?));
        let field = extra.get(4..4 + length)?;
        if kind == EXTRA_64 {
            let mut numbers = field.chunks_exact(8);
            for size in sizes.iter_mut().filter(|size| **size == IN_64) {
                *size = u64_at(numbers.next()?, 0)?;
            }
            return Some(());
        }
        extra = &extra[4 + length..];
    }
    Some(())
}

impl Member {
    /// The bytes of the file, of at most `limit` when they have to be unpacked.
    pub(super) fn read<'a>(
        &self,
        path: &Path,
        content: &'a [u8],
        limit: u64,
    ) -> Result<Cow<'a, [u8]>, ReadError> {
        let inner = path.join(&self.name);
        let packed = self.packed(content).ok_or_else(|| {
            let expected = format!("{} bytes of the file {}", self.packed, self.name);
            fault(
                path,
                self.at,
                expected,
                "the end of the file or another record",
            )
        })?;
        let bytes = match self.method {
            STORED => Cow::Borrowed(packed),
            DEFLATED => Cow::Owned(self.inflate(&inner, packed, limit)?),
            other => {
                let expected = "a file that is stored or deflated";
                return Err(fault(&inner, self.at, expected, format!("method {other}")));
            }
        };
        let mut checksum = flate2::Crc::new();
        checksum.update(&bytes);
        if bytes.len() as u64 != self.unpacked || checksum.sum() != self.checksum {
            let expected = format!("{} bytes with the checksum in the directory", self.unpacked);
            return Err(fault(
                &inner,
                self.at,
                expected,
                format!("{} other bytes", bytes.len()),
            ));
        }
        Ok(bytes)
    }

    /// The bytes as they are in the archive.
    fn packed<'a>(&self, content: &'a [u8]) -> Option<&'a [u8]> {
        let local = content.get(self.at..)?;
        local.starts_with(MAGIC).then_some(())?;
        let names = usize::from(u16_at(local, 26)?) + usize::from(u16_at(local, 28)?);
        local.get(LOCAL_BYTES + names..)?.get(..self.packed)
    }

    fn inflate(&self, inner: &Path, packed: &[u8], limit: u64) -> Result<Vec<u8>, ReadError> {
        let most = self.unpacked.min(limit);
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(packed)
            .take(most.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| ReadError::io(inner, error))?;
        if bytes.len() as u64 > limit {
            let (needed, why) = (bytes.len() as u64, Some("the unpacked file".to_owned()));
            return Err(Fault::Memory { needed, limit, why }.locate(inner, &[]));
        }
        Ok(bytes)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

fn fault(
    path: &Path,
    offset: usize,
    expected: impl Into<String>,
    found: impl Into<String>,
) -> ReadError {
    ReadError::binary(path, offset as u64, expected, found)
}
