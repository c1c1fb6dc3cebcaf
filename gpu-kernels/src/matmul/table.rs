//! The compiled entries.

use super::packed::Operand;
use super::{
    Matmul, MatmulArgs, MatmulVariant, blocked, check, combine, halves, packing, pipelined, plain,
    tensor, tensor_f64,
};

macro_rules! matmul_family {
    ($t:ident; $each:literal $tile:literal;
        tiles $( [$rows:literal $columns:literal: $high:literal $right:literal ] )*;
        $( $more:tt )*) => {
        crate::kernels! {
            family Matmul<$t>, "matmul";
            args MatmulArgs<'a, $t>;
            variant MatmulVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("matmul_naive_", stringify!($t)), MatmulVariant::Naive => plain::naive::<_, $t>;
            concat!("matmul_registers_", stringify!($t)), MatmulVariant::Registers
                => plain::registers::<_, $t>;
            concat!("matmul_shared_", stringify!($t)), MatmulVariant::Shared => plain::shared::<_, $t>;
            concat!("matmul_blocked_", stringify!($t), "_", $tile), MatmulVariant::Blocked { each: $each }
                => blocked::blocked::<_, $t, $each, $tile>;
            $(
                concat!("matmul_pipelined_", stringify!($t), "_", $rows, "x", $columns),
                MatmulVariant::Pipelined { rows: $rows, columns: $columns }
                    => pipelined::pipelined::<_, $t, $high, $right, $rows, $columns>;
            )*
            concat!("matmul_combine_", stringify!($t)), MatmulVariant::Combine => combine::combine::<_, $t>;
            $( $more )*
        }
    };
}

// Rows and columns of a tile: groups of a thread down, warps beside one another.
matmul_family!(f32; 8 128;
    tiles [64 128: 2 2] [128 64: 2 1];
    "matmul_split_tf32_f32_128", MatmulVariant::SplitTf32 => tensor::split_tf32::<_>;
    "matmul_split_f16_f32_128", MatmulVariant::SplitF16 => halves::split_f16::<_>;
    "matmul_largest_f16_f32", MatmulVariant::LargestF16 => packing::largest::<_>;
    "matmul_pack_left_f16_f32", MatmulVariant::PackF16 { operand: Operand::Left }
        => packing::pack::<_, true>;
    "matmul_pack_right_f16_f32", MatmulVariant::PackF16 { operand: Operand::Right }
        => packing::pack::<_, false>;
);
matmul_family!(f64; 4 64;
    tiles [64 64: 1 1];
    "matmul_tensor_f64_64x128", MatmulVariant::TensorF64 { rows: 64, columns: 128 }
        => tensor_f64::tensor_f64::<_, 64, 128, { tensor_f64::threads(64, 128) }>;
    "matmul_tensor_f64_128x128", MatmulVariant::TensorF64 { rows: 128, columns: 128 }
        => tensor_f64::tensor_f64::<_, 128, 128, { tensor_f64::threads(128, 128) }>;
);
