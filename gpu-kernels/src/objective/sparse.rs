//! Sparse X (CSR): objective and gradient in one pass.
//!
//! Formula: `w += Xᵀg`, `sums += (Σ v·loss, Σ g, Σ d)`, g and d as in [`super::Point`], at t = X·y + c + o; w holds
//! β·z (or zero) before, the sums zero.
//!
//! Mapping, w's place, shared memory of w: as the fused pattern's kernels, whose body this is; see
//! [`crate::fused::sparse`]. All lanes of a row evaluate its loss; the first of them counts it. A row of slope 0 (a
//! masked one, one beyond the hinge) is not added to w.
//!
//! Shared memory: w's, and at least one f64 per warp at the end. Result: when the kernel has ended. Guarantees: none
//! for the bits, as atomics add in any order.

use super::args::ObjectiveArgs;
use super::head;
use super::judge::Judge;
use super::{AnyLoss, Logistic, LossClass, RowArgs, RowLoss, Squared};
use crate::cg::is_over;
use crate::cta::Cta;
use crate::describe::Description;
use crate::fused::head::{HeadedArgs, check_places};
use crate::fused::sparse::variant;
use crate::fused::sparse::{self, InGlobal, InShared, Target, accumulate_rows};
use crate::fused::{Place, Product, SparseVariant};
use crate::math::Elementary;
use crate::table::{Launch, Violation};

/// The family of sparse objectives.
pub struct SparseObjective<T>(core::marker::PhantomData<T>);

/// Arguments of sparse objectives.
pub type SparseObjectiveArgs<'a, T> = ObjectiveArgs<'a, T, HeadedArgs<'a, T>>;

/// How the columns of X are distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Columns {
    /// Not at all.
    Alike,
    /// The most frequent ones lie in a [`head`](crate::fused::head).
    Headed,
}

/// What distinguishes sparse objectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseObjectiveVariant {
    /// The losses.
    pub class: LossClass,
    /// As of the fused pattern; with a head, w's other elements are in global memory.
    pub sparse: SparseVariant,
    /// The columns.
    pub columns: Columns,
}

/// A loss that a kernel is compiled for.
pub(super) trait Compiled<T>: RowLoss<T> {
    fn of(args: &RowArgs<'_, T>) -> Self;
}

impl<T: Elementary> Compiled<T> for Squared {
    #[inline(always)]
    fn of(_: &RowArgs<'_, T>) -> Self {
        Squared
    }
}

impl<T: Elementary> Compiled<T> for Logistic {
    #[inline(always)]
    fn of(_: &RowArgs<'_, T>) -> Self {
        Logistic
    }
}

impl<T: Elementary> Compiled<T> for AnyLoss<T> {
    #[inline(always)]
    fn of(args: &RowArgs<'_, T>) -> Self {
        AnyLoss(args.loss)
    }
}

#[inline(always)]
fn objective<C, T, L, W, const VS: u32, const K: usize>(cta: &C, args: &SparseObjectiveArgs<'_, T>)
where
    C: Cta,
    T: Elementary,
    L: Compiled<T>,
    W: Target<T>,
{
    if is_over(cta, args.rows.solve) {
        return;
    }
    let x = &args.x.x;
    let target = W::open(cta, x);
    let mut judge = Judge::<T, L, VS>::new(cta, &args.rows, L::of(&args.rows), x.rows as u64);
    accumulate_rows::<C, T, W, _, VS, K>(cta, x, &target, &mut judge);
    target.flush(cta, x);
    judge.finish(cta);
}

fn check<T: Elementary>(
    variant: &SparseObjectiveVariant,
    launch: &Launch,
    args: &SparseObjectiveArgs<'_, T>,
) -> Result<(), Violation> {
    let x = &args.x.x;
    sparse::check(&variant.sparse, launch, x)?;
    super::check_scratch(launch)?;
    if variant.columns == Columns::Headed {
        check_places(launch, &args.x)?;
    }
    args.rows.check(x.rows as u64)
}

/// What an entry does; those with a head are chosen beside the planner, by what X looks like.
const fn describe<T: Elementary>(variant: &SparseObjectiveVariant) -> Description {
    match variant.columns {
        Columns::Alike => super::with_sums(variant::describe::<T>(&variant.sparse)),
        Columns::Headed => Description::UNPLANNED,
    }
}

macro_rules! sparse_objectives {
    ($t:ident: $( ($vs:literal, $held:literal) )*; head $( ($head_vs:literal, $head_held:literal) )*) => {
        crate::kernels! {
            family SparseObjective<$t>, "objective";
            args SparseObjectiveArgs<'a, $t>;
            variant SparseObjectiveVariant;
            check check::<$t>;
            describe describe::<$t>;
            $(
                concat!("objective_sparse_squared_shared_", stringify!($t), "_vs", $vs),
                sparse_objectives!(@ Squared, Shared, $vs, $held) => objective::<_, $t, Squared, InShared<$t>, $vs, $held>;
                concat!("objective_sparse_squared_global_", stringify!($t), "_vs", $vs),
                sparse_objectives!(@ Squared, Global, $vs, $held) => objective::<_, $t, Squared, InGlobal, $vs, $held>;
                concat!("objective_sparse_logistic_shared_", stringify!($t), "_vs", $vs),
                sparse_objectives!(@ Logistic, Shared, $vs, $held) => objective::<_, $t, Logistic, InShared<$t>, $vs, $held>;
                concat!("objective_sparse_logistic_global_", stringify!($t), "_vs", $vs),
                sparse_objectives!(@ Logistic, Global, $vs, $held) => objective::<_, $t, Logistic, InGlobal, $vs, $held>;
                concat!("objective_sparse_any_shared_", stringify!($t), "_vs", $vs),
                sparse_objectives!(@ Any, Shared, $vs, $held) => objective::<_, $t, AnyLoss<$t>, InShared<$t>, $vs, $held>;
                concat!("objective_sparse_any_global_", stringify!($t), "_vs", $vs),
                sparse_objectives!(@ Any, Global, $vs, $held) => objective::<_, $t, AnyLoss<$t>, InGlobal, $vs, $held>;
            )*
            $(
                concat!("objective_sparse_squared_head_", stringify!($t), "_vs", $head_vs),
                sparse_objectives!(@ head Squared, $head_vs, $head_held) => head::objective::<_, $t, Squared, $head_vs, $head_held>;
                concat!("objective_sparse_logistic_head_", stringify!($t), "_vs", $head_vs),
                sparse_objectives!(@ head Logistic, $head_vs, $head_held) => head::objective::<_, $t, Logistic, $head_vs, $head_held>;
                concat!("objective_sparse_any_head_", stringify!($t), "_vs", $head_vs),
                sparse_objectives!(@ head Any, $head_vs, $head_held) => head::objective::<_, $t, AnyLoss<$t>, $head_vs, $head_held>;
            )*
        }
    };
    (@ $class:ident, $place:ident, $vs:literal, $held:literal) => {
        SparseObjectiveVariant {
            class: LossClass::$class,
            sparse: SparseVariant { product: Product::Fused, place: Place::$place, vs: $vs, held: $held },
            columns: Columns::Alike,
        }
    };
    (@ head $class:ident, $vs:literal, $held:literal) => {
        SparseObjectiveVariant {
            columns: Columns::Headed,
            ..sparse_objectives!(@ $class, Global, $vs, $held)
        }
    };
}

sparse_objectives!(f32: (2, 4) (4, 5) (8, 3) (16, 2) (32, 2); head (8, 3) (16, 2) (32, 4));
sparse_objectives!(f64: (2, 4) (4, 5) (8, 3) (16, 2) (32, 2); head (8, 2) (16, 2) (32, 3));
