//! Convolutional layers with sparse filters.
//!
//! Formula: `sum[n][f][y][x] = bias[f] + Σ filters[f][c][i][j] · x[n][g·C + c][y·s + i·d − p][x·s + j·d − p]` over the
//! nonzeros of filter f, g = f / F the group of filter f, C channels and F filters per group; inputs outside an image
//! contribute nothing. Then max(0, ·) if wanted, then the largest or the mean of windows.
//!
//! | variant | mapping | filters as | shared memory |
//! |---|---|---|---|
//! | coo | a thread per output; zero inputs are skipped | value, row, column, where slices begin | none |
//! | packed | a thread per output | one word per nonzero, where slices begin | none |
//! | direct | a warp per filter and 128 outputs (32 results of pooling), four sums of a thread | values and places by filter | none |
//! | planes | integers to planes of bytes, halves to one, channels side by side | – | none |
//! | tensor | a block per 32 filters and 128 outputs, sparse tensor cores on bytes or halves | steps | a tile's inputs, then sums |
//! | pad | integers and floats to planes with zeros around images | – | none |
//! | staged | a block per 8 · F filters and 32 · J outputs, F · J sums of a thread | distances and weights by filter | inputs of a chunk of channels, twice |
//! | list | lists of the inputs of each map that are not zero | – | a count per warp |
//! | skip | a warp per filter and some rows of outputs, zero inputs are skipped | values and places by filter | a warp's sums |
//! | columns | a thread per element of the right factor of a dense product; the left one is the filters | – | none |
//! | finish | bias, rectification, pooling of sums in memory: a thread per result | – | none |
//!
//! Integer results are exact: the host sees that no sum can overflow. Floating-point sums are one chain of fused
//! multiply-adds by channel, row and column, from +0: the same bits from coo, packed, direct and the CPU, except that coo
//! skips zeros, which an infinite weight would make NaN of. Tensor cores add halves in another order.
//!
//! # The ladder
//!
//! What the emulator counts of the source's layer cut to 64 channels, 32 filters and 8 × 32 maps: 2048 nonzeros, one a slice,
//! 524,288 multiply-adds of 16-bit integers, 2 × 2 max pooling. All launches of a strategy together; `ldmatrix` counts as the
//! four reads of words that stand for it.
//!
//! | strategy | requests to global memory | sectors | passes over shared banks |
//! |---|---|---|---|
//! | coo, finish | 97,181 | 159,856 | 0 |
//! | packed, finish | 64,413 | 127,088 | 0 |
//! | direct | 24,704 | 141,143 | 0 |
//! | pad, staged, finish | 6,144 | 43,520 | 25,600 |
//! | list, skip, finish | 34,770 | 164,772 | 33,082 |
//! | planes, tensor | 1,328 | 14,328 | 6,668 |
//!
//! The source's layer as a whole on an H200, 268 million multiply-adds of 16-bit integers, filters and maps on the device
//! (`benches/results/h200/sparse_conv.jsonl`):
//!
//! | step | µs | multiply-adds in 10⁹ per second |
//! |---|--:|--:|
//! | the source's processor, one thread | 17,160,000 | 0.02 |
//! | this library's CPU code, one thread | 245,450 | 1.1 |
//! | 16 threads | 20,184 | 13 |
//! | coo, finish | 694 | 387 |
//! | packed, finish | 676 | 397 |
//! | direct | 263 | 1,019 |
//! | pad, staged, finish | 108 | 2,494 |
//! | planes, tensor | 23.4 | 11,460 |
//! | cuDNN in f32, dense, with pooling | 188 | – |
//!
//! What limits them:
//! - **coo, packed, direct** compute an address and ask whether it is inside for every multiply-add: direct keeps the
//!   integer units 56 % busy and begins 2.9 instructions per clock and SM. **staged** leaves three instructions of each
//!   multiply-add, of which one reads 32 words of shared memory: 36 µs at one per clock. Outputs of two rows meet a bank
//!   twice, and every warp waits for its next nonzero, which is why it takes 108.
//! - **skip** adds inputs that are not zero alone: 657 µs of inputs without zeros. It is faster than staged with 95 % of
//!   zeros and sixteen images.
//! - **tensor** needs 1280 `mma.sp` of each of the 528 tensor cores for weights of one byte, 8 clocks each (measured): 5.8 µs
//!   at 1.75 GHz, and twice as many for others, which take 38 µs. Making planes takes some 3 µs. Steps of the source's
//!   layer, in the order in which they came (µs): four products of bytes 39.1, two of weights of one byte 30.7, four teams
//!   of warps instead of two 27.3, a launch that begins while the planes are made 25.4, a step's offsets read ahead 24.8, a table
//!   of sums for each team 23.9, planes by whole words 23.4. Halves, of which a step has 16 channels, take 24.7 (cuDNN 27.0).
//!
//! Source of coo and packed: a course's notes, "CNN CUDA 3.0 Development Notes", 2017, which packs decimal digits where
//! this packs bits.

mod args;
mod direct;
mod element;
mod lowered;
mod pool;
mod seed;
mod skip;
mod staged;
mod tensor;

pub use crate::scalar::{bfloat_to_f32, half_to_f32};
pub use args::{
    Geometry, POOL_AVERAGE, POOL_MAX, POOL_NONE, PoolGeometry, SkipGeometry, SparseConv,
    SparseConvArgs, SparseConvVariant, StagedGeometry, Strides, TensorGeometry,
};
pub use element::{Accumulator, Bf16, Element, F16, I8, I8Wide, I16, I16Wide};
pub use skip::{LIST_BLOCK, SKIP_BLOCK};
pub use staged::{STAGED_BLOCK, STAGED_WARPS};
pub use tensor::{
    CHUNK_PARTS, MOST_NONZEROS, Pieces, TENSOR_TEAM, TILE_CELLS, TILE_FILTERS, cells_at_once,
    staged_bytes, sum_bytes, tensor_shared_bytes,
};

use crate::table::{Launch, Violation};
use direct::direct;
use lowered::columns;
use pool::finish;
use seed::{coo, packed};
use skip::{list, list_words, skip};
use staged::{pad, staged};
use tensor::{planes, tensor};

fn check<E: Element>(
    variant: &SparseConvVariant,
    launch: &Launch,
    args: &SparseConvArgs<'_, E>,
) -> Result<(), Violation> {
    let g = &args.geometry;
    Violation::at_least("filters per group", 1, g.out_per_group as u64)?;
    Violation::multiple_of("filters", g.out_per_group as u64, g.filters as u64)?;
    Violation::multiple_of("threads of a block", 32, launch.block as u64)?;
    match variant {
        SparseConvVariant::Coo | SparseConvVariant::Packed => {
            let slices = g.filters as u64 * g.in_per_group as u64;
            Violation::at_least("starts of slices", slices + 1, args.starts.len())?;
            check_ends(args)
        }
        SparseConvVariant::Direct => {
            Violation::at_least("starts of filters", g.filters as u64 + 1, args.starts.len())?;
            Violation::at_least("values", args.places.len(), args.values.len())?;
            check_ends(args)
        }
        SparseConvVariant::Planes => check_planes(args, args.planes_out.len()),
        SparseConvVariant::Tensor { teams, .. } => check_tensor(launch, args, *teams),
        SparseConvVariant::Pad => {
            check_inputs(args, 0)?;
            check_padded(args, args.planes_out.len())
        }
        SparseConvVariant::Staged { filters, outputs } => {
            check_staged(launch, args, [*filters, *outputs])
        }
        SparseConvVariant::List => {
            Violation::equal("block", LIST_BLOCK as u64, launch.block as u64)?;
            let channels = g.filters / g.out_per_group * g.in_per_group;
            let maps = g.batch as u64 * channels as u64;
            Violation::equal("blocks", maps, launch.grid as u64)?;
            let shared = LIST_BLOCK as u64 / 32 * 4;
            Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
            check_inputs(args, 0)?;
            check_lists(args, args.planes_out.len())
        }
        SparseConvVariant::Skip => check_skip(launch, args),
        SparseConvVariant::Columns => {
            Violation::equal(
                "filters per group",
                g.filters as u64,
                g.out_per_group as u64,
            )?;
            check_inputs(args, args.first_image)?;
            let width = g.batch as u64 * g.out[0] as u64 * g.out[1] as u64;
            let taps = g.kernel[0] as u64 * g.kernel[1] as u64;
            let needed = (g.in_per_group as u64 * taps).saturating_mul(width);
            Violation::at_most("elements of the factor", u32::MAX as u64, needed)?;
            Violation::at_least("length of the factor", needed, args.out.len())
        }
        SparseConvVariant::Finish => {
            let sums = end_of(&g.from, [g.batch, g.filters, g.out[0], g.out[1]]);
            Violation::at_least("length of sums", sums, args.sums.len())?;
            check_result(args)
        }
    }
}

/// The element behind the last that strides reach.
fn end_of(strides: &Strides, sizes: [u32; 4]) -> u64 {
    if sizes.contains(&0) {
        return 0;
    }
    let steps = [strides.image, strides.channel, strides.row, strides.col];
    let last = |(size, step): (u32, u32)| (size as u64 - 1) * step as u64;
    sizes.into_iter().zip(steps).map(last).sum::<u64>() + 1
}

fn check_ends<E: Element>(args: &SparseConvArgs<'_, E>) -> Result<(), Violation> {
    check_inputs(args, 0)?;
    check_result(args)
}

fn check_inputs<E: Element>(args: &SparseConvArgs<'_, E>, before: u32) -> Result<(), Violation> {
    let g = &args.geometry;
    let channels = g.filters / g.out_per_group * g.in_per_group;
    let images = g.batch + before;
    let inputs = end_of(&g.from, [images, channels, g.size[0], g.size[1]]);
    let words = inputs.div_ceil(E::PER_WORD as u64);
    Violation::at_least("words of x", words, args.x.len())
}

fn check_result<E: Element>(args: &SparseConvArgs<'_, E>) -> Result<(), Violation> {
    let g = &args.geometry;
    Violation::at_least("rows of a window", 1, g.pool.window[0] as u64)?;
    Violation::at_least("columns of a window", 1, g.pool.window[1] as u64)?;
    if g.pool.kind == POOL_NONE {
        Violation::equal("rows of the result", g.out[0] as u64, g.pool.out[0] as u64)?;
        Violation::equal(
            "columns of the result",
            g.out[1] as u64,
            g.pool.out[1] as u64,
        )?;
    }
    if args.bias.is_some() {
        Violation::at_least("length of the bias", g.filters as u64, args.bias.len())?;
    }
    let images = g.batch + args.first_image;
    let results = end_of(&g.to, [images, g.filters, g.pool.out[0], g.pool.out[1]]);
    Violation::at_least("length of out", results, args.out.len())
}

fn check_planes<E: Element>(args: &SparseConvArgs<'_, E>, words: u64) -> Result<(), Violation> {
    let (g, t) = (&args.geometry, &args.tensor);
    Violation::multiple_of("bytes of a part", 32, t.part as u64)?;
    let room = t.bytes() as u64;
    let channels = g.in_per_group as u64 * E::PIECE_BYTES as u64;
    Violation::at_least("bytes of channels in the planes", channels, room)?;
    let cells = g.batch as u64 * g.size[0] as u64 * g.size[1] as u64;
    let groups = (g.filters / g.out_per_group) as u64;
    let needed = E::PIECES as u64 * cells * groups * room / 4;
    Violation::at_most("words of the planes", u32::MAX as u64, needed)?;
    Violation::at_least("words of the planes", needed, words)
}

fn check_padded<E: Element>(args: &SparseConvArgs<'_, E>, words: u64) -> Result<(), Violation> {
    let (g, s) = (&args.geometry, &args.staged);
    Violation::multiple_of("words of a plane", 4, s.plane as u64)?;
    let padded = [0, 1].map(|axis| g.size[axis] as u64 + 2 * g.padding[axis] as u64);
    Violation::at_least("words of a padded row", padded[1], s.row as u64)?;
    Violation::at_least(
        "words of a padded image",
        padded[0] * s.row as u64,
        s.image as u64,
    )?;
    Violation::at_least(
        "words of a plane",
        g.batch as u64 * s.image as u64,
        s.plane as u64,
    )?;
    let channels = (g.filters / g.out_per_group) as u64 * g.in_per_group as u64;
    // A block may stage what is behind the last image of the last channel.
    let needed = channels * s.plane as u64 + s.pitch as u64;
    Violation::at_most("words of the planes", u32::MAX as u64, needed)?;
    Violation::at_least("words of the planes", needed, words)
}

fn check_staged<E: Element>(
    launch: &Launch,
    args: &SparseConvArgs<'_, E>,
    [filters, outputs]: [u32; 2],
) -> Result<(), Violation> {
    let (g, s) = (&args.geometry, &args.staged);
    Violation::equal("block", STAGED_BLOCK as u64, launch.block as u64)?;
    Violation::equal("pooling", POOL_NONE as u64, g.pool.kind as u64)?;
    check_result(args)?;
    let groups = (g.filters / g.out_per_group) as u64;
    let all = g.batch as u64 * g.out[0] as u64 * g.out[1] as u64;
    let tiles = all.div_ceil(outputs as u64 * 32) * groups * s.filter_tiles as u64;
    Violation::equal("blocks", tiles, launch.grid as u64)?;
    let covered = s.filter_tiles as u64 * (filters * STAGED_WARPS) as u64;
    Violation::at_least("filters of the tiles", g.out_per_group as u64, covered)?;
    let channels = s.chunk as u64 * s.chunks as u64;
    Violation::at_least("channels of the chunks", g.in_per_group as u64, channels)?;
    let starts = 2 * g.filters as u64 * s.chunks as u64;
    Violation::at_least("starts of ranges", starts, args.starts.len())?;
    Violation::multiple_of("words of a range", 4, s.pitch as u64)?;
    let shared = 8 * s.chunk as u64 * s.pitch as u64;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    check_padded(args, args.planes.len())
}

fn check_lists<E: Element>(args: &SparseConvArgs<'_, E>, words: u64) -> Result<(), Violation> {
    let needed = list_words(args);
    Violation::at_most("words of the lists", u32::MAX as u64, needed)?;
    Violation::at_least("words of the lists", needed, words)
}

fn check_skip<E: Element>(launch: &Launch, args: &SparseConvArgs<'_, E>) -> Result<(), Violation> {
    let (g, s) = (&args.geometry, &args.skip);
    Violation::equal("block", SKIP_BLOCK as u64, launch.block as u64)?;
    Violation::equal("pooling", POOL_NONE as u64, g.pool.kind as u64)?;
    Violation::equal("rows of a stride", 1, g.stride[0] as u64)?;
    Violation::equal("columns of a stride", 1, g.stride[1] as u64)?;
    check_result(args)?;
    Violation::at_least("starts of filters", g.filters as u64 + 1, args.starts.len())?;
    Violation::at_least("values", args.places.len(), args.values.len())?;
    Violation::at_least("rows of a band", 1, s.rows as u64)?;
    let reach = (g.kernel[1] - 1) as u64 * g.dilation[1] as u64;
    let width = g.size[1] as u64 + reach;
    Violation::equal("columns of a band", width, s.width as u64)?;
    let warps = (SKIP_BLOCK / 32) as u64;
    let items = g.batch as u64 * g.filters as u64 * g.out[0].div_ceil(s.rows) as u64;
    Violation::at_least("blocks", items.div_ceil(warps), launch.grid as u64)?;
    let shared = warps * s.rows as u64 * width * <E::Acc as crate::scalar::Word>::SIZE as u64;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    check_lists(args, args.planes.len())
}

fn check_tensor<E: Element>(
    launch: &Launch,
    args: &SparseConvArgs<'_, E>,
    teams: u32,
) -> Result<(), Violation> {
    let (g, t) = (&args.geometry, &args.tensor);
    Violation::equal("block", (teams * TENSOR_TEAM) as u64, launch.block as u64)?;
    check_result(args)?;
    let cells = t.tile[0] as u64 * t.tile[1] as u64;
    Violation::equal("outputs of a tile", TILE_CELLS as u64, cells)?;
    let groups = (g.filters / g.out_per_group) as u64;
    let tiles = t.filter_tiles as u64 * t.tiles[0] as u64 * t.tiles[1] as u64;
    Violation::equal(
        "blocks",
        g.batch as u64 * groups * tiles,
        launch.grid as u64,
    )?;
    let filters = t.filter_tiles as u64 * TILE_FILTERS as u64;
    Violation::at_least("filters of the tiles", g.out_per_group as u64, filters)?;
    let starts = groups * t.filter_tiles as u64 * t.parts as u64 + 1;
    Violation::at_least("starts of steps", starts, args.starts.len())?;
    let packs = (t.part / 16) as u64;
    Violation::multiple_of("threads of a block", packs, launch.block as u64)?;
    let held = t.parts.min(CHUNK_PARTS) * t.part / 4;
    Violation::at_least("words from cell to cell", held as u64, t.pitch as u64)?;
    let shared = tensor_shared_bytes::<E>(t, teams);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    for axis in 0..2 {
        let window = g.pool.window[axis] as u64;
        Violation::multiple_of("rows or columns of a tile", window, t.tile[axis] as u64)?;
        Violation::equal("stride of windows", window, g.pool.stride[axis] as u64)?;
        let covered = t.tiles[axis] as u64 * t.tile[axis] as u64;
        let out = g.pool.out[axis] as u64 * window;
        Violation::at_least("outputs of all tiles", out, covered)?;
    }
    check_planes(args, args.planes.len())
}

macro_rules! sparse_conv_family {
    ($t:ident $(, staged $wide:literal)?
        $(, tensor $pieces:literal $( ($name:literal, $weights:literal, $teams:literal) )* )?) => {
        crate::kernels! {
            family SparseConv<$t>, "sparse_conv";
            args SparseConvArgs<'a, $t>;
            variant SparseConvVariant;
            check check::<$t>;
            describe args::describe;
            concat!("sparse_conv_coo_", stringify!($t)), SparseConvVariant::Coo => coo::<_, $t>;
            concat!("sparse_conv_packed_", stringify!($t)), SparseConvVariant::Packed => packed::<_, $t>;
            concat!("sparse_conv_direct_", stringify!($t)), SparseConvVariant::Direct => direct::<_, $t>;
            concat!("sparse_conv_columns_", stringify!($t)), SparseConvVariant::Columns => columns::<_, $t>;
            concat!("sparse_conv_finish_", stringify!($t)), SparseConvVariant::Finish => finish::<_, $t>;
            $(
                concat!("sparse_conv_pad_", stringify!($t)), SparseConvVariant::Pad => pad::<_, $t>;
                concat!("sparse_conv_staged_wide_", stringify!($t)),
                    SparseConvVariant::Staged { filters: $wide, outputs: 8 } => staged::<_, $t, $wide, 8>;
                concat!("sparse_conv_staged_", stringify!($t)),
                    SparseConvVariant::Staged { filters: 2, outputs: 4 } => staged::<_, $t, 2, 4>;
                concat!("sparse_conv_list_", stringify!($t)), SparseConvVariant::List => list::<_, $t>;
                concat!("sparse_conv_skip_", stringify!($t)), SparseConvVariant::Skip => skip::<_, $t>;
            )?
            $(
                concat!("sparse_conv_planes_", stringify!($t)), SparseConvVariant::Planes => planes::<_, $t>;
                $(
                    concat!("sparse_conv_tensor_", $name, stringify!($t)),
                        SparseConvVariant::Tensor { weights: $weights, teams: $teams }
                        => tensor::<_, $t, $pieces, $weights, $teams>;
                )*
            )?
        }
    };
}

sparse_conv_family!(I8, staged 4, tensor 1 ("", 1, 2) ("four_", 1, 4));
sparse_conv_family!(I8Wide, staged 4, tensor 1 ("", 1, 2) ("four_", 1, 4));
sparse_conv_family!(I16, staged 4, tensor 2 ("", 2, 2) ("short_", 1, 2) ("short_four_", 1, 4));
sparse_conv_family!(I16Wide, staged 4, tensor 2 ("", 2, 2) ("short_", 1, 2));
sparse_conv_family!(F16, staged 4, tensor 1 ("", 1, 2) ("four_", 1, 4));
sparse_conv_family!(Bf16, staged 4, tensor 1 ("", 1, 2) ("four_", 1, 4));
sparse_conv_family!(f32, staged 4);
sparse_conv_family!(f64);
