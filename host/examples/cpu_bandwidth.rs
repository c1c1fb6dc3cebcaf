//! How close the CPU passes come to the rate at which this machine reads memory.
//!
//! Prints, for f32 and f64, the rate of the dense passes at several widths and of the sparse ones at several
//! numbers of columns, over 1 GB, in turns with that of a plain multi-threaded sum over the same arrays. `cargo run --release -p warpfuse --example cpu_bandwidth [-- MEGABYTES [FILTER]]`

use std::hint::black_box;
use std::time::Instant;

use warpfuse::cpu::{
    Csr, Dense, RowMatrix, Scalar, Terms, Workspace, forward, fused, stream, transposed,
};

/// Repetitions of every measurement; the best and the median are printed.
const REPEATS: usize = 9;

/// Stored entries per row of the sparse matrices.
const ROW_ENTRIES: usize = 20;

fn main() {
    let Some(options) = Options::parse(std::env::args().skip(1)) else {
        eprintln!("usage: cpu_bandwidth [MEGABYTES [FILTER]], as in `cpu_bandwidth 1024 dense`");
        std::process::exit(2);
    };
    println!(
        "{} threads, {} MB",
        rayon::current_num_threads(),
        options.megabytes
    );
    println!("pass                       GB/s   sum   ratio of the best, of the median");
    report::<f32>("f32", &options);
    report::<f64>("f64", &options);
}

struct Options {
    megabytes: usize,
    filter: String,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        let megabytes = arguments
            .next()
            .map_or(Ok(1024), |argument| argument.parse())
            .ok()?;
        let filter = arguments.next().unwrap_or_default();
        (megabytes > 0 && arguments.next().is_none()).then_some(Options { megabytes, filter })
    }
}

fn report<T: Scalar>(dtype: &str, options: &Options) {
    let bytes = options.megabytes << 20;
    let values: Vec<T> = (0..bytes / size_of::<T>()).map(value).collect();
    for cols in [28, 128, 1024] {
        let name = format!("{dtype} dense {cols}");
        if name.contains(&options.filter) {
            dense(&name, &values, cols);
        }
    }
    for cols in [1_000, 100_000, 1_000_000] {
        let name = format!("{dtype} csr {cols}");
        if name.contains(&options.filter) {
            sparse(
                &name,
                &values[..bytes / (size_of::<T>() + size_of::<u32>())],
                cols,
            );
        }
    }
}

fn dense<T: Scalar>(name: &str, values: &[T], cols: usize) {
    let x = Dense::new(values.len() / cols, cols, cols, values).expect("rows · cols values");
    passes(
        name,
        &x,
        x.rows() * cols * size_of::<T>(),
        (x.rows(), cols),
        (values, &[]),
    );
}

fn sparse<T: Scalar>(name: &str, values: &[T], cols: usize) {
    let rows = values.len() / ROW_ENTRIES;
    let values = &values[..rows * ROW_ENTRIES];
    let offsets: Vec<u64> = (0..=rows).map(|row| (row * ROW_ENTRIES) as u64).collect();
    let indices: Vec<u32> = (0..values.len()).map(|entry| column(entry, cols)).collect();
    let x = Csr::new(cols, &offsets, &indices, values).expect("columns below their number");
    let bytes = size_of_val(values) + size_of_val(&*indices) + size_of_val(&*offsets);
    passes(name, &x, bytes, (rows, cols), (values, &indices));
}

fn passes<T: Scalar>(
    name: &str,
    x: &impl RowMatrix<T>,
    bytes: usize,
    (rows, cols): (usize, usize),
    arrays: (&[T], &[u32]),
) {
    let (y, mut w, mut p) = (vec![T::ONE; cols], vec![T::ONE; cols], vec![T::ONE; rows]);
    let (terms, mut workspace) = (Terms::scaled(T::ONE), Workspace::new());
    compare(&format!("{name} fused"), bytes, arrays, || {
        fused(x, &y, &terms, &mut w, &mut workspace)
    });
    compare(&format!("{name} X·y"), bytes, arrays, || {
        forward(x, &y, &terms, &mut p)
    });
    compare(&format!("{name} Xᵀ·p"), bytes, arrays, || {
        transposed(x, &p, &terms, &mut w, &mut workspace)
    });
}

/// Runs the pass and the sum in turns, so that whatever else the machine does meets both.
fn compare<T: Scalar>(
    name: &str,
    bytes: usize,
    (values, indices): (&[T], &[u32]),
    mut pass: impl FnMut(),
) {
    pass();
    let mut sum = || {
        black_box(stream::sum(black_box(values)));
        black_box(stream::sum_integers(black_box(indices)));
    };
    let (mut passes, mut sums) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        sums.push(rate(size_of_val(values) + size_of_val(indices), &mut sum));
        passes.push(rate(bytes, &mut pass));
    }
    passes.sort_by(f64::total_cmp);
    sums.sort_by(f64::total_cmp);
    let (best, median) = (REPEATS - 1, REPEATS / 2);
    println!(
        "{name:24} {:6.2} {:6.2}  {:3.0} % {:3.0} %",
        passes[best],
        sums[best],
        100.0 * passes[best] / sums[best],
        100.0 * passes[median] / sums[median]
    );
}

/// Gigabytes per second.
fn rate(bytes: usize, mut run: impl FnMut()) -> f64 {
    let start = Instant::now();
    run();
    bytes as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// A value in [-1, 1) that depends on nothing but `i`.
fn value<T: Scalar>(i: usize) -> T {
    T::narrow((mix(i as u64) >> 40) as f64 / (1u64 << 23) as f64 - 1.0)
}

/// A column in the `entry % ROW_ENTRIES`-th part of all columns, so that rows ascend.
fn column(entry: usize, cols: usize) -> u32 {
    let part = cols / ROW_ENTRIES;
    (entry % ROW_ENTRIES * part + mix(entry as u64) as usize % part) as u32
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
fn mix(i: u64) -> u64 {
    let z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
