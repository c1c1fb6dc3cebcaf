//! Which solver cannot solve which problem, and what to do instead.

use super::choice::{Constraint, MOST_FORCED, Place, Shape, choose};
use crate::learning::FitError;
use crate::learning::solver::Solver;

/// Whether the solver requested can solve the problem where X is.
///
/// # Errors
/// [`FitError::Combination`] with what to do instead.
pub(in crate::learning) fn check(shape: &Shape, asked: Solver) -> Result<(), FitError> {
    let refuse = |first, second, remedy| {
        Err(FitError::Combination {
            first,
            second,
            remedy,
        })
    };
    let needs = match shape.constraint {
        _ if shape.kinked => Some("a loss with kinks"),
        Constraint::None => None,
        Constraint::Factors => Some("penalty factors of 0, or of an elastic net"),
        Constraint::NonNegative => Some("coefficients that may not be negative"),
    };
    if shape.kinked && shape.constraint == Constraint::NonNegative {
        let remedy = "use a loss without kinks, such as Huber's";
        return refuse(
            "coefficients that may not be negative",
            "a loss with kinks",
            remedy,
        );
    }
    if let Some(needs) = needs {
        return check_host(shape, asked, needs);
    }
    let first = match asked {
        Solver::Auto | Solver::NewtonCg | Solver::Lbfgs | Solver::ConjugateGradient => {
            return Ok(());
        }
        Solver::NewtonCholesky => "solver newton-cholesky",
        Solver::CoordinateDescent => "solver coordinate-descent",
        Solver::Qr => return check_triangle(shape),
        Solver::Svd => "solver svd",
        Solver::InteriorPoint => "solver interior-point",
    };
    if asked == Solver::InteriorPoint {
        return refuse(first, "a loss without kinks", "leave the choice to auto");
    }
    if let Some(place) = shape.place.has_no_rows() {
        return refuse(first, place.what, place.remedy_of_solver);
    }
    match asked {
        Solver::NewtonCholesky | Solver::Svd if shape.has_l1 => {
            refuse(first, "an l1 penalty", "use coordinate-descent")
        }
        Solver::Svd if !shape.quadratic => {
            refuse(first, "a loss that is no square", "use newton-cholesky")
        }
        Solver::NewtonCholesky
            if shape.coordinates() > MOST_FORCED && shape.over_rows().is_none() =>
        {
            refuse(
                first,
                "this number of coefficients",
                "use newton-cg or lbfgs",
            )
        }
        _ => Ok(()),
    }
}

/// Of R of X itself.
fn check_triangle(shape: &Shape) -> Result<(), FitError> {
    let of_gpu = shape.no_triangle.filter(|_| shape.place == Place::Device);
    let in_the_way = match shape.place.has_no_rows() {
        Some(place) if shape.place == Place::Shared => Some((place.what, place.remedy_of_solver)),
        _ if shape.has_l1 => Some(("an l1 penalty", "use coordinate-descent")),
        _ if !shape.quadratic => Some(("a loss that is no square", "use newton-cholesky")),
        _ if shape.cols > shape.rows => Some((
            "more columns than rows",
            "use svd, newton-cholesky or conjugate-gradient",
        )),
        Some(_) => of_gpu.map(|what| (what, "use conjugate-gradient, or fit on the CPU")),
        None if shape.coordinates() > MOST_FORCED => {
            Some(("this number of coefficients", "use conjugate-gradient"))
        }
        None => None,
    };
    match in_the_way {
        None => Ok(()),
        Some((second, remedy)) => Err(FitError::Combination {
            first: "solver qr",
            second,
            remedy,
        }),
    }
}

/// Of a problem that the host alone can solve.
fn check_host(shape: &Shape, asked: Solver, needs: &'static str) -> Result<(), FitError> {
    let refuse = |second, remedy| {
        Err(FitError::Combination {
            first: needs,
            second,
            remedy,
        })
    };
    if let Some(place) = shape.place.has_no_rows() {
        return refuse(place.what, place.remedy);
    }
    if asked != Solver::Auto && asked != choose(shape, Solver::Auto).solver {
        return refuse("another solver than its own", "leave the choice to auto");
    }
    let narrow = shape.coordinates() <= MOST_FORCED || shape.over_rows().is_some();
    let by_sets = shape.has_l1 && !shape.kinked || shape.constraint == Constraint::NonNegative;
    if !narrow && !by_sets {
        return refuse(
            "this number of columns",
            "leave columns out, or reduce them by train svd",
        );
    }
    Ok(())
}
