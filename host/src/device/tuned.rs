//! Which measured launches a device's planners take: a table of [`crate::plan::tuned`].
//!
//! ```
//! use warpfuse::device::{Device, EmulatorOptions};
//! # #[cfg(feature = "emulator")] {
//! let device = Device::emulator(EmulatorOptions::default());
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("tuned.json");
//! std::fs::write(&path, warpfuse::plan::tuned::TableFile::default().to_json())?;
//! let dropped = device.read_tuned(&path)?;
//! assert_eq!((dropped.foreign, dropped.damaged), (0, 0));
//! assert!(device.tuned().is_some_and(|table| table.is_empty()));
//! device.use_tuned(None);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, RwLock};

use super::{Device, DeviceError};
use crate::plan::tuned::{Dropped, Site, Table, TableFile};

/// The environment variable that names a table for every GPU that is opened.
pub const VARIABLE: &str = "WARPFUSE_TUNED";

/// What [`apply_to_gpus`] was told.
static FILE: OnceLock<PathBuf> = OnceLock::new();

/// The table of a device, which all its handles share.
#[derive(Debug, Clone, Default)]
pub(super) struct Tuned(Arc<RwLock<Option<Arc<Table>>>>);

impl Tuned {
    /// The table of a device that is being opened: of the file that was named, if one was.
    #[cfg_attr(not(feature = "cuda"), allow(dead_code))]
    pub(super) fn of_environment(site: &Site<'_>) -> Result<Tuned, DeviceError> {
        let tuned = Tuned::default();
        if let Some(path) = file() {
            let table = read(&path, site)?;
            let Dropped { foreign, damaged } = table.dropped();
            let (path, taken) = (path.display(), table.len());
            tracing::info!(%path, taken, foreign, damaged, "table of tuned launches");
            tuned.set(Some(table));
        }
        Ok(tuned)
    }

    pub(super) fn set(&self, table: Option<Table>) {
        // Nothing panics while it is held, and the table is replaced as a whole.
        let mut held = self.0.write().unwrap_or_else(|held| held.into_inner());
        *held = table.map(Arc::new);
    }

    pub(super) fn get(&self) -> Option<Arc<Table>> {
        let held = self.0.read().unwrap_or_else(|held| held.into_inner());
        held.clone()
    }
}

/// The file whose table GPUs take: the one of [`apply_to_gpus`], or else of [`VARIABLE`].
pub fn file() -> Option<PathBuf> {
    FILE.get()
        .cloned()
        .or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from))
        .filter(|path| !path.as_os_str().is_empty())
}

/// Has every GPU that is opened from now on take the table of this file instead of the one that [`VARIABLE`] names. The first
/// call counts.
pub fn apply_to_gpus(path: PathBuf) {
    let _ = FILE.set(path);
}

/// The table of a file for one device.
///
/// # Errors
/// [`DeviceError::Tuned`] when the file cannot be read, or is no table.
pub fn read(path: &Path, site: &Site<'_>) -> Result<Table, DeviceError> {
    let refused = |cause: String| DeviceError::Tuned {
        path: path.display().to_string(),
        cause,
    };
    let text = std::fs::read_to_string(path).map_err(|error| refused(error.to_string()))?;
    let file = TableFile::parse(&text).map_err(|error| refused(error.to_string()))?;
    Ok(file.table(site))
}

/// Fails where a file is named that is no table: `auto` would take a device that needs none.
///
/// # Errors
/// As [`read`].
pub fn check_file() -> Result<(), DeviceError> {
    let nowhere = Site {
        device: "",
        driver: None,
    };
    file().map_or(Ok(()), |path| read(&path, &nowhere).map(drop))
}

impl Device {
    /// Has planners take the launches of a table, or none. All handles of one device share it; what was planned before stays.
    /// The CPU has nothing to plan.
    pub fn use_tuned(&self, table: Option<Table>) {
        if let Some(tuned) = self.tuned_slot() {
            tuned.set(table);
        }
    }

    /// [`use_tuned`](Self::use_tuned) with the entries of a file that `warpfuse tune --table` wrote; those of other devices,
    /// drivers or versions, and such that were changed, are dropped and counted.
    ///
    /// # Errors
    /// [`DeviceError::Tuned`] when the file cannot be read, or is no table.
    pub fn read_tuned(&self, path: &Path) -> Result<Dropped, DeviceError> {
        let table = read(path, &self.site())?;
        let dropped = table.dropped();
        self.use_tuned(Some(table));
        Ok(dropped)
    }

    /// The table that planners take launches from.
    pub fn tuned(&self) -> Option<Arc<Table>> {
        self.tuned_slot()?.get()
    }

    /// What its measurements are true for, beside the version of the code.
    pub fn site(&self) -> Site<'_> {
        Site {
            device: self.name(),
            driver: Some(self.driver_version().unwrap_or(0)),
        }
    }

    fn tuned_slot(&self) -> Option<&Tuned> {
        match self {
            Device::Cuda(device) => Some(device.tuned()),
            Device::Cpu(_) => None,
            Device::Emulator(device) => Some(device.tuned()),
        }
    }
}
