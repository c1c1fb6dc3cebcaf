//! Losses of rows whose products with y have been computed before: for X too wide to be read once, and for
//! objectives without a gradient.
//!
//! Formula: as [`super::sparse`], given p = X·y, without w. Mapping: thread i takes rows i, i + threads of the grid,
//! …. Shared memory: one f64 per warp, and a word. Guarantees: the sums depend on the order of atomics, or on the grid alone
//! where they are wanted in order: then the block that ends last adds those of all blocks.

use super::args::{ObjectiveArgs, Products};
use super::judge::Judge;
use super::{AnyLoss, check_scratch, scratch_bytes};
use crate::cta::{Cache, Cta, WARP};
use crate::math::Elementary;
use crate::table::{Launch, Violation};
use crate::verbs::each_of_grid;

/// The family of losses of rows.
pub struct RowObjective<T>(core::marker::PhantomData<T>);

/// Arguments of losses of rows.
pub type RowObjectiveArgs<'a, T> = ObjectiveArgs<'a, T, Products<'a, T>>;

/// How the sums of blocks are added; either kernel is for any loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowObjectiveVariant {
    /// By atomics, to what the sums hold.
    Atomic,
    /// By the last block, in the order of the blocks.
    InOrder,
}

#[inline(always)]
fn judged<'a, 'b, C: Cta, T: Elementary>(
    cta: &C,
    args: &'b RowObjectiveArgs<'a, T>,
) -> Judge<'a, 'b, T, AnyLoss<T>, 1> {
    let Products { rows, products, .. } = args.x;
    let mut judge = Judge::<T, _, 1>::new(cta, &args.rows, AnyLoss(args.rows.loss), rows);
    each_of_grid(
        cta,
        rows,
        // Two kernels have this loop, and a kernel is loaded without the others.
        #[inline(always)]
        |row| {
            let dot = cta.load(products, row, Cache::Once);
            let point = judge.point(dot, judge.given(cta, row as u64));
            judge.count(cta, row as u64, point);
        },
    );
    judge
}

fn objective<C: Cta, T: Elementary>(cta: &C, args: &RowObjectiveArgs<'_, T>) {
    judged(cta, args).finish(cta);
}

fn objective_in_order<C: Cta, T: Elementary>(cta: &C, args: &RowObjectiveArgs<'_, T>) {
    judged(cta, args).finish_in_order(cta, args.x.partials, args.x.counter);
}

/// Shared memory of a block that adds in order: a flag beside the sums of its warps.
pub const fn in_order_bytes(block: u32) -> u64 {
    scratch_bytes(block) + 8
}

fn check<T: Elementary>(
    variant: &RowObjectiveVariant,
    launch: &Launch,
    args: &RowObjectiveArgs<'_, T>,
) -> Result<(), Violation> {
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    check_scratch(launch)?;
    Violation::at_least("length of products", args.x.rows, args.x.products.len())?;
    if *variant == RowObjectiveVariant::InOrder {
        let (needed, partials) = (3 * launch.grid as u64, args.x.partials.len());
        let shared = in_order_bytes(launch.block);
        Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
        Violation::at_least("length of partials", needed, partials)?;
        Violation::at_least("length of the counter", 1, args.x.counter.len())?;
    }
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
            concat!("objective_rows_", stringify!($t)), RowObjectiveVariant::Atomic
                => objective::<_, $t>;
            concat!("objective_rows_in_order_", stringify!($t)), RowObjectiveVariant::InOrder
                => objective_in_order::<_, $t>;
        }
    };
}

row_objective!(f32);
row_objective!(f64);
