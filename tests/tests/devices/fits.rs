//! Many small fits in one launch, each against the minimum in f64.
//!
//! What is judged is the gradient where a fit ended, in f64 from the rows as they are: it is no longer than the tolerance of
//! that at the start, and what rounding makes of its sums. So nothing has to be known of how far columns are from depending on
//! each other, and coefficients are as right as the gradient is short.

mod judge;

use anyhow::{Context, Result, ensure};
use gpu_kernels::objective::{Distribution, Link};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::fits::{End, FitRows, FitRules, Minima, SmallFit, minimise_each};
use warpfuse::ops::objective::Loss;
use warpfuse::ops::{Number, OpError};
use warpfuse::reference::fits::Fit;
use warpfuse_tests::generate::Random;

use self::judge::{judge, variance};
use super::suite::{Suite, Test};

/// Around warps, and nothing at all.
const SIZES: [usize; 10] = [40, 0, 1, 2, 31, 32, 33, 64, 65, 130];
/// Around tiles of 8 and 16 columns, blocks of 32, and the most there may be.
const COLUMNS: [usize; 14] = [1, 2, 7, 8, 9, 16, 17, 20, 31, 32, 33, 48, 63, 64];
const TOLERANCE: f64 = 1e-10;
/// Roundings of a row's loss and weight.
const OF_A_ROW: usize = 40;
const POISSON: Loss = Loss::Glm {
    distribution: Distribution::Poisson,
    link: Link::Log,
};
const LOSSES: [Loss; 4] = [
    Loss::Squared,
    Loss::Logistic,
    POISSON,
    Loss::Huber { delta: 0.5 },
];

/// Adds all cases.
pub fn add(suite: &mut Suite) {
    add_type::<f32>(suite);
    add_type::<f64>(suite);
    for (turn, cols) in COLUMNS.into_iter().enumerate() {
        for (which, loss) in LOSSES.into_iter().enumerate() {
            add_groups(suite, turn + which, (cols, loss));
        }
    }
}

fn add_groups(suite: &mut Suite, turn: usize, (cols, loss): (usize, Loss)) {
    let name = match loss {
        Loss::Squared => "squared",
        Loss::Logistic => "logistic",
        Loss::Huber { .. } => "huber",
        _ => "poisson",
    };
    let case = move |turn: usize| Case {
        has_intercept: !turn.is_multiple_of(3),
        standardizes: turn % 4 == 1,
        // An emulator's turns are all odd.
        more: (turn / 4).is_multiple_of(2),
        ..Case::new(cols, loss)
    };
    // Wide ones take emulators long.
    let sizes = if cols > 20 { &SIZES[5..] } else { &SIZES };
    suite.add_by_turn(
        turn,
        |dtype| Test::new(format!("fits/{cols}-{name}/{dtype}")),
        move |device| groups::<f32>(device, case(turn), sizes),
        move |device| groups::<f64>(device, case(turn + 1), sizes),
    );
}

fn add_type<T: Number>(suite: &mut Suite) {
    let mut add = |name: &str, test: fn(&Device) -> Result<()>| {
        suite.add(Test::new(format!("fits/{name}/{}", T::DTYPE)), test);
    };
    add("other_targets", other_targets::<T>);
    add("folds_and_penalties", folds_and_penalties::<T>);
    add("beyond_shared_memory", beyond_shared_memory::<T>);
    add("not_finite_is_alone", not_finite_is_alone::<T>);
    add("dependent_columns", dependent_columns::<T>);
    add("separable", separable::<T>);
    add("limits_and_errors", limits_and_errors::<T>);
}

/// What is fitted.
#[derive(Debug, Clone, Copy)]
struct Case {
    cols: usize,
    pitch: usize,
    loss: Loss,
    has_intercept: bool,
    standardizes: bool,
    /// With weights, an offset and factors of the penalty.
    more: bool,
    l2: f64,
}

impl Case {
    fn new(cols: usize, loss: Loss) -> Case {
        Case {
            cols,
            pitch: cols,
            loss,
            has_intercept: true,
            standardizes: false,
            more: false,
            l2: 0.05,
        }
    }
}

/// Rows, and what belongs to them.
#[derive(Debug, Clone)]
struct Data<T> {
    x: Vec<T>,
    targets: Vec<T>,
    weights: Option<Vec<T>>,
    offset: Option<Vec<T>>,
    factors: Option<Vec<f64>>,
}

impl<T: Number> Data<T> {
    fn draw(case: &Case, rows: usize, seed: u64) -> Data<T> {
        let mut random = Random::new(seed);
        let number = <T as Element>::from_f64;
        let scale = |j: usize| [1.0, 0.25, 2.0][j % 3];
        let x: Vec<T> = (0..rows * case.pitch)
            .map(|i| number(scale(i % case.pitch) * (random.signed() + 0.5)))
            .collect();
        let w: Vec<f64> = (0..case.cols).map(|_| random.signed()).collect();
        let target = |row: usize, random: &mut Random| {
            let x = x[row * case.pitch..][..case.cols].iter();
            let dot: f64 = x.zip(&w).map(|(x, w)| Element::to_f64(*x) * w).sum();
            let t = dot / (case.cols as f64).sqrt();
            match case.loss {
                Loss::Logistic => f64::from(u8::from(random.unit() < 1.0 / (1.0 + (-t).exp()))),
                POISSON => (2.0 * t.exp() * random.unit()).round(),
                _ => t + random.signed(),
            }
        };
        let targets = (0..rows)
            .map(|row| number(target(row, &mut random)))
            .collect();
        let each = |f: &dyn Fn(usize) -> f64| (0..rows).map(|i| number(f(i))).collect();
        Data {
            x,
            targets,
            weights: case.more.then(|| each(&|i| (i % 3) as f64)),
            offset: case.more.then(|| each(&|i| 0.1 * (i % 5) as f64)),
            factors: case
                .more
                .then(|| (0..case.cols).map(|j| 1.0 + (j % 2) as f64).collect()),
        }
    }

    fn fit(&self, device: &Device, case: &Case, fits: &[SmallFit]) -> Result<Minima> {
        let rows = self.x.len() / case.pitch;
        let upload =
            |values: &Option<Vec<T>>| values.as_ref().map(|v| device.upload(v)).transpose();
        let (weights, offset) = (upload(&self.weights)?, upload(&self.offset)?);
        let given = FitRows {
            x: &device.upload(&self.x)?,
            rows,
            cols: case.cols,
            pitch: case.pitch,
            targets: &device.upload(&self.targets)?,
            weights: weights.as_ref(),
            offset: offset.as_ref(),
        };
        let rules = FitRules {
            has_intercept: case.has_intercept,
            standardizes: case.standardizes,
            factors: self.factors.as_deref(),
            tolerance: TOLERANCE,
            ..FitRules::new(case.loss)
        };
        let start = vec![0.0; fits.len() * (case.cols + 1)];
        Ok(minimise_each(&given, &rules, fits, &start)?)
    }

    /// Fails unless the gradient where a fit ended is as short as it can be.
    fn judge(&self, case: &Case, fit: &SmallFit, theta: &[f64]) -> Result<()> {
        let wide: Vec<f64> = self.x.iter().map(|x| Element::to_f64(*x)).collect();
        let value = |of: &Option<Vec<T>>, i: usize, absent: f64| {
            of.as_ref().map_or(absent, |of| Element::to_f64(of[i]))
        };
        let rows: Vec<&[f64]> = (fit.row..fit.row + fit.rows)
            .map(|row| &wide[row * case.pitch..][..case.cols])
            .collect();
        let numbers = 0..fit.rows;
        let weight = |i: usize| fit.scale * value(&self.weights, fit.weight + i, 1.0);
        let weights: Vec<f64> = numbers.clone().map(weight).collect();
        let mut ridge = vec![if case.has_intercept {
            fit.intercept_l2
        } else {
            0.0
        }];
        for j in 0..case.cols {
            let spread = match case.standardizes {
                true => variance(&rows, &weights, j),
                false => 1.0,
            };
            let factor = self.factors.as_ref().map_or(1.0, |factors| factors[j]);
            ridge.push(fit.l2 * factor * spread);
        }
        let truth = Fit {
            loss: case.loss,
            targets: numbers
                .clone()
                .map(|i| Element::to_f64(self.targets[fit.target + i]))
                .collect(),
            offset: numbers
                .map(|i| value(&self.offset, fit.row + i, 0.0))
                .collect(),
            has_intercept: case.has_intercept,
            rows,
            weights,
            ridge,
        };
        // A standardised gradient is short in units of columns whose deviations differ by a factor of 8.
        judge(&truth, theta, if case.standardizes { 8.0 } else { 1.0 })
    }
}

/// Groups one behind the other, as they are.
fn own_rows(sizes: &[usize], l2: f64) -> Vec<SmallFit> {
    let mut row = 0;
    let fit = |rows: &usize| {
        let fit = SmallFit {
            row,
            rows: *rows,
            target: row,
            weight: row,
            scale: 1.0 / (*rows).max(1) as f64,
            l2,
            intercept_l2: 0.0,
        };
        row += rows;
        fit
    };
    sizes.iter().map(fit).collect()
}

fn groups<T: Number>(device: &Device, case: Case, sizes: &[usize]) -> Result<()> {
    let fits = own_rows(sizes, case.l2);
    let data = Data::<T>::draw(&case, sizes.iter().sum(), case.cols as u64);
    let found = data.fit(device, &case, &fits)?;
    for (i, fit) in fits.iter().enumerate() {
        let told = || format!("fit {i} of {} rows, {:?}", fit.rows, found.outcomes[i]);
        let end = found.outcomes[i].end;
        // Of one row no weight may be left, and of two no deviation.
        let has_weight = data.weights.is_none() || fit.rows > 2;
        if fit.rows == 0 {
            ensure!(end == End::NoRows, "{}", told());
        } else if has_weight {
            ensure!(matches!(end, End::Met | End::PrecisionLimit), "{}", told());
            data.judge(&case, fit, found.theta(i)).with_context(told)?;
        }
    }
    // An emulator does everything again in the same order.
    if !matches!(device, Device::Emulator(_)) {
        let again = data.fit(device, &case, &fits)?;
        ensure!(again == found, "another run has other bits");
    }
    Ok(())
}

/// The same rows with their own targets: one class against the rest, and a weight of the intercept.
fn other_targets<T: Number>(device: &Device) -> Result<()> {
    let case = Case::new(6, Loss::Logistic);
    let rows = 70;
    let mut data = Data::<T>::draw(&case, rows, 3);
    let class = |i: usize| i * 7 % 3;
    let target =
        |i: usize| <T as Element>::from_f64(f64::from(u8::from(class(i % rows) == i / rows)));
    data.targets = (0..3 * rows).map(target).collect();
    let fits = [0, 1, 2].map(|class| SmallFit {
        row: 0,
        rows,
        target: class * rows,
        weight: 0,
        scale: 1.0 / rows as f64,
        l2: 0.1,
        intercept_l2: 0.1 * class as f64,
    });
    let found = data.fit(device, &case, &fits)?;
    for (i, fit) in fits.iter().enumerate() {
        ensure!(found.outcomes[i].end == End::Met, "{:?}", found.outcomes[i]);
        data.judge(&case, fit, found.theta(i))?;
    }
    Ok(())
}

/// The same rows and targets with their own weights, which leave out each fourth row, and penalties.
fn folds_and_penalties<T: Number>(device: &Device) -> Result<()> {
    let case = Case {
        standardizes: true,
        pitch: 11,
        ..Case::new(9, POISSON)
    };
    let rows = 90;
    let mut data = Data::<T>::draw(&case, rows, 4);
    let weight = |i: usize| if i % rows % 4 == i / rows { 0.0 } else { 1.0 };
    data.weights = Some(
        (0..4 * rows)
            .map(|i| <T as Element>::from_f64(weight(i)))
            .collect(),
    );
    let fits: Vec<SmallFit> = (0..12)
        .map(|i| SmallFit {
            row: 0,
            rows,
            target: 0,
            weight: i % 4 * rows,
            scale: 1.0 / 67.0,
            l2: [0.0, 0.01, 1.0][i / 4],
            intercept_l2: 0.0,
        })
        .collect();
    let found = data.fit(device, &case, &fits)?;
    for (i, fit) in fits.iter().enumerate() {
        data.judge(&case, fit, found.theta(i))
            .with_context(|| format!("fit {i}"))?;
    }
    Ok(())
}

/// Rows that a block has no room for, among some that it has; what is between columns is not looked at.
fn beyond_shared_memory<T: Number>(device: &Device) -> Result<()> {
    let case = Case {
        pitch: 1_200 / T::SIZE as usize,
        ..Case::new(3, Loss::Logistic)
    };
    let sizes = [7, 300, 64, 0, 35];
    let mut data = Data::<T>::draw(&case, sizes.iter().sum(), 5);
    for row in data.x.chunks_exact_mut(case.pitch) {
        row[case.cols..].fill(<T as Element>::from_f64(f64::NAN));
    }
    let fits = own_rows(&sizes, case.l2);
    let found = data.fit(device, &case, &fits)?;
    for (i, fit) in fits.iter().enumerate().filter(|(_, fit)| fit.rows > 0) {
        ensure!(found.outcomes[i].end == End::Met, "{:?}", found.outcomes[i]);
        data.judge(&case, fit, found.theta(i))
            .with_context(|| format!("fit {i}"))?;
    }
    Ok(())
}

/// A NaN, an infinity: the others have the same bits as without them.
fn not_finite_is_alone<T: Number>(device: &Device) -> Result<()> {
    let case = Case::new(5, Loss::Logistic);
    let sizes = [34, 33, 20, 47];
    let fits = own_rows(&sizes, case.l2);
    let clean = Data::<T>::draw(&case, sizes.iter().sum(), 6);
    let truth = clean.fit(device, &case, &fits)?;
    let mut data = clean.clone();
    // The last number of the second fit, and the first of the fourth.
    data.x[67 * case.cols - 1] = <T as Element>::from_f64(f64::NAN);
    data.x[87 * case.cols] = <T as Element>::from_f64(f64::INFINITY);
    let found = data.fit(device, &case, &fits)?;
    for i in [0, 2] {
        ensure!(found.theta(i) == truth.theta(i), "fit {i} has other bits");
        ensure!(
            found.outcomes[i] == truth.outcomes[i],
            "fit {i} ended otherwise"
        );
    }
    let ends = [1, 3].map(|i| found.outcomes[i].end);
    ensure!(ends == [End::NotFinite; 2], "{ends:?}");
    Ok(())
}

/// A constant column beside an intercept, equal ones, one of zeros: the last does not move, and the minimum is one.
fn dependent_columns<T: Number>(device: &Device) -> Result<()> {
    for loss in [Loss::Squared, Loss::Logistic] {
        let case = Case {
            l2: 0.0,
            ..Case::new(5, loss)
        };
        let rows = 60;
        let mut data = Data::<T>::draw(&case, rows, 7);
        for row in data.x.chunks_exact_mut(case.cols) {
            row[1] = <T as Element>::from_f64(3.0);
            row[3] = row[0];
            row[4] = <T as Element>::from_f64(0.0);
        }
        let fits = own_rows(&[rows], case.l2);
        let found = data.fit(device, &case, &fits)?;
        let theta = found.theta(0);
        ensure!(found.outcomes[0].is_dependent, "{:?}", found.outcomes[0]);
        ensure!([2, 4, 5].map(|i| theta[i]) == [0.0; 3], "{theta:?}");
        data.judge(&case, &fits[0], theta)?;
    }
    Ok(())
}

/// Classes that no penalty holds together: the fit ends, with coefficients that separate them.
fn separable<T: Number>(device: &Device) -> Result<()> {
    let case = Case {
        l2: 0.0,
        ..Case::new(2, Loss::Logistic)
    };
    let rows = 40;
    let mut data = Data::<T>::draw(&case, rows, 8);
    for (i, row) in data.x.chunks_exact_mut(case.cols).enumerate() {
        let sign = if i % 2 == 0 { 1.0 } else { -1.0 };
        row[0] = <T as Element>::from_f64(sign * (1.0 + (i % 7) as f64));
        data.targets[i] = <T as Element>::from_f64(0.5 + 0.5 * sign);
    }
    let found = data.fit(device, &case, &own_rows(&[rows], 0.0))?;
    let theta = found.theta(0);
    ensure!(theta.iter().all(|w| w.is_finite()), "{theta:?}");
    for (i, row) in data.x.chunks_exact(case.cols).enumerate() {
        let x = |j: usize| Element::to_f64(row[j]);
        let t = theta[0] + theta[1] * x(0) + theta[2] * x(1);
        ensure!((t > 0.0) == (i % 2 == 0), "row {i} has the predictor {t}");
    }
    Ok(())
}

/// One step of many, no fit at all, and what cannot be.
fn limits_and_errors<T: Number>(device: &Device) -> Result<()> {
    let case = Case::new(2, Loss::Logistic);
    let data = Data::<T>::draw(&case, 10, 9);
    ensure!(
        data.fit(device, &case, &[])?.outcomes.is_empty(),
        "no fits, no outcomes"
    );
    let wrong = own_rows(&[11], 0.1);
    let error = data.fit(device, &case, &wrong).expect_err("a row too many");
    let error = error.downcast::<OpError>()?;
    let said = error.to_string();
    let is_length = matches!(error, OpError::Length { .. });
    ensure!(
        is_length && said.contains("11") && said.contains("10"),
        "{said}"
    );
    let wide = Case::new(65, Loss::Logistic);
    let error = Data::<T>::draw(&wide, 3, 9).fit(device, &wide, &own_rows(&[3], 0.1));
    let error = error.expect_err("too many columns").downcast::<OpError>()?;
    ensure!(
        matches!(error, OpError::TooLarge { limit: 64, .. }),
        "{error}"
    );
    let x = device.upload(&data.x)?;
    let targets = device.upload(&data.targets)?;
    let rows = FitRows {
        x: &x,
        rows: 10,
        cols: 2,
        pitch: 2,
        targets: &targets,
        weights: None,
        offset: None,
    };
    let rules = FitRules {
        max_iter: 1,
        tolerance: 0.0,
        ..FitRules::new(Loss::Logistic)
    };
    let found = minimise_each(&rows, &rules, &own_rows(&[10], 0.1), &[0.0; 3])?;
    let outcome = found.outcomes[0];
    ensure!(
        (outcome.end, outcome.n_iter) == (End::IterationLimit, 1),
        "{outcome:?}"
    );
    Ok(())
}
