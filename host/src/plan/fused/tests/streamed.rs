//! What is launched for blocks that stream.

use super::even;
use super::*;

/// 400 million entries in even rows of 20.
fn x(cols: u64) -> Problem {
    Problem::sparse(20_000_000, cols, 400_000_000, Precision::F32).with_longest_row(20)
}

#[test]
fn halves_add_by_themselves() {
    let (limits, mut kernels) = (device("h200"), even::kernels(Precision::F32));
    // Faster than any other, if it could be.
    kernels.push(
        Candidate::new(
            "fixed",
            Product::Transposed,
            Storage::Sparse,
            Strategy::FixedShared,
            Precision::F32,
            Team::Lanes(4),
        )
        .with_load(5, 1, 1),
    );
    let planner = Planner::new(&limits, &kernels);
    let chosen = planner
        .plan(&x(1_000), Product::Transposed)
        .expect("a plan");
    assert_eq!(chosen.strategy, Strategy::FixedShared, "{chosen}");
    let [forward, transposed] = planner.halves(&x(1_000).part(40)).expect("plans");
    assert_eq!(forward.strategy, Strategy::RowDot);
    assert!(!transposed.strategy.is_fixed(), "{transposed}");
}

#[test]
fn what_is_launched_is_what_is_predicted() {
    let (limits, kernels) = (device("h200"), even::kernels(Precision::F32));
    let planner = Planner::new(&limits, &kernels);
    let problem = x(50_000);
    for plan in planner.streamed(&problem, 40).expect("plans") {
        // Of more than L2 has room for.
        let parts = [10, 20, 40].map(|blocks| {
            let block = planner.ns_of_block(&plan, &problem.part(blocks));
            blocks * block
        });
        let whole = planner.launches(&problem, plan.product).expect("launches");
        let own = whole.iter().find(|trial| trial.kernel == plan.kernel);
        let own = own.expect("it was weighed").prediction;
        // Each block has its own sums to flush.
        assert!(parts.is_sorted() && parts[0] >= own.total_ns - own.launch_ns - 20);
    }
}

#[test]
fn a_kernel_that_is_none_of_these_takes_what_its_plan_says() {
    let (limits, kernels) = (device("h200"), even::kernels(Precision::F32));
    let planner = Planner::new(&limits, &kernels);
    let plan = planner
        .plan(&x(50_000), Product::Transposed)
        .expect("a plan");
    let said = plan.prediction.expect("of the model");
    let other = Plan {
        kernel: "another".into(),
        ..plan
    };
    let ns = planner.ns_of_block(&other, &x(50_000).part(40));
    assert_eq!(ns, said.total_ns - said.launch_ns);
}
