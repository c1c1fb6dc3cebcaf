//! What the threads of one block (a cooperative thread array) can do.

use crate::memory::{In, Out};
use crate::scalar::{Real, Word, Words};

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
    /// The lane so many higher; past the end its own.
    Down(u32),
    /// The lane so many lower; before the start its own.
    Up(u32),
    /// This lane.
    Index(u32),
}

/// One thread's view of its block: where it is, its neighbours, its memory.
///
/// Names follow `cuda_std` where it has them. `sync` and `shuffle` are collective: all threads of the
/// block (of the warp's members) must call them together. Every accessor takes `#[track_caller]`, so
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

    /// Waits for all threads of the block; orders their shared and global accesses.
    #[track_caller]
    fn sync(&self);

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

    /// Writes element `i`.
    #[track_caller]
    fn write<T: Word>(&self, to: Out<'_, T>, i: usize, value: T);

    /// Adds to element `i` atomically, relaxed; the order of additions is not fixed.
    #[track_caller]
    fn add<T: Real>(&self, to: Out<'_, T>, i: usize, value: T);

    /// Draws a ticket: adds 1 to element `i` atomically, from `last` on to 0, and returns what was there.
    ///
    /// What a block wrote before it drew (by the thread that draws, or with a barrier in between) is visible
    /// to those who draw later (to the drawing thread, and after a barrier to its block): release and acquire
    /// of the device. When `last + 1` blocks draw one each, the one that gets `last` sees the work of all
    /// others, and the counter is ready for the next launch.
    #[track_caller]
    fn ticket(&self, counter: Out<'_, u32>, i: usize, last: u32) -> u32;

    /// Reads element `i` of a shared array.
    #[track_caller]
    fn shared_read<T: Word>(&self, array: Shared<T>, i: usize) -> T;

    /// Writes element `i` of a shared array.
    #[track_caller]
    fn shared_write<T: Word>(&self, array: Shared<T>, i: usize, value: T);

    /// Adds to element `i` of a shared array atomically; the order of additions is not fixed.
    #[track_caller]
    fn shared_add<T: Real>(&self, array: Shared<T>, i: usize, value: T);
}

/// An array in the block's dynamic shared memory: a place, not a pointer.
#[derive(Debug)]
pub struct Shared<T> {
    byte: u32,
    len: u32,
    element: core::marker::PhantomData<T>,
}

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

impl<T: Word> Shared<T> {
    /// The array of `len` elements that starts `byte` bytes into the block's dynamic shared memory.
    #[inline(always)]
    pub fn at(byte: u32, len: u32) -> Shared<T> {
        Shared {
            byte,
            len,
            element: core::marker::PhantomData,
        }
    }

    /// First byte.
    #[inline(always)]
    pub fn byte(&self) -> u32 {
        self.byte
    }

    /// Number of elements.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The byte after the last. A build with overflow checks says who asked where it is beyond 2³² bytes.
    #[inline(always)]
    #[track_caller]
    pub fn end(&self) -> u32 {
        self.byte + self.len * T::SIZE
    }
}
