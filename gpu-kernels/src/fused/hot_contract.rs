//! The contract of the entries for hot columns.

use super::Product;
use super::fixed_point::FixedPoint;
use super::fixed_range::RANGE_WORDS;
use super::hot::{HotArgs, HotVariant, NONE, fields_per_word};
use crate::cta::WARP;
use crate::table::{Launch, Violation};

/// The contract.
pub(super) fn check<T: FixedPoint>(
    variant: &HotVariant,
    launch: &Launch,
    args: &HotArgs<'_, T>,
) -> Result<(), Violation> {
    let x = &args.x;
    let places = args.columns.len();
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_most("places", x.cols as u64, places)?;
    Violation::at_least(
        "shared bytes",
        variant.shared_bytes(places as u32, launch.block, T::SIZE),
        launch.shared_bytes as u64,
    )?;
    let words = x.cols.div_ceil(fields_per_word(T::SIZE)) as u64;
    Violation::at_least("length of exponents", words, args.exponents.len())?;
    match variant {
        HotVariant::Begin(product) => {
            let ranges = RANGE_WORDS as u64 * launch.grid as u64;
            Violation::equal("length of ranges", ranges, args.ranges.len())?;
            super::check_optional(&x.addend, "length of addend", x.cols as u64)?;
            check_vectors(product, args)
        }
        HotVariant::Walk(product) => {
            check_vectors(product, args)?;
            check_walk(args)
        }
        HotVariant::Finish => check_sums(args),
    }
}

fn check_vectors<T: FixedPoint>(product: &Product, args: &HotArgs<'_, T>) -> Result<(), Violation> {
    let (x, m, n) = (&args.x, args.x.rows as u64, args.x.cols as u64);
    let (input, hot) = match product {
        Product::Transposed => (m, 0),
        _ => (n, args.columns.len()),
    };
    Violation::at_least("length of input", input, x.input.len())?;
    Violation::at_least("length of hot", hot, args.hot.len())?;
    Violation::at_least("length of output", n, x.output.len())?;
    super::check_optional(&x.weights, "length of weights", m)
}

fn check_walk<T: FixedPoint>(args: &HotArgs<'_, T>) -> Result<(), Violation> {
    let (x, m) = (&args.x, args.x.rows as u64);
    let [long, medium, short, slices] = args.slices.map(u64::from);
    Violation::at_most("rows", NONE as u64 - WARP as u64, m)?;
    Violation::at_most("slices of 32 lanes", medium, long)?;
    Violation::at_most("slices of 16 lanes and more", short, medium)?;
    Violation::at_most("slices of 8 lanes and more", slices, short)?;
    let positions = long + 2 * (medium - long) + 4 * (short - medium) + 8 * (slices - short);
    Violation::at_least("positions", m, positions)?;
    Violation::at_least("length of factors", positions, args.factors.len())?;
    super::check_optional(&args.order, "length of order", positions)?;
    super::check_optional(&x.shift, "length of shift", 1)?;
    Violation::at_least("length of offsets", slices + 1, x.offsets.len())?;
    Violation::at_least("length of values", x.indices.len(), x.values.len())?;
    check_sums(args)
}

fn check_sums<T: FixedPoint>(args: &HotArgs<'_, T>) -> Result<(), Violation> {
    let places = args.columns.len();
    let limbs = T::LIMBS as u64;
    Violation::multiple_of("length of ranges", RANGE_WORDS as u64, args.ranges.len())?;
    Violation::at_least("length of sums", places * limbs, args.sums.len())?;
    Violation::at_least("length of specials", places, args.specials.len())
}
