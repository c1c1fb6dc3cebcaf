//! Passes over entries and over columns.

use crate::cta::{Cache, Cta, Shared};
use crate::forms::hot::{OrderArgs, RARE, RUN, SKIP, is_member, place_of};
use crate::memory::Out;
use crate::verbs::{each_of_block, each_of_grid, load_or};

/// [`OrderVariant::Sampled`](super::OrderVariant::Sampled).
#[inline(always)]
pub(super) fn sampled<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    each_of_grid(cta, args.len, |i| {
        let (run, within) = (i as u64 / RUN, i as u64 % RUN);
        let from = run * args.step as u64 * RUN + within;
        let column: u32 = cta.load(args.indices, from as usize, Cache::Once);
        cta.write(args.to, i, column);
    });
}

/// [`OrderVariant::Counted`](super::OrderVariant::Counted).
///
/// Columns that are in every row would have 19 million additions to one address wait for each other, 10 ns each.
#[inline(always)]
pub(super) fn counted<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    let heads: Shared<u32> = Shared::at(0, args.columns.len() as u32);
    each_of_block(cta, heads.len(), |place| cta.shared_write(heads, place, 0));
    cta.sync();
    each_of_grid(cta, args.len, |i| {
        let column: u32 = cta.load(args.indices, i, Cache::Once);
        match place_of(cta, (args.members, args.places), column) {
            Some(place) => {
                cta.shared_fetch_add(heads, place as usize, 1);
            }
            None => count(cta, args.counts, (column, 1)),
        }
    });
    cta.sync();
    each_of_block(cta, heads.len(), |place| {
        let entries = cta.shared_read(heads, place);
        if entries > 0 {
            let column: u32 = cta.load(args.columns, place, Cache::Keep);
            count(cta, args.counts, (column, entries));
        }
    });
}

/// No half runs over into the other: a column has fewer entries than 32 bits count.
#[inline(always)]
fn count<C: Cta>(cta: &C, counts: Out<'_, u64>, (column, entries): (u32, u32)) {
    let shift = 32 * (column % 2);
    cta.add_wrapping(counts, column as usize / 2, (entries as u64) << shift);
}

/// [`OrderVariant::Columns`](super::OrderVariant::Columns).
#[inline(always)]
pub(super) fn columns<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    each_of_grid(cta, args.len, |column| {
        let entries: u32 = cta.load(args.fields, column, Cache::Once);
        let is_left_out = entries == 0 || is_member(cta, args.members, column as u32);
        let key = match is_left_out {
            true => SKIP,
            false => entries.max(RARE).leading_zeros(),
        };
        cta.write(args.to, column, key);
    });
}

/// [`OrderVariant::Packed`](super::OrderVariant::Packed).
#[inline(always)]
pub(super) fn packed<C: Cta>(cta: &C, args: &OrderArgs<'_>) {
    let (width, columns) = (args.width as usize, args.columns.len() as usize);
    each_of_grid(cta, args.len, |i| {
        let mut word = 0;
        for k in 0..width {
            let at = i * width + k;
            if at < columns {
                let column: u32 = cta.load(args.columns, at, Cache::Once);
                let field = load_or(cta, args.fields, column as usize, args.field);
                word |= field << (k * (32 / width));
            }
        }
        cta.write(args.to, i, word);
    });
}
