//! Small problems that iterations over X solve slowly or end wrong: each was once reported so.
//!
//! Effort is counted in iterations, not in seconds.

use gpu_kernels::kernel_sum::KernelFunction;
use ndarray::{Array2, Axis};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::Device;
use crate::learning::{
    Convergence, Family, FitOptions, FitReport, Glm, Iteration, KernelRidge, KernelSolver, Labels,
    Lasso, LinearRegression, Link, LogisticRegression, Penalty, Ridge, Solver,
};
use crate::matrix::Features;

/// Reported gaps are 10⁻⁷ and less: objectives of converged fits are the minimum's to 10⁻⁶.
const GAP: f64 = 1e-6;

pub(super) fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    move || 2.0 * random.random::<f64>() - 1.0
}

/// About normal.
pub(super) fn normal(next: &mut impl FnMut() -> f64) -> f64 {
    (0..6).map(|_| next()).sum::<f64>() / 2f64.sqrt()
}

pub(super) fn sums(x: &Array2<f64>, weights: &[f64]) -> Vec<f64> {
    let row = |row: ndarray::ArrayView1<'_, f64>| row.iter().zip(weights).map(|(x, w)| x * w).sum();
    x.rows().into_iter().map(row).collect()
}

fn inner(report: &FitReport) -> usize {
    report.history.iter().map(|i| i.inner).sum()
}

/// Minimum, by the bound that the fit itself has computed.
fn has_no_gap(report: &FitReport) {
    assert_eq!(report.convergence, Convergence::Converged, "{report:?}");
    let gap = report.relative_gap.expect("a gap is reported");
    assert!(gap <= GAP, "gap {gap}");
}

/// 5,000 rows of six groups: indicators that add up to 1 in each group, and to the intercept.
fn indicators(rows: usize) -> Array2<f64> {
    let groups = [7, 12, 5, 9, 10, 15];
    let mut next = random(1);
    let mut x = Array2::zeros((rows, groups.iter().sum()));
    for mut row in x.rows_mut() {
        let mut first = 0;
        for size in groups {
            let place = ((next() + 1.0) / 2.0 * size as f64) as usize;
            row[first + place.min(size - 1)] = 1.0;
            first += size;
        }
    }
    x
}

#[test]
fn a_lasso_of_indicators_takes_few_steps() {
    let x = indicators(5000);
    let mut next = random(2);
    let weights: Vec<f64> = (0..x.ncols()).map(|_| 2.0 * next()).collect();
    let y: Vec<f64> = sums(&x, &weights)
        .iter()
        .map(|t| t + normal(&mut next))
        .collect();
    let model = Lasso::params()
        .alpha(0.002)
        .fit(&Device::cpu(), Features::Dense(x), &y)
        .expect("fitted");
    let report = model.report();
    has_no_gap(report);
    assert_eq!(report.solver, Solver::CoordinateDescent);
    assert!(
        report.n_iter <= 5 && inner(report) <= 200,
        "{} steps",
        inner(report)
    );
}

/// As `make_classification(2000, 40, n_informative=12, n_redundant=2, flip_y=0.1)` has them: corners of a cube, mixed.
fn corners(rows: usize, cols: usize) -> (Array2<f64>, Vec<f64>) {
    let mut next = random(7);
    let informative = 12;
    let mix = Array2::from_shape_fn((informative, informative), |_| next());
    let mut x = Array2::from_shape_fn((rows, cols), |_| normal(&mut next));
    let mut classes = Vec::with_capacity(rows);
    for mut row in x.rows_mut() {
        let class = next() > 0.0;
        let own: Vec<f64> = (0..informative)
            .map(|j| row[j] + if (j % 3 == 0) == class { 1.0 } else { -1.0 })
            .collect();
        for j in 0..informative {
            row[j] = (0..informative).map(|i| own[i] * mix[[i, j]]).sum();
        }
        (row[12], row[13]) = (row[0] + row[1], row[2] - row[3]);
        let flipped = next() > 0.9;
        classes.push(f64::from(class != flipped));
    }
    (x, classes)
}

/// Logistic regression with an l1 penalty ends at its minimum within this many iterations.
fn l1_converges((x, classes): (Array2<f64>, Vec<f64>), most: usize) {
    let params = LogisticRegression::params().penalty(Penalty::L1);
    let labels = Labels::Numbers(classes);
    let model = params.fit(&Device::cpu(), Features::Dense(x), &labels);
    let model = model.expect("fitted");
    has_no_gap(model.report());
    assert!(model.report().n_iter <= most, "{}", model.report().n_iter);
}

#[test]
fn a_sparse_classifier_of_correlated_columns_converges() {
    l1_converges(corners(2000, 40), 15);
}

/// Pictures of 6 × 6 pixels in 17 shades, of which the corners are always dark; six classes.
fn pictures(rows: usize) -> (Array2<f64>, Vec<f64>) {
    let mut next = random(3);
    let shapes = Array2::from_shape_fn((6, 36), |_| 16.0 * (next() + 0.4).clamp(0.0, 1.0));
    let classes: Vec<usize> = (0..rows).map(|i| i % 6).collect();
    let x = Array2::from_shape_fn((rows, 36), |(i, j)| match j {
        0 | 5 | 30 | 35 => 0.0,
        _ => {
            (shapes[[classes[i], j]] + 5.0 * normal(&mut next))
                .clamp(0.0, 16.0)
                .round()
                / 16.0
        }
    });
    (x, classes.into_iter().map(|class| class as f64).collect())
}

#[test]
fn a_sparse_multinomial_of_pictures_is_at_its_minimum() {
    l1_converges(pictures(360), 30);
}

fn rmse(y: &[f64], t: &[f64]) -> f64 {
    let squares: f64 = y.iter().zip(t).map(|(y, t)| (y - t).powi(2)).sum();
    (squares / y.len() as f64).sqrt()
}

/// Powers up to the tenth of numbers from 0 to 1: the best polynomial is nearer to a sine than iterations on the normal
/// equations come (4e-3 by the default tolerance).
#[test]
fn a_polynomial_of_degree_10_is_the_best_one() {
    let place = |i: usize| i as f64 / 499.0;
    let x = Array2::from_shape_fn((500, 10), |(i, j)| place(i).powi(j as i32 + 1));
    let y: Vec<f64> = (0..500).map(|i| (8.0 * place(i)).sin()).collect();
    let model = LinearRegression::params()
        .fit(&Device::cpu(), Features::Dense(x.clone()), &y)
        .expect("fitted");
    assert_eq!(model.report().solver, Solver::Svd);
    let t: Vec<f64> = sums(&x, model.coef())
        .iter()
        .map(|t| t + model.intercept())
        .collect();
    let off = rmse(&y, &t);
    assert!(off < 6e-5, "RMSE {off}");
}

/// Columns that are 10⁻⁴ apart from others: the solution of ten columns alone is no better.
#[test]
fn near_twins_of_columns_end_at_the_least_squares() {
    let mut next = random(5);
    let mut x = Array2::from_shape_fn((300, 16), |_| normal(&mut next));
    for i in 0..300 {
        for j in 0..8 {
            x[[i, 8 + j]] = x[[i, j]] + 1e-4 * x[[i, 8 + j]];
        }
    }
    let noise: Vec<f64> = (0..300).map(|_| 0.1 * normal(&mut next)).collect();
    let y: Vec<f64> = x
        .sum_axis(Axis(1))
        .iter()
        .zip(noise)
        .map(|(t, e)| t + e)
        .collect();
    let fit = |tolerance: f64| {
        let params = LinearRegression::params().tolerance(tolerance);
        let model = params.fit(&Device::cpu(), Features::Dense(x.clone()), &y);
        model.expect("fitted").report().objective
    };
    let (usual, tight) = (fit(1e-6), fit(1e-13));
    assert!(usual <= tight * (1.0 + 1e-9), "{usual} above {tight}");
}

/// A link whose domain ends at 0, without a penalty: whoever says that it has converged is where the gradient is small.
#[test]
fn counts_with_a_square_root_end_as_they_say() {
    let mut next = random(6);
    let x = Array2::from_shape_fn((400, 6), |_| next());
    let y: Vec<f64> = sums(&x, &[1.5, -1.0, 0.5, 0.0, 0.3, -0.2])
        .iter()
        .map(|t| ((t + 2.0 + 0.5 * next()).powi(2)).floor())
        .collect();
    let poisson = Glm::params()
        .family(Family::Poisson)
        .link(Link::Sqrt)
        .alpha(0.0);
    for solver in [Solver::Auto, Solver::NewtonCg, Solver::Lbfgs] {
        let model = poisson.clone().solver(solver);
        let model = model.fit(&Device::cpu(), Features::Dense(x.clone()), &y);
        let report = model.expect("fitted").report().clone();
        let small = report.gradient_ratio <= 1e-5;
        assert_eq!(
            report.convergence.is_success(),
            small,
            "{solver:?}: {report:?}"
        );
        assert!(small || solver != Solver::Auto, "{report:?}");
    }
}

/// Columns of sizes from 10⁻³ to 10³, without a penalty: the diagonal makes them equal. Without it L-BFGS takes thousands of
/// iterations.
#[test]
fn lbfgs_does_not_mind_columns_of_different_sizes() {
    let mut next = random(8);
    let mut x = Array2::from_shape_fn((300, 7), |_| next());
    for (j, mut column) in x.columns_mut().into_iter().enumerate() {
        column *= 10f64.powi(j as i32 - 3);
    }
    let weights: Vec<f64> = (0..7).map(|j| 0.4 * 10f64.powi(3 - j)).collect();
    let y: Vec<f64> = sums(&x, &weights)
        .iter()
        .map(|t| (t + 1.0 + 0.3 * next()).exp().floor())
        .collect();
    let poisson = Glm::params().family(Family::Poisson).alpha(0.0);
    let model = poisson
        .solver(Solver::Lbfgs)
        .fit(&Device::cpu(), Features::Dense(x), &y)
        .expect("fitted");
    let report = model.report();
    assert!(model.converged() && report.n_iter <= 60, "{report:?}");
}

/// `½·Σ(y − t)²/m + α‖w‖₁` in f64, of coefficients of any precision.
fn lasso_objective(x: &Array2<f64>, y: &[f64], model: &crate::learning::Regressor) -> f64 {
    let t = sums(x, model.coef());
    let squares = y
        .iter()
        .zip(t)
        .map(|(y, t)| (y - t - model.intercept()).powi(2));
    let norm: f64 = model.coef().iter().map(|w| w.abs()).sum();
    squares.sum::<f64>() / (2.0 * y.len() as f64) + 0.01 * norm
}

/// Whoever says that it has converged in f32 is within 10⁻⁵ of the minimum: columns that are nearly sums of others, on
/// which f32 iterations ended 1 % above it.
#[test]
fn a_lasso_in_f32_is_at_its_minimum() {
    let mut next = random(9);
    let mut x = Array2::from_shape_fn((400, 30), |_| normal(&mut next));
    for j in (2..30).step_by(3) {
        for i in 0..400 {
            x[[i, j]] = x[[i, j - 1]] + x[[i, j - 2]] + 1e-2 * x[[i, j]];
        }
    }
    let x = x.mapv(|x| f64::from(x as f32));
    let y: Vec<f64> = sums(&x, &[1.0; 30])
        .iter()
        .map(|t| f64::from((t + normal(&mut next)) as f32))
        .collect();
    let params = Lasso::params().alpha(0.01);
    let exact = params
        .clone()
        .tolerance(1e-12)
        .fit(&Device::cpu(), Features::Dense(x.clone()), &y)
        .expect("fitted");
    let narrow: Vec<f32> = y.iter().map(|y| *y as f32).collect();
    let single = params
        .fit(
            &Device::cpu(),
            Features::Dense(x.mapv(|x| x as f32)),
            &narrow,
        )
        .expect("fitted");
    assert!(single.converged(), "{:?}", single.report());
    let (best, found) = (
        lasso_objective(&x, &y, &exact),
        lasso_objective(&x, &y, &single),
    );
    assert!(found <= best * (1.0 + 1e-5), "{found} above {best}");
}

/// A ridge of independent columns takes a dozen products; one of columns whose sizes and directions differ a factor.
#[test]
fn few_products_come_before_factors_where_they_do() {
    for (rows, cols) in [(2000, 200), (200, 2000)] {
        let mut next = random(5);
        let x = Array2::from_shape_fn((rows, cols), |_| next());
        let y = sums(&x, &vec![1.0; cols]);
        let fit = |x: &Array2<f64>, solver: Solver| {
            let params = Ridge::params().alpha(1.0).solver(solver);
            let model = params.fit(&Device::cpu(), Features::Dense(x.clone()), &y);
            model.expect("fits")
        };
        let found = fit(&x, Solver::Auto);
        assert_eq!(found.report().solver, Solver::ConjugateGradient);
        assert_eq!(found.report().history.len(), found.report().n_iter);
        let expected = fit(&x, Solver::NewtonCholesky);
        let pairs = found.coef().iter().zip(expected.coef());
        let apart = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-5, "{apart}");
        // Sums of the columns before: products take hundreds.
        let mut running = x;
        for mut row in running.rows_mut() {
            (1..cols).for_each(|j| row[j] += row[j - 1]);
        }
        let found = fit(&running, Solver::Auto);
        assert_eq!(found.report().solver, Solver::NewtonCholesky);
    }
}

/// Five classes of 50 columns, as of 50,000 rows: Newton's steps by products of matrices, instead of a hundred iterations
/// that read X with vectors.
#[test]
fn a_multinomial_takes_few_steps_by_products_of_matrices() {
    let mut next = random(10);
    let x = Array2::from_shape_fn((1000, 50), |_| normal(&mut next));
    let pull = Array2::from_shape_fn((5, 50), |_| 0.4 * next());
    let classes = x.rows().into_iter().map(|row| {
        let scores = pull.rows().into_iter().map(|pull| pull.dot(&row));
        let noisy = scores.map(|score| score + normal(&mut next));
        let greatest = noisy.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        greatest.expect("five classes").0 as f64
    });
    let labels = Labels::Numbers(classes.collect());
    let model = LogisticRegression::params()
        .fit(&Device::cpu(), Features::Dense(x), &labels)
        .expect("fitted");
    let report = model.report();
    assert!(model.converged(), "{report:?}");
    assert_eq!(report.solver, Solver::NewtonCg);
    assert!(report.solver_reason.contains("products of matrices"));
    let products = inner(report) + report.n_iter;
    assert!(report.n_iter <= 8 && products <= 60, "{products} products");
}

/// The samples of a kernel of 2,000 x 64 are few enough for a factor of K: no sums over all pairs again and again.
#[test]
fn a_kernel_ridge_that_fits_is_solved_directly() {
    let mut next = random(11);
    let x = Array2::from_shape_fn((200, 64), |_| next());
    let y: Vec<f64> = (0..200).map(|_| next()).collect();
    let params = KernelRidge::params().kernel(KernelFunction::Gaussian, 4.0);
    let mut seen = 0;
    let model = params
        .alpha(0.1)
        .fit_watched(&Device::cpu(), x.view(), &y, |_| seen += 1)
        .expect("fitted");
    let report = model.report();
    assert_eq!(report.solver, KernelSolver::Cholesky);
    assert!(model.converged() && report.n_iter <= 2, "{report:?}");
    assert_eq!(seen, report.n_iter, "every step is told");
    // What decides is the number of samples alone.
    let (solver, _) = KernelSolver::Auto.choose(&Device::cpu(), 2000);
    assert_eq!(solver, KernelSolver::Cholesky);
}

/// Whatever solves it, a fit tells of every iteration, in order, with a gradient and an objective.
#[test]
fn every_solver_tells_of_every_iteration() {
    let (x, classes) = corners(200, 14);
    let labels = Labels::Numbers(classes);
    for (penalty, solver) in [
        (Penalty::L2, Solver::NewtonCholesky),
        (Penalty::L2, Solver::NewtonCg),
        (Penalty::L2, Solver::Lbfgs),
        (Penalty::L1, Solver::CoordinateDescent),
        (Penalty::L1, Solver::NewtonCg),
    ] {
        let params = LogisticRegression::params().penalty(penalty).solver(solver);
        let mut told = Vec::new();
        let mut watch = |iteration: Iteration| told.push(iteration);
        let options = FitOptions {
            watch: Some(&mut watch),
            ..FitOptions::default()
        };
        let features = Features::Dense(x.clone());
        let model = params
            .fit_with(&Device::cpu(), features, &labels, options)
            .expect("fitted");
        let history = &model.report().history;
        assert!(!told.is_empty(), "{solver:?}");
        assert_eq!(&told, history, "{solver:?}");
        let finite = |i: &Iteration| i.objective.is_finite() && i.gradient_ratio.is_finite();
        assert!(told.iter().all(finite), "{solver:?}");
    }
}

/// Every case that was once reported has a test, by name, in the file that the table names.
#[test]
fn the_table_of_cases_names_tests_that_are_there() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let table = root.join("benches/everyday/cases.md");
    // A packaged crate is without the repository around it.
    let Ok(table) = std::fs::read_to_string(table) else {
        return;
    };
    let mut named = 0;
    for (file, test) in table.split('`').filter_map(|word| word.split_once(".rs::")) {
        let path = root.join(format!("{file}.rs"));
        let source = std::fs::read_to_string(&path).expect("the file is there");
        let defined = [format!("fn {test}("), format!("fn {test}<")];
        let is_there = defined.iter().any(|text| source.contains(text));
        assert!(is_there, "{file}.rs has no {test}");
        named += 1;
    }
    assert!(named > 60, "{named} tests");
}

/// Centred rows add up to 0 and leave a direction of their space without effect: coefficients of 10¹⁴ along it gave
/// predictions of which nothing was right.
#[test]
fn more_columns_than_rows_and_no_penalty_give_the_targets() {
    let mut next = random(29);
    let x = Array2::from_shape_simple_fn((4, 12), || normal(&mut next));
    let y: Vec<f64> = (0..4).map(|_| normal(&mut next).exp() + 0.1).collect();
    for family in [Family::Poisson, Family::Gamma] {
        let glm = Glm::params().family(family).alpha(0.0).tolerance(1e-13);
        let glm = glm.solver(Solver::NewtonCholesky);
        let features = Features::Dense(x.clone());
        let model = glm.fit(&Device::cpu(), features.clone(), &y).unwrap();
        let found: Vec<f64> = model.predict(&Device::cpu(), features).unwrap();
        let is_near = |(found, y): (&f64, &f64)| (found - y).abs() <= 1e-6 * y;
        assert!(
            found.iter().zip(&y).all(is_near),
            "{family}: {found:?} {y:?}"
        );
        assert!(model.coef().iter().all(|w| w.abs() < 100.0));
    }
}
