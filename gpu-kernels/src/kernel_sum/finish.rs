//! Adds the slices: `out[i, v] = α · Σ partials[slice][v][i] + β · z[i, v]`, v from `first` on.
//!
//! Mapping: thread k of the grid takes elements k, k + threads of the grid, … of the `vectors · M` sums. No shared
//! memory. The slices are added in order, in f64, and rounded once with z. Determinism: the same bits always.

use super::{KernelSumArgs, Radial};
use crate::cta::{Cache, Cta};
use crate::scalar::Real;
use crate::verbs::each_of_grid;

/// See the head of the file.
#[inline(always)]
pub fn finish<C: Cta, T: Radial>(cta: &C, args: &KernelSumArgs<'_, T>) {
    let sums = args.vectors as u64 * args.targets as u64;
    each_of_grid(cta, sums, |k| {
        let (v, i) = (
            k as u64 / args.targets as u64,
            k as u64 % args.targets as u64,
        );
        let mut sum = 0.0;
        for slice in 0..args.slices {
            sum += cta.read(args.partials, slice as usize * sums as usize + k);
        }
        let at = (i * args.out_row + (args.first as u64 + v) * args.out_column) as usize;
        let mut value = args.alpha.to_f64() * sum;
        if args.z.is_some() {
            let z: T = cta.load(args.z, at, Cache::Once);
            value = args.beta.to_f64().fma(z.to_f64(), value);
        }
        cta.write(args.out, at, T::of_f64(value));
    });
}
