//! Quantiles of values that are not sorted.

use super::regression::Spread;

/// Values that are sorted, since they are few.
pub(super) const FEW: usize = 99;

/// Values as integers in the order of [`f64::total_cmp`], of which those are in their places, as if all were sorted, that
/// some quantiles are made of: a tenth of the work of sorting them, and integers are compared without a branch.
pub(super) struct Ranked {
    keys: Vec<i64>,
    mean: f64,
}

/// The place of a value among all: integers in the order of [`f64::total_cmp`].
pub(super) fn key_of(value: f64) -> i64 {
    flipped(value.to_bits().cast_signed())
}

fn value_of(key: i64) -> f64 {
    f64::from_bits(flipped(key).cast_unsigned())
}

/// Negative values are ordered by their bits from the greatest down: all bits but the sign are turned.
fn flipped(bits: i64) -> i64 {
    bits ^ ((bits >> 63) & i64::MAX)
}

impl Ranked {
    /// `shares` are those that [`Ranked::quantile`] will be called with.
    pub(super) fn of(values: impl Iterator<Item = f64> + Clone, shares: &[f64]) -> Ranked {
        let mut keys: Vec<i64> = values.clone().map(key_of).collect();
        let mean = values.sum::<f64>() / keys.len() as f64;
        if keys.len() <= FEW {
            keys.sort_unstable();
        } else {
            let last = keys.len() - 1;
            let neighbours = |share: &f64| {
                let (low, high, _) = places(*share, last);
                [low, high]
            };
            let mut ranks: Vec<usize> = shares.iter().flat_map(neighbours).collect();
            ranks.sort_unstable();
            ranks.dedup();
            put_in_place(&mut keys, &ranks, 0);
        }
        Ranked { keys, mean }
    }

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// The value of a rank that a share was given for, or any rank of a few values.
    pub(super) fn at(&self, rank: usize) -> f64 {
        value_of(self.keys[rank])
    }

    /// The value below which a share of all lies, between neighbours on a straight line, as NumPy's.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let Some(last) = self.keys.len().checked_sub(1) else {
            return f64::NAN;
        };
        let (low, high, rest) = places(share, last);
        let (low, high) = (self.at(low), self.at(high));
        match rest {
            0.0 => low,
            rest => low + rest * (high - low),
        }
    }

    pub(super) fn spread(&self) -> Spread {
        let squared = |key: &i64| (value_of(*key) - self.mean).powi(2);
        let squares: f64 = self.keys.iter().map(squared).sum();
        Spread {
            min: self.quantile(0.0),
            lower_quartile: self.quantile(0.25),
            median: self.quantile(0.5),
            upper_quartile: self.quantile(0.75),
            max: self.quantile(1.0),
            mean: self.mean,
            deviation: (squares / self.keys.len() as f64).sqrt(),
        }
    }
}

/// The neighbours of a quantile among values up to number `last`, and how far it is from the first to the second.
fn places(share: f64, last: usize) -> (usize, usize, f64) {
    let place = share * last as f64;
    let low = place.floor() as usize;
    (low, (low + 1).min(last), place.fract())
}

/// Puts the keys with these ascending ranks, counted from `first`, where they are in sorted keys; smaller ones are before
/// them and larger ones behind.
pub(super) fn put_in_place(keys: &mut [i64], ranks: &[usize], first: usize) {
    let Some(rank) = ranks.get(ranks.len() / 2) else {
        return;
    };
    let (below, _, above) = keys.select_nth_unstable(rank - first);
    put_in_place(below, &ranks[..ranks.len() / 2], first);
    put_in_place(above, &ranks[ranks.len() / 2 + 1..], rank + 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_total_order() {
        let values = [
            -f64::NAN,
            f64::NEG_INFINITY,
            -2.0,
            -1e-310,
            -0.0,
            0.0,
            1e-310,
            2.0,
            f64::INFINITY,
            f64::NAN,
        ];
        assert!(values.map(key_of).is_sorted());
        for value in values {
            assert_eq!(value_of(key_of(value)).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn spreads_are_numpys() {
        let spread = Ranked::of(
            [8.0, 2.0, 4.0, 1.0].into_iter(),
            &[0.0, 0.25, 0.5, 0.75, 1.0],
        )
        .spread();
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
        let ranked = Ranked::of(values.iter().copied(), &shares);
        for share in shares {
            let (low, high, rest) = places(share, sorted.len() - 1);
            let expected = sorted[low] + rest * (sorted[high] - sorted[low]);
            assert_eq!(ranked.quantile(share), expected, "{share}");
        }
    }
}
