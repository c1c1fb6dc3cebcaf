//! The contracts of the entries that make hot columns.

use crate::cta::WARP;
use crate::forms::hot::{
    CHUNK, FLAGS, MakingArgs, MakingVariant, OrderArgs, OrderVariant, StoredAs,
};
use crate::fused::hot::{CLASSES, LANES};
use crate::table::{Launch, Violation};

/// Positions of slices that end with these.
fn positions(slices: [u32; CLASSES]) -> Result<u64, Violation> {
    let (mut positions, mut from) = (0, 0);
    for (end, lanes) in slices.into_iter().zip(LANES) {
        Violation::at_least("slices of a class and those before", from, end as u64)?;
        positions += (end as u64 - from) * (WARP / lanes) as u64;
        from = end as u64;
    }
    Ok(positions)
}

fn check_launch(launch: &Launch, shared_bytes: u64) -> Result<(), Violation> {
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared_bytes, launch.shared_bytes as u64)
}

/// The contract of kernels that order.
pub(super) fn check_order(
    variant: &OrderVariant,
    launch: &Launch,
    args: &OrderArgs<'_>,
) -> Result<(), Violation> {
    let width = match variant {
        OrderVariant::Counted => args.columns.len() as u32,
        _ => args.width,
    };
    check_launch(launch, variant.shared_bytes(launch.block, width))?;
    let (len, chunks) = (args.len, args.len.div_ceil(CHUNK as u64));
    let is_wide = || Violation::at_least("width", 1, args.width as u64);
    match variant {
        OrderVariant::Sampled => Violation::at_least("length of to", len, args.to.len()),
        OrderVariant::Counted => Violation::at_least("length of indices", len, args.indices.len()),
        OrderVariant::Packed => {
            is_wide()?;
            Violation::at_most("width", WARP as u64, args.width as u64)?;
            Violation::at_least("length of to", len, args.to.len())
        }
        OrderVariant::Columns => {
            Violation::at_least(
                "length of members",
                len.div_ceil(32) * 2,
                args.members.len(),
            )?;
            Violation::at_least("length of fields", len, args.fields.len())?;
            Violation::at_least("length of to", len, args.to.len())
        }
        OrderVariant::Rows => {
            Violation::at_least("length of offsets", len + 1, args.offsets.len())?;
            let shortest = args.to.len().min(args.second.len()).min(args.third.len());
            Violation::at_least("length of what is written", len, shortest)
        }
        OrderVariant::Tallied => {
            is_wide()?;
            Violation::at_least("length of fields", len, args.fields.len())?;
            Violation::at_least("length of to", chunks * args.width as u64, args.to.len())
        }
        OrderVariant::Sorted => {
            is_wide()?;
            Violation::at_least("length of fields", len, args.fields.len())?;
            let bases = chunks * args.width as u64;
            Violation::at_least("length of bases", bases, args.bases.len())?;
            match args.second.is_some() {
                true => Violation::at_least("length of second", len, args.second.len()),
                false => Ok(()),
            }
        }
        OrderVariant::Stepped => {
            let positions = positions(args.slices)?;
            Violation::equal("slices", args.slices[CLASSES - 1] as u64, len)?;
            crate::fused::check_optional(&args.order, "length of order", positions)?;
            let lengths = args.hot_lengths.len().min(args.cold_lengths.len());
            Violation::at_least("lengths of rows", args.rows as u64, lengths)?;
            Violation::at_least("length of to", positions, args.to.len())?;
            Violation::at_least("length of steps", len + 1, args.steps.len())
        }
        OrderVariant::Summed => {
            Violation::at_least("length of fields", len, args.fields.len())?;
            Violation::at_least("length of to", chunks, args.to.len())
        }
        OrderVariant::Scanned => {
            Violation::at_least("length of bases", chunks, args.bases.len())?;
            Violation::at_least("length of to", len, args.to.len())
        }
    }
}

/// The contract of kernels that judge values and copy entries.
pub(super) fn check<T: crate::scalar::Word>(
    variant: &MakingVariant,
    launch: &Launch,
    args: &MakingArgs<'_, T>,
) -> Result<(), Violation> {
    check_launch(launch, variant.shared_bytes(launch.block, T::SIZE))?;
    match variant {
        MakingVariant::Judged => {
            Violation::at_least("length of offsets", args.len + 1, args.offsets.len())?;
            Violation::at_least("length of flags", FLAGS as u64, args.flags.len())
        }
        MakingVariant::Fields | MakingVariant::Fits => {
            let entries = args.indices.len().min(args.values.len());
            Violation::at_least("entries", args.len, entries)?;
            Violation::at_least("length of flags", FLAGS as u64, args.flags.len())
        }
        MakingVariant::Copied => check_copy(args),
    }
}

fn check_copy<T>(args: &MakingArgs<'_, T>) -> Result<(), Violation> {
    let (slices, positions) = (args.slices[CLASSES - 1] as u64, positions(args.slices)?);
    Violation::at_least(
        "length of offsets",
        args.rows as u64 + 1,
        args.offsets.len(),
    )?;
    Violation::at_least("positions", args.rows as u64, positions)?;
    Violation::at_least("length of steps", slices + 1, args.steps.len())?;
    Violation::at_least("length of cold offsets", positions, args.cold_offsets.len())?;
    crate::fused::check_optional(&args.order, "length of order", positions)?;
    let (words, cold) = (args.to_places.len(), args.to_ranks.len());
    let (whole, packed, cold_values) = match args.stored {
        StoredAs::Whole => (2 * words, 0, cold),
        StoredAs::Single => (0, 2 * words, cold),
        StoredAs::Bf16 => (0, words, cold),
        StoredAs::Constant => (0, 0, 0),
    };
    Violation::at_least("length of values", whole, args.to_values.len())?;
    Violation::at_least("length of packed values", packed, args.to_packed.len())?;
    Violation::at_least(
        "length of cold values",
        cold_values,
        args.to_cold_values.len(),
    )?;
    match args.to_constants.is_some() {
        true => Violation::at_least("length of constants", positions, args.to_constants.len()),
        false => Ok(()),
    }
}
