//! The compiled sparse entries.
//!
//! Nonzeros held per lane cover a row of the length that the planner sends to this vector size: 20
//! nonzeros fit 4 × 5, 8 × 3 or 16 × 2 without a second read.

use crate::fused::sparse::private;
use crate::fused::sparse::variant::{SparseVariant, describe};
use crate::fused::sparse::{InGlobal, InShared, Sparse, SparseArgs, accumulate, check, forward};
use crate::fused::{Fused, Place, Product, Transposed};

macro_rules! sparse_family {
    ($t:ident: $( ($vs:literal, $held:literal, $ahead:literal) )*; private $( ($own_vs:literal, $own_held:literal) )*) => {
        crate::kernels! {
            family Sparse<$t>, "fused";
            args SparseArgs<'a, $t>;
            variant SparseVariant;
            check check::<$t>;
            describe describe::<$t>;
            $(
                concat!("sparse_fused_shared_", stringify!($t), "_vs", $vs),
                SparseVariant { product: Product::Fused, place: Place::Shared, vs: $vs, held: $held }
                    => accumulate::<_, $t, Fused, InShared<$t>, $vs, $held>;
                concat!("sparse_fused_global_", stringify!($t), "_vs", $vs),
                SparseVariant { product: Product::Fused, place: Place::Global, vs: $vs, held: $held }
                    => accumulate::<_, $t, Fused, InGlobal, $vs, $held>;
                concat!("sparse_transposed_shared_", stringify!($t), "_vs", $vs),
                SparseVariant { product: Product::Transposed, place: Place::Shared, vs: $vs, held: $held }
                    => accumulate::<_, $t, Transposed, InShared<$t>, $vs, $held>;
                concat!("sparse_transposed_global_", stringify!($t), "_vs", $vs),
                SparseVariant { product: Product::Transposed, place: Place::Global, vs: $vs, held: $held }
                    => accumulate::<_, $t, Transposed, InGlobal, $vs, $held>;
                concat!("sparse_forward_", stringify!($t), "_vs", $vs),
                SparseVariant { product: Product::Forward, place: Place::Absent, vs: $vs, held: $held }
                    => forward::<_, $t, $vs, $ahead>;
            )*
            $(
                concat!("sparse_fused_private_", stringify!($t), "_vs", $own_vs),
                SparseVariant { product: Product::Fused, place: Place::Private, vs: $own_vs, held: $own_held }
                    => private::accumulate::<_, $t, Fused, $own_vs, $own_held>;
                concat!("sparse_transposed_private_", stringify!($t), "_vs", $own_vs),
                SparseVariant { product: Product::Transposed, place: Place::Private, vs: $own_vs, held: $own_held }
                    => private::accumulate::<_, $t, Transposed, $own_vs, $own_held>;
            )*
        }
    };
}

// Lanes, nonzeros of a row that a lane holds, and those that X·y has on their way at once: planners count it by
// the former. With more than these f64 takes 40 registers, and an SM holds fewer warps.
sparse_family!(f32: (1, 4, 4) (2, 4, 4) (4, 5, 5) (8, 3, 5) (16, 2, 3) (32, 2, 4); private (4, 5) (8, 3) (16, 2) (32, 2));
sparse_family!(f64: (1, 4, 2) (2, 4, 3) (4, 5, 5) (8, 3, 3) (16, 2, 3) (32, 2, 3); private (4, 5) (8, 3) (16, 2) (32, 2));
