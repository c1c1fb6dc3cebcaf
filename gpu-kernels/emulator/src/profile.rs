//! What a launch did to memory: a poor man's profiler.

mod atomics;
mod text;

use serde::{Deserialize, Serialize};

use super::fault::{Action, Site};

pub use atomics::{AtomicCount, Atomics};

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Space {
    /// Device memory, moved in sectors of 32 bytes.
    Global,
    /// A block's shared memory, in 32 banks of 4 bytes.
    Shared,
}

/// What the accesses of one source line did. A *request* is what a warp does in one instruction: the k-th
/// executions of the line by its lanes, between two points where the warp's lanes meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SiteCounts {
    /// Warp-level requests.
    pub requests: u64,
    /// Accesses by lanes.
    pub accesses: u64,
    /// Sectors of 32 bytes that the requests touch (global memory).
    pub sectors: u64,
    /// Sectors that they would touch if their bytes lay together.
    pub ideal_sectors: u64,
    /// Passes over the banks (shared memory): the most distinct words of a bank, added up over requests.
    pub bank_passes: u64,
    /// The worst request's passes: n for an n-way conflict.
    pub worst_conflict: u64,
    /// Atomics to an address that another lane of the request also named.
    pub contended: u64,
    /// Requests in which not all lanes took part that are in the warp.
    pub divergent: u64,
}

impl SiteCounts {
    /// Ideal over real sectors: 1 when every byte moved was requested, near 1/8 for scattered words of 4
    /// bytes. 1 where nothing moved.
    pub fn coalescing(&self) -> f64 {
        match self.sectors {
            0 => 1.0,
            sectors => self.ideal_sectors as f64 / sectors as f64,
        }
    }

    fn add(&mut self, other: &SiteCounts) {
        self.requests += other.requests;
        self.accesses += other.accesses;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
        self.bank_passes += other.bank_passes;
        self.worst_conflict = self.worst_conflict.max(other.worst_conflict);
        self.contended += other.contended;
        self.divergent += other.divergent;
    }
}

/// A line, a memory, an action.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SiteKey {
    /// The source line.
    pub site: Site,
    /// Which memory.
    pub space: Space,
    /// What is done there.
    pub action: Action,
}

/// Counters of a launch. Sites and atomics are filled when [`Counting::Sites`](super::Counting) is on.
///
/// `Display` prints them as a table.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Profile {
    /// Blocks that ran.
    pub blocks: u64,
    /// Accessor calls of all lanes, barriers, shuffles and votes included.
    pub lane_steps: u64,
    /// Barriers, one per block that passes one.
    pub barriers: u64,
    /// By source line.
    pub sites: Vec<(SiteKey, SiteCounts)>,
    /// Atomic additions in global memory, by address.
    pub atomics: Atomics,
}

impl Profile {
    /// The sum of two.
    pub fn merge(mut self, other: Profile) -> Profile {
        self.blocks += other.blocks;
        self.lane_steps += other.lane_steps;
        self.barriers += other.barriers;
        for (key, counts) in &other.sites {
            self.site_mut(key).add(counts);
        }
        self.atomics.merge(other.atomics);
        self
    }

    fn site_mut(&mut self, key: &SiteKey) -> &mut SiteCounts {
        let at = match self.sites.binary_search_by(|(other, _)| other.cmp(key)) {
            Ok(at) => at,
            Err(at) => {
                self.sites.insert(at, (key.clone(), SiteCounts::default()));
                at
            }
        };
        &mut self.sites[at].1
    }

    pub(super) fn add_site(&mut self, key: &SiteKey, counts: &SiteCounts) {
        self.site_mut(key).add(counts);
    }

    /// All sites of one memory and action together.
    pub fn total(&self, space: Space, action: Action) -> SiteCounts {
        let mut total = SiteCounts::default();
        let chosen = |key: &SiteKey| key.space == space && key.action == action;
        for (_, counts) in self.sites.iter().filter(|(key, _)| chosen(key)) {
            total.add(counts);
        }
        total
    }
}
