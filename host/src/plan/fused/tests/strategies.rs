//! Which strategy the model chooses for sparse X where times were measured on an H200.

use gpu_kernels::fused::BalancedVariant;
use gpu_kernels::fused::balanced::THREADS;

use super::*;

const ROWS: u64 = 4_000_000;
const NNZ: u64 = 80_000_000;

/// Kernels over rows, with private copies of w and with fixed-point sums, and those whose work is cut by nonzeros.
fn kernels(precision: Precision) -> Vec<Candidate> {
    let mut kernels = sparse_kernels(precision);
    let bytes = precision.bytes();
    let private = SharedUse {
        per_column: bytes,
        per_vector_column: bytes,
        ..SharedUse::default()
    };
    let fixed = SharedUse {
        // Two words (f64: three) of a sum, and an element of y.
        per_column: match precision {
            Precision::F32 => 12,
            Precision::F64 => 20,
        },
        ..SharedUse::default()
    };
    let of_rows = |strategy, (vs, kept, registers): (u32, u32, u32), shared| {
        let (product, storage, team) = (Product::Fused, Storage::Sparse, Team::Lanes(vs));
        let name = format!("{strategy}_{vs}");
        let kernel = Candidate::new(name, product, storage, strategy, precision, team);
        let kernel = kernel.with_load(kept, 1, 1).with_registers(registers);
        Candidate { shared, ..kernel }
    };
    for lanes in [(4, 5, 48), (8, 3, 40), (16, 2, 40), (32, 2, 32)] {
        kernels.push(of_rows(Strategy::PrivateW, lanes, private));
    }
    for lanes in [(4, 5, 40), (8, 3, 40)] {
        kernels.push(of_rows(Strategy::FixedWithY, lanes, fixed));
    }
    kernels.extend(balanced(precision));
    kernels
}

fn balanced(precision: Precision) -> impl Iterator<Item = Candidate> {
    let products = [
        (Product::Forward, Storage::Sparse, Strategy::BalancedDot),
        (
            Product::Fused,
            Storage::Transpose,
            Strategy::StoredTranspose,
        ),
        (
            Product::Transposed,
            Storage::Transpose,
            Strategy::StoredTranspose,
        ),
    ];
    let shared = BalancedVariant::Walk.shared(precision.bytes());
    products
        .into_iter()
        .map(move |(product, storage, strategy)| {
            let (name, team) = (strategy.name(), Team::Block);
            let kernel = Candidate::new(name, product, storage, strategy, precision, team);
            Candidate {
                shared,
                max_block: THREADS,
                ..kernel
            }
            .with_load(8, 1, 1)
            .with_registers(56)
        })
}

fn plan(problem: &Problem, product: Product, forced: Forced) -> Plan {
    let (limits, kernels) = (device("h200"), kernels(problem.dtype));
    let planner = Planner::new(&limits, &kernels).forced(forced);
    planner.plan(problem, product).expect("a plan")
}

fn uniform(cols: u64, dtype: Precision) -> Problem {
    Problem::sparse(ROWS, cols, NNZ, dtype).with_longest_row(20)
}

fn giants() -> Problem {
    Problem::sparse(ROWS, 100_000, 87_992_000, Precision::F32).with_longest_row(20_000)
}

#[test]
fn very_few_columns_get_private_copies_in_f32() {
    use Precision::{F32, F64};
    let measured = [
        (28, F32, Strategy::PrivateW),
        (100, F32, Strategy::PrivateW),
        (250, F32, Strategy::PrivateW),
        (500, F32, Strategy::FixedWithY),
        (1_000, F32, Strategy::FixedWithY),
        (100, F64, Strategy::FixedWithY),
        (500, F64, Strategy::FixedWithY),
    ];
    for (cols, dtype, faster) in measured {
        let plan = plan(&uniform(cols, dtype), Product::Fused, Forced::default());
        assert_eq!(plan.strategy, faster, "n = {cols}, {dtype}: {plan}");
    }
}

#[test]
fn times_of_private_copies_are_met_within_a_sixth() {
    let measured = [(28, 4, 162.0), (100, 4, 163.0), (100, 8, 180.0)];
    for (cols, vs, us) in measured {
        let forced = Forced {
            strategy: Some(Strategy::PrivateW),
            vs: Some(vs),
            ..Forced::default()
        };
        let plan = plan(&uniform(cols, Precision::F32), Product::Fused, forced);
        let found = plan.predicted_us().expect("a time");
        let off = found / us - 1.0;
        assert!(
            off.abs() <= 1.0 / 6.0,
            "n = {cols}, VS = {vs}: {found:.1} for {us} µs"
        );
    }
}

#[test]
fn giants_are_cut_and_even_rows_are_not() {
    let chosen = |problem| plan(&problem, Product::Forward, Forced::default()).strategy;
    assert_eq!(chosen(giants()), Strategy::BalancedDot);
    assert_eq!(chosen(uniform(10_000, Precision::F32)), Strategy::RowDot);
    assert_eq!(chosen(uniform(10_000, Precision::F64)), Strategy::RowDot);
}

#[test]
fn times_of_work_that_is_cut_by_nonzeros_are_met_within_a_fifth() {
    use Precision::{F32, F64};
    let transpose = uniform(1_000_000, F32).with_stored(Stored::RowsAndTranspose);
    let measured = [
        (uniform(10_000, F32), Product::Forward, 268.0),
        (uniform(10_000, F64), Product::Forward, 455.0),
        (uniform(1_000_000, F32), Product::Forward, 627.0),
        (giants(), Product::Forward, 642.0),
        (transpose, Product::Fused, 1_256.0),
    ];
    for (problem, product, us) in measured {
        let forced = Forced {
            strategy: Some(match product {
                Product::Forward => Strategy::BalancedDot,
                _ => Strategy::StoredTranspose,
            }),
            ..Forced::default()
        };
        let found = plan(&problem, product, forced).predicted_us();
        let off = found.expect("a time") / us - 1.0;
        assert!(off.abs() <= 0.2, "{problem}: {found:?} for {us} µs");
    }
}

/// 1,026 µs over the transpose on an H100, where additions to w take 1,074 and 1,111.
#[test]
fn a_transpose_that_is_stored_is_read() {
    let limits = device("h100");
    let kernels = kernels(Precision::F64);
    let problem = uniform(1_000_000, Precision::F64).with_stored(Stored::RowsAndTranspose);
    let planner = Planner::new(&limits, &kernels);
    let plan = planner.plan(&problem, Product::Transposed).expect("a plan");
    assert_eq!(plan.strategy, Strategy::StoredTranspose);
}
