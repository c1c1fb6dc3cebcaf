//! The compiled entries for hot columns.
//!
//! Both products for whole values and for each shorter form: an element type of 4 bytes has one form less. Which
//! entries are cold, and whether there is one constant for all rows or one for each, is decided by what is there.

use crate::fused::hot::contract::check;
use crate::fused::hot::values::{Bf16, Constant, Single, Whole};
use crate::fused::hot::variant::{HotVariant, describe};
use crate::fused::hot::walk::walk;
use crate::fused::hot::{Hot, HotArgs, HotValues, begin, finish};
use crate::fused::{Fused, Product, Transposed};

macro_rules! hot_family {
    ($t:ident $(, $single:ident)?) => {
        crate::kernels! {
            family Hot<$t>, "fused";
            args HotArgs<'a, $t>;
            variant HotVariant;
            check check::<$t>;
            describe describe::<$t>;
            concat!("hot_begin_fused_", stringify!($t)), HotVariant::Begin(Product::Fused) => begin::<_, $t, Fused>;
            concat!("hot_begin_transposed_", stringify!($t)), HotVariant::Begin(Product::Transposed) => begin::<_, $t, Transposed>;
            concat!("hot_walk_fused_", stringify!($t)), HotVariant::Walk(Product::Fused, HotValues::Whole) => walk::<_, $t, Fused, Whole>;
            concat!("hot_walk_transposed_", stringify!($t)), HotVariant::Walk(Product::Transposed, HotValues::Whole) => walk::<_, $t, Transposed, Whole>;
            concat!("hot_walk_fused_bf16_", stringify!($t)), HotVariant::Walk(Product::Fused, HotValues::Bf16) => walk::<_, $t, Fused, Bf16>;
            concat!("hot_walk_transposed_bf16_", stringify!($t)), HotVariant::Walk(Product::Transposed, HotValues::Bf16) => walk::<_, $t, Transposed, Bf16>;
            concat!("hot_walk_fused_constant_", stringify!($t)), HotVariant::Walk(Product::Fused, HotValues::Constant) => walk::<_, $t, Fused, Constant>;
            concat!("hot_walk_transposed_constant_", stringify!($t)), HotVariant::Walk(Product::Transposed, HotValues::Constant) => walk::<_, $t, Transposed, Constant>;
            $(
                concat!("hot_walk_fused_f32_", stringify!($t)), HotVariant::Walk(Product::Fused, HotValues::Single) => walk::<_, $t, Fused, $single>;
                concat!("hot_walk_transposed_f32_", stringify!($t)), HotVariant::Walk(Product::Transposed, HotValues::Single) => walk::<_, $t, Transposed, $single>;
            )?
            concat!("hot_finish_", stringify!($t)), HotVariant::Finish => finish::<_, $t>;
        }
    };
}

hot_family!(f32);
hot_family!(f64, Single);
