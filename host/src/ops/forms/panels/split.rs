//! Entries on a device, split by panels or by digits of their columns.

use gpu_kernels::forms::panels::By;
use gpu_kernels::forms::panels::{PanelMaking, PanelMakingArgs, PanelMakingVariant};
use gpu_kernels::fused::panels::CHUNK;
use gpu_kernels::{Entry, Family, In, Launch};

use crate::device::{Buffer, Device, Prepared};
use crate::layout::panels::Cuts;
use crate::ops::blocks::SparseBlock;
use crate::ops::launch::optional;
use crate::ops::{Number, OpError};
use crate::plan::panel_making::{Digit, Splitting, THREADS};

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

impl<'a, T: Number> Ranked<'a, T> {
    /// Columns by their own numbers.
    pub(in crate::ops) fn of(block: &SparseBlock<'a, T>) -> Self {
        Ranked {
            offsets: block.offsets,
            ranks: block.indices,
            rank_of: In::none(),
            values: block.values,
        }
    }
}

/// Entries that have been split: in groups, panel after panel, or in the order of a digit.
pub(super) struct Split<T> {
    /// The first group of each panel, and the number of groups; the first entry of each value of a digit.
    pub groups: Vec<u32>,
    /// The same on the device.
    pub groups_there: Buffer<u32>,
    /// Inputs and sums, or rows and columns.
    pub ends: Buffer<u64>,
    /// Absent where all are 1.
    pub values: Option<Buffer<T>>,
    /// Lowest bits of inputs that do not ascend.
    pub unordered: u32,
}

/// Entries before a split.
#[derive(Clone, Copy)]
pub(super) enum Source<'a, T> {
    /// Row by row.
    Rows(&'a Ranked<'a, T>),
    /// In the order of digits of their columns.
    Pairs(&'a Split<T>),
}

impl<'a, T: Number> Source<'a, T> {
    fn entries(&self) -> u32 {
        let entries = match self {
            Source::Rows(rows) => rows.ranks.len(),
            Source::Pairs(pairs) => pairs.ends.len() as u64,
        };
        u32::try_from(entries).expect("offsets of 32 bits count them")
    }

    fn values(&self) -> In<'a, T> {
        match self {
            Source::Rows(rows) => rows.values,
            Source::Pairs(pairs) => optional(&pairs.values),
        }
    }

    /// What kernels take of them besides.
    fn args<U>(&self) -> PanelMakingArgs<'a, U> {
        match self {
            Source::Rows(entries) => PanelMakingArgs {
                rows: entries.offsets.len() as u32 - 1,
                offsets: entries.offsets,
                columns: entries.ranks,
                ranks: entries.rank_of,
                ..PanelMakingArgs::none()
            },
            Source::Pairs(pairs) => PanelMakingArgs {
                pairs: pairs.ends.input(),
                ..PanelMakingArgs::none()
            },
        }
    }
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
pub(super) struct Splitter<'a, T> {
    device: &'a Device,
    source: Source<'a, T>,
    by: By,
    /// Bits of a column below the digit.
    shift: u32,
    /// Panels, or values of the digit.
    panels: u32,
    /// The first output of each panel.
    bounds: Option<Buffer<u32>>,
    splitting: Splitting,
}

impl<'a, T: Number> Splitter<'a, T> {
    /// By panels of columns, or of rows.
    pub fn by_panels(
        device: &'a Device,
        source: Source<'a, T>,
        (by, cuts): (By, &Cuts),
    ) -> Result<Self, OpError> {
        let bounds = cuts.bounds();
        let panels = bounds.len() as u32 - 1;
        Ok(Splitter {
            device,
            source,
            by,
            shift: 0,
            panels,
            bounds: Some(device.upload(&bounds)?),
            splitting: Splitting::of(device.limits(), source.entries(), panels),
        })
    }

    /// By a digit of columns.
    pub fn by_digit(device: &'a Device, source: Source<'a, T>, digit: Digit) -> Self {
        let panels = 1 << digit.bits;
        Splitter {
            device,
            source,
            by: By::Digit,
            shift: digit.shift,
            panels,
            bounds: None,
            splitting: Splitting::of(device.limits(), source.entries(), panels),
        }
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
            run: self.splitting.run,
            first,
            panels,
            by: self.by,
            shift: self.shift,
            bounds: optional(&self.bounds),
            ..self.source.args()
        }
    }

    /// Where the entries of each run begin in each panel.
    pub fn count(&self) -> Result<Counts, OpError> {
        let count = kernel::<Making>(self.device, PanelMakingVariant::Count, self.launch())?;
        let (mut windows, mut totals) = (Vec::new(), Vec::new());
        for window in self.splitting.windows(self.panels) {
            let runs = self.splitting.runs as usize;
            let mut counts = self.device.zeros(runs * window.1 as usize)?;
            if runs > 0 {
                count.launch(PanelMakingArgs {
                    counts: counts.output(),
                    ..self.args(window)
                })?;
            }
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

    /// Lowest bits of columns that no digit has, where entries have been put in their order.
    fn unordered(&self) -> u32 {
        match self.source {
            Source::Rows(_) => self.shift,
            Source::Pairs(pairs) => pairs.unordered,
        }
    }

    /// Entries that fill a group.
    fn of_group(&self) -> u32 {
        match self.by {
            By::Column | By::Row => CHUNK,
            By::Digit => 1,
        }
    }

    /// The entries in groups, or in the order of the digit.
    pub fn split(&self, mut counts: Counts) -> Result<Split<T>, OpError> {
        let groups = first_groups(&counts.totals, self.of_group());
        let words = groups.last().map_or(0, |all| *all as usize) * self.of_group() as usize;
        let groups_there = self.device.upload(&groups)?;
        let mut ends = self.device.zeros(words)?;
        let has_values = words > 0 && self.source.values().is_some();
        let mut values = match has_values {
            true => Some(self.device.zeros(words)?),
            false => None,
        };
        let split =
            kernel::<T::PanelMaking>(self.device, PanelMakingVariant::Split, self.launch())?;
        let windows = self
            .splitting
            .windows(self.panels)
            .take_while(|_| words > 0);
        for (window, counts) in windows.zip(&mut counts.windows) {
            let args = PanelMakingArgs {
                values: self.source.values(),
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
            unordered: self.unordered(),
        })
    }
}

/// Entries in the order of these digits of their columns, the lowest first, those with the same digits as they came; `done`
/// hears of each. Nothing without digits.
pub(super) fn in_order<T: Number>(
    device: &Device,
    entries: &Ranked<'_, T>,
    digits: impl Iterator<Item = Digit>,
    mut done: impl FnMut() -> Result<(), OpError>,
) -> Result<Option<Split<T>>, OpError> {
    let mut sorted: Option<Split<T>> = None;
    for digit in digits {
        let source = sorted.as_ref().map_or(Source::Rows(entries), Source::Pairs);
        let splitter = Splitter::by_digit(device, source, digit);
        let split = splitter.split(splitter.count()?)?;
        sorted = Some(split);
        done()?;
    }
    Ok(sorted)
}

/// The first group of each panel with this many entries, `of_group` to a group, and the number of groups.
fn first_groups(totals: &[u32], of_group: u32) -> Vec<u32> {
    let mut first = 0;
    let behind = totals.iter().map(|total| {
        first += total.div_ceil(of_group);
        first
    });
    std::iter::once(0).chain(behind).collect()
}
