//! Tables as files: JSON, one object an entry, each with a checksum.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Dropped, Key, Launch, Measured, START, Site, Table, fnv};

/// Files of another version are not read: their launches mean something else.
const VERSION: u32 = 1;

/// A measured launch with what it is true for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Where, and of which problems.
    #[serde(flatten)]
    pub key: Key,
    /// The launch.
    pub launch: Launch,
    /// Its median time, nanoseconds.
    pub ns: u64,
    /// That of the planner's own choice, nanoseconds.
    pub planned_ns: u64,
}

/// The entries of a file, of whatever devices.
///
/// ```
/// use warpfuse::plan::fused::Forced;
/// use warpfuse::plan::tuned::{Entry, Key, Launch, Site, TableFile, code_version};
///
/// let key = |device: &str| Key {
///     device: device.to_owned(),
///     driver: 13_000,
///     code: code_version().to_owned(),
///     class: "fused f32 100 x 10 f32, dense".to_owned(),
/// };
/// let launch = Launch::Fused(Forced { bs: Some(256), ..Forced::default() });
/// let entry = |device| Entry { key: key(device), launch: launch.clone(), ns: 4_100, planned_ns: 4_500 };
/// let mut file = TableFile::default();
/// file.insert(entry("NVIDIA H200"));
/// file.insert(entry("NVIDIA H100 80GB HBM3"));
///
/// let again = TableFile::parse(&file.to_json())?;
/// assert_eq!(again, file);
/// let table = again.table(&Site { device: "NVIDIA H200", driver: Some(13_000) });
/// assert_eq!((table.len(), table.dropped().foreign), (1, 1));
/// // A time that somebody has changed does not count.
/// let poisoned = TableFile::parse(&file.to_json().replace("4100", "100"))?;
/// assert_eq!((poisoned.entries().len(), poisoned.damaged()), (0, 2));
/// # Ok::<(), warpfuse::plan::tuned::TableFileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableFile {
    entries: Vec<Entry>,
    damaged: usize,
}

/// Why a text is no table.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableFileError {
    /// No JSON, or not of a table.
    #[error("expected a table that `warpfuse tune --table` wrote, found {0}")]
    Format(#[from] serde_json::Error),
    /// Written by another version.
    #[error(
        "expected a table of version {VERSION}, found version {0}; tune again with this version"
    )]
    Version(u32),
}

#[derive(Serialize, Deserialize)]
struct Written<E> {
    warpfuse_tuned: u32,
    entries: Vec<E>,
}

#[derive(Serialize, Deserialize)]
struct Summed {
    /// Of the entry's text without spaces.
    sum: String,
    #[serde(flatten)]
    entry: Entry,
}

impl TableFile {
    /// Reads what [`to_json`](Self::to_json) wrote. Entries that were changed since, or are none, are left out and
    /// [counted](Self::damaged).
    ///
    /// # Errors
    /// [`TableFileError`] where the text is no table at all.
    pub fn parse(text: &str) -> Result<TableFile, TableFileError> {
        let written: Written<serde_json::Value> = serde_json::from_str(text)?;
        if written.warpfuse_tuned != VERSION {
            return Err(TableFileError::Version(written.warpfuse_tuned));
        }
        let mut file = TableFile::default();
        for value in written.entries {
            match serde_json::from_value::<Summed>(value) {
                Ok(Summed { sum, entry }) if sum == sum_of(&entry) => file.insert(entry),
                _ => file.damaged += 1,
            }
        }
        Ok(file)
    }

    /// The text of a file.
    pub fn to_json(&self) -> String {
        let entries = self.entries.iter().map(|entry| Summed {
            sum: sum_of(entry),
            entry: entry.clone(),
        });
        let written = Written {
            warpfuse_tuned: VERSION,
            entries: entries.collect(),
        };
        let text = serde_json::to_string_pretty(&written);
        text.expect("an entry has no keys but strings") + "\n"
    }

    /// Adds an entry, instead of the one with its key.
    pub fn insert(&mut self, entry: Entry) {
        self.remove(&entry.key);
        self.entries.push(entry);
    }

    /// Takes out the entry with this key.
    pub fn remove(&mut self, key: &Key) {
        self.entries.retain(|known| known.key != *key);
    }

    /// Entries that were left out when the text was read.
    pub fn damaged(&self) -> usize {
        self.damaged
    }

    /// All entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entries that are true at `site`.
    pub fn table(&self, site: &Site<'_>) -> Table {
        let own = self.entries.iter().filter(|entry| entry.key.is_of(site));
        let of = |entry: &Entry| {
            let Entry {
                key,
                launch,
                ns,
                planned_ns,
            } = entry.clone();
            let measured = Measured {
                launch,
                ns,
                planned_ns,
            };
            (key.class, measured)
        };
        let table: Table = own.map(of).collect();
        let dropped = Dropped {
            foreign: self
                .entries
                .iter()
                .filter(|entry| !entry.key.is_of(site))
                .count(),
            damaged: self.damaged,
        };
        Table { dropped, ..table }
    }
}

fn sum_of(entry: &Entry) -> String {
    let text = serde_json::to_string(entry).expect("an entry has no keys but strings");
    format!("{:016x}", fnv(START, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fused::Forced;
    use crate::plan::tuned::code_version;

    fn entry(class: &str, ns: u64) -> Entry {
        Entry {
            key: Key {
                device: "a device".into(),
                driver: 7,
                code: code_version().into(),
                class: class.into(),
            },
            launch: Launch::Fused(Forced {
                vs: Some(8),
                ..Forced::default()
            }),
            ns,
            planned_ns: 2 * ns,
        }
    }

    const HERE: Site<'static> = Site {
        device: "a device",
        driver: Some(7),
    };

    #[test]
    fn an_entry_replaces_the_one_of_its_key() {
        let mut file = TableFile::default();
        file.insert(entry("a", 10));
        file.insert(entry("b", 20));
        file.insert(entry("a", 5));
        let table = file.table(&HERE);
        assert_eq!((table.len(), table.dropped().foreign), (2, 0));
        assert_eq!(table.get("a").map(|measured| measured.ns), Some(5));
        assert_eq!(table.get("c"), None);
    }

    #[test]
    fn entries_of_other_devices_drivers_and_versions_are_foreign() {
        let mut file = TableFile::default();
        file.insert(entry("a", 10));
        for change in [
            |key: &mut Key| key.device.push('!'),
            |key: &mut Key| key.driver += 1,
            |key: &mut Key| key.code.push('0'),
        ] {
            let mut other = entry("a", 1);
            change(&mut other.key);
            file.insert(other);
        }
        let table = file.table(&HERE);
        assert_eq!((table.len(), table.dropped().foreign), (1, 3));
        assert_eq!(table.get("a").map(|measured| measured.ns), Some(10));
        let absent = Site {
            driver: None,
            ..HERE
        };
        let foreign = file.table(&absent).dropped().foreign;
        assert_eq!(foreign, 2, "the driver is not known there");
    }

    #[test]
    fn every_changed_figure_or_name_is_noticed() {
        let mut file = TableFile::default();
        file.insert(entry("a", 1_234));
        let text = file.to_json();
        for (from, to) in [
            ("1234", "1"),
            ("\"a\"", "\"b\""),
            ("\"vs\": 8", "\"vs\": 16"),
        ] {
            let poisoned = text.replace(from, to);
            assert_ne!(poisoned, text);
            let left = TableFile::parse(&poisoned).expect("still a table");
            assert_eq!((left.entries().len(), left.damaged()), (0, 1), "{from}");
            assert_eq!(left.table(&HERE).dropped().damaged, 1);
        }
        assert!(TableFile::parse("[]").is_err());
        let newer = text.replace("\"warpfuse_tuned\": 1", "\"warpfuse_tuned\": 2");
        let error = TableFile::parse(&newer).expect_err("another version");
        assert!(matches!(error, TableFileError::Version(2)));
    }
}
