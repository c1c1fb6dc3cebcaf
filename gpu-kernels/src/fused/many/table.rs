//! The compiled entries with several right-hand sides.
//!
//! Y and W take 2 · L · B registers of a thread (f64: twice as many), R · B more are the dot products: 4 rows of 8
//! sides are what 128 registers hold where L is one pack.

use super::dense::{self, DenseMany, DenseManyArgs, DenseManyVariant};
use super::sparse::{self, InGlobal, InShared, SparseMany, SparseManyArgs, SparseManyVariant};
use super::tiles::{self, TilesMany, TilesManyArgs, TilesManyVariant};
use super::{dense_contract, dense_forward};
use crate::fused::{Forward, Fused, Lanes, Place, Product, TeamSize, Transposed, WholeBlock};

/// Rows: `team name, team type, team value, L of fused entries: (sides, rows in flight, their product)…`.
macro_rules! dense_many {
    (
        $t:ident $l:literal;
        fused { $( $fname:literal $fteam:ty, $fsize:expr, $fl:literal; $( ($fb:literal, $fr:literal, $fv:literal) )* );* $(;)? }
        $( $name:literal $team:ty, $size:expr; $( ($b:literal, $r:literal, $v:literal) )* );* $(;)?
    ) => {
        crate::kernels! {
            family DenseMany<$t>, "fused";
            args DenseManyArgs<'a, $t>;
            variant DenseManyVariant;
            check dense_contract::check::<$t>;
            $( $(
                concat!("dense_many_fused_", stringify!($t), "_", $fname, "_l", $fl, "_b", $fb, "_r", $fr),
                DenseManyVariant { product: Product::Fused, team: $fsize, width: $fl, sides: $fb, rows: $fr }
                    => dense::accumulate::<_, $t, $fteam, Fused, $fl, $fb, $fr, $fv>;
            )* )*
            $( $(
                concat!("dense_many_transposed_", stringify!($t), "_", $name, "_b", $b, "_r", $r),
                DenseManyVariant { product: Product::Transposed, team: $size, width: $l, sides: $b, rows: $r }
                    => dense::accumulate::<_, $t, $team, Transposed, $l, $b, $r, $v>;
                concat!("dense_many_forward_", stringify!($t), "_", $name, "_b", $b, "_r", $r),
                DenseManyVariant { product: Product::Forward, team: $size, width: $l, sides: $b, rows: $r }
                    => dense_forward::forward::<_, $t, $team, $l, $b, $r, $v>;
            )* )*
        }
    };
}

dense_many! {
    f32 4;
    fused {
        "vs2" Lanes<2>, TeamSize::Lanes(2), 4; (4, 4, 16) (8, 2, 16);
        "vs8" Lanes<8>, TeamSize::Lanes(8), 4; (4, 4, 16);
        "vs16" Lanes<16>, TeamSize::Lanes(16), 4; (4, 4, 16);
        "vs32" Lanes<32>, TeamSize::Lanes(32), 4; (4, 4, 16);
        "vs2" Lanes<2>, TeamSize::Lanes(2), 8; (8, 2, 16);
        "vs4" Lanes<4>, TeamSize::Lanes(4), 8; (8, 2, 16);
        "vs8" Lanes<8>, TeamSize::Lanes(8), 8; (8, 2, 16);
        "vs16" Lanes<16>, TeamSize::Lanes(16), 8; (8, 2, 16);
        "block" WholeBlock, TeamSize::Block, 4; (4, 4, 16) (8, 4, 32);
    }
    "vs2" Lanes<2>, TeamSize::Lanes(2); (4, 4, 16) (8, 2, 16);
    "vs8" Lanes<8>, TeamSize::Lanes(8); (4, 4, 16) (8, 4, 32);
    "vs32" Lanes<32>, TeamSize::Lanes(32); (4, 4, 16) (8, 4, 32);
    "block" WholeBlock, TeamSize::Block; (4, 4, 16) (8, 4, 32);
}

dense_many! {
    f64 2;
    fused {
        "vs4" Lanes<4>, TeamSize::Lanes(4), 2; (4, 4, 16) (8, 1, 8);
        "vs16" Lanes<16>, TeamSize::Lanes(16), 2; (4, 4, 16);
        "vs4" Lanes<4>, TeamSize::Lanes(4), 4; (8, 2, 16);
        "vs8" Lanes<8>, TeamSize::Lanes(8), 4; (8, 2, 16);
        "vs16" Lanes<16>, TeamSize::Lanes(16), 4; (8, 2, 16);
        "vs32" Lanes<32>, TeamSize::Lanes(32), 4; (8, 2, 16);
        "block" WholeBlock, TeamSize::Block, 2; (4, 4, 16) (8, 2, 16);
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
            check tiles::check::<$t>;
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
