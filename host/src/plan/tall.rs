//! Kernels for R of a tall and narrow matrix, block by block of its rows.

use gpu_kernels::qr::QrVariant;

/// Most columns of a tall matrix.
pub const MOST_TALL: usize = 32;

/// The kernel for R of blocks of rows of a tall matrix of at most 32 columns.
pub const fn tall_panel(bytes: u32) -> QrVariant {
    match bytes {
        4 => QrVariant::Panel {
            lanes: 32,
            rows: 64,
            warps: 8,
        },
        _ => QrVariant::Panel {
            lanes: 32,
            rows: 32,
            warps: 8,
        },
    }
}

/// [`tall_panel`] for rows that change on their way, of as many rows.
pub const fn tall_dressed(bytes: u32) -> QrVariant {
    match tall_panel(bytes) {
        QrVariant::Panel { rows, warps, .. } => QrVariant::Dressed { rows, warps },
        other => other,
    }
}
