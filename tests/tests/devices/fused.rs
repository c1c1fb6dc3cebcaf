//! The fused pattern and its halves as users call them: every case, every product.

use anyhow::{Context, Result, ensure};
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::Element;
use warpfuse::ops::{Matrix, Number, OpError, Terms};
use warpfuse::plan::fused::Product;
use warpfuse_tests::cases::{self, Case};
use warpfuse_tests::sample::{FULL, Part, Sample};
use warpfuse_tests::tolerance::Truth;

use super::suite::{self, Suite, Test};

/// All products.
pub const PRODUCTS: [Product; 3] = [Product::Fused, Product::Forward, Product::Transposed];

/// Stored entries of the largest case that every schedule of the emulator repeats.
const REPEATED: usize = 2_500;

/// Adds every case in both element types.
pub fn add(suite: &mut Suite) {
    for case in cases::all() {
        let test = |dtype| {
            let test = Test::new(format!("fused/{case}/{dtype}")).within(case.subset());
            match case.entries() <= REPEATED {
                true => test.under_every_schedule(),
                false => test,
            }
        };
        suite.add_in_both(
            test,
            move |device| run::<f32>(device, &case),
            move |device| run::<f64>(device, &case),
        );
    }
}

fn run<T: Number>(device: &Device, case: &Case) -> Result<()> {
    let sample = case.sample::<T>();
    let matrix = Matrix::new(device, sample.features.clone())?;
    for product in PRODUCTS {
        for parts in case.choices.lists() {
            let first = check(&matrix, &sample, product, &parts).with_context(|| {
                format!("{product:?} with {parts:?}{}", planned(&matrix, product))
            })?;
            if device.is_cpu() && parts == FULL {
                same_bits(&matrix, &sample, product, &first)?;
            }
        }
    }
    Ok(())
}

/// Computes one product and compares it with the truth; gives it.
pub fn check<T: Number>(
    matrix: &Matrix<T>,
    sample: &Sample<T>,
    product: Product,
    parts: &[Part],
) -> Result<Vec<T>> {
    let computed = compute(matrix, sample, product, parts)?;
    let truth = sample.truth(product, &sample.terms(product, parts));
    compare(matrix, sample, product, (&computed, &truth))?;
    Ok(computed)
}

/// Compares what was computed with the truth.
pub fn compare<T: Number>(
    matrix: &Matrix<T>,
    sample: &Sample<T>,
    product: Product,
    (computed, truth): (&[T], &Truth),
) -> Result<()> {
    let storage = if sample.features.is_sparse() {
        "sparse"
    } else {
        "dense"
    };
    let family = format!("{storage} {product:?}").to_lowercase();
    suite::check(matrix.device(), &family, computed, truth)
}

/// Uploads what the product takes, and computes it into a result that was full of NaN.
pub fn compute<T: Number>(
    matrix: &Matrix<T>,
    sample: &Sample<T>,
    product: Product,
    parts: &[Part],
) -> Result<Vec<T>> {
    let device = matrix.device();
    let has = |part| parts.contains(&part);
    let input = device.upload(sample.input(product))?;
    let weights = has(Part::Weights)
        .then(|| device.upload(&sample.weights))
        .transpose()?;
    let shift = has(Part::Shift)
        .then(|| device.upload(&[sample.shift]))
        .transpose()?;
    let z = sample.addend(product);
    let addend = has(Part::Addend).then(|| device.upload(z)).transpose()?;
    let terms = Terms {
        alpha: sample.terms(product, parts).alpha,
        weights: weights.as_ref(),
        shift: shift.as_ref(),
        addend: addend.as_ref().map(|z| (sample.beta, z)),
        ..Terms::default()
    };
    let mut result = device.upload(&vec![<T as Element>::from_f64(f64::NAN); z.len()])?;
    multiply(matrix, product, &input, &terms, &mut result)?;
    Ok(result.to_vec()?)
}

fn multiply<T: Number>(
    matrix: &Matrix<T>,
    product: Product,
    input: &Buffer<T>,
    terms: &Terms<'_, T>,
    result: &mut Buffer<T>,
) -> Result<(), OpError> {
    match product {
        Product::Fused => matrix.fused(input, terms, result),
        Product::Forward => matrix.forward(input, terms, result),
        Product::Transposed => matrix.transposed(input, terms, result),
    }
}

/// The CPU combines its threads' sums in a fixed order.
fn same_bits<T: Number>(
    matrix: &Matrix<T>,
    sample: &Sample<T>,
    product: Product,
    first: &[T],
) -> Result<()> {
    let second = compute(matrix, sample, product, FULL)?;
    ensure!(
        bits(first) == bits(&second),
        "{product:?}: two runs differ in their bits"
    );
    Ok(())
}

fn bits<T: Number>(values: &[T]) -> Vec<u64> {
    values
        .iter()
        .map(|value| gpu_kernels::Word::to_bits(*value))
        .collect()
}

/// The launch, for a message.
fn planned<T: Number>(matrix: &Matrix<T>, product: Product) -> String {
    match matrix.used_plan(product) {
        Ok(Some(plan)) => format!(" by {}, block {}, grid {}", plan.kernel, plan.bs, plan.grid),
        _ => String::new(),
    }
}
