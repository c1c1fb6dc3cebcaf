//! What sparse and dense entries of the pattern have in common: vectors on the device, and the truth.

use anyhow::{Context, Result};
use gpu_kernels::{In, Launch};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse::reference::fused::Terms;
use warpfuse_tests::launcher::{Array, Launcher, guarded, unguarded};
use warpfuse_tests::sample::{Part, Sample};
use warpfuse_tests::tolerance::Truth;

use super::super::suite;
use super::number;

/// What is behind the end of an output.
const CANARY: f64 = -12_345.0;

/// The vectors of one product with some optional parts, and what has to come out.
pub struct Operands<'a, L: Launcher, T: Number> {
    launcher: &'a L,
    product: Product,
    input: L::Array<T>,
    weights: Option<L::Array<T>>,
    shift: Option<L::Array<T>>,
    addend: Option<L::Array<T>>,
    /// What the output holds before a launch.
    before: Vec<T>,
    /// α and β.
    pub scalars: (T, T),
    truth: Truth,
}

impl<'a, L: Launcher, T: Number> Operands<'a, L, T> {
    /// Uploads what the product takes. An accumulating product starts from z, another from NaN.
    pub fn new(
        launcher: &'a L,
        sample: &Sample<T>,
        product: impl Into<Product>,
        parts: &[Part],
    ) -> Result<Self> {
        let product = product.into();
        let forward = product == Product::Forward;
        let has = |part| parts.contains(&part);
        let upload = |values: &[T]| guarded(launcher, values, number(f64::NAN));
        let optional = |part, values: &[T]| has(part).then(|| upload(values)).transpose();
        let z = sample.addend(product);
        let chosen = sample.terms(product, parts);
        let accumulated = Terms {
            beta: number(1.0),
            z: Some(z),
            ..chosen
        };
        let nan = vec![number(f64::NAN); z.len()];
        Ok(Operands {
            launcher,
            product,
            input: upload(sample.input(product))?,
            weights: optional(Part::Weights, &sample.weights)?,
            shift: optional(Part::Shift, &[sample.shift])?,
            // The other products add z into their output before the launch.
            addend: if forward {
                optional(Part::Addend, z)?
            } else {
                None
            },
            before: if forward { nan } else { z.to_vec() },
            scalars: (chosen.alpha, sample.beta),
            truth: sample.truth(product, if forward { &chosen } else { &accumulated }),
        })
    }

    /// The same for entries that write β·z themselves, over whatever was there.
    pub fn of_overwriting(
        launcher: &'a L,
        sample: &Sample<T>,
        product: Product,
        parts: &[Part],
    ) -> Result<Self> {
        let has_addend = parts.contains(&Part::Addend);
        let z = sample.addend(product);
        let of_z = || guarded(launcher, z, number(f64::NAN));
        let terms = sample.terms(product, parts);
        Ok(Operands {
            addend: has_addend.then(of_z).transpose()?,
            before: vec![number(f64::NAN); z.len()],
            truth: sample.truth(product, &terms),
            ..Self::new(launcher, sample, product, parts)?
        })
    }

    /// y or p.
    pub fn input(&self) -> In<'_, T> {
        self.input.input()
    }

    /// v.
    pub fn weights(&self) -> In<'_, T> {
        argument(&self.weights)
    }

    /// s.
    pub fn shift(&self) -> In<'_, T> {
        argument(&self.shift)
    }

    /// z, which only one product reads.
    pub fn addend(&self) -> In<'_, T> {
        argument(&self.addend)
    }

    /// Has `launch` compute into a fresh output, and compares that with the truth.
    pub fn check(
        &self,
        kernel: &str,
        shape: Launch,
        launch: impl FnOnce(&mut L::Array<T>) -> Result<()>,
    ) -> Result<()> {
        let canary = number(CANARY);
        let mut output = guarded(self.launcher, &self.before, canary)?;
        let checked = launch(&mut output)
            .and_then(|()| unguarded(&output, canary))
            .and_then(|computed| self.compare(kernel, &computed));
        checked.with_context(|| format!("{shape:?}"))
    }

    fn compare(&self, kernel: &str, computed: &[T]) -> Result<()> {
        suite::check_entry(
            &self.launcher.name(),
            kernel,
            self.product,
            computed,
            &self.truth,
        )
    }
}

fn argument<T>(array: &Option<impl Array<T>>) -> In<'_, T> {
    array.as_ref().map_or(In::none(), Array::input)
}
