//! Whether blocks of rows by rows and by columns pay on the CPU: see [`crate::cpu::sell`].

use super::preparation::Weighing;
use crate::plan::problem::{Precision, Problem, Product, Stored, StoredValues};
use crate::plan::rates::{HostRates, SizeTable};
use crate::plan::streaming::Footprint;

/// How many times as fast as passes over rows, by the bytes of a vector with an element per column.
type Speedups = [(f64, f64); 4];

/// Where all values are equal, whatever the product and the type.
const EQUAL: Speedups = [(4e3, 2.4), (4e4, 2.1), (4e5, 1.3), (8e5, 1.2)];
/// Of the fused product, `X·y` and `Xᵀ·p` in f32, 20 entries a row, from memory: the fused product on 16 threads of a Xeon,
/// where it gains less than on one core of an EPYC 9004 (1.6, 1.5, 1.3 and 1.1 at 1,000 to 100,000 columns), the others on
/// that core.
const IN_F32: [Speedups; 3] = [
    [(4e3, 1.45), (1.6e4, 1.4), (4e4, 1.03), (4e5, 0.87)],
    [(4e3, 1.8), (4e4, 1.8), (1.6e5, 1.5), (4e5, 1.15)],
    [(4e3, 1.4), (4e4, 1.4), (1.6e5, 1.3), (4e5, 1.3)],
];
/// The same in f64.
const IN_F64: [Speedups; 3] = [
    [(8e3, 1.11), (3.2e4, 1.05), (1.6e5, 0.8), (4e5, 0.8)],
    [(8e3, 1.5), (3.2e4, 1.7), (1.6e5, 1.3), (4e5, 1.1)],
    [(8e3, 1.4), (3.2e4, 1.25), (1.6e5, 1.2), (4e5, 1.1)],
];

/// Bytes of an entry besides its value, by rows and by columns: an index each, and what pads lists.
const INDEX_BYTES: f64 = 2.1;
/// Entries of a column in a block, at least: with fewer, the access to its sum is most of the work.
const ENTRIES_PER_SUM: u64 = 3;
/// Entries of X, at least: fewer are one thread's, whose pass takes some tens of microseconds in any form.
const FEWEST_ENTRIES: u64 = 1 << 16;
/// Bytes of the elements for the rows of a block, at most.
const BLOCK_BYTES: u64 = 64 << 10;

/// What the form would cost and save in a product on the CPU with this many threads; `None` for a dense X, and where it
/// saves nothing. [`Problem::values`] says whether all values are equal.
pub(crate) fn weigh(problem: &Problem, product: Product, threads: usize) -> Option<Weighing> {
    let nnz = problem.nnz.filter(|&nnz| nnz >= FEWEST_ENTRIES)?;
    let element = u64::from(problem.dtype.bytes());
    let block_rows = problem.rows.min(BLOCK_BYTES / element) as f64;
    let of_block = nnz as f64 / problem.rows.max(1) as f64 * block_rows;
    if (problem.cols * ENTRIES_PER_SUM) as f64 > of_block {
        return None;
    }
    let host = HostRates::of_threads(threads);
    let before = host.pass_seconds(&Footprint::of(problem), Some(nnz));
    let speedup = SizeTable::new(speedups(problem, product)).at((problem.cols * element) as f64);
    let reading = nnz as f64 * bytes(problem, product) / (host.dense_gbs * 1e9);
    let after = (before / speedup).max(reading);
    let stored = Stored::RowsAndSell;
    let cost = nnz as f64 * stored.facts().ns_per_entry / threads.max(1) as f64;
    let [before_ns, after_ns] = [before, after].map(|seconds| (seconds * 1e9) as u64);
    (after_ns < before_ns).then_some(Weighing {
        stored,
        cost_ns: cost as u64,
        before_ns,
        after_ns,
    })
}

/// Bytes of an entry that a product reads.
fn bytes(problem: &Problem, product: Product) -> f64 {
    let value = match problem.values {
        StoredValues::Equal => 0.0,
        _ => f64::from(problem.dtype.bytes()),
    };
    let times = match product {
        Product::Fused => 2.0,
        Product::Forward | Product::Transposed => 1.0,
    };
    times * (INDEX_BYTES + value)
}

fn speedups(problem: &Problem, product: Product) -> Speedups {
    let of = match problem.dtype {
        Precision::F32 => IN_F32,
        Precision::F64 => IN_F64,
    };
    match (problem.values, product) {
        (StoredValues::Equal, _) => EQUAL,
        (_, Product::Fused) => of[0],
        (_, Product::Forward) => of[1],
        (_, Product::Transposed) => of[2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(cols: u64, dtype: Precision) -> Problem {
        Problem::sparse(6_400_000, cols, 128_000_000, dtype)
    }

    #[test]
    fn many_passes_pay_for_it_where_columns_have_entries() {
        let few = weigh(&problem(1_000, Precision::F32), Product::Fused, 16).expect("it is faster");
        let needed = few.pays_from().expect("it is faster");
        assert!((10..300).contains(&needed), "{needed} passes");
        assert!(!few.pays_for(1));
        // Columns have less than an entry in a block.
        assert_eq!(
            weigh(&problem(1_000_000, Precision::F32), Product::Fused, 16),
            None
        );
        let dense = Problem::dense(1_000, 1_000, Precision::F32);
        assert_eq!(weigh(&dense, Product::Fused, 16), None);
        let small = Problem::sparse(1_000, 50, 20_000, Precision::F32);
        assert_eq!(weigh(&small, Product::Fused, 16), None);
    }

    #[test]
    fn large_values_are_read_twice_and_equal_ones_never() {
        let wide = problem(20_000, Precision::F64);
        assert_eq!(weigh(&wide, Product::Fused, 2), None);
        let equal = wide.with_values(StoredValues::Equal);
        let saves = weigh(&equal, Product::Fused, 2).expect("4 bytes an entry instead of 12");
        assert!(saves.before_ns > saves.after_ns * 3 / 2);
        assert!(weigh(&wide, Product::Transposed, 2).is_some());
    }
}
