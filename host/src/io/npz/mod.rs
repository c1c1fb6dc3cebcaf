//! NumPy's archives of arrays: dense features, and targets beside them.
//!
//! Written by `numpy.savez` and `savez_compressed`: a zip file with an npy file for every array. The features
//! are the array with two axes called `X`, `x`, `data`, `features` or `arr_0`, or the only array there is
//! besides the targets. The targets are the array that [`Target`] names, or else `y`, `target`, `targets`,
//! `label` or `labels` where there is one, or `arr_1` beside `arr_0`.
//!
//! What `scipy.sparse.save_npz` writes is read as sparse features: CSR, CSC and COO matrices.
//!
//! Source of the format: NumPy Enhancement Proposal 1; for the archive PKWARE's APPNOTE.TXT 6.3.

mod scipy;
#[cfg(test)]
mod tests;
mod zip;

use std::path::Path;

use super::error::ReadError;
use super::npy;
use super::options::Target;
use crate::matrix::{Dataset, Element};
use zip::{Archive, Member};

pub(super) use zip::MAGIC;

/// What arrays of features are called.
const FEATURES: [&str; 5] = ["X", "x", "data", "features", "arr_0"];

/// What arrays of targets are called.
const TARGETS: [&str; 6] = ["y", "target", "targets", "label", "labels", "arr_1"];

/// What every member's name ends with.
const SUFFIX: &str = ".npy";

/// What an archive holds.
pub(super) struct Arrays<T> {
    pub(super) data: Dataset<T>,
    /// Targets that are texts.
    pub(super) texts: Option<Vec<String>>,
}

/// Parses the content of an npz file.
pub(super) fn parse<T: Element>(
    path: &Path,
    content: &[u8],
    target: Option<&Target>,
    limit: u64,
) -> Result<Arrays<T>, ReadError> {
    let archive = Archive::open(path, content)?;
    if let Some(format) = find(&archive, "format")
        && find(&archive, "shape").is_some()
    {
        if let Some(target) = target {
            let expected = format!("an array of targets called `{}`", target.name());
            let found = "the arrays of a sparse matrix; name targets with --target";
            return Err(ReadError::binary(path, 0, expected, found));
        }
        let data = scipy::parse(path, content, &archive, format, limit)?;
        return Ok(Arrays { data, texts: None });
    }
    let target = find_target(path, &archive, target)?;
    let features = find_features(path, &archive, target)?;
    let (mut targets, mut texts) = (None, None);
    if let Some(member) = target {
        let bytes = member.read(path, content, limit)?;
        let inner = path.join(&member.name);
        texts = npy::texts(&inner, &bytes, limit)?;
        if texts.is_none() {
            let bytes = npy::Bytes::of_memory(&bytes);
            targets = Some(npy::parse_vector::<T>(&inner, bytes, limit)?);
        }
    }
    let bytes = features.read(path, content, limit)?;
    let data = npy::parse::<T>(
        &path.join(&features.name),
        npy::Bytes::of_memory(&bytes),
        limit,
    )?;
    let count = targets.as_ref().map(Vec::len);
    let count = count.or(texts.as_ref().map(Vec::len));
    if let Some(count) = count
        && count != data.features.rows()
    {
        let expected = format!(
            "one target for each of the {} samples",
            data.features.rows()
        );
        let found = format!("{count} targets");
        return Err(ReadError::binary(path, features.at as u64, expected, found));
    }
    let data = Dataset { targets, ..data };
    Ok(Arrays { data, texts })
}

fn array_name(member: &Member) -> &str {
    member.name.strip_suffix(SUFFIX).unwrap_or(&member.name)
}

fn find<'a>(archive: &'a Archive, name: &str) -> Option<&'a Member> {
    let mut members = archive.members.iter();
    members.find(|member| array_name(member) == name)
}

fn find_target<'a>(
    path: &Path,
    archive: &'a Archive,
    target: Option<&Target>,
) -> Result<Option<&'a Member>, ReadError> {
    let Some(target) = target else {
        let found = TARGETS.iter().find_map(|name| find(archive, name));
        return Ok(
            found.filter(|member| array_name(member) != "arr_1" || archive.members.len() == 2)
        );
    };
    let name = target.name();
    let found = find(archive, name);
    found.map(Some).ok_or_else(|| {
        let expected = format!("an array of targets called `{name}`");
        ReadError::binary(path, 0, expected, listed(archive))
    })
}

fn find_features<'a>(
    path: &Path,
    archive: &'a Archive,
    target: Option<&Member>,
) -> Result<&'a Member, ReadError> {
    let others = || {
        let members = archive.members.iter();
        members.filter(|&member| target.is_none_or(|target| !std::ptr::eq(member, target)))
    };
    let named = FEATURES
        .iter()
        .find_map(|name| others().find(|member| array_name(member) == *name));
    let mut rest = others();
    let only = rest.next().filter(|_| rest.next().is_none());
    named.or(only).ok_or_else(|| {
        let expected = format!("an array of features called {}", FEATURES.join(", "));
        ReadError::binary(path, 0, expected, listed(archive))
    })
}

/// The arrays that there are, for an error.
fn listed(archive: &Archive) -> String {
    const MOST: usize = 10;
    let names = archive.members.iter().take(MOST);
    let names: Vec<_> = names
        .map(|member| format!("`{}`", array_name(member).escape_debug()))
        .collect();
    match archive.members.len() {
        0 => "no arrays".to_owned(),
        count if count > MOST => format!("{} and {} more", names.join(", "), count - MOST),
        _ => names.join(", "),
    }
}
