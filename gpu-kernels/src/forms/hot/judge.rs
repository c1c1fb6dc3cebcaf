//! In how few bits values can be stored.

use crate::cta::{Cache, Cta, WARP};
use crate::forms::hot::{
    DIFFER, DIFFER_IN_ROW, MakingArgs, NOT_BF16, NOT_FINITE, NOT_SINGLE, WIDEST, is_member,
};
use crate::fused::fixed::point::{FixedPoint, column_exponent};
use crate::fused::hot::narrow::{of_bf16, same, to_bf16};
use crate::verbs::{FULL, each_of_grid, global_warp, global_warps, lane, max_lanes};

/// Sets a flag where it holds in any lane; the whole warp calls.
#[inline(always)]
fn flag<C: Cta, T>(cta: &C, args: &MakingArgs<'_, T>, which: usize, holds: bool) {
    if cta.ballot(holds, FULL) != 0 && lane(cta) == 0 {
        cta.raise(args.flags, which, 1);
    }
}

/// [`MakingVariant::Judged`](super::MakingVariant::Judged).
#[inline(always)]
pub(super) fn judged<C: Cta, T: FixedPoint>(cta: &C, args: &MakingArgs<'_, T>) {
    let (mut in_all, mut in_row) = (false, false);
    let mut row = global_warp(cta) as u64;
    while row < args.len {
        let at = row as usize;
        let start: u32 = cta.load(args.offsets, at, Cache::Keep);
        let end: u32 = cta.load(args.offsets, at + 1, Cache::Keep);
        if start < end {
            let first: T = cta.load(args.values, start as usize, Cache::Keep);
            in_row |= first.exponent_field() == T::NON_FINITE;
            let mut entry = start as u64 + lane(cta) as u64;
            while entry < end as u64 {
                let value: T = cta.load(args.values, entry as usize, Cache::Once);
                in_row |= value.to_bits() != first.to_bits();
                in_all |= value.to_bits() != args.first.to_bits();
                entry += WARP as u64;
            }
        }
        row += global_warps(cta) as u64;
    }
    flag(cta, args, DIFFER, in_all);
    flag(cta, args, DIFFER_IN_ROW, in_row);
}

/// [`MakingVariant::Fields`](super::MakingVariant::Fields).
///
/// Columns soon have their largest field, and who only looks does not wait for others.
#[inline(always)]
pub(super) fn fields<C: Cta, T: FixedPoint>(cta: &C, args: &MakingArgs<'_, T>) {
    let (mut widest, mut is_hot) = (0, false);
    each_of_grid(cta, args.len, |i| {
        let column: u32 = cta.load(args.indices, i, Cache::Once);
        let value: T = cta.load(args.values, i, Cache::Once);
        let field = value.exponent_field();
        if field != T::NON_FINITE {
            widest = field.max(widest);
            if cta.peek(args.largest, column as usize) < field {
                cta.raise(args.largest, column as usize, field);
            }
        } else {
            is_hot |= is_member(cta, args.members, column);
        }
    });
    flag(cta, args, NOT_FINITE, is_hot);
    let widest = max_lanes(cta, widest);
    if lane(cta) == 0 {
        cta.raise(args.flags, WIDEST, widest);
    }
}

/// [`MakingVariant::Fits`](super::MakingVariant::Fits).
#[inline(always)]
pub(super) fn fits<C: Cta, T: FixedPoint>(cta: &C, args: &MakingArgs<'_, T>) {
    let (mut no_bf16, mut no_single) = (false, false);
    each_of_grid(cta, args.len, |i| {
        let column: u32 = cta.load(args.indices, i, Cache::Once);
        let is_known = no_bf16 && (no_single || T::SIZE == 4);
        if !is_known && is_member(cta, args.members, column) {
            let field: u32 = cta.load(args.fields, column as usize, Cache::Keep);
            let value: T = cta.load(args.values, i, Cache::Once);
            let stored = value.scaled(-column_exponent::<T>(field)).to_f64();
            no_bf16 |= !same(of_bf16(to_bf16(stored)), stored);
            no_single |= !same(stored as f32 as f64, stored);
        }
    });
    flag(cta, args, NOT_BF16, no_bf16);
    flag(cta, args, NOT_SINGLE, no_single);
}
