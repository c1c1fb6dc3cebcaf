//! The compiled dense entries: TL × VS × rows in flight.
//!
//! Rows of up to 32 columns that are no multiple of 16 bytes are not padded: the fused product takes them in tiles, of
//! exactly as many columns as are common, the halves with loads of one element. On an H200, f32, 1 GB with the launch
//! (0.222 ms are the reading): n = 7 in 0.226 ms, where one more column per thread than there is takes 0.253; n = 25 with
//! 143 registers, which leave 12 warps on an SM, 0.316. Wider ones are padded (n = 33: 0.249 ms in tiles of packs, of
//! which 0.242 are the reading with the padding; with 16 lanes on a row 0.273). Rows of 33, 34, 37, 38, 41 and 42 columns of f64, an odd
//! number of elements for each of two threads, go through tiles too: a warp on a row has half of its lanes idle (n = 33: 68 % of a plain
//! read).
//!
//! Rows of two columns of f32 are a thread's in the halves too, as in the fused product: two lanes on a row read 66 (X·y) and 56 % of what
//! a plain read does.
//!
//! Rows of more than 2,000 go through a ring in shared memory, of as many packs as are needed and no more: a pack costs
//! a block of 256 threads 0.08 µs, whether it is there or not (n = 10,000: K = 10 in 0.24 ms for 1 GB, K = 16 0.27 and
//! K = 20 0.32). One such block on an SM is best; a second costs 4 % from n = 6,000 on. What is on its way matters little:
//! n = 6,016 with 12, 18 and 24 packs ahead 0.238, 0.236 and 0.236 ms, with 6 0.248; n = 10,016 with 10, 15, 20, 30 and 40
//! ahead 0.240, 0.239, 0.237, 0.236 and 0.238; groups of 6 and 10 packs instead of 3 and 5 no faster. n = 8,192: K = 8
//! in 0.236, K = 10 0.234.
//!
//! Beyond 32,768 columns of f32, and where it is faster before, a cluster of two blocks shares a row, with the same rings, and
//! beyond what such a cluster holds one of four.
//!
//! Bytes in flight decide: R · TL · size bytes per thread and step. Narrow rows take R = 4 and 8, wide ones
//! 1 and 2, so that 64 to 128 bytes per thread are under way and registers do not spill.
//!
//! Did not help: three columns of f32 in a thread's registers (60,000,000 × 3 on an H200: 254 µs, in tiles 169); half the
//! lanes with two packs each for narrow f64 rows, which halves the shuffles but needs more registers (11,000,000 × 28 on an
//! H200: 602 and 565 µs with 2 and 4 rows, against 559 µs).

use crate::fused::dense::contract::check;
use crate::fused::dense::forward::forward;
use crate::fused::dense::ring::{THREADS as RING_THREADS, accumulate as ring};
use crate::fused::dense::tiles::{STAGES, THREADS as TILE_THREADS, accumulate as tiles};
use crate::fused::dense::variant::describe;
use crate::fused::dense::walk::accumulate;
use crate::fused::dense::{Dense, DenseArgs};
use crate::fused::{
    DenseVariant, Fused, Lanes, Product, RowStore, TeamSize, Transposed, WholeBlock,
};

/// Rows: `family name, team type, team value, elements per load; (packs per thread, rows in flight)…`.
macro_rules! dense_family {
    (
        $t:ident;
        fused { $( $fv:literal $fw:literal: $( ($fk:literal, $fr:literal) )* ; )* }
        block { $( $bw:literal: $( ($bk:literal, $br:literal) )* ; )* }
        ring $rw:literal { $( ($rk:literal, $ry:literal, $rs:literal, $rg:literal, $rb:literal) )* }
        $( cluster $cn:literal $cw:literal { $( ($ck:literal, $cy:literal, $cs:literal, $cg:literal) )* } )*
        tiles { $( $sv:literal $sw:literal: $( ($sk:literal, $sr:literal) )* ; )* }
        transposed { $( $tv:literal $tw:literal: $( ($tk:literal, $tr:literal) )* ; )* }
        forward { $( $pv:literal $pw:literal: $( ($pk:literal, $pr:literal) )* ; )* }
    ) => {
        crate::kernels! {
            family Dense<$t>, "fused";
            args DenseArgs<'a, $t>;
            variant DenseVariant;
            check check::<$t>;
            describe describe::<$t>;
            $( $(
                concat!("dense_fused_", stringify!($t), "_vs", $fv, "_w", $fw, "_k", $fk, "_r", $fr),
                DenseVariant { product: Product::Fused, team: TeamSize::Lanes($fv), tl: $fw * $fk, width: $fw, rows: $fr, held: RowStore::Registers }
                    => accumulate::<_, $t, [$t; $fw], Lanes<$fv>, Fused, $fk, $fr>;
            )* )*
            $( $(
                concat!("dense_fused_", stringify!($t), "_block_w", $bw, "_k", $bk, "_r", $br),
                DenseVariant { product: Product::Fused, team: TeamSize::Block, tl: $bw * $bk, width: $bw, rows: $br, held: RowStore::Registers }
                    => accumulate::<_, $t, [$t; $bw], WholeBlock, Fused, $bk, $br>;
            )* )*
            $(
                concat!("dense_fused_", stringify!($t), "_ring_k", $rk, "_s", $rs),
                DenseVariant { product: Product::Fused, team: TeamSize::Block, tl: $rw * $rk, width: $rw,
                    rows: $rs / $rk, held: RowStore::Ring { packs: $rs + $rk - $ry, ahead: $rs - $rk, threads: RING_THREADS, blocks: 1 } }
                    => ring::<_, $t, $rk, $ry, $rs, $rg, $rb, 1>;
            )*
            $( $(
                concat!("dense_fused_", stringify!($t), "_cluster", $cn, "_k", $ck, "_s", $cs),
                DenseVariant { product: Product::Fused, team: TeamSize::Block, tl: $cw * $ck, width: $cw,
                    rows: $cs / $ck, held: RowStore::Ring { packs: $cs + $ck - $cy, ahead: $cs - $ck, threads: RING_THREADS, blocks: $cn } }
                    => ring::<_, $t, $ck, $cy, $cs, $cg, 1, $cn>;
            )* )*
            $( $(
                concat!("dense_fused_", stringify!($t), "_tiles_vs", $sv, "_w", $sw, "_k", $sk, "_r", $sr),
                DenseVariant { product: Product::Fused, team: TeamSize::Lanes($sv), tl: $sw * $sk, width: $sw, rows: $sr,
                    held: RowStore::Tiles { stages: STAGES, threads: TILE_THREADS } }
                    => tiles::<_, $t, [$t; $sw], Lanes<$sv>, $sk, $sr>;
            )* )*
            $( $(
                concat!("dense_transposed_", stringify!($t), "_vs", $tv, "_w", $tw, "_k", $tk, "_r", $tr),
                DenseVariant { product: Product::Transposed, team: TeamSize::Lanes($tv), tl: $tw * $tk, width: $tw, rows: $tr, held: RowStore::Registers }
                    => accumulate::<_, $t, [$t; $tw], Lanes<$tv>, Transposed, $tk, $tr>;
            )* )*
            $( $(
                concat!("dense_forward_", stringify!($t), "_vs", $pv, "_w", $pw, "_k", $pk, "_r", $pr),
                DenseVariant { product: Product::Forward, team: TeamSize::Lanes($pv), tl: $pw * $pk, width: $pw, rows: $pr, held: RowStore::Registers }
                    => forward::<_, $t, [$t; $pw], Lanes<$pv>, $pk, $pr>;
            )* )*
        }
    };
}

dense_family! {
    f32;
    fused {
        1 1: (1, 8) (2, 4);
        2 1: (1, 8) (2, 4);
        4 1: (1, 8) (2, 4);
        8 1: (1, 8) (2, 4);
        16 1: (1, 8) (2, 4);
        32 1: (1, 8);
        1 4: (1, 4) (1, 8);
        2 4: (1, 4) (1, 8);
        4 4: (1, 4) (1, 8);
        8 4: (1, 4) (1, 8);
        16 4: (1, 4) (1, 8);
        32 4: (1, 4) (1, 8) (2, 2) (2, 4) (3, 2) (4, 1) (4, 2) (5, 1) (5, 2) (6, 1) (6, 2) (7, 1) (8, 1) (8, 2) (10, 1);
    }
    block {
        4: (1, 4) (2, 2) (2, 4) (3, 2) (4, 2);
    }
    ring 4 {
        (4, 4, 12, 4, 3) (6, 6, 24, 3, 1) (8, 8, 24, 4, 1) (10, 10, 40, 5, 1) (12, 12, 36, 4, 1) (16, 8, 40, 4, 1)
        (20, 10, 40, 4, 1) (24, 12, 44, 4, 1) (28, 14, 40, 2, 1) (32, 16, 40, 2, 1)
    }
    cluster 2 4 {
        (12, 12, 36, 4) (16, 8, 40, 4) (20, 10, 40, 4) (24, 12, 44, 4) (28, 14, 40, 2) (32, 16, 40, 2)
    }
    cluster 4 4 { (20, 10, 40, 4) (24, 12, 44, 4) (28, 14, 40, 2) (32, 16, 40, 2) }
    tiles {
        1 1: (3, 8) (5, 4) (7, 4) (9, 2) (11, 2) (13, 2) (15, 2) (17, 2) (21, 1) (25, 1) (31, 1);
        1 2: (1, 8) (3, 4) (5, 4) (7, 2) (9, 2) (11, 1) (13, 1) (15, 1);
        1 4: (9, 1) (11, 1) (13, 1) (15, 1);
    }
    transposed {
        1 1: (1, 8) (2, 4); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 4);
        1 4: (1, 8); 2 4: (1, 8); 4 4: (1, 8); 8 4: (1, 8); 16 4: (1, 8); 32 4: (1, 8) (2, 4) (4, 2);
    }
    forward {
        1 1: (1, 8) (2, 4); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 4);
        1 4: (1, 8); 2 4: (1, 8); 4 4: (1, 8); 8 4: (1, 8); 16 4: (1, 8); 32 4: (1, 8) (2, 4) (4, 2);
    }
}

dense_family! {
    f64;
    fused {
        1 1: (1, 8) (2, 4);
        2 1: (1, 8) (2, 4);
        4 1: (1, 8) (2, 4);
        8 1: (1, 8) (2, 4);
        16 1: (1, 8) (2, 4);
        32 1: (1, 8);
        1 2: (1, 4) (1, 8);
        2 2: (1, 4) (1, 8);
        4 2: (1, 4) (1, 8);
        8 2: (1, 4) (1, 8);
        16 2: (1, 4) (1, 8);
        32 2: (1, 4) (1, 8) (2, 2) (2, 4) (3, 2) (4, 1) (4, 2) (5, 1) (6, 1) (7, 1) (8, 1) (8, 2) (10, 1) (12, 1) (16, 1);
    }
    block {
        2: (1, 4) (2, 2) (2, 4) (3, 2) (4, 2);
    }
    ring 2 {
        (4, 4, 12, 4, 3) (6, 6, 24, 3, 1) (8, 8, 24, 4, 1) (10, 10, 40, 5, 1) (12, 12, 36, 4, 1) (16, 8, 40, 4, 1)
        (20, 10, 40, 4, 1) (24, 12, 44, 4, 1) (28, 14, 40, 2, 1) (32, 16, 40, 2, 1)
    }
    cluster 2 2 {
        (12, 12, 36, 4) (16, 8, 40, 4) (20, 10, 40, 4) (24, 12, 44, 4) (28, 14, 40, 2) (32, 16, 40, 2)
    }
    cluster 4 2 { (20, 10, 40, 4) (24, 12, 44, 4) (28, 14, 40, 2) (32, 16, 40, 2) }
    tiles {
        1 1: (3, 8) (5, 4) (7, 4) (9, 2) (11, 2) (13, 2) (15, 1) (17, 1) (21, 1) (25, 1) (31, 1);
        2 1: (17, 1) (19, 1) (21, 1);
    }
    transposed {
        1 1: (1, 8); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 2);
        1 2: (1, 8); 2 2: (1, 8); 4 2: (1, 8); 8 2: (1, 8); 16 2: (1, 8); 32 2: (1, 8) (2, 4) (4, 2);
    }
    forward {
        1 1: (1, 8); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 2);
        1 2: (1, 8); 2 2: (1, 8) (2, 4); 4 2: (1, 8) (2, 4); 8 2: (1, 8) (2, 4); 16 2: (1, 8) (2, 4); 32 2: (1, 8) (2, 4) (4, 2);
    }
}
