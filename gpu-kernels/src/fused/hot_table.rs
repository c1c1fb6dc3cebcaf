//! The compiled entries for hot columns.

use super::hot::{Hot, HotArgs, HotVariant, begin, finish};
use super::hot_contract::check;
use super::hot_walk::walk;
use super::{Fused, Product, Transposed};

macro_rules! hot_family {
    ($t:ident) => {
        crate::kernels! {
            family Hot<$t>, "fused";
            args HotArgs<'a, $t>;
            variant HotVariant;
            check check::<$t>;
            concat!("hot_begin_fused_", stringify!($t)), HotVariant::Begin(Product::Fused) => begin::<_, $t, Fused>;
            concat!("hot_begin_transposed_", stringify!($t)), HotVariant::Begin(Product::Transposed) => begin::<_, $t, Transposed>;
            concat!("hot_walk_fused_", stringify!($t)), HotVariant::Walk(Product::Fused) => walk::<_, $t, Fused>;
            concat!("hot_walk_transposed_", stringify!($t)), HotVariant::Walk(Product::Transposed) => walk::<_, $t, Transposed>;
            concat!("hot_finish_", stringify!($t)), HotVariant::Finish => finish::<_, $t>;
        }
    };
}

hot_family!(f32);
hot_family!(f64);
