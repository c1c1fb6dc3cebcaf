//! Rows of different lengths, and matrices beyond the L2 cache, beside the times of an H200.

use super::*;
use crate::matrix::RowSteps;

const ROWS: u64 = 4_000_000;

fn ms(kernels: &[Candidate], problem: &Problem, product: Product) -> (f64, Plan) {
    let limits = device("h200");
    let plan = Planner::new(&limits, kernels).plan(problem, product);
    let plan = plan.expect("a plan");
    (plan.predicted_us().expect("a time") / 1e3, plan)
}

#[track_caller]
fn assert_near(found: f64, measured: f64, percent: f64) {
    let off = (found / measured - 1.0).abs() * 100.0;
    // Written so that a NaN fails.
    assert!(
        off <= percent,
        "predicted {found:.3} ms, measured {measured:.3} ms: {off:.0} % off"
    );
}

/// Lengths of a log-normal law with a mean of 20 and a logarithm that deviates by 1: what was counted of them.
fn log_normal() -> Problem {
    let steps = "[13707027, 10472836, 7890020, 5954587, 4728683, 5001306]";
    let steps: RowSteps = serde_json::from_str(steps).expect("six sizes of vectors");
    Problem::sparse(ROWS, 10_000, 79_964_658, Precision::F32)
        .with_longest_row(1_399)
        .with_row_steps(steps)
}

#[test]
fn unequal_rows_take_as_long_as_measured() {
    let kernels = sparse_kernels(Precision::F32);
    for (product, measured) in [
        (Product::Forward, 0.293),
        (Product::Transposed, 0.465),
        (Product::Fused, 0.627),
    ] {
        let (found, plan) = ms(&kernels, &log_normal(), product);
        assert_near(found, measured, 25.0);
        // Wider vectors than equal rows would take: a warp has fewer rows that wait for one another.
        assert!(plan.vs >= 8, "{product}: VS = {}", plan.vs);
    }
}

#[test]
fn equal_rows_take_as_long_as_before() {
    let kernels = sparse_kernels(Precision::F32);
    let equal = Problem::sparse(ROWS, 10_000, 80_000_000, Precision::F32).with_longest_row(20);
    let counted = equal.with_row_steps(RowSteps::of_equal_rows(ROWS, 20));
    for product in [Product::Forward, Product::Transposed, Product::Fused] {
        let [before, after] = [equal, counted].map(|problem| ms(&kernels, &problem, product).0);
        assert_eq!(before, after, "{product}");
    }
}

#[test]
fn a_long_row_keeps_one_warp_at_work() {
    let lengths = (0..ROWS).map(|row| if row % 10_000 == 0 { 20_000 } else { 20 });
    let ends = lengths.scan(0, |end, length| {
        *end += length;
        Some(*end)
    });
    let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
    let nnz = *offsets.last().expect("an end");
    let problem = Problem::sparse(ROWS, 100_000, nnz, Precision::F32)
        .with_longest_row(20_000)
        .with_row_steps(RowSteps::of_offsets(&offsets));
    let global: Vec<Candidate> = sparse_kernels(Precision::F32)
        .into_iter()
        .filter(|kernel| kernel.strategy == Strategy::GlobalW && kernel.team == Team::Lanes(16))
        .collect();
    assert_near(ms(&global, &problem, Product::Fused).0, 2.41, 25.0);
}

#[test]
fn plans_without_steps_of_rows_are_read() {
    let problem = log_normal();
    let mut value = serde_json::to_value(problem).expect("JSON");
    let fields = value.as_object_mut().expect("an object");
    fields.remove("row_steps").expect("it was written");
    let old: Problem = serde_json::from_value(value).expect("a problem");
    let row_steps = None;
    assert_eq!(
        old,
        Problem {
            row_steps,
            ..problem
        }
    );
}
