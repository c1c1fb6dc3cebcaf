//! Sums that say how good predictions are, in chunks whose number the rows alone decide.

use gpu_kernels::objective::MeanCode;
use gpu_kernels::objective::score::{
    ClassSum, NumberSum, Probabilities, class_and_loss, in_units, number_terms,
};

use super::Element;
use crate::parallel;

/// Rows of a chunk at least.
const CHUNK: usize = 1 << 14;

/// Of each row: linear predictors, and the weight, 1 where absent.
#[derive(Debug, Clone, Copy)]
pub struct Scored<'a, T> {
    /// m × columns, by rows.
    pub predictors: &'a [T],
    /// m.
    pub weights: Option<&'a [f64]>,
}

impl<T: Element> Scored<'_, T> {
    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }
}

/// The sums of [`NumberSum`], of one predictor per row and these targets.
///
/// # Panics
/// When the lengths differ.
///
/// ```
/// use gpu_kernels::objective::{Distribution, Link, MeanCode};
/// use warpfuse::cpu::objective::{Scored, score_numbers};
/// let mean = MeanCode::new(Distribution::Gaussian, Link::Identity);
/// let scored = Scored { predictors: &[1.0_f32, 2.0], weights: None };
/// assert_eq!(score_numbers(scored, &[1.0, 4.0], &mean, 2.5), [2.0, 2.0, 4.0, 0.0, 4.5, 4.0, 4.5]);
/// ```
pub fn score_numbers<T: Element>(
    scored: Scored<'_, T>,
    targets: &[T],
    mean: &MeanCode,
    centre: f64,
) -> [f64; NumberSum::COUNT] {
    let rows = targets.len();
    assert_eq!(scored.predictors.len(), rows, "one predictor per target");
    let of_chunk = |chunk: usize| {
        let mut sums = [0.0; NumberSum::COUNT];
        (chunk * CHUNK..rows.min((chunk + 1) * CHUNK)).for_each(|row| {
            let (t, b) = (scored.predictors[row].to_f64(), targets[row].to_f64());
            let terms = number_terms(mean, centre, t, b, scored.weight(row));
            add(&mut sums, &terms);
        });
        sums
    };
    let chunks = parallel::map(rows.div_ceil(CHUNK), of_chunk);
    let mut sums = [0.0; NumberSum::COUNT];
    chunks.iter().for_each(|chunk| add(&mut sums, chunk));
    sums
}

/// Which classes rows are of.
#[derive(Debug, Clone, Copy)]
pub struct Truth<'a> {
    /// m, each below `classes`.
    pub codes: &'a [u32],
    /// k.
    pub classes: usize,
    /// How predictors become probabilities.
    pub probabilities: Probabilities,
    /// Multiples of a cell's unit in a weight of 1.
    pub units: f64,
}

/// The sums of [`ClassSum`], and the confusion matrix by rows, in units.
///
/// # Panics
/// When the lengths do not fit, or a code is not below the number of classes.
pub fn score_classes<T: Element>(
    scored: Scored<'_, T>,
    truth: Truth<'_>,
) -> ([f64; ClassSum::COUNT], Vec<u64>) {
    let (rows, classes) = (truth.codes.len(), truth.classes);
    let columns = if classes == 2 { 1 } else { classes };
    assert_eq!(
        scored.predictors.len(),
        rows * columns,
        "predictors of each row"
    );
    // Matrices of chunks should not cost more than the rows.
    let size = CHUNK.max(4 * classes * classes);
    let of_chunk = |chunk: usize| {
        let (mut sums, mut cells) = ([0.0; ClassSum::COUNT], vec![0_u64; classes * classes]);
        (chunk * size..rows.min((chunk + 1) * size)).for_each(|row| {
            let (code, w) = (truth.codes[row] as usize, scored.weight(row));
            let own = &scored.predictors[row * columns..][..columns];
            let predictor = |column: u64| own[column as usize].to_f64();
            let probabilities = truth.probabilities as u32;
            let (class, loss) =
                class_and_loss(probabilities, columns as u64, code as u64, predictor);
            if w != 0.0 {
                add(&mut sums, &[w, w * loss]);
                cells[code * classes + class as usize] += in_units(w, truth.units);
            }
        });
        (sums, cells)
    };
    let chunks = parallel::map(rows.div_ceil(size), of_chunk);
    let (mut sums, mut cells) = ([0.0; ClassSum::COUNT], vec![0_u64; classes * classes]);
    for (of_chunk, counted) in &chunks {
        add(&mut sums, of_chunk);
        let counted = cells.iter_mut().zip(counted);
        counted.for_each(|(cell, units)| *cell = cell.wrapping_add(*units));
    }
    (sums, cells)
}

fn add<const N: usize>(sums: &mut [f64; N], terms: &[f64; N]) {
    for (sum, term) in sums.iter_mut().zip(terms) {
        *sum += term;
    }
}
