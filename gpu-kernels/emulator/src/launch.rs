//! Launches: limits, contract, the order of blocks.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use gpu_kernels::{Launch, Violation};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::block::{Block, Running, SharedMemory};
use super::cluster::Cluster;
use super::counting::Tally;
use super::crew::run_cluster;
use super::fault::{Fault, FaultKind, Kernel};
use super::limits::Limits;
use super::options::{BlockOrder, Counting};
use super::panics::Quiet;
use super::profile::Profile;
use super::shadow::MAX_BLOCKS;
use super::stack::Stacks;
use super::warp::Body;

/// Workers at most, as each may need 1,024 stacks, of which a process has about 30,000.
const MAX_WORKERS: usize = 16;

/// Threads whose numbers the shadow memory has room for; no device allows more.
const MAX_BLOCK: u32 = 1024;

/// Blocks of a cluster that every device with clusters runs together.
const MAX_CLUSTER: u32 = 8;

/// Checks a launch in clusters of this many blocks against the limits of the emulated device.
pub(super) fn check_limits(
    limits: &Limits,
    kernel: Kernel,
    shape: &Launch,
    cluster: u32,
) -> Result<(), Fault> {
    let rules = [
        ("cluster", 1, MAX_CLUSTER, cluster),
        (
            "block",
            1,
            limits.max_threads_per_block.min(MAX_BLOCK),
            shape.block,
        ),
        ("grid", 1, MAX_BLOCKS, shape.grid),
        (
            "dynamic shared memory",
            0,
            limits.shared_per_block,
            shape.shared_bytes,
        ),
    ];
    for (what, least, limit, given) in rules {
        if given < least || given > limit {
            let kind = FaultKind::Limit {
                what,
                device: limits.device.clone(),
                limit: limit.into(),
                given: given.into(),
            };
            return Err(Fault {
                kernel,
                position: None,
                kind,
            });
        }
    }
    Violation::multiple_of("grid", cluster.into(), shape.grid.into()).map_err(|violation| Fault {
        kernel,
        position: None,
        kind: FaultKind::Contract(violation),
    })
}

/// Runs all clusters of a launch, most often of a block each.
pub(super) fn run(running: &Running<'_>, body: Body<'_>) -> Result<Profile, Fault> {
    let clusters = running.shape.grid / running.cluster;
    let outcome = match running.options.blocks {
        BlockOrder::InOrder => run_in_order(running, body, 0..clusters),
        BlockOrder::Shuffled => {
            run_in_order(running, body, shuffled(running, clusters).into_iter())
        }
        BlockOrder::Parallel => run_in_parallel(running, body),
    };
    let poison_read = running
        .poison_read
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    match (outcome, poison_read) {
        (Err(fault), Some(poison)) if !fault.kind.explains_poison() => Err(poison),
        (Err(fault), _) => Err(*fault),
        (Ok(_), Some(poison)) => Err(poison),
        (Ok(profile), None) => Ok(profile),
    }
}

fn shuffled(running: &Running<'_>, clusters: u32) -> Vec<u32> {
    let mut random = SplitMix64::seed_from_u64(running.options.seed);
    let mut clusters: Vec<u32> = (0..clusters).collect();
    for i in (1..clusters.len()).rev() {
        clusters.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
    clusters
}

fn run_in_order(
    running: &Running<'_>,
    body: Body<'_>,
    mut clusters: impl Iterator<Item = u32>,
) -> Result<Profile, Box<Fault>> {
    let mut worker = Worker::new(running)?;
    clusters.try_for_each(|cluster| worker.run(running, cluster, body))?;
    Ok(worker.into_profile(running))
}

/// Every worker takes the next cluster until there is none, or one has failed.
fn run_in_parallel(running: &Running<'_>, body: Body<'_>) -> Result<Profile, Box<Fault>> {
    let next = AtomicU32::new(0);
    let failed = AtomicBool::new(false);
    let first_failure = Mutex::new(None);
    let work = |_| -> Result<Profile, Box<Fault>> {
        let mut worker = Worker::new(running)?;
        while !failed.load(Ordering::Relaxed) {
            let cluster = next.fetch_add(1, Ordering::Relaxed);
            if cluster >= running.shape.grid / running.cluster {
                break;
            }
            worker.run(running, cluster, body)?;
        }
        Ok(worker.into_profile(running))
    };
    let keep = |outcome: Result<Profile, Box<Fault>>| match outcome {
        Ok(profile) => profile,
        Err(failure) => {
            failed.store(true, Ordering::Relaxed);
            let mut first = first_failure.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert(failure);
            Profile::default()
        }
    };
    let of_a_worker = running.cluster as usize;
    let workers = rayon::current_num_threads()
        .min(MAX_WORKERS / of_a_worker)
        .min(running.shape.grid as usize / of_a_worker);
    let profile = (0..workers)
        .into_par_iter()
        .map(|worker| keep(work(worker)))
        .reduce(Profile::default, Profile::merge);
    match first_failure
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
    {
        Some(failure) => Err(failure),
        None => Ok(profile),
    }
}

/// What runs clusters, one after the other: stacks and shared memories, used again for every one.
struct Worker {
    stacks: Stacks,
    /// By block of a cluster.
    shared: Vec<RefCell<SharedMemory>>,
    /// The same; none where nothing is counted.
    tallies: Vec<RefCell<Tally>>,
    profile: Profile,
}

impl Worker {
    fn new(running: &Running<'_>) -> Result<Worker, Box<Fault>> {
        let shape = running.shape;
        let lanes = running.cluster * shape.block;
        let stacks = Stacks::take(lanes as usize).map_err(|error| {
            let message = format!("no memory for the stacks of {lanes} lanes: {error}");
            Box::new(Fault {
                kernel: running.kernel,
                position: None,
                kind: FaultKind::Panicked { message },
            })
        })?;
        let counted = match running.options.counting {
            Counting::Off => 0,
            Counting::Sites => running.cluster,
        };
        let memory = |_| RefCell::new(SharedMemory::take(shape.shared_bytes));
        let tally = |_| RefCell::new(Tally::new(shape.block));
        Ok(Worker {
            stacks,
            shared: (0..running.cluster).map(memory).collect(),
            tallies: (0..counted).map(tally).collect(),
            profile: Profile::default(),
        })
    }

    fn run(
        &mut self,
        running: &Running<'_>,
        number: u32,
        body: Body<'_>,
    ) -> Result<(), Box<Fault>> {
        let _quiet = Quiet::begin();
        let cluster = Cluster::new(number, &self.shared);
        let block = |rank| {
            let tally = self.tallies.get(rank as usize);
            Block::new(running, &cluster, rank, tally)
        };
        let blocks: Vec<_> = (0..running.cluster).map(block).collect();
        run_cluster(&cluster, &blocks, &mut self.stacks, body)?;
        for block in &blocks {
            self.profile.blocks += 1;
            self.profile.lane_steps += block.steps.get();
            self.profile.barriers += u64::from(block.epoch.get());
        }
        Ok(())
    }

    fn into_profile(self, running: &Running<'_>) -> Profile {
        let counted = self.tallies.into_iter();
        let counted = counted.map(|tally| tally.into_inner().into_profile(running.table));
        counted.fold(self.profile, Profile::merge)
    }
}
