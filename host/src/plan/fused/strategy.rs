//! Strategies: the names of kinds of kernels, by which plans are printed and forced.
//!
//! A strategy decides nothing. Models ask a kernel for its [`Description`]; the name of what is described follows from the
//! one table here.

use std::fmt;

use gpu_kernels::describe::{Description, Form, Input, Number, Sums, Task, Walk};
use gpu_kernels::fused::{Held, Place};
use serde::{Deserialize, Serialize};

use super::place::{self, Measured};

/// What the kernels of a strategy have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traits {
    pub walk: Walk,
    pub sums: Sums,
    /// Of products with y.
    pub input: Input,
    pub held: Held,
    /// Whether blocks work together in clusters.
    pub clusters: bool,
    /// Whether it is the transpose of X that is walked.
    pub of_transpose: bool,
}

impl Traits {
    const fn new(walk: Walk, place: Place, number: Number) -> Self {
        Traits {
            walk,
            sums: Sums { place, number },
            input: Input::Gathered,
            held: Held::Registers,
            clusters: matches!(place, Place::Spread | Place::Split),
            of_transpose: false,
        }
    }

    /// Sums of floats over the rows of a sparse X.
    const fn float(place: Place) -> Self {
        Traits::new(Walk::Rows, place, Number::Float)
    }

    /// Sums of fixed-point integers over the rows of a sparse X.
    const fn fixed(place: Place) -> Self {
        Traits::new(Walk::Rows, place, Number::Fixed)
    }

    const fn with_y_in_shared(self) -> Self {
        Traits {
            input: Input::Shared,
            ..self
        }
    }

    /// Rows of a dense X that are held so.
    const fn dense(held: Held) -> Self {
        Traits {
            input: Input::Registers,
            held,
            ..Traits::new(Walk::Rows, Place::Registers, Number::Float)
        }
    }

    const fn in_clusters(self) -> Self {
        Traits {
            clusters: true,
            ..self
        }
    }

    const fn over_transpose(self) -> Self {
        Traits {
            of_transpose: true,
            ..self
        }
    }

    /// Whether they are those of a kernel at a task.
    fn are_of(&self, task: Task, kernel: &Description) -> bool {
        let own = Traits {
            walk: kernel.walk,
            sums: kernel.sums,
            input: match kernel.input {
                // No y: those with and without it in shared memory are the same.
                Input::Streamed => self.input,
                input => input,
            },
            held: kernel.load.held,
            clusters: kernel.cluster > 1,
            of_transpose: task.form == Form::Transpose,
        };
        own == *self
    }
}

/// The table of strategies: a row is documentation, name, printed name, and traits, if it is of one kernel.
macro_rules! strategies {
    ($( $(#[doc = $doc:literal])* $strategy:ident, $name:literal, $traits:expr; )*) => {
        /// How a kernel computes its product, above all where the sums of w are while rows are added to them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Strategy {
            $( $(#[doc = $doc])* #[serde(rename = $name)] $strategy, )*
        }

        impl Strategy {
            /// All of them.
            pub const ALL: &[Strategy] = &[$( Strategy::$strategy, )*];

            /// The name that is printed and that serialisation uses.
            pub const fn name(self) -> &'static str {
                match self {
                    $( Strategy::$strategy => $name, )*
                }
            }

            /// What its kernels have in common; `None` for two products.
            pub(super) const fn traits(self) -> Option<Traits> {
                match self {
                    $( Strategy::$strategy => $traits, )*
                }
            }
        }
    };
}

// Of two whose kernels without y are alike, the first gives those its name.
strategies! {
    /// Sparse; each block keeps its own w in shared memory and adds it to global memory at the end.
    SharedW, "shared_w", Some(Traits::float(Place::Shared));
    /// Sparse, few columns; each vector of threads keeps its own w in shared memory and needs no atomics: see
    /// [`gpu_kernels::fused::private`].
    PrivateW, "private_w", Some(Traits::float(Place::Private).with_y_in_shared());
    /// Sparse; every entry is added to w in global memory.
    GlobalW, "global_w", Some(Traits::float(Place::Global));
    /// Sparse; an even share of the entries for each warp, sums as [`Strategy::SharedW`]: see [`gpu_kernels::fused::even`].
    EvenShared, "even_shared", Some(Traits::new(Walk::EvenShares, Place::Shared, Number::Float));
    /// Sparse; an even share of the entries for each warp, sums of frequent columns in shared memory, the others in w.
    EvenFrequent, "even_frequent", Some(Traits::new(Walk::EvenShares, Place::Global, Number::Float));
    /// Sparse; sums of fixed-point integers in the shared memory of each block: reproducible.
    FixedShared, "fixed_shared", Some(Traits::fixed(Place::Shared));
    /// Sparse; sums of fixed-point integers and y in the shared memory of each block: reproducible.
    FixedWithY, "fixed_with_y", Some(Traits::fixed(Place::Shared).with_y_in_shared());
    /// Sparse; sums of fixed-point integers spread over the shared memory of a cluster's two blocks, twice as many as one
    /// holds: reproducible (compute capability 9.0), see [`gpu_kernels::fused::fixed`]. Clusters of more blocks would be no
    /// faster than [`Strategy::FixedGlobal`].
    FixedCluster, "fixed_cluster", Some(Traits::fixed(Place::Spread));
    /// Sparse; two blocks of a cluster walk the same rows, each with fixed-point sums of half of the columns and, in the
    /// fused product, all of y in shared memory: reproducible (compute capability 9.0).
    FixedSplit, "fixed_halves", Some(Traits::fixed(Place::Split).with_y_in_shared());
    /// Sparse; sums of fixed-point integers in global memory: reproducible, for any number of columns.
    FixedGlobal, "fixed_global", Some(Traits::fixed(Place::Global));
    /// Sparse; an even share of the entries for each warp, fixed-point sums in the shared memory of each block: reproducible.
    FixedEvenShared, "fixed_even_shared", Some(Traits::new(Walk::EvenShares, Place::Shared, Number::Fixed));
    /// Sparse; an even share of the entries for each warp, fixed-point sums of frequent columns in shared memory, the others in
    /// global memory: reproducible.
    FixedEvenFrequent, "fixed_even_frequent", Some(Traits::new(Walk::EvenShares, Place::Global, Number::Fixed));
    /// Sparse, prepared; `X·y` over panels of rows and `Xᵀ·p` over panels of columns, the sums of a panel in shared
    /// memory and its entries in the order of their inputs.
    Panels, "panels", Some(Traits::new(Walk::Chunks, Place::Shared, Number::Float));
    /// Sparse, prepared; elements of y and fixed-point sums of the most frequent columns in shared memory, the others'
    /// entries gathered from global memory on the way, and multiplied by what the rows gave over panels of columns.
    HotColumns, "hot_columns", Some(Traits::new(Walk::Slices, Place::Shared, Number::Fixed).with_y_in_shared());
    /// `X·y` alone: one vector of threads per row, nothing shared between rows.
    RowDot, "row_dot", Some(Traits::float(Place::Absent));
    /// Sparse, `X·y` alone: the work cut by nonzeros, so that long rows are split and short ones packed; the same bits for
    /// every grid.
    BalancedDot, "balanced_dot", Some(Traits::new(Walk::MergePartitions, Place::Absent, Number::Float));
    /// Sparse, `X·y` alone; cut as [`Strategy::BalancedDot`] does, each part a warp's, which sums rows by scans.
    ScannedDot, "scanned_dot", Some(Traits::new(Walk::ScannedPartitions, Place::Absent, Number::Float));
    /// Sparse, `X·y` alone; as [`Strategy::ScannedDot`], with all of y in the shared memory of each block.
    ScannedWithY, "scanned_with_y",
        Some(Traits::new(Walk::ScannedPartitions, Place::Absent, Number::Float).with_y_in_shared());
    /// Sparse, prepared; [`Strategy::BalancedDot`] over X, then over its stored transpose: no atomics, the same bits for
    /// every grid.
    StoredTranspose, "stored_transpose",
        Some(Traits::new(Walk::MergePartitions, Place::Absent, Number::Float).over_transpose());
    /// Dense; each thread keeps its part of y and w in registers for the whole kernel.
    DenseRegisters, "dense_registers", Some(Traits::dense(Held::Registers));
    /// Dense, wide rows; y and w in registers, a block on each row, the next rows on their way to shared memory.
    DenseRing, "dense_ring", Some(Traits::dense(Held::Ring));
    /// Dense, rows wider than a block holds well; as [`Strategy::DenseRing`] with a cluster of blocks on each row, every
    /// block with a part of the columns (compute capability 9.0).
    DenseCluster, "dense_cluster", Some(Traits::dense(Held::Ring).in_clusters());
    /// Dense, short rows that start anywhere; y and w in registers, tiles of whole rows in shared memory.
    DenseTiles, "dense_tiles", Some(Traits::dense(Held::Tiles));
    /// Dense, `Xᵀ·p` alone with any number of columns: a block works on a tile of VS · TL columns and on
    /// a share of the rows.
    DenseColumns, "dense_columns", Some(Traits::new(Walk::ColumnTiles, Place::Registers, Number::Float));
    /// Dense with more columns than registers hold: `X·y`, then `Xᵀ·p`, X read twice.
    DenseTwoProducts, "dense_two_products", None;
    /// Sparse with y and w beyond the L2 cache: `X·y`, then `Xᵀ·p`, X read twice.
    SparseTwoProducts, "sparse_two_products", None;
}

impl Strategy {
    /// The name of what a kernel does at one of its tasks.
    ///
    /// # Panics
    /// When the table of strategies has no row for such a kernel.
    pub fn of(task: Task, kernel: &Description) -> Strategy {
        let is_named = |strategy: &&Strategy| {
            let traits = strategy.traits();
            traits.is_some_and(|traits| traits.are_of(task, kernel))
        };
        let named = Strategy::ALL.iter().find(is_named);
        *named.unwrap_or_else(|| panic!("no strategy names {kernel:?} at {task:?}"))
    }

    /// [`Strategy::DenseTwoProducts`] or [`Strategy::SparseTwoProducts`].
    pub const fn two_products(is_dense: bool) -> Strategy {
        match is_dense {
            true => Strategy::DenseTwoProducts,
            false => Strategy::SparseTwoProducts,
        }
    }

    /// Whether it is two products one after the other.
    pub const fn is_two_products(self) -> bool {
        self.traits().is_none()
    }

    /// Whether rows of a sparse X are added to sums of fixed-point integers alone, so that bits do not depend on the order.
    pub fn is_fixed(self) -> bool {
        self.traits().is_some_and(|traits| {
            let is_of_rows = matches!(traits.walk, Walk::Rows | Walk::EvenShares);
            is_of_rows && traits.sums.number == Number::Fixed
        })
    }

    /// Whether blocks work together in clusters, which GPUs have from compute capability 9.0 on.
    pub const fn needs_clusters(self) -> bool {
        matches!(self.traits(), Some(Traits { clusters: true, .. }))
    }

    /// Whether threads hold their parts of y and w in registers, so that a vector must be as wide as X.
    pub fn holds_row(self) -> bool {
        self.traits()
            .is_some_and(|traits| traits.input == Input::Registers)
    }

    /// Whether work is cut by nonzeros, in blocks of one size.
    pub fn is_balanced(self) -> bool {
        let is_cut = |walk| matches!(walk, Walk::MergePartitions | Walk::ScannedPartitions);
        self.traits().is_some_and(|traits| is_cut(traits.walk))
    }

    /// Whether each warp has an even share of the entries, in blocks of one size.
    pub fn is_even(self) -> bool {
        self.traits()
            .is_some_and(|traits| traits.walk == Walk::EvenShares)
    }

    /// The times from which the model's figures of its place of sums are taken; none where another model is at work.
    ///
    /// ```
    /// use warpfuse::plan::fused::Strategy;
    /// let of_spread = Strategy::FixedCluster.measured();
    /// assert!(of_spread.iter().any(|measured| measured.case == "n = 40,000" && measured.us == 850.0));
    /// ```
    pub fn measured(self) -> &'static [Measured] {
        let of_rows = self.traits().filter(|traits| traits.walk == Walk::Rows);
        of_rows.map_or(&[], |traits| place::of(traits.sums).measured)
    }

    /// Whether each block owns a tile of columns.
    pub(super) fn has_column_tiles(self) -> bool {
        self.traits()
            .is_some_and(|traits| traits.walk == Walk::ColumnTiles)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unlike_and_those_of_serialisation() {
        for (i, strategy) in Strategy::ALL.iter().enumerate() {
            let name = strategy.name();
            let json = serde_json::to_string(strategy).expect("a name");
            assert_eq!(json, format!("\"{name}\""));
            let others = &Strategy::ALL[i + 1..];
            assert!(others.iter().all(|other| other.name() != name), "{name}");
        }
    }

    #[test]
    fn what_is_known_of_a_place_was_measured() {
        for strategy in Strategy::ALL
            .iter()
            .filter(|s| s.is_fixed() && !s.is_even())
        {
            assert!(!strategy.measured().is_empty(), "{strategy}");
        }
        for measured in Strategy::ALL.iter().flat_map(|s| s.measured()) {
            assert!(measured.us > 0.0 && measured.us.is_finite(), "{measured:?}");
            assert_eq!(measured.date.len(), "2026-11-22".len(), "{measured:?}");
        }
    }
}
