//! Arrays of X from those of a block as it crossed the link, from another library's, or from those that are there already.
//!
//! Formula: entry i of `indices` or `values` from field i of `packed`; for [`UnpackVariant::Lengths`] `indices` are the
//! differences of `offsets`, and for [`UnpackVariant::Marked`] an index that has a place is that place with the bit
//! [`HEAD`], any other stays as it is. [`UnpackVariant::Counted`] and [`UnpackVariant::Added`] add to `sums` instead, of whole
//! columns. Mapping: a thread takes elements i, i + threads of the
//! grid, …; for [`UnpackVariant::OfRows`] a warp takes a row, a lane each of its entries. Shared memory: none. Result: all of
//! the output, when the kernel has ended. Guarantees: exact; the same bits every time.
//!
//! Why: a link carries 55 GB/s and device memory 4,600, so that a block is best sent in 2 bytes an entry and unpacked into
//! 8 where kernels read it.
//!
//! Source: ours.

use crate::cta::{Cache, Cta, WARP};
use crate::fused::head::HEAD;
use crate::memory::{In, Out};
use crate::scalar::Real;
use crate::table::{Launch, Violation};
use crate::verbs::{each_of_grid, global_thread, global_threads, global_warp, global_warps, lane};

/// Fields that a thread requests before it uses the first. With one, an SM has 4 KiB on their way, 64 warps with 64 bytes each,
/// where half of a memory's rate takes 14 to 20 KiB.
const AHEAD: usize = 8;

/// The family of kernels that unpack.
pub struct Unpack<T>(core::marker::PhantomData<T>);

/// Arguments of every kernel that unpacks; an entry ignores what it does not name.
#[repr(C)]
pub struct UnpackArgs<'a, T> {
    /// Elements that are written, or rows of [`UnpackVariant::OfRows`].
    pub len: u64,
    /// Fields: two in a word, the first in the lower half, one, or one in two words.
    pub packed: In<'a, u32>,
    /// `len + 1` offsets of rows.
    pub offsets: In<'a, u32>,
    /// The value of each row; of each entry for sums over columns.
    pub constants: In<'a, T>,
    /// Which columns are in a head: for every 32 of them a word with a bit for each, and how many before these are in it.
    pub members: In<'a, u32>,
    /// The place of each column that is in the head, in the order of the columns.
    pub places: In<'a, u32>,
    /// Columns, or lengths of rows.
    pub indices: Out<'a, u32>,
    /// Values.
    pub values: Out<'a, T>,
    /// How many entries each column has, and behind them how many are not 1; or Σx and Σx² of each column.
    pub sums: Out<'a, f64>,
}

impl<T: Copy> Clone for UnpackArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for UnpackArgs<'_, T> {}

/// What is unpacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnpackVariant {
    /// `indices` from columns of 16 bits.
    Columns,
    /// `values` from bfloat16.
    Bf16,
    /// `values` from the bits of an f32 each.
    Single,
    /// `values` from `constants`, one for each row.
    OfRows,
    /// `indices` from integers of 64 bits; `u32::MAX` for one that 32 bits do not hold.
    Narrow,
    /// `indices` from `offsets`: how many entries each row has, modulo 2³².
    Lengths,
    /// `indices` from those in `packed`, with the columns of a head marked.
    Marked,
    /// 1 for each index in `packed` to its column of `sums`, and for each value in `constants`, if there are any, that is not
    /// 1 to the last of them: exact as far as f64 counts.
    Counted,
    /// The value and its square for each index in `packed`, in f64 and in any order.
    Added,
}

/// Field i of those of 16 bits.
#[inline(always)]
fn half<C: Cta>(cta: &C, packed: In<'_, u32>, i: usize) -> u32 {
    let word = cta.load(packed, i / 2, Cache::Keep);
    word >> (16 * (i as u32 % 2)) & 0xffff
}

/// Several of a thread are requested at once: 27 us instead of 32 for ten million (H100).
fn columns<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    let threads = global_threads(cta);
    let mut first = global_thread(cta);
    while first < args.len {
        let place = |k: usize| first + k as u64 * threads;
        let mut found = [0; AHEAD];
        for (k, found) in found.iter_mut().enumerate() {
            if place(k) < args.len {
                *found = half(cta, args.packed, place(k) as usize);
            }
        }
        for (k, found) in found.into_iter().enumerate() {
            if place(k) < args.len {
                cta.write(args.indices, place(k) as usize, found);
            }
        }
        first = place(AHEAD);
    }
}

fn bf16<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let bits = half(cta, args.packed, i) << 16;
        cta.write(args.values, i, T::of_f64(f32::from_bits(bits) as f64));
    });
}

fn single<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let bits = cta.load(args.packed, i, Cache::Once);
        cta.write(args.values, i, T::of_f64(f32::from_bits(bits) as f64));
    });
}

fn of_rows<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    let mut row = global_warp(cta) as u64;
    while row < args.len {
        let at = row as usize;
        let end: u32 = cta.load(args.offsets, at + 1, Cache::Keep);
        let mut entry: u32 = cta.load(args.offsets, at, Cache::Keep) + lane(cta);
        let constant = cta.load(args.constants, at, Cache::Keep);
        while entry < end {
            cta.write(args.values, entry as usize, constant);
            entry += WARP;
        }
        row += global_warps(cta) as u64;
    }
}

fn narrow<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let low: u32 = cta.load(args.packed, 2 * i, Cache::Once);
        let high: u32 = cta.load(args.packed, 2 * i + 1, Cache::Once);
        cta.write(args.indices, i, if high == 0 { low } else { u32::MAX });
    });
}

fn lengths<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let start: u32 = cta.load(args.offsets, i, Cache::Keep);
        let end: u32 = cta.load(args.offsets, i + 1, Cache::Keep);
        cta.write(args.indices, i, end.wrapping_sub(start));
    });
}

fn marked<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let index: u32 = cta.load(args.packed, i, Cache::Once);
        let (at, bit) = (index as usize / 32 * 2, 1 << (index % 32));
        let own = match (at as u64) < args.members.len() {
            true => cta.load(args.members, at, Cache::Keep),
            false => 0,
        };
        let mut marked = index;
        if own & bit != 0 {
            let before: u32 = cta.load(args.members, at + 1, Cache::Keep);
            let number = before + (own & (bit - 1)).count_ones();
            marked = cta.load(args.places, number as usize, Cache::Keep) | HEAD;
        }
        cta.write(args.indices, i, marked);
    });
}

fn counted<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    let last = args.sums.len() as usize - 1;
    let has_values = args.constants.is_some();
    each_of_grid(cta, args.len, |i| {
        let column: u32 = cta.load(args.packed, i, Cache::Once);
        cta.add(args.sums, column as usize, 1.0);
        if has_values {
            let value: T = cta.load(args.constants, i, Cache::Once);
            if value != T::ONE {
                cta.add(args.sums, last, 1.0);
            }
        }
    });
}

fn added<C: Cta, T: Real>(cta: &C, args: &UnpackArgs<'_, T>) {
    each_of_grid(cta, args.len, |i| {
        let column: u32 = cta.load(args.packed, i, Cache::Once);
        let value: T = cta.load(args.constants, i, Cache::Once);
        let (at, value) = (2 * column as usize, value.to_f64());
        cta.add(args.sums, at, value);
        cta.add(args.sums, at + 1, value * value);
    });
}

fn check<T: Real>(
    variant: &UnpackVariant,
    launch: &Launch,
    args: &UnpackArgs<'_, T>,
) -> Result<(), Violation> {
    let len = args.len;
    Violation::multiple_of("block", WARP as u64, launch.block as u64)?;
    let (packed, rows, indices, values) = match variant {
        UnpackVariant::Columns => (len.div_ceil(2), 0, len, 0),
        UnpackVariant::Bf16 => (len.div_ceil(2), 0, 0, len),
        UnpackVariant::Single => (len, 0, 0, len),
        UnpackVariant::OfRows => (0, len, 0, 0),
        UnpackVariant::Narrow => (len.saturating_mul(2), 0, len, 0),
        UnpackVariant::Lengths => (0, 0, len, 0),
        UnpackVariant::Marked => (len, 0, len, 0),
        UnpackVariant::Counted => (len, 0, 0, 0),
        UnpackVariant::Added => (len, len, 0, 0),
    };
    Violation::at_least("length of packed", packed, args.packed.len())?;
    if let UnpackVariant::OfRows | UnpackVariant::Lengths = variant {
        let offsets = len.saturating_add(1);
        Violation::at_least("length of offsets", offsets, args.offsets.len())?;
    }
    if let UnpackVariant::Counted | UnpackVariant::Added = variant {
        Violation::at_least("length of sums", 1, args.sums.len())?;
    }
    if args.constants.is_some() && *variant == UnpackVariant::Counted {
        Violation::at_least("length of constants", len, args.constants.len())?;
    }
    Violation::at_least("length of constants", rows, args.constants.len())?;
    Violation::at_least("length of indices", indices, args.indices.len())?;
    Violation::at_least("length of values", values, args.values.len())
}

macro_rules! unpack_family {
    ($t:ident) => {
        crate::kernels! {
            family Unpack<$t>, "fused";
            args UnpackArgs<'a, $t>;
            variant UnpackVariant;
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("unpack_columns_", stringify!($t)), UnpackVariant::Columns => columns::<_, $t>;
            concat!("unpack_bf16_", stringify!($t)), UnpackVariant::Bf16 => bf16::<_, $t>;
            concat!("unpack_single_", stringify!($t)), UnpackVariant::Single => single::<_, $t>;
            concat!("unpack_of_rows_", stringify!($t)), UnpackVariant::OfRows => of_rows::<_, $t>;
            concat!("unpack_narrow_", stringify!($t)), UnpackVariant::Narrow => narrow::<_, $t>;
            concat!("unpack_lengths_", stringify!($t)), UnpackVariant::Lengths => lengths::<_, $t>;
            concat!("unpack_marked_", stringify!($t)), UnpackVariant::Marked => marked::<_, $t>;
            concat!("unpack_counted_", stringify!($t)), UnpackVariant::Counted => counted::<_, $t>;
            concat!("unpack_added_", stringify!($t)), UnpackVariant::Added => added::<_, $t>;
        }
    };
}

unpack_family!(f32);
unpack_family!(f64);
