//! Starts, sums and ends, one after the other.

use std::time::Instant;

use anyhow::Result;
use serde_json::json;

use super::Wanted;
use super::members::Members;

/// Counts and times them.
pub fn run(wanted: &Wanted, members: &Members) -> Result<()> {
    let (size, begun) = (wanted.most(), Instant::now());
    let mut longest = 0.0_f64;
    for _ in 0..wanted.times {
        let one = Instant::now();
        members.run(size, |member| {
            let mut numbers = member.device.upload(&[1.0_f64])?;
            member.group.sum_on_devices(&mut numbers)?;
            let sum = numbers.to_vec()?;
            anyhow::ensure!(sum == [member.group.size() as f64], "a sum is wrong");
            Ok(())
        })?;
        longest = longest.max(one.elapsed().as_secs_f64());
    }
    println!(
        "{}",
        json!({
            "what": "starts",
            "members": size,
            "times": wanted.times,
            "seconds": begun.elapsed().as_secs_f64(),
            "longest_seconds": longest,
        })
    );
    Ok(())
}
