mod coefficients;
mod designs;
mod dual;
mod stored;

use std::ops::ControlFlow;

use ndarray::Array2;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::choice::{Chosen, Direct, Place, Shape, choose};
use super::design::{HostDesign, Reads};
use super::{Problem, Solved, Start, minimise};
use crate::learning::Columns;
use crate::learning::cg::Convergence;
use crate::learning::solver::{Limits, Solver};
use crate::learning::spec::{ObjectiveSpec, SampleLoss};
use crate::matrix::Features;
use crate::ops::objective::Loss;

/// X, b and the objective of a test.
pub(super) struct Data {
    features: Features<f64>,
    columns: Columns<'static>,
    targets: Vec<f64>,
    pub(super) weights: Vec<f64>,
    spec: ObjectiveSpec,
}

fn spec(loss: SampleLoss, (l1, l2): (f64, f64)) -> ObjectiveSpec {
    ObjectiveSpec {
        loss,
        l2,
        l1,
        intercept_l2: 0.0,
        factor: 1.0,
        constant: 0.0,
    }
}

const SQUARED: SampleLoss = SampleLoss::Single(Loss::Squared);
const LOGISTIC: SampleLoss = SampleLoss::Single(Loss::Logistic);
pub(super) const SOFTMAX: SampleLoss = SampleLoss::Multinomial { classes: 4 };

fn random(rows: usize, cols: usize) -> Array2<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64((rows * 1000 + cols) as u64);
    Array2::from_shape_fn((rows, cols), |_| 2.0 * random.random::<f64>() - 1.0)
}

/// Columns of which every third is nearly the sum of the two before it.
pub(super) fn correlated(rows: usize, cols: usize) -> Array2<f64> {
    let mut x = random(rows, cols);
    for j in (2..cols).step_by(3) {
        for i in 0..rows {
            x[[i, j]] = x[[i, j - 1]] + x[[i, j - 2]] + 1e-3 * x[[i, j]];
        }
    }
    x
}

/// Indicators of groups: those of each group add up to 1, so that they depend on each other and on the intercept.
fn one_hot(rows: usize, groups: &[usize]) -> Array2<f64> {
    let mut x = Array2::zeros((rows, groups.iter().sum()));
    for i in 0..rows {
        let mut first = 0;
        for (g, size) in groups.iter().enumerate() {
            x[[i, first + (i * (g + 3) * 7919 + i / (g + 2)) % size]] = 1.0;
            first += size;
        }
    }
    x
}

impl Data {
    pub(super) fn new(x: Array2<f64>, loss: SampleLoss, penalties: (f64, f64)) -> Data {
        let rows = x.nrows();
        let means = x.mean_axis(ndarray::Axis(0)).unwrap().to_vec();
        let score = |i: usize| -> f64 {
            x.row(i)
                .iter()
                .enumerate()
                .map(|(j, x)| x * (1.0 + (j % 4) as f64))
                .sum()
        };
        let noise = |i: usize| ((i * 7919) % 101) as f64 / 101.0 - 0.5;
        let middle = (0..rows).map(score).sum::<f64>() / rows as f64;
        let target = |i: usize| match loss {
            SampleLoss::Multinomial { classes } => {
                (score(i) + noise(i)).rem_euclid(classes as f64).floor()
            }
            SampleLoss::Single(Loss::Logistic) => f64::from(score(i) + 4.0 * noise(i) > middle),
            SampleLoss::Single(_) | SampleLoss::Kinked(_) => score(i) + noise(i),
        };
        Data {
            targets: (0..rows).map(target).collect(),
            weights: vec![1.0 / rows as f64; rows],
            columns: Columns {
                means: Some(means.into()),
                scales: None,
                intercept: true,
            },
            features: Features::Dense(x),
            spec: spec(loss, penalties),
        }
    }

    pub(super) fn problem(&self) -> Problem<'_> {
        Problem {
            design: HostDesign::new(&self.features, &self.columns, Reads::Many),
            spec: self.spec,
            targets: &self.targets,
            weights: &self.weights,
            intercept: true,
            held: vec![false; self.features.cols() + 1],
            offset: None,
            factors: None,
            non_negative: false,
        }
    }

    fn solve(&self, method: Direct, tolerance: f64) -> Solved {
        let problem = self.problem();
        let start = Start {
            theta: vec![0.0; problem.len()],
            cold: None,
            found: None,
        };
        let limits = Limits {
            tolerance,
            max_iter: 1000,
            quadratic: false,
        };
        minimise(&problem, method, start, &limits, &mut |_, _| {
            ControlFlow::Continue(())
        })
    }
}

fn near(found: &[f64], expected: &[f64], off: f64) {
    assert_eq!(found.len(), expected.len());
    let size = expected.iter().fold(1e-3, |a: f64, b| a.max(b.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= off * size,
            "element {i} is {a} instead of {b}"
        );
    }
}

/// The gradient by differences of the objective, of a point where nothing is 0.
#[test]
fn gradients_and_hessians_are_derivatives() {
    for loss in [SQUARED, LOGISTIC, SOFTMAX] {
        let data = Data::new(random(23, 3), loss, (0.0, 0.3));
        let problem = data.problem();
        let theta: Vec<f64> = (0..problem.len()).map(|i| 0.1 * (i as f64 + 1.0)).collect();
        let at = problem.at(theta.clone());
        let hessian = problem.hessian(&at);
        let step = 1e-5;
        for j in 0..theta.len() {
            let moved = |by: f64| {
                let mut theta = theta.clone();
                theta[j] += by;
                problem.at(theta)
            };
            let (up, down) = (moved(step), moved(-step));
            let slope = (up.value - down.value) / (2.0 * step);
            assert!((slope - at.gradient[j]).abs() < 1e-8, "{loss:?} {j}");
            for i in 0..theta.len() {
                let bend = (up.gradient[i] - down.gradient[i]) / (2.0 * step);
                assert!((bend - hessian[(i, j)]).abs() < 1e-8, "{loss:?} {i} {j}");
            }
        }
    }
}

/// Optimality is checked by the gap, which bounds the objective from below whatever found it.
#[test]
fn l1_problems_end_with_no_gap_whatever_the_columns() {
    let cases = [
        ("correlated", correlated(80, 18)),
        ("one-hot", one_hot(150, &[5, 8, 3, 6])),
        ("wide", random(20, 60)),
    ];
    for (name, x) in cases {
        for loss in [SQUARED, LOGISTIC, SOFTMAX] {
            for penalties in [(0.01, 0.0), (0.005, 0.002), (1e-4, 0.0)] {
                let data = Data::new(x.clone(), loss, penalties);
                let solved = data.solve(Direct::CoordinateDescent, 1e-9);
                let (ended, ratio) = (solved.convergence, solved.gradient_ratio);
                let what = format!("{name} {loss:?} {penalties:?}: {ended:?}, gradient {ratio:e}");
                assert_eq!(solved.convergence, Convergence::Converged, "{what}");
                let gap = solved.gap.expect("a gap");
                assert!(gap <= 1e-7 * solved.objective, "{what}, gap {gap}");
                assert!(solved.n_iter < 60, "{what}, {} iterations", solved.n_iter);
            }
        }
    }
}

#[test]
fn a_gap_bounds_the_distance_to_the_minimum_from_above() {
    for loss in [SQUARED, LOGISTIC, SOFTMAX] {
        let data = Data::new(correlated(60, 12), loss, (0.01, 0.001));
        let best = data.solve(Direct::CoordinateDescent, 1e-10).objective;
        let problem = data.problem();
        for scale in [0.0, 0.01, 0.3] {
            let theta = (0..problem.len())
                .map(|i| scale * (i as f64).sin())
                .collect();
            let at = problem.at(theta);
            let gap = super::gap::duality_gap(&problem, &at).expect("a gap");
            assert!(at.value - gap <= best + 1e-12, "{loss:?} at {scale}");
        }
    }
}

/// More columns than are taken at once, of which few matter.
#[test]
fn working_sets_reach_what_all_columns_reach() {
    for loss in [SQUARED, LOGISTIC] {
        let data = Data::new(random(60, 300), loss, (0.02, 0.0));
        let found = data.solve(Direct::CoordinateDescent, 1e-10);
        assert_eq!(found.convergence, Convergence::Converged, "{loss:?}");
        assert!(found.gap.expect("a gap") <= 1e-7 * found.objective);
        let problem = data.problem();
        let start = Start {
            theta: vec![0.0; problem.len()],
            cold: None,
            found: None,
        };
        let limits = Limits {
            tolerance: 1e-10,
            max_iter: 100,
            quadratic: false,
        };
        let expected = super::newton::minimise(&problem, start, &limits, &mut |_, _| {
            ControlFlow::Continue(())
        });
        assert!((found.objective - expected.objective).abs() <= 1e-10 * expected.objective);
        near(&found.theta, &expected.theta, 1e-6);
    }
}

/// Whichever way its steps come about, a softmax has one minimum; columns are as good as dependent.
#[test]
fn products_lead_where_the_hessian_does() {
    for penalty in [1e-3, 1e-6] {
        let data = Data::new(correlated(150, 9), SOFTMAX, (0.0, penalty));
        let by = |method| data.solve(method, 1e-9);
        let (products, cholesky) = (by(Direct::Products), by(Direct::Cholesky));
        assert_eq!(products.convergence, Convergence::Converged, "{penalty}");
        assert!(products.n_iter <= 25, "{} iterations", products.n_iter);
        assert!((products.objective - cholesky.objective).abs() <= 1e-12 * cholesky.objective);
    }
}

#[test]
fn smooth_problems_converge_to_rounding() {
    for loss in [SQUARED, LOGISTIC, SOFTMAX] {
        let data = Data::new(correlated(150, 9), loss, (0.0, 1e-3));
        let solved = data.solve(Direct::Cholesky, 1e-9);
        assert_eq!(solved.convergence, Convergence::Converged, "{loss:?}");
        assert!(
            solved.n_iter <= 12,
            "{loss:?}: {} iterations",
            solved.n_iter
        );
    }
}

/// The shortest of all solutions: of two equal columns the coefficients are the same.
#[test]
fn least_squares_of_dependent_columns_are_shortest() {
    let mut x = random(40, 6);
    let first = x.column(0).to_owned();
    x.column_mut(5).assign(&first);
    let data = Data::new(x, SQUARED, (0.0, 0.0));
    for method in [Direct::Svd, Direct::LeastSquares, Direct::Cholesky] {
        let solved = data.solve(method, 1e-9);
        assert_eq!(solved.convergence, Convergence::Converged, "{method:?}");
        assert!(
            (solved.theta[0] - solved.theta[5]).abs() < 1e-9,
            "{method:?}"
        );
    }
    let close = data.solve(Direct::LeastSquares, 1e-9);
    assert!(close.instead.is_none(), "equal columns are left to factors");
    let wide = Data::new(random(10, 30), SQUARED, (0.0, 0.0));
    let solved = wide.solve(Direct::Svd, 1e-9);
    assert!(solved.objective < 1e-20, "{}", solved.objective);
    let ridge = Data {
        spec: spec(SQUARED, (0.0, 1e-9)),
        ..wide
    };
    near(
        &solved.theta[..30],
        &ridge.solve(Direct::Svd, 1e-9).theta[..30],
        1e-6,
    );
}

/// Columns that are far from depending on each other take the normal equations, and keep the digits of orthogonal factors.
#[test]
fn independent_columns_take_their_normal_equations() {
    let mut x = random(300, 12);
    let data = Data::new(x.clone(), SQUARED, (0.0, 0.0));
    let solved = data.solve(Direct::LeastSquares, 1e-9);
    let by = solved.instead.map(|instead| instead.solver);
    assert_eq!(by, Some(Solver::NewtonCholesky));
    near(&solved.theta, &data.solve(Direct::Svd, 1e-9).theta, 1e-13);
    // 10⁻⁴ of another column apart: a pivot falls to 10⁻⁸.
    let nearly = &x.column(0) + &(&x.column(1) * 1e-4);
    x.column_mut(5).assign(&nearly);
    let solved = Data::new(x, SQUARED, (0.0, 0.0)).solve(Direct::LeastSquares, 1e-9);
    assert!(solved.instead.is_none());
}

/// Over the space of the rows there is the same minimum, held columns and several predictors included.
#[test]
fn wide_problems_are_solved_over_their_rows() {
    for loss in [SQUARED, LOGISTIC, SOFTMAX] {
        let data = Data::new(random(20, 45), loss, (0.0, 0.03));
        let mut problem = data.problem();
        problem.held[7] = true;
        let solve = |problem: &Problem<'_>, over_rows: bool| {
            let start = Start {
                theta: vec![0.0; problem.len()],
                cold: None,
                found: None,
            };
            let limits = Limits {
                tolerance: 1e-11,
                max_iter: 100,
                quadratic: false,
            };
            match over_rows {
                true => minimise(problem, Direct::Cholesky, start, &limits, &mut |_, _| {
                    ControlFlow::Continue(())
                }),
                false => super::newton::minimise(problem, start, &limits, &mut |_, _| {
                    ControlFlow::Continue(())
                }),
            }
        };
        let (rows, columns) = (solve(&problem, true), solve(&problem, false));
        assert_eq!(rows.convergence, Convergence::Converged, "{loss:?}");
        assert!((rows.objective - columns.objective).abs() <= 1e-12 * columns.objective.abs());
        near(&rows.theta, &columns.theta, 1e-8);
    }
}

/// A polynomial of degree 10 through its own values, in powers: the condition of X is 10⁷, that of its Gram matrix 10¹⁴.
#[test]
fn least_squares_solve_what_normal_equations_cannot() {
    let x = Array2::from_shape_fn((200, 10), |(i, j)| (i as f64 / 199.0).powi(j as i32 + 1));
    let true_coef: Vec<f64> = (0..10)
        .map(|j| if j % 2 == 0 { 1.5 } else { -2.0 })
        .collect();
    let mut data = Data::new(x.clone(), SQUARED, (0.0, 0.0));
    data.targets = x
        .rows()
        .into_iter()
        .map(|row| row.iter().zip(&true_coef).map(|(x, w)| x * w).sum())
        .collect();
    let solved = data.solve(Direct::Svd, 1e-9);
    near(&solved.theta[..10], &true_coef, 1e-7);
}

/// A triangle of many blocks is that of all rows.
#[test]
fn blocks_of_rows_reduce_to_the_same_solution() {
    let data = Data::new(correlated(6000, 8), SQUARED, (0.0, 0.01));
    let (direct, newton) = (
        data.solve(Direct::Svd, 1e-10),
        data.solve(Direct::Cholesky, 1e-10),
    );
    near(&direct.theta, &newton.theta, 1e-9);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let data = Data::new(correlated(30_000, 12), LOGISTIC, (1e-3, 0.0));
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| data.solve(Direct::CoordinateDescent, 1e-8).theta)
    };
    let bits = |theta: Vec<f64>| theta.into_iter().map(f64::to_bits).collect::<Vec<_>>();
    assert_eq!(bits(with(1)), bits(with(3)));
}

fn shape(rows: usize, cols: usize) -> Shape {
    Shape {
        rows,
        cols,
        entries: (rows * cols) as u64,
        sparse: false,
        predictors: 1,
        quadratic: false,
        has_l1: false,
        has_l2: true,
        kinked: false,
        constraint: super::choice::Constraint::None,
        place: Place::Host,
        no_triangle: Some("an X of the host"),
    }
}

#[test]
fn solvers_are_chosen_by_shape_structure_penalty_and_place() {
    let solver = |shape: Shape| choose(&shape, Solver::Auto).solver;
    let l1 = |shape: Shape| Shape {
        has_l1: true,
        ..shape
    };
    let squares = |has_l2: bool, shape: Shape| Shape {
        quadratic: true,
        has_l2,
        ..shape
    };
    assert_eq!(solver(shape(569, 30)), Solver::NewtonCholesky);
    assert_eq!(solver(l1(shape(2000, 40))), Solver::CoordinateDescent);
    assert_eq!(solver(l1(shape(72, 7129))), Solver::CoordinateDescent);
    assert_eq!(solver(l1(shape(20_000, 5_000))), Solver::NewtonCg);
    assert_eq!(solver(shape(200, 2_000)), Solver::NewtonCholesky);
    assert_eq!(solver(squares(false, shape(442, 10))), Solver::Svd);
    assert_eq!(
        solver(squares(true, shape(442, 10))),
        Solver::NewtonCholesky
    );
    assert_eq!(solver(shape(2_000_000, 3_000)), Solver::NewtonCg);
    assert_eq!(solver(l1(shape(2_000_000, 3_000))), Solver::NewtonCg);
    let on_gpu = |place| Shape {
        place,
        ..shape(20_000, 200)
    };
    assert_eq!(solver(on_gpu(Place::Both)), Solver::NewtonCg);
    assert_eq!(solver(on_gpu(Place::Device)), Solver::NewtonCg);
    let small = Shape {
        place: Place::Both,
        ..shape(569, 30)
    };
    assert_eq!(solver(small), Solver::NewtonCholesky);
    // 20,000 x 50 and the digits, which took 6 and 15 seconds on a GPU.
    let beside_gpu = |rows, cols, predictors| Shape {
        place: Place::Both,
        predictors,
        ..shape(rows, cols)
    };
    for small in [l1(beside_gpu(20_000, 50, 1)), l1(beside_gpu(1797, 64, 10))] {
        assert_eq!(solver(small), Solver::CoordinateDescent);
    }
    // A perfect fit of 200 x 2,000, whose objective was 3e-13 of the first after iterations on a GPU.
    let wide = beside_gpu(200, 2_000, 1);
    assert_eq!(solver(squares(false, wide)), Solver::Svd);
    assert_eq!(solver(squares(true, wide)), Solver::ConjugateGradient);
    let digits = choose(&beside_gpu(1797, 64, 10), Solver::Auto);
    assert_eq!(digits.direct, Some(Direct::Products));
    let sparse = Shape {
        sparse: true,
        entries: 200_000,
        ..shape(20_000, 5_000)
    };
    assert_eq!(choose(&sparse, Solver::Auto).direct, Some(Direct::Stored));
    let free = Shape {
        has_l2: false,
        ..sparse
    };
    assert_eq!(choose(&free, Solver::Auto).direct, None);
    let asked: Chosen = choose(&shape(569, 30), Solver::Lbfgs);
    assert_eq!((asked.solver, asked.direct), (Solver::Lbfgs, None));
}
