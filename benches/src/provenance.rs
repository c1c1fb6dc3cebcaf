//! Where results come from: device, driver, commit, date.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use warpfuse::device::Device;

/// Fields that all results of a run share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// The device's name.
    pub device: String,
    /// The GPU's driver with the CUDA version that it supports; absent on the CPU.
    pub driver: Option<String>,
    /// What was measured: `WARPFUSE_COMMIT` at run time or at build time, else what git says.
    pub commit: String,
    /// When the run began, UTC.
    pub date: String,
}

impl Provenance {
    /// Of a run that begins now.
    pub fn of(device: &Device) -> Provenance {
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Provenance {
            device: device.name().to_owned(),
            driver: device.driver_version().map(driver),
            commit: commit(),
            date: timestamp(since_epoch.as_secs()),
        }
    }

    /// The folder of this device's results: `NVIDIA H200` has `h200`.
    pub fn folder(&self) -> String {
        let name = self.device.to_lowercase();
        let words = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty());
        words
            .filter(|word| *word != "nvidia")
            .collect::<Vec<_>>()
            .join("-")
    }
}

/// Such as `580.159.04, CUDA 13.0`; the former only where the kernel's module says it.
fn driver(cuda: u32) -> String {
    let cuda = format!("CUDA {}.{}", cuda / 1000, cuda % 1000 / 10);
    let module = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    match module_version(&module) {
        Some(version) => format!("{version}, {cuda}"),
        None => cuda,
    }
}

/// The first word of digits and dots.
fn module_version(text: &str) -> Option<&str> {
    let is_version = |word: &&str| {
        word.contains('.')
            && word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    text.split_whitespace().find(is_version)
}

fn commit() -> String {
    let given = std::env::var("WARPFUSE_COMMIT").ok();
    let built = || option_env!("WARPFUSE_COMMIT").map(str::to_owned);
    given
        .or_else(built)
        .or_else(described_by_git)
        .unwrap_or_else(|| "unknown".to_owned())
}

fn described_by_git() -> Option<String> {
    let mut git = Command::new("git");
    git.current_dir(env!("CARGO_MANIFEST_DIR")).args([
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Seconds since 1970 as `2026-11-21T09:00:00Z`.
fn timestamp(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (time / 3_600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Days since 1970-01-01 as year, month, day of the Gregorian calendar (Hinnant, "chrono-compatible
/// low-level date algorithms": years begin in March, eras have 400 years).
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (400 * era + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(951_868_800), "2000-03-01T00:00:00Z");
        assert_eq!(timestamp(1_700_000_000), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn the_driver_is_read_from_both_forms_of_its_line() {
        let closed =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Jan  1\nGCC 12.2.0";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54  Release Build";
        assert_eq!(module_version(closed), Some("580.159.04"));
        assert_eq!(module_version(open), Some("550.54"));
        assert_eq!(module_version(""), None);
    }

    #[test]
    fn folders_are_short_names() {
        let named = |device: &str| Provenance {
            device: device.into(),
            ..Provenance::of(&Device::cpu())
        };
        assert_eq!(named("NVIDIA H200").folder(), "h200");
        assert_eq!(named("NVIDIA A100-SXM4-80GB").folder(), "a100-sxm4-80gb");
    }
}
