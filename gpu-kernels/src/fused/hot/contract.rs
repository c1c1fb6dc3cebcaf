//! The contract of the entries for hot columns.

use crate::cta::WARP;
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::range::RANGE_WORDS;
use crate::fused::hot::{HotArgs, HotValues, LANES, MOST_PLACES, NONE, fields_per_word};
use crate::fused::{HotVariant, Product};
use crate::table::{Launch, Violation};

/// The contract.
pub(crate) fn check<T: FixedPoint>(
    variant: &HotVariant,
    launch: &Launch,
    args: &HotArgs<'_, T>,
) -> Result<(), Violation> {
    let places = args.columns.len();
    let most_threads = variant.most_threads(T::SIZE) as u64;
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_most("block", most_threads, launch.block as u64)?;
    Violation::at_most("places", (args.cols.min(MOST_PLACES)) as u64, places)?;
    Violation::at_least(
        "shared bytes",
        variant.shared_bytes(places as u32, launch.block, T::SIZE),
        launch.shared_bytes as u64,
    )?;
    let words = |fields: u64| fields.div_ceil(fields_per_word(T::SIZE) as u64);
    Violation::at_least("length of exponents", words(places), args.exponents.len())?;
    match variant {
        HotVariant::Begin(product) => check_begin(product, launch, args),
        HotVariant::Walk(product, values) => {
            check_vectors(product, args)?;
            check_values(*values, args)?;
            check_walk(product, args)
        }
        HotVariant::Finish => check_sums(args),
    }
}

fn check_begin<T: FixedPoint>(
    product: &Product,
    launch: &Launch,
    args: &HotArgs<'_, T>,
) -> Result<(), Violation> {
    let ranges = RANGE_WORDS as u64 * launch.grid as u64;
    Violation::equal("length of ranges", ranges, args.ranges.len())?;
    if !matches!(product, Product::Transposed) {
        let cold = args.cold_columns.len();
        let words = cold.div_ceil(fields_per_word(T::SIZE) as u64);
        Violation::at_least("length of cold", cold, args.cold.len())?;
        Violation::at_least("length of cold exponents", words, args.cold_exponents.len())?;
    }
    check_vectors(product, args)
}

fn check_vectors<T: FixedPoint>(product: &Product, args: &HotArgs<'_, T>) -> Result<(), Violation> {
    let (m, n) = (args.rows as u64, args.cols as u64);
    let (input, hot) = match product {
        Product::Transposed => (m, 0),
        _ => (n, args.columns.len()),
    };
    Violation::at_least("length of input", input, args.input.len())?;
    Violation::at_least("length of hot", hot, args.hot.len())?;
    Violation::at_least("length of output", n, args.output.len())?;
    crate::fused::check_optional(&args.weights, "length of weights", m)
}

fn check_values<T: FixedPoint>(values: HotValues, args: &HotArgs<'_, T>) -> Result<(), Violation> {
    let (words, cold) = (args.places.len(), args.ranks.len());
    let (whole, packed) = match values {
        HotValues::Whole => (2 * words, 0),
        HotValues::Single => (0, 2 * words),
        HotValues::Bf16 => (0, words),
        HotValues::Constant => (0, 0),
    };
    Violation::at_least("length of values", whole, args.values.len())?;
    Violation::at_least("length of packed values", packed, args.packed.len())?;
    if !matches!(values, HotValues::Constant) {
        Violation::at_least("length of cold values", cold, args.cold_values.len())?;
    }
    Ok(())
}

fn check_walk<T: FixedPoint>(product: &Product, args: &HotArgs<'_, T>) -> Result<(), Violation> {
    let (m, mut from, mut positions) = (args.rows as u64, 0, 0);
    Violation::at_most("rows", NONE as u64 - WARP as u64, m)?;
    for (end, lanes) in args.slices.into_iter().zip(LANES) {
        Violation::at_least("slices of a class and those before", from, end as u64)?;
        positions += (end as u64 - from) * (WARP / lanes) as u64;
        from = end as u64;
    }
    Violation::at_least("positions", m, positions)?;
    if args.factors.is_some() {
        Violation::at_least("length of factors", positions, args.factors.len())?;
    }
    crate::fused::check_optional(&args.addend, "length of addend", args.cols as u64)?;
    crate::fused::check_optional(&args.order, "length of order", positions)?;
    crate::fused::check_optional(&args.constants, "length of constants", positions)?;
    crate::fused::check_optional(&args.shift, "length of shift", 1)?;
    Violation::at_least("length of steps", from + 1, args.steps.len())?;
    if !matches!(product, Product::Transposed) {
        let cold = args.cold_columns.len();
        Violation::at_least("length of cold input", cold, args.cold_input.len())?;
    }
    check_sums(args)
}

fn check_sums<T: FixedPoint>(args: &HotArgs<'_, T>) -> Result<(), Violation> {
    let places = args.columns.len();
    let limbs = T::LIMBS as u64;
    Violation::multiple_of("length of ranges", RANGE_WORDS as u64, args.ranges.len())?;
    Violation::at_least("length of sums", places * limbs, args.sums.len())?;
    Violation::at_least("length of specials", places, args.specials.len())
}
