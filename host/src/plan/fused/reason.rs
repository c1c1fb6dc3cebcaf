//! Why a plan is as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::prediction::Bound;
use super::strategy::Strategy;
use crate::plan::limiter::Limiter;

/// Reasons with their sentences: one without a sentence does not compile.
macro_rules! reasons {
    ($(
        $(#[doc = $doc:literal])*
        $reason:ident { $( $(#[doc = $of_field:literal])* $field:ident: $type:ty, )* }
            => ($($sentence:tt)*);
    )*) => {
        /// One step of the way to a plan, with the figures that decided it.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum Reason {
            $( $(#[doc = $doc])* $reason { $( $(#[doc = $of_field])* $field: $type, )* }, )*
        }

        impl fmt::Display for Reason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $( Self::$reason { $($field),* } => write!(f, $($sentence)*), )*
                }
            }
        }
    };
}

reasons! {
    /// VS follows from the mean row of a sparse matrix.
    MeanRow {
        /// Nonzeros.
        nnz: u64,
        /// Rows.
        rows: u64,
        /// The vector size that the published rule gives.
        vs: u32,
    } => ("{:.1} nonzeros in the mean row: {vs} threads share a row", mean(*nnz, *rows));
    /// No kernel is compiled for the wanted vector size.
    NearestVector {
        /// The vector size wanted.
        wanted: u32,
        /// The nearest one compiled.
        vs: u32,
    } => ("no kernel is compiled for vectors of {wanted} threads; {vs} is the nearest");
    /// w fits in shared memory.
    SharedFits {
        /// Bytes of a block.
        bytes: u64,
        /// Bytes that a block may have.
        available: u32,
    } => ("w fits in shared memory: {bytes} of {available} bytes of a block");
    /// w fits in the shared memory of a cluster's blocks.
    ClusterFits {
        /// Columns of X.
        cols: u64,
        /// Blocks of the cluster.
        blocks: u32,
        /// Bytes of a block.
        bytes: u64,
        /// Bytes that a block may have.
        available: u32,
    } => ("w of {cols} columns is spread over the shared memory of a cluster of {blocks} blocks: {bytes} of {available} bytes of each");
    /// w does not fit in shared memory.
    SharedTooSmall {
        /// Columns of X.
        cols: u64,
        /// Bytes that the smallest block would need.
        bytes: u64,
        /// Bytes that a block may have.
        available: u32,
    } => ("w of {cols} columns does not fit in shared memory: {bytes} bytes, a block may have {available}");
    /// This block size has the most resident warps.
    MostWarps {
        /// Threads of a block.
        bs: u32,
        /// Resident warps of an SM.
        warps: u32,
        /// Warps that an SM can hold.
        max_warps: u32,
        /// What keeps it from holding more.
        limiter: Limiter,
    } => ("blocks of {bs} threads: {warps} of {max_warps} warps resident per SM, limited by {limiter}");
    /// How many blocks run on an SM at once, and what they have in flight.
    Resident {
        /// Blocks of an SM.
        blocks: u32,
        /// Threads of a block.
        bs: u32,
        /// Resident warps of an SM.
        warps: u32,
        /// Bytes of X that an SM has requested at once.
        in_flight_bytes: u64,
    } => ("{blocks} blocks of {bs} threads per SM: {warps} warps, {:.1} KiB of X in flight", *in_flight_bytes as f64 / 1024.0);
    /// Another block size has as many, and lost for being smaller.
    Tie {
        /// The block size that lost.
        bs: u32,
        /// Resident warps that both have.
        warps: u32,
    } => ("blocks of {bs} threads have {warps} warps too; fewer, larger blocks add to w less often at the end");
    /// How many rows each vector gets.
    RowsPerVector {
        /// Rows.
        rows: u64,
        /// Vectors of the grid.
        vectors: u64,
        /// Rows per vector, C.
        c: u64,
    } => ("{rows} rows over {vectors} vectors: {c} rows each");
    /// The elements per thread of a dense kernel, and what they waste.
    ThreadLoad {
        /// Elements per thread.
        tl: u32,
        /// Threads per row.
        vs: u32,
        /// Warps of a vector that have nothing to load.
        wasted_warps: u64,
        /// Registers of a thread.
        registers: u32,
    } => ("{tl} elements per thread ({registers} registers), {vs} threads per row, {wasted_warps} wasted warps per vector");
    /// w is added to in parts, so that each stays in L2.
    Windows {
        /// Columns of X.
        cols: u64,
        /// Windows of them.
        windows: u32,
    } => ("w of {cols} columns is added to in {windows} windows, each with a walk over X, which costs less than additions beyond L2");
    /// Shared memory has the sums of a part of the columns at a time.
    SharedWindows {
        /// Columns of X.
        cols: u64,
        /// Windows of them.
        windows: u32,
    } => ("shared memory has the sums of {cols} columns in {windows} windows, each with a walk over X, which costs less than additions to L2");
    /// The blocks of a cluster share a row.
    Cluster {
        /// Columns of X.
        cols: u64,
        /// Blocks of the cluster.
        blocks: u32,
    } => ("a row of {cols} columns is shared by a cluster of {blocks} blocks, each with its part of y and w");
    /// At most a warp of columns: the largest block, one element per thread.
    Narrow {
        /// Columns of X.
        cols: u64,
    } => ("{cols} columns are at most a warp: no barrier is needed, so the largest block, one element per thread");
    /// More columns than the registers of the compiled kernels hold.
    BeyondRegisters {
        /// Columns of X.
        cols: u64,
        /// Columns that the widest kernel holds.
        held: u64,
    } => ("{cols} columns, the compiled kernels hold {held} in registers: X·y and Xᵀ·p are computed one after the other");
    /// `X·y`, then `Xᵀ·p` by kernels of their own are faster than any kernel for both.
    QuickerApart {
        /// Predicted time of the two, nanoseconds.
        ns: u64,
        /// The same of the fastest kernel for both.
        fused_ns: u64,
    } => ("X·y, then Xᵀ·p are predicted to take {:.1} µs, the fastest kernel for both {:.1} µs", us(*ns), us(*fused_ns));
    /// The least predicted time.
    LeastTime {
        /// Predicted time, nanoseconds.
        ns: u64,
        /// What bounds it.
        bound: Bound,
        /// Launches compared, without those that a bound ruled out.
        compared: u64,
    } => ("predicted {:.1} µs, bound by {bound}: the least of {compared} launches", us(*ns));
    /// The best of another strategy.
    RunnerUp {
        /// The strategy.
        strategy: Strategy,
        /// Its predicted time, nanoseconds.
        ns: u64,
        /// What bounds it.
        bound: Bound,
    } => ("the best {strategy} would take {:.1} µs, bound by {bound}", us(*ns));
    /// Another strategy takes at least so long: more than the plan, whatever its launch.
    RuledOut {
        /// The strategy.
        strategy: Strategy,
        /// A lower bound of its predicted time, nanoseconds.
        ns: u64,
    } => ("{strategy} would take {:.1} µs at least", us(*ns));
    /// The rates of the device are scaled from another's.
    EstimatedRates {
        /// The device.
        device: String,
    } => ("the rates of {device} are estimates, scaled from those measured on an H200");
    /// A table of measured launches has this problem.
    Tuned {
        /// Time of the launch when it was tuned, nanoseconds.
        ns: u64,
        /// That of the planner's own choice then, nanoseconds.
        planned_ns: u64,
    } => ("taken from a table of tuned launches: measured {:.1} µs, the planner's own choice {:.1} µs", us(*ns), us(*planned_ns));
    /// A table of measured launches has this problem with a launch that does not exist.
    NotTuned {
        /// What the table has.
        launch: String,
    } => ("the table of tuned launches has {launch}, which no kernel here computes: not taken; tune again");
    /// A part of the plan was forced by the user.
    Forced {
        /// Which part.
        field: String,
        /// Its value.
        value: String,
    } => ("{field} = {value}, as forced");
}

/// Entries of the mean row.
fn mean(nnz: u64, rows: u64) -> f64 {
    match rows {
        0 => 0.0,
        _ => nnz as f64 / rows as f64,
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}
