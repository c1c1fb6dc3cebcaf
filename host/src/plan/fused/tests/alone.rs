//! One of the two products by itself: kernels that gather nothing, those that add nothing, and what blocks add in the end.

use gpu_kernels::{Family, Kernels};

use super::*;

/// Times may be off by this much, percent.
const PERCENT: f64 = 10.0;

/// Kernels over sparse rows as they are compiled, of which an SM has two blocks of 1,024 threads.
fn kernels() -> Vec<Candidate> {
    let mut all = described::<<f32 as Kernels>::Sparse>();
    all.extend(described::<<f32 as Kernels>::Fixed>());
    all
}

fn described<F: Family>() -> Vec<Candidate> {
    let each = |entry: &'static gpu_kernels::Entry<F>| -> Vec<Candidate> {
        let kernels = Candidate::described(entry.name, Precision::F32, &entry.description);
        kernels.map(|kernel| kernel.with_registers(32)).collect()
    };
    F::entries().iter().flat_map(each).collect()
}

/// The prediction of a kernel in blocks of 1,024 threads on 4,000,000 rows of 20.
fn predicted(kernel: &str, product: Product, cols: u64) -> Prediction {
    let (limits, kernels) = (device("h100"), kernels());
    let x = Problem::sparse(4_000_000, cols, 80_000_000, Precision::F32).with_longest_row(20);
    let all = Planner::new(&limits, &kernels).launches(&x, product);
    let is_it = |trial: &Trial| trial.kernel == kernel && trial.bs == 1_024;
    let found = all.expect("launches").into_iter().find(is_it);
    found.expect("it fits").prediction
}

#[track_caller]
fn assert_takes(us: f64, kernel: &str, product: Product, cols: u64) {
    let found = predicted(kernel, product, cols).total_ns as f64 / 1e3;
    let off = (found / us - 1.0).abs() * 100.0;
    assert!(
        off <= PERCENT,
        "{kernel}, n = {cols}: predicted {found:.0} µs, measured {us} µs"
    );
}

/// From `system launches` of an H100: with n = 56,000 sums leave 28 KiB of L1.
#[test]
fn rows_need_little_cache_where_nothing_is_gathered() {
    let measured = [
        ("sparse_transposed_shared_f32_vs4", 44_000, 357.0),
        ("sparse_transposed_shared_f32_vs4", 56_000, 370.0),
        ("fixed_transposed_halves_f32_vs4", 44_000, 391.0),
        ("fixed_transposed_halves_f32_vs4", 56_000, 403.0),
    ];
    for (kernel, cols, us) in measured {
        assert_takes(us, kernel, Product::Transposed, cols);
    }
}

/// From the same run: y has 120, 176 and 224 KB of the 256 KiB that are L1's.
#[test]
fn gathers_miss_before_y_has_all_of_the_cache() {
    let measured = [
        ("sparse_forward_f32_vs8", 44_000, 303.0),
        ("sparse_forward_f32_vs8", 56_000, 404.0),
        ("sparse_forward_f32_vs4", 44_000, 339.0),
        ("sparse_forward_f32_vs4", 56_000, 463.0),
    ];
    for (kernel, cols, us) in measured {
        assert_takes(us, kernel, Product::Forward, cols);
    }
}

/// Words of eight bytes are added a third as fast as four times a scatter: 66 clusters, each the sums of 50,000 columns.
#[test]
fn integers_are_added_slower_than_floats_in_the_end() {
    let flush = |kernel| predicted(kernel, Product::Transposed, 50_000).flush_ns as f64 / 1e3;
    let integers = flush("fixed_transposed_halves_f32_vs4");
    assert!((25.0..30.0).contains(&integers), "{integers} µs");
    let floats = flush("sparse_transposed_shared_f32_vs4");
    assert!((15.0..20.0).contains(&floats), "{floats} µs");
}
