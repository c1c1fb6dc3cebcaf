//! Sums over the members of a group, each with a GPU, in one launch over each other's memory.
//!
//! Formula: `valuesᵢ = Σ_r valuesᵢ of member r`, and the same of a few figures in f64; floats in the order of the ranks, so
//! that every member gets the same bits.
//!
//! Method: one-shot all-reduce. Every member writes its numbers into the memory of each, its own too, posts a flag there,
//! waits for the flags of all, and adds what it was given. A block does so for a range of its own, and waits for the same
//! block of the others alone. Numbers of two sums in a row go to different places: a member that posts sum k + 1 has all of
//! sum k, so that whoever sees that flag may write where sum k lay. Source: the one-shot all-reduce of TensorRT-LLM and vLLM
//! (custom all-reduce), with writes to the peers instead of reads from them.
//!
//! Mapping: a block of any size takes ⌈len / blocks⌉ elements; the first threads, one for each member, post and wait. All
//! blocks have to run at the same time, which a few do on any GPU. A member that does not come is waited for until
//! [`PeerArgs::stop`] is not zero.

use crate::cta::Cta;
use crate::memory::Out;
use crate::scalar::Word;
use crate::table::{Launch, Violation};

/// The family of sums over GPUs.
pub struct PeerSums<T>(core::marker::PhantomData<T>);

/// Members at most.
pub const MOST_MEMBERS: usize = 8;
/// Blocks at most: each has a flag for every member.
pub const MOST_BLOCKS: u32 = 16;
/// Figures at most.
pub const MOST_FIGURES: u64 = 16;

/// Arguments of a sum.
#[repr(C)]
pub struct PeerArgs<'a, T> {
    /// This member's number.
    pub rank: u32,
    /// Members.
    pub size: u32,
    /// Which sum it is, one more than the last one.
    pub number: u32,
    /// Elements that a part has room for.
    pub room: u64,
    /// Numbers to be added, and their sums.
    pub values: Out<'a, T>,
    /// Figures to be added, and their sums; they need not be there.
    pub figures: Out<'a, f64>,
    /// Of each member: 2 × size × room elements.
    pub parts: [Out<'a, T>; MOST_MEMBERS],
    /// Of each member: 2 × size × [`MOST_FIGURES`].
    pub figure_parts: [Out<'a, f64>; MOST_MEMBERS],
    /// Of each member: size × [`MOST_BLOCKS`], zero before the first sum.
    pub flags: [Out<'a, u32>; MOST_MEMBERS],
    /// Not zero when nobody is to be waited for any more.
    pub stop: Out<'a, u32>,
}

impl<T: Copy> Clone for PeerArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for PeerArgs<'_, T> {}

/// What can be added.
pub trait Addend: Word {
    /// The sum; integers wrap.
    fn plus(self, other: Self) -> Self;
}

macro_rules! addends {
    ($($t:ident: $plus:expr;)*) => { $(
        impl Addend for $t {
            #[inline(always)]
            fn plus(self, other: $t) -> $t { $plus(self, other) }
        }
    )* };
}

addends! {
    f32: |a: f32, b: f32| a + b;
    f64: |a: f64, b: f64| a + b;
    u64: u64::wrapping_add;
}

/// Where the part of member `of` begins in anyone's memory.
#[inline(always)]
fn place<T>(args: &PeerArgs<'_, T>, of: u32, room: u64) -> usize {
    let half = (args.number % 2) as u64;
    ((half * args.size as u64 + of as u64) * room) as usize
}

/// Elements of `len` that a block takes.
#[inline(always)]
fn range<C: Cta>(cta: &C, len: u64) -> (u64, u64) {
    let each = len.div_ceil(cta.blocks() as u64);
    let first = each * cta.block() as u64;
    (first, (first + each).min(len))
}

/// Gives this member's numbers to all.
#[inline(always)]
fn give<C: Cta, T: Addend, A>(
    cta: &C,
    args: &PeerArgs<'_, A>,
    (values, parts, room): (Out<'_, T>, &[Out<'_, T>; MOST_MEMBERS], u64),
    (first, end): (u64, u64),
) {
    let at = place(args, args.rank, room);
    let mut i = first + cta.thread() as u64;
    while i < end {
        let value = cta.read(values, i as usize);
        let mut to = 0;
        while to < MOST_MEMBERS {
            if (to as u32) < args.size {
                cta.write(parts[to], at + i as usize, value);
            }
            to += 1;
        }
        i += cta.threads() as u64;
    }
}

/// Adds up what this member was given.
#[inline(always)]
fn take<C: Cta, T: Addend, A>(
    cta: &C,
    args: &PeerArgs<'_, A>,
    (values, own, room): (Out<'_, T>, Out<'_, T>, u64),
    (first, end): (u64, u64),
) {
    let mut i = first + cta.thread() as u64;
    while i < end {
        let mut sum = cta.read(own, place(args, 0, room) + i as usize);
        let mut of = 1;
        while of < args.size {
            sum = sum.plus(cta.read(own, place(args, of, room) + i as usize));
            of += 1;
        }
        cta.write(values, i as usize, sum);
        i += cta.threads() as u64;
    }
}

/// The one of an array that this member has. Its place is not known when the kernel is compiled.
#[inline(always)]
fn own<'a, T>(args: &PeerArgs<'_, impl Copy>, of: &[Out<'a, T>; MOST_MEMBERS]) -> Out<'a, T> {
    let mut found = of[0];
    let mut member = 1;
    while member < MOST_MEMBERS {
        if member as u32 == args.rank {
            found = of[member];
        }
        member += 1;
    }
    found
}

/// Tells the same block of each member that its numbers have come, and waits for theirs.
#[inline(always)]
fn meet<C: Cta>(cta: &C, args: &PeerArgs<'_, impl Copy>) {
    cta.sync();
    let thread = cta.thread();
    if thread < args.size {
        let flag = |of: u32| (of * MOST_BLOCKS + cta.block()) as usize;
        let mut to = 0;
        while to < MOST_MEMBERS {
            if to as u32 == thread {
                cta.post(args.flags[to], flag(args.rank), args.number);
            }
            to += 1;
        }
        let own = own(args, &args.flags);
        // A member that is ahead has posted the next one already.
        let is_there = |posted: u32| posted.wrapping_sub(args.number) as i32 >= 0;
        while !is_there(cta.poll(own, flag(thread))) {
            if cta.poll(args.stop, 0) != 0 {
                break;
            }
        }
    }
    cta.sync();
}

fn sum<C: Cta, T: Addend>(cta: &C, args: &PeerArgs<'_, T>) {
    let range = range(cta, args.values.len());
    // The first block has the figures.
    let figures = match cta.block() {
        0 => (0, args.figures.len()),
        _ => (0, 0),
    };
    give(cta, args, (args.values, &args.parts, args.room), range);
    let of_figures = (args.figures, &args.figure_parts, MOST_FIGURES);
    give(cta, args, of_figures, figures);
    meet(cta, args);
    let parts = own(args, &args.parts);
    take(cta, args, (args.values, parts, args.room), range);
    let parts = own(args, &args.figure_parts);
    take(cta, args, (args.figures, parts, MOST_FIGURES), figures);
}

fn check<T: Addend>(_: &(), launch: &Launch, args: &PeerArgs<'_, T>) -> Result<(), Violation> {
    let size = args.size as u64;
    Violation::at_least("members", 1, size)?;
    Violation::at_most("members", MOST_MEMBERS as u64, size)?;
    Violation::at_most("the rank", size - 1, args.rank as u64)?;
    Violation::at_most("blocks", MOST_BLOCKS as u64, launch.grid as u64)?;
    Violation::at_least("block", size, launch.block as u64)?;
    Violation::at_most("length of values", args.room, args.values.len())?;
    Violation::at_most("length of figures", MOST_FIGURES, args.figures.len())?;
    Violation::at_least("length of stop", 1, args.stop.len())?;
    for member in 0..args.size as usize {
        let parts = 2 * size * args.room;
        Violation::at_least("length of parts", parts, args.parts[member].len())?;
        let figures = 2 * size * MOST_FIGURES;
        let found = args.figure_parts[member].len();
        Violation::at_least("length of parts of figures", figures, found)?;
        let flags = size * MOST_BLOCKS as u64;
        Violation::at_least("length of flags", flags, args.flags[member].len())?;
    }
    Ok(())
}

macro_rules! peer_family {
    ($($t:ident)*) => { $(
        crate::kernels! {
            family PeerSums<$t>, "peers";
            args PeerArgs<'a, $t>;
            variant ();
            check check::<$t>;
            describe crate::describe::unplanned;
            concat!("peers_sum_", stringify!($t)), () => sum::<_, $t>;
        }
    )* };
}

peer_family!(f32 f64 u64);
