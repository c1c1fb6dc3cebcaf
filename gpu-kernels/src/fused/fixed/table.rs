//! The compiled entries with fixed-point sums.
//!
//! Three vector sizes: the reproducible order of a dot product follows from them, so there are no more than are
//! needed. 20 nonzeros fit 4 × 5 and 8 × 3.

use crate::describe::Input;
use crate::fused::fixed::contract::check;
use crate::fused::fixed::even;
use crate::fused::fixed::even::places::{OfAll, OfFrequent};
use crate::fused::fixed::headed::InHead;
use crate::fused::fixed::split;
use crate::fused::fixed::spread;
use crate::fused::fixed::variant::{FixedVariant, describe};
use crate::fused::fixed::{
    Fixed, FixedArgs, InGlobal, InShared, accumulate, begin, columns, equilibrate, finish,
};
use crate::fused::{EvenPlace, Fused, Place, Product, Transposed};

macro_rules! fixed_family {
    ($t:ident: $( ($vs:literal, $held:literal) )*) => {
        crate::kernels! {
            family Fixed<$t>, "fused";
            args FixedArgs<'a, $t>;
            variant FixedVariant;
            check check::<$t>;
            describe describe::<$t>;
            concat!("fixed_columns_", stringify!($t)), FixedVariant::Columns => columns::<_, $t>;
            concat!("fixed_equilibrate_", stringify!($t)), FixedVariant::Equilibrate => equilibrate::<_, $t>;
            concat!("fixed_begin_fused_", stringify!($t)), FixedVariant::Begin(Product::Fused) => begin::<_, $t, Fused>;
            concat!("fixed_begin_transposed_", stringify!($t)), FixedVariant::Begin(Product::Transposed) => begin::<_, $t, Transposed>;
            concat!("fixed_finish_", stringify!($t)), FixedVariant::Finish => finish::<_, $t>;
            $(
                concat!("fixed_fused_shared_y_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Fused, place: Place::Shared, input: Input::Shared, vs: $vs, held: $held }
                    => accumulate::<_, $t, Fused, InShared<$t, true>, $vs, $held>;
                concat!("fixed_fused_shared_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Fused, place: Place::Shared, input: Input::Gathered, vs: $vs, held: $held }
                    => accumulate::<_, $t, Fused, InShared<$t, false>, $vs, $held>;
                concat!("fixed_fused_cluster2_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Fused, place: Place::Spread, input: Input::Gathered, vs: $vs, held: $held }
                    => spread::accumulate::<_, $t, Fused, $vs, $held>;
                concat!("fixed_fused_halves_y_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Fused, place: Place::Split, input: Input::Shared, vs: $vs, held: $held }
                    => split::accumulate::<_, $t, Fused, true, $vs, $held>;
                concat!("fixed_fused_global_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Fused, place: Place::Global, input: Input::Gathered, vs: $vs, held: $held }
                    => accumulate::<_, $t, Fused, InGlobal, $vs, $held>;
                concat!("fixed_transposed_shared_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Transposed, place: Place::Shared, input: Input::Streamed, vs: $vs, held: $held }
                    => accumulate::<_, $t, Transposed, InShared<$t, false>, $vs, $held>;
                concat!("fixed_transposed_cluster2_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Transposed, place: Place::Spread, input: Input::Streamed, vs: $vs, held: $held }
                    => spread::accumulate::<_, $t, Transposed, $vs, $held>;
                concat!("fixed_transposed_halves_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Transposed, place: Place::Split, input: Input::Streamed, vs: $vs, held: $held }
                    => split::accumulate::<_, $t, Transposed, false, $vs, $held>;
                concat!("fixed_transposed_global_", stringify!($t), "_vs", $vs),
                FixedVariant::Accumulate { product: Product::Transposed, place: Place::Global, input: Input::Streamed, vs: $vs, held: $held }
                    => accumulate::<_, $t, Transposed, InGlobal, $vs, $held>;
                concat!("fixed_fused_head_", stringify!($t), "_vs", $vs),
                FixedVariant::Headed { product: Product::Fused, vs: $vs, held: $held }
                    => accumulate::<_, $t, Fused, InHead<$t, true>, $vs, $held>;
                concat!("fixed_transposed_head_", stringify!($t), "_vs", $vs),
                FixedVariant::Headed { product: Product::Transposed, vs: $vs, held: $held }
                    => accumulate::<_, $t, Transposed, InHead<$t, false>, $vs, $held>;
                concat!("fixed_even_fused_shared_", stringify!($t), "_vs", $vs),
                FixedVariant::Even { product: Product::Fused, place: EvenPlace::Shared, vs: $vs }
                    => even::accumulate::<_, $t, Fused, OfAll<$t>, $vs>;
                concat!("fixed_even_fused_frequent_", stringify!($t), "_vs", $vs),
                FixedVariant::Even { product: Product::Fused, place: EvenPlace::Frequent, vs: $vs }
                    => even::accumulate::<_, $t, Fused, OfFrequent<$t>, $vs>;
            )*
            concat!("fixed_even_transposed_shared_", stringify!($t)),
            FixedVariant::Even { product: Product::Transposed, place: EvenPlace::Shared, vs: 8 }
                => even::accumulate::<_, $t, Transposed, OfAll<$t>, 8>;
            concat!("fixed_even_transposed_frequent_", stringify!($t)),
            FixedVariant::Even { product: Product::Transposed, place: EvenPlace::Frequent, vs: 8 }
                => even::accumulate::<_, $t, Transposed, OfFrequent<$t>, 8>;
        }
    };
}

fixed_family!(f32: (4, 5) (8, 3) (32, 2));
fixed_family!(f64: (4, 5) (8, 3) (32, 2));
