//! Losses of rows whose products with y have been computed before: for X too wide to be read once, and for
//! objectives without a gradient.
//!
//! Formula: as [`super::sparse`], given p = X·y, without w. Mapping: thread i takes rows i, i + threads of the grid,
//! …. Shared memory: one f64 per warp. Guarantees: the sums depend on the order of atomics.

use super::args::{ObjectiveArgs, Products};
use super::judge::Judge;
use super::{AnyLoss, check_scratch};
use crate::cta::{Cache, Cta, WARP};
use crate::math::Elementary;
use crate::table::{Launch, Violation};
use crate::verbs::each_of_grid;

/// The family of losses of rows.
pub struct RowObjective<T>(core::marker::PhantomData<T>);

/// Arguments of losses of rows.
pub type RowObjectiveArgs<'a, T> = ObjectiveArgs<'a, T, Products<'a, T>>;

/// There is one kernel, for any loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowObjectiveVariant;

fn objective<C: Cta, T: Elementary>(cta: &C, args: &RowObjectiveArgs<'_, T>) {
    let Products { rows, products } = args.x;
    let mut judge = Judge::<T, _, 1>::new(cta, &args.rows, AnyLoss(args.rows.loss), rows);
    each_of_grid(cta, rows, |row| {
        let dot = cta.load(products, row, Cache::Once);
        let point = judge.point(dot, judge.given(cta, row as u64));
        judge.count(cta, row as u64, point);
    });
    judge.finish(cta);
}

fn check<T: Elementary>(
    _: &RowObjectiveVariant,
    launch: &Launch,
    args: &RowObjectiveArgs<'_, T>,
) -> Result<(), Violation> {
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    check_scratch(launch)?;
    Violation::at_least("length of products", args.x.rows, args.x.products.len())?;
    args.rows.check(args.x.rows)
}

macro_rules! row_objective {
    ($t:ident) => {
        crate::kernels! {
            family RowObjective<$t>, "objective";
            args RowObjectiveArgs<'a, $t>;
            variant RowObjectiveVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("objective_rows_", stringify!($t)), RowObjectiveVariant => objective::<_, $t>;
        }
    };
}

row_objective!(f32);
row_objective!(f64);
