//! Small fits on the CPU, a core for each, in f64, by the rules of the kernel ([`gpu_kernels::fits::rules`]).

use gpu_kernels::fits::rules::{Aim, Arrival, At, Course, Stop, inverse_root, variance};
use gpu_kernels::fits::{MET, NO_ROWS};
use gpu_kernels::math::Elementary;
use gpu_kernels::objective::{Loss, Point};

use super::dispatch::dispatch;

/// One fit and its rows.
#[derive(Debug, Clone, Copy)]
pub struct Fit<'a, T> {
    /// The loss of a row.
    pub loss: Loss,
    /// X from the first row on, row-major.
    pub x: &'a [T],
    /// Elements from row to row.
    pub pitch: usize,
    /// n.
    pub cols: usize,
    /// b, m elements.
    pub targets: &'a [T],
    /// v, m elements or none.
    pub weights: Option<&'a [T]>,
    /// o, m elements or none.
    pub offset: Option<&'a [T]>,
    /// A factor of all weights.
    pub scale: f64,
    /// On the intercept, and on coefficients.
    pub ridge: [f64; 2],
    /// Factors of the latter, n elements or none.
    pub factors: Option<&'a [f64]>,
    /// Whether there is an intercept.
    pub has_intercept: bool,
    /// Whether the ridge is one on columns of deviation 1.
    pub standardizes: bool,
    /// When it ends.
    pub stop: Stop,
}

/// Sums over the rows at one point: the lower triangle of the Hessian row by row, the gradient, Σ loss.
struct Sums {
    hessian: Vec<f64>,
    gradient: Vec<f64>,
    loss: f64,
}

/// What a solve has besides the rows.
struct Solve {
    ridge: Vec<f64>,
    /// 1/σ, 0 for what is held.
    units: Vec<f64>,
    trial: Vec<f64>,
    step: Vec<f64>,
    row: Vec<f64>,
    sums: Sums,
}

/// Minimises from θ = (c, w), which becomes where it ends; how it ended, and its figures.
///
/// # Panics
/// When a slice is too short.
pub fn minimise<T: Elementary>(fit: &Fit<'_, T>, theta: &mut [f64]) -> (u32, [f64; 3]) {
    if fit.targets.is_empty() {
        return (NO_ROWS, [0.0; 3]);
    }
    if !fit.has_intercept {
        theta[0] = 0.0;
    }
    let mut solve = Solve::new(fit, theta);
    if fit.standardizes && !solve.standardize(fit) {
        return (NO_ROWS, [0.0; 3]);
    }
    let mut course = Course::new();
    let status = loop {
        solve.evaluate(fit);
        if let Err(status) = solve.next(fit, theta, &mut course) {
            break course.word(status);
        }
    };
    (status, course.figures())
}

impl Solve {
    fn new<T>(fit: &Fit<'_, T>, theta: &[f64]) -> Solve {
        let order = fit.cols + 1;
        let factor = |j: usize| fit.factors.map_or(1.0, |factors| factors[j]);
        let mut ridge = vec![if fit.has_intercept { fit.ridge[0] } else { 0.0 }];
        ridge.extend((0..fit.cols).map(|j| fit.ridge[1] * factor(j)));
        let mut units = vec![1.0; order];
        units[0] = if fit.has_intercept { 1.0 } else { 0.0 };
        Solve {
            ridge,
            units,
            trial: theta.to_vec(),
            step: vec![0.0; order],
            row: vec![1.0; order],
            sums: Sums {
                hessian: vec![0.0; order * order],
                gradient: vec![0.0; order],
                loss: 0.0,
            },
        }
    }

    /// Makes the ridge one on columns of deviation 1; whether any row has weight.
    fn standardize<T: Elementary>(&mut self, fit: &Fit<'_, T>) -> bool {
        let presence = |row: usize, _: f64| Point {
            loss: 0.0,
            slope: 0.0,
            curvature: if fit.weight(row) == 0.0 { 0.0 } else { 1.0 },
        };
        self.sum(fit, presence);
        let (order, h) = (fit.cols + 1, &self.sums.hessian);
        let total = h[0];
        for j in 1..order {
            let (mean, square) = (h[j * order] / total, h[j * order + j] / total);
            let variance = variance(mean, square);
            // A constant column is held beside an intercept, and taken as it is where there is none.
            let (unit, square) = match (variance > 0.0, fit.has_intercept) {
                (true, _) => (variance.sqrt().recip(), variance),
                (false, false) => (1.0, 1.0),
                (false, true) => (0.0, 0.0),
            };
            (self.ridge[j], self.units[j]) = (self.ridge[j] * square, unit);
        }
        total > 0.0
    }

    /// Sums at the point that is tried.
    fn evaluate<T: Elementary>(&mut self, fit: &Fit<'_, T>) {
        self.sum(fit, |row, t| fit.point(row, t));
    }

    fn sum<T: Elementary>(&mut self, fit: &Fit<'_, T>, judge: impl Fn(usize, f64) -> Point<f64>) {
        let Solve {
            trial, row, sums, ..
        } = self;
        sums.hessian.fill(0.0);
        sums.gradient.fill(0.0);
        sums.loss = 0.0;
        dispatch(
            #[inline(always)]
            || {
                for number in 0..fit.targets.len() {
                    let x = &fit.x[number * fit.pitch..][..fit.cols];
                    let to = row[1..].iter_mut().zip(x);
                    to.for_each(|(to, x)| *to = x.to_f64());
                    let t = row
                        .iter()
                        .zip(&*trial)
                        .fold(0.0, |t, (x, w)| x.mul_add(*w, t));
                    sums.add(row, judge(number, t));
                }
            },
        );
    }

    /// Adds the penalties, leaves out what is held, and says what the point is worth.
    fn with_penalties(&mut self) -> At {
        let order = self.ridge.len();
        let (mut value, mut squares) = (self.sums.loss, 0.0);
        for i in 0..order {
            let (ridge, unit, theta) = (self.ridge[i], self.units[i], self.trial[i]);
            let of_row = &mut self.sums.hessian[i * order..][..=i];
            of_row[i] = if unit == 0.0 { 0.0 } else { of_row[i] + ridge };
            if i > 0 && self.units[0] == 0.0 {
                of_row[0] = 0.0;
            }
            let slope = &mut self.sums.gradient[i];
            *slope = if unit == 0.0 {
                0.0
            } else {
                *slope + ridge * theta
            };
            squares += (*slope * unit).powi(2);
            value += 0.5 * ridge * theta * theta;
        }
        At {
            value,
            norm: squares.sqrt(),
        }
    }

    /// What to do after an evaluation; the status at the end.
    fn next<T: Elementary>(
        &mut self,
        fit: &Fit<'_, T>,
        theta: &mut [f64],
        course: &mut Course,
    ) -> Result<(), u32> {
        let at = self.with_penalties();
        match course.arrive(at) {
            Arrival::Ended(status) => return Err(status),
            Arrival::Shorter(part) => {
                advance((theta, &self.step), part, &mut self.trial);
                return Ok(());
            }
            Arrival::Taken => theta.copy_from_slice(&self.trial),
        }
        let (decrease, is_dependent) = self.factor();
        let aim = course.aim(decrease, is_dependent, fit.stop);
        if let Aim::Ended(status) = aim {
            return Err(status);
        }
        advance((theta, &self.step), 1.0, &mut self.trial);
        if aim == Aim::Last {
            theta.copy_from_slice(&self.trial);
            return Err(MET);
        }
        Ok(())
    }

    /// The step by Cholesky, what it promises, and whether columns depend on each other.
    fn factor(&mut self) -> (f64, bool) {
        let order = self.step.len();
        let h = &mut self.sums.hessian;
        let mut is_dependent = false;
        for k in 0..order {
            let before = h[k * order + k];
            for i in k..order {
                let (of_row, of_pivot) = (&h[i * order..][..k], &h[k * order..][..k]);
                let pairs = of_row.iter().zip(of_pivot);
                let left = pairs.fold(h[i * order + k], |left, (a, b)| (-a).mul_add(*b, left));
                h[i * order + k] = left;
            }
            let inverse = inverse_root(before, h[k * order + k], order as u32);
            is_dependent |= inverse == 0.0 && before > 0.0;
            h[k * order + k] = inverse;
            for i in k + 1..order {
                h[i * order + k] *= inverse;
            }
        }
        self.solve();
        let decrease = self.step.iter().zip(&self.sums.gradient);
        (decrease.map(|(d, g)| d * g).sum(), is_dependent)
    }

    /// L·Lᵀ·step = gradient.
    fn solve(&mut self) {
        let order = self.step.len();
        let h = &self.sums.hessian;
        self.step.copy_from_slice(&self.sums.gradient);
        for k in 0..order {
            let known = h[k * order..][..k].iter().zip(&self.step);
            let left = known.fold(self.step[k], |left, (l, y)| (-l).mul_add(*y, left));
            self.step[k] = left * h[k * order + k];
        }
        for k in (0..order).rev() {
            self.step[k] *= h[k * order + k];
            let (own, row) = (self.step[k], &h[k * order..][..k]);
            let above = self.step.iter_mut().zip(row);
            above.for_each(|(y, l)| *y = (-l).mul_add(own, *y));
        }
    }
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, row: &[f64], of: Point<f64>) {
        self.loss += of.loss;
        let order = row.len();
        for (i, x) in row.iter().enumerate() {
            self.gradient[i] = of.slope.mul_add(*x, self.gradient[i]);
            let curved = of.curvature * x;
            let own = self.hessian[i * order..][..=i].iter_mut().zip(row);
            own.for_each(|(h, y)| *h = curved.mul_add(*y, *h));
        }
    }
}

impl<T: Elementary> Fit<'_, T> {
    fn weight(&self, row: usize) -> f64 {
        self.scale * self.weights.map_or(1.0, |weights| weights[row].to_f64())
    }

    fn point(&self, row: usize, t: f64) -> Point<f64> {
        let offset = self.offset.map_or(0.0, |offset| offset[row].to_f64());
        let b = self.targets[row].to_f64();
        self.loss.at(t + offset, b).weighted(self.weight(row))
    }
}

/// θ less a part of the step.
fn advance((theta, step): (&[f64], &[f64]), part: f64, to: &mut [f64]) {
    let pairs = theta.iter().zip(step);
    to.iter_mut()
        .zip(pairs)
        .for_each(|(to, (theta, step))| *to = (-part).mul_add(*step, *theta));
}
