//! The Hessian of a softmax.
//!
//! Block (a, b) is X̃ᵀ·diag(v ⊙ pₐ ⊙ (δ − p_b))·X̃. Of many columns each pair of classes has a Gram matrix of its own. Of few
//! columns those would be many narrow products; there the blocks off the diagonal are parts of one Gram matrix, that of the
//! rows √v·p ⊗ x̃, which takes twice the multiplications and has k times as many columns.
//!
//! Source: D. Böhning, "Multinomial logistic regression algorithm", Ann. Inst. Statist. Math. 44, 1992 (the Hessian as a
//! Kronecker product).

use faer::{Mat, MatRef};

use super::groups::{BLOCK, MIN_WORK, MOST_GROUPS, add_gram, cut};
use super::problem::{At, Problem};

/// Probabilities below which a row counts for no pair of classes: no element changes by 10⁻³⁰ of its diagonal elements, and
/// none becomes so small that processors compute it step by step.
const TINY: f64 = 1e-60;
/// Columns below which products of matrices are too narrow to be fast.
const NARROW: usize = 32;
/// Groups of rows at most where their sums are larger than their rows.
const FEW_GROUPS: usize = 4;

/// Without the ridge, θ's order on both sides: class a of column i at `i·k + a`.
pub(super) fn hessian(problem: &Problem<'_>, at: &At, k: usize) -> Mat<f64> {
    match problem.design.width() < NARROW {
        true => by_rows(problem, at, k),
        false => by_pairs(problem, at, k),
    }
}

/// A Gram matrix for each pair of classes.
fn by_pairs(problem: &Problem<'_>, at: &At, k: usize) -> Mat<f64> {
    let pairs: Vec<(usize, usize)> = (0..k).flat_map(|a| (0..=a).map(move |b| (a, b))).collect();
    let (kept, weights) = (&at.judged.kept, problem.weights);
    let grams = problem.design.grams(pairs.len(), |pair, i| {
        let (a, b) = pairs[pair];
        let same = if a == b { 1.0 } else { 0.0 };
        weights[i] * kept[i * k + a] * (same - kept[i * k + b])
    });
    let width = problem.design.width();
    let mut hessian = Mat::zeros(width * k, width * k);
    for ((a, b), gram) in pairs.into_iter().zip(grams) {
        for j in 0..width {
            for i in 0..width {
                hessian[(i * k + a, j * k + b)] = gram[(i, j)];
                hessian[(i * k + b, j * k + a)] = gram[(i, j)];
            }
        }
    }
    hessian
}

/// A Gram matrix for each class, and one for all pairs of different ones.
fn by_rows(problem: &Problem<'_>, at: &At, k: usize) -> Mat<f64> {
    let (kept, weights) = (&at.judged.kept, problem.weights);
    // Of one class 1 − p is computed itself: as a difference of Gram matrices it would lose its digits near 1.
    let own = problem.design.grams(k, |c, i| {
        let p = kept[i * k + c];
        weights[i] * p * (1.0 - p)
    });
    let pairs = gram_of_pairs(problem, kept, k);
    let size = problem.design.width() * k;
    Mat::from_fn(size, size, |row, column| {
        if row % k == column % k {
            own[row % k][(row / k, column / k)]
        } else {
            -pairs[(row.max(column), row.min(column))]
        }
    })
}

/// The lower triangle of Σ z·zᵀ over the rows z = √v·p ⊗ x̃.
fn gram_of_pairs(problem: &Problem<'_>, kept: &[f64], k: usize) -> Mat<f64> {
    let (rows, size) = (problem.design.rows(), problem.design.width() * k);
    let most = (rows / (2 * size).max(1)).clamp(FEW_GROUPS, MOST_GROUPS);
    let groups = (rows.saturating_mul(size * size / 2) / MIN_WORK).min(most);
    let step = (BLOCK / size.max(1)).clamp(16, 1024);
    let parts = cut(rows, groups, |rows| {
        let mut sum = Mat::<f64>::zeros(size, size);
        let mut products = Vec::new();
        problem.design.for_blocks(rows, |at, block| {
            for start in (0..at.len()).step_by(step) {
                let own = start..(start + step).min(at.len());
                products.clear();
                for i in own.clone() {
                    let row = at.start + i;
                    let of_row = (&kept[row * k..(row + 1) * k], problem.weights[row]);
                    multiply(block.row(i).iter(), of_row, &mut products);
                }
                let z = MatRef::from_row_major_slice(&products, own.len(), size);
                add_gram(&mut sum, z, z, 1.0);
            }
        });
        sum
    });
    let mut parts = parts.into_iter();
    let mut total = parts.next().unwrap_or_else(|| Mat::zeros(size, size));
    parts.for_each(|part| total += part);
    total
}

/// Appends x̃ ⊗ √v·p.
fn multiply<'a>(
    row: impl Iterator<Item = &'a f64>,
    (p, weight): (&[f64], f64),
    out: &mut Vec<f64>,
) {
    let root = weight.sqrt();
    for x in row {
        let x = root * x;
        out.extend(p.iter().map(|p| if *p < TINY { 0.0 } else { x * p }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Data, SOFTMAX, correlated};
    use super::{by_pairs, by_rows};

    /// Both ways lead to one Hessian, of rows of which some have no weight.
    #[test]
    fn pairs_and_rows_have_one_hessian() {
        let mut data = Data::new(correlated(700, 6), SOFTMAX, (0.0, 0.0));
        data.weights.iter_mut().step_by(5).for_each(|v| *v = 0.0);
        let problem = data.problem();
        let theta = (0..problem.len()).map(|i| (i as f64).sin()).collect();
        let at = problem.at(theta);
        let (pairs, rows) = (by_pairs(&problem, &at, 4), by_rows(&problem, &at, 4));
        let largest = (0..28).map(|i| pairs[(i, i)]).fold(0.0, f64::max);
        for at in (0..28).flat_map(|i| (0..28).map(move |j| (i, j))) {
            assert!((pairs[at] - rows[at]).abs() <= 1e-14 * largest, "{at:?}");
        }
    }
}
