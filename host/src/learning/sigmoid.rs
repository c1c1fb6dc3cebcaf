//! Probabilities of two classes.

use crate::matrix::Element;
use crate::parallel;

/// Predictors of one task.
const CHUNK: usize = 1 << 14;

/// `1 − p` and `p = 1 / (1 + exp(−t))` of each linear predictor t, one pair after the other: the probabilities of two classes,
/// computed in f64.
///
/// ```
/// let pairs = warpfuse::learning::sigmoids(&[0.0, 800.0]);
/// assert_eq!(pairs, [0.5, 0.5, 0.0, 1.0]);
/// ```
pub fn sigmoids<T: Element + Default>(predictors: &[T]) -> Vec<T> {
    let mut found = vec![T::default(); 2 * predictors.len()];
    parallel::for_each_item(found.chunks_mut(2 * CHUNK), |number, found| {
        let predictors = parallel::chunk(predictors, CHUNK, number);
        for (found, t) in found.chunks_exact_mut(2).zip(predictors) {
            let [first, second] = pair(Element::to_f64(*t));
            found.copy_from_slice(&[first, second].map(<T as Element>::from_f64));
        }
    });
    found
}

/// Without overflow, and with all digits of the smaller.
fn pair(t: f64) -> [f64; 2] {
    let small = (-t.abs()).exp();
    let (of_small, of_large) = (small / (1.0 + small), 1.0 / (1.0 + small));
    match t >= 0.0 {
        true => [of_small, of_large],
        false => [of_large, of_small],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_add_up_to_one_and_have_all_digits_of_the_smaller() {
        let scores: Vec<f64> = (-20_000..20_001).map(|i| f64::from(i) / 25.0).collect();
        let pairs = sigmoids(&scores);
        assert_eq!(pairs.len(), 2 * scores.len());
        for (pair, t) in pairs.chunks_exact(2).zip(&scores) {
            assert!((pair[0] + pair[1] - 1.0).abs() <= f64::EPSILON, "{t}");
            // The exponential of a far predictor is the smaller probability, to the digits of 1 / (1 + exp(-|t|)).
            let smaller = (-t.abs()).exp() / (1.0 + (-t.abs()).exp());
            assert_eq!(pair[usize::from(*t < 0.0)], smaller, "{t}");
        }
        assert!(sigmoids(&[f64::NAN]).iter().all(|p| p.is_nan()));
        assert_eq!(sigmoids(&[0.0_f32, -800.0]), [0.5, 0.5, 1.0, 0.0]);
        assert!(sigmoids::<f64>(&[]).is_empty());
    }
}
