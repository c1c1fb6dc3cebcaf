//! The contract of the entries that make panels.

use super::{By, PanelMakingArgs, PanelMakingVariant, WORK_WORDS};
use crate::cta::WARP;
use crate::fused::check_optional;
use crate::fused::panels::CHUNK;
use crate::table::{Launch, Violation};

/// The contract.
pub(super) fn check<T>(
    variant: &PanelMakingVariant,
    launch: &Launch,
    args: &PanelMakingArgs<'_, T>,
) -> Result<(), Violation> {
    let shared = variant.shared_bytes(args.panels, launch.block);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    match variant {
        PanelMakingVariant::Count => check_runs(launch, args),
        PanelMakingVariant::Sum => {
            let panels = args.panels as u64;
            Violation::multiple_of("length of counts", panels, args.counts.len())?;
            Violation::at_least("length of totals", panels, args.totals.len())
        }
        PanelMakingVariant::Split => {
            check_runs(launch, args)?;
            check_split(args)
        }
        PanelMakingVariant::Measure => {
            let panels = args.groups.len().saturating_sub(1);
            Violation::at_least("panels", 1, panels)?;
            Violation::at_least("rows of a sector", 1, args.in_sector as u64)?;
            Violation::multiple_of("length of entries", CHUNK as u64, args.given.len())?;
            Violation::at_least(
                "length of work",
                panels * WORK_WORDS as u64,
                args.work.len(),
            )
        }
        PanelMakingVariant::Pack => check_chunks(args),
        PanelMakingVariant::Unzip => {
            let entries = args.pairs.len();
            Violation::at_most("entries", u32::MAX as u64, entries)?;
            Violation::at_least("length of keys", entries, args.keys.len())?;
            Violation::at_least("length of totals", 1, args.totals.len())
        }
    }
}

/// Every entry is in the run of a warp.
fn check_runs<T>(launch: &Launch, args: &PanelMakingArgs<'_, T>) -> Result<(), Violation> {
    let (entries, run) = (args.entries(), args.run as u64);
    let panels = args.first as u64 + args.panels as u64;
    let warps = launch.grid as u64 * (launch.block / WARP) as u64;
    Violation::at_least("panels of a window", 1, args.panels as u64)?;
    match args.by {
        By::Digit => {
            let all = (args.panels as u64).next_power_of_two();
            Violation::equal("values of a digit", all, panels)?;
            Violation::at_most("length of bounds", 0, args.bounds.len())?;
            Violation::at_most("bits below a digit", 31, args.shift as u64)?;
        }
        By::Column | By::Row => {
            Violation::at_least("length of bounds", panels + 1, args.bounds.len())?;
        }
    }
    if args.by == By::Row {
        Violation::equal("length of pairs", entries, args.pairs.len())?;
    }
    Violation::multiple_of("run", CHUNK as u64, run)?;
    Violation::at_most("entries", u32::MAX as u64, entries)?;
    let runs = entries.div_ceil(run);
    Violation::at_least("warps", runs, warps)?;
    Violation::at_least(
        "length of counts",
        runs * args.panels as u64,
        args.counts.len(),
    )
}

fn check_split<T>(args: &PanelMakingArgs<'_, T>) -> Result<(), Violation> {
    let (rows, entries) = (args.rows as u64, args.entries());
    let panels = args.first as u64 + args.panels as u64;
    if !args.pairs.is_some() {
        Violation::at_least("length of offsets", rows + 1, args.offsets.len())?;
    }
    Violation::at_least("length of groups", panels + 1, args.groups.len())?;
    Violation::at_least("length of ends", entries, args.ends.len())?;
    check_optional(&args.values, "length of values", entries)?;
    let values = if args.values.is_some() {
        args.ends.len()
    } else {
        0
    };
    Violation::at_least("length of split values", values, args.split_values.len())
}

fn check_chunks<T>(args: &PanelMakingArgs<'_, T>) -> Result<(), Violation> {
    let panels = args.groups.len().saturating_sub(1);
    let given = args.given.len();
    Violation::at_least("panels", 1, panels)?;
    Violation::multiple_of("length of entries", CHUNK as u64, given)?;
    check_optional(&args.given_values, "length of values", given)?;
    Violation::equal("length of chunks", panels + 1, args.chunks.len())?;
    Violation::at_least("length of placed", panels, args.placed.len())?;
    let keys = args.bases.len() * CHUNK as u64;
    Violation::at_least("chunks", given / CHUNK as u64, args.bases.len())?;
    Violation::equal("length of keys", keys, args.keys.len())?;
    let values = if args.given_values.is_some() { keys } else { 0 };
    Violation::equal("length of packed values", values, args.packed.len())
}
