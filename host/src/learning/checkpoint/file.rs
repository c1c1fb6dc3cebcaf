//! The file of a checkpoint: safetensors, readable from any language.
//!
//! The metadata hold `format`, `version` and `identity` (which fit it is, as JSON); tensor `3/theta` is the list `theta` of the
//! fourth solve of the fit; the last tensor, `checksum`, is of everything before it. A file is written beside its target and
//! renamed when the disk has it, so that a process that dies and a full disk leave the one before.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use safetensors::tensor::{Dtype as TensorType, SafeTensors};

use super::error::CheckpointError;
use super::identity::Identity;
use super::record::{List, Record};
use crate::parallel::checksum::{checksum, combine};
use crate::whole::keep_whole;

const FORMAT: &str = "warpfuse-checkpoint";
const CHECKSUM: &str = "checksum";

/// What a file holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Content {
    pub(super) identity: Identity,
    /// Of the solves of a fit by their numbers: how they ended, and where the last one stands.
    pub(super) solves: BTreeMap<usize, Record>,
}

/// Replaces the file at `path`.
pub(super) fn write(
    path: &Path,
    identity: &Identity,
    solves: &BTreeMap<usize, &Record>,
) -> Result<(), CheckpointError> {
    let lists: Vec<(String, &List)> = solves
        .iter()
        .flat_map(|(number, record)| {
            let named = move |(name, list): (&String, _)| (format!("{number}/{name}"), list);
            record.lists.iter().map(named)
        })
        .collect();
    let header = header(identity, &lists);
    let sums = lists.iter().map(|(_, list)| checksum(&list.bytes));
    let sum = sums.fold(checksum(&header), combine);
    let fill = &mut |out: &mut dyn Write| {
        out.write_all(&(header.len() as u64).to_le_bytes())?;
        out.write_all(&header)?;
        lists
            .iter()
            .try_for_each(|(_, list)| out.write_all(&list.bytes))?;
        out.write_all(&sum.to_le_bytes())
    };
    keep_whole(path, fill).map_err(|source| refused("write", path, &source))
}

fn header(identity: &Identity, lists: &[(String, &List)]) -> Vec<u8> {
    let metadata = serde_json::json!({
        "format": FORMAT,
        "version": env!("CARGO_PKG_VERSION"),
        "identity": serde_json::json!(identity).to_string(),
    });
    let mut header = serde_json::Map::new();
    header.insert("__metadata__".to_owned(), metadata);
    let mut end = 0;
    let mut tensor = |name: &str, kind: TensorType, (len, bytes): (usize, usize)| {
        let about = serde_json::json!({
            "dtype": kind, "shape": [len], "data_offsets": [end, end + bytes],
        });
        header.insert(name.to_owned(), about);
        end += bytes;
    };
    for (name, list) in lists {
        tensor(name, list.kind, (list.len(), list.bytes.len()));
    }
    tensor(CHECKSUM, TensorType::U8, (8, 8));
    let mut header = serde_json::Value::Object(header).to_string().into_bytes();
    header.resize(header.len().next_multiple_of(8), b' ');
    header
}

/// The bytes of the file at `path`; nothing where there is none.
pub(super) fn read(path: &Path) -> Result<Option<Vec<u8>>, CheckpointError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(refused("read", path, &error)),
    }
}

/// What a file holds of these bytes.
pub(super) fn of_bytes(path: &Path, bytes: &[u8]) -> Result<Content, CheckpointError> {
    let damaged = |reason| CheckpointError::Damaged {
        path: path.to_owned(),
        reason,
    };
    content(bytes).map_err(damaged)
}

fn content(bytes: &[u8]) -> Result<Content, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let (length, about) = SafeTensors::read_metadata(bytes).map_err(|error| text(&error))?;
    let metadata = about.metadata().as_ref();
    let field = |name| metadata.and_then(|metadata| metadata.get(name));
    let format = field("format").map_or("none", String::as_str);
    if format != FORMAT {
        return Err(format!("expected format {FORMAT}, found {format}"));
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| text(&error))?;
    let mut solves: BTreeMap<usize, Record> = BTreeMap::new();
    let mut stored = None;
    for (name, tensor) in tensors.tensors() {
        if name == CHECKSUM {
            stored = tensor.data().try_into().ok().map(u64::from_le_bytes);
            continue;
        }
        let of_solve = name.split_once('/');
        let of_solve = of_solve.and_then(|(number, name)| Some((number.parse().ok()?, name)));
        let (number, name): (usize, _) = of_solve.ok_or(format!("found a tensor {name}"))?;
        let list = List {
            kind: tensor.dtype(),
            bytes: tensor.data().to_vec(),
        };
        let record = solves.entry(number).or_default();
        record.lists.insert(name.to_owned(), list);
    }
    let header = checksum(bytes.get(8..8 + length).unwrap_or_default());
    let lists = solves.values().flat_map(|record| record.lists.values());
    let sum = lists.fold(header, |sum, list| combine(sum, checksum(&list.bytes)));
    if stored != Some(sum) {
        return Err("its checksum is not that of its content".to_owned());
    }
    let identity = field("identity").ok_or("expected an identity, found none")?;
    let identity = serde_json::from_str(identity).map_err(|error| text(&error))?;
    Ok(Content { identity, solves })
}

/// What the file system said.
pub(super) fn refused(action: &'static str, path: &Path, source: &io::Error) -> CheckpointError {
    CheckpointError::Io {
        action,
        path: path.to_owned(),
        reason: source.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_two_solves() -> Content {
        let mut content = Content::default();
        content.identity.fact("alpha", 0.5);
        for (number, list) in [(0, &[1.0, f64::NEG_INFINITY][..]), (11, &[])] {
            let mut record = Record::default();
            record.text("solver", "newton-cg");
            record.numbers("at", list);
            content.solves.insert(number, record);
        }
        content
    }

    fn written(path: &Path, content: &Content) -> Vec<u8> {
        let solves = content.solves.iter().map(|(number, of)| (*number, of));
        write(path, &content.identity, &solves.collect()).expect("written");
        std::fs::read(path).expect("there")
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, expected) = (folder.path().join("checkpoint"), of_two_solves());
        assert_eq!(read(&path), Ok(None));
        let bytes = written(&path, &expected);
        assert_eq!(of_bytes(&path, &bytes), Ok(expected));
        SafeTensors::deserialize(&bytes).expect("others read it");
    }

    #[test]
    fn whatever_is_damaged_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("checkpoint");
        let bytes = written(&path, &of_two_solves());
        let is_refused =
            |bytes: &[u8]| matches!(of_bytes(&path, bytes), Err(CheckpointError::Damaged { .. }));
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            assert!(is_refused(&other), "byte {at} of {}", bytes.len());
            assert!(is_refused(&bytes[..at]), "the first {at} bytes");
        }
        assert!(is_refused(&[&bytes[..], b"more"].concat()));
    }
}
