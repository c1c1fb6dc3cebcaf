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
//!
//! In f64 [`TensorF64`](MatmulVariant::TensorF64) takes the place of the last: the same way of tiles to tensor cores, which
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
//!
//! The emulator takes 16 bytes a lane in shared memory, and copies to it, for four requests of 4 bytes. Where 32 lanes have
//! packs beside one another, each of the four then takes four passes, and asks for all sectors of the packs again; a
//! GPU needs four passes, and each sector once, for all four. All conflicts of the last three rows are such: three for each
//! request of a pack, so a GPU has none. Those of `Blocked` are B's elements, written one by one. Where k is so short, the
//! copies ahead fetch panels that are not used: four for two in `Pipelined`, five in `SplitTf32`.
//!
//! Where there are few tiles and k is long, the last two let several blocks share a tile, each with a part of k, and
//! [`Combine`](MatmulVariant::Combine) adds their sums in order.
//!
//! Determinism: every variant gives the same bits for the same launch.
// Loops over indices that are known once they are unrolled keep arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

mod args;
pub mod blocked;
pub mod combine;
pub mod feed;
pub mod operand;
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

pub use args::{MAX_SIZE, Matmul, MatmulArgs, THREADS};
pub(crate) use args::{scaled, store};
pub use panel::part_length;

use crate::cta::WARP;
use crate::scalar::Real;
use crate::table::{Launch, Violation};

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
    /// Adds the matrices below one another in A (`parts` · m × n) instead of multiplying: C = α · ΣA + β · C.
    Combine,
}

impl MatmulVariant {
    /// Threads of a block.
    pub const fn threads(&self) -> u32 {
        match self {
            MatmulVariant::Pipelined { .. } => pipelined::THREADS,
            MatmulVariant::SplitTf32 => tensor::THREADS,
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
            MatmulVariant::Combine => (1, 1),
        }
    }

    /// Whether blocks may share the work of an element of C, each with a part of k.
    pub const fn has_parts(&self) -> bool {
        matches!(
            self,
            MatmulVariant::Pipelined { .. }
                | MatmulVariant::SplitTf32
                | MatmulVariant::TensorF64 { .. }
        )
    }

    /// Blocks for one part of k.
    pub const fn grid(&self, m: u32, n: u32) -> u64 {
        if let MatmulVariant::Combine = self {
            return (m as u64 * n as u64).div_ceil(THREADS as u64);
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
            MatmulVariant::TensorF64 { rows, columns } => {
                tensor_f64::shared_elements(*rows, *columns)
            }
        };
        elements as u64 * size as u64
    }
}

fn check<T: Real>(
    variant: &MatmulVariant,
    launch: &Launch,
    args: &MatmulArgs<'_, T>,
) -> Result<(), Violation> {
    let MatmulArgs { m, n, k, parts, .. } = *args;
    for (what, size) in [("m", m), ("n", n), ("k", k)] {
        Violation::at_most(what, MAX_SIZE as u64, size as u64)?;
    }
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::equal("block", variant.threads() as u64, launch.block as u64)?;
    Violation::at_least("parts", 1, parts as u64)?;
    let shared = variant.shared_bytes(T::SIZE);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    let grid = variant.grid(m, n);
    if *variant == MatmulVariant::Combine {
        Violation::equal("grid", grid, launch.grid as u64)?;
        check_matrix(OF_A, (m as u64 * parts as u64, n), args.lda, args.a.len())?;
        return check_matrix(OF_C, (m as u64, n), args.ldc, args.c.len());
    }
    if !variant.has_parts() {
        Violation::equal("parts", 1, parts as u64)?;
    }
    let grid = grid.saturating_mul(parts as u64);
    Violation::equal("grid", grid, launch.grid as u64)?;
    let a = stored(args.a_transposed, m, k);
    let b = stored(args.b_transposed, k, n);
    check_matrix(OF_A, a, args.lda, args.a.len())?;
    check_matrix(OF_B, b, args.ldb, args.b.len())?;
    let rows = m as u64 * parts as u64;
    check_matrix(OF_C, (rows, n), args.ldc, args.c.len())
}

/// Stored rows and columns.
fn stored(transposed: u32, rows: u32, columns: u32) -> (u64, u32) {
    if transposed == 1 {
        (columns as u64, rows)
    } else {
        (rows as u64, columns)
    }
}

const OF_A: [&str; 2] = ["leading dimension of a", "length of a"];
const OF_B: [&str; 2] = ["leading dimension of b", "length of b"];
const OF_C: [&str; 2] = ["leading dimension of c", "length of c"];

fn check_matrix(
    [of_ld, of_len]: [&'static str; 2],
    (rows, columns): (u64, u32),
    ld: u64,
    len: u64,
) -> Result<(), Violation> {
    Violation::at_least(of_ld, columns as u64, ld)?;
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let needed = (rows - 1).saturating_mul(ld).saturating_add(columns as u64);
    Violation::at_least(of_len, needed, len)
}
