//! The compiled entries with several right-hand sides.
//!
//! Of the fused product Y and W take 2 · L · B registers of a thread (f64: twice as many), L being its columns and B its
//! sides; R rows take R · L more. Widths are those at which few lanes are idle: a plan takes the narrowest that fits.

use super::dense::{self, DenseMany, DenseManyArgs, DenseManyVariant};
use super::sparse::{self, InGlobal, InShared, SparseMany, SparseManyArgs, SparseManyVariant};
use super::tiles::{self, TilesMany, TilesManyArgs, TilesManyVariant};
use super::{dense_contract, dense_forward, dense_narrow, dense_split, tiles_contract};
use crate::fused::{Forward, Fused, Lanes, Place, Product, TeamSize, Transposed, WholeBlock};

/// Rows of narrow entries: `(L, B, chunk, chunks, R)`. Of other fused entries: `name, team, its value: (S, L, B, R, V = R · B)…`. Rows of the others, with L once for all: `name,
/// team, its value; (sides, R, V)…`.
macro_rules! dense_many {
    (
        $t:ident $l:literal;
        narrow { $( ($nl:literal, $nb:literal, $nc:literal, $nm:literal, $nr:literal) )* }
        fused { $( $fname:literal $fteam:ty, $fsize:expr; $( ($fs:literal, $fl:literal, $fb:literal, $fr:literal, $fv:literal) )* );* $(;)? }
        $( $name:literal $team:ty, $size:expr; $( ($b:literal, $r:literal, $v:literal) )* );* $(;)?
    ) => {
        crate::kernels! {
            family DenseMany<$t>, "fused";
            args DenseManyArgs<'a, $t>;
            variant DenseManyVariant;
            check dense_contract::check::<$t>;
            describe crate::describe::unplanned;
            $(
                concat!("dense_many_fused_", stringify!($t), "_t1_l", $nl, "_b", $nb, "_r", $nr),
                DenseManyVariant { product: Product::Fused, team: TeamSize::Lanes(1), width: $nl, sides: $nb, split: 1, rows: $nr }
                    => dense_narrow::accumulate::<_, $t, $nl, $nb, $nc, $nm, $nr>;
            )*
            $( $(
                concat!("dense_many_fused_", stringify!($t), "_", $fname, "_s", $fs, "_l", $fl, "_b", $fb, "_r", $fr),
                DenseManyVariant { product: Product::Fused, team: $fsize, width: $fl, sides: $fs * $fb, split: $fs, rows: $fr }
                    => dense_split::accumulate::<_, $t, $fteam, $fs, $fl, $fb, $fr, $fv>;
            )* )*
            $( $(
                concat!("dense_many_transposed_", stringify!($t), "_", $name, "_b", $b, "_r", $r),
                DenseManyVariant { product: Product::Transposed, team: $size, width: $l, sides: $b, split: 1, rows: $r }
                    => dense::accumulate::<_, $t, $team, $l, $b, $r, $v>;
                concat!("dense_many_forward_", stringify!($t), "_", $name, "_b", $b, "_r", $r),
                DenseManyVariant { product: Product::Forward, team: $size, width: $l, sides: $b, split: 1, rows: $r }
                    => dense_forward::forward::<_, $t, $team, $l, $b, $r, $v>;
            )* )*
        }
    };
}

dense_many! {
    f32 4;
    narrow { (2, 4, 2, 4, 8) (2, 8, 2, 4, 8) (4, 8, 1, 4, 4) (8, 4, 1, 2, 2) (8, 8, 1, 2, 2) }
    fused {
        "t4" Lanes<4>, TeamSize::Lanes(4); (4, 12, 2, 4, 8) (4, 16, 2, 2, 4);
        "t8" Lanes<8>, TeamSize::Lanes(8); (1, 4, 4, 4, 16) (2, 8, 4, 4, 16) (4, 20, 2, 2, 4);
        "t16" Lanes<16>, TeamSize::Lanes(16); (1, 4, 4, 4, 16) (2, 8, 4, 4, 16) (4, 32, 2, 2, 4);
        "t32" Lanes<32>, TeamSize::Lanes(32); (1, 4, 4, 4, 16) (2, 16, 4, 4, 16);
        "block" WholeBlock, TeamSize::Block; (1, 4, 4, 4, 16) (2, 16, 4, 4, 16);
    }
    "vs2" Lanes<2>, TeamSize::Lanes(2); (4, 4, 16) (8, 2, 16);
    "vs8" Lanes<8>, TeamSize::Lanes(8); (4, 4, 16) (8, 4, 32);
    "vs32" Lanes<32>, TeamSize::Lanes(32); (4, 4, 16) (8, 4, 32);
    "block" WholeBlock, TeamSize::Block; (4, 4, 16) (8, 4, 32);
}

dense_many! {
    f64 2;
    narrow { (2, 4, 1, 4, 4) (2, 8, 1, 4, 4) (4, 8, 1, 2, 2) }
    fused {
        "t2" Lanes<2>, TeamSize::Lanes(2); (2, 8, 4, 2, 8);
        "t4" Lanes<4>, TeamSize::Lanes(4); (1, 2, 4, 4, 16) (4, 12, 2, 2, 4);
        "t8" Lanes<8>, TeamSize::Lanes(8); (2, 8, 4, 2, 8);
        "t16" Lanes<16>, TeamSize::Lanes(16); (1, 2, 4, 4, 16) (2, 8, 4, 2, 8) (4, 10, 2, 2, 4);
        "t32" Lanes<32>, TeamSize::Lanes(32); (2, 8, 4, 2, 8);
        "block" WholeBlock, TeamSize::Block; (1, 2, 4, 4, 16) (2, 8, 4, 2, 8);
    }
    "vs4" Lanes<4>, TeamSize::Lanes(4); (4, 4, 16) (8, 2, 16);
    "vs16" Lanes<16>, TeamSize::Lanes(16); (4, 4, 16) (8, 2, 16);
    "block" WholeBlock, TeamSize::Block; (4, 4, 16) (8, 2, 16);
}

/// Rows: `sides: (lanes per row, nonzeros held)…`.
macro_rules! sparse_many {
    ($t:ident: $( $b:literal $vs:literal $held:literal; )*) => {
        crate::kernels! {
            family SparseMany<$t>, "fused";
            args SparseManyArgs<'a, $t>;
            variant SparseManyVariant;
            check sparse::check::<$t>;
            describe crate::describe::unplanned;
            $(
                concat!("sparse_many_fused_shared_", stringify!($t), "_vs", $vs, "_b", $b),
                SparseManyVariant { product: Product::Fused, place: Place::Shared, vs: $vs, held: $held, sides: $b }
                    => sparse::accumulate::<_, $t, Fused, InShared<$t>, $vs, $held, $b>;
                concat!("sparse_many_fused_global_", stringify!($t), "_vs", $vs, "_b", $b),
                SparseManyVariant { product: Product::Fused, place: Place::Global, vs: $vs, held: $held, sides: $b }
                    => sparse::accumulate::<_, $t, Fused, InGlobal, $vs, $held, $b>;
                concat!("sparse_many_transposed_shared_", stringify!($t), "_vs", $vs, "_b", $b),
                SparseManyVariant { product: Product::Transposed, place: Place::Shared, vs: $vs, held: $held, sides: $b }
                    => sparse::accumulate::<_, $t, Transposed, InShared<$t>, $vs, $held, $b>;
                concat!("sparse_many_transposed_global_", stringify!($t), "_vs", $vs, "_b", $b),
                SparseManyVariant { product: Product::Transposed, place: Place::Global, vs: $vs, held: $held, sides: $b }
                    => sparse::accumulate::<_, $t, Transposed, InGlobal, $vs, $held, $b>;
                concat!("sparse_many_forward_", stringify!($t), "_vs", $vs, "_b", $b),
                SparseManyVariant { product: Product::Forward, place: Place::Absent, vs: $vs, held: $held, sides: $b }
                    => sparse::forward::<_, $t, $vs, $held, $b>;
            )*
        }
    };
}

sparse_many!(f32: 4 4 5; 8 4 5; 8 32 2;);
sparse_many!(f64: 4 4 5; 8 4 5; 8 32 2;);

/// Rows: the sides of an entry.
macro_rules! tiles_many {
    ($t:ident: $( $b:literal )*) => {
        crate::kernels! {
            family TilesMany<$t>, "fused";
            args TilesManyArgs<'a, $t>;
            variant TilesManyVariant;
            check tiles_contract::check::<$t>;
            describe crate::describe::unplanned;
            $(
                concat!("tiles_many_fused_", stringify!($t), "_b", $b),
                TilesManyVariant { product: Product::Fused, sides: $b } => tiles::walk::<_, $t, Fused, $b>;
                concat!("tiles_many_forward_", stringify!($t), "_b", $b),
                TilesManyVariant { product: Product::Forward, sides: $b } => tiles::walk::<_, $t, Forward, $b>;
                concat!("tiles_many_transposed_", stringify!($t), "_b", $b),
                TilesManyVariant { product: Product::Transposed, sides: $b } => tiles::walk::<_, $t, Transposed, $b>;
            )*
        }
    };
}

tiles_many!(f32: 4 8);
tiles_many!(f64: 4);
