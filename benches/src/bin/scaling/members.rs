//! Who computes: threads, or processes.

use std::ops::Range;
use std::time::Instant;

use anyhow::Result;
use serde_json::Value;
use warpfuse::device::Device;
use warpfuse::device::group::{Group, run_threads};

use super::Wanted;

/// Rows at whose multiples shares begin.
pub const STEP: usize = 64;

/// What members compute on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// GPUs.
    Cuda,
    /// Threads of the CPU, to try the program.
    Cpu,
}

/// Those that a launcher started, or whoever this process starts.
pub struct Members {
    kind: Kind,
    /// With others, where a launcher started them.
    group: Group,
}

/// One member.
pub struct Member {
    /// Of which group.
    pub group: Group,
    /// Its device.
    pub device: Device,
}

impl Member {
    /// Prints a line, if it is the first one.
    pub fn tell(&self, line: &Value) {
        if self.group.is_first() {
            println!("{line}");
        }
    }

    /// Its rows of this many.
    pub fn rows(&self, all: usize) -> Range<usize> {
        let (rank, size) = (self.group.rank(), self.group.size());
        let steps = all.div_ceil(STEP);
        let first = |rank: usize| all.min(steps * rank / size * STEP);
        first(rank)..first(rank + 1)
    }

    /// Whether the seconds that this program may take are over, on any member's watch.
    pub fn is_late(&self, wanted: &Wanted) -> Result<bool> {
        let mut spent = [wanted.begun.elapsed().as_secs_f64()];
        self.group.max(&mut spent)?;
        Ok(spent[0] > wanted.seconds)
    }

    /// [`Member::time`] for about as many seconds in all, after a run that makes plans and one that shows how many to make.
    pub fn time_for(&self, seconds: f64, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
        let one = self.time((1, 1), &mut work)?;
        let repeats = ((seconds / one) as usize).clamp(2, 5);
        let count = (seconds / (one * repeats as f64)) as usize;
        let more = self.time((repeats, count.clamp(1, 200)), &mut work)?;
        Ok(more.min(one))
    }

    /// Seconds that `work` takes, the longest of all members; the least of `repeats` runs of `count` each.
    pub fn time(
        &self,
        (repeats, count): (usize, usize),
        mut work: impl FnMut() -> Result<()>,
    ) -> Result<f64> {
        let mut least = f64::INFINITY;
        for repeat in 0..=repeats {
            self.device.synchronize()?;
            self.group.barrier()?;
            let begun = Instant::now();
            for _ in 0..count {
                work()?;
            }
            self.device.synchronize()?;
            let mut seconds = [begun.elapsed().as_secs_f64() / count as f64];
            self.group.max(&mut seconds)?;
            // The first one makes plans and loads kernels.
            if repeat > 0 {
                least = least.min(seconds[0]);
            }
        }
        Ok(least)
    }
}

impl Members {
    /// As the environment says.
    pub fn begin(kind: Kind) -> Result<Members> {
        let group = Group::from_environment()?;
        Ok(Members { kind, group })
    }

    /// Has `size` members do the same. Processes are as many as there are.
    pub fn run<R: Send>(
        &self,
        size: usize,
        work: impl Fn(&Member) -> Result<R> + Sync,
    ) -> Result<Vec<R>> {
        if !self.group.is_alone() {
            if size != self.group.size() {
                return Ok(Vec::new());
            }
            let local = std::env::var("LOCAL_RANK").ok();
            let number = local.map_or(Ok(self.group.rank() as u32), |local| local.parse())?;
            return Ok(vec![work(&self.member(self.group.clone(), number)?)?]);
        }
        let ends = run_threads(size, |group| {
            let number = group.rank() as u32;
            let end = self
                .member(group.clone(), number)
                .and_then(|member| work(&member));
            if let Err(error) = &end {
                group.fail(&format!("{error:#}"));
            }
            end
        });
        ends.into_iter().collect()
    }

    fn member(&self, group: Group, number: u32) -> Result<Member> {
        let own = match self.kind {
            Kind::Cuda => Device::cuda(number)?,
            Kind::Cpu => Device::cpu(),
        };
        let device = own.in_group(&group)?;
        Ok(Member { group, device })
    }

    /// Waits for the others.
    pub fn end(self) -> Result<()> {
        Ok(self.group.barrier()?)
    }
}
