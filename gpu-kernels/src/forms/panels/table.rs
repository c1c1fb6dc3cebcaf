//! The compiled entries that make panels: what does not depend on values is there once.

use super::chunk::{measure, pack};
use super::contract::check;
use super::split::{count, split, sum};
use super::unzip::unzip;
use super::{PanelMaking, PanelMakingArgs, PanelMakingVariant};

macro_rules! making_family {
    ($t:ident; $( $name:literal, $variant:ident => $body:ident; )*) => {
        crate::kernels! {
            family PanelMaking<$t>, "forms";
            args PanelMakingArgs<'a, $t>;
            variant PanelMakingVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            $( $name, PanelMakingVariant::$variant => $body::<_, $t>; )*
        }
    };
}

making_family! {
    f32;
    "panel_making_count", Count => count;
    "panel_making_sum", Sum => sum;
    "panel_making_measure", Measure => measure;
    "panel_making_split_f32", Split => split;
    "panel_making_pack_f32", Pack => pack;
    "panel_making_unzip", Unzip => unzip;
}

making_family! {
    f64;
    "panel_making_split_f64", Split => split;
    "panel_making_pack_f64", Pack => pack;
}
