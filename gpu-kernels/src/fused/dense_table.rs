//! The compiled dense entries: TL × VS × rows in flight.
//!
//! Loads of one element are for rows that padding to 16 bytes would lengthen too much (n up to 21 of f32, 7 of f64).
//! Rows of more than 2,000 go through a ring in shared memory. On an H200, f32, about 10⁹ elements, of a plain read:
//! n = 2,048: 99 %; 4,096: 100 % (K = 4 with 256 threads, 8 with 128), a block with its rows in registers 87 %;
//! 10,000: 100 % (K = 10); 16,384: 93 %. More packs in fewer threads are better: 70 % with K = 2 and 512 threads for
//! n = 4,096, 89 % with K = 5 and 512 for 10,000.
//!
//! Bytes in flight decide: R · TL · size bytes per thread and step. Narrow rows take R = 4 and 8, wide ones
//! 1 and 2, so that 64 to 128 bytes per thread are under way and registers do not spill.
//!
//! Did not help: half the lanes with two packs each for narrow f64 rows, which halves the shuffles but needs
//! more registers (11,000,000 × 28 on an H200: 602 and 565 µs with 2 and 4 rows, against 559 µs).

use super::dense::{Dense, DenseArgs, DenseVariant, accumulate, check};
use super::dense_forward::forward;
use super::dense_ring::accumulate as ring;
use super::{Fused, Lanes, Product, TeamSize, Transposed, WholeBlock};

/// Rows: `family name, team type, team value, elements per load; (packs per thread, rows in flight)…`.
macro_rules! dense_family {
    (
        $t:ident;
        fused { $( $fv:literal $fw:literal: $( ($fk:literal, $fr:literal) )* ; )* }
        block { $( $bw:literal: $( ($bk:literal, $br:literal) )* ; )* }
        ring $rw:literal { $( ($rk:literal, $ry:literal, $rs:literal) )* }
        transposed { $( $tv:literal $tw:literal: $( ($tk:literal, $tr:literal) )* ; )* }
        forward { $( $pv:literal $pw:literal: $( ($pk:literal, $pr:literal) )* ; )* }
    ) => {
        crate::kernels! {
            family Dense<$t>, "fused";
            args DenseArgs<'a, $t>;
            variant DenseVariant;
            check check::<$t>;
            $( $(
                concat!("dense_fused_", stringify!($t), "_vs", $fv, "_w", $fw, "_k", $fk, "_r", $fr),
                DenseVariant { product: Product::Fused, team: TeamSize::Lanes($fv), tl: $fw * $fk, width: $fw, rows: $fr, shared_packs: 0 }
                    => accumulate::<_, $t, [$t; $fw], Lanes<$fv>, Fused, $fk, $fr>;
            )* )*
            $( $(
                concat!("dense_fused_", stringify!($t), "_block_w", $bw, "_k", $bk, "_r", $br),
                DenseVariant { product: Product::Fused, team: TeamSize::Block, tl: $bw * $bk, width: $bw, rows: $br, shared_packs: 0 }
                    => accumulate::<_, $t, [$t; $bw], WholeBlock, Fused, $bk, $br>;
            )* )*
            $(
                concat!("dense_fused_", stringify!($t), "_ring_k", $rk, "_s", $rs),
                DenseVariant { product: Product::Fused, team: TeamSize::Block, tl: $rw * $rk, width: $rw,
                    rows: $rs / $rk, shared_packs: $rs + $rk - $ry }
                    => ring::<_, $t, $rk, $ry, $rs>;
            )*
            $( $(
                concat!("dense_transposed_", stringify!($t), "_vs", $tv, "_w", $tw, "_k", $tk, "_r", $tr),
                DenseVariant { product: Product::Transposed, team: TeamSize::Lanes($tv), tl: $tw * $tk, width: $tw, rows: $tr, shared_packs: 0 }
                    => accumulate::<_, $t, [$t; $tw], Lanes<$tv>, Transposed, $tk, $tr>;
            )* )*
            $( $(
                concat!("dense_forward_", stringify!($t), "_vs", $pv, "_w", $pw, "_k", $pk, "_r", $pr),
                DenseVariant { product: Product::Forward, team: TeamSize::Lanes($pv), tl: $pw * $pk, width: $pw, rows: $pr, shared_packs: 0 }
                    => forward::<_, $t, [$t; $pw], Lanes<$pv>, $pk, $pr>;
            )* )*
        }
    };
}

dense_family! {
    f32;
    fused {
        1 1: (1, 8) (2, 4) (3, 4);
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
    ring 4 { (4, 4, 20) (8, 8, 24) (10, 10, 20) (12, 12, 24) (16, 8, 20) }
    transposed {
        1 1: (1, 8); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 4);
        1 4: (1, 8); 2 4: (1, 8); 4 4: (1, 8); 8 4: (1, 8); 16 4: (1, 8); 32 4: (1, 8) (2, 4) (4, 2);
    }
    forward {
        1 1: (1, 8); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 4);
        1 4: (1, 8); 2 4: (1, 8); 4 4: (1, 8); 8 4: (1, 8); 16 4: (1, 8); 32 4: (1, 8) (2, 4) (4, 2);
    }
}

dense_family! {
    f64;
    fused {
        1 1: (1, 8) (2, 4) (3, 2);
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
    ring 2 { (4, 4, 20) (8, 8, 24) (10, 10, 20) (12, 12, 24) (16, 8, 20) }
    transposed {
        1 1: (1, 8); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 2);
        1 2: (1, 8); 2 2: (1, 8); 4 2: (1, 8); 8 2: (1, 8); 16 2: (1, 8); 32 2: (1, 8) (2, 4) (4, 2);
    }
    forward {
        1 1: (1, 8); 2 1: (1, 8); 4 1: (1, 8); 8 1: (1, 8); 16 1: (1, 8); 32 1: (1, 8) (4, 2);
        1 2: (1, 8); 2 2: (1, 8) (2, 4); 4 2: (1, 8) (2, 4); 8 2: (1, 8) (2, 4); 16 2: (1, 8) (2, 4); 32 2: (1, 8) (2, 4) (4, 2);
    }
}
