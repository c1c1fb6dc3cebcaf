//! Sparse X (CSR) times k columns, a softmax, and back, in one pass.
//!
//! Formula: see [`super::softmax`]. Mapping: a team of VS lanes owns a row. Its entries are loaded by the lanes
//! together, K of each stay in registers, and are handed round by shuffles: lane c multiplies each with its classes'
//! elements of Y, and later adds each times S to its classes' elements of W, so that both are whole stretches of
//! memory. Entries beyond VS · K are read a second time, from cache.
//!
//! Shared memory: n·k elements where W is placed there, and at least one f64 per thread at the end.

use super::softmax::{SoftmaxRows, Teams, check_launch, class};
use crate::cta::{Cache, Cta, Shared, Shuffle, WARP};
use crate::fused::sparse::{self, first_and_step};
use crate::fused::{Place, SparseArgs};
use crate::math::Elementary;
use crate::memory::Out;
use crate::table::{Launch, Violation};
use crate::verbs::{FULL, flush_shared, lane, max_lanes, zero_shared};

/// The family of sparse softmax objectives.
pub struct SparseSoftmax<T>(core::marker::PhantomData<T>);

/// Arguments of sparse softmax objectives.
#[repr(C)]
pub struct SparseSoftmaxArgs<'a, T> {
    /// X, with Y as `input` and W as `output`; its weights, shift and addend are not used.
    pub x: SparseArgs<'a, T>,
    /// The rows.
    pub rows: SoftmaxRows<'a, T>,
    /// S (m × k, row-major), optional: nothing is added to W then, which is left to [`SoftmaxColumns`](super::SoftmaxColumns).
    pub slopes: Out<'a, T>,
}

impl<T: Copy> Clone for SparseSoftmaxArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for SparseSoftmaxArgs<'_, T> {}

/// What distinguishes sparse softmax objectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SparseSoftmaxVariant {
    /// Where W lives.
    pub place: Place,
    /// VS: lanes per row.
    pub vs: u32,
    /// Q: classes per lane.
    pub per_lane: u32,
    /// K: entries per lane kept in registers.
    pub held: u32,
}

impl SparseSoftmaxVariant {
    /// The most classes.
    pub const fn classes(&self) -> u32 {
        self.vs * self.per_lane
    }

    /// Dynamic shared memory of a block of `block` threads for `elements` elements of W of `size` bytes.
    pub const fn shared_bytes(&self, block: u32, elements: u64, size: u32) -> u64 {
        let copy = match self.place {
            Place::Shared => elements * size as u64,
            _ => 0,
        };
        let scratch = super::softmax::scratch_bytes(block);
        if copy > scratch { copy } else { scratch }
    }
}

/// Entries `from..end` of a row, the first of a lane's `from + lane, from + lane + VS, …` held in registers.
struct Entries<T, const VS: u32, const K: usize> {
    from: u32,
    len: u32,
    /// Entries of the longest row of the warp.
    longest: u32,
    columns: [u32; K],
    values: [T; K],
}

impl<T: Elementary, const VS: u32, const K: usize> Entries<T, VS, K> {
    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn load<C: Cta>(cta: &C, x: &SparseArgs<'_, T>, row: u32) -> Self {
        let (mut from, mut len) = (0, 0);
        if row < x.rows {
            from = cta.load(x.offsets, row as usize, Cache::Keep);
            let end: u32 = cta.load(x.offsets, row as usize + 1, Cache::Keep);
            len = end - from;
        }
        let mut entries = Entries {
            from,
            len,
            longest: max_lanes(cta, len),
            columns: [0; K],
            values: [T::ZERO; K],
        };
        for q in 0..K {
            (entries.columns[q], entries.values[q]) = entries.chunk(cta, x, q as u32, Cache::Once);
        }
        entries
    }

    /// This lane's entry of chunk q.
    #[inline(always)]
    fn chunk<C: Cta>(&self, cta: &C, x: &SparseArgs<'_, T>, q: u32, cache: Cache) -> (u32, T) {
        let i = q * VS + lane(cta) % VS;
        if i < self.len {
            let at = (self.from + i) as usize;
            (
                cta.load(x.indices, at, cache),
                cta.load(x.values, at, cache),
            )
        } else {
            (0, T::ZERO)
        }
    }

    /// Calls `each` with the row's entries, N of them at a time, in all lanes of the team. The whole warp calls.
    #[inline(always)]
    fn each<C: Cta, const N: usize>(
        &self,
        cta: &C,
        x: &SparseArgs<'_, T>,
        mut each: impl FnMut([Option<(u32, T)>; N]),
    ) {
        for q in 0..K {
            let held = (self.columns[q], self.values[q]);
            self.hand_round(cta, q as u32, held, &mut each);
        }
        let mut q = K as u32;
        while q * VS < self.longest {
            let again = self.chunk(cta, x, q, Cache::Keep);
            self.hand_round(cta, q, again, &mut each);
            q += 1;
        }
    }

    #[cfg_attr(any(target_arch = "nvptx64", not(debug_assertions)), inline(always))]
    fn hand_round<C: Cta, const N: usize>(
        &self,
        cta: &C,
        q: u32,
        (column, value): (u32, T),
        each: &mut impl FnMut([Option<(u32, T)>; N]),
    ) {
        let first = lane(cta) / VS * VS;
        for group in 0..VS / N as u32 {
            let begin = group * N as u32;
            if q * VS + begin >= self.longest {
                return;
            }
            each(core::array::from_fn(|i| {
                let i = begin + i as u32;
                let from = Shuffle::Index(first + i);
                let column = cta.shuffle(column, from, WARP, FULL);
                let value = cta.shuffle(value, from, WARP, FULL);
                (q * VS + i < self.len).then_some((column, value))
            }));
        }
    }
}

/// What lanes add up of their classes over the entries of a row.
///
/// Elements of Y are loaded for `N` entries before the first is used, those that are not there from column 0: under a condition
/// each, the next load would wait for the sum before it.
#[inline(always)]
fn products<C, T, const VS: u32, const Q: usize, const K: usize, const N: usize>(
    cta: &C,
    args: &SparseSoftmaxArgs<'_, T>,
    entries: &Entries<T, VS, K>,
) -> [T; Q]
where
    C: Cta,
    T: Elementary,
{
    let (x, k) = (&args.x, args.rows.classes);
    let own: [u32; Q] = core::array::from_fn(|q| class::<C, VS>(cta, q));
    let mut dots = [T::ZERO; Q];
    entries.each::<_, N>(cta, x, |some| {
        let loaded: [[T; Q]; N] = some.map(|entry| {
            let column = entry.map_or(0, |(column, _)| column);
            own.map(|class| {
                let class = if class < k { class } else { 0 };
                cta.load(
                    x.input,
                    column as usize * k as usize + class as usize,
                    Cache::Keep,
                )
            })
        });
        for i in 0..N {
            if let Some((_, value)) = some[i] {
                dots = core::array::from_fn(|q| value.fma(loaded[i][q], dots[q]));
            }
        }
    });
    core::array::from_fn(|q| if own[q] < k { dots[q] } else { T::ZERO })
}

#[inline(always)]
fn softmax<C, T, const SHARED: bool, const VS: u32, const Q: usize, const K: usize>(
    cta: &C,
    args: &SparseSoftmaxArgs<'_, T>,
) where
    C: Cta,
    T: Elementary,
{
    if crate::cg::is_over(cta, args.rows.solve) {
        return;
    }
    let (x, k) = (&args.x, args.rows.classes);
    let copy = Shared::<T>::at(0, if SHARED { x.cols * k } else { 0 });
    if SHARED {
        zero_shared(cta, copy);
        cta.sync();
    }
    let mut teams = Teams::<T, VS, Q>::new(cta, &args.rows);
    let (mut first, step) = first_and_step::<C, VS>(cta);
    while first < x.rows as u64 {
        let row = first as u32 + lane(cta) / VS;
        let entries = Entries::<T, VS, K>::load(cta, x, row);
        let dots = match (Q, VS) {
            (1, 8..) => products::<_, _, VS, Q, K, 8>(cta, args, &entries),
            (1, _) => products::<_, _, VS, Q, K, 4>(cta, args, &entries),
            _ => products::<_, _, VS, Q, K, 2>(cta, args, &entries),
        };
        let there = (row < x.rows).then_some(row as usize);
        let slopes = teams.slopes(cta, there, true, dots);
        first += step;
        if args.slopes.is_some() {
            store::<C, T, VS, Q>(cta, args, there, slopes);
            continue;
        }
        entries.each(cta, x, |[entry]| {
            let Some((column, value)) = entry else {
                return;
            };
            for (q, slope) in slopes.iter().enumerate() {
                let class = class::<C, VS>(cta, q);
                if class < k && *slope != T::ZERO {
                    let at = column as usize * k as usize + class as usize;
                    if SHARED {
                        cta.shared_add(copy, at, value * *slope);
                    } else {
                        cta.add(x.output, at, value * *slope);
                    }
                }
            }
        });
    }
    if SHARED {
        cta.sync();
        flush_shared(cta, copy, x.cols * k, T::ONE, x.output);
    }
    teams.finish(cta);
}

/// Keeps a row of S.
#[inline(always)]
fn store<C: Cta, T: Elementary, const VS: u32, const Q: usize>(
    cta: &C,
    args: &SparseSoftmaxArgs<'_, T>,
    row: Option<usize>,
    slopes: [T; Q],
) {
    let Some(row) = row else {
        return;
    };
    let k = args.rows.classes;
    for (q, slope) in slopes.into_iter().enumerate() {
        let class = class::<C, VS>(cta, q);
        if class < k {
            cta.write(args.slopes, row * k as usize + class as usize, slope);
        }
    }
}

fn check<T: Elementary>(
    variant: &SparseSoftmaxVariant,
    launch: &Launch,
    args: &SparseSoftmaxArgs<'_, T>,
) -> Result<(), Violation> {
    let x = &args.x;
    let elements = x.cols as u64 * args.rows.classes as u64;
    check_launch(
        launch,
        variant.shared_bytes(launch.block, elements, T::SIZE),
    )?;
    Violation::at_most("rows", (u32::MAX - WARP) as u64, x.rows as u64)?;
    sparse::check_csr(x)?;
    Violation::at_least("length of input", elements, x.input.len())?;
    Violation::at_least("length of output", elements, x.output.len())?;
    if args.slopes.is_some() {
        let needed = x.rows as u64 * args.rows.classes as u64;
        Violation::at_least("length of slopes", needed, args.slopes.len())?;
    }
    args.rows.check(x.rows as u64, variant.classes())
}

macro_rules! sparse_softmax {
    ($t:ident: $( ($vs:literal, $q:literal, $held:literal) )*) => {
        crate::kernels! {
            family SparseSoftmax<$t>, "objective";
            args SparseSoftmaxArgs<'a, $t>;
            variant SparseSoftmaxVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            $(
                concat!("softmax_sparse_shared_", stringify!($t), "_vs", $vs, "_q", $q),
                SparseSoftmaxVariant { place: Place::Shared, vs: $vs, per_lane: $q, held: $held }
                    => softmax::<_, $t, true, $vs, $q, $held>;
                concat!("softmax_sparse_global_", stringify!($t), "_vs", $vs, "_q", $q),
                SparseSoftmaxVariant { place: Place::Global, vs: $vs, per_lane: $q, held: $held }
                    => softmax::<_, $t, false, $vs, $q, $held>;
            )*
        }
    };
}

sparse_softmax!(f32: (4, 1, 5) (8, 1, 3) (16, 1, 2) (32, 1, 1) (32, 4, 1));
sparse_softmax!(f64: (4, 1, 5) (8, 1, 3) (16, 1, 2) (32, 1, 1) (32, 4, 1));
