//! The families of one element type: what generic host code is written against.

use crate::cg::{Cg, CgArgs, CgVariant};
use crate::fused::{Dense, DenseArgs, DenseVariant, Sparse, SparseArgs, SparseVariant};
use crate::math::Elementary;
use crate::table::Family;
use crate::vector::{VectorArgs, VectorVariant, Vectors};

/// A real number type for which every family has entries.
pub trait Kernels: Elementary {
    /// Sparse fused pattern and its halves.
    type Sparse: Family<Variant = SparseVariant> + for<'a> Family<Args<'a> = SparseArgs<'a, Self>>;
    /// Dense fused pattern and its halves.
    type Dense: Family<Variant = DenseVariant> + for<'a> Family<Args<'a> = DenseArgs<'a, Self>>;
    /// Vectors.
    type Vectors: Family<Variant = VectorVariant> + for<'a> Family<Args<'a> = VectorArgs<'a, Self>>;
    /// Conjugate gradients.
    type Cg: Family<Variant = CgVariant> + for<'a> Family<Args<'a> = CgArgs<'a, Self>>;
}

macro_rules! all_families {
    ($($t:ident)*) => { $(
        impl Kernels for $t {
            type Sparse = Sparse<$t>;
            type Dense = Dense<$t>;
            type Vectors = Vectors<$t>;
            type Cg = Cg<$t>;
        }
    )* };
}

all_families!(f32 f64);
