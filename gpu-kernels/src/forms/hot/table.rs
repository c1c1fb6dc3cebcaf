//! The compiled entries that make hot columns.

use crate::forms::hot::contract::{check, check_order};
use crate::forms::hot::copy::copied;
use crate::forms::hot::count::{columns, counted, packed, sampled};
use crate::forms::hot::judge::{fields, fits, judged};
use crate::forms::hot::rows::{rows, stepped};
use crate::forms::hot::scan::{scanned, summed};
use crate::forms::hot::sort::{sorted, tallied};
use crate::forms::hot::{HotMaking, HotOrder, MakingArgs, MakingVariant, OrderArgs, OrderVariant};

crate::kernels! {
    family HotOrder, "forms";
    args OrderArgs<'a>;
    variant OrderVariant;
    check check_order;
    describe crate::describe::unplanned;
    "hot_order_sampled", OrderVariant::Sampled => sampled;
    "hot_order_counted", OrderVariant::Counted => counted;
    "hot_order_packed", OrderVariant::Packed => packed;
    "hot_order_columns", OrderVariant::Columns => columns;
    "hot_order_rows", OrderVariant::Rows => rows;
    "hot_order_tallied", OrderVariant::Tallied => tallied;
    "hot_order_sorted", OrderVariant::Sorted => sorted;
    "hot_order_stepped", OrderVariant::Stepped => stepped;
    "hot_order_summed", OrderVariant::Summed => summed;
    "hot_order_scanned", OrderVariant::Scanned => scanned;
}

macro_rules! making_family {
    ($t:ident) => {
        crate::kernels! {
            family HotMaking<$t>, "forms";
            args MakingArgs<'a, $t>;
            variant MakingVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("hot_making_judged_", stringify!($t)), MakingVariant::Judged => judged::<_, $t>;
            concat!("hot_making_fields_", stringify!($t)), MakingVariant::Fields => fields::<_, $t>;
            concat!("hot_making_fits_", stringify!($t)), MakingVariant::Fits => fits::<_, $t>;
            concat!("hot_making_copied_", stringify!($t)), MakingVariant::Copied => copied::<_, $t>;
        }
    };
}

making_family!(f32);
making_family!(f64);
