use proptest::prelude::*;

use super::*;
use crate::plan::PlanError;
use crate::plan::occupancy::{Usage, occupancy};

/// Sizes from nothing over the edges of warps and blocks to the end of 64 bits.
fn size() -> impl Strategy64 {
    prop_oneof![
        Just(0),
        Just(1),
        0..70_u64,
        1_000..1_100_u64,
        0..100_000_000_u64,
        any::<u64>(),
        Just(u64::MAX),
    ]
}

/// Shorthand, since `Strategy` already names something here.
trait Strategy64: proptest::strategy::Strategy<Value = u64> {}
impl<T: proptest::strategy::Strategy<Value = u64>> Strategy64 for T {}

prop_compose! {
    fn problem()(rows in size(), cols in size(), share in size(), pick in 0..4_u32) -> Problem {
        let dtype = if pick % 2 == 0 { Precision::F32 } else { Precision::F64 };
        if pick < 2 {
            return Problem::dense(rows, cols, dtype);
        }
        let places = rows.saturating_mul(cols);
        let nnz = if places == u64::MAX { share } else { share % (places + 1) };
        Problem::sparse(rows, cols, nnz, dtype)
    }
}

fn check(plan: &Plan, problem: &Problem, limits: &DeviceLimits) {
    plan.validate(problem, limits).expect("a valid plan");
    assert!(u128::from(plan.c) * u128::from(plan.vectors()) >= u128::from(problem.rows));
    assert!(plan.grid >= 1 && plan.c >= 1 && plan.bs.is_multiple_of(limits.warp_size));
    assert!(plan.shared_bytes <= limits.shared_per_block);
    assert!(
        u64::from(plan.registers) * u64::from(plan.bs) <= u64::from(limits.registers_per_block)
    );
    assert!(plan.blocks_per_sm >= 1 && plan.warps_per_sm <= limits.max_warps_per_sm);
    let tile = u64::from(plan.vs) * u64::from(plan.tl);
    if plan.strategy == crate::plan::fused::Strategy::DenseColumns {
        assert!(plan.grid.is_multiple_of(plan.column_tiles));
        assert!(u64::from(plan.column_tiles) * tile >= problem.cols);
    }
    if let Some(next) = &plan.then {
        check(next, problem, limits);
    }
}

/// Whether a problem of this size may be refused at all.
fn beyond_arithmetic(problem: &Problem) -> bool {
    let value = u128::from(problem.dtype.bytes());
    let (rows, cols) = (u128::from(problem.rows), u128::from(problem.cols));
    let entries = problem.nnz.map_or(rows * cols, u128::from);
    let bytes = entries.saturating_mul(value + 4).saturating_add(rows * 8);
    // Tiles of the widest dense matrices outgrow a grid.
    bytes.max(cols * value) > u128::from(u64::MAX) || cols >= 1 << 35
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn every_plan_fits_and_covers_its_rows(problem in problem(), device_index in 0..4_usize) {
        let limits = device(DeviceLimits::KNOWN[device_index]);
        let sets = [compiled(problem.dtype), Candidate::of_the_source(problem.dtype)];
        for (kernels, model) in sets.iter().flat_map(|k| [(k, Model::Published), (k, Model::Predicted)]) {
            for product in [Product::Fused, Product::Forward, Product::Transposed] {
                match Planner::new(&limits, kernels).model(model).plan(&problem, product) {
                    Ok(plan) => check(&plan, &problem, &limits),
                    Err(PlanError::TooLarge { .. }) => prop_assert!(beyond_arithmetic(&problem)),
                    Err(PlanError::Nonzeros { .. }) => {
                        let places = u128::from(problem.rows) * u128::from(problem.cols);
                        prop_assert!(u128::from(problem.nnz.unwrap_or(0)) > places);
                    }
                    Err(error) => prop_assert!(false, "{model} {product}: {error}"),
                }
            }
        }
    }

    #[test]
    fn occupancy_never_grows_with_registers_or_shared_memory(
        device_index in 0..4_usize,
        warps in 1..33_u32,
        registers in 1..256_u32,
        shared_bytes in 0..240_000_u64,
        more in 1..50_000_u64,
    ) {
        let limits = device(DeviceLimits::KNOWN[device_index]);
        let usage = Usage { block_size: 32 * warps, registers, shared_bytes };
        let held = occupancy(&limits, usage);
        let heavier = occupancy(&limits, Usage { registers: registers + 1, ..usage });
        let wider = occupancy(&limits, Usage { shared_bytes: shared_bytes + more, ..usage });
        prop_assert!(heavier.blocks_per_sm <= held.blocks_per_sm);
        prop_assert!(wider.blocks_per_sm <= held.blocks_per_sm);
        prop_assert!(held.warps_per_sm <= limits.max_warps_per_sm);
        prop_assert!(held.warps_per_sm * 32 * registers <= limits.registers_per_sm);
    }

    #[test]
    fn vectors_cover_their_elements(n in size(), device_index in 0..4_usize) {
        let limits = device(DeviceLimits::KNOWN[device_index]);
        let plan = crate::plan::vector::elementwise(n, &limits);
        prop_assert!(plan.grid >= 1);
        let covered = u128::from(plan.grid) * u128::from(plan.bs) * u128::from(plan.per_thread);
        prop_assert!(covered >= u128::from(n));
    }
}

#[test]
fn figures_that_contradict_each_other_are_refused() {
    let limits = device("h200");
    let kernels = compiled(Precision::F32);
    let planner = Planner::new(&limits, &kernels);
    let full = Problem::sparse(3, 4, 13, Precision::F32);
    let error = planner
        .plan(&full, Product::Fused)
        .expect_err("13 in 12 places");
    assert_eq!(
        error,
        PlanError::Nonzeros {
            rows: 3,
            cols: 4,
            nnz: 13
        }
    );
    let long = Problem::sparse(3, 4, 12, Precision::F32).with_longest_row(5);
    assert_eq!(
        long.validate(),
        Err(PlanError::LongestRow {
            longest: 5,
            limit: 4
        })
    );
    let narrow = Problem::dense(3, 4, Precision::F32).with_pitch(3);
    assert_eq!(
        narrow.validate(),
        Err(PlanError::Pitch { cols: 4, pitch: 3 })
    );
    let none = Planner::new(&limits, &[]).plan(&full.with_longest_row(1), Product::Fused);
    assert!(none.is_err());
    let limits = DeviceLimits { sms: 0, ..limits };
    let dead =
        Planner::new(&limits, &kernels).plan(&Problem::dense(3, 4, Precision::F32), Product::Fused);
    assert!(matches!(dead, Err(PlanError::Limits { limit: "sms", .. })));
}

#[test]
fn wide_loads_need_rows_that_start_on_their_multiples() {
    let limits = device("h200");
    let kernels = compiled(Precision::F32);
    let planner = Planner::new(&limits, &kernels);
    for (cols, pitch, wide) in [
        (128, 128, true),
        (128, 130, false),
        (126, 126, false),
        (126, 128, true),
        (128, 132, true),
    ] {
        let problem = Problem::dense(1_000_000, cols, Precision::F32).with_pitch(pitch);
        let plan = planner.plan(&problem, Product::Fused).expect("a plan");
        assert_eq!(plan.width == 4, wide, "{cols} columns, pitch {pitch}");
    }
}
