//! How close the CPU passes come to the rate at which this machine reads memory.
//!
//! Prints, for f32 and f64, the rate of a plain multi-threaded sum over an array of 1 GB and, over the
//! same array, of the dense fused pass at several widths and of the sparse one at several numbers of
//! columns. `cargo run --release -p warpfuse --example cpu_bandwidth [-- MEGABYTES]`

use std::hint::black_box;
use std::time::Instant;

use warpfuse::cpu::{Csr, Dense, Scalar, Terms, Workspace, forward, fused, stream, transposed};

/// Repetitions of every measurement; the best and the median are printed.
const REPEATS: usize = 7;

/// Stored entries per row of the sparse matrices.
const ROW_ENTRIES: usize = 20;

fn main() {
    let megabytes = match std::env::args()
        .nth(1)
        .map(|argument| argument.parse::<usize>())
    {
        None => 1024,
        Some(Ok(megabytes)) if megabytes > 0 => megabytes,
        Some(_) => {
            eprintln!("expected a number of megabytes above 0, as in `cpu_bandwidth 1024`");
            std::process::exit(2);
        }
    };
    println!("{} threads, {megabytes} MB", rayon::current_num_threads());
    report::<f32>("f32", megabytes << 20);
    report::<f64>("f64", megabytes << 20);
}

fn report<T: Scalar>(name: &str, bytes: usize) {
    let values: Vec<T> = (0..bytes / size_of::<T>()).map(value).collect();
    let ceiling = measure(size_of_val(&*values), || stream::sum(&values));
    println!(
        "{name} sum                    {:6.2} GB/s, median {:6.2}",
        ceiling.best, ceiling.median
    );
    for cols in [28, 128, 1024] {
        dense(name, &values, cols, ceiling);
    }
    for cols in [1_000, 100_000, 1_000_000] {
        sparse(name, &values[..bytes / (size_of::<T>() + 4)], cols, ceiling);
    }
}

fn dense<T: Scalar>(name: &str, values: &[T], cols: usize, ceiling: Rate) {
    let rows = values.len() / cols;
    let x = Dense::new(rows, cols, cols, values).expect("rows · cols values");
    let bytes = rows * cols * size_of::<T>();
    let (y, mut w, mut p) = (vec![T::ONE; cols], vec![T::ONE; cols], vec![T::ONE; rows]);
    let (terms, mut workspace) = (Terms::scaled(T::ONE), Workspace::new());
    let rate = measure(bytes, || fused(&x, &y, &terms, &mut w, &mut workspace));
    rate.print(&format!("{name} dense n={cols:<7} fused"), ceiling);
    let rate = measure(bytes, || forward(&x, &y, &terms, &mut p));
    rate.print(&format!("{name} dense n={cols:<7} X·y  "), ceiling);
    let rate = measure(bytes, || transposed(&x, &p, &terms, &mut w, &mut workspace));
    rate.print(&format!("{name} dense n={cols:<7} Xᵀ·p "), ceiling);
}

fn sparse<T: Scalar>(name: &str, values: &[T], cols: usize, ceiling: Rate) {
    let rows = values.len() / ROW_ENTRIES;
    let values = &values[..rows * ROW_ENTRIES];
    let offsets: Vec<u64> = (0..=rows).map(|row| (row * ROW_ENTRIES) as u64).collect();
    let indices: Vec<u32> = (0..values.len()).map(|entry| column(entry, cols)).collect();
    let x = Csr::new(cols, &offsets, &indices, values).expect("columns below their number");
    let bytes = values.len() * (size_of::<T>() + size_of::<u32>()) + size_of_val(&*offsets);
    let (y, mut w, mut p) = (vec![T::ONE; cols], vec![T::ONE; cols], vec![T::ONE; rows]);
    let (terms, mut workspace) = (Terms::scaled(T::ONE), Workspace::new());
    let rate = measure(bytes, || fused(&x, &y, &terms, &mut w, &mut workspace));
    rate.print(&format!("{name} CSR   n={cols:<7} fused"), ceiling);
    let rate = measure(bytes, || forward(&x, &y, &terms, &mut p));
    rate.print(&format!("{name} CSR   n={cols:<7} X·y  "), ceiling);
    let rate = measure(bytes, || transposed(&x, &p, &terms, &mut w, &mut workspace));
    rate.print(&format!("{name} CSR   n={cols:<7} Xᵀ·p "), ceiling);
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

/// Gigabytes of X per second.
#[derive(Clone, Copy)]
struct Rate {
    best: f64,
    median: f64,
}

impl Rate {
    fn print(self, name: &str, ceiling: Rate) {
        let (best, median) = (self.best / ceiling.best, self.median / ceiling.median);
        println!(
            "{name} {:6.2} GB/s, median {:6.2}: {:3.0} % of the sum, median {:3.0} %",
            self.best,
            self.median,
            100.0 * best,
            100.0 * median
        );
    }
}

fn measure<R>(bytes: usize, mut run: impl FnMut() -> R) -> Rate {
    black_box(run());
    let mut seconds: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            black_box(run());
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
    Rate {
        best: rate(seconds[0]),
        median: rate(seconds[REPEATS / 2]),
    }
}
