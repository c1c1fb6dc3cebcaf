//! Atomic additions to the shared memory of other blocks of a cluster.

use gpu_kernels::Cta;
use gpu_kernels::cta::Shared;

use super::case::Attempt::InPairs;
use super::case::{Case, Source, TWO_CLUSTERS};
use crate::Diagnosis::{NoSuchPeer, OutOfBounds, PeerMayNotRun, Race, Uninitialised};

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("cluster_sums.rs"),
};

/// One sum per thread.
fn sums<C: Cta>(cta: &C) -> Shared<u32> {
    Shared::at(0, cta.threads())
}

/// The other block of a cluster of two, and this thread's sum.
fn peer_and_own<C: Cta>(cta: &C) -> (u32, usize) {
    (1 - cta.cluster_rank(), cta.thread() as usize)
}

/// Zeroes the block's sums; a barrier of the cluster must follow.
fn zero<C: Cta>(cta: &C) {
    cta.shared_write(sums(cta), cta.thread() as usize, 0);
}

/// What is right: sums are zero for all before one is added to, and whole before one is read or its block ends.
fn add_to_peer<C: Cta>(cta: &C, at: usize) {
    let (peer, _) = peer_and_own(cta);
    zero(cta);
    cta.sync_cluster();
    cta.shared_fetch_add_to(peer, sums(cta), at, 1);
    cta.sync_cluster();
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "sums read behind a barrier of the block alone",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            zero(cta);
            cta.sync_cluster();
            cta.shared_fetch_add_to(peer, sums(cta), own, 1); //~ sums read behind a barrier of the block alone
            cta.sync();
            cta.shared_read(sums(cta), own); //~ sums read behind a barrier of the block alone
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let own = cta.thread() as usize;
            add_to_peer(cta, own);
            cta.shared_read(sums(cta), own);
        }),
    },
    Case {
        name: "sums zeroed before a barrier of the block alone",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write(sums(cta), own, 0); //~ sums zeroed before a barrier of the block alone
            cta.sync();
            cta.shared_fetch_add_to(peer, sums(cta), own, 1); //~ sums zeroed before a barrier of the block alone
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            add_to_peer(cta, cta.thread() as usize);
        }),
    },
    Case {
        name: "own store beside a peer's additions",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            zero(cta);
            cta.sync_cluster();
            cta.shared_fetch_add_to(peer, sums(cta), own, 1); //~ own store beside a peer's additions
            cta.shared_write(sums(cta), own, 0); //~ own store beside a peer's additions
            cta.sync_cluster();
        }),
        // Both blocks add to one sum, each in its way.
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            zero(cta);
            cta.sync_cluster();
            cta.shared_fetch_add_to(peer, sums(cta), own, 1);
            cta.shared_fetch_add(sums(cta), own, 1);
            cta.shared_fetch_add_to(1 - peer, sums(cta), own, 1);
            cta.sync_cluster();
            cta.shared_read(sums(cta), own);
        }),
    },
    Case {
        name: "addition to a sum that nobody has zeroed",
        expects: Uninitialised,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_fetch_add_to(peer, sums(cta), own, 1); //~ addition to a sum that nobody has zeroed
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, sums(cta), own, 0);
            cta.shared_fetch_add_to(peer, sums(cta), own, 1);
            cta.sync_cluster();
        }),
    },
    Case {
        name: "addition in a peer that may not have begun",
        expects: PeerMayNotRun,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            zero(cta);
            cta.shared_fetch_add_to(peer, sums(cta), own, 1); //~ addition in a peer that may not have begun
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            add_to_peer(cta, cta.thread() as usize);
        }),
    },
    Case {
        name: "addition in a peer that may have ended",
        expects: PeerMayNotRun,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            zero(cta);
            cta.sync_cluster();
            cta.shared_fetch_add_to(peer, sums(cta), own, 1); //~ addition in a peer that may have ended
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            zero(cta);
            let own = cta.thread() as usize;
            cta.shared_fetch_add_to(cta.cluster_rank(), sums(cta), own, 1);
        }),
    },
    Case {
        name: "addition in a block that the cluster does not have",
        expects: NoSuchPeer,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            zero(cta);
            cta.sync_cluster();
            // The number in the grid, which is 2 or 3 in the second cluster.
            let peer = cta.block() ^ 1;
            cta.shared_fetch_add_to(peer, sums(cta), cta.thread() as usize, 1); //~ addition in a block that the cluster does not have
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            add_to_peer(cta, cta.thread() as usize);
        }),
    },
    Case {
        name: "addition past the end of a peer's sums",
        expects: OutOfBounds,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            zero(cta);
            cta.sync_cluster();
            cta.shared_fetch_add_to(peer, sums(cta), own + 1, 1); //~ addition past the end of a peer's sums
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            add_to_peer(cta, cta.thread() as usize ^ 1);
        }),
    },
];
