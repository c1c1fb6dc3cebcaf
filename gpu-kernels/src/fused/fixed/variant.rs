//! What distinguishes entries with fixed-point sums, and what they do.

use crate::cta::WARP;
use crate::describe::{Description, Form, Input, Load, Number, SharedUse, Sums, Walk};
use crate::fused::even::{PER_LANE, TILE, sums::slots};
use crate::fused::fixed::even::places::SPARE;
use crate::fused::fixed::even::{EXCHANGED, most_threads};
use crate::fused::fixed::point::FixedPoint;
use crate::fused::{EvenPlace, Place, Product, TeamSize};
use crate::scalar::Real;

/// Blocks of the clusters of [`Place::Spread`] and [`Place::Split`].
pub const CLUSTER: u32 = 2;

/// What distinguishes entries with fixed-point sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FixedVariant {
    /// Finds the exponents of the columns.
    Columns,
    /// Scales the values.
    Equilibrate,
    /// Scales y, finds ranges.
    Begin(Product),
    /// Walks the rows.
    Accumulate {
        /// What is computed.
        product: Product,
        /// Where sums are.
        place: Place,
        /// Where y or p is.
        input: Input,
        /// VS: lanes per row.
        vs: u32,
        /// K: nonzeros per lane kept in registers.
        held: u32,
    },
    /// Walks the rows, the most frequent columns of which are kept apart.
    Headed {
        /// What is computed.
        product: Product,
        /// VS: lanes per row.
        vs: u32,
        /// K: nonzeros per lane kept in registers.
        held: u32,
    },
    /// Walks even shares of the entries.
    Even {
        /// What is computed.
        product: Product,
        /// Where sums are.
        place: EvenPlace,
        /// VS: lanes that add up a row; of [`Product::Transposed`], which adds up nothing, lanes that tell the row's factor.
        vs: u32,
    },
    /// Writes w.
    Finish,
}

/// Sums that each block has room for when a cluster has those of `cols` columns.
pub(crate) const fn places(cols: u32) -> u32 {
    cols.div_ceil(CLUSTER)
}

/// Words of a sum of elements of `size` bytes.
const fn words(size: u32) -> u32 {
    if size == 4 {
        <f32 as FixedPoint>::WORDS
    } else {
        <f64 as FixedPoint>::WORDS
    }
}

impl FixedVariant {
    /// Blocks of the clusters in which it is launched; 1 for blocks by themselves.
    pub const fn cluster(&self) -> u32 {
        match self {
            FixedVariant::Accumulate {
                place: Place::Spread | Place::Split,
                ..
            } => CLUSTER,
            _ => 1,
        }
    }

    /// Dynamic shared memory of a block that walks rows with a head of this many places, of `size`-byte elements.
    pub const fn head_bytes(product: Product, places: u32, size: u32) -> u64 {
        crate::fused::fixed::headed::shared_bytes(product, places, (size, words(size)))
    }

    /// Dynamic shared memory of a block of `block` threads for n columns of `size`-byte elements; that of a head is
    /// [by itself](FixedVariant::head_bytes).
    pub const fn shared_bytes(&self, cols: u32, block: u32, size: u32) -> u64 {
        let words = words(size) as u64;
        let FixedVariant::Accumulate { place, input, .. } = self else {
            return match self {
                FixedVariant::Begin(_) => crate::fused::fixed::range::shared_bytes(block),
                FixedVariant::Even { place, .. } => {
                    shared_of_even(*place, size).bytes(cols as u64, block, WARP)
                }
                _ => 0,
            };
        };
        let sums = match place {
            Place::Shared => cols,
            Place::Spread | Place::Split => places(cols),
            _ => 0,
        };
        let elements = match input {
            Input::Shared => cols,
            _ => 0,
        };
        sums as u64 * 4 * words + elements as u64 * size as u64
    }
}

/// What a block takes of shared memory that walks shares of entries of `size` bytes.
const fn shared_of_even(place: EvenPlace, size: u32) -> SharedUse {
    let sum = 4 * words(size);
    let per_warp = EXCHANGED * TILE * size;
    let fixed = match place {
        EvenPlace::Shared => 0,
        EvenPlace::Frequent => slots(size) * (4 + size + sum),
    };
    SharedUse {
        per_column: match place {
            EvenPlace::Shared => sum,
            EvenPlace::Frequent => 0,
        },
        ..SharedUse::fixed(fixed + SPARE * sum).and_per_warp(per_warp)
    }
}

/// What an entry of elements of type T does.
pub(crate) const fn describe<T: Real>(variant: &FixedVariant) -> Description {
    match *variant {
        FixedVariant::Accumulate { .. } => describe_rows::<T>(variant),
        FixedVariant::Even { product, place, vs } => Description {
            walk: Walk::EvenShares,
            sums: Sums {
                place: match place {
                    EvenPlace::Shared => Place::Shared,
                    EvenPlace::Frequent => Place::Global,
                },
                number: Number::Fixed,
            },
            team: TeamSize::Lanes(vs),
            load: Load::entries(PER_LANE),
            shared: shared_of_even(place, T::SIZE),
            most_threads: most_threads(T::SIZE),
            ..Description::of(product, Form::Rows)
        },
        _ => Description::UNPLANNED,
    }
}

/// The same of those that walk rows.
const fn describe_rows<T: Real>(variant: &FixedVariant) -> Description {
    let FixedVariant::Accumulate {
        product,
        place,
        input,
        vs,
        held,
    } = *variant
    else {
        return Description::UNPLANNED;
    };
    let cluster = variant.cluster();
    let per_column = variant.shared_bytes(cluster, 0, T::SIZE) as u32 / cluster;
    Description {
        sums: Sums {
            place,
            number: Number::Fixed,
        },
        input,
        team: TeamSize::Lanes(vs),
        load: Load::entries(held),
        shared: SharedUse {
            per_column,
            // A column that has no other beside it.
            fixed: variant.shared_bytes(1, 0, T::SIZE) as u32 - per_column,
            ..SharedUse::NONE
        },
        cluster,
        ..Description::of(product, Form::Rows)
    }
}
