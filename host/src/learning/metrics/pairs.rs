//! Pairs of a positive and a negative sample that scores rank right: whole numbers, added without rounding.
//!
//! Many scores are not sorted as a whole. Each part of the samples is put into buckets by score, by a function that never
//! decreases; then each bucket is sorted by itself, by one core, in its cache.

use rayon::prelude::*;

use super::MetricError;

/// From this many samples on they are put into buckets.
pub(super) const MANY: usize = 1 << 16;
/// Buckets: of ten million samples a bucket has about a thousand.
const BUCKETS: usize = 1 << 13;

/// The area under the ROC curve of samples that weigh the same. Scores are not NaN.
pub(super) fn counted(positive: &[bool], scores: &[f64]) -> Result<f64, MetricError> {
    let positives = positive.par_iter().filter(|is| **is).count();
    let negatives = positive.len() - positives;
    if positives == 0 || negatives == 0 {
        return Err(MetricError::OneClass);
    }
    // A pair that is ranked right counts two, a tie one.
    let halves = match scores.len() < MANY {
        true => of_few(positive, scores),
        false => of_many(positive, scores),
    };
    Ok(0.5 * halves as f64 / (positives as f64 * negatives as f64))
}

/// -0.0 and 0.0 are one score: adding 0.0 makes them so.
fn of_side(positive: &[bool], scores: &[f64], side: bool) -> Vec<f64> {
    let samples = positive.iter().zip(scores);
    let chosen = samples.filter(|(is, _)| **is == side);
    chosen.map(|(_, score)| score + 0.0).collect()
}

fn of_few(positive: &[bool], scores: &[f64]) -> u128 {
    let [mut up, mut down] = [true, false].map(|side| of_side(positive, scores, side));
    up.sort_unstable_by(f64::total_cmp);
    down.sort_unstable_by(f64::total_cmp);
    halves_right(&up, &down)
}

/// Twice the pairs of these positives that are ranked right, and once those that are tied; both in ascending order.
fn halves_right(positives: &[f64], negatives: &[f64]) -> u128 {
    let (mut below, mut up_to, mut halves) = (0, 0, 0);
    for score in positives {
        while negatives.get(below).is_some_and(|other| other < score) {
            below += 1;
        }
        up_to = up_to.max(below);
        while negatives.get(up_to).is_some_and(|other| other <= score) {
            up_to += 1;
        }
        halves += (below + up_to) as u128;
    }
    halves
}

fn of_many(positive: &[bool], scores: &[f64]) -> u128 {
    let scale = Scale::of(scores);
    let part = scores.len().div_ceil(rayon::current_num_threads()).max(1);
    let samples = positive.par_chunks(part).zip(scores.par_chunks(part));
    let parts: Vec<[Bucketed; 2]> = samples
        .map(|(positive, scores)| {
            [true, false].map(|side| Bucketed::of(of_side(positive, scores, side), &scale))
        })
        .collect();
    let before = negatives_before(&parts);
    let buckets = (0..BUCKETS).into_par_iter();
    let halves = buckets.map(|bucket| {
        let [up, down] = [0, 1].map(|side| sorted(&parts, side, bucket));
        // Negatives of lower buckets are ranked right with all of these positives.
        2 * before[bucket] as u128 * up.len() as u128 + halves_right(&up, &down)
    });
    halves.sum()
}

/// Negatives in the buckets before each.
fn negatives_before(parts: &[[Bucketed; 2]]) -> Vec<usize> {
    let mut before = 0;
    let counts = (0..BUCKETS).map(|bucket| {
        let of_parts = parts.iter().map(|[_, down]| down.bucket(bucket).len());
        let here = before;
        before += of_parts.sum::<usize>();
        here
    });
    counts.collect()
}

/// The scores of one bucket of all parts, in ascending order.
fn sorted(parts: &[[Bucketed; 2]], side: usize, bucket: usize) -> Vec<f64> {
    let of_parts = parts.iter().map(|part| part[side].bucket(bucket));
    let mut scores = of_parts.collect::<Vec<_>>().concat();
    scores.sort_unstable_by(f64::total_cmp);
    scores
}

/// From scores to buckets: linear between the least and the greatest finite score.
struct Scale {
    least: f64,
    factor: f64,
}

impl Scale {
    fn of(scores: &[f64]) -> Scale {
        let finite = scores.par_iter().filter(|score| score.is_finite());
        let range = finite.fold(
            || (f64::INFINITY, f64::NEG_INFINITY),
            |(least, most), score| (least.min(*score), most.max(*score)),
        );
        let (least, most) = range.reduce(
            || (f64::INFINITY, f64::NEG_INFINITY),
            |a, b| (a.0.min(b.0), a.1.max(b.1)),
        );
        let factor = BUCKETS as f64 / (most - least);
        // One score, or a range beyond the numbers: all are in one bucket.
        let is_useful = factor.is_finite() && factor > 0.0;
        Scale {
            least,
            factor: if is_useful { factor } else { 0.0 },
        }
    }

    /// Never decreases with the score; a conversion of what is too large or too small gives the last or the first.
    fn bucket(&self, score: f64) -> usize {
        (((score - self.least) * self.factor) as usize).min(BUCKETS - 1)
    }
}

/// Scores, bucket after bucket.
struct Bucketed {
    scores: Vec<f64>,
    /// Where each bucket begins, and the end of the last.
    starts: Vec<usize>,
}

impl Bucketed {
    fn of(scores: Vec<f64>, scale: &Scale) -> Bucketed {
        let mut starts = vec![0; BUCKETS + 1];
        for score in &scores {
            starts[scale.bucket(*score) + 1] += 1;
        }
        for bucket in 0..BUCKETS {
            starts[bucket + 1] += starts[bucket];
        }
        let (mut next, mut placed) = (starts.clone(), vec![0.0; scores.len()]);
        for score in scores {
            let bucket = scale.bucket(score);
            placed[next[bucket]] = score;
            next[bucket] += 1;
        }
        Bucketed {
            scores: placed,
            starts,
        }
    }

    fn bucket(&self, bucket: usize) -> &[f64] {
        &self.scores[self.starts[bucket]..self.starts[bucket + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples by a generator of no quality, their scores made by `score`.
    fn samples(score: impl Fn(u64) -> f64) -> (Vec<bool>, Vec<f64>) {
        let mut state = 1_u64;
        let made = (0..MANY + 5).map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let drawn = state >> 33;
            (drawn.is_multiple_of(3), score(drawn))
        });
        made.unzip()
    }

    #[test]
    fn buckets_and_one_sort_count_the_same() {
        let scores: [&dyn Fn(u64) -> f64; 6] = [
            &|n| n as f64 / 1e9 - 1.0,
            &|n| (n % 7) as f64,
            &|_| 4.0,
            // All but one in the first bucket.
            &|n| {
                if n % 5000 == 1 {
                    1e300
                } else {
                    (n % 99) as f64
                }
            },
            &|n| match n % 4 {
                0 => f64::NEG_INFINITY,
                1 => f64::INFINITY,
                2 => -0.0,
                _ => 0.0,
            },
            // A range that is no number.
            &|n| {
                if n % 2 == 0 {
                    f64::MAX
                } else {
                    -f64::MAX * (n % 3) as f64 / 3.0
                }
            },
        ];
        for (case, score) in scores.iter().enumerate() {
            let (positive, scores) = samples(score);
            assert_eq!(
                of_many(&positive, &scores),
                of_few(&positive, &scores),
                "{case}"
            );
        }
    }
}
