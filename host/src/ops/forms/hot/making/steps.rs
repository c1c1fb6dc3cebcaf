//! What each step of making hot columns takes.

use std::time::Instant;

use crate::device::Device;
use crate::ops::OpError;

/// A step of making hot columns on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HotStep {
    /// A sample of the entries, put in order on the host.
    Sample,
    /// How many entries columns have.
    Count,
    /// Which columns are hot, chosen on the host.
    Choose,
    /// The ranks of the others.
    Rank,
    /// In how few bits values can be stored.
    Judge,
    /// Which rows share a slice.
    Rows,
    /// Entries put where lanes find them.
    Copy,
    /// Panels of the columns that are not hot.
    Panels,
}

/// Wall-clock seconds of steps, the device waited for: some ten microseconds each.
pub(in crate::ops) struct Steps<'d> {
    device: &'d Device,
    begun: Instant,
    taken: Vec<(HotStep, f64)>,
}

impl<'d> Steps<'d> {
    pub(in crate::ops) fn new(device: &'d Device) -> Self {
        Steps {
            device,
            begun: Instant::now(),
            taken: Vec::new(),
        }
    }

    /// A step has been launched.
    pub(in crate::ops) fn done(&mut self, step: HotStep) -> Result<(), OpError> {
        self.device.synchronize()?;
        self.taken.push((step, self.begun.elapsed().as_secs_f64()));
        self.begun = Instant::now();
        Ok(())
    }

    /// All of them.
    pub(in crate::ops) fn taken(self) -> Vec<(HotStep, f64)> {
        for (step, seconds) in &self.taken {
            tracing::debug!(?step, seconds, "hot columns are made");
        }
        self.taken
    }
}
