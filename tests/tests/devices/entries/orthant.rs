//! Entries of l1 penalties, on integers, whose results are exact.

use anyhow::{Context, Result, ensure};
use gpu_kernels::design::orthant::{OrthantArgs, OrthantVariant};
use gpu_kernels::{Entry, Launch};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::{Guarded, launch};
use warpfuse_tests::tolerance::{Truth, compare};

use super::{CANARY, argument, input, launches, number, numbers, output};

const L1: f64 = 2.0;
const STEP: f64 = 0.5;

/// Vectors of one length; the last three coordinates have no penalty.
struct Trial {
    penalised: usize,
    theta: Vec<f64>,
    gradient: Vec<f64>,
    inverse: Vec<f64>,
    direction: Option<Vec<f64>>,
}

/// Runs one entry on every length, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Orthants>,
    subset: Subset,
) -> Result<()> {
    let shared = |block| entry.variant.shared_bytes(block);
    let shapes = launches(device, entry, subset, shared)?;
    for len in [0, 1, 32, 257, 1_000] {
        for directed in [false, true] {
            let trial = Trial::new(len, directed);
            for &shape in &shapes {
                trial
                    .run::<T>(device, entry, shape)
                    .with_context(|| format!("{len} elements, directed {directed}, {shape:?}"))?;
            }
        }
    }
    Ok(())
}

impl Trial {
    fn new(len: usize, directed: bool) -> Trial {
        let random = &mut Random::new(len as u64 + 5);
        let mut integers = |most| (0..len).map(|_| random.integer(most)).collect::<Vec<f64>>();
        Trial {
            penalised: len.saturating_sub(3),
            theta: integers(2),
            gradient: integers(5),
            inverse: integers(2).iter().map(|x| x.abs()).collect(),
            direction: directed.then(|| integers(4)),
        }
    }

    fn l1(&self, i: usize) -> f64 {
        if i < self.penalised { L1 } else { 0.0 }
    }

    /// By cases, as the definition has them.
    fn subgradient(&self, i: usize) -> f64 {
        let (x, g, l1) = (self.theta[i], self.gradient[i], self.l1(i));
        match () {
            () if x != 0.0 => g + l1 * x.signum(),
            () if g.abs() <= l1 => 0.0,
            () => g - l1 * g.signum(),
        }
    }

    fn projected(&self, i: usize) -> f64 {
        let (x, v, l1) = (self.theta[i], self.subgradient(i), self.l1(i));
        let descent = -self.inverse[i] * v;
        let d = match &self.direction {
            Some(d) if x == 0.0 && l1 > 0.0 && d[i] * v >= 0.0 => descent,
            Some(d) => d[i],
            None => descent,
        };
        let to = x + STEP * d;
        let orthant = if x == 0.0 { -v } else { x };
        if l1 > 0.0 && to * orthant <= 0.0 {
            0.0
        } else {
            to
        }
    }

    fn run<T: Number>(
        &self,
        device: &Device,
        entry: &'static Entry<T::Orthants>,
        shape: Launch,
    ) -> Result<()> {
        let len = self.theta.len();
        let all = 0..len;
        let upload = |values: Vec<f64>| input(device, &numbers::<T>(values));
        let v: Vec<f64> = all.clone().map(|i| self.subgradient(i)).collect();
        let [theta, gradient, inverse, subgradient] = [
            self.theta.clone(),
            self.gradient.clone(),
            self.inverse.clone(),
            v.clone(),
        ]
        .map(upload);
        let (theta, gradient) = (theta?, gradient?);
        let (inverse, subgradient) = (inverse?, subgradient?);
        let direction = self.direction.clone().map(upload).transpose()?;
        let canaries = vec![number::<T>(CANARY); len];
        let mut out = output(device, &canaries)?;
        let mut free = output(device, &canaries)?;
        let mut figures = output(device, &[CANARY; 2])?;
        let mut partials = output(device, &vec![CANARY; 2 * shape.grid as usize])?;
        let mut counter = Guarded::new(device, &[0_u32], u32::MAX)?;
        let args = OrthantArgs {
            len: len as u64,
            penalised: self.penalised as u64,
            l1: number(L1),
            step: number(STEP),
            theta: theta.input(),
            gradient: gradient.input(),
            subgradient: subgradient.input(),
            inverse_diagonal: inverse.input(),
            direction: argument(&direction),
            out: out.output(),
            free: free.output(),
            figures: figures.output(),
            partials: partials.output(),
            counter: counter.output(),
        };
        launch(device, entry, shape, args)?;
        ensure!(counter.values()? == [0], "the counter is left at 0");
        let (found, figures) = (out.values()?, figures.values()?);
        if entry.variant == OrthantVariant::Project {
            let to: Vec<f64> = all.clone().map(|i| self.projected(i)).collect();
            let slope = all.map(|i| v[i] * (to[i] - self.theta[i])).sum();
            compare(&found, &Truth::exact(to)).context("θ'")?;
            compare(&figures, &Truth::exact(vec![slope, CANARY])).context("figures")?;
            return Ok(());
        }
        let is_free = |i: usize| self.theta[i] != 0.0 || v[i] != 0.0;
        let kept = |i: usize| if is_free(i) { self.inverse[i] } else { 0.0 };
        let absolute = all.clone().map(|i| self.l1(i) * self.theta[i].abs()).sum();
        let square = v.iter().map(|v| v * v).sum();
        compare(&free.values()?, &Truth::exact(all.map(kept).collect())).context("free")?;
        compare(&found, &Truth::exact(v)).context("v")?;
        compare(&figures, &Truth::exact(vec![absolute, square])).context("figures")?;
        Ok(())
    }
}
