//! What is kept of T, and which launches make the columns of T above those of panels.

use gpu_kernels::qr::{QrVariant, WORK_WIDTH, has_squares};
use serde::{Deserialize, Serialize};

use super::{Others, PanelStep, QrShape};

/// Rows of T, 32 each, of a block in which each warp has its own.
const ROWS_OF_BLOCK: usize = 4;

/// What is kept of T.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriangleForm {
    /// All of T: Q = I − V·T·Vᵀ.
    #[default]
    Whole,
    /// The blocks on the diagonal of T, one for each panel: what applying Q and least squares take. Of matrices of at most
    /// 32 × 32 that is all of T.
    Panels,
}

/// When the columns of T above those of a panel are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Made {
    /// They are not wanted.
    Nothing,
    /// Behind each panel, while its reflectors apply to other columns.
    WithPanels,
    /// Those of all panels together, in two launches behind the last one.
    AtTheEnd,
    /// Likewise, in squares of 32 × 32 on tensor cores.
    InSquares,
    /// Likewise, each 32 rows of T by a block instead of a warp: for few matrices with many panels.
    InSharedSquares,
}

impl Made {
    /// The same for `count` matrices of this many panels on a device of `sms` multiprocessors: where warps with rows of T of their own
    /// leave some of them idle, blocks may have them.
    ///
    /// The first rows take n² / 2048 squares one after the other: of 4,096 columns 8,128, some 1.4 µs each, which is the time of all of
    /// T there (11 of 31 ms in f32 on an H100). Eight warps take an eighth of it, and two barriers a panel: 22.6 ms in all, 8 matrices of
    /// 2,048² 11.1 instead of 13.2.
    #[must_use]
    pub fn for_few(self, count: usize, panels: usize, sms: u32) -> Made {
        let blocks = count * panels.saturating_sub(1).div_ceil(ROWS_OF_BLOCK);
        match self {
            Made::InSquares if blocks < sms as usize => Made::InSharedSquares,
            made => made,
        }
    }

    /// Whether launches make those of every panel together.
    pub fn is_every(self) -> bool {
        matches!(
            self,
            Made::AtTheEnd | Made::InSquares | Made::InSharedSquares
        )
    }

    /// Whether the steps' panels and matrices, all of `same` shape if there is one, of elements of `bytes` bytes, are such as this
    /// takes.
    pub fn fits(self, steps: &[PanelStep], same: Option<QrShape>, bytes: u32) -> bool {
        let are_whole = steps.iter().all(|step| step.width == WORK_WIDTH as usize);
        let squares = same
            .is_some_and(|shape| has_squares([shape.rows, shape.cols].map(|x| x as u32), bytes));
        match self {
            Made::Nothing => true,
            Made::WithPanels => !steps.iter().any(takes_tensor_cores),
            Made::AtTheEnd => are_whole,
            Made::InSquares | Made::InSharedSquares => are_whole && squares,
        }
    }
}

impl TriangleForm {
    /// When these steps make the columns of T above those of panels, of matrices that are all of `same` shape if there is one, of
    /// elements of `bytes` bytes.
    ///
    /// Rows of T need no other rows, so that two launches make all of them where all panels have 32 columns: V and T stay in L2 from
    /// panel to panel, and no launch waits for the last blocks of another one. Milliseconds of R, V and T on an H100 (2026-11-26):
    ///
    /// | batch | type | with panels | at the end |
    /// |---|---|--:|--:|
    /// | 640 of 512 × 512 | f32 | 9.70 | 9.26 |
    /// | 1,000 of 256 × 256 | f32 | 2.93 | 2.84 |
    /// | 60 of 1,024 × 1,024 | f32 | 9.8 | 8.72 |
    /// | 300 of 100 × 77 | f32 | 0.296 | 0.226 |
    /// | 640 of 512 × 512 | f64 | 23.9 | 24.4 |
    ///
    /// In squares, one H100, same run (2026-11-27), milliseconds; "waiting" is [`Others::Before`] in f64:
    ///
    /// | batch | f32, at the end | f32, squares | f64, with panels | f64, squares | f64, waiting and squares |
    /// |---|--:|--:|--:|--:|--:|
    /// | 640 of 512 × 512 | 8.11 | 6.99 | 23.2 | 20.2 | 14.6 |
    /// | 1,000 of 256 × 256 | 2.50 | 2.13 | 6.45 | 5.43 | 4.69 |
    /// | 2,000 of 128 × 128 | 1.35 | 1.18 | 2.56 | 2.17 | 2.03 |
    /// | 10,000 of 64 × 64 | 1.61 | 1.43 | 3.03 | 2.66 | 2.31 |
    /// | 60 of 1,024 × 1,024 | 8.71 | 7.83 | | | |
    pub fn made(self, steps: &[PanelStep], same: Option<QrShape>, bytes: u32) -> Made {
        let waits = bytes == 4 || steps.iter().any(takes_tensor_cores);
        let fits = |made: Made| made.fits(steps, same, bytes);
        match self {
            TriangleForm::Panels => Made::Nothing,
            TriangleForm::Whole if fits(Made::InSquares) => Made::InSquares,
            TriangleForm::Whole if waits && fits(Made::AtTheEnd) => Made::AtTheEnd,
            TriangleForm::Whole => Made::WithPanels,
        }
    }
}

/// Whether other columns change by a kernel that makes no columns of T.
fn takes_tensor_cores(step: &PanelStep) -> bool {
    let (Others::Behind(kernel) | Others::Before(kernel)) = step.others;
    matches!(kernel, QrVariant::Tensor { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::qr::{QrPlan, plan};

    #[test]
    fn squares_want_whole_panels_and_packs() {
        let fits = |rows, cols, bytes| {
            let shape = QrShape { rows, cols };
            let QrPlan::Panels(steps) = plan(shape, bytes) else {
                panic!("{shape:?} is tiny");
            };
            Made::InSquares.fits(&steps, Some(shape), bytes)
        };
        assert!(fits(512, 512, 4) && fits(512, 512, 8) && fits(100, 64, 4) && fits(64, 100, 8));
        assert!(!fits(101, 64, 4) && !fits(101, 64, 8) && fits(102, 64, 8));
        assert!(!fits(512, 500, 4), "columns behind the last whole panel");
        assert!(fits(600, 512, 8), "panels in parts are whole");
    }
}
