//! Launches: limits, contract, the order of blocks.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use gpu_kernels::Launch;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

use super::block::{Block, Running, SharedMemory};
use super::counting::Tally;
use super::crew::run_block;
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

/// Checks a launch against the limits of the emulated device.
pub(super) fn check_limits(limits: &Limits, kernel: Kernel, shape: &Launch) -> Result<(), Fault> {
    let rules = [
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
    Ok(())
}

/// Runs all blocks of a launch.
pub(super) fn run(running: &Running<'_>, body: Body<'_>) -> Result<Profile, Fault> {
    let grid = running.shape.grid;
    let outcome = match running.options.blocks {
        BlockOrder::InOrder => run_in_order(running, body, 0..grid),
        BlockOrder::Shuffled => run_in_order(running, body, shuffled(running, grid).into_iter()),
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

fn shuffled(running: &Running<'_>, grid: u32) -> Vec<u32> {
    let mut random = SplitMix64::seed_from_u64(running.options.seed);
    let mut blocks: Vec<u32> = (0..grid).collect();
    for i in (1..blocks.len()).rev() {
        blocks.swap(i, (random.next_u64() % (i as u64 + 1)) as usize);
    }
    blocks
}

fn run_in_order(
    running: &Running<'_>,
    body: Body<'_>,
    mut blocks: impl Iterator<Item = u32>,
) -> Result<Profile, Box<Fault>> {
    let mut worker = Worker::new(running)?;
    blocks.try_for_each(|block| worker.run(running, block, body))?;
    Ok(worker.into_profile(running))
}

/// Every worker takes the next block until there is none, or one has failed.
fn run_in_parallel(running: &Running<'_>, body: Body<'_>) -> Result<Profile, Box<Fault>> {
    let next = AtomicU32::new(0);
    let failed = AtomicBool::new(false);
    let first_failure = Mutex::new(None);
    let work = |_| -> Result<Profile, Box<Fault>> {
        let mut worker = Worker::new(running)?;
        while !failed.load(Ordering::Relaxed) {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= running.shape.grid {
                break;
            }
            worker.run(running, block, body)?;
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
    let workers = rayon::current_num_threads()
        .min(MAX_WORKERS)
        .min(running.shape.grid as usize);
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

/// What runs blocks, one after the other: stacks and shared memory, used again for every block.
struct Worker {
    stacks: Stacks,
    shared: RefCell<SharedMemory>,
    tally: Option<RefCell<Tally>>,
    profile: Profile,
}

impl Worker {
    fn new(running: &Running<'_>) -> Result<Worker, Box<Fault>> {
        let shape = running.shape;
        let stacks = Stacks::take(shape.block as usize).map_err(|error| {
            let message = format!("no memory for the stacks of {} lanes: {error}", shape.block);
            Box::new(Fault {
                kernel: running.kernel,
                position: None,
                kind: FaultKind::Panicked { message },
            })
        })?;
        let tally = match running.options.counting {
            Counting::Off => None,
            Counting::Sites => Some(RefCell::new(Tally::new(shape.block))),
        };
        Ok(Worker {
            stacks,
            shared: RefCell::new(SharedMemory::new(shape.shared_bytes)),
            tally,
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
        let block = Block::new(running, number, &self.shared, self.tally.as_ref());
        run_block(&block, &mut self.stacks, body)?;
        self.profile.blocks += 1;
        self.profile.lane_steps += block.steps.get();
        self.profile.barriers += u64::from(block.epoch.get());
        Ok(())
    }

    fn into_profile(self, running: &Running<'_>) -> Profile {
        let counted = self
            .tally
            .map(|tally| tally.into_inner().into_profile(running.table));
        self.profile.merge(counted.unwrap_or_default())
    }
}
