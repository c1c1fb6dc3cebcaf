//! Rows of a matrix: by whom each is reduced, and by which way it is read.

use gpu_kernels::reduce::staged::{self, Layout};
use serde::{Deserialize, Serialize};

use super::{BLOCK, Team, blocks, segments};
use crate::plan::limits::DeviceLimits;

/// Bytes of a row beyond which rows are read by way of shared memory, and up to which.
const STAGED_BYTES: std::ops::RangeInclusive<u64> = 33..=512;

/// How rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Each thread reads its elements.
    Direct,
    /// Warps copy whole rows to shared memory, and threads read them there.
    Staged,
}

/// A row-major matrix of which every row is reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowShape {
    /// Rows.
    pub rows: u64,
    /// Columns.
    pub cols: u64,
    /// Elements from the start of a row to that of the next.
    pub pitch: u64,
    /// Bytes of an element.
    pub bytes: u32,
}

impl RowShape {
    /// Who reduces a row: the order of additions hangs on it, and it on nothing but columns and element.
    ///
    /// ```
    /// use warpfuse::plan::reduce::{RowShape, Team};
    /// let shape = |cols, bytes| RowShape { rows: 1_000, cols, pitch: cols, bytes };
    /// assert_eq!(shape(8, 4).team(), Team::Lanes(1));
    /// assert_eq!([shape(28, 4).team(), shape(28, 8).team()], [Team::Lanes(4); 2]);
    /// assert_eq!(shape(1_000, 4).team(), Team::Lanes(32));
    /// ```
    pub fn team(&self) -> Team {
        match STAGED_BYTES.contains(&self.row_bytes()) {
            true => Team::Lanes(staged::TEAM),
            false => segments(1, self.cols).team,
        }
    }

    /// The launch on a GPU of a statistic that has kernels for `best`, or else reads directly. Staged blocks stay for the whole
    /// launch, as many as fit at once.
    ///
    /// ```
    /// use warpfuse::plan::limits::DeviceLimits;
    /// use warpfuse::plan::reduce::{Reading, RowShape};
    /// let h200 = DeviceLimits::known("h200").expect("a listed device");
    /// let shape = RowShape { rows: 11_000_000, cols: 28, pitch: 28, bytes: 4 };
    /// let plan = shape.plan(Reading::Staged, &h200);
    /// assert_eq!((plan.reading, plan.grid), (Reading::Staged, 264));
    /// ```
    pub fn plan(&self, best: Reading, limits: &DeviceLimits) -> RowPlan {
        let team = self.team();
        let reading = match best {
            Reading::Staged if self.can_be_staged(limits) => Reading::Staged,
            _ => Reading::Direct,
        };
        let grid = match reading {
            Reading::Staged => {
                let of_block = staged::SHARED_BYTES + limits.shared_reserved_per_block;
                let per_sm = u64::from(limits.shared_per_sm / of_block);
                let most = u64::from(limits.sms.max(1)) * per_sm.max(1);
                let rows_at_once = u64::from(BLOCK / team.threads());
                self.rows.div_ceil(rows_at_once).clamp(1, most)
            }
            Reading::Direct => blocks(team, self.rows),
        };
        RowPlan {
            team,
            reading,
            grid: u32::try_from(grid).unwrap_or(1),
        }
    }

    fn can_be_staged(&self, limits: &DeviceLimits) -> bool {
        let layout = Layout::of(self.bytes, (self.cols, self.pitch));
        let has_room = staged::SHARED_BYTES <= limits.shared_per_block;
        STAGED_BYTES.contains(&self.row_bytes()) && layout.is_some() && has_room
    }

    fn row_bytes(&self) -> u64 {
        self.cols.saturating_mul(u64::from(self.bytes))
    }
}

/// The reduction of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowPlan {
    /// Who reduces a row.
    pub team: Team,
    /// How rows are read.
    pub reading: Reading,
    /// Blocks.
    pub grid: u32,
}
