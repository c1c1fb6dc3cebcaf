//! An l1 penalty on many columns: problems over the few that matter, until no other column does.
//!
//! Each outer iteration takes the columns that are not 0 and those that violate the optimality conditions most, minimises
//! over them ([`super::newton`]), and looks at all columns again: one pass over X.
//!
//! Source: M. Massias, A. Gramfort, J. Salmon, "Celer: a fast solver for the lasso with dual extrapolation", ICML 2018
//! (working sets that double); T. Johnson, C. Guestrin, "Blitz: a principled meta-algorithm for scaling sparse
//! optimization", ICML 2015.

use std::ops::ControlFlow;
use std::time::Instant;

use super::newton::{Newton, Target};
use super::outcome::{Solved, Start, Watch};
use super::problem::{At, Problem};
use crate::learning::cg::Convergence;
use crate::learning::checkpoint::{Record, session};
use crate::learning::solver::{Iteration, Limits, ratio, stops};
use crate::ops::OpError;

/// Columns up to which all are taken at once.
pub(super) const FEW_COLUMNS: usize = 256;
/// Columns of the first working set, besides those that are not 0.
const FIRST: usize = 64;
/// What is left of the gradient's norm by an inner solve, unless that is less than is requested.
const INNER: f64 = 0.1;
/// Inner iterations of one outer one.
const INNER_STEPS: usize = 100;

/// Minimises `problem` from where it begins.
pub(super) fn minimise(
    problem: &Problem<'_>,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    let mut begun = Instant::now();
    let first = start.cold.map(|cold| problem.at(cold));
    let mut at = problem.at(start.theta);
    let first = first.as_ref().unwrap_or(&at);
    let (first_norm, first_value) = (first.norm, first.value);
    let target = Target::of(limits, (first_norm, first_value));
    let mut n_iter = 0;
    let mut size = FIRST;
    if let Some(found) = start.found.and_then(|found| Sets::of(&found).ok()) {
        at = problem.at(found.theta);
        (n_iter, size, begun) = (found.n_iter, found.size, found.begun);
    }
    let (convergence, gap) = loop {
        if n_iter > 0 {
            let theta = &at.theta;
            Sets::save_if_due((theta, begun), (n_iter, size));
        }
        if !(at.value.is_finite() && at.norm.is_finite()) {
            break (Convergence::NotFinite, None);
        }
        let (met, gap) = target.is_met(problem, &at);
        if met {
            break (Convergence::Converged, gap);
        }
        if n_iter >= limits.max_iter {
            break (Convergence::IterationLimit, gap);
        }
        let columns = working_set(problem, &at, size);
        let (next, inner) = solved_over(problem, &at, &columns, target);
        n_iter += 1;
        size = size.max(columns.len()).saturating_mul(2);
        let stands = !(next.value < at.value || next.norm < at.norm);
        let all = columns.len() == problem.design.width();
        if !stands {
            at = next;
        }
        let shown = iteration(&at, first_norm, inner, begun);
        let goes_on = watch(shown, &|| at.theta.clone());
        if goes_on.is_break() {
            break (Convergence::IterationLimit, gap);
        }
        if stands && all {
            break (Convergence::Stalled, None);
        }
    };
    Solved {
        objective: at.value,
        gradient_ratio: ratio(at.norm, first_norm),
        gap: gap.or_else(|| super::gap::duality_gap(problem, &at)),
        n_iter,
        convergence,
        theta: at.theta,
        instead: None,
    }
}

/// Where a checkpoint found the iteration.
struct Sets {
    theta: Vec<f64>,
    n_iter: usize,
    size: usize,
    begun: Instant,
}

impl Sets {
    fn of(found: &Record) -> Result<Sets, OpError> {
        let [n_iter, size, seconds] = found.array("sets")?;
        Ok(Sets {
            theta: found.list_of("theta")?,
            n_iter: n_iter as usize,
            size: size as usize,
            begun: stops::begun(seconds),
        })
    }

    fn save_if_due((theta, begun): (&[f64], Instant), (n_iter, size): (usize, usize)) {
        if !session::is_due() {
            return;
        }
        // Numbers of the host are always written.
        let _ = session::save(|record| {
            record.numbers("theta", theta);
            let [n_iter, size] = [n_iter, size].map(|count| count as f64);
            record.numbers("sets", &[n_iter, size, begun.elapsed().as_secs_f64()]);
            Ok(())
        });
    }
}

fn iteration(at: &At, first_norm: f64, inner: usize, begun: Instant) -> Iteration {
    Iteration {
        objective: at.value,
        gradient_ratio: ratio(at.norm, first_norm),
        inner,
        seconds: begun.elapsed().as_secs_f64(),
        validation: None,
    }
}

/// Columns with a coefficient, the intercept's, and the `size` that violate most.
fn working_set(problem: &Problem<'_>, at: &At, size: usize) -> Vec<usize> {
    let (k, width) = (problem.predictors(), problem.design.width());
    let of =
        |column: usize| (column * k..(column + 1) * k).map(|i| (at.theta[i], at.gradient[i], i));
    let stays =
        |column: usize| column >= problem.columns() || of(column).any(|(theta, _, _)| theta != 0.0);
    let mut columns: Vec<usize> = (0..width).filter(|column| stays(*column)).collect();
    let violation = |column: usize| -> f64 {
        of(column)
            .map(|(theta, g, i)| problem.kink(i).least_subgradient(g, theta).powi(2))
            .sum()
    };
    let mut others: Vec<(f64, usize)> = (0..problem.columns())
        .filter(|column| !stays(*column) && !problem.held[*column])
        .map(|column| (violation(column), column))
        .filter(|(violation, _)| *violation > 0.0)
        .collect();
    others.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    columns.extend(others.iter().take(size).map(|(_, column)| *column));
    columns.sort_unstable();
    columns
}

/// The point after a minimisation over some columns, and its iterations.
fn solved_over(problem: &Problem<'_>, at: &At, columns: &[usize], target: Target) -> (At, usize) {
    let k = problem.predictors();
    let part = problem.select(columns);
    let places = || {
        columns
            .iter()
            .flat_map(move |column| column * k..(column + 1) * k)
    };
    let theta: Vec<f64> = places().map(|i| at.theta[i]).collect();
    let inner_target = Target {
        norm: (INNER * at.norm).max(0.5 * target.norm).min(0.5 * at.norm),
        gap: f64::INFINITY,
        floor: 0.0,
    };
    let begin = part.at(theta);
    let first = (begin.norm, begin.value);
    let mut newton = Newton::new(&part, begin, first);
    let mut inner = 0;
    newton.run_to(inner_target, INNER_STEPS, &mut |_, _| {
        inner += 1;
        ControlFlow::Continue(())
    });
    let mut theta = at.theta.clone();
    for (i, value) in places().zip(newton.into_theta()) {
        theta[i] = value;
    }
    (problem.at(theta), inner)
}
