//! The dense fused kernels against f64 loops.

use gpu_kernels::fused::{Dense, DenseArgs, DenseVariant, Product, RowStore, TeamSize};
use gpu_kernels::{Family, In, Launch};

use super::{Element, Integers, download, in_turn, launch, schedules, upload};

const ALPHA: f64 = 2.0;
const BETA: f64 = -3.0;
const SHIFT: f64 = 1.0;

/// A row-major matrix with what is multiplied by it, all integers.
struct Problem {
    number: u64,
    rows: usize,
    cols: usize,
    ld: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    p: Vec<f64>,
    weights: Vec<f64>,
    z: Vec<f64>,
    w: Vec<f64>,
}

impl Problem {
    fn new(number: u64, rows: usize, cols: usize) -> Problem {
        let mut random = Integers::new(number);
        let ld = cols.next_multiple_of(4);
        let mut x = random.vector(rows * ld);
        let is_padding = |i: usize| i % ld >= cols;
        x.iter_mut()
            .enumerate()
            .filter(|(i, _)| is_padding(*i))
            .for_each(|(_, element)| *element = 0.0);
        Problem {
            number,
            rows,
            cols,
            ld,
            x,
            y: random.vector(cols),
            p: random.vector(rows),
            weights: random.vector(rows),
            z: random.vector(rows),
            w: random.vector(cols),
        }
    }

    fn dot(&self, i: usize) -> f64 {
        let row = &self.x[i * self.ld..][..self.cols];
        row.iter().zip(&self.y).map(|(x, y)| x * y).sum::<f64>() - SHIFT
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
            let row = &self.x[i * self.ld..][..self.cols];
            for (w, x) in w.iter_mut().zip(row) {
                *w += ALPHA * x * self.weights[i] * p;
            }
        }
        w
    }
}

/// Every entry that can take this many columns in blocks of 64 threads.
fn check<T: Element>(problem: &Problem)
where
    Dense<T>: for<'a> Family<Args<'a> = DenseArgs<'a, T>, Variant = DenseVariant>,
{
    const BLOCK: u32 = 64;
    for emulator in schedules() {
        let x = upload::<T>(&emulator, "x", &problem.x);
        let weights = upload::<T>(&emulator, "weights", &problem.weights);
        let shift = upload::<T>(&emulator, "shift", &[SHIFT]);
        let z = upload::<T>(&emulator, "z", &problem.z);
        for entry in in_turn::<Dense<T>>(&emulator, problem.number) {
            let variant = &entry.variant;
            let fits = variant.columns(BLOCK) >= problem.cols as u64;
            let is_tile = matches!(variant.held, RowStore::Tiles { .. });
            let has_gaps = problem.ld != problem.cols.next_multiple_of(variant.width as usize);
            if variant.product == Product::Fused && !fits || is_tile && has_gaps {
                continue;
            }
            let (input, output) = match variant.product {
                Product::Fused => (&problem.y, &problem.w),
                Product::Forward => (&problem.y, &problem.z),
                Product::Transposed => (&problem.p, &problem.w),
            };
            let input = upload::<T>(&emulator, "input", input);
            let output = upload::<T>(&emulator, "output", output);
            let args = DenseArgs {
                rows: problem.rows as u32,
                cols: problem.cols as u32,
                chunks: 0,
                ld: problem.ld as u64,
                x: x.input(),
                input: input.input(),
                weights: weights.input(),
                shift: match variant.product {
                    Product::Transposed => In::none(),
                    _ => shift.input(),
                },
                addend: z.input(),
                output: output.output(),
                alpha: T::of_f64(ALPHA),
                beta: T::of_f64(BETA),
            };
            let panels = variant.panels(BLOCK, args.cols) as u32;
            let shape = Launch {
                // An odd block more than the panels need, so that one of them has nothing to do.
                grid: if variant.product == Product::Transposed {
                    2 * panels + 1
                } else {
                    variant.cluster().max(2)
                },
                block: BLOCK,
                shared_bytes: variant.shared_bytes(BLOCK, args.ld, T::SIZE) as u32,
            };
            launch(&emulator, entry, shape, args);
            let result = download::<T>(&output);
            let schedule = emulator.options().seed;
            assert_eq!(
                result,
                problem.expected(variant.product),
                "{} under schedule {schedule}",
                entry.name
            );
        }
    }
}

#[test]
fn awkward_shapes() {
    check::<f32>(&Problem::new(1, 35, 13));
    check::<f64>(&Problem::new(2, 9, 33));
}

#[test]
fn single_elements_and_wide_rows() {
    check::<f32>(&Problem::new(3, 1, 1));
    check::<f64>(&Problem::new(4, 3, 1));
    check::<f32>(&Problem::new(5, 3, 131));
}

#[test]
fn all_rows_end_in_the_same_group_or_there_are_none() {
    check::<f32>(&Problem::new(6, 0, 5));
    check::<f64>(&Problem::new(7, 65, 2));
}

#[test]
fn whole_blocks_sum_in_alternating_halves() {
    let is_block = |variant: &DenseVariant| variant.team == TeamSize::Block;
    assert!(
        Dense::<f32>::entries()
            .iter()
            .any(|entry| is_block(&entry.variant))
    );
    check::<f32>(&Problem::new(8, 70, 60));
}
