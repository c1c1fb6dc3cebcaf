//! Panels that are made elsewhere: where they begin, and which blocks take them.

use super::extents::{Extents, by_frequency, even};
use super::ranges::{Work, share};
use super::{PanelSize, SECTOR};

/// Where panels are cut: of columns by how many entries they have, of rows evenly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cuts {
    extents: Extents,
    ranges: u32,
}

/// What the chunks of a panel are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunks {
    pub count: u32,
    /// Sectors of the inputs that they want, one for each entry that wants another than the entry before.
    pub sectors: u64,
}

impl Cuts {
    /// For columns with this many entries each, the most frequent first by the number of binary digits, in this many rows of
    /// elements of `element` bytes.
    pub(crate) fn of_columns(
        counts: &[u32],
        (rows, element): (usize, usize),
        size: PanelSize,
    ) -> Self {
        Cuts {
            extents: by_frequency(counts, (rows, SECTOR / element), size),
            ranges: size.ranges as u32,
        }
    }

    /// For this many rows.
    pub(crate) fn of_rows(rows: usize, size: PanelSize) -> Self {
        Cuts {
            extents: even(rows, size),
            ranges: size.ranges as u32,
        }
    }

    /// Outputs of the widest panel.
    pub(crate) fn width(&self) -> u32 {
        self.extents.width() as u32
    }

    /// The first output of each panel, columns in the order of frequency, and the number of outputs.
    pub(crate) fn bounds(&self) -> Vec<u32> {
        let panels = &self.extents.panels;
        let firsts = panels.iter().map(|panel| panel.first);
        let end = panels.last().map_or(0, |last| last.first + last.outputs);
        firsts.chain([end]).collect()
    }

    /// Pieces, and the first one of each range, of panels with these chunks.
    pub(crate) fn share(&self, chunks: &[Chunks]) -> (Vec<u32>, Vec<u32>) {
        let work = |chunks: &Chunks| Work {
            chunks: chunks.count,
            sectors: chunks.sectors,
        };
        let work: Vec<Work> = chunks.iter().map(work).collect();
        share(&work, &self.extents, self.ranges)
    }
}

/// Inputs of `element` bytes that lie in a sector.
pub(crate) fn inputs_of_sector(element: usize) -> u32 {
    (SECTOR / element) as u32
}
