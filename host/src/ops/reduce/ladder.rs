//! The lecture's ladder of sums, step by step; see [`gpu_kernels::reduce::ladder`] for what each step changes.

use gpu_kernels::reduce::ladder::{Ladder, LadderArgs};
use gpu_kernels::{Entry, Family, In, Launch};

pub use gpu_kernels::reduce::ladder::Step;

use crate::device::{Buffer, Device};
use crate::ops::{OpError, checks};

/// All steps in their order.
pub const STEPS: [Step; 6] = [
    Step::InterleavedModulo,
    Step::Interleaved,
    Step::Sequential,
    Step::FirstAdd,
    Step::LastWarp,
    Step::Shuffles,
];

/// Threads of a block, as in the lecture.
pub const BLOCK: u32 = 256;

/// The blocks' sums of one launch after the other, kept from call to call.
#[derive(Debug)]
pub struct Climber {
    device: Device,
    step: Step,
    sums: Vec<Buffer<f32>>,
}

impl Climber {
    /// For arrays of `len` elements on a GPU or an emulator.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has no memory left.
    pub fn new(device: &Device, step: Step, len: usize) -> Result<Climber, OpError> {
        let per_block = BLOCK as usize * step.per_thread() as usize;
        let mut sums = Vec::new();
        let mut left = len;
        while left > 1 || sums.is_empty() {
            left = left.div_ceil(per_block);
            sums.push(device.zeros(left.max(1))?);
        }
        Ok(Climber {
            device: device.clone(),
            step,
            sums,
        })
    }

    /// Σ xᵢ in f32: the step's kernel again and again until one number is left, which stays on the device.
    ///
    /// # Errors
    /// [`OpError::Length`] when x is empty or longer than promised, [`OpError::Device`] when the device fails
    /// or is the CPU.
    pub fn submit(&mut self, x: &Buffer<f32>) -> Result<(), OpError> {
        let per_block = BLOCK as usize * self.step.per_thread() as usize;
        let blocks = x.len().div_ceil(per_block);
        checks::length("the blocks' sums of x", self.sums[0].len(), blocks)?;
        for level in 0..self.sums.len() {
            let (done, todo) = self.sums.split_at_mut(level);
            let input = done.last().unwrap_or(x);
            run(&self.device, self.step, input.input(), &mut todo[0])?;
        }
        Ok(())
    }

    /// The sum of the last [`submit`](Climber::submit).
    ///
    /// # Errors
    /// [`OpError::Device`] when the device failed.
    pub fn fetch(&self) -> Result<f32, OpError> {
        let last = self.sums.last().expect("there is one level at least");
        Ok(last.read_scalar(0)?)
    }
}

fn run(device: &Device, step: Step, x: In<'_, f32>, out: &mut Buffer<f32>) -> Result<(), OpError> {
    let shape = Launch {
        grid: out.len() as u32,
        block: BLOCK,
        shared_bytes: step.shared_bytes(BLOCK),
    };
    let args = LadderArgs {
        x,
        len: x.len(),
        out: out.output(),
    };
    Ok(device.prepare(entry(step), shape)?.launch(args)?)
}

fn entry(step: Step) -> &'static Entry<Ladder> {
    let found = Ladder::entries().iter().find(|entry| entry.variant == step);
    found.expect("the table has every step")
}
