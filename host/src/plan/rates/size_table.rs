//! A rate as a function of size.

use serde::{Deserialize, Serialize};

/// A rate that depends on how many bytes are addressed at random.
///
/// Between two points the logarithm of the rate is linear in the logarithm of the size; outside, the
/// nearest point counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "Points", into = "Points")]
pub struct SizeTable {
    points: Vec<(f64, f64)>,
}

/// What is stored.
#[derive(Serialize, Deserialize)]
struct Points {
    points: Vec<(f64, f64)>,
}

impl From<Points> for SizeTable {
    fn from(stored: Points) -> Self {
        Self::new(stored.points)
    }
}

impl From<SizeTable> for Points {
    fn from(table: SizeTable) -> Self {
        let points = table.points;
        Points { points }
    }
}

impl SizeTable {
    /// A table of (bytes, 10⁹ operations per second), sorted here by size.
    ///
    /// Points whose size or rate is not a positive number are left out.
    pub fn new(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let usable = |p: &(f64, f64)| p.0 > 0.0 && p.1 > 0.0 && p.0.is_finite() && p.1.is_finite();
        let mut points: Vec<_> = points.into_iter().filter(usable).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { points }
    }

    /// The rate at `bytes`, 10⁹ operations per second; zero for a table without points.
    ///
    /// ```
    /// use warpfuse::plan::rates::SizeTable;
    /// let table = SizeTable::new([(1e4, 100.0), (1e6, 1.0)]);
    /// assert_eq!(table.at(1.0), 100.0);
    /// assert!((table.at(1e5) - 10.0).abs() < 1e-12);
    /// ```
    pub fn at(&self, bytes: f64) -> f64 {
        let above = self.points.partition_point(|p| p.0 < bytes);
        match (
            above.checked_sub(1).map(|i| self.points[i]),
            self.points.get(above),
        ) {
            (Some((x0, r0)), Some(&(x1, r1))) => {
                let t = (bytes / x0).ln() / (x1 / x0).ln();
                r0 * (r1 / r0).powf(t)
            }
            (Some((_, rate)), None) | (None, Some(&(_, rate))) => rate,
            (None, None) => 0.0,
        }
    }

    /// Whether there are no points.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The points, by size: bytes and 10⁹ operations per second.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The table with every rate times `factor`.
    pub(super) fn scaled(&self, factor: f64) -> Self {
        let scaled = |&(bytes, rate): &(f64, f64)| (bytes, rate * factor);
        Self {
            points: self.points.iter().map(scaled).collect(),
        }
    }

    /// The table times `here / there`, at the sizes of all three.
    pub(super) fn times_ratio(&self, here: &Self, there: &Self) -> Self {
        let tables = [self, here, there].into_iter();
        let mut sizes: Vec<f64> = tables.flat_map(|t| t.points.iter().map(|p| p.0)).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        Self::new(sizes.into_iter().map(|bytes| {
            let ratio = here.at(bytes) / there.at(bytes);
            (bytes, self.at(bytes) * ratio)
        }))
    }
}
