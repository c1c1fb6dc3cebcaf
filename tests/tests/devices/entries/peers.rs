//! Sums over GPUs, seen by one member: what the others gave it lies there already, and so do their flags.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use bytemuck::Pod;
use gpu_kernels::peers::{Addend, MOST_BLOCKS, MOST_FIGURES, MOST_MEMBERS, PeerArgs, PeerSums};
use gpu_kernels::{Entry, Family, Launch, Out};
use warpfuse::device::Device;
use warpfuse_tests::Subset;
use warpfuse_tests::launcher::{GUARD, Guarded, launch};

use super::grids;

/// Members.
const SIZE: usize = 3;
/// Elements beyond those that are added, and flags beyond those that are posted.
const UNTOUCHED: u32 = 99;

/// A member's memory, as all of them write it.
struct Memory<T> {
    parts: Guarded<T>,
    figures: Guarded<f64>,
    flags: Guarded<u32>,
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
        for (len, figures) in [(1, 0), (70, 3), (1_000, 16), (0, 2)] {
            for grid in grids(subset).iter().filter(|grid| **grid <= MOST_BLOCKS) {
                let case = (rank, which, len, figures, *grid);
                check_case(device, entry, case, number)?;
            }
        }
    }
    Ok(())
}

fn check_case<T>(
    device: &Device,
    entry: &'static Entry<PeerSums<T>>,
    (rank, which, len, figures, grid): (usize, u32, usize, usize, u32),
    number: fn(usize) -> T,
) -> Result<()>
where
    T: Addend + Pod + Debug + PartialEq,
    PeerSums<T>: for<'a> Family<Args<'a> = PeerArgs<'a, T>>,
{
    let room = len + 5;
    let value = |of: usize, i: usize| number(17 * of + 3 * i + 1);
    let figure = |of: usize, i: usize| (of * 5 + i) as f64 + 0.25;
    let half = (which % 2) as usize;
    let at = |of: usize, room: usize, i: usize| (half * SIZE + of) * room + i;
    let mut all = Vec::new();
    for member in 0..SIZE {
        let mut parts = vec![number(UNTOUCHED as usize); 2 * SIZE * room];
        let mut of_figures = vec![f64::from(UNTOUCHED); 2 * SIZE * MOST_FIGURES as usize];
        // The flag of a member that is ahead is that of the next sum.
        let mut flags = vec![which.wrapping_sub(1); SIZE * MOST_BLOCKS as usize];
        for of in (0..SIZE).filter(|of| member == rank && *of != rank) {
            (0..len).for_each(|i| parts[at(of, room, i)] = value(of, i));
            let room = MOST_FIGURES as usize;
            (0..figures).for_each(|i| of_figures[at(of, room, i)] = figure(of, i));
            let own = of * MOST_BLOCKS as usize..(of + 1) * MOST_BLOCKS as usize;
            flags[own].fill(which.wrapping_add(u32::from(of == 0)));
        }
        all.push(Memory {
            parts: Guarded::new(device, &parts, number(GUARD))?,
            figures: Guarded::new(device, &of_figures, GUARD as f64)?,
            flags: Guarded::new(device, &flags, GUARD as u32)?,
        });
    }
    let own: Vec<T> = (0..len).map(|i| value(rank, i)).collect();
    let own_figures: Vec<f64> = (0..figures).map(|i| figure(rank, i)).collect();
    let (mut values, mut sums) = (device.upload(&own)?, device.upload(&own_figures)?);
    let mut stop = device.upload(&[0_u32])?;
    let mut args = PeerArgs {
        rank: rank as u32,
        size: SIZE as u32,
        number: which,
        room: room as u64,
        values: values.output(),
        figures: sums.output(),
        parts: [Out::none(); MOST_MEMBERS],
        figure_parts: [Out::none(); MOST_MEMBERS],
        flags: [Out::none(); MOST_MEMBERS],
        stop: stop.output(),
    };
    for (member, memory) in all.iter_mut().enumerate() {
        args.parts[member] = memory.parts.output();
        args.figure_parts[member] = memory.figures.output();
        args.flags[member] = memory.flags.output();
    }
    let shape = Launch {
        grid,
        block: 96,
        shared_bytes: 0,
    };
    launch(device, entry, shape, args)?;
    let what = format!("rank {rank}, sum {which}, {len} and {figures} numbers, {grid} blocks");
    let expected: Vec<T> = (0..len)
        .map(|i| (1..SIZE).fold(value(0, i), |sum, of| sum.plus(value(of, i))))
        .collect();
    let found = values.to_vec()?;
    ensure!(found == expected, "{what}: other sums");
    let expected: Vec<f64> = (0..figures)
        .map(|i| (1..SIZE).fold(figure(0, i), |sum, of| sum + figure(of, i)))
        .collect();
    ensure!(sums.to_vec()? == expected, "{what}: other figures");
    for (member, memory) in all.iter().enumerate() {
        let (parts, flags) = (memory.parts.values()?, memory.flags.values()?);
        let given = (0..len).all(|i| parts[at(rank, room, i)] == own[i]);
        ensure!(given, "{what}: member {member} was not given all");
        let given = memory.figures.values()?;
        let given =
            (0..figures).all(|i| given[at(rank, MOST_FIGURES as usize, i)] == own_figures[i]);
        ensure!(given, "{what}: member {member} was not given all figures");
        let first = rank * MOST_BLOCKS as usize;
        for block in 0..MOST_BLOCKS {
            let is_posted = flags[first + block as usize] == which;
            ensure!(
                is_posted == (block < grid),
                "{what}: member {member} has a wrong flag of block {block}"
            );
        }
        let before = (1 - half) * SIZE * room;
        let untouched = number(UNTOUCHED as usize);
        let mut others = parts[before..before + SIZE * room].iter();
        ensure!(
            others.all(|value| *value == untouched),
            "{what}: member {member} lost numbers of the sum before"
        );
    }
    Ok(())
}
