//! Entries for hot columns, every column hot: each runs in the chain of launches that it is made for.

use anyhow::{Context, Result};
use gpu_kernels::fused::{HotArgs, HotValues, HotVariant, Product as KernelProduct};
use gpu_kernels::{Entry, Family, In, Launch, Out};
use warpfuse::layout::hot::{HotData, HotLayout, HotSize};
use warpfuse::matrix::{Features, Values};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Array, Launcher, guarded, unguarded};
use warpfuse_tests::sample::{FULL, PLAIN, Sample};

use super::fused::Operands;
use super::{Shape, blocks, cases, grids, number};

/// What is behind the end of a working array.
const GUARD_WORD: u32 = 0xdead_beef;

const LARGE: [Shape; 3] = [
    ((65, 1_000), Pattern::Giant(900)),
    ((300, 90), Pattern::Growing(85)),
    ((3_000, 9), Pattern::OneColumn),
];

/// Runs one walk with all blocks and grids, over values of its form; the other entries run in every chain.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Hot>,
    subset: Subset,
) -> Result<()> {
    let (of, form) = match entry.variant {
        HotVariant::Walk(of, form) => (of, form),
        HotVariant::Begin(of) => (of, HotValues::Whole),
        HotVariant::Finish => (KernelProduct::Fused, HotValues::Whole),
    };
    let mut checked = 0;
    for case in cases(subset, &[], &LARGE) {
        let of_form = check_case::<L, T>(launcher, (of, form), &case, subset);
        checked += u32::from(of_form.with_context(|| case.to_string())?);
    }
    anyhow::ensure!(checked > 0, "no matrix has {form:?} values");
    Ok(())
}

/// With values of a form, where the shape allows it.
fn in_form<T: Number>(sample: Sample<T>, form: HotValues) -> Sample<T> {
    let single = |value: f64| value as f32;
    match form {
        HotValues::Whole => sample,
        HotValues::Single => sample.with_entries(|_, value| f64::from(single(value))),
        HotValues::Bf16 => sample.with_entries(|_, value| {
            let upper = single(value).to_bits() & 0xffff_0000;
            f64::from(f32::from_bits(upper))
        }),
        HotValues::Constant => sample.with_entries(|row, _| [1.0, -1.0, 2.0][row % 3]),
    }
}

fn step<T: Number>(variant: HotVariant) -> Result<&'static Entry<T::Hot>> {
    let mut entries = T::Hot::entries().iter();
    let found = entries.find(|entry| entry.variant == variant);
    found.context("an entry for every step")
}

fn check_case<L: Launcher, T: Number>(
    launcher: &L,
    (of, form): (KernelProduct, HotValues),
    case: &Case,
    subset: Subset,
) -> Result<bool> {
    let sample = in_form(case.sample::<T>(), form);
    let Features::Sparse(matrix) = &*sample.features else {
        return Ok(false);
    };
    let all = HotSize {
        most: usize::MAX,
        least: 1,
    };
    let layout = HotLayout::new(matrix, all, Values::Exact).context("a small matrix")?;
    if layout.values.form().of_kernels() != form {
        return Ok(false);
    }
    let walk = step::<T>(HotVariant::Walk(of, form))?;
    for parts in [PLAIN, FULL] {
        let operands = Operands::of_overwriting(launcher, &sample, Product::from(of), parts)?;
        for block in blocks(launcher, walk, subset)? {
            for &grid in grids(subset) {
                let mut chain = Chain::<L, T>::new(launcher, (&layout, matrix.shape()), grid)?;
                let shape = Launch {
                    grid,
                    block,
                    shared_bytes: 0,
                };
                operands.check(walk.name, shape, |output| {
                    chain.run((of, form), &operands, (grid, block), output)
                })?;
            }
        }
    }
    Ok(true)
}

/// The arrays that the chain works on, guarded where no kernel takes the length from them.
struct Chain<'a, L: Launcher, T: Number> {
    launcher: &'a L,
    layout: &'a HotLayout<T>,
    /// m and n.
    shape: (usize, usize),
    steps: L::Array<u64>,
    places: L::Array<u32>,
    values: Option<L::Array<T>>,
    packed: Option<L::Array<u32>>,
    constants: Option<L::Array<T>>,
    order: Option<L::Array<u32>>,
    columns: L::Array<u32>,
    cold_columns: L::Array<u32>,
    exponents: L::Array<u32>,
    hot: L::Array<T>,
    ranges: L::Array<u32>,
    sums: L::Array<u64>,
    specials: L::Array<T>,
    factors: L::Array<T>,
}

impl<'a, L: Launcher, T: Number> Chain<'a, L, T> {
    fn new(
        launcher: &'a L,
        (layout, shape): (&'a HotLayout<T>, (usize, usize)),
        grid: u32,
    ) -> Result<Self> {
        let words = |words: &[u32]| guarded(launcher, words, GUARD_WORD);
        let (places, rows) = (layout.columns.len(), layout.cold.rows());
        let (zero, nan): (T, T) = (number(0.0), number(f64::NAN));
        let numbers = |numbers: &[T]| guarded(launcher, numbers, nan);
        let (mut values, mut packed, mut constants) = (None, None, None);
        match &layout.values {
            HotData::Whole(own) => values = Some(numbers(own)?),
            HotData::Single(bits) | HotData::Half(bits) => packed = Some(words(bits)?),
            HotData::OfRows { constants: own, .. } => constants = Some(numbers(own)?),
            HotData::Equal { .. } => {}
        }
        Ok(Chain {
            launcher,
            layout,
            shape,
            steps: guarded(launcher, &layout.steps, u64::MAX)?,
            // What belongs to it is as long: the contract says so.
            places: launcher.upload(&layout.places)?,
            values,
            packed,
            constants,
            order: layout.order.as_deref().map(words).transpose()?,
            columns: launcher.upload(&layout.columns)?,
            cold_columns: launcher.upload(&layout.cold_columns)?,
            exponents: words(&layout.exponents)?,
            hot: guarded(launcher, &vec![nan; places], nan)?,
            ranges: launcher.upload(&vec![0; 2 * grid as usize])?,
            sums: guarded(launcher, &vec![0; places * T::LIMBS], 7)?,
            specials: guarded(launcher, &vec![zero; places], nan)?,
            factors: guarded(launcher, &vec![nan; rows], nan)?,
        })
    }

    fn run(
        &mut self,
        (of, form): (KernelProduct, HotValues),
        operands: &Operands<'_, L, T>,
        shape: (u32, u32),
        output: &mut L::Array<T>,
    ) -> Result<()> {
        let steps = [
            HotVariant::Begin(of),
            HotVariant::Walk(of, form),
            HotVariant::Finish,
        ];
        for variant in steps {
            self.launch(step::<T>(variant)?, operands, shape, output)?;
        }
        let left = unguarded(&self.sums, 7)?;
        anyhow::ensure!(left.iter().all(|sum| *sum == 0), "sums are left behind");
        for array in [&self.hot, &self.specials, &self.factors] {
            unguarded(array, number(f64::NAN))?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        entry: &'static Entry<T::Hot>,
        operands: &Operands<'_, L, T>,
        (grid, block): (u32, u32),
        output: &mut L::Array<T>,
    ) -> Result<()> {
        let places = self.layout.columns.len() as u32;
        let variant = entry.variant;
        let shape = Launch {
            grid,
            block,
            shared_bytes: variant.shared_bytes(places, block, size_of::<T>() as u32) as u32,
        };
        let (alpha, beta) = operands.scalars;
        let (rows, cols) = self.shape;
        let (constant, constant_exponent) = match self.layout.values {
            HotData::Equal { constant, exponent } => (constant, exponent),
            HotData::OfRows { exponent, .. } => (number(f64::NAN), exponent),
            _ => (number(f64::NAN), i32::MAX),
        };
        let args = HotArgs {
            rows: rows as u32,
            cols: cols as u32,
            steps: self.steps.input(),
            places: self.places.input(),
            values: self.values.as_ref().map_or(In::none(), Array::input),
            packed: self.packed.as_ref().map_or(In::none(), Array::input),
            // Nothing is cold.
            ranks: In::none(),
            cold_values: In::none(),
            constants: self.constants.as_ref().map_or(In::none(), Array::input),
            constant,
            constant_exponent,
            order: self.order.as_ref().map_or(In::none(), Array::input),
            slices: self.layout.slices,
            longest: cols as u32,
            columns: self.columns.input(),
            cold_columns: self.cold_columns.input(),
            exponents: self.exponents.input(),
            cold_exponents: In::none(),
            non_finite: u32::from(self.layout.has_non_finite),
            input: operands.input(),
            weights: operands.weights(),
            shift: operands.shift(),
            addend: operands.addend(),
            alpha,
            beta,
            output: output.output(),
            hot: self.hot.output(),
            cold: Out::none(),
            cold_input: In::none(),
            ranges: self.ranges.output(),
            sums: self.sums.output(),
            specials: self.specials.output(),
            factors: self.factors.output(),
        };
        self.launcher.launch(entry, shape, args)
    }
}
