//! One-dimensional convolution over channels.
//!
//! Formula: `out[o][i] = Σ_c Σ_k filters[o][c][k] · x[g·C + c][i·stride + k·dilation − before]`, with g = o / O the
//! group of output channel o, C input and O output channels per group; x is zero outside its length. Taps are
//! not turned round (the convention of neural networks; filters that are symmetric see no difference).
//!
//! Shapes: x is channels × len, filters is output channels × C × taps, out is output channels × out_len, each
//! packed row-major.
//!
//! | variant | mapping | shared memory |
//! |---|---|---|
//! | naive | a thread per output, everything from global memory (the lecture's first) | none |
//! | tiled | a thread per output, x staged with its halo (the lecture's second) | filter, tile |
//! | strided | as tiled, four outputs per thread, a block apart: any stride and dilation | filter, tile |
//! | window | stride and dilation 1: R neighbouring outputs per thread, x in a window of registers that moves on by R taps; 16-byte copies to shared memory, 16-byte reads of it; the next tile's are copied meanwhile; outputs leave through shared memory | two of: filter, tile with a gap of 16 bytes after every R elements |
//! | strip | stride and dilation 1, one input channel of a group, short filters: P packs of neighbouring outputs per thread, x in a ring of P + 1 packs in registers that moves on by a pack of taps; a tile per block, so that many blocks wait for memory at once | filter, tile |
//!
//! An odd number of packs between neighbouring threads, by the gap or by P, lets eight threads read eight different
//! groups of banks. A tile begins up to 31 outputs early, so that its inputs begin at a line of memory.
//!
//! What bounds them, 2²⁶ elements of f32 on an H200, where a copy takes 128 µs: strips of up to 17 taps wait for memory
//! (131 µs). At 33 taps the arithmetic alone takes 75 µs at the highest clock; with memory at full speed the device then
//! reaches its 700 W and lowers the clock from 1.98 to between 1.5 and 1.8 GHz, so that it takes 146 µs in a short run and
//! 155 to 168 in a long one. Windows of 16 take 144 and 161 to 205 µs: some 600 instructions of a warp for its 512 outputs with
//! 9 taps, which strips do in 330 for 384.
//!
//! What did *not* help windows: inputs from L1 in packs instead of from shared memory, without barriers, which is as quick
//! for 3 taps, and for 33 takes half as long again. What did not help strips, in a prototype: bulk copies to a ring of tiles
//! and back by blocks that stay (145 µs for 3 to 33 taps), stores that pass the cache, a tile for each warp (138 µs for 9
//! taps).
//!
//! Every output is one chain of fused multiply-adds, channels outside, taps inside, from +0: the same bits from
//! every variant and on every device. A tile is read from memory once per output channel.
//!
//! Source: D. Kirk and W. Hwu, *Programming Massively Parallel Processors*, ch. 7, for the first two.

mod args;
mod lecture;
mod staging;
mod strip;
mod window;
mod work;

pub use args::{BLOCK, Conv1d, Conv1dArgs, Conv1dVariant, EARLIEST};
pub(crate) use args::{LINE, filter_of, first_of_group, gap, load_or_zero, span, staged_len};
use lecture::{naive, tiled};
use strip::strip;
use window::window;

use crate::scalar::Real;
use crate::table::{Launch, Violation};

fn check<T: Real>(
    variant: &Conv1dVariant,
    launch: &Launch,
    args: &Conv1dArgs<'_, T>,
) -> Result<(), Violation> {
    if *variant != Conv1dVariant::Naive {
        Violation::equal("block", BLOCK as u64, launch.block as u64)?;
    }
    Violation::at_least("taps", 1, args.taps as u64)?;
    Violation::at_least("stride", 1, args.stride as u64)?;
    Violation::at_least("dilation", 1, args.dilation as u64)?;
    if let Conv1dVariant::Window(_) | Conv1dVariant::Strip(_) = variant {
        Violation::equal("stride", 1, args.stride as u64)?;
        Violation::equal("dilation", 1, args.dilation as u64)?;
    }
    if let Conv1dVariant::Strip(_) = variant {
        Violation::equal("input channels per group", 1, args.in_per_group)?;
        let tiles = work::tiles(args, variant.tile(T::SIZE)).saturating_mul(args.out_channels);
        Violation::at_least("blocks", tiles, launch.grid as u64)?;
    }
    let shared = variant.shared_bytes(args.taps, args.stride, args.dilation, T::SIZE);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    Violation::at_least("output channels per group", 1, args.out_per_group)?;
    let groups = args.out_channels.div_ceil(args.out_per_group);
    let channels = groups.saturating_mul(args.in_per_group);
    let inputs = channels.saturating_mul(args.len);
    Violation::at_least("length of x", inputs, args.x.len())?;
    let filters = args.out_channels.saturating_mul(args.in_per_group);
    let filters = filters.saturating_mul(args.taps as u64);
    Violation::at_least("length of filters", filters, args.filters.len())?;
    let outputs = args.out_channels.saturating_mul(args.out_len);
    Violation::at_least("length of out", outputs, args.out.len())
}

macro_rules! conv1d_family {
    ($t:ident; window $( [$outputs:literal: $blocks:literal] )*;
     strip $( [$packs:literal: $of_strip:literal, $slots:literal, $resident:literal] )*) => {
        crate::kernels! {
            family Conv1d<$t>, "conv1d";
            args Conv1dArgs<'a, $t>;
            variant Conv1dVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("conv1d_naive_", stringify!($t)), Conv1dVariant::Naive => naive::<_, $t>;
            concat!("conv1d_tiled_r1_", stringify!($t)), Conv1dVariant::Tiled(1) => tiled::<_, $t, 1>;
            concat!("conv1d_tiled_r4_", stringify!($t)), Conv1dVariant::Tiled(4) => tiled::<_, $t, 4>;
            $(
                concat!("conv1d_window_r", $outputs, "_", stringify!($t)), Conv1dVariant::Window($outputs)
                    => window::<_, $t, $outputs, $blocks>;
            )*
            $(
                concat!("conv1d_strip_p", $packs, "_", stringify!($t)), Conv1dVariant::Strip($packs)
                    => strip::<_, $t, $of_strip, $slots, $resident>;
            )*
        }
    };
}

// Windows: outputs of a thread, and blocks of an SM. Strips: packs of a thread, the outputs that those are, packs of the
// ring, and blocks of an SM.
conv1d_family!(f32; window [8: 7] [16: 6]; strip [3: 12, 4, 10] [5: 20, 6, 7]);
conv1d_family!(f64; window [8: 5] [16: 4]; strip [3: 6, 4, 10] [5: 10, 6, 7]);
