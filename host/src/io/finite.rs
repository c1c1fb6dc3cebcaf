//! The search for values that no reader accepts.

use crate::matrix::Element;
use crate::parallel;

/// Values that one task looks at.
const PER_TASK: usize = 1 << 16;

/// The first value that is infinite or NaN, found in parallel.
pub(super) fn first_not_finite<T: Element>(values: &[T]) -> Option<usize> {
    parallel::first(values.len().div_ceil(PER_TASK), |part| {
        Some(part * PER_TASK + first_of(parallel::chunk(values, PER_TASK, part))?)
    })
}

/// Whether all values are finite: by one thread, in a loop that vectorises.
pub(super) fn all_finite<T: Element>(values: &[T]) -> bool {
    let both = |all, value: &T| all & value.is_finite();
    values.iter().fold(true, both)
}

/// [`first_not_finite`] by one thread: parts without a fault are passed over by a loop that vectorises.
pub(super) fn first_of<T: Element>(values: &[T]) -> Option<usize> {
    if all_finite(values) {
        return None;
    }
    values.iter().position(|value| !value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_is_found_in_whatever_part() {
        let mut values = vec![0.5_f32; 3 * PER_TASK + 7];
        assert_eq!(first_not_finite(&values), None);
        for at in [3 * PER_TASK + 6, 2 * PER_TASK, PER_TASK - 1, 0] {
            values[at] = if at % 2 == 0 {
                f32::NAN
            } else {
                f32::NEG_INFINITY
            };
            assert_eq!(first_not_finite(&values), Some(at));
        }
        assert_eq!(first_not_finite::<f64>(&[]), None);
    }
}
