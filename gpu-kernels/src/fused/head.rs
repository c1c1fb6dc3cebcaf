//! Sparse X (CSR) whose most frequent columns are kept apart, the *head*: one pass over the rows.
//!
//! Formula: `w += α · Xᵀ( v ⊙ (X·y − s) )` and `w += α · Xᵀ( v ⊙ p )`; w holds β·z (or zero) before. Objectives have a pass of
//! their own over the same arrays.
//!
//! Columns of real data follow power laws: the first are in nearly every row. Additions to their elements of w in global memory
//! queue up at one address each, about 10 ns for each row of X on an H200, and their sums are chains as long as X is high, which
//! lose digits in f32. Here an index with the bit [`HEAD`] names a place in the head instead of a column. Elements of y and sums
//! of the head lie in shared memory; of its first [`BUSIEST`] columns each warp has sums of its own. All other columns are added
//! in global memory.
//!
//! Mapping: VS lanes own one row at a time; lane l takes nonzeros l, l + VS, …, of which the first K stay in registers. Rows that
//! share a warp are requested before it is their turn. What a longer row has besides comes K entries at a time, the next ones
//! with the elements of y for those before.
//!
//! Shared memory: with H places in the head, H elements of y, H sums, and [`BUSIEST`] sums per warp. Result: in w when the
//! kernel has ended. Guarantees: none for the bits, as atomics add in any order. Error: of c entries of one of the busiest
//! columns, W warps add c / W each, one after the other; then come the warps of a block, then the blocks. In global memory c
//! additions come one after the other.

use super::sparse::variant::SparseVariant;
use super::sparse::{self, RowStep, SparseArgs, Weigh};
use super::{Compute, Fused, Place, Product, Transposed};
use crate::cta::{Cache, Cta, Shared, WARP};
use crate::describe::unplanned;
use crate::memory::In;
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_block, global_warp, global_warps, lane, sum_lanes};

/// Marks an index as a place in the head.
pub const HEAD: u32 = 1 << 31;
/// Columns of which each warp has sums of its own: rows of many warps meet there all the time.
pub const BUSIEST: u32 = 128;

/// X of sparse products and objectives.
#[repr(C)]
pub struct HeadedArgs<'a, T> {
    /// X, y as `input` and w as `output`; with a head, its indices are marked.
    pub x: SparseArgs<'a, T>,
    /// The column of each place of the head, distinct; nothing without one.
    pub order: In<'a, u32>,
}

impl<T: Copy> Clone for HeadedArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for HeadedArgs<'_, T> {}

/// Dynamic shared memory of a block of `block` threads for `places` places of `size` bytes.
pub const fn shared_bytes(places: u32, block: u32, size: u32) -> u64 {
    (2 * places as u64 + BUSIEST as u64 * (block / WARP) as u64) * size as u64
}

/// The head in shared memory of a block.
pub(crate) struct Head<T> {
    places: u32,
    input: Shared<T>,
    /// Of the places, then [`BUSIEST`] for each warp.
    sums: Shared<T>,
}

impl<T: Real> Head<T> {
    #[inline(always)]
    pub(crate) fn open<C: Cta, const DOTS: bool>(cta: &C, args: &HeadedArgs<'_, T>) -> Self {
        let places = args.order.len() as u32;
        let sums = places + BUSIEST * (cta.threads() / WARP);
        let head = Head {
            places,
            input: Shared::at(0, places),
            sums: Shared::at(places * T::SIZE, sums),
        };
        if DOTS {
            each_of_block(cta, places, |place| {
                let column: u32 = cta.load(args.order, place, Cache::Once);
                let y: T = cta.load(args.x.input, column as usize, Cache::Keep);
                cta.shared_write(head.input, place, y);
            });
        }
        each_of_block(cta, sums, |sum| cta.shared_write(head.sums, sum, T::ZERO));
        cta.sync();
        head
    }

    /// The element of y that an index names.
    #[inline(always)]
    pub(crate) fn input<C: Cta>(&self, cta: &C, args: &HeadedArgs<'_, T>, index: u32) -> T {
        if index & HEAD != 0 {
            cta.shared_read(self.input, (index ^ HEAD) as usize)
        } else {
            cta.load(args.x.input, index as usize, Cache::Keep)
        }
    }

    #[inline(always)]
    pub(crate) fn add<C: Cta>(&self, cta: &C, args: &HeadedArgs<'_, T>, index: u32, value: T) {
        if index & HEAD == 0 {
            cta.add(args.x.output, index as usize, value);
        } else {
            let sum = self.sum_of(cta.thread() / WARP, index ^ HEAD);
            cta.shared_add(self.sums, sum as usize, value);
        }
    }

    /// Where a warp adds for a place. Additions are loops, so lanes must not part between the two kinds of sums.
    #[inline(always)]
    fn sum_of(&self, warp: u32, place: u32) -> u32 {
        let own = self.places + warp * BUSIEST;
        place + if place < BUSIEST { own } else { 0 }
    }

    /// Adds the sums to w.
    #[inline(always)]
    pub(crate) fn flush<C: Cta>(self, cta: &C, args: &HeadedArgs<'_, T>) {
        cta.sync();
        each_of_block(cta, self.places, |place| {
            let mut sum = cta.shared_read(self.sums, place);
            if (place as u32) < BUSIEST {
                for warp in 0..cta.threads() / WARP {
                    let own = self.sum_of(warp, place as u32);
                    sum = sum + cta.shared_read(self.sums, own as usize);
                }
            }
            if sum != T::ZERO {
                let column: u32 = cta.load(args.order, place, Cache::Once);
                cta.add(args.x.output, column as usize, sum);
            }
        });
    }
}

/// One lane's share of a row: from `from` in steps of VS, the first K of it in registers.
pub(crate) struct Share<T, const K: usize> {
    from: u32,
    end: u32,
    indices: [u32; K],
    values: [T; K],
    /// Of y, once they were requested.
    elements: [T; K],
}

/// The rows of this warp, one for each group of VS lanes, with what was requested of those to come.
///
/// A warp would wait for a row's offsets, its entries and the elements of y one after the other, about 0.7 µs each: 2.5 µs a
/// row of kddb's shape, with 32 warps an SM (H100). So of rows that share a warp offsets are requested three rows ahead, entries
/// two, and elements one. Of a row that has a warp for itself registers hold more entries instead: what they do not hold is read
/// twice, and url's shape (116 a row) took 14 % longer with entries a row ahead and three instead of four held.
pub(crate) struct Walk<T, const K: usize> {
    first: u32,
    step: u32,
    share: Share<T, K>,
    following: Share<T, K>,
    /// Of the first row of which nothing else was requested.
    next: (u32, u32),
}

impl<T: Real, const K: usize> Walk<T, K> {
    /// `input` gives elements of y, if they are wanted.
    #[inline(always)]
    pub(crate) fn new<C: Cta, const VS: u32>(
        cta: &C,
        x: &SparseArgs<'_, T>,
        input: &impl Fn(u32) -> T,
    ) -> Self {
        let vectors = WARP / VS;
        let mut walk = Walk {
            // Saturates where no row is: there are fewer rows than 32 bits count.
            first: global_warp(cta).saturating_mul(vectors),
            step: global_warps(cta) * vectors,
            share: Share::NONE,
            following: Share::NONE,
            next: (0, 0),
        };
        walk.next = bounds::<C, T, VS>(cta, x, walk.first);
        if VS < WARP {
            walk.share = Share::load::<C, VS>(cta, x, walk.next, Cache::Once);
            let second = bounds::<C, T, VS>(cta, x, walk.ahead(1));
            walk.following = Share::load::<C, VS>(cta, x, second, Cache::Once);
            walk.next = bounds::<C, T, VS>(cta, x, walk.ahead(2));
            walk.share.request::<VS>(input);
        }
        walk
    }

    /// The first of the warp's rows after this many turns.
    #[inline(always)]
    fn ahead(&self, turns: u32) -> u32 {
        self.first.saturating_add(self.step.saturating_mul(turns))
    }

    /// Whether any lane of the warp has a row left.
    #[inline(always)]
    pub(crate) fn goes_on(&self, x: &SparseArgs<'_, T>) -> bool {
        self.first < x.rows
    }

    /// The lane's row, which may be beyond the last, and its share of it, of which there is none then; all lanes call.
    #[inline(always)]
    pub(crate) fn take<C: Cta, const VS: u32>(
        &mut self,
        cta: &C,
        x: &SparseArgs<'_, T>,
        input: &impl Fn(u32) -> T,
    ) -> (u32, Share<T, K>) {
        let mut share = Share::load::<C, VS>(cta, x, self.next, Cache::Once);
        let row = self.first + lane(cta) / VS;
        let unknown = if VS < WARP { 3 } else { 1 };
        self.next = bounds::<C, T, VS>(cta, x, self.ahead(unknown));
        self.first = self.ahead(1);
        if VS < WARP {
            self.following.request::<VS>(input);
            let following = core::mem::replace(&mut self.following, share);
            share = core::mem::replace(&mut self.share, following);
        } else {
            share.request::<VS>(input);
        }
        (row, share)
    }
}

/// Where a lane's share of its row begins and ends, of a warp whose rows begin with `first`; of one beyond the last nowhere.
#[inline(always)]
fn bounds<C: Cta, T: Real, const VS: u32>(
    cta: &C,
    x: &SparseArgs<'_, T>,
    first: u32,
) -> (u32, u32) {
    let row = first.saturating_add(lane(cta) / VS);
    if row >= x.rows {
        return (0, 0);
    }
    let start: u32 = cta.load(x.offsets, row as usize, Cache::Keep);
    let end = cta.load(x.offsets, row as usize + 1, Cache::Keep);
    (start + lane(cta) % VS, end)
}

impl<T: Real, const K: usize> Share<T, K> {
    const NONE: Self = Share {
        from: 0,
        end: 0,
        indices: [0; K],
        values: [T::ZERO; K],
        elements: [T::ZERO; K],
    };

    #[inline(always)]
    fn load<C: Cta, const VS: u32>(
        cta: &C,
        x: &SparseArgs<'_, T>,
        (from, end): (u32, u32),
        cache: Cache,
    ) -> Self {
        let mut share = Share {
            from,
            end,
            ..Self::NONE
        };
        for k in 0..K {
            let i = from + VS * k as u32;
            if i < end {
                share.indices[k] = cta.load(x.indices, i as usize, cache);
                share.values[k] = cta.load(x.values, i as usize, cache);
            }
        }
        share
    }

    /// Requests the elements of y for the entries in registers.
    #[inline(always)]
    fn request<const VS: u32>(&mut self, input: &impl Fn(u32) -> T) {
        for k in 0..K {
            if self.has::<VS>(k) {
                self.elements[k] = input(self.indices[k]);
            }
        }
    }

    /// The row times y, whose elements `input` gives; those of entries in registers were requested. Behind these, K entries are
    /// requested together, and with the elements for them the next K.
    #[inline(always)]
    pub(crate) fn dot<C: Cta, const VS: u32>(
        &self,
        cta: &C,
        x: &SparseArgs<'_, T>,
        input: &impl Fn(u32) -> T,
    ) -> T {
        let mut further = self.behind::<C, VS>(cta, x);
        let mut dot = self.dot_held(T::ZERO);
        while further.from < further.end {
            further.request::<VS>(input);
            let held = further;
            further = held.behind::<C, VS>(cta, x);
            dot = held.dot_held(dot);
        }
        sum_lanes::<C, T, VS>(cta, dot)
    }

    /// Calls `each` for all entries of the share.
    #[inline(always)]
    pub(crate) fn each<C: Cta, const VS: u32>(
        &self,
        cta: &C,
        x: &SparseArgs<'_, T>,
        mut each: impl FnMut(u32, T),
    ) {
        let mut further = self.behind::<C, VS>(cta, x);
        self.each_held::<VS>(&mut each);
        while further.from < further.end {
            let held = further;
            further = held.behind::<C, VS>(cta, x);
            held.each_held::<VS>(&mut each);
        }
    }

    /// The part of the row behind the entries in registers.
    #[inline(always)]
    fn behind<C: Cta, const VS: u32>(&self, cta: &C, x: &SparseArgs<'_, T>) -> Self {
        Share::load::<C, VS>(cta, x, (self.from + VS * K as u32, self.end), Cache::Keep)
    }

    /// `dot` and the products of the entries in registers.
    #[inline(always)]
    fn dot_held(&self, dot: T) -> T {
        let mut dot = dot;
        for k in 0..K {
            dot = self.values[k].fma(self.elements[k], dot);
        }
        dot
    }

    #[inline(always)]
    fn each_held<const VS: u32>(&self, each: &mut impl FnMut(u32, T)) {
        for k in 0..K {
            if self.has::<VS>(k) {
                each(self.indices[k], self.values[k]);
            }
        }
    }

    /// Whether there is an entry in the `k`-th register.
    #[inline(always)]
    fn has<const VS: u32>(&self, k: usize) -> bool {
        self.from + VS * (k as u32) < self.end
    }
}

/// The family of sparse products with a head.
pub struct Headed<T>(core::marker::PhantomData<T>);

/// What distinguishes sparse products with a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeadedVariant {
    /// What is computed: anything but [`Product::Forward`], which adds nothing to w.
    pub product: Product,
    /// VS: lanes per row.
    pub vs: u32,
    /// K: nonzeros per lane kept in registers.
    pub held: u32,
}

/// The body of all entries.
#[inline(always)]
fn accumulate<C, T, P, const VS: u32, const K: usize>(cta: &C, args: &HeadedArgs<'_, T>)
where
    C: Cta,
    T: Real,
    P: Compute,
{
    let x = &args.x;
    let head = if P::DOTS {
        Head::open::<C, true>(cta, args)
    } else {
        Head::open::<C, false>(cta, args)
    };
    let mut weigh = Weigh::<T, P>::new(cta, x);
    let input = |index| match P::DOTS {
        true => head.input(cta, args, index),
        false => T::ZERO,
    };
    let mut walk = Walk::<T, K>::new::<C, VS>(cta, x, &input);
    while walk.goes_on(x) {
        let (row, share) = walk.take::<C, VS>(cta, x, &input);
        let mut dot = T::ZERO;
        if P::DOTS {
            dot = share.dot::<C, VS>(cta, x, &input);
        }
        if row >= x.rows {
            continue;
        }
        let factor = weigh.factor(cta, row, dot, ()) * x.alpha;
        share.each::<C, VS>(cta, x, |index, value| {
            head.add(cta, args, index, value * factor);
        });
    }
    head.flush(cta, args);
}

/// What every launch over a head has to keep to, besides what one over rows has to.
pub(crate) fn check_places<T: Real>(
    launch: &Launch,
    HeadedArgs { x, order }: &HeadedArgs<'_, T>,
) -> Result<(), Violation> {
    let places = order.len();
    Violation::at_least("places of the head", 1, places)?;
    Violation::at_most("places of the head", x.cols as u64, places)?;
    Violation::at_most("columns", HEAD as u64, x.cols as u64)?;
    let shared = shared_bytes(places as u32, launch.block, T::SIZE);
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)
}

fn check<T: Real>(
    variant: &HeadedVariant,
    launch: &Launch,
    args: &HeadedArgs<'_, T>,
) -> Result<(), Violation> {
    let of_rows = SparseVariant {
        product: variant.product,
        place: Place::Global,
        vs: variant.vs,
        held: variant.held,
    };
    sparse::check(&of_rows, launch, &args.x)?;
    check_places(launch, args)
}

macro_rules! headed_family {
    ($t:ident: $( ($vs:literal, $held:literal) )*) => {
        crate::kernels! {
            family Headed<$t>, "fused";
            args HeadedArgs<'a, $t>;
            variant HeadedVariant;
            check check::<$t>;
            describe unplanned;
            $(
                concat!("sparse_fused_head_", stringify!($t), "_vs", $vs),
                HeadedVariant { product: Product::Fused, vs: $vs, held: $held }
                    => accumulate::<_, $t, Fused, $vs, $held>;
                concat!("sparse_transposed_head_", stringify!($t), "_vs", $vs),
                HeadedVariant { product: Product::Transposed, vs: $vs, held: $held }
                    => accumulate::<_, $t, Transposed, $vs, $held>;
            )*
        }
    };
}

headed_family!(f32: (8, 3) (16, 3) (32, 5));
headed_family!(f64: (8, 2) (16, 2) (32, 3));
