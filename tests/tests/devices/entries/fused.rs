//! What sparse and dense entries of the pattern have in common: vectors on the device, and the truth.

use anyhow::{Context, Result};
use gpu_kernels::{In, Launch};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse::reference::fused::Terms;
use warpfuse_tests::launcher::Guarded;
use warpfuse_tests::sample::{Part, Sample};
use warpfuse_tests::tolerance::Truth;

use super::super::suite;
use super::{argument, input, number, output};

/// The vectors of a product, of one side or of several.
pub struct Vectors<T> {
    /// y or p.
    pub input: Guarded<T>,
    /// v.
    pub weights: Option<Guarded<T>>,
    /// s.
    pub shift: Option<Guarded<T>>,
    /// z, where the entry reads it.
    pub addend: Option<Guarded<T>>,
    /// α and β.
    pub scalars: (T, T),
}

/// The same as arguments.
pub struct Given<'a, T> {
    /// y or p.
    pub input: In<'a, T>,
    /// v.
    pub weights: In<'a, T>,
    /// s.
    pub shift: In<'a, T>,
    /// z.
    pub addend: In<'a, T>,
    /// α.
    pub alpha: T,
    /// β.
    pub beta: T,
}

impl<T: Number> Vectors<T> {
    /// As arguments of a launch.
    pub fn given(&self) -> Given<'_, T> {
        let (alpha, beta) = self.scalars;
        Given {
            input: self.input.input(),
            weights: argument(&self.weights),
            shift: argument(&self.shift),
            addend: argument(&self.addend),
            alpha,
            beta,
        }
    }
}

/// The vectors of one product with some optional parts, and what has to come out.
pub struct Operands<'a, T: Number> {
    device: &'a Device,
    product: Product,
    vectors: Vectors<T>,
    /// What the output holds before a launch.
    before: Vec<T>,
    truth: Truth,
}

impl<'a, T: Number> Operands<'a, T> {
    /// Uploads what the product takes. An accumulating product starts from z, another from NaN.
    pub fn new(
        device: &'a Device,
        sample: &Sample<T>,
        product: impl Into<Product>,
        parts: &[Part],
    ) -> Result<Self> {
        let product = product.into();
        let forward = product == Product::Forward;
        let optional = |part, values: &[T]| {
            let has = parts.contains(&part);
            has.then(|| input(device, values)).transpose()
        };
        let z = sample.addend(product);
        let chosen = sample.terms(product, parts);
        let accumulated = Terms {
            beta: number(1.0),
            z: Some(z),
            ..chosen
        };
        let nan = vec![number(f64::NAN); z.len()];
        let vectors = Vectors {
            input: input(device, sample.input(product))?,
            weights: optional(Part::Weights, &sample.weights)?,
            shift: optional(Part::Shift, &[sample.shift])?,
            // The other products add z into their output before the launch.
            addend: if forward {
                optional(Part::Addend, z)?
            } else {
                None
            },
            scalars: (chosen.alpha, sample.beta),
        };
        Ok(Operands {
            device,
            product,
            vectors,
            before: if forward { nan } else { z.to_vec() },
            truth: sample.truth(product, if forward { &chosen } else { &accumulated }),
        })
    }

    /// The same for entries that write β·z themselves, over whatever was there.
    pub fn of_overwriting(
        device: &'a Device,
        sample: &Sample<T>,
        product: Product,
        parts: &[Part],
    ) -> Result<Self> {
        let has_addend = parts.contains(&Part::Addend);
        let z = sample.addend(product);
        let mut operands = Self::new(device, sample, product, parts)?;
        operands.vectors.addend = has_addend.then(|| input(device, z)).transpose()?;
        operands.before = vec![number(f64::NAN); z.len()];
        operands.truth = sample.truth(product, &sample.terms(product, parts));
        Ok(operands)
    }

    /// The vectors as arguments.
    pub fn given(&self) -> Given<'_, T> {
        self.vectors.given()
    }

    /// Has `launch` compute into a fresh output, and compares that with the truth.
    pub fn check(
        &self,
        kernel: &str,
        shape: Launch,
        launch: impl FnOnce(&mut Guarded<T>) -> Result<()>,
    ) -> Result<()> {
        let mut output = output(self.device, &self.before)?;
        let checked = launch(&mut output)
            .and_then(|()| output.values())
            .and_then(|computed| self.compare(kernel, &computed));
        checked.with_context(|| format!("{shape:?}"))
    }

    fn compare(&self, kernel: &str, computed: &[T]) -> Result<()> {
        let device = self.device.to_string();
        suite::check_entry(&device, kernel, self.product, computed, &self.truth)
    }
}
