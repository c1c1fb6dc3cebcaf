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

fn sparse(cols: u64) -> Problem {
    Problem::sparse(ROWS, cols, NNZ, Precision::F32).with_longest_row(28)
}

fn best_ms(explained: &Explained, strategy: Strategy) -> f64 {
    let trial = explained
        .candidates
        .iter()
        .find(|t| t.strategy == strategy)
        .expect("a launch of the strategy");
    trial.prediction.total_ns as f64 / 1e6
}

#[test]
fn print_for_tuning() {
    for n in [1_000, 4_000, 10_000, 18_000, 28_000, 40_000, 1_000_000] {
        let e = explain("h200", &sparse(n));
        println!("n = {n}: global {:.3}", best_ms(&e, Strategy::GlobalW));
        let s = e.to_string();
        for l in s.lines().take(50) {
            println!("  {l}");
        }
    }
    for (m, n) in [
        (11_000_000, 28),
        (8_000_000, 128),
        (2_000_000, 512),
        (1_000_000, 1024),
    ] {
        let e = explain("h200", &Problem::dense(m, n, Precision::F32));
        println!("{m} x {n}");
        let s = e.to_string();
        for l in s.lines().take(40) {
            println!("  {l}");
        }
    }
}
