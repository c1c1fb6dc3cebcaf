use std::time::Instant;

use super::*;

const ROWS: u64 = 4_000_000;
const NNZ: u64 = 80_000_000;

fn explain(device_name: &str, problem: &Problem) -> Explained {
    let limits = device(device_name);
    let kernels = compiled(problem.dtype);
    Planner::new(&limits, &kernels)
        .explain(problem, Product::Fused)
        .expect("a plan")
}

/// The shape that the sparse prototypes were timed on.
fn sparse(cols: u64) -> Problem {
    Problem::sparse(ROWS, cols, NNZ, Precision::F32).with_longest_row(28)
}

/// The fastest launch of the strategy, whether or not two products are faster.
fn one_kernel(problem: &Problem, strategy: Strategy) -> Trial {
    let (limits, kernels) = (device("h200"), compiled(problem.dtype));
    let launches = Planner::new(&limits, &kernels).launches(problem, Product::Fused);
    let launches = launches.expect("a problem");
    let fastest = launches.into_iter().find(|t| t.strategy == strategy);
    fastest.expect("a launch")
}

fn best_ms(explained: &Explained, strategy: Strategy) -> f64 {
    let of_strategy = |t: &&Trial| t.strategy == strategy;
    let trial = explained.candidates.iter().find(of_strategy);
    trial.expect("a launch").prediction.total_ns as f64 / 1e6
}

#[track_caller]
fn assert_within(percent: f64, found: f64, measured: f64) {
    let off = (found / measured - 1.0).abs() * 100.0;
    // Written so that a NaN fails.
    assert!(
        off <= percent,
        "predicted {found:.3} ms, measured {measured:.3} ms: {off:.0} % off"
    );
}

#[test]
fn sparse_times_of_an_h200_are_met() {
    let measured = [
        (1_000, 0.268, 20.0),
        (4_000, 0.303, 10.0),
        (10_000, 0.325, 10.0),
        (28_000, 0.402, 15.0),
        (40_000, 0.628, 15.0),
    ];
    for (cols, ms, percent) in measured {
        let fastest = one_kernel(&sparse(cols), Strategy::SharedW);
        assert_within(percent, fastest.prediction.total_ns as f64 / 1e6, ms);
    }
    for (cols, ms) in [
        (1_000, 5.2),
        (4_000, 2.3),
        (10_000, 1.7),
        (40_000, 1.24),
        (1_000_000, 1.414),
    ] {
        assert_within(
            25.0,
            best_ms(&explain("h200", &sparse(cols)), Strategy::GlobalW),
            ms,
        );
    }
}

#[test]
fn dense_times_of_an_h200_are_met() {
    let measured = [
        (11_000_000, 28, 0.296),
        (8_000_000, 128, 0.888),
        (2_000_000, 512, 0.897),
        (1_000_000, 1_024, 0.897),
    ];
    for (rows, cols, ms) in measured {
        let explained = explain("h200", &Problem::dense(rows, cols, Precision::F32));
        assert_within(10.0, best_ms(&explained, Strategy::DenseRegisters), ms);
        let in_flight = explained
            .chosen
            .prediction
            .expect("a prediction")
            .in_flight_bytes;
        assert!(
            in_flight >= 32 << 10,
            "{in_flight} bytes in flight at {rows} x {cols}"
        );
    }
}

#[test]
fn one_row_in_flight_and_few_threads_reach_less_than_half_the_bandwidth() {
    let limits = device("h200");
    let kernels: Vec<_> = compiled(Precision::F32)
        .into_iter()
        .map(|k| Candidate {
            rows_in_flight: 1,
            ..k
        })
        .filter(|k| k.tl == 4)
        .collect();
    let forced = Forced {
        bs: Some(128),
        blocks_per_sm: Some(4),
        vs: Some(32),
        ..Forced::default()
    };
    let problem = Problem::dense(8_000_000, 128, Precision::F32);
    let plan = Planner::new(&limits, &kernels)
        .forced(forced)
        .plan(&problem, Product::Fused)
        .expect("a plan");
    let prediction = plan.prediction.expect("a prediction");
    let tbs = problem.matrix_bytes() / prediction.total_ns as f64 / 1e3;
    assert_eq!(prediction.bound, Bound::BytesInFlight);
    assert!(
        (1.7..2.1).contains(&tbs),
        "predicted {tbs} TB/s, measured 1.76 to 2.06"
    );
}

#[test]
fn w_stays_in_shared_memory_while_it_fits_and_pays() {
    for cols in [1_000, 10_000, 28_000] {
        assert_eq!(
            explain("h200", &sparse(cols)).chosen.strategy,
            Strategy::SharedW,
            "{cols} columns"
        );
    }
    assert_eq!(
        explain("h200", &sparse(1_000_000)).chosen.strategy,
        Strategy::GlobalW
    );
    // Beside 160 KB of w there is no room for y in L1: 0.569 ms in two products, 0.628 in one.
    let apart = explain("h200", &sparse(40_000)).chosen;
    assert_eq!(apart.strategy, Strategy::SparseTwoProducts);
    assert!(matches!(apart.reasons[0], Reason::QuickerApart { .. }));
    // Adding w of 40,000 columns once per block costs more than a few rows are worth.
    let few = Problem::sparse(100, 40_000, 2_000, Precision::F32);
    assert_eq!(explain("h200", &few).chosen.strategy, Strategy::GlobalW);
}

#[test]
fn wide_w_leaves_the_cache_to_one_large_block() {
    for cols in [28_000, 40_000] {
        let launch = one_kernel(&sparse(cols), Strategy::SharedW);
        let blocks = (launch.blocks_per_sm, launch.bs);
        assert_eq!(blocks, (1, 1_024), "{cols} columns");
    }
}

#[test]
fn twenty_nonzeros_a_row_take_vectors_of_four_or_eight() {
    let plan = explain("h200", &sparse(1_000)).chosen;
    assert!([4, 8].contains(&plan.vs), "{plan}");
}

#[test]
fn candidates_are_listed_in_the_order_of_their_times() {
    let explained = explain("h200", &sparse(1_000));
    let first = &explained.candidates[0];
    assert!(
        explained
            .candidates
            .is_sorted_by_key(|t| t.prediction.total_ns)
    );
    assert_eq!(Some(first.prediction), explained.chosen.prediction);
    assert_eq!(
        (first.vs, first.bs, first.grid),
        (
            explained.chosen.vs,
            explained.chosen.bs,
            explained.chosen.grid
        )
    );
    assert!(
        explained
            .candidates
            .iter()
            .any(|t| t.strategy == Strategy::GlobalW)
    );
    let text = explained.to_string();
    assert!(
        text.contains("global_w") && text.contains("bound by"),
        "{text}"
    );
}

#[test]
fn equal_times_go_to_the_smaller_grid() {
    let explained = explain("h200", &Problem::sparse(0, 10, 0, Precision::F32));
    assert_eq!(explained.chosen.grid, 1);
}

#[test]
fn one_long_row_bounds_the_time() {
    let problem =
        Problem::sparse(ROWS, 10_000_000, NNZ, Precision::F32).with_longest_row(8_000_000);
    let prediction = explain("h200", &problem)
        .chosen
        .prediction
        .expect("a prediction");
    assert_eq!(prediction.bound, Bound::LongestRow);
}

#[test]
fn estimated_rates_are_said_to_be_estimates() {
    let estimate = |name| {
        let plan = explain(name, &sparse(1_000)).chosen;
        plan.reasons
            .iter()
            .any(|r| matches!(r, Reason::EstimatedRates { .. }))
    };
    assert!(estimate("a100"));
    assert!(!estimate("h200"));
}

#[test]
fn a_launch_of_one_product_needs_no_shared_memory() {
    let limits = device("h200");
    let kernels = compiled(Precision::F32);
    let plan = Planner::new(&limits, &kernels)
        .plan(&sparse(40_000), Product::Forward)
        .expect("a plan");
    assert_eq!((plan.strategy, plan.shared_bytes), (Strategy::RowDot, 0));
}

#[test]
fn every_column_has_a_block_however_few_the_rows() {
    let limits = device("h200");
    let kernels = compiled(Precision::F32);
    let problem = Problem::dense(3, 100_000, Precision::F32);
    for model in [Model::Published, Model::Predicted] {
        let planner = Planner::new(&limits, &kernels).model(model);
        let plan = planner.plan(&problem, Product::Transposed).expect("a plan");
        assert_eq!(plan.strategy, Strategy::DenseColumns);
        let held = u64::from(plan.vs * plan.tl);
        assert_eq!(u64::from(plan.column_tiles), problem.cols.div_ceil(held));
        assert!(plan.grid >= plan.column_tiles);
    }
}

#[test]
fn wide_dense_rows_are_read_in_whole_cache_lines() {
    let limits = device("h200");
    let kernels = compiled(Precision::F32);
    let problem = Problem::dense(100_000, 20_000, Precision::F32);
    for product in [Product::Forward, Product::Transposed] {
        let plan = Planner::new(&limits, &kernels)
            .plan(&problem, product)
            .expect("a plan");
        assert!(plan.vs >= 8 && plan.width == 4, "{plan}");
    }
}

#[test]
fn print_what_choosing_costs() {
    let limits = device("h200");
    let kernels = compiled(Precision::F32);
    let planner = Planner::new(&limits, &kernels);
    for problem in [
        sparse(1_000),
        Problem::dense(8_000_000, 128, Precision::F32),
    ] {
        let start = Instant::now();
        let rounds = 200;
        for _ in 0..rounds {
            std::hint::black_box(planner.plan(std::hint::black_box(&problem), Product::Fused))
                .expect("a plan");
        }
        let us = start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds);
        println!(
            "choosing for {problem}: {us:.1} µs among {} kernels (unoptimised build)",
            kernels.len()
        );
    }
}

#[test]
fn vectors_beyond_the_l2_cache_take_two_products() {
    let problem = Problem::sparse(8_000_000, 20_000_000, 224_000_000, Precision::F32);
    let plan = explain("h200", &problem).chosen;
    assert_eq!(plan.strategy, Strategy::SparseTwoProducts);
    assert!(plan.then.is_some());
    assert_eq!(explain("h200", &sparse(1_000_000)).chosen.then, None);
}

#[test]
fn loads_of_less_than_a_cache_line_take_whole_lines() {
    let (limits, kernels) = (device("h200"), compiled(Precision::F64));
    let planner = Planner::new(&limits, &kernels);
    // Measured with VS = 4 and loads of 16 bytes: pieces of 64 bytes.
    for (problem, ms, percent) in [
        (Problem::dense(11_000_000, 28, Precision::F64), 1.046, 10.0),
        (Problem::dense(8_000_000, 128, Precision::F64), 2.823, 30.0),
    ] {
        let launches = planner
            .launches(&problem, Product::Forward)
            .expect("launches");
        let short = launches.iter().find(|t| t.vs == 4 && t.width == 2);
        let predicted = short.expect("a kernel").prediction.total_ns as f64 / 1e6;
        assert_within(percent, predicted, ms);
        assert!(
            launches[0].vs * launches[0].width >= 16,
            "{:?}",
            launches[0]
        );
    }
}

#[test]
fn rows_of_few_columns_are_read_in_one_step() {
    let (limits, kernels) = (device("h200"), compiled(Precision::F32));
    let planner = Planner::new(&limits, &kernels);
    // X·y, measured with VS = 1: two steps of 4 and of 16 bytes.
    for (problem, width, ms) in [
        (Problem::dense(500_000_000, 2, Precision::F32), 1, 2.478),
        (Problem::dense(125_000_000, 8, Precision::F32), 4, 2.018),
    ] {
        let launches = planner.launches(&problem, Product::Forward);
        let launches = launches.expect("launches");
        let steps = launches.iter().find(|t| t.vs == 1 && t.width == width);
        let predicted = steps.expect("a kernel").prediction.total_ns as f64 / 1e6;
        assert_within(15.0, predicted, ms);
        let covered = u64::from(launches[0].vs * launches[0].tl);
        assert!(covered >= problem.cols, "{:?}", launches[0]);
    }
}
