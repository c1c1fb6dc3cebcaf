use approx::assert_relative_eq;

use super::random::{Purpose, Stream, Zipf};
use super::*;
use crate::matrix::{MatrixStats, column_frequencies};

fn spec() -> SparseSpec {
    SparseSpec {
        rows: 3000,
        cols: 500,
        row_lengths: RowLengths::Constant(20),
        columns: ColumnDistribution::Uniform,
        values: SparseValues::Normal,
        noise: 0.0,
        seed: 1,
    }
}

fn stats(spec: &SparseSpec) -> MatrixStats {
    MatrixStats::of(
        &spec
            .generate::<f32>()
            .expect("a good spec")
            .dataset
            .features,
    )
}

#[test]
fn a_seed_means_the_same_data_with_any_number_of_threads() {
    let with = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let spec = SparseSpec { seed, ..spec() };
        pool.expect("threads")
            .install(|| spec.generate::<f64>().expect("a good spec"))
    };
    assert_eq!(with(1, 1), with(3, 1));
    assert_ne!(with(1, 1), with(1, 2));
}

#[test]
fn a_seed_means_the_same_data_in_every_version() {
    // From xoshiro256++ and SplitMix64 written out in Python.
    let mut stream = Stream::new(42, Purpose::Entries, 0);
    let words: Vec<u32> = (0..4).map(|_| stream.below(1 << 16)).collect();
    assert_eq!(words, [43737, 13552, 18941, 13890]);
}

#[test]
fn no_block_of_rows_repeats_another() {
    let made = spec().generate::<f64>().expect("a good spec");
    let Features::Sparse(x) = &made.dataset.features else {
        panic!("sparse features expected");
    };
    let entries = 20 * ROWS_PER_STREAM;
    assert_ne!(x.indices()[..entries], x.indices()[entries..2 * entries]);
    assert_ne!(x.data()[..entries], x.data()[entries..2 * entries]);
    assert_ne!(made.coef[..100], x.data()[..100]);
}

#[test]
fn row_lengths_are_what_was_asked_for() {
    let constant = stats(&spec());
    assert_eq!(
        (constant.min_row, constant.max_row, constant.nnz),
        (20, 20, 60_000)
    );
    let giants = RowLengths::WithGiants {
        typical: 3,
        giant: 400,
        every: 1000,
    };
    let giants = stats(&SparseSpec {
        row_lengths: giants,
        ..spec()
    });
    assert_eq!(
        (giants.min_row, giants.max_row, giants.nnz),
        (3, 400, 2997 * 3 + 3 * 400)
    );
    let cut = stats(&SparseSpec {
        row_lengths: RowLengths::Constant(900),
        ..spec()
    });
    assert_eq!((cut.min_row, cut.max_row), (500, 500));
}

#[test]
fn log_normal_lengths_have_their_mean() {
    let row_lengths = RowLengths::LogNormal {
        mean: 30.0,
        sigma: 0.5,
    };
    let (rows, cols) = (20_000, 100_000);
    let stats = stats(&SparseSpec {
        row_lengths,
        rows,
        cols,
        ..spec()
    });
    // The standard deviation of a length is 30·√(exp(0.25) − 1) = 16, that of the mean 0.113.
    assert!(
        (stats.mean_row - 30.0).abs() < 6.0 * 0.113,
        "{}",
        stats.mean_row
    );
    assert!(stats.max_row > 100);
}

#[test]
fn uniform_columns_are_uniform() {
    let made = spec().generate::<f32>().expect("a good spec");
    let expected = 60_000.0 / 500.0;
    for count in column_frequencies(&made.dataset.features) {
        // Six standard deviations of a binomial count.
        assert!(
            (count as f64 - expected).abs() < 6.0 * expected.sqrt(),
            "{count}"
        );
    }
}

#[test]
fn zipf_ranks_follow_the_law() {
    for exponent in [0.5, 1.0, 1.3, 3.0] {
        let (ranks, draws) = (1000, 200_000);
        let zipf = Zipf::new(ranks, exponent);
        let mut stream = Stream::new(3, Purpose::Entries, 0);
        let mut counts = vec![0_u32; ranks as usize];
        for _ in 0..draws {
            counts[zipf.sample(&mut stream) as usize] += 1;
        }
        let weight = |rank: u32| f64::from(rank).powf(-exponent);
        let total: f64 = (1..=ranks).map(weight).sum();
        for rank in [1, 2, 3, 10, 100, 1000] {
            let expected = f64::from(draws) * weight(rank) / total;
            let found = f64::from(counts[rank as usize - 1]);
            let allowed = 6.0 * expected.sqrt() + 6.0;
            assert!(
                (found - expected).abs() < allowed,
                "s {exponent} rank {rank}: {found}"
            );
        }
    }
}

#[test]
fn exhausted_columns_are_filled_up() {
    let zipf = ColumnDistribution::Zipf { exponent: 4.0 };
    let full = SparseSpec {
        cols: 50,
        row_lengths: RowLengths::Constant(50),
        columns: zipf,
        ..spec()
    };
    let all = stats(&full);
    assert_eq!((all.min_row, all.max_row), (50, 50));
}

#[test]
fn targets_are_the_planted_model_plus_noise() {
    let exact = spec().generate::<f64>().expect("a good spec");
    let targets = exact.dataset.targets.as_ref().expect("made with targets");
    let Features::Sparse(x) = &exact.dataset.features else {
        panic!("sparse features expected");
    };
    for (row, &target) in x.outer_iterator().zip(targets) {
        let expected: f64 = row.iter().map(|(j, v)| v * exact.coef[j]).sum();
        assert_relative_eq!(target, expected, max_relative = 1e-12, epsilon = 1e-12);
    }
    let noisy = SparseSpec {
        noise: 2.0,
        ..spec()
    }
    .generate::<f64>()
    .expect("a good spec");
    assert_eq!(noisy.dataset.features, exact.dataset.features);
    let noise = noisy.dataset.targets.expect("made with targets");
    let squares: f64 = noise
        .iter()
        .zip(targets)
        .map(|(a, b)| (a - b).powi(2))
        .sum();
    assert_relative_eq!(
        (squares / 3000.0).sqrt(),
        2.0,
        max_relative = 6.0 / 6000_f64.sqrt()
    );
}

#[test]
fn unit_rows_have_unit_norm() {
    let values = SparseValues::UnitRows;
    let made = SparseSpec { values, ..spec() }
        .generate::<f64>()
        .expect("a good spec");
    let Features::Sparse(x) = &made.dataset.features else {
        panic!("sparse features expected");
    };
    for row in x.outer_iterator() {
        let norm: f64 = row.iter().map(|(_, v)| v * v).sum();
        assert_relative_eq!(norm, 1.0, max_relative = 1e-14);
    }
}

#[test]
fn dense_entries_are_standard_normal() {
    let spec = DenseSpec {
        rows: 5000,
        cols: 10,
        noise: 0.1,
        seed: 5,
    };
    let made = spec.generate::<f64>().expect("a good spec");
    let Features::Dense(x) = &made.dataset.features else {
        panic!("dense features expected");
    };
    let n = x.len() as f64;
    let (mean, square) = (x.sum() / n, x.mapv(|v| v * v).sum() / n);
    assert!(mean.abs() < 6.0 / n.sqrt(), "{mean}");
    assert!((square - 1.0).abs() < 6.0 * (2.0 / n).sqrt(), "{square}");
}

#[test]
fn senseless_specs_are_refused() {
    let bad = |spec: SparseSpec| spec.generate::<f32>().expect_err("a bad spec").to_string();
    assert!(bad(SparseSpec { rows: 0, ..spec() }).starts_with("expected at least one row"));
    assert!(
        bad(SparseSpec {
            cols: 1 << 33,
            ..spec()
        })
        .contains("× 8589934592")
    );
    assert!(
        bad(SparseSpec {
            noise: f64::NAN,
            ..spec()
        })
        .contains("noise")
    );
    assert!(
        bad(SparseSpec {
            rows: 1 << 50,
            ..spec()
        })
        .contains("bytes of memory")
    );
    let columns = ColumnDistribution::Zipf { exponent: -1.0 };
    assert!(bad(SparseSpec { columns, ..spec() }).contains("the exponent"));
    assert!(NamedShape::Url.spec(0.0, 1).is_err());
    assert!("Kddb".parse::<NamedShape>().is_ok() && "kdd".parse::<NamedShape>().is_err());
}
