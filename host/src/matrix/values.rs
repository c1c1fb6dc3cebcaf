//! In how few bits values may be stored.

use serde::{Deserialize, Serialize};

/// How the values of a sparse matrix may be stored in a further form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// Without loss, in as few bits as that takes: none where all values of a row are equal, bfloat16 or f32 where
    /// every value is one (times its column's power of two).
    #[default]
    Exact,
    /// At most as f32: each value is rounded once, by no more than 2⁻²⁴ of itself (2⁻¹⁵⁰ of its column's largest,
    /// where that is more).
    F32,
    /// At most as bfloat16: each value is rounded once, by no more than 2⁻⁸ of itself (2⁻¹³⁴ of its column's largest,
    /// where that is more).
    Bf16,
}
