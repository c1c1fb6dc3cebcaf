//! Blocks of X of which as many as fit stay on the device, and the others stream through it in every pass.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::Part;
use super::place::Place;
use crate::device::feed::{Feed, Sent, Source};
use crate::device::memory::{Candidate, Evictable, Ledger, NextUse};
use crate::device::pinned::PinnedBlock;
use crate::device::{Buffer, Device, DeviceError};
use crate::layout::packed::Image;
use crate::matrix::Features;
use crate::ops::{Number, OpError, Residency};
use crate::parallel::locked;
use crate::plan::streaming::{LinkRates, SLOTS, resident_blocks};

/// Images of the blocks of X, on the host and in part on a device.
pub(in crate::ops) struct BlockStream<T, I> {
    device: Device,
    source: Arc<Features<T>>,
    images: Vec<I>,
    /// The blocks from this one on are the CPU's, where both compute.
    of_device: usize,
    residents: Arc<Residents>,
    /// One pass at a time.
    lane: Mutex<Lane>,
    pinned: PinnedImages,
}

/// What blocks cross through, and those that cross for the next pass.
struct Lane {
    feed: Feed,
    ahead: Ahead,
}

/// The blocks that stay, until something else needs the memory.
struct Residents {
    ledger: Ledger,
    blocks: Mutex<Vec<Resident>>,
    seconds_per_byte: f64,
    passes: Passes,
}

/// Where passes over the blocks are.
struct Passes {
    /// 0 where nobody has said.
    announced: AtomicU64,
    begun: AtomicU64,
    /// The next block of the pass at hand; as many as there are without one.
    at: AtomicUsize,
}

#[derive(Default)]
struct Resident {
    buffer: Option<Arc<Buffer<u32>>>,
    last_use: u64,
}

/// Numbers of blocks that were sent and not read, in their order.
type Ahead = VecDeque<(usize, Sent)>;

/// Images in page-locked memory: from the pass on from which that pays, as far as it may be had.
struct PinnedImages {
    blocks: Mutex<Vec<Option<Arc<PinnedBlock>>>>,
    pins_from: u64,
    passes: AtomicU64,
    is_full: AtomicBool,
}

impl<T: Number, I: Image<T>> BlockStream<T, I> {
    /// Blocks of `source` with these images. What else X takes of the device is there already: `taken` bytes.
    pub(in crate::ops) fn new(
        device: &Device,
        source: Arc<Features<T>>,
        images: Vec<I>,
        (place, taken): (&Place, u64),
    ) -> Result<Self, OpError> {
        let largest = images.iter().map(I::words).max().unwrap_or(0);
        let feed = Feed::new(device, largest, SLOTS)?;
        let rates = LinkRates::of_threads(rayon::current_num_threads());
        let mean = images
            .iter()
            .map(|image| 4 * image.words() as u64)
            .sum::<u64>();
        let mean = mean / images.len().max(1) as u64;
        let blocks = images.iter().map(|_| Resident::default()).collect();
        let residents = Arc::new(Residents {
            ledger: device.ledger().clone(),
            blocks: Mutex::new(blocks),
            seconds_per_byte: 1e-9 / rates.staged_gbs,
            passes: Passes {
                announced: AtomicU64::new(0),
                begun: AtomicU64::new(0),
                at: AtomicUsize::new(images.len()),
            },
        });
        let weak: Weak<Residents> = Arc::downgrade(&residents);
        device.ledger().register(weak);
        let stream = BlockStream {
            device: device.clone(),
            source,
            residents,
            lane: Mutex::new(Lane {
                feed,
                ahead: Ahead::new(),
            }),
            of_device: of_device::<T, I>(&images, place.host_share()),
            pinned: PinnedImages {
                blocks: Mutex::new(images.iter().map(|_| None).collect()),
                pins_from: rates.pins_from(mean),
                passes: AtomicU64::new(0),
                is_full: AtomicBool::new(false),
            },
            images,
        };
        let taken = taken + 4 * (SLOTS * largest) as u64;
        stream.keep(place.room(device, taken))?;
        Ok(stream)
    }

    /// Fills this many bytes with blocks.
    fn keep(&self, room: u64) -> Result<(), OpError> {
        let own = self.images[..self.of_device].iter();
        let bytes = own.map(|image| 4 * image.words() as u64);
        let stays = resident_blocks(&bytes.collect::<Vec<_>>(), room);
        for number in (0..stays.len()).filter(|number| stays[*number]) {
            let fill = self.fill(number);
            let uploaded = self.device.upload_with(self.images[number].words(), fill);
            let buffer = match uploaded {
                Ok(buffer) => buffer,
                // Somebody else took the room meanwhile; the others stream.
                Err(DeviceError::OutOfMemory { .. }) => break,
                Err(error) => return Err(error.into()),
            };
            locked(&self.residents.blocks)[number].buffer = Some(Arc::new(buffer));
        }
        let (kept, all) = (self.resident_bytes(), self.bytes());
        tracing::info!(
            blocks = self.images.len(),
            resident_bytes = kept,
            streamed_bytes = all - kept,
            "X does not fit the device: it streams"
        );
        Ok(())
    }

    /// Makes words of a block.
    fn fill(&self, number: usize) -> impl Fn(Range<usize>, &mut [u32]) + Sync + '_ {
        let (image, source) = (&self.images[number], &*self.source);
        move |range, to| image.fill(source, range, to)
    }

    /// What of X the device has.
    pub(in crate::ops) fn residency(&self) -> Residency {
        Residency {
            streams: true,
            block_bytes: self.bytes(),
            resident_bytes: self.resident_bytes(),
            blocks: self.images.len(),
            host_rows: self.host_rows().len(),
        }
    }

    /// Bytes of the blocks that stay.
    fn resident_bytes(&self) -> u64 {
        let blocks = locked(&self.residents.blocks);
        let kept = blocks.iter().filter_map(|block| block.buffer.as_ref());
        kept.map(|buffer| 4 * buffer.len() as u64).sum()
    }

    /// Bytes of all blocks.
    fn bytes(&self) -> u64 {
        self.images
            .iter()
            .map(|image| 4 * image.words() as u64)
            .sum()
    }

    /// This many passes are to come: what streams is page-locked at once where that pays.
    pub(in crate::ops) fn announce(&self, passes: u64) {
        self.pinned.passes.fetch_max(passes, Ordering::Relaxed);
        self.residents.passes.announce(passes);
    }

    /// X, and those of its rows that are the CPU's.
    pub(in crate::ops) fn of_host(&self) -> (Arc<Features<T>>, Range<usize>) {
        (self.source.clone(), self.host_rows())
    }

    fn host_rows(&self) -> Range<usize> {
        let first = self.images.get(self.of_device);
        let rows = self.source.rows();
        first.map_or(rows, I::first_row)..rows
    }

    /// The images.
    pub(in crate::ops) fn images(&self) -> &[I] {
        &self.images
    }

    /// Walks over the blocks of a part in their order; each crosses the link at most once, the next ones while kernels read what
    /// `walk` has launched. Where a further pass was announced, its first blocks cross when this one has come to its end, while
    /// its last kernels and those between the two passes run.
    pub(in crate::ops) fn each(
        &self,
        part: Part,
        mut walk: impl FnMut(usize, &I, &Buffer<u32>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let end = match part {
            Part::All => self.images.len(),
            Part::OfDevice => self.of_device,
        };
        let mut lane = locked(&self.lane);
        let Lane { feed, ahead: left } = &mut *lane;
        // Put back at the end: a pass that fails leaves none.
        let mut ahead = std::mem::take(left);
        if ahead.is_empty() {
            // A pass that failed may have left blocks unread.
            feed.reset();
        }
        self.pinned.passes.fetch_add(1, Ordering::Relaxed);
        let passes = &self.residents.passes;
        passes.begun.fetch_add(1, Ordering::Relaxed);
        for (number, image) in self.images[..end].iter().enumerate() {
            passes.at.store(number, Ordering::Relaxed);
            match self.residents.get(number) {
                Some(buffer) => walk(number, image, &buffer)?,
                None => {
                    let sent = self.sent(feed, &mut ahead, number)?;
                    feed.read(sent, |buffer| walk(number, image, buffer))?;
                }
            }
            self.send_ahead(feed, &mut ahead, number + 1..end)?;
        }
        passes.at.store(self.images.len(), Ordering::Relaxed);
        if passes.are_to_come() {
            self.send_ahead(feed, &mut ahead, 0..end)?;
        }
        *left = ahead;
        Ok(())
    }

    /// A block that was sent, or is now: it left the device after others were.
    fn sent(&self, feed: &mut Feed, ahead: &mut Ahead, number: usize) -> Result<Sent, OpError> {
        if let Some((_, sent)) = ahead.pop_front_if(|(of, _)| *of == number) {
            return Ok(sent);
        }
        if feed.free() == 0
            && let Some((_, sent)) = ahead.pop_back()
        {
            feed.cancel(sent);
        }
        self.send(feed, number)
    }

    /// Sends blocks among `numbers` that are not on the device, as long as there is room for them.
    fn send_ahead(
        &self,
        feed: &mut Feed,
        ahead: &mut Ahead,
        numbers: Range<usize>,
    ) -> Result<(), OpError> {
        while feed.free() > 0 {
            let from = ahead.back().map_or(numbers.start, |(last, _)| last + 1);
            let Some(next) = self.residents.next_absent(from..numbers.end) else {
                break;
            };
            ahead.push_back((next, self.send(feed, next)?));
        }
        Ok(())
    }

    fn send(&self, feed: &mut Feed, number: usize) -> Result<Sent, OpError> {
        let words = self.images[number].words();
        let of_words = self.fill(number);
        let fill = |bytes: Range<usize>, to: &mut [u8]| {
            of_words(bytes.start / 4..bytes.end / 4, bytemuck::cast_slice_mut(to));
        };
        let pinned = || self.device.pinned(4 * words, &fill);
        let sent = self.source.reading(|| {
            Ok::<_, OpError>(match self.pinned.get(number, pinned)? {
                Some(block) => feed.send(words, Source::Pinned(&block))?,
                None => feed.send(words, Source::Made(&fill))?,
            })
        });
        sent?
    }
}

/// The number of blocks that are not the CPU's, which computes this share of the rows.
fn of_device<T, I: Image<T>>(images: &[I], host_share: f64) -> usize {
    let words: usize = images.iter().map(I::words).sum();
    let own = (1.0 - host_share) * words as f64;
    let mut passed = 0;
    let within = |image: &&I| {
        passed += image.words();
        // To the nearest whole block.
        passed as f64 - image.words() as f64 / 2.0 <= own
    };
    images.iter().take_while(within).count()
}

impl Passes {
    /// This many are to come.
    fn announce(&self, passes: u64) {
        let begun = self.begun.load(Ordering::Relaxed);
        let announced = begun.saturating_add(passes);
        self.announced.fetch_max(announced, Ordering::Relaxed);
    }

    /// Whether another one was announced.
    fn are_to_come(&self) -> bool {
        self.announced.load(Ordering::Relaxed) > self.begun.load(Ordering::Relaxed)
    }

    /// When block `number` of `count` is read next.
    fn next_use(&self, number: usize, count: usize) -> NextUse {
        let announced = self.announced.load(Ordering::Relaxed);
        if announced == 0 {
            return NextUse::Unknown;
        }
        let at = self.at.load(Ordering::Relaxed);
        if number >= at {
            return NextUse::After((number - at) as u64);
        }
        match self.are_to_come() {
            true => NextUse::After((count - at + number) as u64),
            false => NextUse::Never,
        }
    }
}

impl Residents {
    /// A block that stays, in use until the returned value is dropped.
    fn get(&self, number: usize) -> Option<Arc<Buffer<u32>>> {
        let block = &mut locked(&self.blocks)[number];
        let buffer = block.buffer.clone()?;
        block.last_use = self.ledger.tick();
        Some(buffer)
    }

    /// The first of these blocks that is not on the device.
    fn next_absent(&self, mut numbers: Range<usize>) -> Option<usize> {
        let blocks = locked(&self.blocks);
        numbers.find(|at| blocks[*at].buffer.is_none())
    }
}

/// Whether nobody uses the buffer: then nobody launches anything that reads it either, and what was launched ends before
/// its memory is freed.
fn is_idle(buffer: &Arc<Buffer<u32>>) -> bool {
    Arc::strong_count(buffer) == 1
}

impl Evictable for Residents {
    fn candidates(&self) -> Vec<Candidate> {
        let blocks = locked(&self.blocks);
        let count = blocks.len();
        let blocks = blocks.iter().enumerate();
        let idle = blocks.filter_map(|(number, block)| {
            let buffer = block.buffer.as_ref().filter(|buffer| is_idle(buffer))?;
            let bytes = 4 * buffer.len();
            Some(Candidate {
                number,
                bytes,
                last_use: block.last_use,
                restore_seconds: bytes as f64 * self.seconds_per_byte,
                next_use: self.passes.next_use(number, count),
            })
        });
        idle.collect()
    }

    fn evict(&self, number: usize) -> usize {
        let buffer = {
            let block = &mut locked(&self.blocks)[number];
            block.buffer.take_if(|buffer| is_idle(buffer))
        };
        buffer.map_or(0, |buffer| 4 * buffer.len())
    }
}

impl PinnedImages {
    /// A block's image in page-locked memory, made by `make` if it pays and there is room; none where not.
    fn get(
        &self,
        number: usize,
        make: impl FnOnce() -> Result<PinnedBlock, DeviceError>,
    ) -> Result<Option<Arc<PinnedBlock>>, DeviceError> {
        if let Some(block) = &locked(&self.blocks)[number] {
            return Ok(Some(block.clone()));
        }
        let pays = self.passes.load(Ordering::Relaxed) >= self.pins_from;
        if !pays || self.is_full.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match make() {
            Ok(block) => {
                let block = Arc::new(block);
                locked(&self.blocks)[number] = Some(block.clone());
                Ok(Some(block))
            }
            // The driver refuses; blocks that cross without are as good. How many there may be follows from the host's memory.
            Err(DeviceError::OutOfMemory { .. } | DeviceError::Driver { .. }) => {
                self.is_full.store(true, Ordering::Relaxed);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
