//! A subject whose outcomes are known.

use super::{Key, Point, Refusal, Subject};
use crate::plan::tuned::Launch;

/// Sixty points, of which twenty give wrong results and one does not run; the planner's is number 40.
pub(super) struct Planted {
    points: Vec<Point>,
    pub(super) runs: usize,
    pub(super) timed: Vec<usize>,
}

impl Planted {
    pub(super) fn new() -> Planted {
        let point = |i: usize| {
            let values = vec![i as i64];
            Point::new(format!("p{i}"), vec![i as f64])
                .predicted(100.0 - i as f64)
                .launched_by(Launch::Qr { values })
        };
        Planted {
            points: (0..60).map(point).collect(),
            runs: 0,
            timed: Vec::new(),
        }
    }

    pub(super) fn is_wrong(point: usize) -> bool {
        point.is_multiple_of(3)
    }
}

/// Under which its log is kept.
pub(super) fn key() -> Key {
    Key {
        device: "a device".into(),
        driver: 1,
        code: "1".into(),
        class: "planted".into(),
    }
}

impl Subject for Planted {
    fn class(&self) -> String {
        "planted".into()
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn incumbent(&self) -> usize {
        40
    }

    fn check(&mut self, point: usize) -> Result<(), Refusal> {
        self.runs += 1;
        match point {
            59 => Err(Refusal::Failed("it does not run".into())),
            point if Self::is_wrong(point) => Err(Refusal::Wrong("1 instead of 2".into())),
            _ => Ok(()),
        }
    }

    fn time(&mut self, point: usize, _: f64) -> Result<f64, Refusal> {
        self.timed.push(point);
        // Wrong ones would be the fastest.
        Ok(if Self::is_wrong(point) {
            0.1
        } else {
            1.0 + (point as f64 - 22.0).abs()
        })
    }
}
