//! Quantiles of values that are not sorted.

use std::cmp::Ordering;

use super::regression::Spread;

/// Values that are sorted, since they are few.
pub(super) const FEW: usize = 99;

/// Values of which those are in their places, as if all were sorted, that some quantiles are made of: a tenth of the work
/// of sorting them.
pub(super) struct Ranked {
    /// All of them.
    pub(super) values: Vec<f64>,
    mean: f64,
}

impl Ranked {
    /// `shares` are those that [`Ranked::quantile`] will be called with.
    pub(super) fn of(mut values: Vec<f64>, shares: &[f64]) -> Ranked {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        if values.len() <= FEW {
            values.sort_unstable_by(f64::total_cmp);
        } else {
            let last = values.len() - 1;
            let neighbours = |share: &f64| {
                let (low, high, _) = places(*share, last);
                [low, high]
            };
            let mut ranks: Vec<usize> = shares.iter().flat_map(neighbours).collect();
            ranks.sort_unstable();
            ranks.dedup();
            put_in_place(&mut values, &ranks, 0, f64::total_cmp);
        }
        Ranked { values, mean }
    }

    /// The value below which a share of all lies, between neighbours on a straight line, as NumPy's.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.values.len().checked_sub(1) else {
            return f64::NAN;
        };
        let (low, high, rest) = places(share, last);
        let (low, high) = (self.values[low], self.values[high]);
        match rest {
            0.0 => low,
            rest => low + rest * (high - low),
        }
    }

    pub(super) fn spread(&self) -> Spread {
        let squares: f64 = self
            .values
            .iter()
            .map(|value| (value - self.mean).powi(2))
            .sum();
        Spread {
            min: self.quantile(0.0),
            lower_quartile: self.quantile(0.25),
            median: self.quantile(0.5),
            upper_quartile: self.quantile(0.75),
            max: self.quantile(1.0),
            mean: self.mean,
            deviation: (squares / self.values.len() as f64).sqrt(),
        }
    }
}

/// The neighbours of a quantile among values up to number `last`, and how far it is from the first to the second.
fn places(share: f64, last: usize) -> (usize, usize, f64) {
    let place = share * last as f64;
    let low = place.floor() as usize;
    (low, (low + 1).min(last), place.fract())
}

/// Puts the values with these ascending ranks, counted from `first`, where they are in sorted values; smaller ones are
/// before them and larger ones behind.
pub(super) fn put_in_place<V>(
    values: &mut [V],
    ranks: &[usize],
    first: usize,
    order: fn(&V, &V) -> Ordering,
) {
    let Some(rank) = ranks.get(ranks.len() / 2) else {
        return;
    };
    let (below, _, above) = values.select_nth_unstable_by(rank - first, order);
    put_in_place(below, &ranks[..ranks.len() / 2], first, order);
    put_in_place(above, &ranks[ranks.len() / 2 + 1..], rank + 1, order);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_numpys() {
        let spread = Ranked::of(vec![8.0, 2.0, 4.0, 1.0], &[0.0, 0.25, 0.5, 0.75, 1.0]).spread();
        assert_eq!(
            (spread.lower_quartile, spread.median, spread.upper_quartile),
            (1.75, 3.0, 5.0)
        );
        assert_eq!((spread.mean, spread.deviation), (3.75, 7.1875_f64.sqrt()));
    }

    /// Against all values sorted.
    #[test]
    fn quantiles_are_those_of_sorted_values() {
        let values: Vec<f64> = (0..3001)
            .map(|i| f64::from(i * 7919 % 997).sqrt())
            .collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let shares: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
        let ranked = Ranked::of(values, &shares);
        for share in shares {
            let (low, high, rest) = places(share, sorted.len() - 1);
            let expected = sorted[low] + rest * (sorted[high] - sorted[low]);
            assert_eq!(ranked.quantile(share), expected, "{share}");
        }
    }
}
