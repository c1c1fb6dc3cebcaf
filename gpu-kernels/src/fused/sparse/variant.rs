//! What distinguishes sparse entries, and what they do.

use crate::describe::{Description, Form, Input, Load, Number, SharedUse, Sums};
use crate::fused::{Place, Product, TeamSize};
use crate::scalar::Real;

/// What distinguishes sparse entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseVariant {
    /// What is computed.
    pub product: Product,
    /// Where w lives.
    pub place: Place,
    /// VS: lanes per row.
    pub vs: u32,
    /// K: nonzeros per lane kept in registers.
    pub held: u32,
}

impl SparseVariant {
    /// Dynamic shared memory that a block of `block` threads needs for n columns of `size`-byte elements.
    pub const fn shared_bytes(&self, cols: u32, block: u32, size: u32) -> u64 {
        let vectors = match self.place {
            Place::Shared => 1,
            Place::Private => self.private_copies(block),
            _ => 0,
        };
        vectors * cols as u64 * size as u64
    }

    /// Vectors of n elements in the shared memory of a block with private copies of w: one for each vector of lanes,
    /// and y where there is one.
    const fn private_copies(&self, block: u32) -> u64 {
        let copies = (block / self.vs) as u64;
        match self.product {
            Product::Fused => copies + 1,
            _ => copies,
        }
    }
}

/// What an entry of elements of type T does.
pub(crate) const fn describe<T: Real>(variant: &SparseVariant) -> Description {
    let SparseVariant {
        product,
        place,
        vs,
        held,
    } = *variant;
    let of_column = variant.shared_bytes(1, 0, T::SIZE) as u32;
    let of_vector = variant.shared_bytes(1, vs, T::SIZE) as u32 - of_column;
    let description = Description::of(product, Form::Rows);
    Description {
        sums: Sums {
            place,
            number: Number::Float,
        },
        input: match (place, product) {
            (Place::Private, Product::Fused) => Input::Shared,
            _ => description.input,
        },
        team: TeamSize::Lanes(vs),
        load: Load::entries(held),
        shared: SharedUse {
            per_column: of_column,
            per_vector_column: of_vector,
            ..SharedUse::NONE
        },
        ..description
    }
}
