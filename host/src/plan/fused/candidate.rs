//! The compiled kernels that a plan may choose from.

use std::borrow::Cow;

use gpu_kernels::describe::{Description, Form, Input, Number, Sums, Task, Walk};
use gpu_kernels::fused::{Held, HotValues, Place, TeamSize};
use serde::{Deserialize, Serialize};

use super::strategy::Strategy;
use crate::plan::problem::{Precision, Problem, Product, Stored, StoredValues};

pub use gpu_kernels::describe::SharedUse;

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

impl Storage {
    /// Where kernels that read X in `form` apply: those for hot columns without values serve two kinds.
    fn of(form: Form) -> &'static [Storage] {
        match form {
            Form::Rows => &[Storage::Sparse],
            Form::Dense => &[Storage::Dense],
            Form::Panels => &[Storage::Panels],
            Form::Transpose => &[Storage::Transpose],
            Form::HotColumns(HotValues::Whole) => &[Storage::HotColumns(StoredValues::Whole)],
            Form::HotColumns(HotValues::Single) => &[Storage::HotColumns(StoredValues::F32)],
            Form::HotColumns(HotValues::Bf16) => &[Storage::HotColumns(StoredValues::Bf16)],
            Form::HotColumns(HotValues::Constant) => &[
                Storage::HotColumns(StoredValues::OfRows),
                Storage::HotColumns(StoredValues::Equal),
            ],
        }
    }
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

impl From<TeamSize> for Team {
    fn from(team: TeamSize) -> Self {
        match team {
            TeamSize::Lanes(lanes) => Team::Lanes(lanes),
            TeamSize::Block => Team::Block,
        }
    }
}

/// One compiled kernel at one task, as its description and ptxas have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The name of the entry.
    pub name: Cow<'static, str>,
    /// What it computes.
    pub product: Product,
    /// What it reads.
    pub storage: Storage,
    /// What the rest is called.
    pub strategy: Strategy,
    /// What vectors or blocks share out among them.
    pub walk: Walk,
    /// Where the sums of w are, and as what.
    pub sums: Sums,
    /// Where y or p is read from.
    pub input: Input,
    /// Where rows are between their two uses.
    pub held: Held,
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
    /// Elements of a thread that are on their way to shared memory all the time, for [`Held::Ring`].
    pub ahead: u32,
    /// Blocks of the clusters in which it is launched; 1 for blocks by themselves.
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
    ///
    /// # Panics
    /// For a strategy of two products.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        product: Product,
        storage: Storage,
        strategy: Strategy,
        precision: Precision,
        team: Team,
    ) -> Self {
        let traits = strategy.traits().expect("the strategy of one kernel");
        let (bytes, sums) = (precision.bytes(), traits.sums);
        let keeps_w = match sums.place {
            Place::Shared => sums.number == Number::Float && traits.walk == Walk::Rows,
            Place::Registers => {
                traits.input == Input::Registers
                    && traits.held == Held::Registers
                    && product != Product::Forward
                    && team != Team::Block
            }
            _ => false,
        };
        let shared = SharedUse {
            per_column: if keeps_w { bytes } else { 0 },
            per_warp: if team == Team::Block { bytes } else { 0 },
            ..SharedUse::NONE
        };
        Self {
            name: name.into(),
            product,
            storage,
            strategy,
            walk: traits.walk,
            sums,
            input: match product {
                Product::Transposed => Input::Streamed,
                _ => traits.input,
            },
            held: traits.held,
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

    /// A compiled kernel of elements of one precision: for each of its tasks, and each form that it serves, one.
    pub fn described(
        name: &'static str,
        precision: Precision,
        kernel: &'static Description,
    ) -> impl Iterator<Item = Self> {
        let at = move |task: Task| Storage::of(task.form).iter().map(move |form| (task, *form));
        let tasks = kernel.tasks().flat_map(at);
        tasks.map(move |(task, storage)| Self {
            name: name.into(),
            product: task.product.into(),
            storage,
            strategy: Strategy::of(task, kernel),
            walk: kernel.walk,
            sums: kernel.sums,
            input: kernel.input,
            held: kernel.load.held,
            precision,
            team: kernel.team.into(),
            tl: kernel.load.elements,
            rows_in_flight: kernel.load.rows,
            width: kernel.load.width,
            ahead: kernel.load.ahead,
            cluster: kernel.cluster,
            registers: 32,
            max_block: kernel.most_threads,
            shared: kernel.shared,
        })
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
            && self.counts_columns(problem)
            && self.loads_evenly(problem)
    }

    // Tables of frequent columns mark indices by their highest bit.
    fn counts_columns(&self, problem: &Problem) -> bool {
        self.walk != Walk::EvenShares || problem.cols <= i32::MAX as u64
    }

    // Wide loads of a row-major matrix need every row to start on a multiple of their width; the last
    // one of a row may reach into its padding, which is zero.
    fn loads_evenly(&self, problem: &Problem) -> bool {
        let width = u64::from(self.width.max(1));
        let is_even = !problem.is_dense() || problem.pitch.is_multiple_of(width);
        is_even && (self.held != Held::Tiles || self.has_tiles_of(problem, width))
    }

    // Tiles are one stretch of memory. Rows of an odd number of packs for each thread lie in different banks. Elements that are not there
    // take a thread as long: of two threads on a row each is to have nearly as many as it holds.
    fn has_tiles_of(&self, problem: &Problem, width: u64) -> bool {
        let team = self.team.size(1);
        let of_team = width * u64::from(team);
        let is_filled = team == 1 || 4 * self.columns(team) <= 5 * problem.cols;
        let is_odd = problem.pitch / of_team % 2 == 1;
        is_filled && is_odd && problem.pitch == problem.cols.next_multiple_of(of_team)
    }

    /// Whether vectors of `vs` threads hold a row of `cols` elements in registers, for the kernels
    /// that need them to.
    pub fn holds_row(&self, cols: u64, vs: u32) -> bool {
        !self.keeps_row() || self.columns(vs) >= cols
    }

    /// Columns that a vector of `vs` threads covers, those of all blocks that share a row together.
    pub(super) fn columns(&self, vs: u32) -> u64 {
        u64::from(self.blocks_per_row()) * u64::from(vs) * u64::from(self.tl)
    }

    /// Blocks that share a row, each with its part of the columns.
    pub(super) fn blocks_per_row(&self) -> u32 {
        match (self.held, self.sums.place) {
            (Held::Ring, _) | (_, Place::Split) => self.cluster.max(1),
            _ => 1,
        }
    }

    /// Whether threads hold their parts of y and w in registers, so that a vector must be as wide as X.
    pub(super) fn keeps_row(&self) -> bool {
        self.sums.place == Place::Registers && self.walk == Walk::Rows
    }

    /// Whether blocks have sums of their own, which they add to w at the end.
    pub(super) fn has_own_sums(&self) -> bool {
        !matches!(self.sums.place, Place::Global | Place::Absent)
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
