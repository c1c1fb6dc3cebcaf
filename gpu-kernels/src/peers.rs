//! Sums over the members of a group, each with a GPU, in one launch over each other's memory.
//!
//! Formula: `valuesᵢ = Σ_r valuesᵢ of member r`, and the same of a few figures in f64; floats in the order of the ranks, so
//! that every member gets the same bits.
//!
//! Method: one-shot all-reduce by packets of 8 bytes, half number, half the sum's own number. Every member writes its packets
//! into the memory of each other one, and reads its own memory until the packets of this sum are there. A packet arrives
//! whole, so that what says that it has come needs no fence and no message of its own: one way over the link is all that a
//! sum waits for. Packets of two sums in a row go to different places: a member that sends those of sum k + 2 has been given
//! all of sum k + 1, which others send when they have read all of sum k. Source: the protocol LL of NCCL (low latency), as
//! Hu et al., "Demystifying NCCL" (2025), describe it.
//!
//! Mapping: a line is two packets: two numbers of 4 bytes or one of 8. Line i is thread i's of the grid, then thread
//! i − threads', …; a thread sends all its lines before it waits for the first. No thread waits for another one of its
//! block, and blocks that do not run yet hold nobody up who does not need their lines. A member that does not come is waited
//! for until [`PeerArgs::stop`] is not zero.

use crate::cta::Cta;
use crate::describe::Description;
use crate::memory::Out;
use crate::scalar::Word;
use crate::table::{Launch, Violation};

/// The family of sums over GPUs.
pub struct PeerSums<T>(core::marker::PhantomData<T>);

/// Members at most.
pub const MOST_MEMBERS: usize = 8;
/// Figures at most.
pub const MOST_FIGURES: u64 = 16;
/// Packets of a line.
pub const LINE: usize = 2;
/// Looks at a packet between two at [`PeerArgs::stop`].
const LOOKS: u32 = 64;

/// Arguments of a sum.
#[repr(C)]
pub struct PeerArgs<'a, T> {
    /// This member's number.
    pub rank: u32,
    /// Members.
    pub size: u32,
    /// Which sum it is, one more than the last one; never 0, which is what memory holds before the first.
    pub number: u32,
    /// Lines that there is room for, besides those of figures.
    pub room: u64,
    /// Numbers to be added, and their sums.
    pub values: Out<'a, T>,
    /// Figures to be added, and their sums; they need not be there.
    pub figures: Out<'a, f64>,
    /// Of each member: [`packets`] of this room, zero before the first sum.
    pub packets: [Out<'a, u64>; MOST_MEMBERS],
    /// Not zero when nobody is to be waited for any more.
    pub stop: Out<'a, u32>,
}

impl<T: Copy> Clone for PeerArgs<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Copy> Copy for PeerArgs<'_, T> {}

/// Packets that a member's memory holds: of two sums, from each of `size` members, `room` lines and those of figures.
pub const fn packets(size: u64, room: u64) -> u64 {
    2 * size * (room + MOST_FIGURES) * LINE as u64
}

/// Lines of `len` numbers of `bytes` bytes.
pub const fn lines(len: u64, bytes: u32) -> u64 {
    len.div_ceil(per_line(bytes))
}

/// Numbers of a line.
const fn per_line(bytes: u32) -> u64 {
    (LINE as u32 * 4 / bytes) as u64
}

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

/// The numbers of a line: the second is another one's where numbers have 4 bytes, and is not there where they have 8.
type Line<T> = [T; LINE];

/// One's own line `i`, of which there is at least one number.
#[inline(always)]
fn line<C: Cta, T: Addend>(cta: &C, values: Out<'_, T>, i: u64) -> Line<T> {
    let first = (i * per_line(T::SIZE)) as usize;
    let mut line = [cta.read(values, first), T::default()];
    if T::SIZE == 4 && (first as u64) + 1 < values.len() {
        line[1] = cta.read(values, first + 1);
    }
    line
}

/// The two halves that travel.
#[inline(always)]
fn halves<T: Addend>(line: Line<T>) -> [u32; LINE] {
    let bits = line.map(Word::to_bits);
    match T::SIZE {
        4 => [bits[0] as u32, bits[1] as u32],
        _ => [bits[0] as u32, (bits[0] >> 32) as u32],
    }
}

/// The line of two halves.
#[inline(always)]
fn whole<T: Addend>(halves: [u32; LINE]) -> Line<T> {
    let [first, second] = halves.map(u64::from);
    match T::SIZE {
        4 => [T::from_bits(first), T::from_bits(second)],
        _ => [T::from_bits(first | second << 32), T::default()],
    }
}

/// Where line `i` that member `of` has sent lies in anyone's memory.
#[inline(always)]
fn place<T>(args: &PeerArgs<'_, T>, of: u32, i: u64) -> usize {
    let from = (args.number % 2 * args.size + of) as u64;
    ((from * (args.room + MOST_FIGURES) + i) * LINE as u64) as usize
}

/// Lines of `values` that lie behind `before` others in members' memory.
struct Share<'a, T> {
    values: Out<'a, T>,
    before: u64,
}

impl<T: Addend> Share<'_, T> {
    /// Sends this member's lines to all others.
    #[inline(always)]
    fn send<C: Cta, A>(&self, cta: &C, args: &PeerArgs<'_, A>, first: u64) {
        let mut i = first;
        while i < lines(self.values.len(), T::SIZE) {
            let own = halves(line(cta, self.values, i));
            let packets = own.map(|half| half as u64 | (args.number as u64) << 32);
            let at = place(args, args.rank, self.before + i);
            let mut to = 0;
            while to < MOST_MEMBERS {
                if (to as u32) < args.size && to as u32 != args.rank {
                    cta.send(args.packets[to], at, packets);
                }
                to += 1;
            }
            i += threads(cta);
        }
    }

    /// Adds up this member's lines and those that it is sent.
    #[inline(always)]
    fn add<C: Cta, A: Copy>(&self, cta: &C, args: &PeerArgs<'_, A>, first: u64) {
        let mut i = first;
        while i < lines(self.values.len(), T::SIZE) {
            let own = line(cta, self.values, i);
            let mut sum = own;
            let mut of = 0;
            while of < args.size {
                let theirs = match of == args.rank {
                    true => own,
                    false => whole(wait(cta, args, place(args, of, self.before + i))),
                };
                sum = match of {
                    0 => theirs,
                    _ => [sum[0].plus(theirs[0]), sum[1].plus(theirs[1])],
                };
                of += 1;
            }
            let at = (i * per_line(T::SIZE)) as usize;
            cta.write(self.values, at, sum[0]);
            if T::SIZE == 4 && (at as u64) + 1 < self.values.len() {
                cta.write(self.values, at + 1, sum[1]);
            }
            i += threads(cta);
        }
    }
}

/// Waits for the packets of this sum at a place of this member's memory.
#[inline(always)]
fn wait<C: Cta>(cta: &C, args: &PeerArgs<'_, impl Copy>, at: usize) -> [u32; LINE] {
    let own = own(args);
    let mut looks = 0;
    loop {
        let found = cta.receive(own, at);
        let mut is_there = true;
        for packet in found {
            is_there &= (packet >> 32) as u32 == args.number;
        }
        if is_there {
            return found.map(|packet| packet as u32);
        }
        looks += 1;
        if looks % LOOKS == 0 && cta.poll(args.stop, 0) != 0 {
            return [0; LINE];
        }
    }
}

/// This member's memory. Its place is not known when the kernel is compiled.
#[inline(always)]
fn own<'a>(args: &PeerArgs<'a, impl Copy>) -> Out<'a, u64> {
    let mut found = args.packets[0];
    let mut member = 1;
    while member < MOST_MEMBERS {
        if member as u32 == args.rank {
            found = args.packets[member];
        }
        member += 1;
    }
    found
}

/// Threads of the grid.
#[inline(always)]
fn threads<C: Cta>(cta: &C) -> u64 {
    cta.blocks() as u64 * cta.threads() as u64
}

fn sum<C: Cta, T: Addend>(cta: &C, args: &PeerArgs<'_, T>) {
    // A sum behind another one has its blocks in place when that one ends.
    cta.let_next_begin();
    cta.wait_for_previous();
    let first = cta.block() as u64 * cta.threads() as u64 + cta.thread() as u64;
    let values = Share {
        values: args.values,
        before: MOST_FIGURES,
    };
    let figures = Share {
        values: args.figures,
        before: 0,
    };
    values.send(cta, args, first);
    figures.send(cta, args, first);
    values.add(cta, args, first);
    figures.add(cta, args, first);
}

fn check<T: Addend>(_: &(), _: &Launch, args: &PeerArgs<'_, T>) -> Result<(), Violation> {
    let size = args.size as u64;
    Violation::at_least("members", 1, size)?;
    Violation::at_most("members", MOST_MEMBERS as u64, size)?;
    Violation::at_most("the rank", size - 1, args.rank as u64)?;
    Violation::at_least("the number", 1, args.number as u64)?;
    let needed = lines(args.values.len(), T::SIZE);
    Violation::at_most("lines of values", args.room, needed)?;
    Violation::at_most("length of figures", MOST_FIGURES, args.figures.len())?;
    Violation::at_least("length of stop", 1, args.stop.len())?;
    for member in 0..args.size as usize {
        let found = args.packets[member].len();
        Violation::at_least("packets of a member", packets(size, args.room), found)?;
    }
    Ok(())
}

const fn describe(_: &()) -> Description {
    Description {
        waits_itself: true,
        ..Description::UNPLANNED
    }
}

macro_rules! peer_family {
    ($($t:ident)*) => { $(
        crate::kernels! {
            family PeerSums<$t>, "peers";
            args PeerArgs<'a, $t>;
            variant ();
            check check::<$t>;
            describe describe;
            concat!("peers_sum_", stringify!($t)), () => sum::<_, $t>;
        }
    )* };
}

peer_family!(f32 f64 u64);
