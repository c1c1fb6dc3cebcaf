use super::*;
use crate::plan::PlanError;

fn sparse() -> Problem {
    Problem::sparse(500_000, 1_024, 5_000_000, Precision::F32)
}

fn force(model: Model, problem: &Problem, forced: Forced) -> Result<Plan, PlanError> {
    let limits = device("h200");
    let kernels = compiled(problem.dtype);
    Planner::new(&limits, &kernels)
        .model(model)
        .forced(forced)
        .plan(problem, Product::Fused)
}

#[test]
fn forced_parts_hold_and_the_rest_is_chosen() {
    for model in [Model::Published, Model::Predicted] {
        let forced = Forced {
            strategy: Some(Strategy::GlobalW),
            vs: Some(16),
            bs: Some(384),
            blocks_per_sm: Some(2),
            ..Forced::default()
        };
        let plan = force(model, &sparse(), forced).expect("a plan");
        assert_eq!(
            (plan.strategy, plan.vs, plan.bs),
            (Strategy::GlobalW, 16, 384)
        );
        assert_eq!((plan.blocks_per_sm, plan.warps_per_sm), (2, 24));
        assert!(plan.reasons.contains(&Reason::Forced {
            field: "bs".into(),
            value: "384".into()
        }));
    }
}

#[test]
fn two_products_can_be_forced_where_one_would_do() {
    let forced = Forced {
        strategy: Some(Strategy::DenseTwoProducts),
        ..Forced::default()
    };
    for model in [Model::Published, Model::Predicted] {
        let plan =
            force(model, &Problem::dense(1_000, 128, Precision::F32), forced).expect("a plan");
        assert_eq!(plan.strategy, Strategy::DenseTwoProducts);
        assert_eq!(
            plan.then.expect("a second launch").product,
            Product::Transposed
        );
    }
}

#[test]
fn what_no_kernel_has_is_refused_by_name() {
    for model in [Model::Published, Model::Predicted] {
        let forced = Forced {
            vs: Some(3),
            ..Forced::default()
        };
        let error = force(model, &sparse(), forced).expect_err("no such vector");
        assert!(matches!(error, PlanError::NoKernel { .. }));
        assert!(error.to_string().contains("vs = 3"), "{error}");
    }
}

#[test]
fn block_sizes_must_be_warps() {
    for bs in [0, 100, 1_056] {
        let forced = Forced {
            bs: Some(bs),
            ..Forced::default()
        };
        let error = force(Model::Predicted, &sparse(), forced).expect_err("no such block");
        assert_eq!(
            error,
            PlanError::BlockSize {
                bs,
                warp_size: 32,
                max: 1_024
            }
        );
    }
}

#[test]
fn more_than_a_device_has_is_refused_with_what_runs_out() {
    let forced = Forced {
        strategy: Some(Strategy::SharedW),
        ..Forced::default()
    };
    let wide = Problem::sparse(500_000, 1_000_000, 5_000_000, Precision::F32);
    for model in [Model::Published, Model::Predicted] {
        let error = force(model, &wide, forced).expect_err("too wide");
        assert!(
            matches!(
                error,
                PlanError::DoesNotFit {
                    shared_bytes: 4_000_000..,
                    ..
                }
            ),
            "{error}"
        );
        assert!(
            error.to_string().contains("shared memory run out"),
            "{error}"
        );
    }
    let crowd = Forced {
        bs: Some(1_024),
        blocks_per_sm: Some(3),
        ..Forced::default()
    };
    for model in [Model::Published, Model::Predicted] {
        assert!(force(model, &sparse(), crowd).is_err());
    }
}

#[test]
fn plans_come_back_from_json_as_they_were() {
    let limits = device("h200");
    let problems = [
        sparse(),
        Problem::dense(1_000, 100, Precision::F32),
        Problem::dense(10, 1 << 30, Precision::F32),
    ];
    for problem in problems {
        for model in [Model::Published, Model::Predicted] {
            let plan = force(model, &problem, Forced::default()).expect("a plan");
            let text = serde_json::to_string(&plan).expect("a plan is plain data");
            let back: Plan = serde_json::from_str(&text).expect("the same form");
            assert_eq!(back, plan);
            back.validate(&problem, &limits)
                .expect("still a plan of this problem");
        }
    }
    let text = serde_json::to_string(&limits).expect("limits are plain data");
    assert_eq!(
        serde_json::from_str::<DeviceLimits>(&text).expect("the same form"),
        limits
    );
    let forced: Forced =
        serde_json::from_str(r#"{"strategy":"shared_w","bs":256}"#).expect("parts");
    assert_eq!(
        (forced.strategy, forced.bs, forced.vs),
        (Some(Strategy::SharedW), Some(256), None)
    );
    assert!(serde_json::from_str::<Forced>(r#"{"block":256}"#).is_err());
}

#[test]
fn a_plan_changed_by_hand_is_checked() {
    let limits = device("h200");
    let plan = force(Model::Predicted, &sparse(), Forced::default()).expect("a plan");
    let field = |changed: Plan| match changed.validate(&sparse(), &limits) {
        Err(PlanError::Invalid { field, .. }) => field,
        other => panic!("expected a field, found {other:?}"),
    };
    assert_eq!(
        field(Plan {
            c: plan.c / 2,
            ..plan.clone()
        }),
        "c"
    );
    assert_eq!(
        field(Plan {
            vs: 5,
            ..plan.clone()
        }),
        "vs"
    );
    assert_eq!(
        field(Plan {
            column_tiles: 0,
            ..plan.clone()
        }),
        "column_tiles"
    );
    assert_eq!(
        field(Plan {
            precision: Precision::F64,
            ..plan.clone()
        }),
        "precision"
    );
    let zero = Plan {
        grid: 0,
        ..plan.clone()
    };
    assert!(matches!(
        zero.validate(&sparse(), &limits),
        Err(PlanError::Grid { grid: 0, .. })
    ));
    let greedy = Plan {
        shared_bytes: 300_000,
        ..plan
    };
    assert!(matches!(
        greedy.validate(&sparse(), &limits),
        Err(PlanError::DoesNotFit { .. })
    ));
}

#[test]
fn the_summary_has_the_fields_that_the_command_line_prints() {
    let plan = force(Model::Published, &sparse(), Forced::default()).expect("a plan");
    let json = serde_json::to_value(plan.summary()).expect("plain data");
    for field in [
        "strategy",
        "vs",
        "bs",
        "c",
        "tl",
        "grid",
        "shared_bytes",
        "warps_per_sm",
    ] {
        assert!(json.get(field).is_some(), "{field} is missing");
    }
    assert_eq!(json["strategy"], "shared_w");
    let reasons = json["reasons"].as_array().expect("a list");
    assert!(
        !reasons.is_empty()
            && reasons
                .iter()
                .all(|r| r.as_str().is_some_and(|s| !s.is_empty()))
    );
    assert!(plan.to_string().contains("because"));
}
