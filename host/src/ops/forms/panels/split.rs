//! Entries on a device, split by panels.

use gpu_kernels::fused::panels::CHUNK;
use gpu_kernels::fused::{PanelMaking, PanelMakingArgs, PanelMakingVariant};
use gpu_kernels::{Entry, Family, In, Launch};

use crate::device::{Buffer, Device, Prepared};
use crate::layout::panels::Cuts;
use crate::ops::{Number, OpError};
use crate::plan::panel_making::{Splitting, THREADS};

/// Entries of a chunk, and of a group.
pub(super) const ENTRIES: usize = CHUNK as usize;
/// Threads of a block of which each takes a panel: few, so that many SMs have some.
const OF_PANELS: u32 = 32;

/// Kernels that look at no values are there once.
type Making = PanelMaking<f32>;

/// Entries on a device by rows, whose columns are called by their ranks.
pub(in crate::ops) struct Ranked<'a, T> {
    /// The entries before each row, and their number.
    pub offsets: In<'a, u32>,
    /// The rank of each entry's column, or the column.
    pub ranks: In<'a, u32>,
    /// The rank of each column; absent where `ranks` are ranks.
    pub rank_of: In<'a, u32>,
    /// None where all are 1.
    pub values: In<'a, T>,
}

/// Entries in groups, panel after panel.
pub(super) struct Split<T> {
    /// The first group of each panel, and the number of groups.
    pub groups: Vec<u32>,
    /// The same on the device.
    pub groups_there: Buffer<u32>,
    /// Rows and sums.
    pub ends: Buffer<u64>,
    /// Absent where all are 1.
    pub values: Option<Buffer<T>>,
}

/// The kernel of a variant in a launch.
pub(super) fn kernel<F: Family<Variant = PanelMakingVariant>>(
    device: &Device,
    variant: PanelMakingVariant,
    launch: Launch,
) -> Result<Prepared<F>, OpError> {
    let entry = |entry: &&Entry<F>| entry.variant == variant;
    let found = F::entries().iter().find(entry);
    Ok(device.prepare(found.expect("the table has every step"), launch)?)
}

/// Counts of the windows of panels.
pub(super) struct Counts {
    /// Of each run, of the panels of each window: the entries of the runs before.
    windows: Vec<Buffer<u32>>,
    /// Of each panel.
    totals: Vec<u32>,
}

/// What is split, and how.
pub(super) struct Splitter<'a, T: Number> {
    device: &'a Device,
    entries: &'a Ranked<'a, T>,
    splitting: Splitting,
    bounds: Vec<u32>,
    bounds_there: Buffer<u32>,
}

impl<'a, T: Number> Splitter<'a, T> {
    pub fn new(
        device: &'a Device,
        entries: &'a Ranked<'a, T>,
        cuts: &Cuts,
    ) -> Result<Self, OpError> {
        let bounds = cuts.bounds();
        let panels = bounds.len() as u32 - 1;
        Ok(Splitter {
            device,
            entries,
            splitting: Splitting::of(device.limits(), entries.ranks.len() as u32, panels),
            bounds_there: device.upload(&bounds)?,
            bounds,
        })
    }

    fn panels(&self) -> u32 {
        self.bounds.len() as u32 - 1
    }

    /// A block for some runs.
    fn launch(&self) -> Launch {
        Launch {
            grid: self.splitting.grid,
            block: THREADS,
            shared_bytes: self.splitting.shared_bytes(),
        }
    }

    /// What kernels over runs take, without values.
    fn args<U>(&self, (first, panels): (u32, u32)) -> PanelMakingArgs<'_, U> {
        PanelMakingArgs {
            rows: self.entries.offsets.len() as u32 - 1,
            run: self.splitting.run,
            first,
            panels,
            offsets: self.entries.offsets,
            columns: self.entries.ranks,
            ranks: self.entries.rank_of,
            bounds: self.bounds_there.input(),
            ..PanelMakingArgs::none()
        }
    }

    /// Where the entries of each run begin in each panel.
    pub fn count(&self) -> Result<Counts, OpError> {
        let count = kernel::<Making>(self.device, PanelMakingVariant::Count, self.launch())?;
        let (mut windows, mut totals) = (Vec::new(), Vec::new());
        for window in self.splitting.windows(self.panels()) {
            let runs = self.splitting.runs as usize;
            let mut counts = self.device.zeros(runs * window.1 as usize)?;
            count.launch(PanelMakingArgs {
                counts: counts.output(),
                ..self.args(window)
            })?;
            totals.extend(self.sum(&mut counts, window)?);
            windows.push(counts);
        }
        Ok(Counts { windows, totals })
    }

    /// Replaces counts of runs by those of the runs before; returns those of all.
    fn sum(&self, counts: &mut Buffer<u32>, window: (u32, u32)) -> Result<Vec<u32>, OpError> {
        let launch = Launch {
            grid: window.1.div_ceil(OF_PANELS),
            block: OF_PANELS,
            shared_bytes: 0,
        };
        let mut totals = self.device.zeros(window.1 as usize)?;
        if counts.is_empty() {
            return Ok(totals.to_vec()?);
        }
        let sum = kernel::<Making>(self.device, PanelMakingVariant::Sum, launch)?;
        sum.launch(PanelMakingArgs {
            counts: counts.output(),
            totals: totals.output(),
            ..self.args(window)
        })?;
        Ok(totals.to_vec()?)
    }

    /// The entries in groups.
    pub fn split(&self, mut counts: Counts) -> Result<Split<T>, OpError> {
        let groups = first_groups(&counts.totals);
        let words = groups.last().map_or(0, |all| *all as usize) * ENTRIES;
        let groups_there = self.device.upload(&groups)?;
        let mut ends = self.device.zeros(words)?;
        let has_values = self.entries.values.is_some();
        let mut values = match has_values {
            true => Some(self.device.zeros(words)?),
            false => None,
        };
        let split =
            kernel::<T::PanelMaking>(self.device, PanelMakingVariant::Split, self.launch())?;
        let windows = self.splitting.windows(self.panels());
        for (window, counts) in windows.zip(&mut counts.windows) {
            let args = PanelMakingArgs {
                values: self.entries.values,
                counts: counts.output(),
                groups: groups_there.input(),
                ends: ends.output(),
                ..self.args(window)
            };
            split.launch(match &mut values {
                Some(values) => PanelMakingArgs {
                    split_values: values.output(),
                    ..args
                },
                None => args,
            })?;
        }
        Ok(Split {
            groups,
            groups_there,
            ends,
            values,
        })
    }
}

/// The first group of each panel with this many entries, and the number of groups.
fn first_groups(totals: &[u32]) -> Vec<u32> {
    let mut first = 0;
    let behind = totals.iter().map(|total| {
        first += total.div_ceil(CHUNK);
        first
    });
    std::iter::once(0).chain(behind).collect()
}
