//! Entries around products with a centred and scaled X, on integers, whose results are exact.

use anyhow::{Context, Result};
use gpu_kernels::design::{DesignArgs, DesignVariant};
use gpu_kernels::{Entry, In, Launch, Out};
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::{Array, Launcher, guarded, unguarded};
use warpfuse_tests::tolerance::{Truth, compare};

use super::{blocks, grids, number, numbers};

/// Behind the end of an output, and in what a kernel must not touch.
const CANARY: f64 = -12_345.0;
const L2: f64 = 4.0;
const INTERCEPT_L2: f64 = 2.0;
/// Σ g.
const SLOPE: f64 = 3.0;

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
    shape: Shape,
    theta: Vec<f64>,
    scales: Vec<f64>,
    centres: Vec<f64>,
    raw: Vec<f64>,
}

/// Runs one entry on every length, with all blocks and grids.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
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
            let trial = Trial::new(cols, shape);
            for block in blocks(launcher, entry, subset)? {
                for &grid in grids(subset) {
                    let shared_bytes = entry.variant.shared_bytes(block) as u32;
                    let launch = Launch {
                        grid,
                        block,
                        shared_bytes,
                    };
                    trial
                        .run::<L, T>(launcher, entry, launch)
                        .with_context(|| format!("{cols} columns, {shape:?}, {launch:?}"))?;
                }
            }
        }
    }
    Ok(())
}

impl Trial {
    fn new(cols: usize, shape: Shape) -> Trial {
        let random = &mut Random::new(cols as u64);
        let len = cols + usize::from(shape != Shape::Plain);
        let mut integers = |len: usize| (0..len).map(|_| random.integer(4)).collect::<Vec<_>>();
        let mut centres = integers(len);
        if shape != Shape::Plain {
            centres[cols] = 1.0;
        }
        Trial {
            cols,
            shape,
            theta: integers(len),
            scales: integers(cols),
            raw: integers(cols),
            centres,
        }
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

    fn constant(&self) -> f64 {
        let products = self.theta.iter().enumerate();
        products.map(|(i, theta)| theta * self.centre(i)).sum()
    }

    fn pull(&self, i: usize) -> f64 {
        self.theta[i] * if i < self.cols { L2 } else { INTERCEPT_L2 }
    }

    fn left(&self, i: usize) -> f64 {
        let own = if i < self.cols {
            self.scale(i) * self.raw[i]
        } else {
            0.0
        };
        own + self.centre(i) * SLOPE + self.pull(i)
    }

    fn run<L: Launcher, T: Number>(
        &self,
        launcher: &L,
        entry: &'static Entry<T::Designs>,
        launch: Launch,
    ) -> Result<()> {
        let len = self.theta.len();
        let input = |values: &[f64]| {
            guarded(
                launcher,
                &numbers::<T>(values.iter().copied()),
                number(f64::NAN),
            )
        };
        let [theta, scales, centres, raw] =
            [&self.theta, &self.scales, &self.centres, &self.raw].map(|values| input(values));
        let (theta, scales, centres, raw) = (theta?, scales?, centres?, raw?);
        let sums = guarded(launcher, &[f64::NAN, SLOPE], f64::NAN)?;
        let enters = entry.variant == DesignVariant::Enter;
        let written = if enters { self.cols } else { len };
        let mut out = guarded(
            launcher,
            &vec![number::<T>(CANARY); written],
            number(CANARY),
        )?;
        let mut constant = guarded(launcher, &[number::<T>(CANARY)], number(CANARY))?;
        let sum = || guarded(launcher, &vec![CANARY; launch.grid as usize], CANARY);
        let (mut partials, mut squares) = (sum()?, sum()?);
        let args = DesignArgs {
            cols: self.cols as u64,
            len: len as u64,
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
            constant: if enters {
                constant.output()
            } else {
                Out::none()
            },
            partials: partials.output(),
            squares: squares.output(),
        };
        launcher.launch(entry, launch, args)?;
        let found = unguarded(&out, number(CANARY))?;
        let expected: Vec<f64> = if enters {
            let ys = self.theta[..self.cols].iter().enumerate();
            ys.map(|(i, theta)| theta * self.scale(i)).collect()
        } else {
            (0..len).map(|i| self.left(i)).collect()
        };
        compare(&found, &Truth::exact(expected)).context("out")?;
        let total =
            |sums: &L::Array<f64>| -> Result<f64> { Ok(unguarded(sums, CANARY)?.iter().sum()) };
        let (first, second) = (total(&partials)?, total(&squares)?);
        if enters {
            compare(&[first], &Truth::exact(vec![self.constant()])).context("a·θ")?;
            let own = if launch.grid == 1 {
                self.constant()
            } else {
                CANARY
            };
            let constant = unguarded(&constant, number(CANARY))?;
            return compare(&constant, &Truth::exact(vec![own]))
                .map(drop)
                .context("c");
        }
        let ridge = (0..len).map(|i| 0.5 * self.theta[i] * self.pull(i)).sum();
        let squared = (0..len).map(|i| self.left(i).powi(2)).sum();
        compare(&[first], &Truth::exact(vec![ridge])).context("ridge")?;
        compare(&[second], &Truth::exact(vec![squared])).context("squares")?;
        Ok(())
    }
}
