//! A running cluster: what its blocks know of each other.

use std::cell::{Cell, RefCell};

use super::block::SharedMemory;
use super::fault::Fault;
use super::shadow::ClusterEpochs;

/// The blocks that a worker runs together; most often one.
pub(super) struct Cluster<'l> {
    /// Number of its first block in the grid.
    pub first: u32,
    /// The shared memory of each block.
    pub memories: &'l [RefCell<SharedMemory>],
    epochs: ClusterEpochs,
    /// Barriers of the cluster that were passed.
    barriers: Cell<u32>,
    /// What is wrong if that was the last of them: the first access since to another block's memory.
    unless_barrier: RefCell<Option<Box<Fault>>>,
}

impl<'l> Cluster<'l> {
    /// The cluster of that number, of as many blocks as there are memories.
    pub fn new(number: u32, memories: &'l [RefCell<SharedMemory>]) -> Cluster<'l> {
        let blocks = memories.len() as u32;
        let first = number * blocks;
        Cluster {
            first,
            memories,
            epochs: ClusterEpochs::new(first, blocks),
            barriers: Cell::new(0),
            unless_barrier: RefCell::default(),
        }
    }

    /// What orders accesses by several blocks; none where there is one.
    #[inline(always)]
    pub fn epochs(&self) -> Option<&ClusterEpochs> {
        (self.memories.len() > 1).then_some(&self.epochs)
    }

    /// Whether all blocks have begun: they have passed a barrier.
    pub fn has_begun(&self) -> bool {
        self.barriers.get() > 0
    }

    /// Notes an access to another block's memory, which is wrong if no barrier follows.
    pub fn expect_barrier(&self, otherwise: impl FnOnce() -> Fault) {
        let mut expected = self.unless_barrier.borrow_mut();
        expected.get_or_insert_with(|| Box::new(otherwise()));
    }

    /// Notes that all blocks pass a barrier, with which these epochs of theirs begin.
    pub fn pass_barrier(&self, epochs: impl Iterator<Item = (u32, u32)>) {
        for (block, epoch) in epochs {
            self.epochs.begin(block, epoch);
        }
        self.barriers.set(self.barriers.get() + 1);
        self.unless_barrier.take();
    }

    /// What was wrong, now that all blocks have ended.
    pub fn end(&self) -> Result<(), Box<Fault>> {
        self.unless_barrier.take().map_or(Ok(()), Err)
    }
}

/// When another block is certain to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lifetime {
    /// From the cluster's first barrier on.
    Begins,
    /// Up to its last.
    Ends,
}

impl std::fmt::Display for Lifetime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Lifetime::Begins => "not have begun: a barrier of the cluster must come first",
            Lifetime::Ends => "have ended: a barrier of the cluster must follow",
        })
    }
}
