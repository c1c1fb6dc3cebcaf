//! Matrix product: `C = α · op(A) · op(B) + β · C`, row-major with leading dimensions.
//!
//! op(A) is m × k, op(B) k × n, C m × n; op is the matrix itself or its transpose. Where β = 0, C is not read.
//!
//! # A ladder of variants
//!
//! Each does one thing more than the one before; all compute any shape.
//!
//! | variant | what is new | reads of A and B from global memory | ms, H200, f32, 4,096³ |
//! |---|---|---|--:|
//! | [`Naive`](MatmulVariant::Naive) | a thread computes one element | m·n·k each | 78.4 |
//! | [`Registers`](MatmulVariant::Registers) | 4 × 4 elements in a thread's registers: what is read is used four times | m·n·k / 4 | 22.9 |
//! | [`Shared`](MatmulVariant::Shared) | a block stages 16 × 16 tiles in shared memory: the block reads each element once | m·n·k / 16 | 17.7 |
//! | [`Blocked`](MatmulVariant::Blocked) | both: wide tiles in shared memory, 8 × 8 (f64: 4 × 4) elements in registers, 16 bytes an access | m·n·k / 128 | 4.14 |
//! | [`Pipelined`](MatmulVariant::Pipelined) | copies to shared memory that run while the tile before is multiplied (`cp.async`); multiply-adds in an order that keeps an operand; four small blocks on an SM | m·n·k / 64 and / 128 | 2.74 |
//! | [`SplitTf32`](MatmulVariant::SplitTf32) | the same tiles on tensor cores, each f32 as a sum of two TF32 numbers | m·n·k / 64 and / 128 | 1.88 |
//! | [`SplitF16`](MatmulVariant::SplitF16) | each f32 as a sum of two scaled halves of 16 bits, split and [packed] before: half as many products, and nothing but them in the loop | m·n·k / 128, and twice each to pack | 1.24 (an H100; `SplitTf32` 1.99 there) |
//!
//! In f64 [`TensorF64`](MatmulVariant::TensorF64) takes the place of the last two: the same way of tiles to tensor cores, which
//! multiply and add f64 as they are.
//!
//! cuBLAS takes 2.69 ms with f32 arithmetic. What did *not* help `Pipelined`: 16 × 8 elements for a thread, tiles of
//! 128 × 128 and 256 × 128 (fewer reads of shared memory, but two warps for a quarter of an SM, which wait at every
//! barrier), and panels of A with k innermost, read 16 bytes along k: what a thread multiplies at one step then lies in
//! registers of one bank, and every third multiply-add waits a cycle for its operands.
//!
//! What a product of 128 × 128 elements with k = 32 does, as an emulator counts it (a test holds the figures): sectors of A
//! and B that are requested, requests of warps to shared memory, passes over its banks beyond one for each request,
//! requests with idle lanes, barriers of all blocks.
//!
//! | variant | sectors | requests | conflicts | divergent | barriers |
//! |---|--:|--:|--:|--:|--:|
//! | `Naive` | 65,536 | 0 | 0 | 0 | 0 |
//! | `Registers` | 16,384 | 0 | 0 | 0 | 0 |
//! | `Shared` | 8,192 | 34,816 | 0 | 0 | 256 |
//! | `Blocked` | 1,536 | 4,352 | 384 | 0 | 4 |
//! | `Pipelined`, 64 × 128 | 9,216 | 4,864 | 1,536 | 0 | 4 |
//! | `Pipelined`, 128 × 64 | 6,144 | 4,864 | 768 | 0 | 4 |
//! | `SplitTf32` | 15,360 | 1,728 | 5,184 | 0 | 4 |
//! | `SplitF16`, packed before | 12,608 | 1,536 | 4,608 | 0 | 1 |
//!
//! The emulator takes 16 bytes a lane in shared memory, and copies to it, for four requests of 4 bytes. Where 32 lanes have
//! packs beside one another, each of the four then takes four passes, and asks for all sectors of the packs again; a
//! GPU needs four passes, and each sector once, for all four. All conflicts of the last four rows are such: three for each
//! request of a pack, so a GPU has none. Those of `Blocked` are B's elements, written one by one. Where k is so short, the
//! copies ahead fetch panels that are not used: four for two in `Pipelined`, five in `SplitTf32`, six in `SplitF16`.
//!
//! Where there are few tiles and k is long, the last three let several blocks share a tile, each with a part of k, and
//! [`Combine`](MatmulVariant::Combine) adds their sums in order.
//!
//! Determinism: every variant gives the same bits for the same launch.
// Loops over indices that are known once they are unrolled keep arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

mod args;
pub mod blocked;
pub mod combine;
mod contract;
pub mod feed;
pub mod halves;
pub mod operand;
pub mod packed;
pub mod packing;
pub mod panel;
pub mod pipeline;
pub mod pipelined;
pub mod plain;
pub mod side;
mod table;
mod target;
pub mod tensor;
pub mod tensor_f64;

pub(crate) use tensor::{Split, split};
pub mod walk;

use contract::check;

pub use args::{MAX_SIZE, Matmul, MatmulArgs, THREADS};
pub(crate) use args::{scaled, store};
pub use panel::part_length;

/// Which rung of the ladder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatmulVariant {
    /// One element per thread.
    Naive,
    /// 4 × 4 elements per thread, from global memory.
    Registers,
    /// 16 × 16 tiles in shared memory, one element per thread.
    Shared,
    /// Wide tiles in shared memory and registers; `each` × `each` elements per thread.
    Blocked {
        /// Rows, and columns, of a thread.
        each: u32,
    },
    /// Tiles that are copied ahead.
    Pipelined {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
    /// Tensor cores, f32 alone.
    SplitTf32,
    /// Tensor cores, f64 alone.
    TensorF64 {
        /// Rows of a tile.
        rows: u32,
        /// Columns of a tile.
        columns: u32,
    },
    /// Tensor cores, f32 alone; A and B are [packed].
    SplitF16,
    /// Finds the largest magnitudes of the rows of op(A) in `parts` parts of k, for [`PackF16`](Self::PackF16): C is where
    /// the [packed] operand will be.
    LargestF16,
    /// Packs op(A) for [`SplitF16`](Self::SplitF16) as C. A column of op(B) is a row of the transposed op(B).
    PackF16 {
        /// Which operand of the product it will be.
        operand: packed::Operand,
    },
    /// Adds the matrices below one another in A (`parts` · m × n) instead of multiplying: C = α · ΣA + β · C.
    Combine,
}

impl MatmulVariant {
    /// Whether it multiplies.
    pub const fn is_product(&self) -> bool {
        !self.packs() && !matches!(self, MatmulVariant::Combine)
    }

    /// Whether it is a step of packing.
    pub const fn packs(&self) -> bool {
        matches!(
            self,
            MatmulVariant::LargestF16 | MatmulVariant::PackF16 { .. }
        )
    }

    /// Whether its products are those of multiply-adds in the type of the elements.
    pub const fn is_plain(&self) -> bool {
        self.is_product() && !matches!(self, MatmulVariant::SplitTf32 | MatmulVariant::SplitF16)
    }

    /// Threads of a block.
    pub const fn threads(&self) -> u32 {
        match self {
            MatmulVariant::Pipelined { .. } => pipelined::THREADS,
            MatmulVariant::SplitTf32 => tensor::THREADS,
            MatmulVariant::SplitF16 => halves::THREADS,
            MatmulVariant::LargestF16 | MatmulVariant::PackF16 { .. } => packing::THREADS,
            MatmulVariant::TensorF64 { rows, columns } => tensor_f64::threads(*rows, *columns),
            _ => THREADS,
        }
    }

    /// Rows and columns of C that a block computes.
    pub const fn tile(&self) -> (u32, u32) {
        match self {
            MatmulVariant::Naive | MatmulVariant::Shared => (plain::SIDE, plain::SIDE),
            MatmulVariant::Registers => {
                let side = plain::SIDE * plain::EACH as u32;
                (side, side)
            }
            MatmulVariant::Blocked { each } => (16 * *each, 16 * *each),
            MatmulVariant::Pipelined { rows, columns }
            | MatmulVariant::TensorF64 { rows, columns } => (*rows, *columns),
            MatmulVariant::SplitTf32 => (tensor::ROWS, tensor::COLUMNS),
            MatmulVariant::SplitF16 => (halves::ROWS, halves::COLUMNS),
            MatmulVariant::Combine | MatmulVariant::LargestF16 | MatmulVariant::PackF16 { .. } => {
                (1, 1)
            }
        }
    }

    /// Whether blocks may share the work of an element of C, or of a row, each with a part of k.
    pub const fn has_parts(&self) -> bool {
        matches!(
            self,
            MatmulVariant::Pipelined { .. }
                | MatmulVariant::SplitTf32
                | MatmulVariant::SplitF16
                | MatmulVariant::LargestF16
                | MatmulVariant::PackF16 { .. }
                | MatmulVariant::TensorF64 { .. }
        )
    }

    /// Blocks for one part of k.
    pub const fn grid(&self, m: u32, n: u32) -> u64 {
        if let MatmulVariant::Combine = self {
            return (m as u64 * n as u64).div_ceil(THREADS as u64);
        }
        if self.packs() {
            return packed::packing_blocks(m);
        }
        let (rows, columns) = self.tile();
        m.div_ceil(rows) as u64 * n.div_ceil(columns) as u64
    }

    /// Dynamic shared memory of a block, for elements of `size` bytes.
    pub const fn shared_bytes(&self, size: u32) -> u64 {
        let elements = match self {
            MatmulVariant::Naive | MatmulVariant::Registers | MatmulVariant::Combine => 0,
            MatmulVariant::Shared => 2 * plain::SIDE * plain::SIDE,
            MatmulVariant::Blocked { each } => blocked::panel_elements(16 * *each),
            MatmulVariant::Pipelined { rows, columns } => {
                pipeline::shared_elements(*rows, *columns)
            }
            MatmulVariant::SplitTf32 => tensor::SHARED_ELEMENTS,
            MatmulVariant::SplitF16 => halves::SHARED_ELEMENTS,
            MatmulVariant::LargestF16 | MatmulVariant::PackF16 { .. } => packing::SHARED_ELEMENTS,
            MatmulVariant::TensorF64 { rows, columns } => {
                tensor_f64::shared_elements(*rows, *columns)
            }
        };
        elements as u64 * size as u64
    }
}
