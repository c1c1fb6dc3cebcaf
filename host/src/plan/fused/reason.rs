//! Why a plan is as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::prediction::Bound;
use super::strategy::Strategy;
use crate::plan::occupancy::Limiter;

/// One step of the way to a plan, with the figures that decided it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// VS follows from the mean row of a sparse matrix.
    MeanRow {
        /// Nonzeros.
        nnz: u64,
        /// Rows.
        rows: u64,
        /// The vector size that the published rule gives.
        vs: u32,
    },
    /// No kernel is compiled for the wanted vector size.
    NearestVector {
        /// The vector size wanted.
        wanted: u32,
        /// The nearest one compiled.
        vs: u32,
    },
    /// w fits in shared memory.
    SharedFits {
        /// Bytes of a block.
        bytes: u64,
        /// Bytes that a block may have.
        available: u32,
    },
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
    },
    /// w does not fit in shared memory.
    SharedTooSmall {
        /// Columns of X.
        cols: u64,
        /// Bytes that the smallest block would need.
        bytes: u64,
        /// Bytes that a block may have.
        available: u32,
    },
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
    },
    /// How many blocks run on an SM at once, and what they have in flight.
    Resident {
        /// Blocks of an SM.
        blocks: u32,
        /// Threads of a block.
        bs: u32,
        /// Resident warps of an SM.
        warps: u32,
        /// Bytes of X that an SM has asked for at once.
        in_flight_bytes: u64,
    },
    /// Another block size has as many, and lost for being smaller.
    Tie {
        /// The block size that lost.
        bs: u32,
        /// Resident warps that both have.
        warps: u32,
    },
    /// How many rows each vector gets.
    RowsPerVector {
        /// Rows.
        rows: u64,
        /// Vectors of the grid.
        vectors: u64,
        /// Rows per vector, C.
        c: u64,
    },
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
    },
    /// The blocks of a cluster share a row.
    Cluster {
        /// Columns of X.
        cols: u64,
        /// Blocks of the cluster.
        blocks: u32,
    },
    /// At most a warp of columns: the largest block, one element per thread.
    Narrow {
        /// Columns of X.
        cols: u64,
    },
    /// More columns than the registers of the compiled kernels hold.
    BeyondRegisters {
        /// Columns of X.
        cols: u64,
        /// Columns that the widest kernel holds.
        held: u64,
    },
    /// `X·y`, then `Xᵀ·p` by kernels of their own are quicker than any kernel for both.
    QuickerApart {
        /// Predicted time of the two, nanoseconds.
        ns: u64,
        /// The same of the quickest kernel for both.
        fused_ns: u64,
    },
    /// The least predicted time.
    LeastTime {
        /// Predicted time, nanoseconds.
        ns: u64,
        /// What bounds it.
        bound: Bound,
        /// Launches compared, without those that a bound ruled out.
        compared: u64,
    },
    /// The best of another strategy.
    RunnerUp {
        /// The strategy.
        strategy: Strategy,
        /// Its predicted time, nanoseconds.
        ns: u64,
        /// What bounds it.
        bound: Bound,
    },
    /// Another strategy takes at least so long: more than the plan, whatever its launch.
    RuledOut {
        /// The strategy.
        strategy: Strategy,
        /// A lower bound of its predicted time, nanoseconds.
        ns: u64,
    },
    /// The rates of the device are scaled from another's.
    EstimatedRates {
        /// The device.
        device: String,
    },
    /// A part of the plan was forced by the user.
    Forced {
        /// Which part.
        field: String,
        /// Its value.
        value: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MeanRow { .. } | Self::NearestVector { .. } | Self::RowsPerVector { .. } => {
                self.fmt_vectors(f)
            }
            Self::SharedFits { .. } | Self::ClusterFits { .. } | Self::SharedTooSmall { .. } => {
                self.fmt_shared(f)
            }
            Self::MostWarps { .. } | Self::Resident { .. } | Self::Tie { .. } => self.fmt_warps(f),
            Self::ThreadLoad { .. }
            | Self::Cluster { .. }
            | Self::Narrow { .. }
            | Self::BeyondRegisters { .. } => self.fmt_dense(f),
            _ => self.fmt_predicted(f),
        }
    }
}

impl Reason {
    fn fmt_vectors(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MeanRow { nnz, rows, vs } => {
                let mean = if *rows == 0 {
                    0.0
                } else {
                    *nnz as f64 / *rows as f64
                };
                write!(
                    f,
                    "{mean:.1} nonzeros in the mean row: {vs} threads share a row"
                )
            }
            Self::NearestVector { wanted, vs } => {
                write!(
                    f,
                    "no kernel is compiled for vectors of {wanted} threads; {vs} is the nearest"
                )
            }
            Self::RowsPerVector { rows, vectors, c } => {
                write!(f, "{rows} rows over {vectors} vectors: {c} rows each")
            }
            _ => Ok(()),
        }
    }

    fn fmt_shared(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedFits { bytes, available } => {
                write!(
                    f,
                    "w fits in shared memory: {bytes} of {available} bytes of a block"
                )
            }
            Self::ClusterFits {
                cols,
                blocks,
                bytes,
                available,
            } => {
                write!(
                    f,
                    "w of {cols} columns is spread over the shared memory of a cluster of {blocks} blocks: {bytes} of {available} bytes of each"
                )
            }
            Self::SharedTooSmall {
                cols,
                bytes,
                available,
            } => {
                write!(
                    f,
                    "w of {cols} columns does not fit in shared memory: {bytes} bytes, a block may have {available}"
                )
            }
            _ => Ok(()),
        }
    }

    fn fmt_warps(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MostWarps {
                bs,
                warps,
                max_warps,
                limiter,
            } => {
                write!(
                    f,
                    "blocks of {bs} threads: {warps} of {max_warps} warps resident per SM, limited by {limiter}"
                )
            }
            Self::Resident {
                blocks,
                bs,
                warps,
                in_flight_bytes,
            } => {
                let kib = *in_flight_bytes as f64 / 1024.0;
                write!(
                    f,
                    "{blocks} blocks of {bs} threads per SM: {warps} warps, {kib:.1} KiB of X in flight"
                )
            }
            Self::Tie { bs, warps } => write!(
                f,
                "blocks of {bs} threads have {warps} warps too; fewer, larger blocks add to w less often at the end"
            ),
            _ => Ok(()),
        }
    }

    fn fmt_dense(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThreadLoad {
                tl,
                vs,
                wasted_warps,
                registers,
            } => write!(
                f,
                "{tl} elements per thread ({registers} registers), {vs} threads per row, {wasted_warps} wasted warps per vector"
            ),
            Self::Cluster { cols, blocks } => {
                write!(
                    f,
                    "a row of {cols} columns is shared by a cluster of {blocks} blocks, each with its part of y and w"
                )
            }
            Self::Narrow { cols } => {
                write!(
                    f,
                    "{cols} columns are at most a warp: no barrier is needed, so the largest block, one element per thread"
                )
            }
            Self::BeyondRegisters { cols, held } => {
                write!(
                    f,
                    "{cols} columns, the compiled kernels hold {held} in registers: X·y and Xᵀ·p are computed one after the other"
                )
            }
            _ => Ok(()),
        }
    }

    fn fmt_predicted(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuickerApart { ns, fused_ns } => write!(
                f,
                "X·y, then Xᵀ·p are predicted to take {:.1} µs, the quickest kernel for both {:.1} µs",
                *ns as f64 / 1e3,
                *fused_ns as f64 / 1e3
            ),
            Self::LeastTime {
                ns,
                bound,
                compared,
            } => {
                write!(
                    f,
                    "predicted {:.1} µs, bound by {bound}: the least of {compared} launches",
                    *ns as f64 / 1e3
                )
            }
            Self::RunnerUp {
                strategy,
                ns,
                bound,
            } => {
                write!(
                    f,
                    "the best {strategy} would take {:.1} µs, bound by {bound}",
                    *ns as f64 / 1e3
                )
            }
            Self::RuledOut { strategy, ns } => write!(
                f,
                "{strategy} would take {:.1} µs at least",
                *ns as f64 / 1e3
            ),
            Self::EstimatedRates { device } => {
                write!(
                    f,
                    "the rates of {device} are estimates, scaled from those measured on an H200"
                )
            }
            Self::Forced { field, value } => write!(f, "{field} = {value}, as forced"),
            _ => Ok(()),
        }
    }
}
