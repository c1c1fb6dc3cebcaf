//! Sums of numbers on devices.

use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;
use warpfuse::device::group::GroupNumber;

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

/// Times them.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    let size = wanted.most();
    members.run(size, |member| {
        for bytes in SIZES.map(|bytes| bytes / wanted.divide.min(bytes / 8)) {
            sum::<f32>(member, bytes, |rank| rank as f32)?;
            sum::<u64>(member, bytes, |rank| rank as u64)?;
        }
        Ok(())
    })?;
    Ok(())
}

fn sum<T: GroupNumber + PartialEq + std::fmt::Debug>(
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
    let count = if bytes <= 1 << 20 { 200 } else { 10 };
    let seconds = member.time((5, count), || Ok(group.sum_on_devices(&mut numbers)?))?;
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
