//! Sums over GPUs, seen by one member: the packets of the others lie there already.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use bytemuck::Pod;
use gpu_kernels::peers::{Addend, LINE, MOST_FIGURES, MOST_MEMBERS, PeerArgs, PeerSums, packets};
use gpu_kernels::{Entry, Family, Launch, Out, Word};
use warpfuse::device::Device;
use warpfuse_tests::Subset;
use warpfuse_tests::launcher::{GUARD, Guarded, launch};

use super::grids;

/// Members.
const SIZE: usize = 3;

/// A sum that one of the members takes part in.
#[derive(Debug, Clone, Copy)]
struct Case {
    rank: usize,
    /// The sum's number.
    which: u32,
    len: usize,
    figures: usize,
    grid: u32,
}

impl Case {
    fn room(&self) -> u64 {
        self.len as u64 + 5
    }

    /// Where the packets of member `of` begin.
    fn place(&self, of: usize) -> usize {
        (self.which as usize % 2 * SIZE + of) * (self.room() + MOST_FIGURES) as usize * LINE
    }

    /// The packets of these figures and numbers, one after the other.
    fn sent<T: Addend>(&self, figures: &[f64], numbers: &[T]) -> Vec<(usize, u64)> {
        let behind = MOST_FIGURES as usize * LINE;
        let figures = halves(figures).into_iter().enumerate();
        let numbers = halves(numbers).into_iter().enumerate();
        let all = figures.chain(numbers.map(|(at, half)| (behind + at, half)));
        all.map(|(at, half)| (at, u64::from(half) | u64::from(self.which) << 32))
            .collect()
    }
}

/// What travels: all lines, the last one filled up with 0.
fn halves<T: Word>(numbers: &[T]) -> Vec<u32> {
    let bits = numbers.iter().map(|number| number.to_bits());
    let mut all: Vec<u32> = match T::SIZE {
        4 => bits.map(|bits| bits as u32).collect(),
        _ => bits
            .flat_map(|bits| [bits as u32, (bits >> 32) as u32])
            .collect(),
    };
    all.resize(all.len().next_multiple_of(LINE), 0);
    all
}

/// Every rank, of sums with an even and an odd number.
pub fn check<T>(
    device: &Device,
    entry: &'static Entry<PeerSums<T>>,
    subset: Subset,
    number: fn(usize) -> T,
) -> Result<()>
where
    T: Addend + Pod + Debug + PartialEq,
    PeerSums<T>: for<'a> Family<Args<'a> = PeerArgs<'a, T>>,
{
    for (rank, which) in [(0, 6), (1, 7), (2, u32::MAX)] {
        for (len, figures) in [(1, 0), (2, 1), (71, 3), (1_000, 16), (0, 2)] {
            for grid in grids(subset) {
                let case = Case {
                    rank,
                    which,
                    len,
                    figures,
                    grid: *grid,
                };
                check_case(device, entry, case, number)?;
            }
        }
    }
    Ok(())
}

fn check_case<T>(
    device: &Device,
    entry: &'static Entry<PeerSums<T>>,
    case: Case,
    number: fn(usize) -> T,
) -> Result<()>
where
    T: Addend + Pod + Debug + PartialEq,
    PeerSums<T>: for<'a> Family<Args<'a> = PeerArgs<'a, T>>,
{
    let Case { rank, .. } = case;
    let numbers =
        |of: usize| -> Vec<T> { (0..case.len).map(|i| number(17 * of + 3 * i + 1)).collect() };
    let figures = |of: usize| -> Vec<f64> {
        (0..case.figures)
            .map(|i| (of * 5 + i) as f64 + 0.25)
            .collect()
    };
    // Packets of older sums lie everywhere else.
    let old = u64::from(case.which - 2) << 32 | 7;
    let len = packets(SIZE as u64, case.room()) as usize;
    let memory = |member: usize| {
        let mut packets = vec![old; len];
        for of in (0..SIZE).filter(|of| member == rank && *of != rank) {
            let first = case.place(of);
            for (at, packet) in case.sent(&figures(of), &numbers(of)) {
                packets[first + at] = packet;
            }
        }
        packets
    };
    let guard = GUARD as u64;
    let all = (0..SIZE).map(|member| Guarded::new(device, &memory(member), guard));
    let mut all = all.collect::<Result<Vec<_>, _>>()?;
    let mut values = device.upload(&numbers(rank))?;
    let mut sums = device.upload(&figures(rank))?;
    let mut stop = device.upload(&[0_u32])?;
    let mut args = PeerArgs {
        rank: rank as u32,
        size: SIZE as u32,
        number: case.which,
        room: case.room(),
        values: values.output(),
        figures: sums.output(),
        packets: [Out::none(); MOST_MEMBERS],
        stop: stop.output(),
    };
    for (place, memory) in args.packets.iter_mut().zip(&mut all) {
        *place = memory.output();
    }
    let shape = Launch {
        grid: case.grid,
        block: 96,
        shared_bytes: 0,
    };
    launch(device, entry, shape, args)?;
    let expected: Vec<T> = added(numbers, T::plus);
    ensure!(values.to_vec()? == expected, "{case:?}: other sums");
    let expected = added(figures, |sum, own| sum + own);
    ensure!(sums.to_vec()? == expected, "{case:?}: other figures");
    for (member, found) in all.iter().enumerate() {
        let mut expected = memory(member);
        if member != rank {
            let first = case.place(rank);
            for (at, packet) in case.sent(&figures(rank), &numbers(rank)) {
                expected[first + at] = packet;
            }
        }
        ensure!(
            found.values()? == expected,
            "{case:?}: member {member} was sent other packets"
        );
    }
    Ok(())
}

/// The numbers of all members, added in the order of the ranks.
fn added<T: Copy>(of: impl Fn(usize) -> Vec<T>, plus: impl Fn(T, T) -> T) -> Vec<T> {
    (1..SIZE).fold(of(0), |sums, rank| {
        let pairs = sums.into_iter().zip(of(rank));
        pairs.map(|(sum, own)| plus(sum, own)).collect()
    })
}
