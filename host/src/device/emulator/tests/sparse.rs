//! The sparse fused kernels against f64 loops.

use gpu_kernels::fused::{Product, Sparse, SparseArgs};
use gpu_kernels::{Family, In, Launch};

use super::{Element, Integers, download, in_turn, launch, schedules, upload};

/// A matrix in CSR with what is multiplied by it, all integers.
struct Problem {
    number: u64,
    rows: usize,
    cols: usize,
    offsets: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<f64>,
    y: Vec<f64>,
    p: Vec<f64>,
    weights: Vec<f64>,
    z: Vec<f64>,
    w: Vec<f64>,
}

const ALPHA: f64 = 2.0;
const BETA: f64 = -3.0;
const SHIFT: f64 = 1.0;

impl Problem {
    /// Row `i` has `lengths[i]` nonzeros.
    fn new(number: u64, cols: usize, lengths: &[usize]) -> Problem {
        let mut random = Integers::new(number);
        let rows = lengths.len();
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for &len in lengths {
            let mut columns: Vec<u32> = (0..cols as u32).collect();
            for i in 0..len {
                let other = i + random.below((cols - i) as u64) as usize;
                columns.swap(i, other);
            }
            columns.truncate(len);
            columns.sort_unstable();
            indices.append(&mut columns);
            offsets.push(indices.len() as u32);
        }
        Problem {
            number,
            rows,
            cols,
            values: random.vector(indices.len()),
            offsets,
            indices,
            y: random.vector(cols),
            p: random.vector(rows),
            weights: random.vector(rows),
            z: random.vector(rows),
            w: random.vector(cols),
        }
    }

    fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64)> {
        let range = self.offsets[i] as usize..self.offsets[i + 1] as usize;
        range.map(|k| (self.indices[k] as usize, self.values[k]))
    }

    fn dot(&self, i: usize) -> f64 {
        self.row(i)
            .map(|(column, x)| x * self.y[column])
            .sum::<f64>()
            - SHIFT
    }

    fn expected(&self, product: Product) -> Vec<f64> {
        if product == Product::Forward {
            let each = |i| ALPHA * self.dot(i) * self.weights[i] + BETA * self.z[i];
            return (0..self.rows).map(each).collect();
        }
        let mut w = self.w.clone();
        for i in 0..self.rows {
            let p = match product {
                Product::Fused => self.dot(i),
                _ => self.p[i],
            };
            for (column, x) in self.row(i) {
                w[column] += ALPHA * x * self.weights[i] * p;
            }
        }
        w
    }
}

fn check<T: Element>(problem: &Problem, grid: u32, block: u32)
where
    Sparse<T>:
        for<'a> Family<Args<'a> = SparseArgs<'a, T>, Variant = gpu_kernels::fused::SparseVariant>,
{
    for emulator in schedules() {
        let offsets = emulator.upload("offsets", &problem.offsets).expect("small");
        let indices = emulator.upload("indices", &problem.indices).expect("small");
        let values = upload::<T>(&emulator, "values", &problem.values);
        let weights = upload::<T>(&emulator, "weights", &problem.weights);
        let shift = upload::<T>(&emulator, "shift", &[SHIFT]);
        let z = upload::<T>(&emulator, "z", &problem.z);
        for entry in in_turn::<Sparse<T>>(&emulator, problem.number) {
            let (input, output) = match entry.variant.product {
                Product::Fused => (&problem.y, &problem.w),
                Product::Forward => (&problem.y, &problem.z),
                Product::Transposed => (&problem.p, &problem.w),
            };
            let input = upload::<T>(&emulator, "input", input);
            let output = upload::<T>(&emulator, "output", output);
            let args = SparseArgs {
                rows: problem.rows as u32,
                cols: problem.cols as u32,
                offsets: offsets.input(),
                indices: indices.input(),
                values: values.input(),
                input: input.input(),
                weights: weights.input(),
                shift: match entry.variant.product {
                    Product::Transposed => In::none(),
                    _ => shift.input(),
                },
                addend: z.input(),
                solve: In::none(),
                output: output.output(),
                alpha: T::of_f64(ALPHA),
                beta: T::of_f64(BETA),
            };
            let shared_bytes = entry.variant.shared_bytes(args.cols, block, T::SIZE) as u32;
            launch(
                &emulator,
                entry,
                Launch {
                    grid,
                    block,
                    shared_bytes,
                },
                args,
            );
            assert_eq!(
                download::<T>(&output),
                problem.expected(entry.variant.product),
                "{} under schedule {}",
                entry.name,
                emulator.options().seed
            );
        }
    }
}

#[test]
fn awkward_rows() {
    let mut lengths = vec![0, 1, 0, 33, 5, 2, 0];
    lengths.extend([3; 26]);
    let problem = Problem::new(1, 35, &lengths);
    check::<f32>(&problem, 2, 64);
    check::<f64>(&problem, 3, 32);
}

#[test]
fn one_row_and_one_column() {
    check::<f32>(&Problem::new(2, 1, &[1]), 1, 32);
    check::<f32>(&Problem::new(3, 1, &[0, 1, 1]), 2, 32);
    check::<f64>(&Problem::new(4, 40, &[40]), 1, 64);
}

#[test]
fn no_rows() {
    check::<f32>(&Problem::new(5, 4, &[]), 1, 32);
}
