//! Calibrations as files: one per device and driver, in the user's cache directory.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Calibration, CalibrationError, Subject};

/// Files of another version are made anew: what the probes do has changed.
const VERSION: u32 = 1;

/// What a file holds.
#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    #[serde(flatten)]
    calibration: Calibration,
}

/// What every version's file holds.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

/// Where calibrations are kept: `$XDG_CACHE_HOME/warpfuse`, or `~/.cache/warpfuse`; `None` where neither is an
/// absolute path (XDG Base Directory Specification 0.8).
pub fn directory() -> Option<PathBuf> {
    let variable = std::env::var_os;
    directory_of(variable("XDG_CACHE_HOME"), variable("HOME"))
}

pub(super) fn directory_of(cache: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let beneath_home = || home.and_then(absolute).map(|home| home.join(".cache"));
    let base = cache.and_then(absolute).or_else(beneath_home)?;
    Some(base.join("warpfuse"))
}

impl Subject {
    /// Such as `calibration-nvidia-h200-132sm-cuda13000.json`.
    pub(super) fn file_name(&self) -> String {
        let mut slug = String::new();
        for c in self.device.chars() {
            match c.to_ascii_lowercase() {
                c if c.is_ascii_alphanumeric() => slug.push(c),
                _ if slug.ends_with('-') => {}
                _ => slug.push('-'),
            }
        }
        let Subject {
            sms,
            driver_version,
            ..
        } = self;
        format!("calibration-{slug}-{sms}sm-cuda{driver_version}.json")
    }
}

impl Calibration {
    /// The calibration that is kept for a device and driver, if there is one.
    ///
    /// # Errors
    /// When there is a file that is not what it should be.
    pub fn load(subject: &Subject) -> Result<Option<Calibration>, CalibrationError> {
        directory().map_or(Ok(None), |folder| Calibration::load_from(&folder, subject))
    }

    /// Keeps this calibration instead of the one before, and says where.
    ///
    /// # Errors
    /// [`CalibrationError::NoDirectory`] and [`CalibrationError::File`].
    pub fn store(&self) -> Result<PathBuf, CalibrationError> {
        self.store_in(&directory().ok_or(CalibrationError::NoDirectory)?)
    }

    /// [`Calibration::load`] from a folder of your choice.
    ///
    /// # Errors
    /// As [`Calibration::load`].
    pub fn load_from(
        folder: &Path,
        subject: &Subject,
    ) -> Result<Option<Calibration>, CalibrationError> {
        let path = folder.join(subject.file_name());
        match fs::read_to_string(&path) {
            Ok(text) => parse(&path, &text, subject).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused("read", &path)(error)),
        }
    }

    /// [`Calibration::store`] in a folder of your choice. Readers see the old file or the new one, never a part.
    ///
    /// # Errors
    /// [`CalibrationError::File`].
    pub fn store_in(&self, folder: &Path) -> Result<PathBuf, CalibrationError> {
        fs::create_dir_all(folder).map_err(refused("create", folder))?;
        let path = folder.join(self.subject.file_name());
        let file = File {
            version: VERSION,
            calibration: self.clone(),
        };
        let text =
            serde_json::to_string_pretty(&file).map_err(|error| CalibrationError::Format {
                path: path.clone(),
                cause: error.to_string(),
            })?;
        let mut written =
            tempfile::NamedTempFile::new_in(folder).map_err(refused("create a file in", folder))?;
        written
            .write_all(text.as_bytes())
            .map_err(refused("write", written.path()))?;
        written
            .persist(&path)
            .map_err(|error| refused("write", &path)(error.error))?;
        Ok(path)
    }
}

fn refused(
    action: &'static str,
    path: &Path,
) -> impl Fn(std::io::Error) -> CalibrationError + use<> {
    let path = path.to_owned();
    move |error| CalibrationError::File {
        action,
        path: path.clone(),
        cause: error.to_string(),
    }
}

fn parse(path: &Path, text: &str, subject: &Subject) -> Result<Calibration, CalibrationError> {
    let path = || path.to_owned();
    let format = |cause: String| CalibrationError::Format {
        path: path(),
        cause,
    };
    let head: Head = serde_json::from_str(text).map_err(|error| format(error.to_string()))?;
    if head.version != VERSION {
        let found = head.version;
        return Err(format(format!("expected version {VERSION}, found {found}")));
    }
    let file: File = serde_json::from_str(text).map_err(|error| format(error.to_string()))?;
    let calibration = file.calibration;
    if calibration.subject != *subject {
        return Err(CalibrationError::OtherSubject {
            path: path(),
            expected: Box::new(subject.clone()),
            found: Box::new(calibration.subject),
        });
    }
    match calibration.probed.implausible() {
        None => Ok(calibration),
        Some((rate, value)) => Err(CalibrationError::Implausible {
            path: path(),
            rate,
            value,
        }),
    }
}
