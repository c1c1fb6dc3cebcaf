//! Shapes of what is measured.

use std::fmt;

use anyhow::Result;
use serde::Serialize;
use warpfuse::io::synth::{ColumnDistribution, RowLengths, SparseSpec, SparseValues};
use warpfuse::matrix::{Element, Features};

use crate::data;

/// The shape of a matrix or of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "layout", rename_all = "snake_case")]
pub enum Shape {
    /// Row-major.
    Dense {
        /// m.
        rows: usize,
        /// n.
        cols: usize,
    },
    /// CSR with as many nonzeros in every row, at stratified uniform columns.
    Sparse {
        /// m.
        rows: usize,
        /// n.
        cols: usize,
        /// Nonzeros of a row.
        per_row: usize,
    },
    /// CSR with row lengths and columns drawn by laws.
    Drawn {
        /// m.
        rows: usize,
        /// n.
        cols: usize,
        /// Nonzeros of a row in the mean, before lengths are rounded.
        per_row: usize,
        /// Row lengths.
        lengths: Lengths,
        /// Hundred times the exponent of Zipf's law for the columns; 0 for uniform ones.
        zipf_percent: u32,
    },
    /// Vectors.
    Vector {
        /// Elements of each.
        len: usize,
    },
    /// Pairs of points.
    Points {
        /// M.
        targets: usize,
        /// N.
        sources: usize,
        /// D.
        dims: usize,
    },
    /// Convolutional layers with sparse filters, padded to the size of their input.
    Layer {
        /// Images.
        batch: usize,
        /// Input channels.
        channels: usize,
        /// Filters.
        filters: usize,
        /// Rows, and columns, of a map.
        side: usize,
        /// Rows, and columns, of a filter.
        kernel: usize,
        /// Nonzeros of a thousand weights.
        permille: usize,
    },
    /// Matrices of one shape.
    Batch {
        /// Matrices.
        count: usize,
        /// Rows of each.
        rows: usize,
        /// Columns of each.
        cols: usize,
    },
    /// A matrix product, m × k by k × n.
    Product {
        /// Rows of the result.
        m: usize,
        /// Columns of the result.
        n: usize,
        /// Length of the dot products.
        k: usize,
    },
}

/// How many nonzeros rows have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// All the same.
    Constant,
    /// Log-normal, with a standard deviation of the logarithm of 1.
    LogNormal,
    /// The same but for one row in ten thousand, which has a thousand times as many.
    Giants,
    /// Log-normal, with the standard deviation of the logarithm in hundredths.
    Spread(u32),
}

const fn dense(rows: usize, cols: usize) -> Shape {
    Shape::Dense { rows, cols }
}

const fn sparse(rows: usize, cols: usize, per_row: usize) -> Shape {
    Shape::Sparse {
        rows,
        cols,
        per_row,
    }
}

/// The matrices of the fused pattern: each several times the largest L2 cache (60 MB on an H200).
pub const MATRICES: [Shape; 10] = [
    // HIGGS.
    dense(11_000_000, 28),
    dense(8_000_000, 128),
    dense(2_000_000, 512),
    dense(1_000_000, 1_024),
    sparse(4_000_000, 1_000, 20),
    sparse(4_000_000, 4_000, 20),
    sparse(4_000_000, 10_000, 20),
    sparse(4_000_000, 40_000, 20),
    sparse(4_000_000, 1_000_000, 20),
    // The shape of kddb, without its power law.
    sparse(8_000_000, 20_000_000, 28),
];

const fn drawn(
    rows: usize,
    cols: usize,
    per_row: usize,
    lengths: Lengths,
    zipf_percent: u32,
) -> Shape {
    Shape::Drawn {
        rows,
        cols,
        per_row,
        lengths,
        zipf_percent,
    }
}

/// Uniform columns, between and beyond the widths of [`MATRICES`].
pub const SPARSE_WIDTHS: [Shape; 9] = [
    sparse(4_000_000, 28, 20),
    sparse(4_000_000, 100, 20),
    sparse(4_000_000, 250, 20),
    sparse(4_000_000, 500, 20),
    sparse(4_000_000, 28_000, 20),
    sparse(4_000_000, 100_000, 20),
    sparse(4_000_000, 300_000, 20),
    sparse(4_000_000, 4_000_000, 20),
    sparse(4_000_000, 30_000_000, 20),
];

/// Skewed columns, uneven rows, and the shapes of well-known data (m scaled down where data are large; their skew is an
/// estimate).
pub const DRAWN: [Shape; 18] = [
    drawn(4_000_000, 10_000, 20, Lengths::Constant, 80),
    drawn(4_000_000, 10_000, 20, Lengths::Constant, 110),
    drawn(4_000_000, 10_000, 20, Lengths::Constant, 140),
    drawn(4_000_000, 100_000, 20, Lengths::Constant, 110),
    drawn(4_000_000, 1_000_000, 20, Lengths::Constant, 80),
    drawn(4_000_000, 1_000_000, 20, Lengths::Constant, 110),
    drawn(4_000_000, 1_000_000, 20, Lengths::Constant, 140),
    drawn(4_000_000, 20_000_000, 20, Lengths::Constant, 110),
    drawn(4_000_000, 10_000, 20, Lengths::LogNormal, 0),
    drawn(4_000_000, 1_000_000, 20, Lengths::LogNormal, 110),
    drawn(4_000_000, 100_000, 20, Lengths::Giants, 0),
    // rcv1, url, kddb in part and whole, news20, webspam (trigrams), avazu.
    drawn(677_399, 47_236, 73, Lengths::LogNormal, 100),
    drawn(1_200_000, 3_231_961, 116, Lengths::Constant, 120),
    drawn(4_000_000, 29_890_095, 29, Lengths::LogNormal, 110),
    drawn(19_264_097, 29_890_095, 29, Lengths::LogNormal, 110),
    drawn(19_996, 1_355_191, 455, Lengths::LogNormal, 100),
    drawn(35_000, 16_609_143, 3_728, Lengths::LogNormal, 100),
    drawn(8_000_000, 1_000_000, 15, Lengths::Constant, 120),
];

/// Dense matrices of every width: narrow and wide ones, in registers and beyond, with rows that start at
/// multiples of 16 bytes and others; about 10⁹ elements each.
pub const DENSE_WIDTHS: [Shape; 18] = [
    dense(500_000_000, 2),
    dense(125_000_000, 8),
    dense(31_250_000, 32),
    dense(30_303_030, 33),
    dense(15_625_000, 64),
    dense(10_000_000, 100),
    dense(5_000_000, 200),
    dense(2_000_000, 500),
    dense(1_000_000, 1_000),
    dense(1_000_000, 1_001),
    dense(500_000, 2_048),
    dense(250_000, 4_096),
    dense(166_666, 6_000),
    dense(100_000, 10_000),
    dense(62_500, 16_384),
    dense(31_250, 32_768),
    dense(25_000, 40_000),
    dense(15_625, 65_536),
];

impl Shape {
    /// m; 1 for a vector, filters for a layer.
    pub fn rows(&self) -> usize {
        match *self {
            Shape::Dense { rows, .. }
            | Shape::Sparse { rows, .. }
            | Shape::Drawn { rows, .. }
            | Shape::Batch { rows, .. } => rows,
            Shape::Vector { .. } => 1,
            Shape::Points { targets, .. } => targets,
            Shape::Layer { filters, .. } => filters,
            Shape::Product { m, .. } => m,
        }
    }

    /// n; the length of a vector, outputs of a filter for a layer.
    pub fn cols(&self) -> usize {
        match *self {
            Shape::Dense { cols, .. }
            | Shape::Sparse { cols, .. }
            | Shape::Drawn { cols, .. }
            | Shape::Batch { cols, .. } => cols,
            Shape::Vector { len } => len,
            Shape::Points { dims, .. } => dims,
            Shape::Layer { batch, side, .. } => batch * side * side,
            Shape::Product { n, .. } => n,
        }
    }

    /// Whether rows have different numbers of nonzeros.
    pub fn is_uneven(&self) -> bool {
        matches!(self, Shape::Drawn { lengths, .. } if *lengths != Lengths::Constant)
    }

    /// Whether only nonzeros are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Shape::Sparse { .. } | Shape::Drawn { .. })
    }

    /// Stored elements; approximate where row lengths or the weights of a layer are drawn.
    pub fn entries(&self) -> usize {
        match *self {
            Shape::Dense { rows, cols } => rows * cols,
            Shape::Sparse { rows, per_row, .. } | Shape::Drawn { rows, per_row, .. } => {
                rows * per_row
            }
            Shape::Vector { len } => len,
            Shape::Points {
                targets,
                sources,
                dims,
            } => (targets + sources) * dims,
            Shape::Layer {
                channels,
                filters,
                kernel,
                permille,
                ..
            } => channels * filters * kernel * kernel * permille / 1_000,
            Shape::Batch { count, rows, cols } => count * rows * cols,
            Shape::Product { m, n, k } => (m + n) * k + m * n,
        }
    }

    /// Bytes of the matrix with 32-bit column indices and row offsets of `offset` bytes.
    pub fn bytes<T>(&self, offset: usize) -> usize {
        let structure = if self.is_sparse() {
            4 * self.entries() + offset * (self.rows() + 1)
        } else {
            0
        };
        self.entries() * size_of::<T>() + structure
    }

    /// The matrix of this shape that `seed` names; a vector is a matrix of one row.
    ///
    /// # Errors
    /// When rows have more nonzeros than columns.
    pub fn features<T: Element>(&self, seed: u64) -> Result<Features<T>> {
        Ok(match *self {
            Shape::Sparse {
                rows,
                cols,
                per_row,
            } => Features::Sparse(data::stratified(rows, cols, per_row, seed)?),
            Shape::Drawn { .. } => self.drawn(seed).generate()?.dataset.features,
            _ => Features::Dense(data::dense(self.rows(), self.cols(), seed)),
        })
    }

    /// The laws of a [`Shape::Drawn`].
    fn drawn(&self, seed: u64) -> SparseSpec {
        let (lengths, zipf_percent, per_row) = match *self {
            Shape::Drawn {
                lengths,
                zipf_percent,
                per_row,
                ..
            } => (lengths, zipf_percent, per_row),
            _ => (Lengths::Constant, 0, self.entries() / self.rows().max(1)),
        };
        SparseSpec {
            rows: self.rows(),
            cols: self.cols(),
            row_lengths: lengths.law(per_row as u32),
            columns: match zipf_percent {
                0 => ColumnDistribution::Uniform,
                percent => ColumnDistribution::Zipf {
                    exponent: f64::from(percent) / 100.0,
                },
            },
            values: SparseValues::Normal,
            noise: 0.0,
            seed,
        }
    }
}

impl Lengths {
    /// The law with a mean of about `per_row`.
    fn law(self, per_row: u32) -> RowLengths {
        match self {
            Lengths::Constant => RowLengths::Constant(per_row),
            Lengths::LogNormal => Lengths::Spread(100).law(per_row),
            Lengths::Spread(percent) => RowLengths::LogNormal {
                mean: f64::from(per_row),
                sigma: f64::from(percent) / 100.0,
            },
            Lengths::Giants => RowLengths::WithGiants {
                typical: per_row,
                giant: per_row.saturating_mul(1_000),
                every: 10_000,
            },
        }
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lengths::Constant => f.write_str("constant"),
            Lengths::LogNormal => f.write_str("log-normal"),
            Lengths::Giants => f.write_str("giants"),
            Lengths::Spread(percent) => write!(f, "spread{percent}"),
        }
    }
}

/// Such as `dense-11000000x28` or `sparse-4000000x1000x20`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Dense { rows, cols } => write!(f, "dense-{rows}x{cols}"),
            Shape::Sparse {
                rows,
                cols,
                per_row,
            } => write!(f, "sparse-{rows}x{cols}x{per_row}"),
            Shape::Drawn {
                rows,
                cols,
                per_row,
                lengths,
                zipf_percent,
            } => write!(
                f,
                "drawn-{rows}x{cols}x{per_row}-{lengths}-zipf{zipf_percent}"
            ),
            Shape::Vector { len } => write!(f, "vector-{len}"),
            Shape::Points {
                targets,
                sources,
                dims,
            } => write!(f, "points-{targets}x{sources}x{dims}"),
            Shape::Layer {
                batch,
                channels,
                filters,
                side,
                kernel,
                permille,
            } => write!(
                f,
                "layer-{batch}x{channels}x{side}x{side}-{filters}x{kernel}x{kernel}-{permille}permille"
            ),
            Shape::Batch { count, rows, cols } => write!(f, "batch-{count}x{rows}x{cols}"),
            Shape::Product { m, n, k } => write!(f, "product-{m}x{n}x{k}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_stored_arrays() {
        assert_eq!(dense(3, 5).bytes::<f64>(4), 120);
        assert_eq!(sparse(3, 50, 5).bytes::<f32>(4), 15 * 8 + 16);
        assert_eq!(sparse(3, 50, 5).bytes::<f32>(8), 15 * 8 + 32);
    }

    #[test]
    fn features_have_the_shape() {
        let skewed = drawn(9, 40, 4, Lengths::Constant, 110);
        for shape in [dense(7, 3), sparse(9, 40, 4), skewed] {
            let x = shape.features::<f32>(1).expect("a valid shape");
            assert_eq!(
                (x.rows(), x.cols(), x.nnz()),
                (shape.rows(), shape.cols(), shape.entries())
            );
        }
    }
}
