//! Reductions: sums, products, extremes, moments, of whole arrays, segments, rows and columns.
//!
//! | file | what |
//! |---|---|
//! | [`element`] | the element types, and how values are ranked |
//! | [`total`] | what is reduced to what: arithmetic that GPU and CPU share |
//! | [`whole`] | one result of an array, one launch |
//! | [`parts`] | one result per segment, row or column |
//! | [`staged`] | short rows by way of shared memory |
//! | [`ladder`] | the lecture's steps from the first kernel to the last |
//!
//! **NaN.** Sums, products and moments follow IEEE 754: a NaN goes through. A NaN is the extreme of every
//! search, so that it is never lost; its place is that of the first.
//!
//! **Overflow.** Floats are added in f64; integers in i64, modulo 2⁶⁴; squares in f64.

mod args;
pub mod element;
pub mod ladder;
pub mod parts;
pub mod staged;
pub mod total;
pub mod verbs;
pub mod whole;

pub use args::{ORDER_FIXED, ORDER_INTERLEAVED, ReduceArgs};
pub use element::{Accumulator, Element, Rank, Sought};
pub use total::{Additive, Extreme, Moments, Products, Reduction, Search, Spread, Squares, Sum};
pub use total::{Term, Total};

use crate::cta::{Cta, WARP};
use crate::scalar::Words;
use crate::table::{Family, Launch, Violation};
use verbs::BLOCK;
use whole::{Elements, Pairs};

/// The family of reductions.
pub struct Reduce<T>(core::marker::PhantomData<T>);

/// What is computed of a whole array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Statistic {
    /// Σ term(x).
    Sum(Term),
    /// Σ x².
    Squares,
    /// Σ x·y.
    Products,
    /// The sought element and its index.
    Search(Sought),
    /// Count, mean, squared deviations.
    Moments,
}

/// What is computed of parts; which term or element is an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartStatistic {
    /// Σ term(x).
    Sum,
    /// Σ x².
    Squares,
    /// The sought element and its index in its part.
    Search,
    /// Count, mean, squared deviations.
    Moments,
}

impl PartStatistic {
    /// Words of a total.
    pub const fn words(&self) -> u64 {
        match self {
            PartStatistic::Sum | PartStatistic::Squares => 1,
            PartStatistic::Search => 2,
            PartStatistic::Moments => 3,
        }
    }
}

/// Who takes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Split {
    /// One to 32 lanes of a warp per segment.
    Lanes,
    /// [`staged::team`] lanes of a warp per row, which has been copied to shared memory: sums of elements alone.
    Stages,
    /// A block per segment.
    Blocks,
    /// Tiles of columns.
    Columns,
}

/// Which reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceVariant {
    /// Of the whole array.
    Whole(Statistic),
    /// Of each part.
    Parts(PartStatistic, Split),
}

impl ReduceVariant {
    /// Dynamic shared memory of a block.
    pub const fn shared_bytes(&self) -> u32 {
        match self {
            ReduceVariant::Parts(_, Split::Columns) => parts::COLUMN_SHARED_BYTES,
            ReduceVariant::Parts(_, Split::Stages) => staged::SHARED_BYTES,
            _ => verbs::SHARED_BYTES,
        }
    }

    /// Words of a total.
    pub const fn words(&self) -> u64 {
        match self {
            ReduceVariant::Whole(Statistic::Search(_)) => 2,
            ReduceVariant::Whole(Statistic::Moments) => 3,
            ReduceVariant::Whole(_) => 1,
            ReduceVariant::Parts(statistic, _) => statistic.words(),
        }
    }
}

/// An element type that has entries.
pub trait ReduceKernels: Element {
    /// Its entries.
    type Reduce: Family<Variant = ReduceVariant> + for<'a> Family<Args<'a> = ReduceArgs<'a, Self>>;
}

fn check<T: Element>(
    variant: &ReduceVariant,
    launch: &Launch,
    args: &ReduceArgs<'_, T>,
) -> Result<(), Violation> {
    Violation::equal("block", BLOCK as u64, launch.block as u64)?;
    let shared = variant.shared_bytes() as u64;
    Violation::at_least("shared bytes", shared, launch.shared_bytes as u64)?;
    match variant {
        ReduceVariant::Whole(statistic) => check_whole(variant, *statistic, args),
        ReduceVariant::Parts(_, Split::Columns) => check_columns(variant, args),
        ReduceVariant::Parts(_, Split::Stages) => check_stages(variant, args),
        ReduceVariant::Parts(..) => check_segments(variant, args),
    }
}

fn check_whole<T: Element>(
    variant: &ReduceVariant,
    statistic: Statistic,
    args: &ReduceArgs<'_, T>,
) -> Result<(), Violation> {
    let rows = args.len.div_ceil(BLOCK as u64 * T::Pack::LANES as u64);
    Violation::at_least("length", 1, args.len)?;
    Violation::at_least("length of x", args.len, args.x.len())?;
    if statistic == Statistic::Products {
        Violation::at_least("length of y", args.len, args.y.len())?;
    }
    Violation::at_least("chunks", 1, args.chunks)?;
    Violation::at_most("chunks", rows, args.chunks)?;
    if args.order == ORDER_FIXED {
        Violation::equal(
            "chunks",
            rows.div_ceil(args.rows_per_chunk.max(1)),
            args.chunks,
        )?;
    }
    let partials = args.chunks * variant.words();
    Violation::at_least("length of partials", partials, args.partials.len())?;
    Violation::at_least("length of tickets", 1, args.tickets.len())?;
    Violation::at_least("length of out", variant.words(), args.out.len())
}

fn check_segments<T: Element>(
    variant: &ReduceVariant,
    args: &ReduceArgs<'_, T>,
) -> Result<(), Violation> {
    check_tile(args)?;
    if args.offsets.is_some() {
        // That they ascend and end within x is for the caller to know.
        Violation::at_least("length of offsets", args.parts + 1, args.offsets.len())?;
    } else {
        Violation::at_least("length of x", last_of_rows(args), args.x.len())?;
    }
    let words = args.parts * variant.words();
    Violation::at_least("length of out", words, args.out.len())
}

fn check_stages<T: Element>(
    variant: &ReduceVariant,
    args: &ReduceArgs<'_, T>,
) -> Result<(), Violation> {
    check_segments(variant, args)?;
    Violation::equal("offsets", 0, args.offsets.is_some() as u64)?;
    Violation::equal("choice", Term::Value as u64, args.choice as u64)?;
    let team = staged::team(args.cols.saturating_mul(T::SIZE as u64));
    Violation::equal("lanes of a row", team as u64, args.tile as u64)?;
    let layout = staged::Layout::of(T::SIZE, (args.cols, args.pitch), team);
    let rows = layout.map_or(0, |layout| layout.rows as u64);
    Violation::at_least("rows of a stage", 1, rows)
}

/// The element after the last of a matrix.
fn last_of_rows<T>(args: &ReduceArgs<'_, T>) -> u64 {
    match args.parts {
        0 => 0,
        rows => (rows - 1)
            .saturating_mul(args.pitch)
            .saturating_add(args.cols),
    }
}

fn check_tile<T>(args: &ReduceArgs<'_, T>) -> Result<(), Violation> {
    let is_power = args.tile.is_power_of_two() && args.tile <= WARP;
    Violation::equal("power of two up to 32 as tile", 1, is_power as u64)
}

fn check_columns<T: Element>(
    variant: &ReduceVariant,
    args: &ReduceArgs<'_, T>,
) -> Result<(), Violation> {
    Violation::at_least("length of x", last_of_rows(args), args.x.len())?;
    Violation::at_least("rows", 1, args.parts)?;
    Violation::at_least("columns", 1, args.cols)?;
    check_tile(args)?;
    let chunks = args.parts.div_ceil(args.rows_per_chunk.max(1));
    Violation::equal("chunks", chunks, args.chunks)?;
    let tiles = args.cols.div_ceil(args.tile as u64);
    Violation::at_least("length of tickets", tiles, args.tickets.len())?;
    let words = args.cols * variant.words();
    Violation::at_least(
        "length of partials",
        args.chunks * words,
        args.partials.len(),
    )?;
    Violation::at_least("length of out", words, args.out.len())
}

fn sum<C: Cta, T: Element, const TERM: u32>(cta: &C, args: &ReduceArgs<'_, T>) {
    whole::reduce::<C, T, Elements, _>(cta, args, Additive(Term::of_number(TERM)));
}

fn squares<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>) {
    whole::reduce::<C, T, Elements, _>(cta, args, Squares);
}

fn products<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>) {
    whole::reduce::<C, T, Pairs, _>(cta, args, Products);
}

fn search<C: Cta, T: Element, const SOUGHT: u32>(cta: &C, args: &ReduceArgs<'_, T>) {
    whole::reduce::<C, T, Elements, _>(cta, args, Search::of_number(SOUGHT));
}

fn moments<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>) {
    whole::reduce::<C, T, Elements, _>(cta, args, Spread);
}

/// Three entries for each statistic of parts.
macro_rules! part_bodies {
    ($module:ident, $reduction:expr) => {
        mod $module {
            use super::*;

            pub fn by_lanes<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>) {
                parts::by_lanes(cta, args, $reduction(args.choice));
            }
            pub fn by_blocks<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>) {
                parts::by_blocks(cta, args, $reduction(args.choice));
            }
            pub fn by_columns<C: Cta, T: Element>(cta: &C, args: &ReduceArgs<'_, T>) {
                parts::by_columns(cta, args, $reduction(args.choice));
            }
        }
    };
}

part_bodies!(part_sum, |choice| Additive(Term::of_number(choice)));
part_bodies!(part_squares, |_| Squares);
part_bodies!(part_search, Search::of_number);
part_bodies!(part_moments, |_| Spread);

macro_rules! reduce_family {
    ($t:ident) => {
        crate::kernels! {
            family Reduce<$t>, "reduce";
            args ReduceArgs<'a, $t>;
            variant ReduceVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("reduce_sum_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Sum(Term::Value)) => sum::<_, $t, 0>;
            concat!("reduce_sum_abs_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Sum(Term::Magnitude)) => sum::<_, $t, 1>;
            concat!("reduce_count_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Sum(Term::IsNonzero)) => sum::<_, $t, 2>;
            concat!("reduce_squares_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Squares) => squares::<_, $t>;
            concat!("reduce_dot_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Products) => products::<_, $t>;
            concat!("reduce_min_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Search(Sought::Least)) => search::<_, $t, 0>;
            concat!("reduce_max_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Search(Sought::Greatest)) => search::<_, $t, 1>;
            concat!("reduce_max_abs_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Search(Sought::Magnitude)) => search::<_, $t, 2>;
            concat!("reduce_moments_", stringify!($t)),
                ReduceVariant::Whole(Statistic::Moments) => moments::<_, $t>;
            concat!("reduce_sum_lanes_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Sum, Split::Lanes) => part_sum::by_lanes::<_, $t>;
            concat!("reduce_sum_stages_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Sum, Split::Stages) => staged::by_stages::<_, $t>;
            concat!("reduce_sum_blocks_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Sum, Split::Blocks) => part_sum::by_blocks::<_, $t>;
            concat!("reduce_sum_columns_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Sum, Split::Columns) => part_sum::by_columns::<_, $t>;
            concat!("reduce_squares_lanes_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Squares, Split::Lanes) => part_squares::by_lanes::<_, $t>;
            concat!("reduce_squares_blocks_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Squares, Split::Blocks) => part_squares::by_blocks::<_, $t>;
            concat!("reduce_squares_columns_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Squares, Split::Columns) => part_squares::by_columns::<_, $t>;
            concat!("reduce_search_lanes_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Search, Split::Lanes) => part_search::by_lanes::<_, $t>;
            concat!("reduce_search_blocks_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Search, Split::Blocks) => part_search::by_blocks::<_, $t>;
            concat!("reduce_search_columns_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Search, Split::Columns) => part_search::by_columns::<_, $t>;
            concat!("reduce_moments_lanes_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Moments, Split::Lanes) => part_moments::by_lanes::<_, $t>;
            concat!("reduce_moments_blocks_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Moments, Split::Blocks) => part_moments::by_blocks::<_, $t>;
            concat!("reduce_moments_columns_", stringify!($t)),
                ReduceVariant::Parts(PartStatistic::Moments, Split::Columns) => part_moments::by_columns::<_, $t>;
        }

        impl ReduceKernels for $t {
            type Reduce = Reduce<$t>;
        }
    };
}

reduce_family!(f32);
reduce_family!(f64);
reduce_family!(i32);
reduce_family!(i64);
