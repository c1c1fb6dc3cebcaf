//! Entries over vectors, on integers, whose results are exact.

use anyhow::{Context, Result};
use gpu_kernels::vector::{VectorArgs, VectorVariant};
use gpu_kernels::{Entry, In, Launch};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::launch;
use warpfuse_tests::tolerance::{Truth, compare};

use super::{CANARY, input, launches, number, numbers, output};

const ALPHA: f64 = 3.0;
const BETA: f64 = -2.0;
/// Steps of the copy with strides.
const STRIDES: [u32; 2] = [2, 3];
/// Before a scalar is written, and what `steer` divides by.
const FIGURES: [f64; 3] = [6.0, 4.0, 2.0];

/// Whether the operand that an entry may do without is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    Given,
    Absent,
}

/// Operands and expectations of one length.
struct Trial {
    len: usize,
    a: Vec<f64>,
    b: Vec<f64>,
    out: Vec<f64>,
}

/// Runs one entry on every length, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Vectors>,
    subset: Subset,
) -> Result<()> {
    let shared = |block| entry.variant.shared_bytes(block);
    let mut shapes = launches(device, entry, subset, shared)?;
    if entry.variant == VectorVariant::Total {
        // It is of one block.
        shapes.iter_mut().for_each(|shape| shape.grid = 1);
        shapes.dedup();
    }
    for len in [0, 1, 31, 32, 33, 255, 257, 1_000, 4_099] {
        let trial = Trial::new(len);
        for &shape in &shapes {
            for second in [Second::Given, Second::Absent] {
                trial
                    .run::<T>(device, entry, shape, second)
                    .with_context(|| format!("{len} elements, {second:?}, {shape:?}"))?;
            }
        }
    }
    Ok(())
}

impl Trial {
    fn new(len: usize) -> Trial {
        let random = &mut Random::new(len as u64);
        let mut integers = || (0..len).map(|_| random.integer(9)).collect();
        Trial {
            len,
            a: integers(),
            b: integers(),
            out: integers(),
        }
    }

    fn run<T: Number>(
        &self,
        device: &Device,
        entry: &'static Entry<T::Vectors>,
        shape: Launch,
        second: Second,
    ) -> Result<()> {
        let upload = |values: &[f64]| input(device, &numbers::<T>(values.iter().copied()));
        let a = match entry.variant {
            VectorVariant::Strided => upload(&apart(&self.a, STRIDES[0]))?,
            _ => upload(&self.a)?,
        };
        let b = upload(&self.b)?;
        let mut out = output(device, &numbers::<T>(self.out_before(entry.variant)))?;
        let mut partials = output(device, &self.partials_before(entry.variant, shape))?;
        let mut figures = output(device, &FIGURES)?;
        let mut counter = device.upload(&[0_u32])?;
        let absent = |when| second == Second::Absent && entry.variant == when;
        let args = VectorArgs {
            len: self.len as u64,
            alpha: number(ALPHA),
            beta: number(BETA),
            a: if absent(VectorVariant::Update) {
                In::none()
            } else {
                a.input()
            },
            b: if absent(VectorVariant::Combine) {
                In::none()
            } else {
                b.input()
            },
            out: out.output(),
            partials: partials.output(),
            strides: STRIDES,
            figures: figures.output(),
            slots: [0, 1, 2],
            counter: counter.output(),
        };
        launch(device, entry, shape, args)?;
        let after = Truth::exact(self.out_after(entry.variant, second));
        compare(&out.values()?, &after)?;
        let partials = partials.values()?;
        if entry.variant == VectorVariant::Dot {
            let sum: f64 = partials.iter().sum();
            compare(&[sum], &Truth::exact(vec![self.dot()]))?;
        }
        let mut expected = FIGURES.to_vec();
        if entry.variant == VectorVariant::DotTo {
            expected[0] = self.dot();
        }
        compare(&figures.values()?, &Truth::exact(expected))?;
        Ok(())
    }

    fn dot(&self) -> f64 {
        self.a.iter().zip(&self.b).map(|(a, b)| a * b).sum()
    }

    fn out_before(&self, variant: VectorVariant) -> Vec<f64> {
        match variant {
            VectorVariant::Update | VectorVariant::Steer => self.out.clone(),
            VectorVariant::Total => vec![CANARY; 2],
            VectorVariant::Strided => vec![CANARY; apart(&self.a, STRIDES[1]).len()],
            _ => vec![CANARY; self.len],
        }
    }

    /// The sum's input, or one place per block.
    fn partials_before(&self, variant: VectorVariant, shape: Launch) -> Vec<f64> {
        match variant {
            VectorVariant::Total => self.a.clone(),
            _ => vec![CANARY; shape.grid as usize],
        }
    }

    fn out_after(&self, variant: VectorVariant, second: Second) -> Vec<f64> {
        let given = if second == Second::Given { 1.0 } else { 0.0 };
        let pairs = |x: &[f64], y: &[f64], (p, q): (f64, f64)| -> Vec<f64> {
            x.iter().zip(y).map(|(x, y)| p * x + q * y).collect()
        };
        match variant {
            VectorVariant::Fill => vec![ALPHA; self.len],
            VectorVariant::Combine => pairs(&self.a, &self.b, (ALPHA, given * BETA)),
            VectorVariant::Update => pairs(&self.a, &self.out, (given * ALPHA, BETA)),
            VectorVariant::Dot | VectorVariant::DotTo => vec![CANARY; self.len],
            VectorVariant::Strided => {
                let scaled: Vec<f64> = self.a.iter().map(|a| ALPHA * a).collect();
                apart(&scaled, STRIDES[1])
            }
            // (3·6 − 2·4) / 2.
            VectorVariant::Steer => pairs(&self.a, &self.out, (5.0, 1.0)),
            VectorVariant::Multiply => {
                let pairs = self.a.iter().zip(&self.b);
                pairs.map(|(a, b)| a * b).collect()
            }
            VectorVariant::Total => vec![self.a.iter().sum(), CANARY],
        }
    }
}

/// `values` with as many places from one to the next as `stride`, untouched ones between them.
fn apart(values: &[f64], stride: u32) -> Vec<f64> {
    let stride = stride as usize;
    let len = values.len().saturating_sub(1) * stride + usize::from(!values.is_empty());
    let mut all = vec![CANARY; len];
    let places = all.iter_mut().step_by(stride);
    places
        .zip(values)
        .for_each(|(place, value)| *place = *value);
    all
}
