//! The contract of the dense entries.

use crate::cta::WARP;
use crate::fused::dense::{DenseArgs, MAX_COLUMNS};
use crate::fused::{DenseVariant, Product, RowStore};
use crate::scalar::Real;
use crate::table::{Launch, Violation};

/// What blocks take in turn, at most: they count it with 32 bits, and go a grid beyond.
const MAX_UNITS: u64 = 1 << 31;

/// The contract of every dense entry.
pub(crate) fn check<T: Real>(
    variant: &DenseVariant,
    launch: &Launch,
    args: &DenseArgs<'_, T>,
) -> Result<(), Violation> {
    let (m, n) = (args.rows as u64, args.cols as u64);
    let slices = args.chunks.max(1) as u64;
    let (input, of_slice) = variant.product.lengths(m, n);
    let output = match variant.product {
        Product::Forward => of_slice,
        _ => slices * of_slice,
    };
    let panels = variant.panels(launch.block, args.cols);
    Violation::at_most("chunks × panels", MAX_UNITS, slices * panels)?;
    let width = variant.width as u64;
    let shared = variant.shared_bytes(launch.block, args.ld, T::SIZE);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_most("block", variant.most_threads() as u64, launch.block as u64)?;
    if variant.cluster() > 1 {
        Violation::multiple_of("grid", variant.cluster() as u64, launch.grid as u64)?;
    }
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    match variant.product {
        Product::Fused => Violation::at_most("columns", variant.columns(launch.block), n)?,
        Product::Transposed if args.chunks == 0 => {
            Violation::at_least("grid", panels, launch.grid as u64)?;
        }
        _ => {}
    }
    Violation::at_most("columns", MAX_COLUMNS as u64, n)?;
    Violation::at_least("leading dimension", n.next_multiple_of(width), args.ld)?;
    Violation::multiple_of("leading dimension", width, args.ld.max(width))?;
    if let RowStore::Tiles { .. } = variant.held {
        let of_team = width * variant.team.threads(launch.block) as u64;
        Violation::at_most("leading dimension", n.next_multiple_of(of_team), args.ld)?;
    }
    Violation::at_least("length of x", m.saturating_mul(args.ld), args.x.len())?;
    Violation::at_least("length of input", input, args.input.len())?;
    Violation::at_least("length of output", output, args.output.len())?;
    crate::fused::check_optional(&args.weights, "length of weights", m)?;
    crate::fused::check_optional(&args.shift, "length of shift", 1)?;
    let addend = if variant.product == Product::Forward {
        m
    } else {
        0
    };
    crate::fused::check_optional(&args.addend, "length of addend", addend)
}
