//! What an entry does, as data: what a planner asks of a kernel before it launches it.
//!
//! Every row of a [`kernels!`](crate::kernels!) table has a [`Description`], computed from its variant when the crate is
//! compiled. The planner of the fused pattern reads nothing else, so a new kernel is known to it with its table.

use crate::cta::WARP;

/// Which product an entry computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Product {
    /// `w += α · Xᵀ( v ⊙ (X·y − s) )`.
    Fused,
    /// `p = α · v ⊙ (X·y − s) + β · z`.
    Forward,
    /// `w += α · Xᵀ( v ⊙ p )`.
    Transposed,
}

impl Product {
    /// Of X with m rows and n columns, the lengths of the vector that is multiplied and of the one that comes out.
    pub const fn lengths<N: Copy>(self, m: N, n: N) -> (N, N) {
        match self {
            Product::Fused => (n, n),
            Product::Forward => (n, m),
            Product::Transposed => (m, n),
        }
    }
}

/// The threads that share a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TeamSize {
    /// This many lanes of a warp: 1, 2, 4, 8, 16 or 32.
    Lanes(u32),
    /// All threads of the block.
    Block,
}

impl TeamSize {
    /// VS: threads per row in blocks of `block` threads.
    pub const fn threads(&self, block: u32) -> u32 {
        match self {
            TeamSize::Lanes(vs) => *vs,
            TeamSize::Block => block,
        }
    }
}

/// In which form an entry reads X.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Compressed sparse rows.
    Rows,
    /// Row-major.
    Dense,
    /// Panels of rows and of columns: see [`panels`](crate::fused::panels).
    Panels,
    /// Slices of rows with their most frequent columns split off: see [`hot`](crate::fused::hot).
    HotColumns(HotValues),
    /// Compressed sparse rows of the transpose.
    Transpose,
}

/// How the values of hot entries are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HotValues {
    /// As elements of X.
    Whole,
    /// As f32, where elements are f64.
    Single,
    /// As bfloat16, the upper half of an f32.
    Bf16,
    /// Not at all: those of a row are equal, and there is one for each row or one for all.
    Constant,
}

impl HotValues {
    /// Bytes of a value, of elements of `size` bytes.
    pub const fn bytes(self, size: u32) -> u32 {
        match self {
            HotValues::Whole => size,
            HotValues::Single => 4,
            HotValues::Bf16 => 2,
            HotValues::Constant => 0,
        }
    }
}

/// What vectors or blocks share out among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Walk {
    /// Rows of X, one to a vector at a time.
    Rows,
    /// Tiles of columns, and for each of them rows of X.
    ColumnTiles,
    /// Partitions of one length of the rows' ends and the nonzeros together: see [`balanced`](crate::fused::balanced).
    MergePartitions,
    /// The same partitions, each walked by a warp that sums rows by scans.
    ScannedPartitions,
    /// Shares of as many rows' ends and nonzeros together, one to a warp: see [`even`](crate::fused::even).
    EvenShares,
    /// Chunks of panels: see [`panels`](crate::fused::panels).
    Chunks,
    /// Slices of rows: see [`hot`](crate::fused::hot).
    Slices,
}

/// Where sums of w are while rows are walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the block's shared memory, flushed once at the end.
    Shared,
    /// In the block's shared memory, a copy for each vector of lanes, summed up and flushed once at the end.
    Private,
    /// In the shared memory of a cluster's blocks, which walk rows of their own and add to the sums of each other.
    Spread,
    /// In the shared memory of a cluster's blocks, which walk the same rows and each add to their part of the columns.
    Split,
    /// In global memory, one atomic per nonzero.
    Global,
    /// In registers, aggregated over the block in shared memory at the end.
    Registers,
    /// Nowhere: the entry has no w.
    Absent,
}

/// How sums are represented while rows are added to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Number {
    /// Floating point: the bits depend on the order of additions.
    Float,
    /// Fixed-point integers, whose additions may come in any order: see [`fixed_point`](crate::fused::fixed::point).
    Fixed,
}

/// Where the sums of w are while rows are walked, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sums {
    /// Where.
    pub place: Place,
    /// As what.
    pub number: Number,
}

/// Where the vector that X is multiplied by is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Input {
    /// Global memory, an element for each entry.
    Gathered,
    /// Shared memory, in which each block has all of it.
    Shared,
    /// Registers.
    Registers,
    /// Global memory, an element for each row: p of [`Product::Transposed`].
    Streamed,
}

/// A product, and the form of X that it is computed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Task {
    /// What is computed.
    pub product: Product,
    /// What is read.
    pub form: Form,
}

/// Where rows of a dense X are between their two uses: [`RowStore`](crate::fused::RowStore) without what does not matter to
/// the order of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Held {
    /// [`RowStore::Registers`](crate::fused::RowStore::Registers).
    Registers,
    /// [`RowStore::Ring`](crate::fused::RowStore::Ring).
    Ring,
    /// [`RowStore::Tiles`](crate::fused::RowStore::Tiles).
    Tiles,
}

/// How a row is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Load {
    /// TL: elements of a row that a thread keeps, or of sparse X the entries that it need not read a second time.
    pub elements: u32,
    /// Elements of one load.
    pub width: u32,
    /// Rows that a vector asks for before it uses the first.
    pub rows: u32,
    /// Elements of a thread that are on their way to shared memory all the time; 0 but for [`Held::Ring`].
    pub ahead: u32,
    /// Where rows are between their two uses.
    pub held: Held,
}

impl Load {
    /// This many entries of a sparse row by each lane.
    pub const fn entries(held: u32) -> Self {
        Load {
            elements: held,
            width: 1,
            rows: 1,
            ahead: 0,
            held: Held::Registers,
        }
    }
}

/// Shared memory of a block, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
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
    /// None.
    pub const NONE: Self = SharedUse {
        fixed: 0,
        per_column: 0,
        per_warp: 0,
        per_vector: 0,
        per_vector_column: 0,
    };

    /// This many bytes whatever the launch.
    pub const fn fixed(bytes: u32) -> Self {
        SharedUse {
            fixed: bytes,
            ..SharedUse::NONE
        }
    }

    /// The same with this many bytes more for each warp.
    pub const fn and_per_warp(self, bytes: u32) -> Self {
        SharedUse {
            per_warp: self.per_warp + bytes,
            ..self
        }
    }

    /// Bytes for a block of `block` threads in vectors of `vs`, on a matrix of `cols` columns.
    ///
    /// Saturates, so that a matrix too wide for any block is seen as such.
    pub const fn bytes(self, cols: u64, block: u32, vs: u32) -> u64 {
        let warps = block.div_ceil(WARP) as u64;
        let vectors = (block / if vs == 0 { 1 } else { vs }) as u64;
        let small = self.per_warp as u64 * warps + self.per_vector as u64 * vectors;
        let columns = self.per_vector_column as u64 * vectors + self.per_column as u64;
        columns
            .saturating_mul(cols)
            .saturating_add(small + self.fixed as u64)
    }
}

/// What an entry does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Description {
    /// What it may be chosen for, up to three tasks; none for entries that belong to others, and for families whose
    /// operation chooses by the variant alone.
    pub tasks: [Option<Task>; 3],
    /// What is shared out.
    pub walk: Walk,
    /// Where w is.
    pub sums: Sums,
    /// Where y or p is.
    pub input: Input,
    /// Who works on a row together.
    pub team: TeamSize,
    /// How rows are loaded.
    pub load: Load,
    /// What a block takes of shared memory.
    pub shared: SharedUse,
    /// Blocks of the clusters in which it is launched; 1 for blocks by themselves.
    pub cluster: u32,
    /// Whether the body waits for the launch before it in the stream
    /// ([`Cta::wait_for_previous`](crate::Cta::wait_for_previous)), after something that does not need it. For all others it is
    /// waited before the body begins.
    pub waits_itself: bool,
    /// Threads of a block at most.
    pub most_threads: u32,
}

impl Description {
    /// An entry that no planner of the fused pattern chooses, of blocks by themselves.
    pub const UNPLANNED: Self = Description {
        tasks: [None; 3],
        walk: Walk::Rows,
        sums: Sums {
            place: Place::Absent,
            number: Number::Float,
        },
        input: Input::Gathered,
        team: TeamSize::Lanes(1),
        load: Load::entries(1),
        shared: SharedUse::NONE,
        cluster: 1,
        waits_itself: false,
        most_threads: 1024,
    };

    /// [`Description::UNPLANNED`] for one product over one form.
    pub const fn of(product: Product, form: Form) -> Self {
        let task = Task { product, form };
        Description {
            tasks: [Some(task), None, None],
            input: match product {
                Product::Transposed => Input::Streamed,
                _ => Input::Gathered,
            },
            ..Description::UNPLANNED
        }
    }

    /// What it may be chosen for.
    pub fn tasks(&self) -> impl Iterator<Item = Task> + use<> {
        self.tasks.into_iter().flatten()
    }
}

/// The description of every entry of a family whose operation chooses by the variant alone.
pub const fn unplanned<V>(_: &V) -> Description {
    Description::UNPLANNED
}
