//! Several right-hand sides: each column of the result is the pattern of its own, whatever their number.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::{Dtype, Element};
use warpfuse::ops::{ManyTerms, Matrix, MatrixOptions, Number, OpError, Preparation, RowWeights};
use warpfuse::plan::fused::{Product, Summation};
use warpfuse::plan::tiles::TilePasses;
use warpfuse::reference::fused::Terms;
use warpfuse::reference::many::column;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::sample::{FULL, PLAIN, Part, Sample, Values};

use super::fused::PRODUCTS;
use super::streamed;
use super::suite::{self, Suite, Test};

/// Around what four and eight sides at a time leave, in packs and not.
const SIDES: [usize; 6] = [1, 3, 4, 8, 9, 20];

/// Around teams, packs, blocks and panels; rows of all lengths.
const SHAPES: [((usize, usize), Pattern); 24] = [
    ((0, 5), Pattern::Dense),
    ((5, 0), Pattern::Dense),
    ((1, 1), Pattern::Dense),
    ((1_050, 2), Pattern::Dense),
    ((37, 3), Pattern::Dense),
    ((200, 7), Pattern::Dense),
    ((70, 8), Pattern::Dense),
    ((41, 9), Pattern::Dense),
    ((65, 28), Pattern::Dense),
    ((33, 33), Pattern::Dense),
    ((67, 100), Pattern::Dense),
    ((19, 129), Pattern::Dense),
    ((18, 500), Pattern::Dense),
    ((7, 1_001), Pattern::Dense),
    ((9, 2_050), Pattern::Dense),
    ((5, 5_000), Pattern::Dense),
    ((130, 1), Pattern::PerRow(1)),
    ((100, 90), Pattern::PerRow(7)),
    ((129, 70), Pattern::Growing(67)),
    ((65, 129), Pattern::Empty),
    ((200, 33), Pattern::OneColumn),
    ((31, 700), Pattern::OneFull),
    ((101, 1_000), Pattern::Giant(900)),
    ((90, 20_000), Pattern::PerRow(60)),
];

/// Adds every shape with every number of sides in both element types.
pub fn add(suite: &mut Suite) {
    for (shape, pattern) in SHAPES {
        for values in [Values::Integers, Values::Uniform] {
            add_case(suite, &Case::new(shape, pattern, values));
        }
    }
    for values in [Values::Huge, Values::Tiny, Values::Nan, Values::Infinity] {
        add_case(suite, &Case::new((300, 2), Pattern::Dense, values));
        add_case(suite, &Case::new((70, 33), Pattern::Dense, values));
        add_case(suite, &Case::new((100, 90), Pattern::PerRow(7), values));
    }
    suite.add(Test::new("many/refusals"), refuses);
}

fn add_case(suite: &mut Suite, case: &Case) {
    let case = *case;
    let test = |dtype: Dtype| Test::new(format!("many/{case}/{dtype}")).within(case.subset());
    suite.add_in_both(
        test,
        move |device| run::<f32>(device, &case),
        move |device| run::<f64>(device, &case),
    );
}

fn run<T: Number>(device: &Device, case: &Case) -> Result<()> {
    for &k in sides(device, case) {
        let wide = Wide::<T>::of(case, k);
        let new = || Matrix::new(device, wide.samples[0].features.clone());
        wide.check_products(&new()?)?;
        for passes in [TilePasses::One, TilePasses::Two] {
            let mut matrix = new()?;
            let passes = Some(passes);
            matrix.prepare(Preparation::Tiles { passes })?;
            if matrix.has_tiles() {
                let checked = wide.check_products(&matrix);
                checked.with_context(|| format!("in tiles, {passes:?}"))?;
            }
        }
        if k == 3 {
            reproducible(device, &wide)?;
        }
    }
    Ok(())
}

/// The case with an X that streams.
pub fn run_streamed<T: Number>(device: &Device, case: &Case, turn: usize) -> Result<()> {
    let wide = Wide::<T>::of(case, [3, 9][turn % 2]);
    wide.check_products(&streamed::matrix(device, &wide.samples[0].features, turn)?)
}

/// All numbers of sides where that is quick: of wide matrices and on emulators two of them.
fn sides(device: &Device, case: &Case) -> &'static [usize] {
    if Subset::of(device) == Subset::Full && case.cols <= 1_000 {
        &SIDES
    } else {
        &[3, 9]
    }
}

/// One sample for each right-hand side, all with the same X.
pub struct Wide<T> {
    /// As many as there are right-hand sides.
    pub samples: Vec<Sample<T>>,
}

impl<T: Number> Wide<T> {
    /// Draws X and `sides` of everything else.
    pub fn of(case: &Case, sides: usize) -> Self {
        let first = case.sample::<T>();
        let shape = (case.rows, case.cols);
        let of_side = |side: usize| {
            let mut sample = Sample::new(side as u64, shape, case.pattern, case.values);
            sample.features = Arc::clone(&first.features);
            sample
        };
        Wide {
            samples: (0..sides).map(of_side).collect(),
        }
    }

    /// What the samples have of one kind, row by row.
    pub fn array(&self, of: impl Fn(&Sample<T>) -> &[T]) -> Vec<T> {
        let columns: Vec<&[T]> = self.samples.iter().map(of).collect();
        let rows = columns[0].len();
        (0..rows)
            .flat_map(|row| columns.iter().map(move |column| column[row]))
            .collect()
    }

    fn compute(
        &self,
        matrix: &Matrix<T>,
        product: Product,
        parts: &[Part],
        of_entries: bool,
    ) -> Result<Vec<T>> {
        let (device, first) = (matrix.device(), &self.samples[0]);
        let has = |part| parts.contains(&part);
        let optional = |part, values: Vec<T>| has(part).then(|| device.upload(&values)).transpose();
        let weights = match of_entries {
            true => self.array(|sample| &sample.weights),
            false => first.weights.clone(),
        };
        let weights = optional(Part::Weights, weights)?;
        let shift = self.samples.iter().map(|sample| sample.shift).collect();
        let shift = optional(Part::Shift, shift)?;
        let z = self.array(|sample| sample.addend(product));
        let nan = vec![<T as Element>::from_f64(f64::NAN); z.len()];
        let addend = optional(Part::Addend, z)?;
        let wrap = |weights| match of_entries {
            true => RowWeights::OfEntries(weights),
            false => RowWeights::OfRows(weights),
        };
        let terms = ManyTerms {
            alpha: first.terms(product, parts).alpha,
            weights: weights.as_ref().map(wrap),
            shift: shift.as_ref(),
            addend: addend.as_ref().map(|z| (first.beta, z)),
        };
        let input = device.upload(&self.array(|sample| sample.input(product)))?;
        let mut result = device.upload(&nan)?;
        multiply(
            matrix,
            (product, self.samples.len()),
            &input,
            &terms,
            &mut result,
        )?;
        Ok(result.to_vec()?)
    }

    fn check_products(&self, matrix: &Matrix<T>) -> Result<()> {
        for product in PRODUCTS {
            for (parts, of_entries) in [(PLAIN, false), (FULL, true), (FULL, false)] {
                self.check(matrix, product, parts, of_entries)
                    .with_context(|| {
                        let sides = self.samples.len();
                        format!("{sides} sides, {product:?} with {parts:?}")
                    })?;
            }
        }
        Ok(())
    }

    /// Every column against its truth.
    fn check(
        &self,
        matrix: &Matrix<T>,
        product: Product,
        parts: &[Part],
        of_entries: bool,
    ) -> Result<()> {
        let computed = self.compute(matrix, product, parts, of_entries)?;
        let terms = |side| self.terms(side, product, parts, of_entries);
        for (side, sample) in self.samples.iter().enumerate() {
            let truth = sample.truth(product, &terms(side));
            let own = column(&computed, self.samples.len(), side);
            let family = format!("many {product:?}").to_lowercase();
            suite::check(matrix.device(), &family, &own, &truth)
                .with_context(|| format!("side {side}"))?;
        }
        Ok(())
    }

    /// The terms of one right-hand side; its weights are the first one's unless each has its own.
    pub fn terms(
        &self,
        side: usize,
        product: Product,
        parts: &[Part],
        of_entries: bool,
    ) -> Terms<'_, T> {
        let weighing = if of_entries { side } else { 0 };
        Terms {
            weights: self.samples[weighing].terms(product, parts).weights,
            ..self.samples[side].terms(product, parts)
        }
    }
}

fn multiply<T: Number>(
    matrix: &Matrix<T>,
    (product, k): (Product, usize),
    input: &Buffer<T>,
    terms: &ManyTerms<'_, T>,
    result: &mut Buffer<T>,
) -> Result<(), OpError> {
    match product {
        Product::Fused => matrix.fused_many(k, input, terms, result),
        Product::Forward => matrix.forward_many(k, input, terms, result),
        Product::Transposed => matrix.transposed_many(k, input, terms, result),
    }
}

/// With that promise a sparse product has the CPU's bits.
fn reproducible<T: Number>(device: &Device, wide: &Wide<T>) -> Result<()> {
    let features = &wide.samples[0].features;
    if !features.is_sparse() {
        return Ok(());
    }
    let options = MatrixOptions {
        summation: Summation::Reproducible,
        ..MatrixOptions::default()
    };
    let on = |device: &Device| Matrix::with_options(device, features.clone(), options);
    for product in PRODUCTS {
        let bits = |matrix: Matrix<T>| -> Result<Vec<u64>> {
            let values = wide.compute(&matrix, product, FULL, true)?;
            let is_nan = |value: &T| Element::to_f64(*value).is_nan();
            let finite = values.into_iter().filter(|value| !is_nan(value));
            Ok(finite.map(gpu_kernels::Word::to_bits).collect())
        };
        let (here, there) = (bits(on(device)?)?, bits(on(&Device::cpu())?)?);
        ensure!(here == there, "{product:?}: other bits than on the CPU");
    }
    Ok(())
}

fn refuses(device: &Device) -> Result<()> {
    let x = Case::new((3, 2), Pattern::Dense, Values::Integers).sample::<f32>();
    let matrix = Matrix::new(device, x.features)?;
    let (y, mut w) = (device.upload(&[1.0; 4])?, device.zeros(4)?);
    let terms = ManyTerms::default();
    matrix.fused_many(2, &y, &terms, &mut w)?;
    let refused = matrix.fused_many(3, &y, &terms, &mut w);
    ensure!(matches!(
        refused,
        Err(OpError::Length {
            what: "Y",
            expected: 6,
            ..
        })
    ));
    let refused = matrix.forward_many(2, &y, &terms, &mut w);
    ensure!(matches!(
        refused,
        Err(OpError::Length {
            what: "P",
            expected: 6,
            ..
        })
    ));
    let shifted = ManyTerms {
        shift: Some(&y),
        ..terms
    };
    let refused = matrix.fused_many(2, &y, &shifted, &mut w);
    ensure!(matches!(refused, Err(OpError::Length { expected: 2, .. })));
    matrix.fused_many(0, &device.zeros(0)?, &terms, &mut device.zeros(0)?)?;
    Ok(())
}
