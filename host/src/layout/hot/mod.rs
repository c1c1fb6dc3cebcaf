//! X with its most frequent columns told apart: the layout of [`gpu_kernels::fused::hot`], made on the host.
//!
//! | file | what |
//! |---|---|
//! | `labels` | which columns are hot, and the ranks of the others |
//! | `values` | in how few bits values can be stored |
//! | `slices` | which rows share a slice |
//! | `copy` | entries put where lanes find them |
//! | `deal` | which entry of a row a lane takes next |

mod copy;
mod deal;
mod labels;
mod slices;
#[cfg(test)]
mod tests;
mod values;

use gpu_kernels::Word;
use gpu_kernels::fused::fixed_point::FixedPoint;
use gpu_kernels::fused::hot::{CLASSES, MOST_PLACES, NONE, fields_per_word};
use rayon::prelude::*;

use crate::matrix::{CsrMatrix, Element, Values, frequencies};
use copy::{Copied, Copier};
use labels::Labels;
use slices::Slices;
use values::Kept;
pub(crate) use values::{ALIKE, expected};
pub use values::{HotData, ValueForm};
pub(super) use values::{of_bf16, same, to_bf16};

/// Which columns are hot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotSize {
    /// This many columns at most; never more than 16 bits count.
    pub most: usize,
    /// Entries of a hot column, at least.
    pub least: u64,
}

/// The arrays of [`HotArgs`](gpu_kernels::fused::HotArgs), and what is left to the cold columns.
#[derive(Debug, Clone, PartialEq)]
pub struct HotLayout<T> {
    /// The steps before each slice, and the number of steps: hot ones in the lower half, cold ones in the upper.
    pub steps: Vec<u64>,
    /// For each hot step 32 pairs of places; the lane's spare one where there is no entry.
    pub places: Vec<u32>,
    /// The values of hot entries.
    pub values: HotData<T>,
    /// For each cold step 32 ranks.
    pub ranks: Vec<u32>,
    /// The values of cold entries, brought below 1 as those of hot ones; none where those of a row are equal.
    pub cold_values: Vec<T>,
    /// The row of X at each position; none where they are the same.
    pub order: Option<Vec<u32>>,
    /// The first slices of each class of rows but the first, and the number of slices.
    pub slices: [u32; CLASSES],
    /// Entries of the most frequent column.
    pub busiest: u64,
    /// The column of each place, the most frequent first.
    pub columns: Vec<u32>,
    /// The exponent field that the column of each place is scaled by, several in a word.
    pub exponents: Vec<u32>,
    /// The same of each rank.
    pub cold_exponents: Vec<u32>,
    /// Whether hot columns have infinities or NaN.
    pub has_non_finite: bool,
    /// The entries of cold columns by rank, a row for each position; their values are 1 where those of a row are equal.
    pub cold: CsrMatrix<T>,
    /// The column of each rank, the most frequent first by the number of binary digits; columns without entries are left
    /// out.
    pub cold_columns: Vec<u32>,
}

impl<T: Element + FixedPoint> HotLayout<T> {
    /// The layout of `x`, its values stored in as few bits as `values` allows; `None` when it has more rows, columns or
    /// entries than 31 (entries: 32) bits count.
    pub fn new(x: &CsrMatrix<T>, size: HotSize, values: Values) -> Option<Self> {
        // Rows are padded to slices.
        let limit = NONE as usize - 64;
        let most_entries = gpu_kernels::fused::sparse::MAX_NONZEROS as usize;
        if x.rows() >= limit || x.cols() >= limit || x.nnz() > most_entries {
            return None;
        }
        let most = size.most.min(MOST_PLACES as usize);
        let frequencies = frequencies(x);
        let labels = Labels::new(&frequencies, HotSize { most, ..size });
        let kept = Kept::choose(x, &labels, values);
        let slices = Slices::of(x, &labels);
        let copier = Copier {
            x,
            labels: &labels,
            kept: &kept,
            slices: &slices,
        };
        let Copied {
            steps,
            places,
            values,
            ranks,
            cold_values,
            cold,
        } = copier.all();
        Some(HotLayout {
            steps,
            places,
            values,
            ranks,
            cold_values,
            order: slices.order,
            slices: slices.ends,
            busiest: frequencies.into_par_iter().max().unwrap_or(0),
            exponents: pack_fields::<T>(&labels.hot, &kept.fields),
            cold_exponents: pack_fields::<T>(&labels.cold, &kept.fields),
            has_non_finite: kept.has_non_finite,
            columns: labels.hot,
            cold,
            cold_columns: labels.cold,
        })
    }
}

/// The fields of some columns, one after the other in as few words as hold them.
fn pack_fields<T: Word>(columns: &[u32], fields: &[u32]) -> Vec<u32> {
    let of_word = fields_per_word(T::SIZE);
    let words = columns.chunks(of_word as usize);
    let pack = |word: &[u32]| {
        let placed = word
            .iter()
            .zip(0..)
            .map(|(column, i)| fields[*column as usize] << (i * (32 / of_word)));
        placed.sum()
    };
    words.map(pack).collect()
}
