//! Stream read: the ceiling that memory-bound kernels are measured against.
//!
//! Σ x, with every element read once in 16-byte loads, four in flight per thread. The sum goes to
//! `total` only if it equals a value that cannot occur, so that nothing but reading costs time.
//!
//! [`probe`] does the same for reading and adding at random addresses.

pub mod probe;

use crate::cta::{Cache, Cta, WARP};
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{global_thread, global_threads};

/// The family of the stream-read kernel.
pub struct Stream<T>(core::marker::PhantomData<T>);

/// `x`: what is read (whole packs only); `total`: one element.
#[repr(C)]
pub struct StreamArgs<'a, T> {
    /// The array.
    pub x: In<'a, T>,
    /// Never written in practice.
    pub total: Out<'a, T>,
}

impl<T> Clone for StreamArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for StreamArgs<'_, T> {}

const IN_FLIGHT: u64 = 4;

fn read<C: Cta>(cta: &C, args: &StreamArgs<'_, f32>) {
    let packs = args.x.len() / 4;
    let stride = global_threads(cta);
    let mut sum = 0.0;
    let mut i = global_thread(cta);
    while i + (IN_FLIGHT - 1) * stride < packs {
        let mut held = [[0f32; 4]; IN_FLIGHT as usize];
        for (k, pack) in held.iter_mut().enumerate() {
            *pack = cta.load_pack(args.x, (i + k as u64 * stride) as usize * 4, Cache::Once);
        }
        for pack in held {
            sum += pack[0] + pack[1] + pack[2] + pack[3];
        }
        i += IN_FLIGHT * stride;
    }
    while i < packs {
        let pack: [f32; 4] = cta.load_pack(args.x, i as usize * 4, Cache::Once);
        sum += pack[0] + pack[1] + pack[2] + pack[3];
        i += stride;
    }
    if sum == f32::MAX {
        cta.write(args.total, 0, f32::ONE);
    }
}

fn check(_: &(), launch: &Launch, args: &StreamArgs<'_, f32>) -> Result<(), Violation> {
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_least("length of total", 1, args.total.len())
}

crate::kernels! {
    family Stream<f32>, "stream";
    args StreamArgs<'a, f32>;
    variant ();
    check check;
    describe crate::describe::unplanned;
    "stream_read_f32", () => read;
}
