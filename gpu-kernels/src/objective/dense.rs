//! Dense X (row-major): objective and gradient in one pass.
//!
//! Formula: as [`super::sparse`]. Mapping: as the fused pattern's kernels, whose body this is; see
//! [`crate::fused::dense`]. The rows that a team has in flight are shared out to its lanes for the losses.
//!
//! Shared memory: that of the pattern, and at least one f64 per warp at the end. Result: when the kernel has ended.
//! Guarantees: none for the bits, as atomics add in any order.

use super::args::ObjectiveArgs;
use super::judge::Judge;
use super::sparse::Compiled;
use super::{AnyLoss, Logistic, LossClass, Squared};
use crate::cg::is_over;
use crate::cta::Cta;
use crate::describe::Description;
use crate::fused::dense::variant;
use crate::fused::dense::walk::accumulate_rows;
use crate::fused::{DenseArgs, DenseVariant, Lanes, Product, RowStore, Team, TeamSize, WholeBlock};
use crate::math::Elementary;
use crate::scalar::Pack;
use crate::table::{Launch, Violation};

/// The family of dense objectives.
pub struct DenseObjective<T>(core::marker::PhantomData<T>);

/// Arguments of dense objectives.
pub type DenseObjectiveArgs<'a, T> = ObjectiveArgs<'a, T, DenseArgs<'a, T>>;

/// What distinguishes dense objectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DenseObjectiveVariant {
    /// The losses.
    pub class: LossClass,
    /// As of the fused pattern.
    pub dense: DenseVariant,
}

#[inline(always)]
fn objective<C, T, P, G, L, const K: usize, const R: usize>(
    cta: &C,
    args: &DenseObjectiveArgs<'_, T>,
) where
    C: Cta,
    T: Elementary,
    P: Pack<T>,
    G: Team,
    L: Compiled<T>,
{
    if is_over(cta, args.rows.solve) {
        return;
    }
    let mut judge = Judge::<T, L, 1>::new(cta, &args.rows, L::of(&args.rows), args.x.rows as u64);
    accumulate_rows::<C, T, P, G, _, K, R>(cta, &args.x, &mut judge);
    judge.finish(cta);
}

fn check<T: Elementary>(
    variant: &DenseObjectiveVariant,
    launch: &Launch,
    args: &DenseObjectiveArgs<'_, T>,
) -> Result<(), Violation> {
    crate::fused::dense::contract::check(&variant.dense, launch, &args.x)?;
    super::check_scratch(launch)?;
    args.rows.check(args.x.rows as u64)
}

/// What an entry does.
const fn describe<T: Elementary>(variant: &DenseObjectiveVariant) -> Description {
    super::with_sums(variant::describe::<T>(&variant.dense))
}

/// Rows: `lanes per row, elements per load: (packs per thread, rows in flight)…`.
macro_rules! dense_objectives {
    (
        $t:ident;
        lanes { $( $v:literal $w:literal: $( ($k:literal, $r:literal) )* ; )* }
        block { $( $bw:literal: $( ($bk:literal, $br:literal) )* ; )* }
    ) => {
        crate::kernels! {
            family DenseObjective<$t>, "objective";
            args DenseObjectiveArgs<'a, $t>;
            variant DenseObjectiveVariant;
            check check::<$t>;
            describe describe::<$t>;
            $( $(
                concat!("objective_dense_squared_", stringify!($t), "_vs", $v, "_w", $w, "_k", $k, "_r", $r),
                dense_objectives!(@ Squared, TeamSize::Lanes($v), $w, $k, $r)
                    => objective::<_, $t, [$t; $w], Lanes<$v>, Squared, $k, $r>;
                concat!("objective_dense_logistic_", stringify!($t), "_vs", $v, "_w", $w, "_k", $k, "_r", $r),
                dense_objectives!(@ Logistic, TeamSize::Lanes($v), $w, $k, $r)
                    => objective::<_, $t, [$t; $w], Lanes<$v>, Logistic, $k, $r>;
                concat!("objective_dense_any_", stringify!($t), "_vs", $v, "_w", $w, "_k", $k, "_r", $r),
                dense_objectives!(@ Any, TeamSize::Lanes($v), $w, $k, $r)
                    => objective::<_, $t, [$t; $w], Lanes<$v>, AnyLoss<$t>, $k, $r>;
            )* )*
            $( $(
                concat!("objective_dense_squared_", stringify!($t), "_block_w", $bw, "_k", $bk, "_r", $br),
                dense_objectives!(@ Squared, TeamSize::Block, $bw, $bk, $br)
                    => objective::<_, $t, [$t; $bw], WholeBlock, Squared, $bk, $br>;
                concat!("objective_dense_logistic_", stringify!($t), "_block_w", $bw, "_k", $bk, "_r", $br),
                dense_objectives!(@ Logistic, TeamSize::Block, $bw, $bk, $br)
                    => objective::<_, $t, [$t; $bw], WholeBlock, Logistic, $bk, $br>;
                concat!("objective_dense_any_", stringify!($t), "_block_w", $bw, "_k", $bk, "_r", $br),
                dense_objectives!(@ Any, TeamSize::Block, $bw, $bk, $br)
                    => objective::<_, $t, [$t; $bw], WholeBlock, AnyLoss<$t>, $bk, $br>;
            )* )*
        }
    };
    (@ $class:ident, $team:expr, $w:literal, $k:literal, $r:literal) => {
        DenseObjectiveVariant {
            class: LossClass::$class,
            dense: DenseVariant { product: Product::Fused, team: $team, tl: $w * $k, width: $w, rows: $r, held: RowStore::Registers },
        }
    };
}

// Loads of one element are for rows that padding to 16 bytes would lengthen too much: n up to 21 (f32) and 7 (f64).
dense_objectives! {
    f32;
    lanes {
        4 1: (1, 4);
        32 1: (1, 8);
        4 4: (1, 4);
        8 4: (1, 8);
        16 4: (1, 8);
        32 4: (1, 8) (2, 4) (4, 2);
    }
    block { 4: (2, 2) (6, 1); }
}

dense_objectives! {
    f64;
    lanes {
        8 1: (1, 8);
        4 2: (1, 4);
        8 2: (1, 8);
        16 2: (1, 8);
        32 2: (1, 8) (2, 4) (4, 2) (8, 1);
    }
    block { 2: (2, 2) (6, 1); }
}
