//! Entries around products with a centred and scaled X, on integers, whose results are exact.

use anyhow::{Context, Result};
use gpu_kernels::design::{DesignArgs, DesignVariant};
use gpu_kernels::{Entry, In, Launch, Out};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::{Guarded, launch};
use warpfuse_tests::tolerance::{Truth, compare};

use super::{CANARY, input, launches, number, numbers, output};

const L2: f64 = 4.0;
const INTERCEPT_L2: f64 = 2.0;
/// Σ v·loss.
const LOSS: f64 = 7.0;
/// Σ g of the first right-hand side; each further one has 1 more.
const SLOPE: f64 = 3.0;
/// Right-hand sides: one, few, more than a warp has lanes.
const CLASSES: [usize; 3] = [1, 3, 40];

/// Which optional vectors are there, and whether θ has an intercept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Plain,
    Intercept,
    Centred,
    Scaled,
}

/// Vectors of one length.
struct Trial {
    cols: usize,
    classes: usize,
    shape: Shape,
    theta: Vec<f64>,
    scales: Vec<f64>,
    centres: Vec<f64>,
    raw: Vec<f64>,
}

/// Runs one entry on every length, with all blocks and grids.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Designs>,
    subset: Subset,
) -> Result<()> {
    for cols in [0, 1, 32, 257, 1_000] {
        for shape in [
            Shape::Plain,
            Shape::Intercept,
            Shape::Centred,
            Shape::Scaled,
        ] {
            for classes in CLASSES {
                let trial = Trial::new(cols, classes, shape);
                trial.check::<T>(device, entry, subset)?;
            }
        }
    }
    Ok(())
}

impl Trial {
    /// With all blocks that have a thread per right-hand side, and all grids.
    fn check<T: Number>(
        &self,
        device: &Device,
        entry: &'static Entry<T::Designs>,
        subset: Subset,
    ) -> Result<()> {
        let shared = |block| entry.variant.shared_bytes(block);
        let shapes = launches(device, entry, subset, shared)?.into_iter();
        for shape in shapes.filter(|shape| shape.block as usize >= self.classes) {
            self.run::<T>(device, entry, shape).with_context(|| {
                let Trial {
                    cols,
                    classes,
                    shape: of,
                    ..
                } = self;
                format!("{cols} × {classes}, {of:?}, {shape:?}")
            })?;
        }
        Ok(())
    }

    fn new(cols: usize, classes: usize, shape: Shape) -> Trial {
        let random = &mut Random::new(cols as u64);
        let len = cols + usize::from(shape != Shape::Plain);
        let mut integers = |len: usize| (0..len).map(|_| random.integer(4)).collect::<Vec<_>>();
        let mut centres = integers(len);
        if shape != Shape::Plain {
            centres[cols] = 1.0;
        }
        Trial {
            cols,
            classes,
            shape,
            theta: integers(len * classes),
            scales: integers(cols),
            raw: integers(cols * classes),
            centres,
        }
    }

    /// Of one of the numbers of right-hand sides no figures are wanted.
    fn wants_figures(&self) -> bool {
        self.classes != CLASSES[1]
    }

    fn is_centred(&self) -> bool {
        matches!(self.shape, Shape::Centred | Shape::Scaled)
    }

    fn centre(&self, i: usize) -> f64 {
        match () {
            () if self.is_centred() => self.centres[i],
            () if i == self.cols => 1.0,
            () => 0.0,
        }
    }

    fn scale(&self, i: usize) -> f64 {
        if self.shape == Shape::Scaled {
            self.scales[i]
        } else {
            1.0
        }
    }

    fn constant(&self, class: usize) -> f64 {
        let column = self.theta.iter().skip(class).step_by(self.classes);
        let products = column.enumerate();
        products.map(|(j, theta)| theta * self.centre(j)).sum()
    }

    fn pull(&self, i: usize) -> f64 {
        let is_coefficient = i / self.classes < self.cols;
        self.theta[i] * if is_coefficient { L2 } else { INTERCEPT_L2 }
    }

    fn left(&self, i: usize) -> f64 {
        let (j, class) = (i / self.classes, i % self.classes);
        let own = if j < self.cols {
            self.scale(j) * self.raw[i]
        } else {
            0.0
        };
        own + self.centre(j) * (SLOPE + class as f64) + self.pull(i)
    }

    /// Element i of the result.
    fn expected(&self, enters: bool) -> Vec<f64> {
        if enters {
            let ys = self.theta[..self.cols * self.classes].iter().enumerate();
            return ys
                .map(|(i, theta)| theta * self.scale(i / self.classes))
                .collect();
        }
        (0..self.theta.len()).map(|i| self.left(i)).collect()
    }

    fn run<T: Number>(
        &self,
        device: &Device,
        entry: &'static Entry<T::Designs>,
        shape: Launch,
    ) -> Result<()> {
        let given = |values: &[f64]| input(device, &numbers::<T>(values.iter().copied()));
        let [theta, scales, centres, raw] =
            [&self.theta, &self.scales, &self.centres, &self.raw].map(|values| given(values));
        let (theta, scales, centres, raw) = (theta?, scales?, centres?, raw?);
        let slopes = (0..self.classes).map(|class| SLOPE + class as f64);
        let sums: Vec<f64> = std::iter::once(LOSS).chain(slopes).collect();
        let sums = input(device, &sums)?;
        let enters = entry.variant == DesignVariant::Enter;
        let expected = self.expected(enters);
        let mut out = output(device, &vec![number::<T>(CANARY); expected.len()])?;
        let mut constants = output(device, &vec![number::<T>(CANARY); self.classes])?;
        let blocks = u64::from(shape.grid) * entry.variant.partials(self.classes as u32);
        let mut partials = output(device, &vec![CANARY; blocks as usize])?;
        let mut figures = output(device, &[CANARY; 3])?;
        let mut counter = Guarded::new(device, &[0_u32], u32::MAX)?;
        let args = DesignArgs {
            cols: self.cols as u64,
            len: (self.theta.len() / self.classes) as u64,
            classes: self.classes as u32,
            l2: number(L2),
            intercept_l2: number(INTERCEPT_L2),
            theta: theta.input(),
            scales: if self.shape == Shape::Scaled {
                scales.input()
            } else {
                In::none()
            },
            centres: if self.is_centred() {
                centres.input()
            } else {
                In::none()
            },
            raw: raw.input(),
            sums: sums.input(),
            out: out.output(),
            constants: constants.output(),
            figures: if self.wants_figures() {
                figures.output()
            } else {
                Out::none()
            },
            partials: partials.output(),
            counter: counter.output(),
        };
        launch(device, entry, shape, args)?;
        compare(&out.values()?, &Truth::exact(expected)).context("out")?;
        anyhow::ensure!(counter.values()? == [0], "the counter is left at 0");
        let (constants, figures) = (constants.values()?, figures.values()?);
        if enters {
            let expected = (0..self.classes)
                .map(|class| match self.shape {
                    // Nobody reads them.
                    Shape::Plain => CANARY,
                    _ => self.constant(class),
                })
                .collect();
            compare(&constants, &Truth::exact(expected)).context("a·θ")?;
            return compare(&figures, &Truth::exact(vec![CANARY; 3]))
                .map(drop)
                .context("figures");
        }
        let all = 0..self.theta.len();
        let ridge = all
            .clone()
            .map(|i| 0.5 * self.theta[i] * self.pull(i))
            .sum();
        let squared = all.map(|i| self.left(i).powi(2)).sum();
        let expected = match self.wants_figures() {
            true => vec![LOSS, ridge, squared],
            false => vec![CANARY; 3],
        };
        compare(&figures, &Truth::exact(expected)).context("figures")?;
        let kept = vec![CANARY; self.classes];
        compare(&constants, &Truth::exact(kept))
            .map(drop)
            .context("constants")
    }
}
