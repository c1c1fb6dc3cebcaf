//! The compiled entries, their contract, and what they do.

use super::sums::{AllShared, BUSIEST, OfFrequent, slots};
use super::walk::accumulate;
use super::{Even, EvenArgs, EvenPlace, EvenVariant, PER_LANE, TILE};
use crate::cta::WARP;
use crate::describe::{Description, Form, Load, Number, SharedUse, Sums, Walk};
use crate::fused::{Fused, Place, Product, SparseVariant, TeamSize, Transposed, sparse};
use crate::scalar::Real;
use crate::table::{Launch, Violation};

impl EvenVariant {
    /// What a block takes of shared memory, for elements of `size` bytes.
    pub const fn shared(&self, size: u32) -> SharedUse {
        match self.place {
            EvenPlace::Shared => SharedUse {
                per_column: size,
                per_warp: TILE * size,
                ..SharedUse::NONE
            },
            EvenPlace::Frequent => SharedUse {
                fixed: slots(size) * (4 + 2 * size),
                per_warp: (TILE + BUSIEST) * size,
                ..SharedUse::NONE
            },
        }
    }
}

/// Threads of a block for elements of `size` bytes: as many as registers allow without spilling, on compute capability 8.0 too.
pub const fn most_threads(size: u32) -> u32 {
    if size == 4 { 896 } else { 512 }
}

/// The contract of every entry.
fn check<T: Real>(
    variant: &EvenVariant,
    launch: &Launch,
    args: &EvenArgs<'_, T>,
) -> Result<(), Violation> {
    let of_rows = SparseVariant {
        product: variant.product,
        place: Place::Global,
        vs: 1,
        held: 1,
    };
    sparse::check(&of_rows, launch, &args.x)?;
    let cols = args.x.cols as u64;
    let summed = args.window.checked(variant.product, args.x.cols)?;
    let shared = variant
        .shared(T::SIZE)
        .bytes(summed as u64, launch.block, WARP);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    if variant.place == EvenPlace::Frequent {
        Violation::at_most("columns", i32::MAX as u64, cols)?;
        Violation::at_least("length of keys", slots(T::SIZE) as u64, args.keys.len())?;
    }
    Ok(())
}

/// What an entry of elements of type T does.
const fn describe<T: Real>(variant: &EvenVariant) -> Description {
    Description {
        walk: Walk::EvenShares,
        sums: Sums {
            place: match variant.place {
                EvenPlace::Shared => Place::Shared,
                EvenPlace::Frequent => Place::Global,
            },
            number: Number::Float,
        },
        team: TeamSize::Lanes(WARP),
        load: Load::entries(PER_LANE),
        shared: variant.shared(T::SIZE),
        most_threads: most_threads(T::SIZE),
        ..Description::of(variant.product, Form::Rows)
    }
}

macro_rules! even_family {
    ($t:ident) => {
        crate::kernels! {
            family Even<$t>, "fused";
            args EvenArgs<'a, $t>;
            variant EvenVariant;
            check check::<$t>;
            describe describe::<$t>;
            concat!("even_fused_shared_", stringify!($t)),
            EvenVariant { product: Product::Fused, place: EvenPlace::Shared }
                => accumulate::<_, $t, Fused, AllShared<$t>>;
            concat!("even_fused_frequent_", stringify!($t)),
            EvenVariant { product: Product::Fused, place: EvenPlace::Frequent }
                => accumulate::<_, $t, Fused, OfFrequent<$t>>;
            concat!("even_transposed_shared_", stringify!($t)),
            EvenVariant { product: Product::Transposed, place: EvenPlace::Shared }
                => accumulate::<_, $t, Transposed, AllShared<$t>>;
            concat!("even_transposed_frequent_", stringify!($t)),
            EvenVariant { product: Product::Transposed, place: EvenPlace::Frequent }
                => accumulate::<_, $t, Transposed, OfFrequent<$t>>;
        }
    };
}

even_family!(f32);
even_family!(f64);
