//! The compiled kernels that a plan may choose from.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::problem::{Precision, Problem, Product, Stored, StoredValues};

/// How a kernel computes its product, above all where the result lives while rows are added to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Strategy {
    /// Sparse; each block keeps its own w in shared memory and adds it to global memory at the end.
    SharedW,
    /// Sparse, few columns; each vector of threads keeps its own w in shared memory and needs no atomics: see
    /// [`gpu_kernels::fused::private`].
    PrivateW,
    /// Sparse; every entry is added to w in global memory.
    GlobalW,
    /// Sparse; as [`Strategy::SharedW`] with sums of fixed-point integers and y in shared memory too:
    /// reproducible.
    FixedWithY,
    /// Sparse; as [`Strategy::SharedW`] with sums of fixed-point integers: reproducible.
    FixedShared,
    /// Sparse; as [`Strategy::FixedShared`] with the sums spread over the shared memory of a cluster's two blocks, twice as
    /// many as one holds (compute capability 9.0): see [`gpu_kernels::fused::fixed`]. Clusters of more blocks would be no
    /// quicker than [`Strategy::FixedGlobal`].
    FixedCluster,
    /// Sparse; as [`Strategy::FixedShared`], in the fused product as [`Strategy::FixedWithY`], with two blocks of a cluster
    /// that walk the same rows, each with the sums of half of the columns (compute capability 9.0).
    FixedHalves,
    /// Sparse; sums of fixed-point integers in global memory: reproducible, for any number of columns.
    FixedGlobal,
    /// Sparse, prepared; `X·y` over panels of rows and `Xᵀ·p` over panels of columns, the sums of a panel in shared
    /// memory and its entries in the order of their inputs.
    Panels,
    /// Sparse, prepared; elements of y and fixed-point sums of the most frequent columns in shared memory, the others'
    /// entries gathered from global memory on the way, and multiplied by what the rows gave over panels of columns.
    HotColumns,
    /// `X·y` alone: one vector of threads per row, nothing shared between rows.
    RowDot,
    /// Sparse, `X·y` alone: the work cut by nonzeros, so that long rows are split and short ones packed; the same bits for
    /// every grid.
    BalancedDot,
    /// Sparse, prepared; [`Strategy::BalancedDot`] over X, then over its stored transpose: no atomics, the same bits for
    /// every grid.
    StoredTranspose,
    /// Dense; each thread keeps its part of y and w in registers for the whole kernel.
    DenseRegisters,
    /// Dense, wide rows; as [`Strategy::DenseRegisters`] with a block on each row and the next rows on their way to
    /// shared memory.
    DenseRing,
    /// Dense, rows wider than a block holds well; as [`Strategy::DenseRing`] with a cluster of blocks on each row, every
    /// block with a part of the columns (compute capability 9.0).
    DenseCluster,
    /// Dense, short rows that start anywhere; as [`Strategy::DenseRegisters`] with tiles of whole rows in shared memory.
    DenseTiles,
    /// Dense, `Xᵀ·p` alone with any number of columns: a block works on a tile of VS · TL columns and on
    /// a share of the rows.
    DenseColumns,
    /// Dense with more columns than registers hold: `X·y`, then `Xᵀ·p`, X read twice.
    DenseTwoProducts,
    /// Sparse with y and w beyond the L2 cache: `X·y`, then `Xᵀ·p`, X read twice.
    SparseTwoProducts,
}

impl Strategy {
    /// Whether sums are kept as fixed-point integers, whose additions may come in any order.
    pub const fn is_fixed(self) -> bool {
        matches!(
            self,
            Self::FixedWithY
                | Self::FixedShared
                | Self::FixedCluster
                | Self::FixedHalves
                | Self::FixedGlobal
        )
    }

    /// Whether blocks work together in clusters, which GPUs have from compute capability 9.0 on.
    pub const fn needs_clusters(self) -> bool {
        matches!(
            self,
            Self::FixedCluster | Self::FixedHalves | Self::DenseCluster
        )
    }

    /// Whether threads hold their parts of y and w in registers, so that a vector must be as wide as X.
    pub const fn holds_row(self) -> bool {
        matches!(
            self,
            Self::DenseRegisters | Self::DenseRing | Self::DenseCluster | Self::DenseTiles
        )
    }

    /// Whether work is cut by nonzeros, in blocks of one size.
    pub const fn is_balanced(self) -> bool {
        matches!(self, Self::BalancedDot | Self::StoredTranspose)
    }

    /// The name that is printed and that serialisation uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedW => "shared_w",
            Self::PrivateW => "private_w",
            Self::GlobalW => "global_w",
            Self::FixedWithY => "fixed_with_y",
            Self::FixedShared => "fixed_shared",
            Self::FixedCluster => "fixed_cluster",
            Self::FixedHalves => "fixed_halves",
            Self::FixedGlobal => "fixed_global",
            Self::Panels => "panels",
            Self::HotColumns => "hot_columns",
            Self::RowDot => "row_dot",
            Self::BalancedDot => "balanced_dot",
            Self::StoredTranspose => "stored_transpose",
            Self::DenseRegisters => "dense_registers",
            Self::DenseRing => "dense_ring",
            Self::DenseCluster => "dense_cluster",
            Self::DenseTiles => "dense_tiles",
            Self::DenseColumns => "dense_columns",
            Self::DenseTwoProducts => "dense_two_products",
            Self::SparseTwoProducts => "sparse_two_products",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The form of storage that a kernel reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Storage {
    /// Compressed sparse rows.
    Sparse,
    /// Row-major.
    Dense,
    /// Panels of rows and of columns, besides compressed sparse rows.
    Panels,
    /// Rows with their most frequent columns told apart, besides compressed sparse rows.
    HotColumns(StoredValues),
    /// Compressed sparse rows of the transpose, besides those of X.
    Transpose,
}

/// The threads that work on one row together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Team {
    /// This many neighbouring lanes of a warp, a power of two.
    Lanes(u32),
    /// A whole block.
    Block,
}

impl Team {
    /// The vector size VS when blocks have `block_size` threads.
    pub fn size(self, block_size: u32) -> u32 {
        match self {
            Self::Lanes(lanes) => lanes.max(1),
            Self::Block => block_size.max(1),
        }
    }
}

/// Shared memory that a block of a kernel uses, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct SharedUse {
    /// Whatever the launch.
    pub fixed: u32,
    /// For each column of X.
    pub per_column: u32,
    /// For each warp of the block.
    pub per_warp: u32,
    /// For each vector of the block.
    pub per_vector: u32,
    /// For each vector of the block and column of X.
    pub per_vector_column: u32,
}

impl SharedUse {
    /// Bytes for a block of `block_size` threads in vectors of `vs`, on a matrix of `cols` columns.
    ///
    /// Saturates, so that a matrix too wide for any block is seen as such.
    pub fn bytes(self, cols: u64, block_size: u32, vs: u32) -> u64 {
        let warps = u64::from(block_size.div_ceil(32));
        let vectors = u64::from(block_size / vs.max(1));
        let small = u64::from(self.per_warp) * warps + u64::from(self.per_vector) * vectors;
        let columns = u64::from(self.per_vector_column) * vectors + u64::from(self.per_column);
        columns
            .saturating_mul(cols)
            .saturating_add(small + u64::from(self.fixed))
    }
}

/// One compiled kernel, as its table of variants and ptxas describe it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The name of the entry.
    pub name: Cow<'static, str>,
    /// What it computes.
    pub product: Product,
    /// What it reads.
    pub storage: Storage,
    /// How it computes it.
    pub strategy: Strategy,
    /// The type of its elements.
    pub precision: Precision,
    /// The threads that share a row.
    pub team: Team,
    /// Elements of a row that a thread keeps in registers (TL); for sparse kernels, the entries that
    /// it need not read a second time.
    pub tl: u32,
    /// Rows that a vector loads before it uses the first.
    pub rows_in_flight: u32,
    /// Elements of one load: 4 for 16-byte loads of f32.
    pub width: u32,
    /// Elements of a thread that are on their way to shared memory all the time, for [`Strategy::DenseRing`] and
    /// [`Strategy::DenseCluster`].
    pub ahead: u32,
    /// Blocks of the clusters in which it is launched, which share w, and with [`Strategy::DenseCluster`] rows; 1 for blocks
    /// by themselves.
    pub cluster: u32,
    /// Registers of a thread, from ptxas.
    pub registers: u32,
    /// The largest block that it was compiled for.
    pub max_block: u32,
    /// Shared memory of a block.
    pub shared: SharedUse,
}

impl Candidate {
    /// A kernel that keeps one element per thread, has one row in flight, and uses shared memory as
    /// `strategy` implies: a w for [`Strategy::SharedW`] and for vectors within a warp of
    /// [`Strategy::DenseRegisters`], one element per warp for a [`Team::Block`].
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        product: Product,
        storage: Storage,
        strategy: Strategy,
        precision: Precision,
        team: Team,
    ) -> Self {
        let bytes = precision.bytes();
        let keeps_w = match strategy {
            Strategy::SharedW => true,
            Strategy::DenseRegisters => product != Product::Forward && team != Team::Block,
            _ => false,
        };
        let shared = SharedUse {
            per_column: if keeps_w { bytes } else { 0 },
            per_warp: if team == Team::Block { bytes } else { 0 },
            ..SharedUse::default()
        };
        Self {
            name: name.into(),
            product,
            storage,
            strategy,
            precision,
            team,
            tl: 1,
            rows_in_flight: 1,
            width: 1,
            ahead: 0,
            cluster: 1,
            registers: 32,
            max_block: 1_024,
            shared,
        }
    }

    /// The same with `tl` elements per thread, loaded `width` at a time from `rows` rows at once.
    pub fn with_load(self, tl: u32, width: u32, rows: u32) -> Self {
        Self {
            tl,
            width,
            rows_in_flight: rows,
            ..self
        }
    }

    /// The same with a register count.
    pub fn with_registers(self, registers: u32) -> Self {
        Self { registers, ..self }
    }

    /// Whether the kernel computes `product` of `problem` at all, whatever the launch.
    pub fn accepts(&self, problem: &Problem, product: Product) -> bool {
        let is_stored = match self.storage {
            Storage::Dense => problem.is_dense(),
            Storage::Sparse => !problem.is_dense(),
            Storage::Panels => problem.stored == Stored::RowsAndPanels,
            Storage::HotColumns(values) => {
                problem.stored == Stored::RowsAndHotColumns && problem.values == values
            }
            Storage::Transpose => problem.stored == Stored::RowsAndTranspose,
        };
        self.product == product
            && is_stored
            && self.precision == problem.dtype
            && self.loads_evenly(problem)
    }

    // Wide loads of a row-major matrix need every row to start on a multiple of their width; the last
    // one of a row may reach into its padding, which is zero.
    fn loads_evenly(&self, problem: &Problem) -> bool {
        let width = u64::from(self.width.max(1));
        let is_even = !problem.is_dense() || problem.pitch.is_multiple_of(width);
        // Tiles are one stretch of memory. Rows of an odd number of packs lie in different banks.
        let is_tile = self.strategy != Strategy::DenseTiles
            || problem.pitch == problem.cols.next_multiple_of(width)
                && problem.pitch / width % 2 == 1;
        is_even && is_tile
    }

    /// Whether vectors of `vs` threads hold a row of `cols` elements in registers, for the strategies
    /// that need them to.
    pub fn holds_row(&self, cols: u64, vs: u32) -> bool {
        !self.strategy.holds_row() || self.columns(vs) >= cols
    }

    /// Columns that a vector of `vs` threads covers, those of all blocks that share a row together.
    pub(super) fn columns(&self, vs: u32) -> u64 {
        u64::from(self.blocks_per_row()) * u64::from(vs) * u64::from(self.tl)
    }

    /// Blocks that share a row, each with its part of the columns.
    pub(super) fn blocks_per_row(&self) -> u32 {
        match self.strategy {
            Strategy::DenseCluster | Strategy::FixedHalves => self.cluster.max(1),
            _ => 1,
        }
    }

    /// The kernels of the source of the published model: sparse ones with 43 registers, dense ones
    /// for TL from 1 to 40 with 23 to 255 registers (the two ends are its figures, those between are
    /// interpolated).
    ///
    /// They let the published model run without a compiled kernel, as in its worked example.
    pub fn of_the_source(precision: Precision) -> Vec<Self> {
        let lanes = [1, 2, 4, 8, 16, 32];
        let sparse = lanes
            .into_iter()
            .flat_map(|vs| sparse_of_the_source(precision, vs));
        let teams = lanes.into_iter().map(Team::Lanes).chain([Team::Block]);
        sparse
            .chain(teams.flat_map(|team| dense_of_the_source(precision, team)))
            .collect()
    }
}

fn sparse_of_the_source(precision: Precision, vs: u32) -> impl Iterator<Item = Candidate> {
    let kernels = [
        ("sparse_shared", Product::Fused, Strategy::SharedW),
        ("sparse_global", Product::Fused, Strategy::GlobalW),
        ("sparse_dot", Product::Forward, Strategy::RowDot),
        (
            "sparse_transposed_shared",
            Product::Transposed,
            Strategy::SharedW,
        ),
        (
            "sparse_transposed_global",
            Product::Transposed,
            Strategy::GlobalW,
        ),
    ];
    kernels.into_iter().map(move |(name, product, strategy)| {
        Candidate::new(
            name,
            product,
            Storage::Sparse,
            strategy,
            precision,
            Team::Lanes(vs),
        )
        .with_registers(43)
    })
}

fn dense_of_the_source(precision: Precision, team: Team) -> impl Iterator<Item = Candidate> {
    let dense = move |name: &'static str, product, strategy, tl: u32| {
        let registers = 23 + (tl - 1) * 232 / 39;
        Candidate::new(name, product, Storage::Dense, strategy, precision, team)
            .with_load(tl, 1, 1)
            .with_registers(registers)
    };
    let fused =
        (1..=40).map(move |tl| dense("dense_fused", Product::Fused, Strategy::DenseRegisters, tl));
    let block = (team == Team::Block)
        .then(|| {
            dense(
                "dense_columns",
                Product::Transposed,
                Strategy::DenseColumns,
                1,
            )
        })
        .into_iter();
    fused
        .chain([dense("dense_dot", Product::Forward, Strategy::RowDot, 1)])
        .chain(block)
}
