//! What of an X that is larger than a device's memory stays there, and how the rest crosses the link.
//!
//! A pass over X in a cycle defeats every policy that replaces what was not read for longest: with room for all blocks but
//! one, each is gone when it is wanted. So as many blocks as fit stay, spread evenly over X, and the others stream through
//! [`SLOTS`] blocks of device memory while kernels read those that stay; a pass costs what streams,
//! `(bytes − resident) / link`, or what its kernels take where that is more.

use serde::{Deserialize, Serialize};

use super::{Problem, StoredValues, Summation};

/// Blocks of device memory through which X streams: one is filled while the other is read, and both are while neither is.
pub const SLOTS: usize = 2;
/// Bytes of a block at most, in compressed rows as they came: 64 MiB cross a PCIe 5 link at 55.3 GB/s, 16 MiB at 54.9.
const MOST_BLOCK: u64 = 128 << 20;
/// Bytes of a block at least.
const LEAST_BLOCK: u64 = 1 << 10;
/// Blocks of rows as they came that fill a device: what streams passes through [`SLOTS`] of them, and is unpacked into one and
/// a half, so that an eighth of the memory is not for what stays.
const BLOCKS: u64 = 28;

/// What blocks that cross are made for at least: this part of a device's room. A fit on the shape of kddb in reproducible sums has
/// 2.08 GB of vectors and sums; under 2 GiB blocks for half of it, 57 MB for three on the device, did not fit beside them.
const LEAST_FOR_BLOCKS: u64 = 4;

/// What works with an X that does not fit, and has vectors beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Beside {
    /// Products, whose vectors come and go.
    #[default]
    Products,
    /// A solver, which keeps its vectors from the first evaluation to the last one, and adds up so.
    Solver(Summation),
}

/// The part of a device's room that blocks of X have whatever vectors a solver keeps: with less, all of X streams.
const LEAST_OF_X: u64 = 16;

/// Bytes of fixed-point sums for each column: integers, and exponents of two vectors.
const FIXED_SUM_BYTES: u64 = 16;

/// How large X is as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Bytes of X on a device.
    pub bytes: u64,
    /// m.
    pub rows: u64,
    /// n.
    pub cols: u64,
    /// Bytes of an element of vectors.
    pub element: u64,
}

/// Where X lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residence {
    /// All of it on the device, in one block.
    Whole,
    /// In blocks of this many bytes, counted as X came, each as it came: all of them fit, but little else.
    Blocks(u64),
    /// In blocks of this many bytes, counted as X came, each in as few bytes as hold it: as many as fit stay.
    PackedBlocks(u64),
}

impl Footprint {
    /// That of a problem, as a device has it: dense rows at their distance, sparse ones with 32-bit offsets.
    pub fn of(problem: &Problem) -> Footprint {
        let element = u64::from(problem.dtype.bytes());
        Footprint {
            bytes: match problem.nnz {
                None => problem
                    .rows
                    .saturating_mul(problem.pitch)
                    .saturating_mul(element),
                Some(nnz) => nnz
                    .saturating_mul(4 + element)
                    .saturating_add(4 * (problem.rows + 1)),
            },
            rows: problem.rows,
            cols: problem.cols,
            element,
        }
    }

    /// Vectors that products take at least.
    pub fn least_vectors(&self) -> u64 {
        self.element * (self.rows + 4 * self.cols)
    }

    /// Vectors that solvers have.
    fn usual_vectors(&self) -> u64 {
        self.element * (8 * self.rows + 16 * self.cols)
    }

    /// Vectors that a solver keeps: ten of columns and five of rows. Newton's method on the shape of kddb had 1.60 GB, and on 10,000,000 ×
    /// 1,000,000 0.25; in reproducible sums 2.08 GB on the former.
    fn kept_vectors(&self, summation: Summation) -> u64 {
        let sums = match summation {
            Summation::Free => 0,
            Summation::Reproducible => FIXED_SUM_BYTES * self.cols,
        };
        self.element * (5 * self.rows + 10 * self.cols) + sums
    }

    /// Bytes to leave free beside the blocks that stay, of `room`: what is evicted for vectors was sent for nothing, and is
    /// page-locked when a pass first wants it.
    ///
    /// ```
    /// use warpfuse::plan::Summation;
    /// use warpfuse::plan::streaming::{Beside, Footprint};
    /// let kddb = Footprint { bytes: 4_608_000_000, rows: 19_264_097, cols: 29_890_095, element: 4 };
    /// assert_eq!(kddb.reserve(2 << 30, Beside::Solver(Summation::Free)), 1_580_885_740);
    /// assert_eq!(kddb.reserve(2 << 30, Beside::Products), 1 << 29);
    /// ```
    pub fn reserve(&self, room: u64, beside: Beside) -> u64 {
        match beside {
            Beside::Products => self.usual_vectors().min(room / 4),
            Beside::Solver(summation) => self.kept_vectors(summation).min(room - room / LEAST_OF_X),
        }
    }

    /// Where X lies on a device with `room` for it and for vectors; `None` where there is no limit.
    ///
    /// ```
    /// use warpfuse::plan::streaming::{Footprint, Residence};
    /// let x = Footprint { bytes: 8 << 30, rows: 50_000_000, cols: 1_000_000, element: 4 };
    /// assert_eq!(x.residence(None), Residence::Whole);
    /// assert_eq!(x.residence(Some(80 << 30)), Residence::Whole);
    /// assert_eq!(x.residence(Some(9 << 30)), Residence::Blocks(128 << 20));
    /// // Solvers' vectors take 1.7 GB of 4 GiB, and blocks what they leave.
    /// assert_eq!(x.residence(Some(4 << 30)), Residence::PackedBlocks(((4 << 30) - 1_664_000_000) / 28));
    /// assert_eq!(x.residence(Some(2 << 30)), Residence::PackedBlocks((1 << 29) / 28));
    /// ```
    pub fn residence(&self, room: Option<u64>) -> Residence {
        let Some(room) = room else {
            return Residence::Whole;
        };
        let block = block_bytes(room);
        if self.bytes + self.usual_vectors() <= room {
            Residence::Whole
        } else if self.bytes + self.least_vectors() + SLOTS as u64 * block <= room {
            Residence::Blocks(block)
        } else {
            self.packed_beside_vectors(room)
        }
    }

    /// Where X lies that has to share `room` bytes with vectors, and needs more: blocks are for what solvers leave of it, and
    /// where they leave next to nothing, small.
    pub fn packed_beside_vectors(&self, room: u64) -> Residence {
        let left = room.saturating_sub(self.usual_vectors());
        self.packed(left.max(room / LEAST_FOR_BLOCKS))
    }

    /// Blocks of X where it lies so.
    ///
    /// ```
    /// use warpfuse::plan::streaming::{Footprint, Residence};
    /// let x = Footprint { bytes: 1_000, rows: 50, cols: 10, element: 4 };
    /// assert_eq!(x.blocks(Residence::Whole), 1);
    /// assert_eq!(x.blocks(Residence::PackedBlocks(300)), 4);
    /// ```
    pub fn blocks(&self, residence: Residence) -> u64 {
        match residence {
            Residence::Whole => 1,
            Residence::Blocks(bytes) | Residence::PackedBlocks(bytes) => {
                self.bytes.div_ceil(bytes.max(1)).max(1)
            }
        }
    }

    /// Bytes of a block of X as it came, on a device with so much room.
    pub fn block_bytes(&self, room: u64) -> u64 {
        block_bytes(room).min(self.bytes.max(1))
    }

    /// Where X lies that may take `room` bytes and needs more.
    pub fn packed(&self, room: u64) -> Residence {
        Residence::PackedBlocks(block_bytes(room))
    }
}

/// Bytes of a block of X as it came, on a device with so much room.
fn block_bytes(room: u64) -> u64 {
    (room / BLOCKS).clamp(LEAST_BLOCK, MOST_BLOCK)
}

/// Which blocks of these bytes stay on a device with `room` for them: as many as fit, spread evenly over X, so that what
/// streams crosses while kernels read what stays.
///
/// ```
/// use warpfuse::plan::streaming::resident_blocks;
/// assert_eq!(resident_blocks(&[10; 4], 20), [true, false, true, false]);
/// assert_eq!(resident_blocks(&[10; 4], 39).iter().filter(|stays| **stays).count(), 3);
/// ```
pub fn resident_blocks(blocks: &[u64], room: u64) -> Vec<bool> {
    let all: u64 = blocks.iter().sum();
    let share = room as f64 / all.max(1) as f64;
    let (mut kept, mut passed) = (0_u64, 0_u64);
    let mut stay = |bytes: u64| {
        passed += bytes;
        // The place of the sum of what stays, rounded to a whole block.
        let is_due = kept as f64 + bytes as f64 / 2.0 <= share * passed as f64;
        let stays = is_due && kept + bytes <= room;
        kept += if stays { bytes } else { 0 };
        stays
    };
    let mut stays: Vec<bool> = blocks.iter().map(|bytes| stay(*bytes)).collect();
    // What rounding has left.
    for (stays, bytes) in stays.iter_mut().zip(blocks) {
        if !*stays && kept + bytes <= room {
            *stays = true;
            kept += bytes;
        }
    }
    stays
}

/// X in as few bytes as hold it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packed {
    /// Bytes as they cross the link.
    pub bytes: u64,
    /// Bytes of the arrays that are made of them on the device, block after block: what is packed no smaller is none.
    pub unpacked_bytes: u64,
}

impl Packed {
    /// A problem with columns of 16 bits where these are enough, and values in as few as `values` says.
    pub fn of(problem: &Problem, values: StoredValues) -> Packed {
        let element = u64::from(problem.dtype.bytes());
        let value = u64::from(values.bytes(problem.dtype));
        let unpacked = if value < element { element } else { 0 };
        match problem.nnz {
            Some(nnz) => {
                let is_narrow = problem.cols <= 1 << 16;
                let (column, made) = if is_narrow { (2, 4) } else { (4, 0) };
                Packed {
                    bytes: nnz.saturating_mul(column + value) + 4 * problem.rows,
                    unpacked_bytes: nnz.saturating_mul(made + unpacked),
                }
            }
            None => {
                let elements = problem.rows.saturating_mul(problem.pitch);
                Packed {
                    bytes: elements.saturating_mul(value),
                    unpacked_bytes: elements.saturating_mul(unpacked),
                }
            }
        }
    }
}

/// What of an X in packed blocks stays on a device, and what crosses the link in a pass: by arithmetic alone, before any
/// block is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Streamed {
    /// Bytes of all blocks of the GPU's rows, as they cross the link.
    pub packed_bytes: u64,
    /// Bytes of those that stay.
    pub resident_bytes: u64,
    /// Bytes of one of them.
    pub block_bytes: u64,
}

/// Seconds between two blocks that cross one after the other: 87 of 11 MB took 0.35 ms longer than their bytes, 542 of
/// 2.7 MB 2.3 ms (H200, `benches/results/h200/system.jsonl` of e0d8634).
pub(super) const BETWEEN_BLOCKS: f64 = 4.2e-6;

/// Seconds by which a block that all threads make takes longer than its bytes: the shape of kddb under 2 GiB took 9.0 s in 61
/// blocks and 14.5 in 484, in 39 passes (H100).
const BETWEEN_MADE: f64 = 3.4e-4;

/// 10⁹ bytes a second from ordinary memory by the driver's own copies (measured on the machine with an H200).
pub(super) const PAGEABLE_GBS: f64 = 7.0;
/// Bytes that take the driver's way before page-locked blocks are made. Making as many bytes of those takes 2 ms in large
/// pages and 12 to 25 by the driver, and this copy 5 by the driver.
pub(crate) const RENTED_BYTES: u64 = 32 << 20;

impl Streamed {
    /// Of an X of this footprint in packed blocks, of which a device may have `room` bytes, where the CPU computes a `share`
    /// of the rows.
    ///
    /// ```
    /// use warpfuse::plan::streaming::{Footprint, Packed, Streamed};
    /// let x = Footprint { bytes: 1_600_000_000, rows: 781_250, cols: 512, element: 4 };
    /// let as_it_is = Packed { bytes: x.bytes, unpacked_bytes: 0 };
    /// let quarter = Streamed::of(&x, as_it_is, (400_000_000, 0.0));
    /// // 1.2302·10⁹ bytes crossed on an H200.
    /// assert!((quarter.crossing_bytes() as f64 / 1.2302e9 - 1.0).abs() < 0.02);
    /// ```
    pub fn of(x: &Footprint, packed: Packed, (room, share): (u64, f64)) -> Streamed {
        let of_block = x.block_bytes(room) as f64 / x.bytes.max(1) as f64;
        let block = (packed.bytes as f64 * of_block) as u64;
        // Blocks that cross, and what one of them is unpacked to.
        let unpacked = packed.unpacked_bytes as f64 * of_block;
        let taken = SLOTS as u64 * block + unpacked as u64;
        let packed = (packed.bytes as f64 * (1.0 - share)) as u64;
        let fits = room.saturating_sub(taken) / block.max(1) * block;
        Streamed {
            packed_bytes: packed,
            resident_bytes: packed.min(fits),
            block_bytes: block,
        }
    }

    /// Bytes that cross the link in a pass.
    pub fn crossing_bytes(&self) -> u64 {
        self.packed_bytes - self.resident_bytes
    }

    /// Seconds that they take at this rate, 10⁹ bytes per second.
    pub fn crossing_seconds(&self, gbs: f64) -> f64 {
        let bytes = self.crossing_bytes();
        let blocks = bytes.div_ceil(self.block_bytes.max(1));
        bytes as f64 / (gbs * 1e9) + blocks as f64 * BETWEEN_BLOCKS
    }
}

/// What the host and the link do, 10⁹ bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LinkRates {
    /// From page-locked memory.
    pub pinned_gbs: f64,
    /// From ordinary memory, by way of page-locked blocks that all threads fill.
    pub staged_gbs: f64,
    /// Page-locking.
    pub pinning_gbs: f64,
}

/// 10⁹ bytes a second that are touched, registered and filled: 1 GiB in large pages was touched and registered at 18 to 20 by
/// 16 threads, which fill it at 40 (H100).
const MOST_PINNING_GBS: f64 = 12.0;

impl LinkRates {
    /// PCIe 5 x16 beside a host with this many threads: measured with 16 and with one, the rest in proportion.
    pub fn of_threads(threads: usize) -> LinkRates {
        LinkRates {
            pinned_gbs: 55.4,
            staged_gbs: (8.0 * threads as f64).min(43.0),
            pinning_gbs: (2.5 * threads as f64).min(MOST_PINNING_GBS),
        }
    }

    /// Passes from which it pays to page-lock what streams, in blocks of `block_bytes`.
    ///
    /// ```
    /// use warpfuse::plan::streaming::LinkRates;
    /// let (few, many) = (LinkRates::of_threads(2), LinkRates::of_threads(16));
    /// assert!(few.pins_from(64 << 20) < many.pins_from(64 << 20));
    /// // Small blocks are made at a lower rate than large ones.
    /// assert!(many.pins_from(4 << 20) < 20);
    /// ```
    pub fn pins_from(&self, block_bytes: u64) -> u64 {
        let made = self.made_seconds(1e9, 1e9 / block_bytes.max(1) as f64);
        let saved = made - 1.0 / self.pinned_gbs;
        match saved > 0.0 {
            true => (1.0 / self.pinning_gbs / saved).ceil() as u64,
            false => u64::MAX,
        }
    }

    /// Seconds in which bytes cross in blocks that are made on the way.
    pub fn made_seconds(&self, bytes: f64, blocks: f64) -> f64 {
        bytes / (self.staged_gbs * 1e9) + blocks * BETWEEN_MADE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::plan::Precision;

    fn count(blocks: &[u64], room: u64) -> usize {
        let stay = resident_blocks(blocks, room);
        stay.into_iter().filter(|stays| *stays).count()
    }

    #[test]
    fn with_room_for_all_but_one_block_one_streams() {
        for room in 0..=640 {
            assert_eq!(count(&[64; 10], room), room as usize / 64, "{room}");
        }
        assert_eq!(count(&[64; 10], u64::MAX), 10);
        assert_eq!(count(&[], 10), 0);
    }

    #[test]
    fn what_stays_is_spread_evenly() {
        for room in 1..100 {
            let stay = resident_blocks(&[1; 100], room);
            for len in 1..=100_u64 {
                let found = stay[..len as usize].iter().filter(|stays| **stays).count();
                let even = (room * len) as f64 / 100.0;
                assert!((found as f64 - even).abs() <= 1.0, "{room} {len}: {found}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_block_that_would_fit_streams(
            blocks in prop::collection::vec(1_u64..1_000, 0..50),
            room in 0_u64..60_000,
        ) {
            let stay = resident_blocks(&blocks, room);
            let kept: u64 = blocks.iter().zip(&stay).filter(|(_, stays)| **stays).map(|(b, _)| b).sum();
            prop_assert!(kept <= room);
            for (bytes, stays) in blocks.iter().zip(&stay) {
                prop_assert!(*stays || kept + bytes > room);
            }
        }
    }

    /// Bytes that crossed in a product of 400 million entries on an H200 (`benches/results/h200/system.jsonl` of e0d8634).
    #[test]
    fn what_crosses_is_what_was_counted() {
        let sparse = |cols| Problem::sparse(20_000_000, cols, 400_000_000, Precision::F32);
        let dense = Problem::dense(781_250, 512, Precision::F32);
        let (whole, equal) = (StoredValues::Whole, StoredValues::Equal);
        for (problem, values, percent, counted) in [
            (dense, whole, 25, 1_230_245_888),
            (dense, whole, 75, 487_329_792),
            (sparse(1_000_000), whole, 25, 2_518_642_432),
            (sparse(1_000_000), whole, 75, 995_725_568),
            (sparse(1_000_000), equal, 25, 915_064_832),
            (sparse(50_000), equal, 25, 110_053_120_u32),
        ] {
            let x = Footprint::of(&problem);
            let room = x.bytes * percent / 100;
            let found = Streamed::of(&x, Packed::of(&problem, values), (room, 0.0));
            let ratio = found.crossing_bytes() as f64 / f64::from(counted);
            assert!(
                (ratio - 1.0).abs() < 0.02,
                "{problem}, {percent} %: {ratio}"
            );
        }
    }

    #[test]
    fn what_is_not_for_blocks_that_stay_is_little() {
        for gib in [1, 2, 8, 80] {
            let room = gib << 30;
            let x = Footprint {
                bytes: 1 << 40,
                rows: 1 << 20,
                cols: 1 << 10,
                element: 4,
            };
            let Residence::PackedBlocks(block) = x.residence(Some(room)) else {
                panic!("it does not fit");
            };
            assert!(block * 7 / 2 <= room / 8, "{gib} GiB: {block}");
        }
    }
}
