//! The NVPTX implementation of [`Cta`]: each method is one instruction.

use core::arch::nvptx::{_block_dim_x, _block_idx_x, _grid_dim_x, _syncthreads, _thread_idx_x};
use core::arch::{asm, global_asm};

use crate::cta::{Cache, Cta, Shared, Shuffle};
use crate::memory::{In, Out};
use crate::scalar::{Real, Word, Words};
use shared::{add, copy, copy_element, copy_some, fetch_add, shared_address};
use shuffle::shuffle_bits;

#[macro_use]
mod words;

mod approximate;
#[cfg(gpu_at_least = "sm_90")]
mod cluster;
mod panic;
mod round;
mod shared;
mod shuffle;
mod system;
mod tensor;

pub use approximate::{decay_f32, near_recip_f32, near_rsqrt_f32, near_sqrt_f32};
pub use round::{fma_f32, fma_f64, recip_f32, root_f32, round_f32, round_f64, sqrt_f32, sqrt_f64};
pub use tensor::permute_bytes;

global_asm!(".extern .shared .align 16 .b8 warpfuse_shared[];");

/// The running thread on an NVIDIA GPU: a token without size.
pub struct Gpu;

// SAFETY of every access below: the argument's constructor promised `len` elements at the pointer for as long as the kernel
// runs; bodies stay below `len`, and shared accesses below the launch's dynamic shared memory, which the emulator checks.
impl Cta for Gpu {
    #[inline(always)]
    fn thread(&self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { _thread_idx_x() as u32 }
    }

    #[inline(always)]
    fn threads(&self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { _block_dim_x() as u32 }
    }

    #[inline(always)]
    fn block(&self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { _block_idx_x() as u32 }
    }

    #[inline(always)]
    fn blocks(&self) -> u32 {
        // SAFETY: reads a special register.
        unsafe { _grid_dim_x() as u32 }
    }

    #[inline(always)]
    fn fresh<T: Word>(&self, number: T) -> T {
        let mut bits = number.to_bits();
        // SAFETY: no instruction at all.
        T::from_bits(unsafe {
            by_size!(
                T,
                {
                    let mut bits = bits as u32;
                    asm!("// {}", inout(reg32) bits, options(nomem, nostack));
                    bits as u64
                },
                {
                    asm!("// {}", inout(reg64) bits, options(nomem, nostack));
                    bits
                }
            )
        })
    }

    #[inline(always)]
    fn launch_bounds<const THREADS: u32, const BLOCKS: u32>(&self) {
        // SAFETY: a comment, which the builder reads.
        unsafe {
            asm!("// launch bounds {} {}", const THREADS, const BLOCKS, options(nomem, nostack));
        }
    }

    #[inline(always)]
    fn sync(&self) {
        // SAFETY: all threads of the block call it together: the caller's duty for a collective.
        unsafe { _syncthreads() }
    }

    #[cfg(gpu_at_least = "sm_90")]
    const CLUSTERS: bool = true;
    #[cfg(gpu_at_least = "sm_90")]
    #[inline(always)]
    fn cluster_rank(&self) -> u32 {
        cluster::rank()
    }

    #[cfg(gpu_at_least = "sm_90")]
    #[inline(always)]
    fn sync_cluster(&self) {
        // SAFETY: all threads of the cluster call it together: the caller's duty for a collective.
        unsafe { cluster::sync() }
    }

    #[cfg(gpu_at_least = "sm_90")]
    #[inline(always)]
    fn overlap(&self, waits: bool) {
        cluster::overlap(waits)
    }

    #[cfg(gpu_at_least = "sm_90")]
    #[inline(always)]
    fn shared_write_to<T: Word>(&self, rank: u32, array: Shared<T>, i: usize, value: T) {
        // SAFETY: see the head of this impl; the array is as long in every block of a launch, and block `rank` runs.
        unsafe { cluster::write(rank, shared_address(array, i), value) }
    }

    #[cfg(gpu_at_least = "sm_90")]
    #[inline(always)]
    fn shared_fetch_add_to(&self, rank: u32, array: Shared<u32>, i: usize, value: u32) -> u32 {
        // SAFETY: as for `shared_write_to`.
        unsafe { cluster::fetch_add(rank, shared_address(array, i), value) }
    }

    #[inline(always)]
    fn sync_warp(&self) {
        // SAFETY: all lanes of the warp call it together: the caller's duty for a collective.
        unsafe { asm!("bar.warp.sync 0xffffffff;", options(nostack)) }
    }

    #[inline(always)]
    fn shuffle<T: Word>(&self, value: T, from: Shuffle, width: u32, members: u32) -> T {
        let bits = value.to_bits();
        let low = shuffle_bits(bits as u32, from, width, members) as u64;
        by_size!(T, T::from_bits(low), {
            let high = shuffle_bits((bits >> 32) as u32, from, width, members) as u64;
            T::from_bits(high << 32 | low)
        })
    }

    #[inline(always)]
    fn ballot(&self, holds: bool, members: u32) -> u32 {
        shuffle::ballot(holds, members)
    }

    #[inline(always)]
    fn load<T: Word>(&self, from: In<'_, T>, i: usize, cache: Cache) -> T {
        // SAFETY: see the head of this impl.
        T::from_bits(unsafe {
            let p = from.pointer().add(i);
            match cache {
                Cache::Keep => load_word!(T, ".nc", p),
                Cache::Once => load_word!(T, ".nc.L1::no_allocate", p),
            }
        })
    }

    #[inline(always)]
    fn load_pack<T: Word, P: Words<T>>(&self, from: In<'_, T>, i: usize, cache: Cache) -> P {
        if P::LANES == 1 {
            return P::from_words([self.load(from, i, cache).to_bits(), 0, 0, 0]);
        }
        // SAFETY: see the head of this impl; buffers are aligned to 16 bytes and `i` to the lanes.
        P::from_words(unsafe {
            let p = from.pointer().add(i);
            match cache {
                Cache::Keep => load_16!(T, ".nc", p),
                Cache::Once => load_16!(T, ".nc.L1::no_allocate", p),
            }
        })
    }

    #[inline(always)]
    fn read<T: Word>(&self, from: Out<'_, T>, i: usize) -> T {
        // SAFETY: see the head of this impl. Volatile: other threads may write between two reads.
        T::from_bits(unsafe {
            let p = from.pointer().add(i);
            by_size!(
                T,
                {
                    let bits: u32;
                    asm!("ld.global.b32 {}, [{}];", out(reg32) bits, in(reg64) p, options(nostack));
                    bits as u64
                },
                {
                    let bits: u64;
                    asm!("ld.global.b64 {}, [{}];", out(reg64) bits, in(reg64) p, options(nostack));
                    bits
                }
            )
        })
    }

    #[inline(always)]
    fn read_pack<T: Real>(&self, from: Out<'_, T>, i: usize) -> T::Pack {
        // SAFETY: see the head of this impl; buffers are aligned to 16 bytes and `i` to the lanes.
        T::Pack::from_words(unsafe { load_16!(T, "", from.pointer().add(i)) })
    }

    #[inline(always)]
    fn write<T: Word>(&self, to: Out<'_, T>, i: usize, value: T) {
        let bits = value.to_bits();
        // SAFETY: see the head of this impl.
        unsafe {
            let p = to.pointer().add(i);
            by_size!(
                T,
                asm!("st.global.b32 [{}], {};", in(reg64) p, in(reg32) bits as u32, options(nostack)),
                asm!("st.global.b64 [{}], {};", in(reg64) p, in(reg64) bits, options(nostack))
            )
        }
    }

    #[inline(always)]
    fn write_pack<T: Real>(&self, to: Out<'_, T>, i: usize, pack: T::Pack) {
        let bits = |lane: usize| pack.as_ref()[lane].to_bits();
        // SAFETY: see the head of this impl; buffers are aligned to 16 bytes and `i` to the lanes.
        unsafe { store_16!(T, to.pointer().add(i), bits) }
    }

    #[inline(always)]
    fn add<T: Real>(&self, to: Out<'_, T>, i: usize, value: T) {
        let bits = value.to_bits();
        // SAFETY: see the head of this impl.
        unsafe {
            let p = to.pointer().add(i);
            by_size!(
                T,
                asm!("red.relaxed.gpu.global.add.f32 [{}], {};",
                    in(reg64) p, in(reg32) f32::from_bits(bits as u32), options(nostack)),
                asm!("red.relaxed.gpu.global.add.f64 [{}], {};",
                    in(reg64) p, in(reg64) f64::from_bits(bits), options(nostack))
            )
        }
    }

    #[cfg(gpu_at_least = "sm_90")]
    #[inline(always)]
    fn add_pack<T: Real>(&self, to: Out<'_, T>, i: usize, pack: T::Pack) {
        let bits = |lane: usize| pack.as_ref()[lane].to_bits();
        // SAFETY: see the head of this impl; buffers are aligned to 16 bytes and `i` to the lanes.
        unsafe {
            by_size!(
                T,
                asm!("red.relaxed.gpu.global.add.v4.f32 [{}], {{{},{},{},{}}};", in(reg64) to.pointer().add(i),
                    in(reg32) f32::from_bits(bits(0) as u32), in(reg32) f32::from_bits(bits(1) as u32),
                    in(reg32) f32::from_bits(bits(2) as u32), in(reg32) f32::from_bits(bits(3) as u32),
                    options(nostack)),
                {
                    self.add(to, i, pack.as_ref()[0]);
                    self.add(to, i + 1, pack.as_ref()[1]);
                }
            )
        }
    }

    #[inline(always)]
    fn ticket(&self, counter: Out<'_, u32>, i: usize, last: u32) -> u32 {
        system::ticket(counter, i, last)
    }

    #[inline(always)]
    fn add_wrapping(&self, to: Out<'_, u64>, i: usize, value: u64) {
        system::add_wrapping(to, i, value);
    }

    #[inline(always)]
    fn raise(&self, to: Out<'_, u32>, i: usize, value: u32) {
        system::raise(to, i, value);
    }

    #[inline(always)]
    fn peek(&self, from: Out<'_, u32>, i: usize) -> u32 {
        system::peek(from, i)
    }

    #[inline(always)]
    fn send(&self, to: Out<'_, u64>, i: usize, packets: [u64; 2]) {
        system::send(to, i, packets);
    }

    #[inline(always)]
    fn receive(&self, from: Out<'_, u64>, i: usize) -> [u64; 2] {
        system::receive(from, i)
    }

    #[inline(always)]
    fn poll(&self, from: Out<'_, u32>, i: usize) -> u32 {
        system::poll(from, i)
    }

    #[inline(always)]
    fn shared_read<T: Word>(&self, array: Shared<T>, i: usize) -> T {
        let at = shared_address(array, i);
        // SAFETY: see the head of this impl.
        T::from_bits(unsafe {
            by_size!(
                T,
                {
                    let bits: u32;
                    asm!("ld.shared.b32 {}, [{}];", out(reg32) bits, in(reg32) at, options(nostack));
                    bits as u64
                },
                {
                    let bits: u64;
                    asm!("ld.shared.b64 {}, [{}];", out(reg64) bits, in(reg32) at, options(nostack));
                    bits
                }
            )
        })
    }

    #[inline(always)]
    fn shared_write<T: Word>(&self, array: Shared<T>, i: usize, value: T) {
        let at = shared_address(array, i);
        let bits = value.to_bits();
        // SAFETY: see the head of this impl.
        unsafe {
            by_size!(
                T,
                asm!("st.shared.b32 [{}], {};", in(reg32) at, in(reg32) bits as u32, options(nostack)),
                asm!("st.shared.b64 [{}], {};", in(reg32) at, in(reg64) bits, options(nostack))
            )
        }
    }

    #[inline(always)]
    fn shared_add<T: Real>(&self, array: Shared<T>, i: usize, value: T) {
        // SAFETY: see the head of this impl.
        unsafe { add(shared_address(array, i), value) }
    }

    #[inline(always)]
    fn shared_read_pack<T: Real>(&self, array: Shared<T>, i: usize) -> T::Pack {
        let at = shared_address(array, i);
        // SAFETY: see the head of this impl; the array starts at a multiple of 16 bytes and `i` is one of the lanes.
        T::Pack::from_words(unsafe {
            by_size!(
                T,
                {
                    let (a, b, c, d): (u32, u32, u32, u32);
                    asm!("ld.shared.v4.b32 {{{},{},{},{}}}, [{}];",
                        out(reg32) a, out(reg32) b, out(reg32) c, out(reg32) d, in(reg32) at,
                        options(nostack));
                    [a as u64, b as u64, c as u64, d as u64]
                },
                {
                    let (a, b): (u64, u64);
                    asm!("ld.shared.v2.b64 {{{},{}}}, [{}];",
                        out(reg64) a, out(reg64) b, in(reg32) at, options(nostack));
                    [a, b, 0, 0]
                }
            )
        })
    }

    #[inline(always)]
    fn shared_write_pack<T: Real>(&self, array: Shared<T>, i: usize, pack: T::Pack) {
        let at = shared_address(array, i);
        let bits = |lane: usize| pack.as_ref()[lane].to_bits();
        // SAFETY: as for `shared_read_pack`.
        unsafe {
            by_size!(
                T,
                asm!("st.shared.v4.b32 [{}], {{{},{},{},{}}};", in(reg32) at, in(reg32) bits(0) as u32,
                    in(reg32) bits(1) as u32, in(reg32) bits(2) as u32, in(reg32) bits(3) as u32,
                    options(nostack)),
                asm!("st.shared.v2.b64 [{}], {{{},{}}};", in(reg32) at, in(reg64) bits(0), in(reg64) bits(1),
                    options(nostack))
            )
        }
    }

    #[inline(always)]
    fn copy_pack<T: Word>(
        &self,
        to: Shared<T>,
        j: usize,
        from: In<'_, T>,
        i: usize,
        present: usize,
    ) {
        // SAFETY: see the head of this impl; of an absent piece nothing is read.
        unsafe {
            copy_some(
                to,
                j,
                from.pointer().add(if present > 0 { i } else { 0 }),
                present,
            )
        }
    }

    #[inline(always)]
    fn copy_whole_pack<T: Word>(
        &self,
        to: Shared<T>,
        j: usize,
        from: In<'_, T>,
        i: usize,
        present: bool,
    ) {
        // SAFETY: see the head of this impl; of an absent piece nothing is read.
        unsafe { copy!("cg", "16", to, j, from, i, present) }
    }

    #[inline(always)]
    fn copy_one<T: Word>(&self, to: Shared<T>, j: usize, from: In<'_, T>, i: usize, present: bool) {
        // SAFETY: as for `copy_pack`.
        unsafe { copy_element!(T, to, j, from, i, present) }
    }

    #[inline(always)]
    fn copy_of<T: Real>(&self, to: Shared<T>, j: usize, from: Out<'_, T>, i: usize, present: bool) {
        // SAFETY: as for `copy_pack`.
        unsafe { copy_element!(T, to, j, from, i, present) }
    }

    #[inline(always)]
    fn copy_pack_of<T: Real>(&self, to: Shared<T>, j: usize, from: Out<'_, T>, i: usize) {
        // SAFETY: as for `copy_pack`.
        unsafe { copy!("cg", "16", to, j, from, i, true) }
    }

    #[inline(always)]
    fn end_copies(&self) {
        // SAFETY: closes a group of this thread's copies, which may be empty.
        unsafe { asm!("cp.async.commit_group;", options(nostack)) }
    }

    #[inline(always)]
    fn copies_done<const PENDING: u32>(&self) {
        // SAFETY: waits for this thread's own copies.
        unsafe { asm!("cp.async.wait_group {};", const PENDING, options(nostack)) }
    }

    #[cfg(gpu_at_least = "sm_90")]
    #[inline(always)]
    fn round_tf32(&self, x: f32) -> f32 {
        tensor::round_tf32(x)
    }

    #[inline(always)]
    fn multiply_tf32(&self, a: [f32; 4], b: [f32; 2], c: [f32; 4]) -> [f32; 4] {
        tensor::multiply_tf32(a, b, c)
    }

    #[inline(always)]
    fn halves(&self, values: [f32; 2]) -> u32 {
        tensor::halves(values)
    }

    #[inline(always)]
    fn multiply_halves(&self, a: [u32; 4], b: [u32; 2], c: [f32; 4]) -> [f32; 4] {
        tensor::multiply_halves(a, b, c)
    }

    #[inline(always)]
    fn multiply_f64(&self, a: [f64; 8], b: [f64; 4], c: [f64; 4]) -> [f64; 4] {
        tensor::multiply_f64(a, b, c)
    }

    #[inline(always)]
    fn shared_read_matrices(&self, array: Shared<u32>, row: usize) -> [u32; 4] {
        // SAFETY: see the head of this impl; rows are whole packs.
        unsafe { tensor::read_matrices(shared_address(array, row)) }
    }

    #[inline(always)]
    fn multiply_sparse_bytes<const A: bool, const B: bool>(
        &self,
        a: [u32; 4],
        b: [u32; 4],
        c: [i32; 4],
        metadata: u32,
    ) -> [i32; 4] {
        tensor::multiply_sparse::<A, B>(a, b, c, metadata)
    }

    #[inline(always)]
    fn multiply_sparse_halves<const BRAIN: bool, const PAIR: u32>(
        &self,
        a: [u32; 4],
        b: [u32; 4],
        c: [f32; 4],
        metadata: u32,
    ) -> [f32; 4] {
        tensor::multiply_sparse_halves::<BRAIN, PAIR>(a, b, c, metadata)
    }

    fn shared_fetch_add(&self, array: Shared<u32>, i: usize, value: u32) -> u32 {
        // SAFETY: see the head of this impl.
        unsafe { fetch_add(shared_address(array, i), value) }
    }
}
