//! What distinguishes entries for hot columns, and what they do.

use crate::describe::{Description, Form, Input, Load, Number, SharedUse, Sums, Walk};
use crate::fused::hot::{HELD, SPARE, bytes_of_place, words};
use crate::fused::{HotValues, Place, Product, TeamSize};
use crate::scalar::Real;

/// Shared memory of a block in which the planner gives places to hot columns, bytes: what is left of 228 KiB is the L1
/// cache, which rows on their way need. 4,000,000 rows of 20 on an H200, µs:
///
/// | columns, by Zipf's law | 5,200 places | 8,000 | 10,890 | 13,600 | 16,300 | 18,800 |
/// |---|---|---|---|---|---|---|
/// | 20,000,000, exponent 1.1 | 479 | 480 | 483 | 487 | 494 | 615 |
/// | 1,000,000, exponent 0.8 | 708 | 685 | 680 | 669 | 662 | 752 |
pub const HOT_BYTES: u32 = 128 * 1024;

/// What distinguishes entries for hot columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HotVariant {
    /// Prepares the vectors.
    Begin(Product),
    /// Walks the rows.
    Walk(Product, HotValues),
    /// Adds the sums of hot columns to w.
    Finish,
}

impl HotVariant {
    /// Threads of a block at most, for elements of `size` bytes: as many as the registers of an SM are enough for. 80 million
    /// entries of 10,000 columns took 148 µs with 1,024 threads on an H200, with 512 219.
    pub const fn most_threads(&self, size: u32) -> u32 {
        match (self, size) {
            (HotVariant::Walk(..), 8) => 768,
            _ => 1024,
        }
    }

    /// Dynamic shared memory of a block of `block` threads for `places` places and elements of `size` bytes.
    pub const fn shared_bytes(&self, places: u32, block: u32, size: u32) -> u64 {
        let places = (places + SPARE) as u64;
        match self {
            HotVariant::Begin(_) => crate::fused::fixed::range::shared_bytes(block),
            HotVariant::Walk(Product::Transposed, _) => places * 4 * words(size) as u64,
            HotVariant::Walk(..) => places * bytes_of_place(size) as u64,
            HotVariant::Finish => 0,
        }
    }
}

/// What an entry of elements of type T does.
pub(crate) const fn describe<T: Real>(variant: &HotVariant) -> Description {
    let HotVariant::Walk(product, values) = *variant else {
        return Description::UNPLANNED;
    };
    let description = Description::of(product, Form::HotColumns(values));
    Description {
        walk: Walk::Slices,
        sums: Sums {
            place: Place::Shared,
            number: Number::Fixed,
        },
        input: match product {
            Product::Transposed => description.input,
            _ => Input::Shared,
        },
        // As many lanes as share short rows.
        team: TeamSize::Lanes(2),
        load: Load::entries(HELD),
        shared: SharedUse::fixed(HOT_BYTES),
        most_threads: variant.most_threads(T::SIZE),
        ..description
    }
}
