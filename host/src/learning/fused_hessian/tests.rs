//! Products of Hessians over hot columns and over rows, on an emulated GPU whose gathers are so slow that a small matrix is worth
//! a further form.

use std::collections::BTreeMap;

use gpu_kernels::cg::state;

use super::*;
use crate::device::emulator::Counting;
use crate::device::{Emulator, EmulatorOptions};
use crate::learning::design::Columns;
use crate::learning::row_targets::RowTargets;
use crate::learning::rows_objective::RowsObjective;
use crate::learning::sample_weights::SampleWeights;
use crate::learning::single::SingleRows;
use crate::learning::solver::Objective;
use crate::matrix::{ColumnMeans, CsrMatrix, Features};
use crate::ops::objective::Loss;
use crate::ops::{MatrixOptions, Preparation};
use crate::plan::fused::{Forced, Product, Stored, Strategy};
use crate::plan::limits::DeviceLimits;
use crate::plan::objective::Constant;
use crate::plan::rates::SizeTable;

const ROWS: usize = 90;
/// More than y and sums in shared memory have room for.
const COLS: usize = 20_000;
const PER_ROW: usize = 9;
/// Gathers of such a device, 10⁹ per second.
const SLOW: f64 = 1e-5;
const RIDGE: Ridge = Ridge {
    coefficients: 0.25,
    intercept: 0.0,
};

fn device(counting: Counting) -> Device {
    // Its shared memory holds y and sums of fewer columns.
    let mut limits = DeviceLimits::known("a100").expect("a listed device");
    limits.sms = 2;
    limits.rates.gather_l1 = SLOW;
    limits.rates.gather = SizeTable::new([(4e3, SLOW)]);
    let options = EmulatorOptions {
        counting,
        ..EmulatorOptions::default()
    };
    Device::Emulator(Emulator::of(limits, options))
}

/// From 0 to 1.
fn number(i: usize) -> f64 {
    ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1 << 24) as f64
}

/// The column and value of entry i of a row: the first column in every row, of the others the first of a stratum mostly.
fn entry(row: usize, i: usize) -> (usize, f64) {
    let (at, stratum) = (row * PER_ROW + i, COLS / PER_ROW);
    let within = if i == 0 { 0.0 } else { number(at).powi(12) };
    let column = i * stratum + (within * stratum as f64) as usize;
    (column, 0.25 + number(at + ROWS * PER_ROW))
}

fn features<T: Number>() -> Features<T> {
    let entries = || (0..ROWS * PER_ROW).map(|at| entry(at / PER_ROW, at % PER_ROW));
    let offsets: Vec<u64> = (0..=ROWS).map(|row| (row * PER_ROW) as u64).collect();
    let indices: Vec<u32> = entries().map(|(column, _)| column as u32).collect();
    let values: Vec<T> = entries()
        .map(|(_, value)| <T as Element>::from_f64(value))
        .collect();
    Features::Sparse(CsrMatrix::new(
        (ROWS, COLS),
        offsets.into(),
        indices.into(),
        values.into(),
    ))
}

/// What is done to the columns, with what belongs to the rows.
#[derive(Debug, Clone, Copy)]
struct Case {
    loss: Loss,
    has_intercept: bool,
    standardizes: bool,
}

impl Case {
    /// All of them.
    fn all() -> impl Iterator<Item = Case> {
        let kinds = [(false, false), (true, false), (true, true)];
        let case = move |loss| {
            kinds.map(|(has_intercept, standardizes)| Case {
                loss,
                has_intercept,
                standardizes,
            })
        };
        [Loss::Squared, Loss::Logistic].into_iter().flat_map(case)
    }

    fn columns(&self) -> Columns<'static> {
        let means = |j: usize| 0.3 / (1 + j % 7) as f64;
        let scales = |j: usize| 0.5 + (j % 5) as f64;
        let of_columns = |f: &dyn Fn(usize) -> f64| (0..COLS).map(f).collect::<Vec<f64>>();
        Columns {
            means: self
                .standardizes
                .then(|| ColumnMeans::from(of_columns(&means))),
            scales: self.standardizes.then(|| of_columns(&scales)),
            intercept: self.has_intercept,
        }
    }

    fn len(&self) -> usize {
        COLS + usize::from(self.has_intercept)
    }

    /// The absolute values of x̃ of a row, with the parts of which they are made one by one.
    fn sizes(&self, columns: &Columns<'_>, row: usize) -> Vec<f64> {
        let scale = |j: usize| columns.scales.as_ref().map_or(1.0, |scales| scales[j]);
        let mean = |j: usize| columns.means.as_ref().map_or(0.0, |means| means.at(j));
        let mut sizes: Vec<f64> = (0..COLS).map(|j| mean(j) * scale(j)).collect();
        for (column, value) in (0..PER_ROW).map(|i| entry(row, i)) {
            sizes[column] += value * scale(column);
        }
        sizes.resize(self.len(), 1.0);
        sizes
    }

    /// What each element of the product with p at a point may be off for a unit of rounding: as many roundings as there are
    /// additions and factors, of the absolute values. d ≤ v, and is off by as much as its predictor.
    fn bounds(&self, [theta, p]: [&[f64]; 2], weight: impl Fn(usize) -> f64) -> Vec<f64> {
        let columns = self.columns();
        let mut bounds: Vec<f64> = p.iter().map(|p| RIDGE.coefficients * p.abs()).collect();
        let dot = |sizes: &[f64], of: &[f64]| -> f64 {
            let products = sizes.iter().zip(of);
            products.map(|(size, of)| size * of.abs()).sum()
        };
        for row in 0..ROWS {
            let sizes = self.sizes(&columns, row);
            let d = weight(row) * (1.0 + dot(&sizes, theta));
            let t = d * dot(&sizes, p);
            let elements = bounds.iter_mut().zip(&sizes);
            elements.for_each(|(bound, size)| *bound += size * t);
        }
        // Those of a constant, of a row, of a column, and of what is multiplied.
        let roundings = (COLS + PER_ROW + ROWS + 20) as f64;
        bounds.iter().map(|bound| bound * roundings).collect()
    }
}

fn weight(row: usize) -> f64 {
    (row % 4) as f64 / ROWS as f64
}

fn vector(len: usize, seed: usize) -> Vec<f64> {
    (0..len).map(|i| number(i + seed) - 0.5).collect()
}

/// One in ten has the class.
fn target<T: Number>(row: usize) -> T {
    <T as Element>::from_f64(if row % 10 == 3 { 1.0 } else { 0.0 })
}

/// The kernels that a piece of work launched.
fn launched(device: &Device, work: impl FnOnce()) -> BTreeMap<&'static str, u64> {
    let blocks = || -> BTreeMap<&'static str, u64> {
        let Device::Emulator(emulator) = device else {
            return BTreeMap::new();
        };
        let profiles = emulator.profiles().into_iter();
        profiles.map(|(name, of)| (name, of.blocks)).collect()
    };
    let before = blocks();
    work();
    let new = |(name, now): (&'static str, u64)| {
        let more = now - before.get(name).copied().unwrap_or(0);
        (more > 0).then_some((name, more))
    };
    blocks().into_iter().filter_map(new).collect()
}

/// X on the emulator with hot columns, and on the CPU.
fn matrices<T: Number>(counting: Counting) -> [Matrix<T>; 2] {
    let mut over_form = Matrix::new(&device(counting), features::<T>()).expect("a matrix");
    let hot = Preparation::HotColumns { most: Some(200) };
    let stored = over_form.prepare(hot).expect("it fits");
    assert_eq!(stored, Stored::RowsAndHotColumns);
    assert!(
        over_form
            .hessian_in_one_product(Constant::Present)
            .expect("plans")
    );
    let plan = over_form.used_plan(Product::Fused).expect("plans");
    assert_eq!(
        plan.map(|plan| plan.strategy),
        Some(Strategy::HotColumns),
        "{plan:?}"
    );
    [
        over_form,
        Matrix::new(&Device::cpu(), features()).expect("a matrix"),
    ]
}

struct Pair<'a, T: Number> {
    objectives: [Box<dyn Objective<T> + 'a>; 2],
    case: Case,
}

impl<'a, T: Number> Pair<'a, T> {
    fn new(matrices: &'a [Matrix<T>; 2], case: Case) -> Self {
        let targets: Vec<T> = (0..ROWS).map(target).collect();
        let weights = SampleWeights::each((0..ROWS).map(weight).collect());
        let objective = |matrix: &'a Matrix<T>| -> Box<dyn Objective<T> + 'a> {
            let data = (&RowTargets::from(&targets[..]), &weights);
            let rows = SingleRows::new(matrix.device(), case.loss, data, None).expect("rows");
            let made = RowsObjective::new(matrix, &case.columns(), RIDGE, rows);
            Box::new(made.expect("an objective"))
        };
        Pair {
            objectives: matrices.each_ref().map(objective),
            case,
        }
    }

    fn evaluate(&mut self, theta: &[f64]) {
        for objective in &mut self.objectives {
            let theta = upload(objective.device(), theta);
            let mut gradient = objective.device().zeros(theta.len()).expect("memory");
            objective.evaluate(&theta, &mut gradient).expect("a point");
        }
    }

    fn accept(&mut self) {
        self.objectives
            .iter_mut()
            .for_each(|objective| objective.accept());
    }

    /// Whether both agree about H·p at `theta`.
    fn check(&mut self, theta: &[f64], p: &[f64]) {
        let [found, expected] = self.objectives.each_mut().map(|objective| {
            let direction = upload(objective.device(), p);
            let mut product = objective.device().zeros(p.len()).expect("memory");
            let multiplied = objective.hessian_vector(&direction, &mut product, None);
            multiplied.expect("a product");
            product.to_vec().expect("memory")
        });
        let unit = match T::SIZE {
            4 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        let bounds = self.case.bounds([theta, p], weight);
        for (j, bound) in bounds.into_iter().enumerate() {
            let [a, b] = [found[j], expected[j]].map(Element::to_f64);
            // Each of the two is off by half a unit for a rounding.
            let is_near = (a - b).abs() <= bound * unit;
            assert!(is_near, "{:?}, element {j}: {a} instead of {b}", self.case);
        }
    }
}

fn upload<T: Number>(device: &Device, values: &[f64]) -> Buffer<T> {
    let values: Vec<T> = values
        .iter()
        .map(|v| <T as Element>::from_f64(*v))
        .collect();
    device.upload(&values).expect("memory")
}

/// The level is that of the accepted point, whatever is tried after it.
fn both_agree<T: Number>() {
    let matrices = matrices::<T>(Counting::Off);
    for case in Case::all() {
        let mut pair = Pair::new(&matrices, case);
        let points = [3, 4, 5].map(|seed| vector(case.len(), 1_000 * seed));
        let directions = [7, 8].map(|seed| vector(case.len(), 1_000 * seed));
        pair.evaluate(&points[0]);
        pair.accept();
        // Tried before the first product, and rejected.
        pair.evaluate(&points[1]);
        directions.iter().for_each(|p| pair.check(&points[0], p));
        pair.evaluate(&points[2]);
        pair.check(&points[0], &directions[0]);
        pair.accept();
        directions.iter().for_each(|p| pair.check(&points[2], p));
    }
}

#[test]
fn products_over_a_form_are_those_over_the_rows() {
    both_agree::<f32>();
    both_agree::<f64>();
}

/// Over its transpose X takes two products, for a point with the losses of the rows in between, for a product of the Hessian without.
/// What these take is held by `ops::objective::over_form`.
#[test]
fn products_over_the_transpose_have_no_losses_between_them() {
    let mut x = Matrix::new(&device(Counting::Off), features::<f32>()).expect("a matrix");
    let stored = x.prepare(Preparation::Transpose).expect("it fits");
    assert_eq!(stored, Stored::RowsAndTranspose);
    assert!(x.hessian_in_one_product(Constant::Absent).expect("plans"));
}

/// A product submitted ahead of the news that its solve has ended, ‖r‖² being no more than where it stops, costs no pass over X.
#[test]
fn products_for_a_solve_that_has_ended_are_left_out() {
    let device = device(Counting::Off);
    let state = |left: f64| {
        let mut state = state::START;
        (state[state::RR], state[state::STOP]) = (left, 2.0);
        device.upload(&state).expect("memory")
    };
    let of_rows = [Strategy::RowDot, Strategy::BalancedDot].map(|of| (Product::Forward, of));
    let all = of_rows
        .into_iter()
        .chain([(Product::Transposed, Strategy::StoredTranspose)]);
    for (product, strategy) in all {
        let forced = Forced {
            strategy: Some(strategy),
            ..Forced::default()
        };
        let options = MatrixOptions {
            forced,
            ..MatrixOptions::default()
        };
        let x = Matrix::with_options(&device, features::<f32>(), options);
        let mut x = x.expect("a matrix");
        x.prepare(Preparation::Transpose).expect("it fits");
        let (from, to) = match product {
            Product::Transposed => (ROWS, COLS),
            _ => (COLS, ROWS),
        };
        let input = upload::<f32>(&device, &vector(from, 5));
        let multiplied = |solve: Option<&Buffer<f64>>| {
            let mut output = device.upload(&vec![77.0_f32; to]).expect("memory");
            let terms = Terms {
                solve,
                ..Terms::default()
            };
            let done = match product {
                Product::Transposed => x.transposed(&input, &terms, &mut output),
                _ => x.forward(&input, &terms, &mut output),
            };
            done.expect("a product");
            output.to_vec().expect("memory")
        };
        let wanted = multiplied(None);
        assert_eq!(multiplied(Some(&state(2.5))), wanted, "{strategy}");
        let ended = multiplied(Some(&state(2.0)));
        // But for sums over several tiles, to which nothing was added either.
        let untouched = ended.iter().filter(|w| **w == 77.0).count();
        assert!(untouched > to * 9 / 10, "{strategy}: {untouched} of {to}");
    }
}

/// A point that is outside leaves sums that are no numbers; products at the accepted one do not see them.
#[test]
fn sums_of_a_point_outside_are_forgotten() {
    let matrices = matrices::<f64>(Counting::Off);
    for case in Case::all() {
        let mut pair = Pair::new(&matrices, case);
        let (point, p) = (vector(case.len(), 1_000), vector(case.len(), 2_000));
        pair.evaluate(&point);
        pair.accept();
        pair.evaluate(&vec![f64::NAN; case.len()]);
        pair.check(&point, &p);
    }
}

/// What is launched besides kernels over vectors.
fn over_x(mut launched: BTreeMap<&'static str, u64>) -> BTreeMap<&'static str, u64> {
    launched.retain(|name, _| !name.starts_with("vector_") && !name.starts_with("design_"));
    launched
}

#[test]
fn a_product_over_a_form_is_one_fused_product() {
    let matrices = matrices::<f32>(Counting::Sites);
    let device = matrices[0].device().clone();
    let [y, mut w] = [(); 2].map(|()| device.zeros::<f32>(COLS).expect("memory"));
    let fused = over_x(launched(&device, || {
        let multiplied = matrices[0].fused(&y, &Terms::default(), &mut w);
        multiplied.expect("a product");
    }));
    assert!(fused.contains_key("hot_begin_fused_f32"), "{fused:?}");
    for case in Case::all() {
        let mut pair = Pair::new(&matrices, case);
        let (point, p) = (vector(case.len(), 1_000), vector(case.len(), 2_000));
        pair.evaluate(&point);
        pair.accept();
        let [first, second] = [(); 2].map(|()| {
            let work = || pair.check(&point, &p);
            over_x(launched(&device, work))
        });
        assert_eq!(second, fused, "{case:?}");
        // The level is another product, once.
        assert_eq!(first != fused, case.has_intercept, "{first:?}");
    }
}
