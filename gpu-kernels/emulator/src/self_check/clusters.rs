//! Shared memory of other blocks of a cluster, and barriers of clusters.

use gpu_kernels::Cta;
use gpu_kernels::cta::Shared;

use super::case::Attempt::InPairs;
use super::case::{Case, Source, TWO_CLUSTERS};
use crate::Diagnosis::{DivergentBarrier, NoSuchPeer, OutOfBounds, PeerMayNotRun, Race};

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("clusters.rs"),
};

/// One word per thread.
fn words<C: Cta>(cta: &C) -> Shared<f32> {
    Shared::at(0, cta.threads())
}

/// The other block of a cluster of two, and this thread's word.
fn peer_and_own<C: Cta>(cta: &C) -> (u32, usize) {
    (1 - cta.cluster_rank(), cta.thread() as usize)
}

pub(super) const CASES: &[Case] = &[
    Case {
        name: "barrier of a block taken for one of the cluster",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0); //~ barrier of a block taken for one of the cluster
            cta.sync();
            cta.shared_read(words(cta), own); //~ barrier of a block taken for one of the cluster
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0);
            cta.sync_cluster();
            cta.shared_read(words(cta), own);
        }),
    },
    Case {
        name: "peer's scratch reused without a second barrier",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| alternate(cta, |_| 0)),
        twin: InPairs(TWO_CLUSTERS, |cta, _| alternate(cta, |turn| turn % 2)),
    },
    Case {
        name: "both blocks write one word",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (_, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(0, words(cta), own, 1.0); //~ both blocks write one word
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            for rank in 0..2 {
                cta.sync_cluster();
                if peer == rank {
                    cta.shared_write_to(0, words(cta), own, 1.0);
                }
            }
            cta.sync_cluster();
        }),
    },
    Case {
        name: "own atomics beside a peer's store",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.shared_write(words(cta), own, 0.0);
            cta.sync_cluster();
            cta.shared_add(words(cta), own, 1.0); //~ own atomics beside a peer's store
            cta.shared_write_to(peer, words(cta), own, 1.0); //~ own atomics beside a peer's store
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.shared_write(words(cta), own, 0.0);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0);
            cta.sync_cluster();
            cta.shared_add(words(cta), own, 1.0);
        }),
    },
    Case {
        name: "own race behind a peer's store",
        expects: Race,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0);
            cta.sync_cluster();
            cta.shared_add(words(cta), own, 1.0); //~ own race behind a peer's store
            cta.shared_read(words(cta), own ^ 1); //~ own race behind a peer's store
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0);
            cta.sync_cluster();
            cta.shared_add(words(cta), own, 1.0);
            cta.sync();
            cta.shared_read(words(cta), own ^ 1);
        }),
    },
    Case {
        name: "peer that may not have begun",
        expects: PeerMayNotRun,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.shared_write_to(peer, words(cta), own, 1.0); //~ peer that may not have begun
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0);
            cta.sync_cluster();
        }),
    },
    Case {
        name: "peer that may have ended",
        expects: PeerMayNotRun,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0); //~ peer that may have ended
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (_, own) = peer_and_own(cta);
            cta.shared_write_to(cta.cluster_rank(), words(cta), own, 1.0);
            cta.shared_read(words(cta), own);
        }),
    },
    Case {
        name: "block that the cluster does not have",
        expects: NoSuchPeer,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            cta.sync_cluster();
            // The number in the grid, which is 2 or 3 in the second cluster.
            let peer = cta.block() ^ 1;
            cta.shared_write_to(peer, words(cta), cta.thread() as usize, 1.0); //~ block that the cluster does not have
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0);
            cta.sync_cluster();
        }),
    },
    Case {
        name: "past the end of a peer's array",
        expects: OutOfBounds,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own + 1, 1.0); //~ past the end of a peer's array
            cta.sync_cluster();
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            let (peer, own) = peer_and_own(cta);
            cta.sync_cluster();
            cta.shared_write_to(peer, words(cta), own, 1.0);
            cta.sync_cluster();
        }),
    },
    Case {
        name: "barrier of a cluster in one of its blocks",
        expects: DivergentBarrier,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            if cta.cluster_rank() == 0 {
                cta.sync_cluster(); //~ barrier of a cluster in one of its blocks
            }
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| {
            if cta.cluster_rank() == 0 {
                cta.sync();
            }
            cta.sync_cluster();
        }),
    },
    Case {
        name: "barrier of a cluster in one of a block's warps",
        expects: DivergentBarrier,
        broken: InPairs(TWO_CLUSTERS, |cta, _| {
            if cta.thread() < 32 {
                cta.sync_cluster(); //~ barrier of a cluster in one of a block's warps
            }
        }),
        twin: InPairs(TWO_CLUSTERS, |cta, _| cta.sync_cluster()),
    },
];

/// Gives the other block a number three times with one barrier each, in the half that `half(turn)` names.
fn alternate<C: Cta>(cta: &C, half: fn(u32) -> u32) {
    let (peer, _) = peer_and_own(cta);
    cta.sync_cluster();
    for turn in 0..3 {
        let at = half(turn) as usize;
        if cta.thread() == 0 {
            cta.shared_write_to(peer, words(cta), at, 1.0); //~ peer's scratch reused without a second barrier
        }
        cta.sync_cluster();
        cta.shared_read(words(cta), at); //~ peer's scratch reused without a second barrier
    }
}
