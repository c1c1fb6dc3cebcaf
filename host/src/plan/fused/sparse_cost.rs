//! What entries of a sparse X cost besides their bytes.

use crate::plan::problem::Problem;

/// Shared memory that an SM can set aside, KiB; the rest of the unified cache is L1.
const CARVE_OUTS: [f64; 10] = [
    0.0, 8.0, 16.0, 32.0, 64.0, 100.0, 132.0, 164.0, 196.0, 228.0,
];

/// Bytes of L1 that a byte of CSR rows takes while it is under way: rows lie across cache lines. Where L1 is less,
/// fewer are under way. Without gathers rows take less: see [`place`](super::place).
pub(super) const L1_PER_BYTE_IN_FLIGHT: f64 = 2.0;

/// Bytes that L2 gives out at a time, and those of a cache line.
pub(super) const L2_SECTOR: f64 = 32.0;
const LINE: f64 = 128.0;

/// Bytes of a vector whose elements are wanted alike that misses L2 as often as the vector of columns.
///
/// L2 keeps what was wanted last, entries of X among it: a sector stays as long as the sectors that were wanted since and the
/// entries that streamed past have room. A power law of the columns goes through what is known of the most frequent ones: a
/// part f of all has a part f^a of the entries. With x the times that a sector is wanted on average before it is dropped, those
/// are kept that are wanted once in that time, the most frequent ones (Che, Tung and Wang, "Hierarchical web caching systems",
/// *IEEE JSAC* 20(7), 2002, with a step in place of the exponential). Where columns are alike, that many bytes are all of them.
pub(super) fn wanted_bytes(problem: &Problem, l2_bytes: f64) -> f64 {
    let (cols, nnz) = (problem.cols as f64, problem.nnz.unwrap_or(0) as f64);
    let bytes = cols * f64::from(problem.dtype.bytes());
    let of_entry = problem.matrix_bytes() / nnz.max(1.0) / L2_SECTOR;
    let room = l2_bytes / (1.0 + of_entry);
    let Some(law) = PowerLaw::of(problem).filter(|_| bytes > room) else {
        return bytes;
    };
    let taken = |times: f64| bytes * (law.touched(times) + times * of_entry);
    let (mut least, mut most) = (0.0, l2_bytes / (bytes * of_entry));
    for _ in 0..BISECTIONS {
        let times = 0.5 * (least + most);
        match taken(times) > l2_bytes {
            true => most = times,
            false => least = times,
        }
    }
    bytes.min(room / law.kept(least).max(1e-9))
}

/// Halvings after which a share is known to a millionth.
const BISECTIONS: usize = 20;

/// The most frequent part f of the columns has the part f^a of the entries.
struct PowerLaw {
    exponent: f64,
}

impl PowerLaw {
    /// The one through what is known; none where columns are alike.
    fn of(problem: &Problem) -> Option<PowerLaw> {
        let (columns, entries) = problem.frequent_columns()?;
        let columns = columns / problem.cols.max(1) as f64;
        let entries = entries / problem.nnz.unwrap_or(0).max(1) as f64;
        let is_law = 0.0 < columns && columns < entries && entries < 1.0;
        is_law.then(|| PowerLaw {
            exponent: entries.ln() / columns.ln(),
        })
    }

    /// The part of the columns that are wanted once while a column is wanted `times` times on average.
    fn frequent(&self, times: f64) -> f64 {
        let a = self.exponent;
        (times * a).powf(1.0 / (1.0 - a)).min(1.0)
    }

    /// The part of the columns that are wanted in that time: the frequent ones, and of the others as many as entries.
    fn touched(&self, times: f64) -> f64 {
        let frequent = self.frequent(times);
        frequent + times * (1.0 - frequent.powf(self.exponent))
    }

    /// The part of the entries that find theirs kept from the time before.
    fn kept(&self, times: f64) -> f64 {
        let (a, frequent) = (self.exponent, self.frequent(times));
        // ∫ times·(a·f^(a−1))² over the others.
        let power = 2.0 * a - 1.0;
        let seldom = if power.abs() < 1e-6 {
            -frequent.max(f64::MIN_POSITIVE).ln()
        } else {
            (1.0 - frequent.powf(power)) / power
        };
        frequent.powf(a) + times * a * a * seldom
    }
}

/// The share of gathers that hit L1 where it has just room for y.
const MOST_HITS: f64 = 0.75;

/// Bytes of L1 that are left beside `taken` bytes of shared memory.
pub(super) fn l1_left(unified_bytes: u32, taken: f64) -> f64 {
    let taken = taken / 1024.0;
    let carved = CARVE_OUTS.into_iter().find(|&kib| kib >= taken);
    let carved = 1024.0 * carved.unwrap_or(taken);
    (f64::from(unified_bytes) - carved).max(0.0)
}

/// Gathers at random that `entries` are worth which want elements at random of a vector of this many bytes, in its order:
/// each line and each of its sectors counts half, so that a sector by itself is a gather. 80 million entries with
/// 4,000,000 × 4,000,000 take 0.56 ms over panels on an H200, with 30,000,000 columns 1.08.
pub(super) fn gathers_in_order(bytes: f64, entries: f64) -> f64 {
    // Of this many places, those that this many entries at random hit.
    let touched = |places: f64| {
        let places = places.max(1.0);
        places * (1.0 - (-entries / places).exp())
    };
    0.5 * (touched(bytes / L2_SECTOR) + touched(bytes / LINE))
}

/// Bytes of the L1 cache.
#[derive(Clone, Copy)]
pub(super) struct L1 {
    /// What shared memory leaves.
    pub left: f64,
    /// What keeps gathered elements while rows stream past.
    pub room: f64,
}

/// The share of gathers from y that hit L1: 4,000,000 rows of 20 with n = 28,000 take 0.40 ms on an H200, where y just fits, and 0.63 with n = 40,000. Frequent columns are there when they are
/// wanted again, the surer the more entries they have: X·y with 4,000,000 × 1,000,000 by Zipf's law takes 0.51, 0.27 and
/// 0.20 ms on an H200 with 0.37, 0.79 and 0.96 of the entries in 10,922 columns, and 0.64 ms uniformly.
pub(super) fn hits(problem: &Problem, L1 { left, room }: L1) -> f64 {
    let element = f64::from(problem.dtype.bytes());
    let bytes = (problem.cols as f64 * element).max(1.0);
    let fits = MOST_HITS * (left / bytes).min(1.0).powi(4);
    let all_alike = (room / bytes).min(1.0).max(fits);
    let Some((columns, entries)) = problem.frequent_columns() else {
        return all_alike;
    };
    let frequent = entries / problem.nnz.unwrap_or(0).max(1) as f64;
    all_alike.max((room / (columns.max(1.0) * element)).min(1.0) * frequent * frequent)
}

/// Cache lines that a warp's load of consecutive rows touches, per entry. Short vectors make a warp
/// span many rows, whose pieces lie in as many lines.
pub(super) fn lines_per_entry(mean: f64, vs: u32) -> f64 {
    const LINE_ENTRIES: f64 = 32.0;
    // Index and value.
    const LOADS: f64 = 2.0;
    let vs = f64::from(vs.max(1));
    let rows = (LINE_ENTRIES / vs).max(1.0);
    let chunks = (mean / vs).ceil().max(1.0);
    let span = (rows * mean.max(1.0) / LINE_ENTRIES).ceil();
    let lines = span.min(rows).max(1.0);
    LOADS * lines * chunks / (rows * mean.max(1.0))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::*;
    use crate::plan::problem::{ColumnUse, Precision};

    const SECTORS: u64 = 10_000;
    const COLUMNS: u64 = SECTORS * 8;
    const ENTRIES: u64 = 1_000_000;

    /// Columns by this power law, of which the thousandth part are known.
    fn problem(exponent: f64) -> Problem {
        let hot = COLUMNS / 1000;
        let share = (hot as f64 / COLUMNS as f64).powf(exponent);
        Problem::sparse(50_000, COLUMNS, ENTRIES, Precision::F32).with_columns(ColumnUse {
            busiest: 1,
            hot_columns: hot as u32,
            hot_entries: (share * ENTRIES as f64) as u64,
            cold_columns: (COLUMNS - hot) as u32,
        })
    }

    /// A cache of bytes that were used last, the oldest dropped first.
    #[derive(Default)]
    struct Lru {
        by_age: BTreeMap<u64, (Option<u64>, u64)>,
        ages: HashMap<u64, u64>,
        used: u64,
        now: u64,
    }

    impl Lru {
        /// Whether it was there.
        fn take(&mut self, name: Option<u64>, bytes: u64, room: u64) -> bool {
            self.now += 1;
            let before = name.and_then(|name| self.ages.insert(name, self.now));
            match before.and_then(|age| self.by_age.remove(&age)) {
                Some(_) => {}
                None => self.used += bytes,
            }
            self.by_age.insert(self.now, (name, bytes));
            while self.used > room {
                let (_, (oldest, bytes)) = self.by_age.pop_first().expect("something is there");
                self.used -= bytes;
                oldest.map(|name| self.ages.remove(&name));
            }
            before.is_some()
        }
    }

    /// The part of the entries whose sector is there, while rows stream past.
    fn kept_by_lru(exponent: f64, room: u64, of_entry: u64) -> f64 {
        const COUNTED: u32 = 60_000;
        const FIRST: u32 = 20_000;
        let (mut cache, mut state, mut kept) = (Lru::default(), 1_u64, 0);
        for entry in 0..FIRST + COUNTED {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let drawn = (state >> 11) as f64 / (1_u64 << 53) as f64;
            let sector = (drawn.powf(1.0 / exponent) * SECTORS as f64) as u64;
            let is_there = cache.take(Some(sector), L2_SECTOR as u64, room);
            cache.take(None, of_entry, room);
            kept += u32::from(is_there && entry >= FIRST);
        }
        f64::from(kept) / f64::from(COUNTED)
    }

    /// A step in place of an exponential function is up to 0.06 off.
    #[test]
    fn a_cache_keeps_what_was_used_last() {
        for exponent in [0.06, 1.0 / 3.0, 0.5, 0.8] {
            let problem = problem(exponent);
            let of_entry = problem.matrix_bytes() / ENTRIES as f64;
            for room in [64_000, 128_000, 200_000] {
                let wanted = wanted_bytes(&problem, room as f64);
                let kept = room as f64 / (1.0 + of_entry / L2_SECTOR) / wanted;
                let truth = kept_by_lru(exponent, room, of_entry as u64);
                assert!(
                    (kept - truth).abs() <= 0.08,
                    "{exponent} {room}: {kept} {truth}"
                );
            }
        }
    }

    /// Nothing but their number counts where columns are alike, or all fit.
    #[test]
    fn columns_that_are_alike_are_all_wanted() {
        let bytes = (COLUMNS * 4) as f64;
        assert_eq!(wanted_bytes(&problem(1.0), 64e3), bytes);
        assert!((wanted_bytes(&problem(0.99), 64e3) / bytes - 1.0).abs() < 2e-2);
        assert_eq!(wanted_bytes(&problem(0.1), 1e6), bytes);
        let unknown = Problem::sparse(50_000, COLUMNS, ENTRIES, Precision::F32);
        assert_eq!(wanted_bytes(&unknown, 64e3), bytes);
    }
}
