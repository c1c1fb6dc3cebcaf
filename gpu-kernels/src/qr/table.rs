//! The compiled entries.

use super::{
    Lies, Qr, QrArgs, QrVariant, apply, check, columns, described, dressed, gram, lanes, least,
    least_columns, merge, pack, panel, solve, squares, tensor, update, wide,
};

macro_rules! qr_family {
    ($t:ident;
        lanes $( [$lanes:literal $rows:literal] )*;
        columns $( [$of:literal $each:literal $cols:literal $tall:literal $resident:literal] )*;
        systems $( [$of_system:literal $unknowns:literal $equations:literal $at_once:literal] )*;
        panels $( [$columns:literal $piece:literal $warps:literal] )*;
        spread $( [$held:literal $together:literal $blocks:literal] )*;
        dressed $( [$part:literal $of_block:literal] )*;
        updates $( [$width:literal $wide:literal] )*;
        tensors $( [$of_warps:literal $body:ident] )*;
        grams $( [$gram:literal $lies:ident $way:ident $is_dressed:literal] )*;
    ) => {
        crate::kernels! {
            family Qr<$t>, "qr";
            args QrArgs<'a, $t>;
            variant QrVariant;
            check check::<$t>;
            describe described;
            $(
                concat!("qr_lanes_", stringify!($t), "_", $lanes, "_", $rows),
                QrVariant::Lanes { lanes: $lanes, rows: $rows } => lanes::lanes::<_, $t, $lanes, $rows>;
                concat!("qr_apply_", stringify!($t), "_", $lanes, "_", $rows),
                QrVariant::ApplyLanes { lanes: $lanes, rows: $rows }
                    => apply::apply_lanes::<_, $t, $lanes, $rows>;
                concat!("qr_least_", stringify!($t), "_", $lanes, "_", $rows),
                QrVariant::Least { lanes: $lanes, rows: $rows } => least::least::<_, $t, $lanes, $rows>;
            )*
            $(
                concat!("qr_columns_", stringify!($t), "_", $of, "_", $each, "_", $tall),
                QrVariant::Columns { lanes: $of, each: $each, rows: $tall }
                    => columns::columns::<_, $t, $of, $each, $cols, $tall, $resident>;
            )*
            $(
                concat!("qr_least_columns_", stringify!($t), "_", $of_system, "_", $equations),
                QrVariant::LeastColumns { lanes: $of_system, rows: $equations }
                    => least_columns::least_columns::<_, $t, $of_system, $unknowns, $equations, $at_once>;
            )*
            $(
                concat!("qr_panel_", stringify!($t), "_", $columns, "_", $piece, "_", $warps),
                QrVariant::Panel { lanes: $columns, rows: $piece, warps: $warps }
                    => panel::panel::<_, $t, $columns, $piece, $warps, { $warps * 32 }>;
            )*
            $(
                concat!("qr_spread_", stringify!($t), "_", $held, "_", $together, "_", $blocks),
                QrVariant::Spread { rows: $held, warps: $together, blocks: $blocks }
                    => panel::spread::<_, $t, $held, $together, $blocks, { $together * 32 }>;
            )*
            $(
                concat!("qr_dressed_", stringify!($t), "_", $part, "_", $of_block),
                QrVariant::Dressed { rows: $part, warps: $of_block }
                    => dressed::dressed::<_, $t, $part, $of_block, { $of_block * 32 }>;
            )*
            $(
                concat!("qr_update_", stringify!($t), "_", $width, "_", $wide),
                QrVariant::Update { width: $width, columns: $wide }
                    => update::update::<_, $t, $width, $wide>;
            )*
            $(
                concat!("qr_tensor_", stringify!($t), "_", $of_warps),
                QrVariant::Tensor { warps: $of_warps } => $body::$body::<_, $of_warps, { $of_warps * 32 }>;
            )*
            $(
                concat!("qr_gram_", stringify!($t), "_", $gram),
                QrVariant::Gram { lies: Lies::$lies, is_dressed: $is_dressed }
                    => gram::gram::<_, gram::$way, $is_dressed>;
            )*
            concat!("qr_shared_update_", stringify!($t), "_32_64"),
            QrVariant::SharedUpdate { width: 32, columns: 64 } => update::shared_update::<_, $t, 32, 64>;
            concat!("qr_merge_", stringify!($t)), QrVariant::Merge => merge::merge::<_, $t>;
            concat!("qr_pairs_", stringify!($t)), QrVariant::Pairs => squares::pairs::<_, $t>;
            concat!("qr_rows_", stringify!($t)), QrVariant::Rows => squares::rows::<_, $t>;
            concat!("qr_shared_rows_", stringify!($t)), QrVariant::SharedRows => squares::shared_rows::<_, $t>;
            concat!("qr_pack_", stringify!($t)), QrVariant::Pack => pack::pack::<_, $t>;
            concat!("qr_solve_", stringify!($t), "_1"), QrVariant::Solve { warps: 1 } => solve::solve::<_, $t, 32>;
            concat!("qr_solve_", stringify!($t), "_8"), QrVariant::Solve { warps: 8 } => solve::solve::<_, $t, 256>;
        }
    };
}

// Lanes and registers; lanes, columns of each, all columns, registers for a column, blocks that share an SM; the same with two columns of
// each; columns, registers and
// warps; registers, warps and blocks; registers and warps; reflectors and columns; warps and kernel; how A lies, and whether it is dressed.
qr_family!(f32;
    lanes [8 8] [8 16] [8 32] [16 8] [16 16] [16 32] [32 8] [32 16] [32 32];
    columns [4 2 8 8 16] [8 2 16 16 10] [16 2 32 32 8];
    systems [4 8 8 16] [8 16 16 10];
    panels [32 32 2] [32 32 4] [32 32 8] [32 32 16] [32 64 1] [32 64 2] [32 64 4] [32 64 8] [32 64 16] [16 64 16]
        [8 64 16];
    spread [32 16 4] [32 16 8];
    dressed [64 8];
    updates [32 64] [16 128] [8 256];
    tensors [8 tensor] [16 tensor];
    grams ["rows" InRows Rows false] ["columns" InColumns Columns false] ["elements" Otherwise Elements false]
        ["rows_dressed" InRows Rows true] ["elements_dressed" Otherwise Elements true];
);
qr_family!(f64;
    lanes [8 8] [8 16] [8 32] [16 8] [16 16] [16 32] [32 8] [32 16] [32 32];
    columns [4 2 8 8 10] [8 2 16 16 6] [16 2 32 32 4];
    systems [4 8 8 8] [8 16 16 6];
    panels [32 32 2] [32 32 4] [32 32 8] [32 32 16] [16 32 16] [8 32 16] [4 32 16];
    spread [32 16 2] [32 16 4] [32 16 8];
    dressed [32 8];
    updates [32 64] [16 128] [8 256] [4 512];
    tensors [8 wide] [16 wide];
    grams;
);
