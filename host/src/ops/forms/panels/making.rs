//! Panels made on the device: entries are split by panels there, and packed into chunks; what follows from counts
//! alone is found on the host.

use gpu_kernels::Launch;
use gpu_kernels::forms::panels::{By, WORK_WORDS};
use gpu_kernels::forms::panels::{PanelMaking, PanelMakingArgs, PanelMakingVariant};

use super::DevicePanels;
use super::split::{ENTRIES, Source, Split, Splitter, in_order, kernel};
use crate::device::{Buffer, Device};
use crate::layout::panels::{Chunks, Cuts, PanelSize, inputs_of_sector};
use crate::ops::{Number, OpError};
use crate::plan::panel_making::{THREADS, digits};

pub(in crate::ops) use super::split::Ranked;

/// Blocks of an SM over groups, of which each warp takes some.
const BLOCKS_PER_SM: u32 = 8;

/// A step of making panels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// On the host: where panels begin and end.
    Cut,
    /// Entries are put in the order of a digit of their columns.
    Sort,
    /// How many entries each panel has, and where those of each run begin.
    Count,
    /// Entries are put into their panels.
    Split,
    /// How many chunks each panel has.
    Measure,
    /// On the host: which blocks take which chunks.
    Share,
    /// Chunks are filled.
    Pack,
}

impl<T: Number> DevicePanels<T> {
    /// Panels of columns with `counts` entries each, the most frequent first by the number of binary digits: their ranks are
    /// the order of the panels. `order` is the output of each rank.
    ///
    /// The same chunks as the host makes, but that entries of a chunk may come in another order, and that chunks end elsewhere where
    /// rows are further apart than 16 bits count. While it runs it needs 8 bytes and a value an entry beside the result.
    pub(in crate::ops) fn of_ranked(
        device: &Device,
        entries: &Ranked<'_, T>,
        (counts, order): (&[u32], Buffer<u32>),
        size: PanelSize,
    ) -> Result<Self, OpError> {
        Self::in_steps(device, entries, (counts, order), (size, |_| Ok(())))
    }

    /// [`DevicePanels::of_ranked`], which says when a step has been launched.
    pub(in crate::ops) fn in_steps(
        device: &Device,
        entries: &Ranked<'_, T>,
        (counts, order): (&[u32], Buffer<u32>),
        (size, mut done): (PanelSize, impl FnMut(Step) -> Result<(), OpError>),
    ) -> Result<Self, OpError> {
        let rows = entries.offsets.len() as usize - 1;
        let cuts = Cuts::of_columns(counts, (rows, size_of::<T>()), size);
        done(Step::Cut)?;
        let source = Source::Rows(entries);
        let splitter = Splitter::by_panels(device, source, (By::Column, &cuts))?;
        let shape = (counts.len(), rows);
        let panels = Self::of_split(device, shape, (&splitter, &cuts), done)?;
        Ok(DevicePanels {
            order: Some(order),
            ..panels
        })
    }

    /// Panels of rows, of `cols` columns: entries are put in the order of their columns first. While it runs it needs 16 bytes and
    /// two values an entry.
    pub(in crate::ops) fn of_rows(
        device: &Device,
        (entries, cols): (&Ranked<'_, T>, usize),
        (size, mut done): (PanelSize, impl FnMut(Step) -> Result<(), OpError>),
    ) -> Result<Self, OpError> {
        let rows = entries.offsets.len() as usize - 1;
        let cuts = Cuts::of_rows(rows, size);
        done(Step::Cut)?;
        let in_sector = inputs_of_sector(size_of::<T>());
        let digits = digits(device.limits(), cols as u32, in_sector);
        let sorted = in_order(device, entries, digits, || done(Step::Sort))?;
        let source = sorted.as_ref().map_or(Source::Rows(entries), Source::Pairs);
        let splitter = Splitter::by_panels(device, source, (By::Row, &cuts))?;
        Self::of_split(device, (rows, cols), (&splitter, &cuts), done)
    }

    /// Panels for outputs in their order, of this many outputs and inputs.
    fn of_split(
        device: &Device,
        (outputs, inputs): (usize, usize),
        (splitter, cuts): (&Splitter<'_, T>, &Cuts),
        mut done: impl FnMut(Step) -> Result<(), OpError>,
    ) -> Result<Self, OpError> {
        let counts = splitter.count()?;
        done(Step::Count)?;
        let split = splitter.split(counts)?;
        done(Step::Split)?;
        let chunks = split.measure(device)?;
        done(Step::Measure)?;
        let (pieces, ranges) = cuts.share(&chunks);
        done(Step::Share)?;
        let packed = split.pack(device, (&chunks, cuts.width()))?;
        done(Step::Pack)?;
        Ok(DevicePanels {
            outputs,
            inputs,
            width: cuts.width(),
            keys: packed.keys,
            values: packed.values,
            bases: packed.bases,
            pieces: device.upload(&pieces)?,
            ranges: device.upload(&ranges)?,
            order: None,
        })
    }
}

/// Entries in chunks.
struct Packed<T> {
    keys: Buffer<u32>,
    values: Option<Buffer<T>>,
    bases: Buffer<u32>,
}

impl<T: Number> Split<T> {
    fn panels(&self) -> usize {
        self.groups.len() - 1
    }

    fn launch(&self, device: &Device, variant: PanelMakingVariant) -> Launch {
        Launch {
            grid: device.limits().map_or(1, |limits| limits.sms) * BLOCKS_PER_SM,
            block: THREADS,
            shared_bytes: variant.shared_bytes(0, THREADS) as u32,
        }
    }

    /// The chunks that each panel is to have.
    fn measure(&self, device: &Device) -> Result<Vec<Chunks>, OpError> {
        let mut work = device.zeros(self.panels() * WORK_WORDS as usize)?;
        if !self.ends.is_empty() {
            let launch = self.launch(device, PanelMakingVariant::Measure);
            let measure = kernel::<PanelMaking<f32>>(device, PanelMakingVariant::Measure, launch)?;
            measure.launch(PanelMakingArgs {
                shift: self.unordered,
                in_sector: inputs_of_sector(size_of::<T>()),
                groups: self.groups_there.input(),
                given: self.ends.input(),
                work: work.output(),
                ..PanelMakingArgs::none()
            })?;
        }
        let work: Vec<u64> = work.to_vec()?;
        let groups = self.groups.windows(2).map(|pair| pair[1] - pair[0]);
        let each = groups.zip(work.chunks_exact(WORK_WORDS as usize));
        let chunks = each.map(|(groups, work)| Chunks {
            count: groups + work[0] as u32,
            sectors: work[1],
        });
        Ok(chunks.collect())
    }

    /// These chunks; what is left over in them adds zeros behind `width` sums.
    fn pack(
        &self,
        device: &Device,
        (chunks, width): (&[Chunks], u32),
    ) -> Result<Packed<T>, OpError> {
        let firsts = first_chunks(chunks);
        let count = firsts.last().map_or(0, |all| *all as usize);
        let has_values = self.values.is_some();
        let values = has_values.then(|| device.zeros(count * ENTRIES));
        let mut packed = Packed {
            keys: device.zeros(count * ENTRIES)?,
            values: values.transpose()?,
            bases: device.zeros(count)?,
        };
        if count == 0 {
            return Ok(packed);
        }
        let firsts = device.upload(&firsts)?;
        let mut placed = device.zeros(chunks.len())?;
        let launch = self.launch(device, PanelMakingVariant::Pack);
        let kernel = kernel::<T::PanelMaking>(device, PanelMakingVariant::Pack, launch)?;
        let args = PanelMakingArgs {
            width,
            shift: self.unordered,
            groups: self.groups_there.input(),
            given: self.ends.input(),
            chunks: firsts.input(),
            placed: placed.output(),
            keys: packed.keys.output(),
            bases: packed.bases.output(),
            ..PanelMakingArgs::none()
        };
        kernel.launch(match (&self.values, &mut packed.values) {
            (Some(given), Some(values)) => PanelMakingArgs {
                given_values: given.input(),
                packed: values.output(),
                ..args
            },
            _ => args,
        })?;
        Ok(packed)
    }
}

/// The first chunk of each panel, and the number of chunks.
fn first_chunks(chunks: &[Chunks]) -> Vec<u32> {
    let mut first = 0;
    let behind = chunks.iter().map(|chunks| {
        first += chunks.count;
        first
    });
    std::iter::once(0).chain(behind).collect()
}
