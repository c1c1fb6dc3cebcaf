//! Launches that must not start.

use gpu_kernels::Launch;

use super::case::Attempt::{Body, Dot, InPairs};
use super::case::{BLOCK, Case, Source, TWO_CLUSTERS};
use crate::Diagnosis::{Contract, Limit};

pub(super) const SOURCE: Source = Source {
    file: file!(),
    text: include_str!("launches.rs"),
};

pub(super) const CASES: &[Case] = &[
    Case {
        name: "too much shared memory",
        expects: Limit,
        broken: Body(
            Launch {
                shared_bytes: 227 * 1024 + 1,
                ..BLOCK
            },
            |_, _| {},
        ),
        twin: Body(
            Launch {
                shared_bytes: 227 * 1024,
                ..BLOCK
            },
            |_, _| {},
        ),
    },
    Case {
        name: "block too large",
        expects: Limit,
        broken: Body(
            Launch {
                block: 1025,
                ..BLOCK
            },
            |_, _| {},
        ),
        twin: Body(
            Launch {
                block: 1024,
                ..BLOCK
            },
            |_, _| {},
        ),
    },
    Case {
        name: "empty grid",
        expects: Limit,
        broken: Body(Launch { grid: 0, ..BLOCK }, |_, _| {}),
        twin: Body(BLOCK, |_, _| {}),
    },
    Case {
        name: "part of a cluster",
        expects: Contract,
        broken: InPairs(
            Launch {
                grid: 3,
                ..TWO_CLUSTERS
            },
            |_, _| {},
        ),
        twin: InPairs(TWO_CLUSTERS, |_, _| {}),
    },
    Case {
        name: "block of half a warp",
        expects: Contract,
        broken: Dot(Launch { block: 48, ..BLOCK }),
        twin: Dot(BLOCK),
    },
    Case {
        name: "no scratch",
        expects: Contract,
        broken: Dot(Launch {
            shared_bytes: 8,
            ..BLOCK
        }),
        twin: Dot(Launch {
            shared_bytes: 16,
            ..BLOCK
        }),
    },
    Case {
        name: "more blocks than partial sums",
        expects: Contract,
        broken: Dot(Launch { grid: 9, ..BLOCK }),
        twin: Dot(Launch { grid: 8, ..BLOCK }),
    },
];
