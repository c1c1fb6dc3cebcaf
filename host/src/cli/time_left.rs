//! How long a solve will take yet, by how fast it has come nearer lately.

use std::cell::RefCell;
use std::collections::VecDeque;

/// Iterations that count as lately.
const LATELY: usize = 6;

/// The last iterations of a solve, and where it stops.
pub(super) struct TimeLeft {
    tolerance: f64,
    /// Seconds since the start, and the measure that is compared with the tolerance.
    lately: RefCell<VecDeque<(f64, f64)>>,
    done: RefCell<usize>,
}

impl TimeLeft {
    /// Of a solve that stops when its measure is `tolerance`.
    pub(super) fn new(tolerance: f64) -> TimeLeft {
        TimeLeft {
            tolerance,
            lately: RefCell::default(),
            done: RefCell::default(),
        }
    }

    /// Such as `, about 3 s left`, after another iteration; empty while nothing can be said.
    pub(super) fn after(&self, seconds: f64, measure: f64, most: usize) -> String {
        let mut lately = self.lately.borrow_mut();
        lately.push_back((seconds, measure));
        if lately.len() > LATELY {
            lately.pop_front();
        }
        *self.done.borrow_mut() += 1;
        let each = seconds / *self.done.borrow() as f64;
        let at_most = each * most.saturating_sub(*self.done.borrow()) as f64;
        let points: Vec<(f64, f64)> = lately.iter().copied().collect();
        match seconds_left(&points, self.tolerance, at_most) {
            Some(left) if left < 1.0 => ", almost done".to_owned(),
            Some(left) if left < 90.0 => format!(", about {left:.0} s left"),
            Some(left) => format!(", about {:.0} min left", left / 60.0),
            None => String::new(),
        }
    }
}

/// Seconds until the measure is the tolerance if its logarithm goes on falling as it has, and no more than `at_most`; `None`
/// where it has not fallen, and is not bounded.
fn seconds_left(points: &[(f64, f64)], tolerance: f64, at_most: f64) -> Option<f64> {
    let ((begun, from), (now, to)) = (*points.first()?, *points.last()?);
    let (fallen, rest) = ((from / to).ln(), (to / tolerance).ln());
    let left = match () {
        () if rest <= 0.0 => 0.0,
        () if fallen > 0.0 && rest.is_finite() => rest / fallen * (now - begun),
        () => return None,
    };
    left.is_finite().then_some(left.min(at_most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_evenly_ends_when_it_should() {
        let points = [(1.0, 1e-1), (2.0, 1e-2), (3.0, 1e-3)];
        let left = seconds_left(&points, 1e-6, 100.0).expect("a time");
        assert!((left - 3.0).abs() < 1e-9, "{left}");
        assert_eq!(seconds_left(&points, 1e-6, 2.0), Some(2.0));
        assert_eq!(seconds_left(&points, 1e-2, 100.0), Some(0.0));
    }

    #[test]
    fn what_does_not_fall_has_no_end() {
        assert_eq!(seconds_left(&[(1.0, 0.1), (2.0, 0.2)], 1e-6, 9.0), None);
        assert_eq!(
            seconds_left(&[(1.0, 0.1), (2.0, f64::NAN)], 1e-6, 9.0),
            None
        );
        assert_eq!(seconds_left(&[(1.0, 0.1), (2.0, 0.01)], 0.0, 9.0), None);
        assert_eq!(seconds_left(&[], 1e-6, 9.0), None);
    }

    #[test]
    fn it_is_said_in_words() {
        let left = TimeLeft::new(1e-6);
        assert_eq!(left.after(1.0, 1.0, 1000), "");
        assert_eq!(left.after(11.0, 0.1, 1000), ", about 50 s left");
        assert_eq!(left.after(21.0, 1e-6, 1000), ", almost done");
    }
}
