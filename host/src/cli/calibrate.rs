//! `warpfuse calibrate`: a GPU → its rates, kept for the planner.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use super::args::CalibrateArgs;
use super::device;
use super::exit::Exit;
use super::progress::Ui;
use super::report::{Listing, bytes};
use super::{output, pages};
use crate::device::calibration::Subject;
use crate::device::{Calibration, Device};
use crate::ops::measure_host;
use crate::plan::rates::{RateSource, SizeTable};
use crate::report::RatesPage;

/// Measures, unless that has been done, and prints what was found.
pub(super) fn run(args: &CalibrateArgs, ui: &Ui) -> Result<Exit> {
    pages::check(&args.report)?;
    let device = device::open(args.device, ui)?;
    let (calibration, file) = match kept(&device, ui).filter(|_| !args.force) {
        Some(kept) => {
            ui.remark("this device and driver have been calibrated; --force does it again");
            (kept, None)
        }
        None => {
            let measured = Calibration::of(&device).context("no rates can be measured")?;
            let host = measure_host(&device).context("no rates of the host can be measured")?;
            let measured = measured.with_host(host);
            let file = measured.store().context("the rates cannot be kept")?;
            (measured, Some(file))
        }
    };
    let report = Report { calibration, file };
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(report.text())?;
    }
    if args.report.is_wanted() {
        let page = RatesPage {
            calibration: &report.calibration,
            command: ui.command(),
        };
        pages::write(&args.report, &page.report(), ui)?;
    }
    Ok(Exit::Success)
}

/// What was measured before; a file that cannot be read is measured anew.
fn kept(device: &Device, ui: &Ui) -> Option<Calibration> {
    match Calibration::load(&Subject::of(device)?) {
        Ok(kept) => kept,
        Err(error) => {
            ui.remark(format_args!("measuring again: {error}"));
            None
        }
    }
}

#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    calibration: Calibration,
    /// Where it was written; `None` if it was there already.
    file: Option<PathBuf>,
}

impl Report {
    fn text(&self) -> String {
        let Calibration {
            subject,
            at,
            probed,
        } = &self.calibration;
        let rate = |rate: f64| format!("{rate:.0} 10⁹/s");
        let mut lines = Listing::new();
        lines
            .line("gpu", &subject.device)
            .line("rates", RateSource::Calibrated { at: *at })
            .line("memory read", format_args!("{:.0} GB/s", probed.stream_gbs))
            .line("shared add f32", rate(probed.shared_add_f32))
            .line("shared add f64", rate(probed.shared_add_f64))
            .line("shared add integer", rate(probed.shared_count))
            .line("shared gather", rate(probed.shared_gather))
            .line("gather", listed(&probed.gather, 0))
            .line("global add f32", listed(&probed.scatter_f32, 0))
            .line("global add f64", listed(&probed.scatter_f64, 0))
            .line("launch", format_args!("{:.1} µs", probed.launch_us));
        if let Some(host) = &probed.host {
            lines
                .line(
                    "link, page-locked",
                    format_args!("{:.1} GB/s", host.link.pinned_gbs),
                )
                .line(
                    "link, ordinary memory",
                    format_args!("{:.1} GB/s", host.link.staged_gbs),
                )
                .line(
                    "page-locking",
                    format_args!("{:.1} GB/s", host.link.pinning_gbs),
                )
                .line(
                    "CPU, dense rows",
                    format_args!("{:.1} GB/s", host.dense_gbs),
                )
                .line("CPU, sparse entries", listed(&host.sparse, 2));
        }
        if let Some(file) = &self.file {
            lines.line("kept in", file.display());
        }
        lines.to_string()
    }
}

fn listed(rates: &SizeTable, decimals: usize) -> String {
    let point = |&(size, rate): &(f64, f64)| format!("{rate:.decimals$} in {}", bytes(size as u64));
    let points: Vec<String> = rates.points().iter().map(point).collect();
    format!("10⁹/s: {}", points.join(", "))
}
