//! Does what was chosen.

use super::choice::Direct;
use super::design::Reads;
use super::outcome::{Solved, Start, Watch};
use super::problem::Problem;
use super::{dual, interior, least_squares, newton, wide, working_set};
use crate::learning::solver::Limits;

/// Minimises by this method.
pub(in crate::learning) fn minimise(
    problem: &Problem<'_>,
    method: Direct,
    start: Start,
    limits: &Limits,
    watch: &mut Watch<'_>,
) -> Solved {
    if method == Direct::Dual
        && let Some(solved) = dual::minimise(problem, limits, watch)
    {
        return solved;
    }
    match method {
        _ if wide::is_wide(problem) => wide::minimise(problem, method, start, limits, watch),
        Direct::LeastSquares => least_squares::minimise(problem, start, limits, watch),
        Direct::Qr => least_squares::by_triangle(problem, start, limits, watch),
        Direct::Svd => least_squares::by_factors(problem, start, limits, watch),
        Direct::InteriorPoint => interior::minimise(problem, start, limits, watch),
        Direct::Cholesky | Direct::Dual => newton::minimise(problem, start, limits, watch),
        Direct::Products | Direct::Stored => {
            newton::minimise_by_products(problem, start, limits, watch)
        }
        Direct::CoordinateDescent if problem.columns() > working_set::FEW_COLUMNS => {
            working_set::minimise(problem, start, limits, watch)
        }
        Direct::CoordinateDescent => newton::minimise(problem, start, limits, watch),
    }
}

/// How often `method` reads X̃ of `rows` × `columns`: normal equations and the space of the rows are formed once.
pub(in crate::learning) fn reads(
    (rows, columns): (usize, usize),
    method: Direct,
    quadratic: bool,
) -> Reads {
    let by_sets = method == Direct::CoordinateDescent && columns > working_set::FEW_COLUMNS;
    let over_rows = columns > rows && method != Direct::CoordinateDescent;
    if method == Direct::Stored {
        Reads::Stored
    } else if over_rows || quadratic && !by_sets {
        Reads::Few
    } else {
        Reads::Many
    }
}
