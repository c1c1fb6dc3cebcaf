//! Sums of numbers on devices: by one launch of ours where they are few, and by the link's library.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use warpfuse::device::group::GroupNumber;
use warpfuse::plan::scaling::{self, Link, Machines, OneLaunch};

use super::Wanted;
use super::members::{Member, Members};

/// Bytes.
const SIZES: [usize; 10] = [
    224,
    4 << 10,
    32 << 10,
    128 << 10,
    256 << 10,
    1 << 20,
    8 << 20,
    64 << 20,
    256 << 20,
    1 << 30,
];

/// Times them, for each number of members.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    for size in wanted.sizes.iter().copied().filter(|size| *size > 1) {
        members.run(size, |member| {
            for bytes in SIZES.map(|bytes| bytes / wanted.divide.min(bytes / 8)) {
                sum::<f32>(member, bytes, |rank| rank as f32)?;
                sum::<i64>(member, bytes, |rank| rank as i64)?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Both ways where there are two.
fn sum<T: GroupNumber + PartialEq + std::fmt::Debug>(
    member: &Member,
    bytes: usize,
    number: impl Fn(usize) -> T,
) -> Result<()> {
    let group = &member.group;
    one_sum(member, bytes, &number)?;
    if bytes as u64 > scaling::ONE_LAUNCH.most_bytes || group.link_name().is_none() {
        return Ok(());
    }
    group.set_one_launch(false)?;
    one_sum(member, bytes, &number)?;
    Ok(group.set_one_launch(true)?)
}

fn one_sum<T: GroupNumber + PartialEq + std::fmt::Debug>(
    member: &Member,
    bytes: usize,
    number: impl Fn(usize) -> T,
) -> Result<()> {
    let (group, len) = (&member.group, bytes / size_of::<T>());
    let mut numbers = member.device.upload(&vec![number(group.rank() + 1); len])?;
    group.sum_on_devices(&mut numbers)?;
    let expected = number(group.size() * (group.size() + 1) / 2);
    ensure!(
        numbers.to_vec()?.iter().all(|sum| *sum == expected),
        "a sum of {bytes} bytes is wrong"
    );
    // Zeros stay zeros, however often they are added.
    numbers.fill_zero()?;
    let count = if bytes <= 1 << 20 { 200 } else { 5 };
    let seconds = member.time((3, count), || Ok(group.sum_on_devices(&mut numbers)?))?;
    // What the host does for it, while the devices have enough to do.
    let begun = Instant::now();
    for _ in 0..count {
        group.sum_on_devices(&mut numbers)?;
    }
    let submitted = begun.elapsed().as_secs_f64() / count as f64;
    member.device.synchronize()?;
    let others = (group.size() - 1) as f64 / group.size() as f64;
    member.tell(&json!({
        "what": "sum",
        "type": T::NAME,
        "bytes": bytes,
        "members": group.size(),
        "engine": group.link_name(),
        "us": 1e6 * seconds,
        "host_us": 1e6 * submitted,
        "bus_gb_s": 2.0 * others * bytes as f64 / seconds / 1e9,
    }));
    Ok(())
}

/// The links of two members, from two sums each; those that are known where there is none.
pub fn links(member: &Member, divide: usize) -> Result<Machines> {
    let (group, known) = (&member.group, machines(1));
    let took = |bytes: usize, count: usize| -> Result<(u64, f64)> {
        let bytes = (bytes / divide).max(8);
        let mut numbers = member.device.zeros::<f32>(bytes / size_of::<f32>())?;
        let us = 1e6 * member.time((3, count), || Ok(group.sum_on_devices(&mut numbers)?))?;
        Ok((bytes as u64, us))
    };
    let small = Link::of_two_gpus(took(224, 200)?, took(256 << 10, 200)?);
    let large = Link::of_two_gpus(took(64 << 20, 5)?, took(1 << 30, 3)?);
    Ok(Machines {
        link: large.unwrap_or(known.link),
        one_launch: OneLaunch {
            link: small.unwrap_or(known.one_launch.link),
            ..known.one_launch
        },
        ..known
    })
}

/// This many GPUs of one machine, over the links that two H100 had.
pub fn machines(gpus: usize) -> Machines {
    Machines {
        gpus: gpus as u32,
        nodes: 1,
        link: scaling::NVLINK,
        one_launch: scaling::ONE_LAUNCH,
        network: scaling::NETWORK,
    }
}
