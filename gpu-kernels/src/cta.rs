//! What the threads of one block (a cooperative thread array) can do.

mod shared;

pub use shared::Shared;

use crate::memory::{In, Out};
use crate::scalar::{Pack, Real, Word, Words, half_of_f32};

/// Threads that execute in lockstep.
pub const WARP: u32 = 32;

/// Whether what is read is wanted again soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Keep it in L1: it will be read again.
    Keep,
    /// Read once: leave L1 to others.
    Once,
}

/// From which lane of its group a lane takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shuffle {
    /// The lane whose number differs in these bits.
    Xor(u32),
    /// The lane this many higher; past the end its own.
    Down(u32),
    /// The lane this many lower; before the start its own.
    Up(u32),
    /// This lane.
    Index(u32),
}

/// One thread's view of its block: where it is, its neighbours, its memory.
///
/// Names follow `cuda_std` where it has them. `sync`, `sync_cluster` and `shuffle` are collective: all threads of
/// the block (of the cluster, of the warp's members) must call them together. Every accessor takes `#[track_caller]`, so
/// that a checking implementation can name the line of the body that made the access.
pub trait Cta: Sized {
    /// Number of this thread in its block.
    fn thread(&self) -> u32;
    /// Threads per block.
    fn threads(&self) -> u32;
    /// Number of this block in the grid.
    fn block(&self) -> u32;
    /// Blocks in the grid.
    fn blocks(&self) -> u32;

    /// Whether blocks may be launched in clusters here. Where not, a body for clusters does nothing, and is not launched.
    const CLUSTERS: bool = false;

    /// Number of this block in its cluster: blocks `c · N` to `c · N + N − 1` of the grid are cluster c of N blocks, which
    /// run at the same time. Where there are no clusters, each block is one.
    #[inline(always)]
    fn cluster_rank(&self) -> u32 {
        0
    }

    /// The same number, which the compiler takes for a new one each time: what follows from it is computed again where it
    /// is used, instead of waiting in registers since before the loop.
    #[inline(always)]
    fn fresh<T: Word>(&self, number: T) -> T {
        number
    }

    /// Says that blocks have `THREADS` threads and that an SM shall hold `BLOCKS` of them: a thread then gets no more
    /// registers than that leaves. Without it the assembler takes what it likes.
    #[inline(always)]
    fn launch_bounds<const THREADS: u32, const BLOCKS: u32>(&self) {}

    /// Waits for all threads of the block; orders their shared and global accesses.
    #[track_caller]
    fn sync(&self);

    /// Waits for all threads of all blocks of the cluster; orders their accesses to the shared memory of all of them. In
    /// place of [`sync`](Self::sync), which is of a block.
    ///
    /// Before the first one a block may not have begun, after its last one it may have ended: in between alone others
    /// may touch its shared memory.
    #[inline(always)]
    #[track_caller]
    fn sync_cluster(&self) {
        self.sync();
    }

    /// Lets the next launch in the stream begin as soon as all blocks of this one have called this or ended. Where launches do not
    /// overlap, it begins when this one has ended.
    #[inline(always)]
    fn let_next_begin(&self) {
        self.overlap(false);
    }

    /// Waits until the launch before this one in the stream has ended and what it wrote can be read: the duty of every
    /// thread, before it reads what that launch makes, and before it writes at all. Every entry begins with it but those that
    /// [wait themselves](crate::describe::Description::waits_itself).
    #[inline(always)]
    fn wait_for_previous(&self) {
        self.overlap(true);
    }

    /// One of the two, where launches overlap.
    #[inline(always)]
    fn overlap(&self, _waits: bool) {}

    /// Waits for all lanes of the warp; orders their shared and global accesses. The whole warp calls.
    #[track_caller]
    fn sync_warp(&self);

    /// Exchanges a value between the lanes of a warp named in `members`, in groups of `width` lanes.
    #[track_caller]
    fn shuffle<T: Word>(&self, value: T, from: Shuffle, width: u32, members: u32) -> T;

    /// The lanes among `members` for which `holds` is true, one bit each.
    #[track_caller]
    fn ballot(&self, holds: bool, members: u32) -> u32;

    /// Reads element `i` of read-only memory.
    #[track_caller]
    fn load<T: Word>(&self, from: In<'_, T>, i: usize, cache: Cache) -> T;

    /// Reads `P::LANES` elements from element `i` on in one access; `i` is a multiple of the lanes.
    #[track_caller]
    fn load_pack<T: Word, P: Words<T>>(&self, from: In<'_, T>, i: usize, cache: Cache) -> P;

    /// Reads element `i` of memory that this launch may also write.
    #[track_caller]
    fn read<T: Word>(&self, from: Out<'_, T>, i: usize) -> T;

    /// Reads a pack of such memory from element `i` on, a multiple of the pack's lanes.
    ///
    /// Unless an implementation has an instruction for it, one element after the other.
    #[inline(always)]
    #[track_caller]
    fn read_pack<T: Real>(&self, from: Out<'_, T>, i: usize) -> T::Pack {
        let mut pack = T::Pack::ZERO;
        for (lane, value) in pack.as_mut().iter_mut().enumerate() {
            *value = self.read(from, i + lane);
        }
        pack
    }

    /// Writes element `i`.
    #[track_caller]
    fn write<T: Word>(&self, to: Out<'_, T>, i: usize, value: T);

    /// Writes a pack from element `i` on, a multiple of the pack's lanes.
    ///
    /// Unless an implementation has an instruction for it, one element after the other.
    #[inline(always)]
    #[track_caller]
    fn write_pack<T: Real>(&self, to: Out<'_, T>, i: usize, pack: T::Pack) {
        for (lane, value) in pack.as_ref().iter().enumerate() {
            self.write(to, i + lane, *value);
        }
    }

    /// Adds to element `i` atomically, relaxed; the order of additions is not fixed.
    #[track_caller]
    fn add<T: Real>(&self, to: Out<'_, T>, i: usize, value: T);

    /// Adds a pack from element `i` on, a multiple of the pack's lanes: each element atomically, not all at once.
    ///
    /// Unless an implementation has an instruction for it, one element after the other.
    #[inline(always)]
    #[track_caller]
    fn add_pack<T: Real>(&self, to: Out<'_, T>, i: usize, pack: T::Pack) {
        for (lane, value) in pack.as_ref().iter().enumerate() {
            self.add(to, i + lane, *value);
        }
    }

    /// Draws a ticket: adds 1 to element `i` atomically, from `last` on to 0, and returns what was there.
    ///
    /// What a block wrote before it drew (by the thread that draws, or with a barrier in between) is visible
    /// to those who draw later (to the drawing thread, and after a barrier to its block): release and acquire
    /// of the device. When `last + 1` blocks draw one each, the one that gets `last` sees the work of all
    /// others, and the counter is ready for the next launch.
    #[track_caller]
    fn ticket(&self, counter: Out<'_, u32>, i: usize, last: u32) -> u32;

    /// Adds to element `i` atomically, relaxed, modulo 2⁶⁴: whatever the order of additions, the sum is the same.
    #[track_caller]
    fn add_wrapping(&self, to: Out<'_, u64>, i: usize, value: u64);

    /// Raises element `i` to `value` atomically, relaxed, if it is less.
    #[track_caller]
    fn raise(&self, to: Out<'_, u32>, i: usize, value: u32);

    /// Reads element `i` of memory that others [raise](Cta::raise) meanwhile: relaxed, of the device.
    #[track_caller]
    fn peek(&self, from: Out<'_, u32>, i: usize) -> u32;

    /// Replaces elements `i` and `i + 1` of memory that other GPUs [receive](Cta::receive) from; `i` is even. Each element
    /// arrives whole, in no order with anything else: relaxed, of the system.
    #[track_caller]
    fn send(&self, to: Out<'_, u64>, i: usize, packets: [u64; 2]);

    /// Reads elements `i` and `i + 1` of memory to which other GPUs [send](Cta::send); `i` is even.
    #[track_caller]
    fn receive(&self, from: Out<'_, u64>, i: usize) -> [u64; 2];

    /// Reads element `i` of memory that other GPUs and the host write: acquire of the system.
    #[track_caller]
    fn poll(&self, from: Out<'_, u32>, i: usize) -> u32;

    /// Reads element `i` of a shared array.
    #[track_caller]
    fn shared_read<T: Word>(&self, array: Shared<T>, i: usize) -> T;

    /// Writes element `i` of a shared array.
    #[track_caller]
    fn shared_write<T: Word>(&self, array: Shared<T>, i: usize, value: T);

    /// Writes element `i` of the array that is at the same place in the shared memory of block `rank` of the cluster, which
    /// may be this one. See [`sync_cluster`](Self::sync_cluster) for when it may.
    #[inline(always)]
    #[track_caller]
    fn shared_write_to<T: Word>(&self, rank: u32, array: Shared<T>, i: usize, value: T) {
        debug_assert_eq!(rank, 0, "where there are no clusters, each block is one");
        self.shared_write(array, i, value);
    }

    /// Adds to element `i` of a shared array atomically; the order of additions is not fixed.
    #[track_caller]
    fn shared_add<T: Real>(&self, array: Shared<T>, i: usize, value: T);

    /// Adds to element `i` of a shared array atomically, modulo 2³², and returns what was there.
    #[track_caller]
    fn shared_fetch_add(&self, array: Shared<u32>, i: usize, value: u32) -> u32;

    /// [`shared_fetch_add`](Self::shared_fetch_add) in block `rank` of the cluster, as
    /// [`shared_write_to`](Self::shared_write_to) writes there. In this block's own memory the other one is faster.
    #[inline(always)]
    #[track_caller]
    fn shared_fetch_add_to(&self, rank: u32, array: Shared<u32>, i: usize, value: u32) -> u32 {
        debug_assert_eq!(rank, 0, "where there are no clusters, each block is one");
        self.shared_fetch_add(array, i, value)
    }

    /// Reads the 16 bytes of a shared array that start at element `i`, a multiple of the pack's lanes; the array
    /// starts at a multiple of 16 bytes.
    ///
    /// Unless an implementation has an instruction for it, one element after the other.
    #[inline(always)]
    #[track_caller]
    fn shared_read_pack<T: Real>(&self, array: Shared<T>, i: usize) -> T::Pack {
        let mut pack = T::Pack::ZERO;
        for (lane, value) in pack.as_mut().iter_mut().enumerate() {
            *value = self.shared_read(array, i + lane);
        }
        pack
    }

    /// Writes the 16 bytes of a shared array that start at element `i`, as [`shared_read_pack`](Self::shared_read_pack)
    /// reads them.
    #[inline(always)]
    #[track_caller]
    fn shared_write_pack<T: Real>(&self, array: Shared<T>, i: usize, pack: T::Pack) {
        for (lane, value) in pack.as_ref().iter().enumerate() {
            self.shared_write(array, i + lane, *value);
        }
    }

    /// Begins to copy the first `present` elements of 16 bytes of global memory, from element `i` on, to a shared
    /// array, from element `j` on; the other elements become zero. `i`, `j` and the array's first byte are whole packs.
    ///
    /// The copy has been made when [`copies_done`](Self::copies_done) has returned; other threads see it after the
    /// next barrier. Unless an implementation has an instruction for it, it is made at once.
    #[inline(always)]
    #[track_caller]
    fn copy_pack<T: Word>(
        &self,
        to: Shared<T>,
        j: usize,
        from: In<'_, T>,
        i: usize,
        present: usize,
    ) {
        for lane in 0..16 / T::SIZE as usize {
            self.copy_one(to, j + lane, from, i + lane, lane < present);
        }
    }

    /// As [`copy_pack`](Self::copy_pack), all or nothing.
    #[inline(always)]
    #[track_caller]
    fn copy_whole_pack<T: Word>(
        &self,
        to: Shared<T>,
        j: usize,
        from: In<'_, T>,
        i: usize,
        present: bool,
    ) {
        for lane in 0..16 / T::SIZE as usize {
            self.copy_one(to, j + lane, from, i + lane, present);
        }
    }

    /// As [`copy_pack`](Self::copy_pack), one element, or zero where it is not present.
    #[inline(always)]
    #[track_caller]
    fn copy_one<T: Word>(&self, to: Shared<T>, j: usize, from: In<'_, T>, i: usize, present: bool) {
        let value = if present {
            self.load(from, i, Cache::Keep)
        } else {
            T::default()
        };
        self.shared_write(to, j, value);
    }

    /// As [`copy_one`](Self::copy_one), from memory that the kernel also writes.
    #[inline(always)]
    #[track_caller]
    fn copy_of<T: Real>(&self, to: Shared<T>, j: usize, from: Out<'_, T>, i: usize, present: bool) {
        let value = if present { self.read(from, i) } else { T::ZERO };
        self.shared_write(to, j, value);
    }

    /// A whole pack of [`copy_of`](Self::copy_of).
    #[inline(always)]
    #[track_caller]
    fn copy_pack_of<T: Real>(&self, to: Shared<T>, j: usize, from: Out<'_, T>, i: usize) {
        for lane in 0..T::Pack::LANES {
            self.copy_of(to, j + lane, from, i + lane, true);
        }
    }

    /// Ends a group of this thread's copies.
    #[inline(always)]
    fn end_copies(&self) {}

    /// Waits until all but the last `PENDING` groups of this thread's copies have been made.
    #[inline(always)]
    fn copies_done<const PENDING: u32>(&self) {}

    /// The nearest number with 10 bits after the point, of two the even one: what [`multiply_tf32`](Self::multiply_tf32)
    /// takes as it is.
    #[inline(always)]
    fn round_tf32(&self, x: f32) -> f32 {
        let bits = x.to_bits();
        let half = 0xfff + (bits >> 13 & 1);
        f32::from_bits(bits.wrapping_add(half) & 0xffff_e000)
    }

    /// `A·B + C` of a warp's 16 × 8, 8 × 8 and 16 × 8 matrices, A and B with 10 bits after the point.
    ///
    /// With g = lane / 4 and t = lane mod 4, a lane gives A(g, t), A(g + 8, t), A(g, t + 4), A(g + 8, t + 4), B(t, g)
    /// and B(t + 4, g), and has C(g, 2t), C(g, 2t + 1), C(g + 8, 2t), C(g + 8, 2t + 1). The lower bits of A and B are
    /// dropped; how C is rounded is the implementation's.
    #[track_caller]
    fn multiply_tf32(&self, a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4];

    /// The nearest IEEE 754 halves of two numbers, of two the even one, the first in the lower half of the word.
    #[inline(always)]
    fn halves(&self, [low, high]: [f32; 2]) -> u32 {
        half_of_f32(high) << 16 | half_of_f32(low)
    }

    /// `A·B + C` of a warp's 16 × 16, 16 × 8 and 16 × 8 matrices, A and B of IEEE 754 halves, C of f32. Products are exact;
    /// how their sum is rounded is the implementation's.
    ///
    /// With g = lane / 4 and t = lane mod 4, register r of a lane has two numbers each: of A the columns 8 · (r / 2) + 2t and
    /// + 1 of row g + 8 · (r mod 2); of B rows 8r + 2t and + 1 of column g; of C as [`multiply_tf32`](Self::multiply_tf32).
    #[track_caller]
    fn multiply_halves(&self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4];

    /// `A·B + C` of a warp's 16 × 16, 16 × 8 and 16 × 8 matrices in f64.
    ///
    /// With g = lane / 4 and t = lane mod 4, a lane gives A(g + 8 · (i mod 2), t + 4 · (i / 2)) as `a[i]` and B(t + 4i, g) as
    /// `b[i]`, and has C as [`multiply_tf32`](Self::multiply_tf32). Each product is added with one rounding; in which order they
    /// are added is the implementation's. Where A and Bᵀ are rows of one matrix, registers of A are registers of B.
    #[track_caller]
    fn multiply_f64(&self, a: [f64; 8], b: [f64; 4], c: [f64; 4]) -> [f64; 4];

    /// Reads four 8 × 8 matrices of 16-bit elements, a row of which is 16 bytes of a shared array of words: lane l gives the
    /// first word of row l mod 8 of matrix l / 8, a multiple of 4, and gets word l mod 4 of row l / 4 of each matrix.
    #[track_caller]
    fn shared_read_matrices(&self, array: Shared<u32>, row: usize) -> [u32; 4];

    /// `A·B + C` of a warp's 16 × 64, 64 × 8 and 16 × 8 matrices, A and B of bytes, signed or not, C of 32-bit
    /// integers that wrap; A has two columns of each four.
    ///
    /// With g = lane / 4 and t = lane mod 4, register r of a lane has four bytes each: of A the stored columns
    /// 16 · (r / 2) + 4t to + 3 of row g + 8 · (r mod 2), of which there are 32; of B rows 16r + 4t to + 3 of column g; of C
    /// it has (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1). The metadata has two bits for each stored column, its
    /// place among its four, the two of a group in ascending order: stored columns 16 · (t / 2) to + 15 of row
    /// g + 8 · (t mod 2).
    #[track_caller]
    fn multiply_sparse_bytes<const A: bool, const B: bool>(
        &self,
        a: [u32; 4],
        b: [u32; 4],
        c: [i32; 4],
        metadata: u32,
    ) -> [i32; 4];

    /// `A·B + C` of a warp's 16 × 32, 32 × 8 and 16 × 8 matrices, A and B of IEEE 754 halves or, if `BRAIN`, bfloat16, C of
    /// f32; A has two columns of each four. Products are exact; how their sum is rounded is the implementation's.
    ///
    /// With g = lane / 4 and t = lane mod 4, register r of a lane has two numbers each: of A the stored columns
    /// 8 · (r / 2) + 2t and + 1 of row g + 8 · (r mod 2), of which there are 16; of B rows 8r + 2t and + 1 of column g; of C
    /// as [`multiply_sparse_bytes`](Self::multiply_sparse_bytes). The metadata of lanes t = 2 · `PAIR` and the next one
    /// counts, which have the stored columns 0 to 7 and 8 to 15: two bits each, of row g in the lower half of the word,
    /// of row g + 8 in the higher one.
    #[track_caller]
    fn multiply_sparse_halves<const BRAIN: bool, const PAIR: u32>(
        &self,
        a: [u32; 4],
        b: [u32; 4],
        c: [f32; 4],
        metadata: u32,
    ) -> [f32; 4];
}
