//! Plans with a table of measured launches.

use super::*;
use crate::plan::problem::Summation;
use crate::plan::tuned::{Launch, Measured, Table, class};

fn problem() -> Problem {
    Problem::sparse(500_000, 1_024, 5_000_000, Precision::F32)
}

fn table(launch: Launch) -> Table {
    let measured = Measured {
        launch,
        ns: 41_200,
        planned_ns: 45_000,
    };
    [(class::fused(&problem()), measured)].into_iter().collect()
}

#[test]
fn every_launch_that_could_be_measured_is_taken_again() {
    let (limits, kernels) = (device("h200"), compiled(Precision::F32));
    let planner = Planner::new(&limits, &kernels);
    let launches = planner.launches(&problem(), Product::Fused);
    let launches = launches.expect("launches");
    assert!(launches.len() > 50, "{}", launches.len());
    for trial in launches {
        let table = table(Launch::Fused(trial.forced()));
        let plan = planner
            .tuned(Some(&table))
            .plan(&problem(), Product::Fused)
            .expect("a plan");
        let taken = (plan.strategy, plan.vs, plan.bs, plan.blocks_per_sm);
        let measured = (trial.strategy, trial.vs, trial.bs, trial.blocks_per_sm);
        assert_eq!(taken, measured);
        assert_eq!(
            plan.reasons[0].to_string(),
            "taken from a table of tuned launches: measured 41.2 µs, the planner's own choice 45.0 µs"
        );
        plan.validate(&problem(), &limits).expect("possible");
    }
}

#[test]
fn a_launch_that_does_not_exist_is_said_and_not_taken() {
    let (limits, kernels) = (device("h200"), compiled(Precision::F32));
    let planner = Planner::new(&limits, &kernels);
    let own = planner.plan(&problem(), Product::Fused).expect("a plan");
    for launch in [
        Launch::Fused(Forced {
            vs: Some(7),
            ..Forced::default()
        }),
        Launch::Fused(Forced {
            bs: Some(1 << 20),
            ..Forced::default()
        }),
        Launch::Qr { values: vec![1] },
    ] {
        let table = table(launch);
        let mut plan = planner
            .tuned(Some(&table))
            .plan(&problem(), Product::Fused)
            .expect("the planner's own");
        let reason = plan.reasons.remove(0);
        assert!(matches!(reason, Reason::NotTuned { .. }), "{reason}");
        assert_eq!(plan, own);
    }
}

#[test]
fn what_was_not_measured_is_planned_as_ever() {
    let (limits, kernels) = (device("h200"), compiled(Precision::F32));
    let table = table(Launch::Fused(Forced {
        bs: Some(256),
        ..Forced::default()
    }));
    let planner = Planner::new(&limits, &kernels);
    let others = [
        (
            planner,
            Problem {
                rows: 500_001,
                ..problem()
            },
            Product::Fused,
        ),
        (planner, problem().with_longest_row(1_000), Product::Fused),
        (
            planner,
            problem().with_stored(Stored::RowsAndPanels),
            Product::Fused,
        ),
        (planner, problem(), Product::Transposed),
        (planner.model(Model::Published), problem(), Product::Fused),
        (
            planner.forced(Forced {
                bs: Some(512),
                ..Forced::default()
            }),
            problem(),
            Product::Fused,
        ),
    ];
    for (planner, problem, product) in others {
        let own = planner.plan(&problem, product);
        let with_table = planner.tuned(Some(&table)).plan(&problem, product);
        assert_eq!(with_table, own, "{problem} {product}");
    }
    let repeated = planner.summation(Summation::Reproducible);
    let with_table = repeated.tuned(Some(&table));
    assert_eq!(
        with_table.plan(&problem(), Product::Fused),
        repeated.plan(&problem(), Product::Fused)
    );
}
