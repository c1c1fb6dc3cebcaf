//! The contract of the entries with fixed-point sums.

use crate::cta::WARP;
use crate::fused::even::sums::slots;
use crate::fused::fixed::FixedArgs;
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::range::RANGE_WORDS;
use crate::fused::head::HEAD;
use crate::fused::{EvenPlace, FixedVariant, Product};
use crate::table::{Launch, Violation};

/// The contract of every entry with fixed-point sums.
pub(crate) fn check<T: FixedPoint>(
    variant: &FixedVariant,
    launch: &Launch,
    args: &FixedArgs<'_, T>,
) -> Result<(), Violation> {
    let (x, m, n) = (&args.x, args.x.rows as u64, args.x.cols as u64);
    let summed = match variant {
        FixedVariant::Even { product, .. } => args.window.checked(*product, x.cols)?,
        _ => x.cols,
    };
    let shared = variant.shared_bytes(summed, launch.block, T::SIZE);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::multiple_of("grid", variant.cluster() as u64, launch.grid as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_most("rows", (u32::MAX - WARP) as u64, m)?;
    Violation::at_least("length of exponents", n + 1, args.exponents.len())?;
    let ranges = RANGE_WORDS as u64;
    match variant {
        FixedVariant::Begin(product) => {
            Violation::equal(
                "length of ranges",
                ranges * launch.grid as u64,
                args.ranges.len(),
            )?;
            check_begin(*product, args)
        }
        FixedVariant::Finish => {
            Violation::multiple_of("length of ranges", ranges, args.ranges.len())?;
            crate::fused::check_optional(&x.addend, "length of addend", n)?;
            check_sums(args)
        }
        FixedVariant::Accumulate { product, .. }
        | FixedVariant::Headed { product, .. }
        | FixedVariant::Even { product, .. } => {
            match variant {
                FixedVariant::Headed { product, .. } => check_head(*product, launch, args)?,
                FixedVariant::Even {
                    place: EvenPlace::Frequent,
                    ..
                } => check_table(args)?,
                _ => {}
            }
            Violation::multiple_of("length of ranges", ranges, args.ranges.len())?;
            let input = if *product == Product::Transposed {
                m
            } else {
                n
            };
            Violation::at_least("length of input", input, x.input.len())?;
            Violation::at_most("rows of the part", args.all_rows, m)?;
            crate::fused::check_optional(&x.weights, "length of weights", m)?;
            crate::fused::check_optional(&x.shift, "length of shift", 1)?;
            crate::fused::sparse::check_csr(x)?;
            check_sums(args)
        }
        FixedVariant::Columns => crate::fused::sparse::check_csr(x),
        FixedVariant::Equilibrate => {
            Violation::at_least("length of scaled", x.indices.len(), args.scaled.len())?;
            crate::fused::sparse::check_csr(x)
        }
    }
}

fn check_head<T: FixedPoint>(
    product: Product,
    launch: &Launch,
    args: &FixedArgs<'_, T>,
) -> Result<(), Violation> {
    let places = args.order.len();
    Violation::at_least("places of the head", 1, places)?;
    Violation::at_most("places of the head", args.x.cols as u64, places)?;
    Violation::at_most("columns", HEAD as u64, args.x.cols as u64)?;
    let shared = FixedVariant::head_bytes(product, places as u32, T::SIZE);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)
}

fn check_table<T: FixedPoint>(args: &FixedArgs<'_, T>) -> Result<(), Violation> {
    Violation::at_most("columns", i32::MAX as u64, args.x.cols as u64)?;
    Violation::at_least("length of keys", slots(T::SIZE) as u64, args.order.len())
}

fn check_begin<T: FixedPoint>(product: Product, args: &FixedArgs<'_, T>) -> Result<(), Violation> {
    let (x, m, n) = (&args.x, args.all_rows, args.x.cols as u64);
    let (input, scaled) = match product {
        Product::Transposed => (m, 0),
        _ if args.scaled.is_some() => (n, n),
        _ => (n, 0),
    };
    Violation::at_least("length of input", input, x.input.len())?;
    Violation::at_least("length of scaled", scaled, args.scaled.len())?;
    Violation::at_least("length of output", n, x.output.len())?;
    crate::fused::check_optional(&x.weights, "length of weights", m)
}

fn check_sums<T: FixedPoint>(args: &FixedArgs<'_, T>) -> Result<(), Violation> {
    let n = args.x.cols as u64;
    Violation::at_least("length of sums", n * T::LIMBS as u64, args.sums.len())?;
    Violation::at_least("length of output", n, args.x.output.len())
}
