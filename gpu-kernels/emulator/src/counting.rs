//! Counting: accesses of lanes, put together to the requests of their warp.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::panic::Location;

use gpu_kernels::cta::WARP;

use super::address::{GlobalTarget, SharedTarget};
use super::fault::Action;
use super::heap::{Slot, Table};
use super::profile::{Profile, SiteCounts, SiteKey, Space};

/// Bytes that move together between memory and L2.
const SECTOR: u64 = 32;
/// Banks of shared memory, 4 bytes wide.
const BANKS: u64 = 32;

/// One access of one lane.
#[derive(Debug, Clone, Copy)]
struct Event {
    site: &'static Location<'static>,
    space: Space,
    action: Action,
    lane: u32,
    address: u64,
    bytes: u32,
}

/// What tells one access site from another, cheaply.
type Key = (usize, Space, Action);

impl Event {
    fn key(&self) -> Key {
        (
            std::ptr::from_ref(self.site).addr(),
            self.space,
            self.action,
        )
    }
}

/// The counters of a worker's blocks.
#[derive(Debug)]
pub(super) struct Tally {
    /// Accesses since the warp's lanes last met, by warp.
    open: Vec<Vec<Event>>,
    /// Lanes of each warp.
    lanes: Vec<usize>,
    sites: HashMap<Key, (&'static Location<'static>, SiteCounts)>,
    /// Atomic additions by first byte and size of the element.
    atomics: BTreeMap<(u64, u32), u64>,
}

impl Tally {
    pub fn new(threads: u32) -> Tally {
        let warps = threads.div_ceil(WARP);
        Tally {
            open: vec![Vec::new(); warps as usize],
            lanes: (0..warps)
                .map(|warp| (threads - warp * WARP).min(WARP) as usize)
                .collect(),
            sites: HashMap::new(),
            atomics: BTreeMap::new(),
        }
    }

    pub fn global(
        &mut self,
        thread: u32,
        action: Action,
        site: &'static Location<'static>,
        target: &GlobalTarget,
    ) {
        if action == Action::Add {
            let element = (target.byte(), target.bytes());
            *self.atomics.entry(element).or_default() += 1;
        }
        self.record(
            thread,
            Event {
                site,
                space: Space::Global,
                action,
                lane: thread % WARP,
                address: target.byte(),
                bytes: target.bytes(),
            },
        );
    }

    pub fn shared(
        &mut self,
        thread: u32,
        action: Action,
        site: &'static Location<'static>,
        target: &SharedTarget,
    ) {
        self.record(
            thread,
            Event {
                site,
                space: Space::Shared,
                action,
                lane: thread % WARP,
                address: target.byte(),
                bytes: target.bytes(),
            },
        );
    }

    fn record(&mut self, thread: u32, event: Event) {
        self.open[(thread / WARP) as usize].push(event);
    }

    /// Counts what a warp did since its lanes last met.
    pub fn close(&mut self, warp: u32) {
        let lanes = self.lanes[warp as usize];
        let mut events = std::mem::take(&mut self.open[warp as usize]);
        events.sort_by_key(|event| (event.key(), event.lane));
        for of_site in events.chunk_by(|a, b| a.key() == b.key()) {
            let (_, counts) = self
                .sites
                .entry(of_site[0].key())
                .or_insert((of_site[0].site, SiteCounts::default()));
            for request in requests(of_site) {
                count(counts, &request, lanes);
            }
        }
        events.clear();
        self.open[warp as usize] = events;
    }

    /// What was counted, with the names that `table` has for addresses.
    pub fn into_profile(self, table: &Table) -> Profile {
        let mut profile = Profile::default();
        for ((address, size), count) in self.atomics {
            if let Some((Slot::Alive(allocation), byte)) = table.find(address) {
                let index = byte / u64::from(size);
                profile.atomics.add(&allocation.name, index, count);
            }
        }
        for ((_, space, action), (site, counts)) in self.sites {
            let site = site.into();
            profile.add_site(
                &SiteKey {
                    site,
                    space,
                    action,
                },
                &counts,
            );
        }
        profile
    }
}

/// The k-th accesses of all lanes, for each k; `events` are sorted by lane.
fn requests(events: &[Event]) -> Vec<Vec<Event>> {
    let mut requests: Vec<Vec<Event>> = Vec::new();
    for of_lane in events.chunk_by(|a, b| a.lane == b.lane) {
        for (k, event) in of_lane.iter().enumerate() {
            if k == requests.len() {
                requests.push(Vec::new());
            }
            requests[k].push(*event);
        }
    }
    requests
}

fn count(counts: &mut SiteCounts, request: &[Event], lanes: usize) {
    counts.requests += 1;
    counts.accesses += request.len() as u64;
    counts.divergent += u64::from(request.len() < lanes);
    match request[0].space {
        Space::Global => {
            counts.sectors += distinct(request, SECTOR).len() as u64;
            let words = distinct(request, 4).len() as u64;
            counts.ideal_sectors += (4 * words).div_ceil(SECTOR);
        }
        Space::Shared => {
            let passes = bank_passes(request);
            counts.bank_passes += passes;
            counts.worst_conflict = counts.worst_conflict.max(passes);
        }
    }
    if request[0].action == Action::Add {
        let addresses: BTreeSet<u64> = request.iter().map(|event| event.address).collect();
        counts.contended += (request.len() - addresses.len()) as u64;
    }
}

/// The distinct units of `unit` bytes that a request touches.
fn distinct(request: &[Event], unit: u64) -> BTreeSet<u64> {
    let units = |event: &Event| {
        event.address / unit..(event.address + u64::from(event.bytes)).div_ceil(unit)
    };
    request.iter().flat_map(units).collect()
}

/// Passes over the banks: the most distinct words that one bank must serve. Accesses of 8 bytes are
/// served by half warps.
fn bank_passes(request: &[Event]) -> u64 {
    let half = |event: &Event| if event.bytes > 4 { event.lane / 16 } else { 0 };
    let pass = |part: u32| {
        let of_part: Vec<Event> = request
            .iter()
            .filter(|e| half(e) == part)
            .copied()
            .collect();
        let mut banks = [0; BANKS as usize];
        for word in distinct(&of_part, 4) {
            banks[(word % BANKS) as usize] += 1;
        }
        banks.into_iter().max().unwrap_or(0)
    };
    pass(0) + pass(1)
}
