//! Where the matrices of a batch lie in a buffer.

use gpu_kernels::qr::{Steps, pack_tiles};

use crate::ops::OpError;
use crate::plan::qr::{Lying, QrShape, QrShapeError};

/// Blocks of a launch at most.
const MOST_BLOCKS: usize = i32::MAX as usize;

/// Which elements of a matrix lie side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Order {
    /// Those of a column.
    #[default]
    ColumnMajor,
    /// Those of a row.
    RowMajor,
}

/// Matrices of one shape in one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch {
    /// Rows of each.
    pub rows: usize,
    /// Columns of each.
    pub cols: usize,
    /// Matrices.
    pub count: usize,
    /// What lies side by side.
    pub order: Order,
    /// Elements between the starts of two columns (rows, where they are row-major).
    pub ld: usize,
    /// Elements between the starts of two matrices.
    pub stride: usize,
}

impl Batch {
    /// Column-major matrices without gaps.
    ///
    /// ```
    /// use warpfuse::ops::qr::Batch;
    /// let batch = Batch::column_major(5, 3, 10);
    /// assert_eq!((batch.ld, batch.stride), (5, 15));
    /// ```
    pub fn column_major(rows: usize, cols: usize, count: usize) -> Batch {
        Batch {
            rows,
            cols,
            count,
            order: Order::ColumnMajor,
            ld: rows,
            stride: rows.saturating_mul(cols),
        }
    }

    /// Row-major matrices without gaps.
    pub fn row_major(rows: usize, cols: usize, count: usize) -> Batch {
        Batch {
            order: Order::RowMajor,
            ld: cols,
            ..Self::column_major(rows, cols, count)
        }
    }

    /// The shape of each.
    pub fn shape(&self) -> QrShape {
        QrShape {
            rows: self.rows,
            cols: self.cols,
        }
    }

    /// Where matrix `i` lies, for `i` below the count.
    pub fn piece(&self, i: usize) -> Piece {
        Piece {
            rows: self.rows,
            cols: self.cols,
            offset: i * self.stride,
            order: self.order,
            ld: self.ld,
        }
    }

    /// Steps as kernels take them.
    pub(super) fn steps(&self) -> Steps {
        let [row, col] = self.piece(0).steps();
        Steps {
            row,
            col,
            each: self.stride as u64,
        }
    }

    /// Fails unless `found` elements hold the batch.
    pub(super) fn check(&self, what: &'static str, found: usize) -> Result<(), OpError> {
        if self.count == 0 {
            return Ok(());
        }
        let last = (self.count - 1).checked_mul(self.stride);
        let last = Piece {
            offset: last.unwrap_or(usize::MAX),
            ..self.piece(0)
        };
        last.check(what, found)
    }
}

/// One matrix of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Elements before its first.
    pub offset: usize,
    /// What lies side by side.
    pub order: Order,
    /// Elements between the starts of two columns (rows, where it is row-major).
    pub ld: usize,
}

impl Piece {
    /// Elements from a row to the next, and from a column to the next.
    pub(super) fn steps(&self) -> [u64; 2] {
        match self.order {
            Order::ColumnMajor => [1, self.ld as u64],
            Order::RowMajor => [self.ld as u64, 1],
        }
    }

    /// Where an element is.
    pub(super) fn at(&self, row: usize, col: usize) -> usize {
        self.offset
            + match self.order {
                Order::ColumnMajor => col * self.ld + row,
                Order::RowMajor => row * self.ld + col,
            }
    }

    pub(super) fn shape(&self) -> QrShape {
        QrShape {
            rows: self.rows,
            cols: self.cols,
        }
    }

    /// Fails unless the matrix lies inside `found` elements.
    pub(super) fn check(&self, what: &'static str, found: usize) -> Result<(), OpError> {
        let (inner, outer) = match self.order {
            Order::ColumnMajor => (self.rows, self.cols),
            Order::RowMajor => (self.cols, self.rows),
        };
        let length = |expected, found| OpError::Length {
            what,
            expected,
            found,
        };
        if self.ld < inner {
            return Err(length(inner, self.ld));
        }
        let lines = outer.saturating_sub(1).checked_mul(self.ld);
        let end = lines
            .and_then(|lines| lines.checked_add(inner))
            .and_then(|of_matrix| of_matrix.checked_add(self.offset))
            .unwrap_or(usize::MAX);
        match found < end {
            true => Err(length(end, found)),
            false => Ok(()),
        }
    }
}

/// The matrices of a factorisation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Matrices {
    /// All of one shape.
    Same(Batch),
    /// Each of its own shape, anywhere in the buffer.
    Each(Vec<Piece>),
}

impl From<Batch> for Matrices {
    fn from(batch: Batch) -> Matrices {
        Matrices::Same(batch)
    }
}

impl From<Vec<Piece>> for Matrices {
    fn from(pieces: Vec<Piece>) -> Matrices {
        Matrices::Each(pieces)
    }
}

impl Matrices {
    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Matrices::Same(batch) => batch.count,
            Matrices::Each(pieces) => pieces.len(),
        }
    }

    /// Matrix `i`, for `i` below the count.
    pub fn piece(&self, i: usize) -> Piece {
        match self {
            Matrices::Same(batch) => batch.piece(i),
            Matrices::Each(pieces) => pieces[i],
        }
    }

    /// The most rows and the most columns; none of an empty batch.
    pub fn largest(&self) -> Option<QrShape> {
        match self {
            Matrices::Same(batch) => (batch.count > 0).then(|| batch.shape()),
            Matrices::Each(pieces) => pieces.iter().map(Piece::shape).reduce(|a, b| QrShape {
                rows: a.rows.max(b.rows),
                cols: a.cols.max(b.cols),
            }),
        }
    }

    /// The shape of all, where they have one.
    pub(super) fn same(&self) -> Option<QrShape> {
        match self {
            Matrices::Same(batch) => Some(batch.shape()),
            Matrices::Each(_) => None,
        }
    }

    /// How they lie, for elements of `bytes` bytes.
    pub(super) fn lying(&self, bytes: u32) -> Lying {
        match self {
            Matrices::Same(batch)
                if batch.order == Order::ColumnMajor
                    && batch.ld == batch.rows
                    && batch.stride.is_multiple_of(16 / bytes as usize) =>
            {
                Lying::Packed
            }
            _ => Lying::Otherwise,
        }
    }

    /// Fails unless every shape can be factored.
    pub(super) fn check_shapes(&self) -> Result<(), QrShapeError> {
        match self {
            Matrices::Same(batch) => batch.shape().check(),
            Matrices::Each(pieces) => pieces.iter().try_for_each(|piece| piece.shape().check()),
        }
    }

    /// Fails where a matrix has fewer rows than columns.
    pub(super) fn check_tall(&self) -> Result<(), QrShapeError> {
        let distinct = match self {
            Matrices::Same(batch) => batch.count.min(1),
            Matrices::Each(pieces) => pieces.len(),
        };
        let shapes = (0..distinct).map(|i| self.piece(i).shape());
        match shapes.into_iter().find(|shape| shape.rows < shape.cols) {
            None => Ok(()),
            Some(QrShape { rows, cols }) => Err(QrShapeError::Wide { rows, cols }),
        }
    }

    /// Fails where a launch would have too many blocks.
    pub(super) fn check_count(&self) -> Result<(), QrShapeError> {
        let Some(shape) = self.largest() else {
            return Ok(());
        };
        let limit = MOST_BLOCKS / pack_tiles(shape.rows as u32, shape.cols as u32) as usize;
        let found = self.count();
        match found > limit {
            true => Err(QrShapeError::Count { limit, found }),
            false => Ok(()),
        }
    }

    /// Fails unless `found` elements hold all of them.
    pub(super) fn check(&self, what: &'static str, found: usize) -> Result<(), OpError> {
        match self {
            Matrices::Same(batch) => batch.check(what, found),
            Matrices::Each(pieces) => pieces.iter().try_for_each(|piece| piece.check(what, found)),
        }
    }
}
