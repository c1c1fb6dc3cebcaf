//! Operands as [`halves`](super::halves) takes them: f32 numbers as sums of two halves, scaled row by row.
//!
//! Of a row of op(A), or a column of op(B), both called across, the largest magnitude times a power of two s is in
//! [2¹⁴, 2¹⁵). Each element x is then h + l with h the half nearest to x·s, and l the half nearest to x·s − h. What is lost is
//! at most the larger of 2⁻²² |x| and 2⁻³⁹ times the largest magnitude of the row. Rows with magnitudes below 2⁻¹¹² alone
//! take s = 2¹²⁶: their bits end at 2⁻²³ after that.
//!
//! In words of 4 bytes, where `padded` is a multiple of [`TILE`]:
//!
//! | what | words |
//! |---|---|
//! | s of each row, as f32 | padded |
//! | the largest magnitudes of the parts of k, part by part, as f32 | padded · [`MAX_PARTS`] |
//! | groups of 32 steps of k, one after the other | padded · 32 each |
//!
//! A group has the tiles one after the other, of each two panels of 16 steps. A panel has 512 words of each 32 rows: for rows 4g and 4g + 1 of each four the high halves and then the low ones, 128 words
//! each, then those of rows 4g + 2 and 4g + 3. Lane t of quad g has four of the 128, halves of the steps 4t to 4t + 3 in two
//! pairs p and q, in the registers' order: of op(A) p of both rows, then q of both; of op(B) p and q of one row, then of the
//! other. So a lane reads at once, and a warp without conflicts, what two rows of lanes multiply, and a lane's sums are four
//! neighbours. What is outside of the matrix is zero.

use super::panel::DEPTH;

/// Rows that a packed operand is filled up to: those of a tile.
pub const TILE: u32 = 128;
/// The most parts of k that a launch packs by itself.
pub const MAX_PARTS: u32 = 16;
/// Steps of k of two panels, whose products are added up by tensor cores.
pub const GROUP: u32 = 2 * DEPTH;
/// Words of a row of a panel.
pub const ROW: u32 = DEPTH;

/// Rows whose words lie together.
pub const ROWS: u32 = 32;
/// Words of a quarter of such rows: halves, high or low, of two rows of each four.
pub const QUARTER: u32 = ROWS * ROW / 4;

/// Which operand it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// op(A).
    Left,
    /// op(B).
    Right,
}

/// Where things are in a packed operand, in words.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    padded: u32,
}

impl Places {
    /// Of an operand of `across` rows.
    #[inline(always)]
    pub const fn of(across: u32) -> Places {
        Places {
            padded: across.next_multiple_of(TILE),
        }
    }

    /// Rows with those that are filled up.
    #[inline(always)]
    pub const fn padded(&self) -> u32 {
        self.padded
    }

    /// The largest magnitude of a row in a part of k.
    #[inline(always)]
    pub const fn largest(&self, part: u32, row: u32) -> u64 {
        self.padded as u64 * (1 + part as u64) + row as u64
    }

    /// The first word of a row's tile in the group that begins with a step of k.
    #[inline(always)]
    pub const fn group(&self, step: u32, row: u32) -> u64 {
        let before = (step / GROUP) as u64 * self.pitch();
        self.padded as u64 * (1 + MAX_PARTS as u64) + before + (row / TILE * TILE) as u64 * WORDS
    }

    /// Words of a group.
    #[inline(always)]
    pub const fn pitch(&self) -> u64 {
        self.padded as u64 * WORDS
    }
}

/// Words of a row in a group.
const WORDS: u64 = GROUP as u64;

/// Words of a packed operand of `across` rows and `k` steps.
pub const fn packed_words(across: u32, k: u32) -> u64 {
    Places::of(across).group(k.next_multiple_of(GROUP), 0)
}

/// Blocks that pack a part of k of `across` rows.
pub const fn packing_blocks(across: u32) -> u64 {
    (Places::of(across).padded() / ROWS) as u64
}

/// Parts of k that packing has blocks for: at least eight groups each.
pub const fn packing_parts(k: u32) -> u32 {
    let parts = k / (8 * GROUP);
    match parts {
        0 => 1,
        parts if parts > MAX_PARTS => MAX_PARTS,
        parts => parts,
    }
}
