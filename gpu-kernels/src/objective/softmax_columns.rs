//! The gradient of softmax objectives by columns: `W += Xᵀ·S` from the rows of Xᵀ.
//!
//! Formula: W(c, ·) += Σ x·S(r, ·) over the entries x of column c, r their rows; S is m × k and W n × k, row-major. S is
//! what [`super::softmax_sparse`] leaves of the rows where it adds nothing to W itself.
//!
//! Mapping: entries lie column after column. Each team of VS lanes takes an equal stretch of them, however long the columns
//! are: its lanes load VS entries together, find their columns between those of the stretch's ends, and hand them round by
//! shuffles. Lane c adds up its classes c, c + VS, …, Q of them, in registers, and adds them to W where a column ends: once
//! for each column of a stretch, not once for each entry. Rows of S are loaded for N entries before the first is used.
//!
//! Memory: 4 bytes and a value an entry, and k elements of S, by requests to L2 where S has more than L1 holds. Shared memory:
//! none. Guarantees: none for the bits, as stretches add to the columns that they share in any order. Elements of S that are
//! 0 take no part, whatever X holds in their rows.
//!
//! Source: the segmented sum of Blelloch, Heroux and Zagha (1993), with k sums in the lanes of a team.

use super::softmax::class;
use crate::cta::{Cache, Cta, Shuffle, WARP};
use crate::fused::SparseArgs;
use crate::fused::sparse;
use crate::math::Elementary;
use crate::table::{Launch, Violation};
use crate::verbs::{FULL, global_thread, global_threads, lane, row_of_entry};

/// The family of gradients of softmax objectives by columns.
pub struct SoftmaxColumns<T>(core::marker::PhantomData<T>);

/// Arguments of gradients by columns.
#[repr(C)]
pub struct SoftmaxColumnsArgs<'a, T> {
    /// Xᵀ: its rows are the n columns of X, its indices rows of X; S as `input`, W as `output`. Where `solve` has ended
    /// nothing is computed; weights, shift and addend are not used.
    pub transpose: SparseArgs<'a, T>,
    /// k.
    pub classes: u32,
}

impl<T: Copy> Clone for SoftmaxColumnsArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for SoftmaxColumnsArgs<'_, T> {}

/// What distinguishes gradients by columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SoftmaxColumnsVariant {
    /// VS: lanes of a team.
    pub vs: u32,
    /// Q: classes per lane.
    pub per_lane: u32,
}

impl SoftmaxColumnsVariant {
    /// The most classes.
    pub const fn classes(&self) -> u32 {
        self.vs * self.per_lane
    }
}

/// An entry of X.
#[derive(Clone, Copy)]
struct Entry<T> {
    row: u32,
    column: u32,
    value: T,
}

/// What a team adds up of one column.
struct Sums<T, const Q: usize> {
    column: u32,
    of_classes: [T; Q],
}

impl<T: Elementary, const Q: usize> Sums<T, Q> {
    /// Adds them to W, and begins with another column.
    #[inline(always)]
    fn flush<C: Cta, const VS: u32>(
        &mut self,
        cta: &C,
        args: &SoftmaxColumnsArgs<'_, T>,
        next: u32,
    ) {
        let k = args.classes;
        for q in 0..Q {
            let (class, sum) = (class::<C, VS>(cta, q), self.of_classes[q]);
            if class < k && sum != T::ZERO {
                let at = self.column as usize * k as usize + class as usize;
                cta.add(args.transpose.output, at, sum);
            }
        }
        *self = Sums {
            column: next,
            of_classes: [T::ZERO; Q],
        };
    }
}

#[inline(always)]
fn add_up<C, T, const VS: u32, const Q: usize, const N: usize>(
    cta: &C,
    args: &SoftmaxColumnsArgs<'_, T>,
) where
    C: Cta,
    T: Elementary,
{
    let x = &args.transpose;
    let entries = x.indices.len();
    if entries == 0 || crate::cg::is_over(cta, x.solve) {
        return;
    }
    // 32 bits count entries. As many steps for every team, since the teams of a warp exchange together.
    let steps = entries.div_ceil(global_threads(cta));
    let begin = (global_thread(cta) / VS as u64 * VS as u64 * steps).min(entries);
    let end = (begin + VS as u64 * steps).min(entries);
    let first = begin.min(entries - 1) as u32;
    let first = row_of_entry(cta, x.offsets, (0, x.rows), first);
    let last = row_of_entry(cta, x.offsets, (first, x.rows), end as u32 - 1);
    let mut sums = Sums {
        column: first,
        of_classes: [T::ZERO; Q],
    };
    let mut from = begin;
    for _ in 0..steps {
        let own = load::<C, T, VS>(cta, x, (from, end), (sums.column, last));
        hand_round::<C, T, VS, Q, N>(cta, args, (own, end.saturating_sub(from)), &mut sums);
        from += VS as u64;
    }
    sums.flush::<C, VS>(cta, args, last);
}

/// This lane's entry of those from `from` on, in one of the columns `low..=high`; any where there is none.
#[inline(always)]
fn load<C: Cta, T: Elementary, const VS: u32>(
    cta: &C,
    x: &SparseArgs<'_, T>,
    (from, end): (u64, u64),
    columns: (u32, u32),
) -> Entry<T> {
    let i = from + (lane(cta) % VS) as u64;
    if i >= end {
        return Entry {
            row: 0,
            column: columns.1,
            value: T::ZERO,
        };
    }
    Entry {
        row: cta.load(x.indices, i as usize, Cache::Once),
        column: row_of_entry(cta, x.offsets, (columns.0, columns.1 + 1), i as u32),
        value: cta.load(x.values, i as usize, Cache::Once),
    }
}

/// Adds the first `left` of the lanes' entries to the sums, one after the other. The whole warp calls.
#[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
fn hand_round<C: Cta, T: Elementary, const VS: u32, const Q: usize, const N: usize>(
    cta: &C,
    args: &SoftmaxColumnsArgs<'_, T>,
    (own, left): (Entry<T>, u64),
    sums: &mut Sums<T, Q>,
) {
    let first = lane(cta) / VS * VS;
    for group in 0..VS / N as u32 {
        let some: [Entry<T>; N] = core::array::from_fn(|i| {
            let from = Shuffle::Index(first + group * N as u32 + i as u32);
            Entry {
                row: cta.shuffle(own.row, from, WARP, FULL),
                column: cta.shuffle(own.column, from, WARP, FULL),
                value: cta.shuffle(own.value, from, WARP, FULL),
            }
        });
        let slopes = some.map(|entry| slopes_of::<C, T, VS, Q>(cta, args, entry.row));
        for i in 0..N {
            if u64::from(group * N as u32 + i as u32) < left {
                add::<C, T, VS, Q>(cta, args, (some[i], slopes[i]), sums);
            }
        }
    }
}

/// Adds an entry to the sums of its column.
#[inline(always)]
fn add<C: Cta, T: Elementary, const VS: u32, const Q: usize>(
    cta: &C,
    args: &SoftmaxColumnsArgs<'_, T>,
    (entry, slopes): (Entry<T>, [T; Q]),
    sums: &mut Sums<T, Q>,
) {
    if entry.column != sums.column {
        sums.flush::<C, VS>(cta, args, entry.column);
    }
    let before = sums.of_classes;
    sums.of_classes = core::array::from_fn(|q| match slopes[q] == T::ZERO {
        true => before[q],
        false => entry.value.fma(slopes[q], before[q]),
    });
}

/// A row of S, of this lane's classes; of lanes without one the first class, which they do not use.
#[inline(always)]
fn slopes_of<C: Cta, T: Elementary, const VS: u32, const Q: usize>(
    cta: &C,
    args: &SoftmaxColumnsArgs<'_, T>,
    row: u32,
) -> [T; Q] {
    let k = args.classes;
    core::array::from_fn(|q| {
        let class = class::<C, VS>(cta, q);
        let class = if class < k { class } else { 0 };
        let at = row as usize * k as usize + class as usize;
        cta.load(args.transpose.input, at, Cache::Keep)
    })
}

fn check<T: Elementary>(
    variant: &SoftmaxColumnsVariant,
    launch: &Launch,
    args: &SoftmaxColumnsArgs<'_, T>,
) -> Result<(), Violation> {
    let (x, k) = (&args.transpose, args.classes as u64);
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    Violation::at_most("classes", variant.classes() as u64, k)?;
    Violation::at_least("classes", 1, k)?;
    Violation::at_least("columns", 1, x.rows as u64)?;
    sparse::check_csr(x)?;
    Violation::at_least("length of S", x.cols as u64 * k, x.input.len())?;
    Violation::at_least("length of output", x.rows as u64 * k, x.output.len())?;
    super::args::check_solve(&x.solve)
}

macro_rules! softmax_columns {
    ($t:ident: $( ($vs:literal, $q:literal, $ahead:literal) )*) => {
        crate::kernels! {
            family SoftmaxColumns<$t>, "objective";
            args SoftmaxColumnsArgs<'a, $t>;
            variant SoftmaxColumnsVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            $(
                concat!("softmax_columns_", stringify!($t), "_vs", $vs, "_q", $q),
                SoftmaxColumnsVariant { vs: $vs, per_lane: $q }
                    => add_up::<_, $t, $vs, $q, $ahead>;
            )*
        }
    };
}

softmax_columns!(f32: (4, 1, 4) (8, 1, 8) (16, 1, 8) (32, 1, 8) (32, 4, 2));
softmax_columns!(f64: (4, 1, 4) (8, 1, 8) (16, 1, 8) (32, 1, 8) (32, 4, 2));
