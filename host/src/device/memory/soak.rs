//! Random operations at twice the memory that there is, every read compared with a shadow copy.
//!
//! `WARPFUSE_SOAK` is the number of operations: 20,000 if it is not set.

use std::sync::{Arc, Mutex};

use super::evict::{Candidate, Evictable, NextUse};
use crate::device::{Buffer, Device, DeviceError, EvictionPolicy, MemoryOptions};

/// Words of all blocks together, and of the device.
const ALL: usize = 40_000;
const ROOM: usize = ALL / 2;
const BLOCKS: usize = 50;

/// Blocks with copies on the host, brought back when they are read.
struct Store {
    device: Device,
    shadows: Mutex<Vec<Vec<u32>>>,
    blocks: Mutex<Vec<(Kept, u64)>>,
}

/// A block, while the device has it.
type Kept = Option<Arc<Buffer<u32>>>;

impl Evictable for Store {
    fn candidates(&self) -> Vec<Candidate> {
        let blocks = self.blocks.lock().unwrap();
        let blocks = blocks.iter().enumerate();
        let idle = blocks.filter_map(|(number, (block, last_use))| {
            let block = block
                .as_ref()
                .filter(|block| Arc::strong_count(block) == 1)?;
            Some(Candidate {
                number,
                bytes: 4 * block.len(),
                last_use: *last_use,
                restore_seconds: block.len() as f64 * (1 + number % 3) as f64,
                next_use: NextUse::Unknown,
            })
        });
        idle.collect()
    }

    fn evict(&self, number: usize) -> usize {
        let taken = {
            let mut blocks = self.blocks.lock().unwrap();
            blocks[number]
                .0
                .take_if(|block| Arc::strong_count(block) == 1)
        };
        taken.map_or(0, |block| 4 * block.len())
    }
}

impl Store {
    fn new(device: &Device, random: &mut Random) -> Arc<Store> {
        let each = ALL / BLOCKS;
        let shadow = |_| {
            (0..each / 2 + random.below(each))
                .map(|_| random.next() as u32)
                .collect()
        };
        let shadows: Vec<Vec<u32>> = (0..BLOCKS).map(shadow).collect();
        let store = Arc::new(Store {
            device: device.clone(),
            shadows: Mutex::new(shadows),
            blocks: Mutex::new(vec![(None, 0); BLOCKS]),
        });
        let weak = Arc::downgrade(&store);
        device.ledger().register(weak);
        store
    }

    /// The block on the device, in use until the returned value is dropped.
    fn get(&self, number: usize) -> Result<Arc<Buffer<u32>>, DeviceError> {
        let now = self.device.ledger().tick();
        {
            let block = &mut self.blocks.lock().unwrap()[number];
            block.1 = now;
            if let Some(block) = &block.0 {
                return Ok(block.clone());
            }
        }
        let shadow = self.shadows.lock().unwrap()[number].clone();
        let block = Arc::new(self.device.upload(&shadow)?);
        self.blocks.lock().unwrap()[number].0 = Some(block.clone());
        Ok(block)
    }

    /// Changes the host's copy: the device's is stale, and dropped.
    fn change(&self, number: usize, at: usize, value: u32) {
        let shadow = &mut self.shadows.lock().unwrap()[number];
        let len = shadow.len();
        shadow[at % len] = value;
        self.blocks.lock().unwrap()[number].0 = None;
    }
}

/// The mix of SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }
}

/// One operation: read, use two at once, change, or hold a vector for a while.
fn step(
    store: &Store,
    vectors: &mut Vec<(Buffer<u32>, Vec<u32>)>,
    random: &mut Random,
) -> Result<(), DeviceError> {
    let number = random.below(BLOCKS);
    match random.below(10) {
        0..=5 => {
            let block = store.get(number)?;
            assert_eq!(block.to_vec()?, store.shadows.lock().unwrap()[number]);
        }
        6 => {
            let (first, second) = (store.get(number)?, store.get((number + 1) % BLOCKS)?);
            assert_eq!(
                first.read_scalar(0)?,
                store.shadows.lock().unwrap()[number][0]
            );
            assert!(!second.is_empty());
        }
        7 => store.change(number, random.below(1_000), random.next() as u32),
        8 => {
            let values: Vec<u32> = (0..1 + random.below(2_000))
                .map(|_| random.next() as u32)
                .collect();
            vectors.push((store.device.upload(&values)?, values));
        }
        _ => {
            if !vectors.is_empty() {
                let (vector, values) = vectors.swap_remove(random.below(vectors.len()));
                assert_eq!(vector.to_vec()?, values);
            }
        }
    }
    Ok(())
}

fn soak(device: &Device, policy: EvictionPolicy, operations: usize) {
    device.limit_memory(MemoryOptions {
        limit_bytes: Some(4 * ROOM),
        eviction: policy,
        ..MemoryOptions::default()
    });
    let random = &mut Random(7);
    let store = Store::new(device, random);
    let mut vectors = Vec::new();
    let mut refused = 0;
    for _ in 0..operations {
        match step(&store, &mut vectors, random) {
            Ok(()) => {}
            // Vectors hold what there is.
            Err(DeviceError::OutOfMemory { .. }) => {
                refused += 1;
                vectors.truncate(vectors.len() / 2);
            }
            Err(error) => panic!("{error}"),
        }
        assert!(device.usage().live_bytes <= 4 * ROOM);
    }
    let usage = device.usage();
    assert!(
        usage.evictions > 0 && usage.peak_bytes <= 4 * ROOM,
        "{usage:?}"
    );
    assert!(
        refused * 10 < operations,
        "{refused} of {operations} refused"
    );
    drop((store, vectors));
    assert_eq!(device.usage().live_bytes, 0);
}

#[test]
fn every_read_is_what_was_written_at_twice_the_memory() {
    let operations = std::env::var("WARPFUSE_SOAK").ok();
    let operations =
        operations.map_or(20_000, |text| text.parse().expect("a number of operations"));
    for policy in [EvictionPolicy::LeastRecentlyUsed, EvictionPolicy::CostAware] {
        soak(&Device::cpu(), policy, operations);
    }
}
