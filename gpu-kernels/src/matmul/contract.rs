//! What a launch of a matrix product must keep.

use super::packed::{MAX_PARTS, packed_words};
use super::{MAX_SIZE, MatmulArgs, MatmulVariant};
use crate::cta::WARP;
use crate::scalar::Real;
use crate::table::{Launch, Violation};

/// Checks sizes, the launch, and that every matrix fits its memory.
pub(super) fn check<T: Real>(
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
    if variant.packs() {
        return check_packing(args);
    }
    if *variant == MatmulVariant::SplitF16 {
        Violation::at_least(OF_A[1], packed_words(m, k), args.a.len())?;
        Violation::at_least(OF_B[1], packed_words(n, k), args.b.len())?;
    } else {
        let a = stored(args.a_transposed, m, k);
        let b = stored(args.b_transposed, k, n);
        check_matrix(OF_A, a, args.lda, args.a.len())?;
        check_matrix(OF_B, b, args.ldb, args.b.len())?;
    }
    let rows = m as u64 * parts as u64;
    check_matrix(OF_C, (rows, n), args.ldc, args.c.len())
}

fn check_packing<T: Real>(args: &MatmulArgs<'_, T>) -> Result<(), Violation> {
    let MatmulArgs { m, k, parts, .. } = *args;
    Violation::at_most("parts", MAX_PARTS as u64, parts as u64)?;
    check_matrix(
        OF_A,
        stored(args.a_transposed, m, k),
        args.lda,
        args.a.len(),
    )?;
    Violation::at_least(OF_C[1], packed_words(m, k), args.c.len())
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
