//! Sums of a sparse X that a cluster's two blocks hold together.

use super::*;
use crate::plan::PlanError;
use crate::plan::fused::Summation;

const ROWS: u64 = 4_000_000;

fn of(precision: Precision, strategy: Strategy, vs: u32) -> Candidate {
    let (product, storage, team) = (Product::Fused, Storage::Sparse, Team::Lanes(vs));
    let name = format!("{strategy}_{vs}");
    let kernel = Candidate::new(name, product, storage, strategy, precision, team);
    kernel.with_load(20 / vs, 1, 1).with_registers(48)
}

/// Kernels with fixed-point sums: of clusters, and in global memory.
fn kernels(precision: Precision) -> Vec<Candidate> {
    let per_column = match precision {
        Precision::F32 => 4,
        Precision::F64 => 6,
    };
    let in_clusters = |vs| Candidate {
        cluster: 2,
        shared: SharedUse {
            fixed: per_column,
            per_column,
            ..SharedUse::default()
        },
        ..of(precision, Strategy::FixedCluster, vs)
    };
    let in_global = |vs| of(precision, Strategy::FixedGlobal, vs);
    [4, 8]
        .map(in_clusters)
        .into_iter()
        .chain([4, 8].map(in_global))
        .collect()
}

fn uniform(rows: u64, cols: u64, dtype: Precision) -> Problem {
    Problem::sparse(rows, cols, 20 * rows, dtype).with_longest_row(20)
}

fn force(limits: &DeviceLimits, problem: &Problem) -> Result<Plan, PlanError> {
    let forced = Forced {
        strategy: Some(Strategy::FixedCluster),
        ..Forced::default()
    };
    let kernels = kernels(problem.dtype);
    let planner = Planner::new(limits, &kernels).forced(forced);
    planner.plan(problem, Product::Fused)
}

#[test]
fn each_block_has_half_of_the_sums_and_rows_of_its_own() {
    let limits = device("h200");
    let plan = force(&limits, &uniform(ROWS, 40_000, Precision::F32)).expect("a plan");
    assert_eq!((plan.grid, plan.column_tiles), (132, 1), "{plan}");
    assert_eq!(plan.shared_bytes, 4 * 40_001);
    assert!(plan.c * plan.vectors() < ROWS + plan.vectors());
    let fits = plan.reasons.iter().find(|reason| {
        matches!(
            reason,
            Reason::ClusterFits {
                cols: 40_000,
                blocks: 2,
                ..
            }
        )
    });
    let text = fits.expect("it says why").to_string();
    assert!(
        text.contains("a cluster of 2 blocks: 160004 of 232448 bytes"),
        "{text}"
    );
}

#[test]
fn two_blocks_hold_twice_as_many_columns_as_one() {
    let limits = device("h200");
    for (held, dtype) in [(58_111, Precision::F32), (38_740, Precision::F64)] {
        force(&limits, &uniform(ROWS, held, dtype)).expect("a plan");
        let wider = force(&limits, &uniform(ROWS, held + 1, dtype));
        assert!(
            matches!(wider, Err(PlanError::DoesNotFit { .. })),
            "{wider:?}"
        );
    }
}

#[test]
fn clusters_are_whole_however_few_the_rows_and_odd_the_sms() {
    let few = uniform(1, 40_000, Precision::F32);
    assert_eq!(force(&device("h200"), &few).expect("a plan").grid, 2);
    for sms in [1, 3, 131] {
        let limits = DeviceLimits {
            sms,
            ..device("h200")
        };
        let plan = force(&limits, &uniform(ROWS, 40_000, Precision::F32)).expect("a plan");
        assert_eq!(plan.grid, (sms & !1).max(2));
        let halved = Plan {
            grid: plan.grid + 1,
            ..plan
        };
        let refused = halved.validate(&uniform(1, 40_000, Precision::F32), &limits);
        assert!(matches!(
            refused,
            Err(PlanError::Invalid { field: "grid", .. })
        ));
    }
}

#[test]
fn devices_without_clusters_have_no_such_launch() {
    let (limits, problem) = (device("a100"), uniform(ROWS, 20_000, Precision::F32));
    assert!(force(&limits, &problem).is_err());
    let kernels = kernels(Precision::F32);
    let planner = Planner::new(&limits, &kernels).summation(Summation::Reproducible);
    let plan = planner.plan(&problem, Product::Fused).expect("a plan");
    assert_eq!(plan.strategy, Strategy::FixedGlobal);
    let trials = planner
        .launches(&problem, Product::Fused)
        .expect("launches");
    assert!(
        trials
            .iter()
            .all(|trial| trial.strategy == Strategy::FixedGlobal)
    );
}

#[test]
fn reproducible_sums_that_two_blocks_hold_are_not_added_in_global_memory() {
    let (limits, kernels) = (device("h200"), kernels(Precision::F32));
    let planner = Planner::new(&limits, &kernels).summation(Summation::Reproducible);
    let strategy = |cols| {
        let plan = planner.plan(&uniform(ROWS, cols, Precision::F32), Product::Fused);
        plan.expect("a plan").strategy
    };
    assert_eq!(strategy(40_000), Strategy::FixedCluster);
    assert_eq!(strategy(100_000), Strategy::FixedGlobal);
}

#[test]
fn blocks_with_half_of_the_columns_walk_the_same_rows() {
    let limits = device("h200");
    let split = Candidate {
        cluster: 2,
        shared: SharedUse {
            fixed: 4,
            per_column: 8,
            ..SharedUse::default()
        },
        ..of(Precision::F32, Strategy::FixedSplit, 4)
    };
    let problem = uniform(ROWS, 28_000, Precision::F32);
    let planner = Planner::new(&limits, std::slice::from_ref(&split));
    let plan = planner.plan(&problem, Product::Fused).expect("a plan");
    assert_eq!((plan.grid, plan.column_tiles), (132, 2), "{plan}");
    assert_eq!(plan.shared_bytes, 8 * 28_000 + 4);
    let vectors = u64::from(plan.grid / 2 * plan.bs / plan.vs);
    assert_eq!((plan.vectors(), plan.c), (vectors, ROWS.div_ceil(vectors)));
    let widest = |cols| planner.plan(&uniform(ROWS, cols, Precision::F32), Product::Fused);
    assert!(widest(29_055).is_ok() && widest(29_056).is_err());
}
