//! Fixed-point sums of which each block of a pair has half (compute capability 9.0).
//!
//! The two blocks of a cluster walk the same rows, side by side, so that what one has read of X the other finds in the L2
//! cache; both make the whole dot product, and each adds to its own columns alone, which take turns as in
//! [`spread`](crate::fused::fixed::spread). Nothing crosses between them. Of f32 with y beside the sums 29,055 columns fit on
//! an H200, where one block has room for 19,370; for `Xᵀ·p` 58,111 instead of 29,056. Rows are walked twice, which costs
//! instructions; additions over the network of the cluster (163 · 10⁹ a second) cost more.

use crate::cta::{Cta, WARP};
use crate::fused::Compute;
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::spread::flush_own;
use crate::fused::fixed::sums::SharedSums;
use crate::fused::fixed::variant::{CLUSTER, places};
use crate::fused::fixed::{self, FixedArgs, Input, Sums};

/// [`FixedVariant::Accumulate`](crate::fused::FixedVariant::Accumulate) with [`Place::Split`](crate::fused::Place::Split), and with
/// `Y` [`Input::Shared`](crate::describe::Input::Shared).
#[inline(always)]
pub(crate) fn accumulate<C, T, P, const Y: bool, const VS: u32, const K: usize>(
    cta: &C,
    args: &FixedArgs<'_, T>,
) where
    C: Cta,
    T: FixedPoint,
    P: Compute,
{
    if C::CLUSTERS {
        fixed::accumulate::<C, T, P, InSplit<T, Y>, VS, K>(cta, args);
    }
}

/// Where such sums are, and y.
struct InSplit<T, const Y: bool> {
    sums: SharedSums<T>,
    input: Input<T, Y>,
    rank: u32,
}

impl<T: FixedPoint, const Y: bool> Sums<T> for InSplit<T, Y> {
    #[inline(always)]
    fn walker<C: Cta>(cta: &C) -> (u32, u32) {
        let warps = cta.threads() / WARP;
        let first = cta.block() / CLUSTER * warps + cta.thread() / WARP;
        (first, cta.blocks() / CLUSTER * warps)
    }

    #[inline(always)]
    fn open<C: Cta>(cta: &C, args: &FixedArgs<'_, T>) -> Self {
        let cols = args.x.cols;
        // y first: its elements may need the alignment of 8 bytes.
        let input = Input::at(cols);
        let sums = SharedSums::open(cta, input.end(), (places(cols), 0));
        input.fill(cta, args);
        cta.sync();
        let rank = cta.cluster_rank();
        InSplit { sums, input, rank }
    }

    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32) -> T {
        self.input.get(cta, args, column)
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, _: &FixedArgs<'_, T>, column: u32, value: T) {
        if column % CLUSTER == self.rank {
            self.sums.add(cta, column / CLUSTER, value);
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>) {
        cta.sync();
        flush_own(cta, args, &self.sums, self.rank);
    }
}
