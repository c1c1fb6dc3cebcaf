//! Shapes of QR factorisations, and the launches that a batch takes.

use gpu_kernels::qr::{QrVariant, UPDATE_BLOCK, WORK_WIDTH};
use serde::{Deserialize, Serialize};
use thiserror::Error;

mod generated;
mod others;
mod points;
mod spread;
mod streams;
mod triangle;

pub use generated::{GeneratedPoint, generated, generated_space};
pub use others::{Batch, Others, for_batch};
pub use points::{QrPoint, point, points, space};
pub use spread::{over_clusters, planned, rows_shared, spreads};
pub use streams::streams;
pub use triangle::{Made, TriangleForm};

/// Most rows, and columns, of a matrix.
pub const MOST: usize = 4_096;

/// A shape that cannot be factored, or a batch that cannot be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum QrShapeError {
    /// Too few or too many rows or columns.
    #[error("expected 1 to {MOST} {what}, found {found}; factor taller matrices with `tall_r`")]
    Size {
        /// Rows or columns.
        what: &'static str,
        /// How many.
        found: usize,
    },
    /// More matrices than a launch has blocks for.
    #[error("expected at most {limit} matrices of this shape, found {found}; split the batch")]
    Count {
        /// The most.
        limit: usize,
        /// How many.
        found: usize,
    },
    /// Least squares of fewer rows than columns.
    #[error(
        "least squares need at least as many rows as columns, found {rows} × {cols}; factor the transposed matrix"
    )]
    Wide {
        /// Rows.
        rows: usize,
        /// Columns.
        cols: usize,
    },
}

/// Rows and columns of a matrix; of a batch of different ones the most of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QrShape {
    /// m.
    pub rows: usize,
    /// n.
    pub cols: usize,
}

impl QrShape {
    /// Fails unless both are 1 to [`MOST`].
    ///
    /// # Errors
    /// [`QrShapeError::Size`].
    pub fn check(self) -> Result<(), QrShapeError> {
        for (what, found) in [("rows", self.rows), ("columns", self.cols)] {
            if !(1..=MOST).contains(&found) {
                return Err(QrShapeError::Size { what, found });
            }
        }
        Ok(())
    }

    /// Reflectors.
    pub fn least(self) -> usize {
        self.rows.min(self.cols)
    }
}

/// One panel of a factorisation.
///
/// Where a block has no room for all columns of a panel with their rows, it is made in *parts*, each by the panel's kernel,
/// whose reflectors then apply to the panel's later columns alone; the triangles of parts become that of the panel. So all columns
/// behind the panel, and those of T, are read and written once for 32 reflectors instead of once for 4, 8 or 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PanelStep {
    /// First column.
    pub start: usize,
    /// Columns.
    pub width: usize,
    /// The kernel of the panel, or of each of its parts.
    pub panel: QrVariant,
    /// The kernel for the columns of other matrices, and for those that T needs.
    pub update: QrVariant,
    /// How the other columns of the matrix change.
    pub others: Others,
}

impl PanelStep {
    /// Columns that the panel's kernel makes at once.
    ///
    /// ```
    /// use warpfuse::plan::qr::{QrPlan, QrShape, plan};
    /// let first = |rows| match plan(QrShape { rows, cols: 64 }, 4) {
    ///     QrPlan::Panels(steps) => [steps[0].width, steps[0].part()],
    ///     QrPlan::Lanes(_) => unreachable!("too large for one launch"),
    /// };
    /// assert_eq!([1_024, 2_048, 4_096].map(first), [[32, 32], [32, 16], [32, 8]]);
    /// ```
    pub fn part(&self) -> usize {
        match self.panel {
            QrVariant::Panel { lanes, .. } => lanes as usize,
            _ => self.width,
        }
    }

    /// The kernel that applies its reflectors to other matrices: the [update](Self::update), with rows shared where they are for
    /// the matrix's own columns.
    pub fn applying(&self) -> QrVariant {
        match self.others {
            Others::Behind(kernel @ QrVariant::SharedUpdate { .. }) => kernel,
            _ => self.update,
        }
    }

    /// Whether the panel is made in parts.
    pub fn is_in_parts(&self) -> bool {
        self.part() < self.width
    }
}

/// How a batch is factored.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum QrPlan {
    /// One launch of a kernel for tiny matrices: [`QrVariant::Lanes`] or [`QrVariant::Columns`].
    Lanes(QrVariant),
    /// Panel after panel.
    Panels(Vec<PanelStep>),
}

/// Which panels may be taken; the first that has room for the rows is. Columns, registers and warps.
///
/// Of the shapes with as many rows, those with fewer warps come first: less to wait for in each step.
const PANELS_F32: [[u32; 3]; 11] = [
    [32, 32, 2],
    [32, 64, 1],
    [32, 32, 4],
    [32, 64, 2],
    [32, 32, 8],
    [32, 64, 4],
    [32, 64, 8],
    [32, 32, 16],
    [32, 64, 16],
    [16, 64, 16],
    [8, 64, 16],
];
const PANELS_F64: [[u32; 3]; 7] = [
    [32, 32, 2],
    [32, 32, 4],
    [32, 32, 8],
    [32, 32, 16],
    [16, 32, 16],
    [8, 32, 16],
    [4, 32, 16],
];

/// Panels of elements of `bytes` bytes, in the order in which they are preferred.
pub fn panels(bytes: u32) -> Vec<QrVariant> {
    let all: &[[u32; 3]] = if bytes == 4 { &PANELS_F32 } else { &PANELS_F64 };
    let variant = |&[lanes, rows, warps]: &[u32; 3]| QrVariant::Panel { lanes, rows, warps };
    all.iter().map(variant).collect()
}

/// Lanes and rows of the kernels for tiny matrices.
pub const LANES: [[u32; 2]; 9] = [
    [8, 8],
    [8, 16],
    [8, 32],
    [16, 8],
    [16, 16],
    [16, 32],
    [32, 8],
    [32, 16],
    [32, 32],
];

/// Lanes, columns of each and rows of the kernels for tiny matrices whose lanes have several columns.
///
/// Microseconds on an H100 (3,020 GB/s of a copy, 2026-11-26), matrices that fill the kernel, beside a lane a column; "unrolled" had
/// a piece of code for each step:
///
/// | batch | type | lane a column | two columns, unrolled | two columns | four columns |
/// |---|---|--:|--:|--:|--:|
/// | 1,000,000 of 16 × 16 | f32 | 1,843 | 1,451 | 1,397 | 1,509; today 1,414, beside 1,304 |
/// | 100,000 of 32 × 32 | f32 | 1,273 | 1,219 | 814 | 879 |
/// | 2,000,000 of 8 × 8 | f32 | 745 | 566 | 603 | |
/// | 2,000,000 of 8 × 8 | f64 | 1,522 | 1,248 | 1,300 | |
/// | 500,000 of 16 × 16 | f64 | 1,904 | 1,555 | 1,292 | |
/// | 100,000 of 32 × 32 | f64 | 2,771 | 2,794 | 1,651 | |
///
/// What bounds them (ncu): for 32 × 32 the unrolled kernel used 40 % of the issue slots, with ten warps on an SM for want of registers
/// and shared memory; now sixteen have room, and use 62 %. For 16 × 16 it went from 55 % of the slots to 72 %, with 29 % more
/// instructions, because finished rows are computed in chunks of eight: what is left is to execute fewer, and 8 × 8 lose 4 to 7 %
/// by it. Four columns a lane and a piece of code for each step
/// execute 0.4 of the instructions of today's two for 16 × 16 in f32, and take longer: 1,376 µs in blocks of two warps, 1,606 in blocks
/// of six that go step by step together (167 registers, 12 warps an SM). More blocks on an SM, where registers spill, are slower:
/// 1,451 for 12 (16 × 16), 1,290 for 10 (32 × 32).
///
/// It was the way to shared memory: with 16 × 16 in f32 it was busy in 86 % of all cycles of an H200, issue slots in 70 %. A pack that all
/// lanes of a matrix read takes as long as one for each lane, and the shown column was read twice. Shown by shuffles and kept in
/// registers, with a piece of code for each of a lane's columns, and rows of T unrolled over columns, µs on an H200 (2026-11-28, same
/// run, same bits, one buffer; 2,750 instructions a warp instead of 3,740; the way to shared memory is busy in 83 % still):
///
/// | batch | type | before | now |
/// |---|---|--:|--:|
/// | 1,000,000 of 16 × 16 | f32 | 1,302 | 940 |
/// | 2,000,000 of 8 × 8 | f32 | 551 | 430 |
/// | 500,000 of 16 × 16 | f64 | 1,250 | 1,071 |
/// | 1,000,000 of 8 × 8 | f64 | 620 | 586 |
/// | 100,000 of 32 × 32 | f32 | 749 | 748 |
/// | 50,000 of 32 × 32 | f64 | 820 | 807 |
///
/// Blocks on an SM for 16 × 16 in f32 now: 8 1,006, 9 942, 10 940, 12 969 (some registers spill), 13 950.
///
/// Where matrices are not moved in packs, a lane a column is faster: 2,609 beside 3,247 for 16 × 16 in f32.
const COLUMNS: [[u32; 3]; 3] = [[4, 2, 8], [8, 2, 16], [16, 2, 32]];

/// Kernels for tiny matrices.
pub fn tiny() -> Vec<QrVariant> {
    let one = LANES.map(|[lanes, rows]| QrVariant::Lanes { lanes, rows });
    let several = COLUMNS.map(|[lanes, each, rows]| QrVariant::Columns { lanes, each, rows });
    one.into_iter().chain(several).collect()
}

/// The lanes and rows for a shape, where it is tiny: as few lanes as it has columns, then as few registers.
pub fn lanes_for(shape: QrShape) -> Option<[u32; 2]> {
    let fits =
        |[lanes, rows]: &[u32; 2]| shape.cols <= *lanes as usize && shape.rows <= *rows as usize;
    LANES.into_iter().find(fits)
}

/// The kernel that updates other columns behind a panel of this many.
///
/// Milliseconds of R, V and T of a batch on an H100 (2026-11-25), by what a thread of the update computes:
///
/// | batch | type | 16 sums, C from shared memory | 64 sums | 64, more loads in flight | and whole tiles unchecked | and two panels together |
/// |---|---|--:|--:|--:|--:|--:|
/// | 640 of 512 × 512 | f32 | 18.8 | 13.5 | 13.9 | 12.5 | 14.5 |
/// | 1,000 of 256 × 256 | f32 | 4.6 | 3.7 | 3.7 | 3.5 | 3.9 |
/// | 60 of 1,024 × 1,024 | f32 | 15.2 | 11.1 | | 10.5 | 11.9 |
/// | 8 of 2,048 × 2,048 | f32 | 44.8 | | | 27.4 | 27.4 |
/// | 2 of 4,096 × 4,096 | f32 | 406 | | | 198 | |
/// | 640 of 512 × 512 | f64 | 29.4 | 29.5 | 26.1 | 24.2 | 26.2 |
/// | 60 of 1,024 × 1,024 | f64 | 35.5 | | | 23.5 | |
///
/// Two panels together (64 reflectors for 32 columns of a block) halve what moves of C, and double what moves of V. Of the
/// first update of 512 × 512 in f32, 1.03 ms, products take 0.34 at the peak of FMA and C's way 0.65 from memory (C does not
/// stay in L2 between its two readings); ncu saw 57 % of the issue slots in use and 48 % of the memory's rate.
pub const fn update_of(width: u32) -> QrVariant {
    QrVariant::Update {
        width,
        columns: 16 * UPDATE_BLOCK / width,
    }
}

/// The launches of matrices of this shape, which was [checked](QrShape::check), column-major without gaps; see [`for_batch`] for
/// what follows from their number.
///
/// ```
/// use warpfuse::plan::qr::{QrPlan, QrShape, plan};
/// let of = |rows, cols| plan(QrShape { rows, cols }, 4);
/// assert!(matches!(of(30, 20), QrPlan::Lanes(_)));
/// assert!(matches!(of(512, 512), QrPlan::Panels(steps) if steps.len() == 16));
/// ```
pub fn plan(shape: QrShape, bytes: u32) -> QrPlan {
    plan_of(shape, bytes, Lying::Packed)
}

/// How the matrices of a batch lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lying {
    /// Column-major without gaps inside a matrix, each from a whole pack of 16 bytes on.
    Packed,
    /// In any other way, or in different shapes.
    Otherwise,
}

/// [`plan`] for matrices that lie in this way.
///
/// ```
/// use gpu_kernels::qr::QrVariant;
/// use warpfuse::plan::qr::{Lying, QrPlan, QrShape, plan_of};
/// let shape = QrShape { rows: 16, cols: 16 };
/// let of = |lying| plan_of(shape, 4, lying);
/// assert_eq!(of(Lying::Packed), QrPlan::Lanes(QrVariant::Columns { lanes: 8, each: 2, rows: 16 }));
/// assert_eq!(of(Lying::Otherwise), QrPlan::Lanes(QrVariant::Lanes { lanes: 16, rows: 16 }));
/// ```
pub fn plan_of(shape: QrShape, bytes: u32, lying: Lying) -> QrPlan {
    if let Some(size) = lanes_for(shape) {
        let fills = size.map(|most| most as usize) == [shape.cols, shape.rows];
        return QrPlan::Lanes(match lying {
            Lying::Packed if fills => tiny_for(size),
            _ => QrVariant::Lanes {
                lanes: size[0],
                rows: size[1],
            },
        });
    }
    plan_with(&panels(bytes), shape).expect("the last panel has room for all rows")
}

/// The kernel for least squares of matrices of this shape with one right-hand side each, where they are tiny.
///
/// ```
/// use gpu_kernels::qr::QrVariant;
/// use warpfuse::plan::qr::{Lying, QrShape, least_for};
/// let of = |rows, lying| least_for(QrShape { rows, cols: 16 }, lying);
/// assert_eq!(of(16, Lying::Packed), Some(QrVariant::LeastColumns { lanes: 8, rows: 16 }));
/// assert_eq!(of(20, Lying::Packed), Some(QrVariant::Least { lanes: 16, rows: 32 }));
/// assert_eq!(of(40, Lying::Packed), None);
/// ```
pub fn least_for(shape: QrShape, lying: Lying) -> Option<QrVariant> {
    let [lanes, rows] = lanes_for(shape)?;
    let fills = [lanes as usize, rows as usize] == [shape.cols, shape.rows];
    let several = (lanes / 2, rows);
    Some(match lying {
        Lying::Packed if fills && SYSTEMS.contains(&several) => QrVariant::LeastColumns {
            lanes: several.0,
            rows,
        },
        _ => QrVariant::Least { lanes, rows },
    })
}

/// Lanes and rows of kernels for least squares with two columns a lane. Larger matrices would want more registers than there are.
const SYSTEMS: [(u32, u32); 2] = [(4, 8), (8, 16)];

/// The kernel for matrices of at most these columns and rows, as [`lanes_for`] has them.
fn tiny_for([cols, rows]: [u32; 2]) -> QrVariant {
    let one = QrVariant::Lanes { lanes: cols, rows };
    let several = tiny().into_iter().filter(|v| *v != one);
    let mut fitting = several.filter(|v| v.most() == [rows, cols]);
    fitting.next().unwrap_or(one)
}

/// The launches with the first of `panels` that has room for the rows that are left; none where none has.
pub fn plan_with(panels: &[QrVariant], shape: QrShape) -> Option<QrPlan> {
    let mut steps = Vec::new();
    let mut start = 0;
    while start < shape.least() {
        let rows = shape.rows - start;
        let panel = *panels
            .iter()
            .find(|panel| panel.most()[0] as usize >= rows)?;
        let update = update_of(WORK_WIDTH);
        let width = WORK_WIDTH as usize;
        steps.push(PanelStep {
            start,
            width,
            panel,
            update,
            others: Others::Behind(update),
        });
        start += width;
    }
    Some(QrPlan::Panels(steps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpu_kernels::qr::Qr;
    use gpu_kernels::table::Family;

    #[test]
    fn every_kernel_of_a_plan_is_compiled() {
        let has = |bytes: u32, variant: &QrVariant| match bytes {
            4 => Qr::<f32>::entries().iter().any(|e| e.variant == *variant),
            _ => Qr::<f64>::entries().iter().any(|e| e.variant == *variant),
        };
        for bytes in [4, 8] {
            for size in [1, 8, 9, 31, 32, 33, 64, 100, 512, 513, 1_025, 2_049, MOST] {
                for cols in [1, 33, size] {
                    match plan(QrShape { rows: size, cols }, bytes) {
                        QrPlan::Lanes(variant) => assert!(has(bytes, &variant)),
                        QrPlan::Panels(steps) => {
                            for step in &steps {
                                let within = update_of(step.part() as u32);
                                let kernels = [step.panel, step.update, within];
                                assert!(kernels.iter().all(|kernel| has(bytes, kernel)));
                            }
                            let last = steps.last().expect("at least one");
                            assert!(last.start + last.width >= size.min(cols));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn impossible_shapes_are_named() {
        let of = |rows, cols| QrShape { rows, cols }.check();
        assert_eq!(of(1, MOST), Ok(()));
        let zero = QrShapeError::Size {
            what: "columns",
            found: 0,
        };
        assert_eq!(of(3, 0), Err(zero));
        assert!(of(MOST + 1, 1).is_err());
    }
}
