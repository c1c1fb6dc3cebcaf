//! What of an X that is larger than a device's memory stays there, and how the rest crosses the link.
//!
//! A pass over X in a cycle defeats every policy that replaces what was not read for longest: with room for all blocks but
//! one, each is gone when it is wanted. So as many blocks as fit stay, and the others stream through [`SLOTS`] blocks of
//! device memory; a pass costs what streams, `(bytes − resident) / link`, or what its kernels take where that is more.

/// Blocks of device memory through which X streams: one is filled while the other is read.
pub const SLOTS: usize = 2;
/// Bytes of a block at most, in compressed rows as they came: 64 MiB cross a PCIe 5 link at 55.3 GB/s, 16 MiB at 54.9.
const MOST_BLOCK: u64 = 128 << 20;
/// Bytes of a block at least.
const LEAST_BLOCK: u64 = 1 << 10;
/// Blocks of rows as they came that fill a device: what streams passes through [`SLOTS`] of them, and is unpacked into one and
/// a half, so that an eighth of the memory is not for what stays.
const BLOCKS: u64 = 28;

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
    /// Vectors that products take at least.
    pub fn least_vectors(&self) -> u64 {
        self.element * (self.rows + 4 * self.cols)
    }

    /// Vectors that solvers have.
    fn usual_vectors(&self) -> u64 {
        self.element * (8 * self.rows + 16 * self.cols)
    }

    /// Bytes to leave free beside the blocks that stay, of `room`.
    pub fn reserve(&self, room: u64) -> u64 {
        self.usual_vectors().min(room / 4)
    }

    /// Where X lies on a device with `room` for it and for vectors; `None` where there is no limit.
    ///
    /// ```
    /// use warpfuse::plan::streaming::{Footprint, Residence};
    /// let x = Footprint { bytes: 8 << 30, rows: 50_000_000, cols: 1_000_000, element: 4 };
    /// assert_eq!(x.residence(None), Residence::Whole);
    /// assert_eq!(x.residence(Some(80 << 30)), Residence::Whole);
    /// assert_eq!(x.residence(Some(9 << 30)), Residence::Blocks(128 << 20));
    /// assert_eq!(x.residence(Some(2 << 30)), Residence::PackedBlocks((2 << 30) / 28));
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
            self.packed(room)
        }
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

/// How many blocks of these bytes, from the first on, stay within `room` bytes.
///
/// ```
/// use warpfuse::plan::streaming::resident_prefix;
/// assert_eq!(resident_prefix([10, 10, 10, 10], 35), 3);
/// ```
pub fn resident_prefix(blocks: impl IntoIterator<Item = u64>, room: u64) -> usize {
    let mut left = room;
    let fits = |bytes: &u64| {
        let rest = left.checked_sub(*bytes);
        left = rest.unwrap_or(left);
        rest.is_some()
    };
    blocks.into_iter().take_while(fits).count()
}

/// What the host and the link do, 10⁹ bytes per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkRates {
    /// From page-locked memory.
    pub pinned_gbs: f64,
    /// From ordinary memory, by way of page-locked blocks that all threads fill.
    pub staged_gbs: f64,
    /// Page-locking.
    pub pinning_gbs: f64,
}

impl LinkRates {
    /// PCIe 5 x16 beside a host with this many threads: measured with 16 and with one, the rest in proportion.
    pub fn of_threads(threads: usize) -> LinkRates {
        LinkRates {
            pinned_gbs: 55.4,
            staged_gbs: (8.0 * threads as f64).min(43.0),
            pinning_gbs: 1.5,
        }
    }

    /// Passes from which it pays to page-lock what streams.
    ///
    /// ```
    /// use warpfuse::plan::streaming::LinkRates;
    /// assert_eq!(LinkRates::of_threads(16).pins_from(), 129);
    /// assert_eq!(LinkRates::of_threads(2).pins_from(), 15);
    /// ```
    pub fn pins_from(&self) -> u64 {
        let saved = 1.0 / self.staged_gbs - 1.0 / self.pinned_gbs;
        match saved > 0.0 {
            true => (1.0 / self.pinning_gbs / saved).ceil() as u64,
            false => u64::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_room_for_all_but_one_block_one_streams() {
        assert_eq!(resident_prefix(vec![64; 10], 64 * 9), 9);
        assert_eq!(resident_prefix(vec![64; 10], 64 * 9 - 1), 8);
        assert_eq!(resident_prefix(vec![64; 10], u64::MAX), 10);
        assert_eq!(resident_prefix([], 10), 0);
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
