//! When entries are shared out evenly: rows of many lengths, columns that hold up the others, and neither.

use gpu_kernels::Family;
use gpu_kernels::fused::even::most_threads;
use gpu_kernels::fused::{EvenPlace, EvenVariant, Fixed};

use super::*;

const ROWS: u64 = 4_000_000;
const NNZ: u64 = 80_000_000;

/// Kernels over rows, in vectors and in even shares.
pub(super) fn kernels(precision: Precision) -> Vec<Candidate> {
    let mut kernels = sparse_kernels(precision);
    let places = [
        (Strategy::EvenShared, EvenPlace::Shared),
        (Strategy::EvenFrequent, EvenPlace::Frequent),
    ];
    for product in [Product::Fused, Product::Transposed] {
        kernels.extend(places.map(|(strategy, place)| {
            let (name, team) = (format!("{strategy}_{product:?}"), Team::Lanes(32));
            let variant = EvenVariant {
                product: product.into(),
                place,
            };
            let size = precision.bytes();
            let kernel = Candidate::new(name, product, Storage::Sparse, strategy, precision, team);
            Candidate {
                shared: variant.shared(size),
                max_block: most_threads(size),
                ..kernel.with_load(8, 1, 1).with_registers(64)
            }
        }));
    }
    kernels
}

fn plan(problem: &Problem, product: Product) -> Plan {
    let (limits, kernels) = (device("h200"), kernels(problem.dtype));
    let planner = Planner::new(&limits, &kernels);
    planner.plan(problem, product).expect("a plan")
}

/// A column in nearly every row, and four fifths of the entries in some thousand columns.
fn skewed(problem: Problem) -> Problem {
    let nnz = problem.nnz.expect("sparse");
    problem.with_columns(ColumnUse {
        busiest: problem.rows * 9 / 10,
        hot_columns: 10_922,
        hot_entries: nnz * 4 / 5,
        cold_columns: 500_000,
        lines: [0; 3],
    })
}

#[test]
fn columns_that_hold_up_the_others_have_sums_in_shared_memory() {
    for dtype in [Precision::F32, Precision::F64] {
        let even = Problem::sparse(ROWS, 1_000_000, NNZ, dtype).with_longest_row(20);
        for product in [Product::Fused, Product::Transposed] {
            let plan = plan(&skewed(even), product);
            assert_eq!(plan.strategy, Strategy::EvenFrequent, "{plan}");
            assert_eq!(plan.bs, most_threads(dtype.bytes()), "{plan}");
        }
        let of_even = plan(&even, Product::Fused);
        assert!(!of_even.strategy.is_even(), "{of_even}");
    }
}

#[test]
fn a_row_much_longer_than_others_is_cut_in_the_product_that_only_adds() {
    let few = Problem::sparse(20_000, 1_000_000, 9_100_000, Precision::F32);
    let few = skewed(few.with_longest_row(20_000));
    let adds = plan(&few, Product::Transposed);
    assert_eq!(adds.strategy, Strategy::EvenFrequent, "{adds}");
    let of = |product| {
        let all = Planner::new(&device("h200"), &kernels(few.dtype))
            .launches(&few, product)
            .expect("launches");
        let even = all
            .into_iter()
            .find(|trial| trial.strategy == Strategy::EvenFrequent);
        even.expect("it fits").prediction.longest_row_ns
    };
    // 79 tiles, each of which waits for memory four times.
    assert_eq!(of(Product::Transposed), 0);
    assert_eq!(of(Product::Fused), 79 * 4 * 650);
}

#[test]
fn additions_beyond_l2_are_made_in_windows() {
    for (dtype, cols) in [(Precision::F32, 20_000_000), (Precision::F64, 20_000_000)] {
        let wide = Problem::sparse(8_000_000, cols, 224_000_000, dtype).with_longest_row(28);
        let plan = plan(&wide, Product::Transposed);
        assert_eq!(plan.strategy, Strategy::EvenFrequent, "{plan}");
        let bytes = cols * u64::from(dtype.bytes()) / u64::from(plan.windows);
        assert!((4_000_000..60_000_000).contains(&bytes), "{plan}");
        assert!(
            plan.to_string().contains("windows, each with a walk"),
            "{plan}"
        );
    }
    let narrow = Problem::sparse(ROWS, 1_000_000, NNZ, Precision::F32).with_longest_row(20);
    assert_eq!(plan(&narrow, Product::Transposed).windows, 1);
    assert_eq!(plan(&skewed(narrow), Product::Fused).windows, 1);
}

#[test]
fn sums_of_a_few_times_the_columns_that_shared_memory_holds_are_made_in_windows() {
    for (dtype, cols, windows) in [(Precision::F32, 100_000, 2), (Precision::F64, 40_000, 2)] {
        let narrow = Problem::sparse(ROWS, cols, NNZ, dtype).with_longest_row(20);
        let plan = plan(&narrow, Product::Transposed);
        assert_eq!(plan.strategy, Strategy::EvenShared, "{plan}");
        assert_eq!(plan.windows, windows, "{plan}");
        assert!(plan.shared_bytes <= device("h200").shared_per_block);
        assert!(plan.to_string().contains("in 2 windows"), "{plan}");
    }
    // Walks over X for more of them would take longer than additions to L2.
    for (dtype, cols) in [(Precision::F32, 400_000), (Precision::F64, 2_000_000)] {
        let wide = Problem::sparse(ROWS, cols, NNZ, dtype).with_longest_row(20);
        let plan = plan(&wide, Product::Transposed);
        assert_ne!(plan.strategy, Strategy::EvenShared, "{plan}");
    }
}

#[test]
fn blocks_are_no_more_than_there_are_tiles_for() {
    let small = Problem::sparse(1_000, 100_000, 200_000, Precision::F32).with_longest_row(300);
    let plan = plan(&skewed(small), Product::Transposed);
    if plan.strategy.is_even() {
        assert_eq!(
            plan.grid, 25,
            "201,000 ends and entries, 8,192 of them to a block"
        );
    }
}

/// Kernels of fixed-point sums, as they are compiled.
fn fixed_kernels() -> Vec<Candidate> {
    let entries = Fixed::<f32>::entries().iter();
    let kernels = entries
        .flat_map(|entry| Candidate::described(entry.name, Precision::F32, &entry.description));
    kernels.collect()
}

#[test]
fn reproducible_sums_of_uneven_rows_are_made_in_even_shares() {
    let (limits, kernels) = (device("h200"), fixed_kernels());
    let planner = Planner::new(&limits, &kernels).summation(Summation::Reproducible);
    let uneven = Problem::sparse(ROWS, 1_000_000, NNZ, Precision::F32).with_longest_row(1_399);
    for product in [Product::Fused, Product::Transposed] {
        let frequent = planner.plan(&skewed(uneven), product).expect("a plan");
        assert_eq!(frequent.strategy, Strategy::FixedEvenFrequent, "{frequent}");
        // No column is kept apart.
        let alike = planner.plan(&uneven, product).expect("a plan");
        assert_eq!(alike.strategy, Strategy::FixedGlobal, "{alike}");
    }
}

#[test]
fn reproducible_additions_beyond_l2_are_made_in_windows_too() {
    let (limits, kernels) = (device("h200"), fixed_kernels());
    let planner = Planner::new(&limits, &kernels).summation(Summation::Reproducible);
    let wide = Problem::sparse(8_000_000, 20_000_000, 224_000_000, Precision::F32);
    let plan = planner.plan(&wide.with_longest_row(28), Product::Transposed);
    let plan = plan.expect("a plan");
    assert_eq!(plan.strategy, Strategy::FixedEvenFrequent, "{plan}");
    let bytes = 8 * 20_000_000 / u64::from(plan.windows);
    assert!((8_000_000..60_000_000).contains(&bytes), "{plan}");
}

#[test]
fn reproducible_sums_of_shared_memory_have_windows_too() {
    let (limits, kernels) = (device("h200"), fixed_kernels());
    let planner = Planner::new(&limits, &kernels).summation(Summation::Reproducible);
    let narrow = Problem::sparse(ROWS, 70_000, NNZ, Precision::F32).with_longest_row(20);
    let plan = planner.plan(&narrow, Product::Transposed).expect("a plan");
    assert_eq!(plan.strategy, Strategy::FixedEvenShared, "{plan}");
    assert_eq!(plan.windows, 4, "{plan}");
}

#[test]
fn reproducible_even_shares_have_the_promised_lanes() {
    let (limits, kernels) = (device("h200"), fixed_kernels());
    let even = Problem::sparse(ROWS, 10_000, NNZ, Precision::F32).with_longest_row(1_399);
    let forced = Forced {
        strategy: Some(Strategy::FixedEvenShared),
        ..Forced::default()
    };
    let planner = Planner::new(&limits, &kernels)
        .summation(Summation::Reproducible)
        .forced(forced);
    for product in [Product::Fused, Product::Transposed] {
        let plan = planner.plan(&even, product).expect("a plan");
        // Also where lanes add up nothing.
        assert_eq!((plan.vs, plan.bs), (8, most_threads(4)), "{plan}");
    }
}
