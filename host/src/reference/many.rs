//! Several right-hand sides: the pattern of one, side by side, in f64.

use super::Rows;
use super::fused::{self, Terms};

/// Everything besides X and the input; arrays are row-major with k columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ManyTerms<'a, T> {
    /// k.
    pub sides: usize,
    /// α.
    pub alpha: T,
    /// V, m × k elements.
    pub weights: Option<&'a [T]>,
    /// s, k elements.
    pub shift: Option<&'a [T]>,
    /// β.
    pub beta: T,
    /// Z, as large as the result.
    pub z: Option<&'a [T]>,
}

/// Column `side` of a row-major array with `sides` columns.
pub fn column<T: Copy>(all: &[T], sides: usize, side: usize) -> Vec<T> {
    all.iter().skip(side).step_by(sides).copied().collect()
}

/// `W = α·Xᵀ(V ⊙ (X·Y − s)) + β·Z`, n × k.
///
/// # Panics
/// When lengths do not fit X and k.
pub fn fused_many<T: Copy + Into<f64>>(
    x: &impl Rows,
    y: &[T],
    terms: &ManyTerms<'_, T>,
) -> Vec<f64> {
    side_by_side(y, terms, |y, terms| fused::fused(x, y, terms))
}

/// `P = α·V ⊙ (X·Y − s) + β·Z`, m × k.
///
/// # Panics
/// When lengths do not fit X and k.
pub fn forward_many<T: Copy + Into<f64>>(
    x: &impl Rows,
    y: &[T],
    terms: &ManyTerms<'_, T>,
) -> Vec<f64> {
    side_by_side(y, terms, |y, terms| fused::forward(x, y, terms))
}

/// `W = α·Xᵀ(V ⊙ P) + β·Z`, n × k; without a shift.
///
/// # Panics
/// When lengths do not fit X and k.
pub fn transposed_many<T: Copy + Into<f64>>(
    x: &impl Rows,
    p: &[T],
    terms: &ManyTerms<'_, T>,
) -> Vec<f64> {
    side_by_side(p, terms, |p, terms| {
        let terms = Terms {
            shift: None,
            ..*terms
        };
        fused::transposed(x, p, &terms)
    })
}

fn side_by_side<T: Copy>(
    input: &[T],
    terms: &ManyTerms<'_, T>,
    product: impl Fn(&[T], &Terms<'_, T>) -> Vec<f64>,
) -> Vec<f64> {
    let k = terms.sides;
    let columns: Vec<Vec<f64>> = (0..k)
        .map(|side| {
            let of = |all: Option<&[T]>| all.map(|all| column(all, k, side));
            let (weights, z) = (of(terms.weights), of(terms.z));
            let single = Terms {
                alpha: terms.alpha,
                weights: weights.as_deref(),
                shift: terms.shift.map(|shift| shift[side]),
                beta: terms.beta,
                z: z.as_deref(),
            };
            product(&column(input, k, side), &single)
        })
        .collect();
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows)
        .flat_map(|row| columns.iter().map(move |column| column[row]))
        .collect()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;

    #[test]
    fn two_sides_by_hand() {
        let x = array![[1.0, 2.0], [0.0, 3.0]];
        let terms = ManyTerms {
            sides: 2,
            alpha: 1.0,
            weights: None,
            shift: None,
            beta: 0.0,
            z: None,
        };
        // Y = [[1, 0], [1, 1]]: X·Y = [[3, 2], [3, 3]].
        let y = [1.0, 0.0, 1.0, 1.0];
        assert_eq!(forward_many(&x, &y, &terms), [3.0, 2.0, 3.0, 3.0]);
        assert_eq!(fused_many(&x, &y, &terms), [3.0, 2.0, 15.0, 13.0]);
        let p = [3.0, 2.0, 3.0, 3.0];
        assert_eq!(transposed_many(&x, &p, &terms), [3.0, 2.0, 15.0, 13.0]);
    }
}
