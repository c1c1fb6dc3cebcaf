//! Matrix product: `C = α · op(A) · op(B) + β · C`, row-major with leading dimensions.
//!
//! op(A) is m × k, op(B) k × n, C m × n; op is the matrix itself or its transpose. Where β = 0, C is not read.
//!
//! # A ladder of variants
//!
//! Each does one thing more than the one before; all compute any shape.
//!
//! | variant | what is new | reads of A and B from global memory |
//! |---|---|---|
//! | [`Naive`](MatmulVariant::Naive) | a thread computes one element | m·n·k each |
//! | [`Registers`](MatmulVariant::Registers) | 4 × 4 elements in a thread's registers: what is read is used four times | m·n·k / 4 |
//! | [`Shared`](MatmulVariant::Shared) | a block stages 16 × 16 tiles in shared memory: the block reads each element once | m·n·k / 16 |
//! | [`Blocked`](MatmulVariant::Blocked) | both: wide tiles in shared memory, 8 × 8 (f64: 4 × 4) elements in registers, 16 bytes an access | m·n·k / 128 |
//! | [`Pipelined`](MatmulVariant::Pipelined) | copies to shared memory that run while the tile before is multiplied (`cp.async`) | m·n·k / 128 |
//! | [`SplitTf32`](MatmulVariant::SplitTf32) | the same tiles on tensor cores, each f32 as a sum of two TF32 numbers | m·n·k / 128 |
//!
//! Determinism: every variant gives the same bits for the same launch.
// Loops over indices that are known once they are unrolled keep arrays in registers.
#![allow(clippy::needless_range_loop, clippy::manual_memcpy)]

pub mod operand;
pub mod plain;
mod table;
pub mod tensor;
pub mod tiles;

use crate::cta::WARP;
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};

/// The family of matrix products.
pub struct Matmul<T>(core::marker::PhantomData<T>);

/// Arguments of every matrix product.
#[repr(C)]
pub struct MatmulArgs<'a, T> {
    /// Rows of C.
    pub m: u32,
    /// Columns of C.
    pub n: u32,
    /// Columns of op(A), rows of op(B).
    pub k: u32,
    /// 1 where A is stored transposed (k × m), else 0.
    pub a_transposed: u32,
    /// 1 where B is stored transposed (n × k), else 0.
    pub b_transposed: u32,
    /// α.
    pub alpha: T,
    /// β.
    pub beta: T,
    /// Elements between the starts of two stored rows of A.
    pub lda: u64,
    /// The same of B.
    pub ldb: u64,
    /// The same of C.
    pub ldc: u64,
    /// A.
    pub a: In<'a, T>,
    /// B.
    pub b: In<'a, T>,
    /// C.
    pub c: Out<'a, T>,
}

impl<T: Copy> Clone for MatmulArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for MatmulArgs<'_, T> {}

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
    /// As `Blocked`, copied ahead.
    Pipelined {
        /// Rows, and columns, of a thread.
        each: u32,
    },
    /// Tensor cores, f32 alone.
    SplitTf32,
}

impl MatmulVariant {
    /// Threads of a block.
    pub const THREADS: u32 = 256;

    /// Rows, and columns, of C that a block computes.
    pub const fn tile(&self) -> u32 {
        match self {
            MatmulVariant::Naive | MatmulVariant::Shared => plain::SIDE,
            MatmulVariant::Registers => plain::SIDE * plain::EACH as u32,
            MatmulVariant::Blocked { each } | MatmulVariant::Pipelined { each } => 16 * *each,
            MatmulVariant::SplitTf32 => tensor::TILE,
        }
    }

    /// Blocks of a launch, row by row of tiles.
    pub const fn grid(&self, m: u32, n: u32) -> u64 {
        m.div_ceil(self.tile()) as u64 * n.div_ceil(self.tile()) as u64
    }

    /// Dynamic shared memory of a block, for elements of `size` bytes.
    pub const fn shared_bytes(&self, size: u32) -> u64 {
        let elements = match self {
            MatmulVariant::Naive | MatmulVariant::Registers => 0,
            MatmulVariant::Shared => 2 * plain::SIDE * plain::SIDE,
            MatmulVariant::Blocked { .. } => tiles::stage_elements(self.tile()),
            _ => tiles::STAGES * tiles::stage_elements(self.tile()),
        };
        elements as u64 * size as u64
    }
}

/// The most rows, columns and products: tiles may run past the end before 32 bits overflow.
pub const MAX_SIZE: u32 = i32::MAX as u32;

fn check<T: Real>(
    variant: &MatmulVariant,
    launch: &Launch,
    args: &MatmulArgs<'_, T>,
) -> Result<(), Violation> {
    let MatmulArgs { m, n, k, .. } = *args;
    for (what, size) in [("m", m), ("n", n), ("k", k)] {
        Violation::at_most(what, MAX_SIZE as u64, size as u64)?;
    }
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::equal("block", MatmulVariant::THREADS as u64, launch.block as u64)?;
    Violation::equal("grid", variant.grid(m, n), launch.grid as u64)?;
    let shared = variant.shared_bytes(T::SIZE);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    let stored = |transposed, rows, columns| {
        if transposed == 1 {
            (columns, rows)
        } else {
            (rows, columns)
        }
    };
    let a = stored(args.a_transposed, m, k);
    let b = stored(args.b_transposed, k, n);
    check_matrix(
        ["leading dimension of a", "length of a"],
        a,
        args.lda,
        args.a.len(),
    )?;
    check_matrix(
        ["leading dimension of b", "length of b"],
        b,
        args.ldb,
        args.b.len(),
    )?;
    check_matrix(
        ["leading dimension of c", "length of c"],
        (m, n),
        args.ldc,
        args.c.len(),
    )
}

fn check_matrix(
    [of_ld, of_len]: [&'static str; 2],
    (rows, columns): (u32, u32),
    ld: u64,
    len: u64,
) -> Result<(), Violation> {
    Violation::at_least(of_ld, columns as u64, ld)?;
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    let needed = (rows as u64 - 1)
        .saturating_mul(ld)
        .saturating_add(columns as u64);
    Violation::at_least(of_len, needed, len)
}

/// Writes `α · sum + β · C(row, column)` where there is such an element.
#[inline(always)]
fn store<C: crate::Cta, T: Real>(cta: &C, args: &MatmulArgs<'_, T>, row: u32, column: u32, sum: T) {
    if row < args.m && column < args.n {
        let at = (row as u64 * args.ldc + column as u64) as usize;
        let mut value = args.alpha * sum;
        if args.beta != T::ZERO {
            value = args.beta.fma(cta.read(args.c, at), value);
        }
        cta.write(args.c, at, value);
    }
}
