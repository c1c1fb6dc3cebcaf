//! The compiled entries.
//!
//! The Gaussian in f32, which everybody uses, has entries for 1, 2 and 3 dimensions; the others compute with 3, of
//! which the missing ones are zero.

use super::radial::{
    Cauchy, Gaussian, InverseMultiquadric, KernelFunction, Laplace, Matern12, Matern32, Matern52,
};
use super::{
    KernelSumArgs, KernelSumVariant, KernelSums, check, exchange, finish, folded, gradient, narrow,
    products, tiled,
};

macro_rules! kernel_sum_family {
    ($t:ident: narrow $( ($f:ident, $name:literal, $dims:literal) )*; any $( ($g:ident, $g_name:literal) )*; products $( $near:literal )*) => {
        crate::kernels! {
            family KernelSums<$t>, "kernel_sum";
            args KernelSumArgs<'a, $t>;
            variant KernelSumVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("kernel_sum_finish_", stringify!($t)), KernelSumVariant::Finish
                => finish::finish::<_, $t>;
            $(
                concat!("kernel_sum_narrow_", stringify!($t), "_", $name, "_d", $dims),
                KernelSumVariant::Narrow { function: KernelFunction::$f, dims: $dims }
                    => narrow::plain::<_, $t, $f, $dims>;
                concat!("kernel_sum_symmetric_", stringify!($t), "_", $name, "_d", $dims),
                KernelSumVariant::Symmetric { function: KernelFunction::$f, dims: $dims }
                    => exchange::symmetric::<_, $t, $f, $dims>;
            )*
            $(
                concat!("kernel_sum_tiled_", stringify!($t), "_", $g_name),
                KernelSumVariant::Tiled { function: KernelFunction::$g }
                    => tiled::sums::<_, $t, $g>;
                concat!("kernel_sum_folded_", stringify!($t), "_", $g_name),
                KernelSumVariant::Folded { function: KernelFunction::$g }
                    => folded::sums::<_, $t, $g>;
                concat!("kernel_sum_gradient_", stringify!($t), "_", $g_name),
                KernelSumVariant::Gradient { function: KernelFunction::$g }
                    => gradient::window::<_, $t, $g>;
            )*
            $(
                concat!("kernel_sum_products_", stringify!($t), "_gaussian_d", $near),
                KernelSumVariant::Products { dims: $near }
                    => products::symmetric::<_, $t, $near>;
            )*
        }
    };
}

macro_rules! for_type {
    ($t:ident: $( $gaussian:literal )*; products $( $near:literal )*) => {
        kernel_sum_family!($t:
            narrow
                $( (Gaussian, "gaussian", $gaussian) )*
                (Laplace, "laplace", 3)
                (Matern12, "matern12", 3)
                (Matern32, "matern32", 3)
                (Matern52, "matern52", 3)
                (Cauchy, "cauchy", 3)
                (InverseMultiquadric, "inverse_multiquadric", 3);
            any
                (Gaussian, "gaussian")
                (Laplace, "laplace")
                (Matern12, "matern12")
                (Matern32, "matern32")
                (Matern52, "matern52")
                (Cauchy, "cauchy")
                (InverseMultiquadric, "inverse_multiquadric");
            products $( $near )*
        );
    };
}

for_type!(f32: 1 2 3; products 2 3);
for_type!(f64: 3; products);
