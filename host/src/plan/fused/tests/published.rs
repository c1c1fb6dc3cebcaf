use super::*;

fn published(device_name: &str, problem: &Problem) -> Plan {
    let limits = device(device_name);
    let kernels = Candidate::of_the_source(problem.dtype);
    let planner = Planner::new(&limits, &kernels).model(Model::Published);
    planner.plan(problem, Product::Fused).expect("a plan")
}

#[test]
fn the_worked_example_of_the_source_comes_out() {
    let problem = Problem::sparse(500_000, 1_024, 5_000_000, Precision::F64);
    let plan = published("titan", &problem);
    assert_eq!(plan.strategy, Strategy::SharedW);
    assert_eq!((plan.vs, plan.bs, plan.grid, plan.c), (8, 640, 28, 224));
    assert_eq!(
        (plan.shared_bytes, plan.warps_per_sm, plan.blocks_per_sm),
        (8_832, 40, 2)
    );
    // 256 threads reach 40 warps as well, and lose for adding to w more often at the end.
    assert!(
        plan.reasons.contains(&Reason::Tie { bs: 256, warps: 40 }),
        "{:?}",
        plan.reasons
    );
}

#[test]
fn coarsening_covers_the_rows_that_the_sources_223_would_leave_out() {
    let plan = published(
        "titan",
        &Problem::sparse(500_000, 1_024, 5_000_000, Precision::F64),
    );
    assert_eq!(500_000 - 223 * plan.vectors(), 480);
    assert!(224 * plan.vectors() >= 500_000);
}

#[test]
fn the_vector_size_follows_the_mean_row() {
    let table = [
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 2),
        (5, 4),
        (8, 4),
        (9, 8),
        (16, 8),
        (17, 16),
        (32, 16),
        (33, 32),
    ];
    for (mean, vs) in table {
        assert_eq!(vector_size(mean * 1_000, 1_000), vs, "mean row of {mean}");
    }
    assert_eq!(vector_size(0, 0), 1);
    assert_eq!(vector_size(2_001, 1_000), 2, "just above two");
    assert_eq!(vector_size(u64::MAX, u64::MAX), 1);
}

#[test]
fn w_moves_to_global_memory_when_shared_memory_is_too_small() {
    let last = Problem::sparse(500_000, 6_140, 5_000_000, Precision::F64);
    assert_eq!(published("titan", &last).strategy, Strategy::SharedW);
    let first = Problem::sparse(500_000, 6_141, 5_000_000, Precision::F64);
    let plan = published("titan", &first);
    assert_eq!((plan.strategy, plan.shared_bytes), (Strategy::GlobalW, 0));
    assert!(plan.reasons.iter().any(|r| matches!(
        r,
        Reason::SharedTooSmall {
            available: 49_152,
            ..
        }
    )));
}

#[test]
fn dense_checks_of_the_source_come_out() {
    assert_eq!(
        (dense_vector_size(200, 2, 128), wasted_warps(200, 128, 2)),
        (128, 1)
    );
    assert_eq!(
        (dense_vector_size(200, 7, 128), wasted_warps(200, 32, 7)),
        (32, 0)
    );
    assert_eq!(dense_vector_size(32, 2, 128), 16);
    let plan = published("titan", &Problem::dense(1_000_000, 200, Precision::F64));
    assert_eq!(
        (plan.strategy, plan.bs, plan.tl, plan.vs),
        (Strategy::DenseRegisters, 128, 7, 32)
    );
}

#[test]
fn up_to_a_warp_of_columns_takes_the_largest_block_and_one_element_per_thread() {
    let plan = published("titan", &Problem::dense(11_000_000, 28, Precision::F64));
    assert_eq!((plan.bs, plan.tl, plan.vs), (1_024, 1, 32));
    assert!(plan.reasons.contains(&Reason::Narrow { cols: 28 }));
    let wider = published("titan", &Problem::dense(11_000_000, 33, Precision::F64));
    assert_eq!(wider.bs, 128);
}

#[test]
fn thread_load_is_limited_to_the_compiled_instances() {
    let limits = device("h200");
    let kernels: Vec<_> = Candidate::of_the_source(Precision::F32)
        .into_iter()
        .filter(|k| [2, 4].contains(&k.tl))
        .collect();
    let planner = Planner::new(&limits, &kernels).model(Model::Published);
    let plan = planner
        .plan(&Problem::dense(1_000, 200, Precision::F32), Product::Fused)
        .expect("a plan");
    assert!([2, 4].contains(&plan.tl));
    assert_eq!((plan.vs, plan.team), (128, Team::Block));
}

#[test]
fn a_row_beyond_registers_becomes_two_products() {
    let plan = published("titan", &Problem::dense(1_000, 1_000_000, Precision::F64));
    assert_eq!(
        (plan.strategy, plan.product),
        (Strategy::DenseTwoProducts, Product::Fused)
    );
    let next = plan.then.as_ref().expect("a second launch");
    assert_eq!(
        (next.product, next.strategy),
        (Product::Transposed, Strategy::DenseColumns)
    );
    assert!(next.column_tiles > 1);
    assert!(matches!(
        plan.reasons[0],
        Reason::BeyondRegisters {
            cols: 1_000_000,
            ..
        }
    ));
}

#[test]
fn a_missing_vector_size_is_replaced_by_the_nearest_compiled_one() {
    let limits = device("h200");
    let kernels = compiled(Precision::F32);
    let planner = Planner::new(&limits, &kernels).model(Model::Published);
    let problem = Problem::sparse(1_000, 100, 2_000, Precision::F32);
    let plan = planner.plan(&problem, Product::Fused).expect("a plan");
    assert_eq!(plan.vs, 4);
    assert!(
        plan.reasons
            .contains(&Reason::NearestVector { wanted: 1, vs: 4 })
    );
}

#[test]
fn single_products_have_published_plans_too() {
    let limits = device("titan");
    let kernels = Candidate::of_the_source(Precision::F32);
    let planner = Planner::new(&limits, &kernels).model(Model::Published);
    let problem = Problem::sparse(500_000, 1_024, 5_000_000, Precision::F32);
    let forward = planner.plan(&problem, Product::Forward).expect("a plan");
    assert_eq!(
        (forward.strategy, forward.shared_bytes, forward.vs),
        (Strategy::RowDot, 0, 8)
    );
    let transposed = planner.plan(&problem, Product::Transposed).expect("a plan");
    assert_eq!(transposed.strategy, Strategy::SharedW);
}
