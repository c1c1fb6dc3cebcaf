//! Rows of a matrix: by whom each is reduced, and by which way it is read.

use gpu_kernels::reduce::staged::{self, Layout};
use serde::{Deserialize, Serialize};

use super::{BLOCK, Team, blocks, segments};
use crate::plan::limits::DeviceLimits;

/// Bytes of a row up to which rows are read by way of shared memory.
const STAGED_BYTES: u64 = 512;
/// Bytes of a row up to which threads read whole packs of rows as fast: 91 to 98 % of a plain read on an H100 with 4 and 8
/// columns of f32, and with 4 of f64.
const DIRECT_BYTES: u64 = 32;
/// Bytes of a pack.
const PACK: u64 = 16;

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
    /// assert_eq!([shape(3, 4).team(), shape(8, 4).team()], [Team::Lanes(1); 2]);
    /// assert_eq!([shape(16, 4).team(), shape(28, 4).team()], [Team::Lanes(2), Team::Lanes(4)]);
    /// assert_eq!(shape(1_000, 4).team(), Team::Lanes(32));
    /// ```
    pub fn team(&self) -> Team {
        match self.row_bytes() {
            bytes @ ..=STAGED_BYTES => Team::Lanes(staged::team(bytes)),
            _ => segments(1, self.cols).team,
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
    /// assert_eq!((plan.reading, plan.grid), (Reading::Staged, 396));
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
        let bytes = self.row_bytes();
        let is_direct = bytes <= DIRECT_BYTES && bytes.is_multiple_of(PACK);
        let (shape, team) = ((self.cols, self.pitch), staged::team(bytes));
        let layout = Layout::of(self.bytes, shape, team);
        let has_room = staged::SHARED_BYTES <= limits.shared_per_block;
        bytes <= STAGED_BYTES && !is_direct && layout.is_some() && has_room
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
