//! Fixed-point sums spread over the shared memory of a cluster's blocks (compute capability 9.0).
//!
//! Every block of a cluster walks rows of its own and adds to the sums of all its blocks, which take turns at the columns:
//! column c is the c/2-th sum of block c mod 2, so that both have as many of the columns that many rows have, wherever
//! those lie. A block adds to its own sums as to any in shared memory, and in the other's by atomics over the network of
//! the cluster. Sums are zero for all behind the first barrier of the cluster, whole behind the second; then each block
//! flushes its own.
//!
//! Clusters of two hold as many columns again as a block. On an H200 integers are added at random places of them at
//! 163 · 10⁹ a second, of clusters of 4 blocks at 84, of 8 at 80 and of 16 at 71; in a block's own shared memory at 1,240,
//! in L2 at 105: larger clusters would be no faster than global memory.

use crate::cta::{Cache, Cta};
use crate::fused::Compute;
use crate::fused::fixed::point::FixedPoint;
use crate::fused::fixed::sums::SharedSums;
use crate::fused::fixed::variant::{CLUSTER, places};
use crate::fused::fixed::{self, FixedArgs, Sums};

/// [`FixedVariant::Accumulate`](crate::fused::FixedVariant::Accumulate) with [`Place::Spread`](crate::fused::Place::Spread).
#[inline(always)]
pub(crate) fn accumulate<C, T, P, const VS: u32, const K: usize>(cta: &C, args: &FixedArgs<'_, T>)
where
    C: Cta,
    T: FixedPoint,
    P: Compute,
{
    if C::CLUSTERS {
        fixed::accumulate::<C, T, P, InCluster<T>, VS, K>(cta, args);
    }
}

/// Adds the sums of the columns that block `rank` of a cluster has to those of all; a barrier came before.
#[inline(always)]
pub(crate) fn flush_own<C: Cta, T: FixedPoint>(
    cta: &C,
    args: &FixedArgs<'_, T>,
    sums: &SharedSums<T>,
    rank: u32,
) {
    let own = (args.x.cols + CLUSTER - 1 - rank) / CLUSTER;
    sums.flush_added_as(cta, args.sums, own, |place| {
        place * CLUSTER as usize + rank as usize
    });
}

/// Where such sums are.
struct InCluster<T> {
    sums: SharedSums<T>,
    rank: u32,
}

impl<T: FixedPoint> Sums<T> for InCluster<T> {
    #[inline(always)]
    fn open<C: Cta>(cta: &C, args: &FixedArgs<'_, T>) -> Self {
        let sums = SharedSums::open(cta, 0, (places(args.x.cols), 0));
        cta.sync_cluster();
        let rank = cta.cluster_rank();
        InCluster { sums, rank }
    }

    #[inline(always)]
    fn input<C: Cta>(&self, cta: &C, args: &FixedArgs<'_, T>, column: u32) -> T {
        cta.load(args.x.input, column as usize, Cache::Keep)
    }

    #[inline(always)]
    fn add<C: Cta>(&self, cta: &C, _: &FixedArgs<'_, T>, column: u32, value: T) {
        let (rank, place) = (column % CLUSTER, column / CLUSTER);
        if rank == self.rank {
            self.sums.add(cta, place, value);
        } else {
            self.sums.add_to(cta, rank, place, value);
        }
    }

    #[inline(always)]
    fn flush<C: Cta>(self, cta: &C, args: &FixedArgs<'_, T>) {
        cta.sync_cluster();
        flush_own(cta, args, &self.sums, self.rank);
    }
}
