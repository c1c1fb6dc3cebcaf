//! The contract of the dense entries with several right-hand sides.

use super::check_ends;
use super::dense::{DenseManyArgs, DenseManyVariant};
use crate::cta::WARP;
use crate::fused::Product;
use crate::fused::dense::MAX_COLUMNS;
use crate::scalar::{Real, Words};
use crate::table::{Launch, Violation};

/// The contract of every dense entry with several right-hand sides.
pub(super) fn check<T: Real>(
    variant: &DenseManyVariant,
    launch: &Launch,
    args: &DenseManyArgs<'_, T>,
) -> Result<(), Violation> {
    let x = &args.x;
    let (m, n) = (x.rows as u64, x.cols as u64);
    let width = T::Pack::LANES as u64;
    let shared = variant.shared_bytes(launch.block, T::SIZE);
    let end = args.first_column as u64 + args.columns as u64;
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_most("block", variant.most_threads() as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_most("columns", MAX_COLUMNS as u64, n)?;
    Violation::at_most("end of the panel", n, end)?;
    Violation::at_most(
        "columns of the panel",
        variant.columns(launch.block),
        args.columns as u64,
    )?;
    Violation::equal(
        "first column modulo the load width",
        0,
        args.first_column as u64 % width,
    )?;
    Violation::at_least("leading dimension", n, x.ld)?;
    Violation::at_least("length of x", m.saturating_mul(x.ld), x.x.len())?;
    let (from, to) = variant.product.lengths(m, n);
    args.sides.check(variant.sides)?;
    check_ends(&args.ends_of(), from, to)?;
    let addend = match variant.product {
        Product::Forward => m.saturating_mul(args.sides.all as u64),
        _ => 0,
    };
    crate::fused::check_optional(&x.addend, "length of addend", addend)
}
