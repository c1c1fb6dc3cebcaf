//! The compiled entries.

use super::{Matmul, MatmulArgs, MatmulVariant, check, plain, tensor, tiles};

macro_rules! matmul_family {
    ($t:ident: $( $each:literal $tile:literal )*; $( $more:tt )*) => {
        crate::kernels! {
            family Matmul<$t>, "matmul";
            args MatmulArgs<'a, $t>;
            variant MatmulVariant;
            check check::<$t>;
            concat!("matmul_naive_", stringify!($t)), MatmulVariant::Naive => plain::naive::<_, $t>;
            concat!("matmul_registers_", stringify!($t)), MatmulVariant::Registers
                => plain::registers::<_, $t>;
            concat!("matmul_shared_", stringify!($t)), MatmulVariant::Shared => plain::shared::<_, $t>;
            $(
                concat!("matmul_blocked_", stringify!($t), "_", $tile), MatmulVariant::Blocked { each: $each }
                    => tiles::blocked::<_, $t, $each, $tile>;
                concat!("matmul_pipelined_", stringify!($t), "_", $tile), MatmulVariant::Pipelined { each: $each }
                    => tiles::pipelined::<_, $t, $each, $tile>;
            )*
            $( $more )*
        }
    };
}

matmul_family!(f32: 8 128 4 64;
    "matmul_split_tf32_f32_128", MatmulVariant::SplitTf32 => tensor::split_tf32::<_>;
);
matmul_family!(f64: 4 64;);
