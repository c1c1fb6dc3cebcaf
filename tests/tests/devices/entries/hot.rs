//! Entries for hot columns, every column hot: each runs in the chain of launches that it is made for.

use anyhow::{Context, Result};
use gpu_kernels::fused::{HotArgs, HotValues, HotVariant, Product as KernelProduct};
use gpu_kernels::{Entry, Family, In, Launch, Out};
use warpfuse::device::{Buffer, Device};
use warpfuse::layout::hot::{HotData, HotLayout, HotSize};
use warpfuse::matrix::{Features, Values};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, launch};
use warpfuse_tests::sample::{FULL, PLAIN, Sample};

use super::fused::Operands;
use super::{CANARY_WORD, Shape, argument, cases, input, launches, number, scratch};

const LARGE: [Shape; 3] = [
    ((65, 1_000), Pattern::Giant(900)),
    ((300, 90), Pattern::Growing(85)),
    ((3_000, 9), Pattern::OneColumn),
];

/// Runs one walk with all blocks and grids, over values of its form; the other entries run in every chain.
pub fn check<T: Number>(
    device: &Device,
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
        let of_form = check_case::<T>(device, (of, form), &case, subset);
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

fn check_case<T: Number>(
    device: &Device,
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
        let operands = Operands::of_overwriting(device, &sample, Product::from(of), parts)?;
        for shape in launches(device, walk, subset, |_| 0)? {
            let mut chain = Chain::new(device, (&layout, matrix.shape()), shape.grid)?;
            operands.check(walk.name, shape, |output| {
                chain.run((of, form), &operands, shape, output)
            })?;
        }
    }
    Ok(true)
}

/// The arrays that the chain works on, guarded where no kernel takes the length from them.
struct Chain<'a, T> {
    device: &'a Device,
    layout: &'a HotLayout<T>,
    /// m and n.
    shape: (usize, usize),
    steps: Guarded<u64>,
    places: Buffer<u32>,
    values: Option<Guarded<T>>,
    packed: Option<Guarded<u32>>,
    constants: Option<Guarded<T>>,
    order: Option<Guarded<u32>>,
    columns: Buffer<u32>,
    cold_columns: Buffer<u32>,
    exponents: Guarded<u32>,
    hot: Guarded<T>,
    ranges: Buffer<u32>,
    sums: Guarded<u64>,
    specials: Guarded<T>,
    factors: Guarded<T>,
}

impl<'a, T: Number> Chain<'a, T> {
    fn new(
        device: &'a Device,
        (layout, shape): (&'a HotLayout<T>, (usize, usize)),
        grid: u32,
    ) -> Result<Self> {
        let words = |words: &[u32]| Guarded::new(device, words, CANARY_WORD);
        let (places, rows) = (layout.columns.len(), layout.cold.rows());
        let (mut values, mut packed, mut constants) = (None, None, None);
        match &layout.values {
            HotData::Whole(own) => values = Some(input(device, own)?),
            HotData::Single(bits) | HotData::Half(bits) => packed = Some(words(bits)?),
            HotData::OfRows { constants: own, .. } => constants = Some(input(device, own)?),
            HotData::Equal { .. } => {}
        }
        Ok(Chain {
            device,
            layout,
            shape,
            steps: Guarded::new(device, &layout.steps, u64::MAX)?,
            // What belongs to it is as long: the contract says so.
            places: device.upload(&layout.places)?,
            values,
            packed,
            constants,
            order: layout.order.as_deref().map(words).transpose()?,
            columns: device.upload(&layout.columns)?,
            cold_columns: device.upload(&layout.cold_columns)?,
            exponents: words(&layout.exponents)?,
            hot: scratch(device, places)?,
            ranges: device.upload(&vec![0; 2 * grid as usize])?,
            sums: Guarded::new(device, &vec![0; places * T::LIMBS], 7)?,
            specials: input(device, &vec![number(0.0); places])?,
            factors: scratch(device, rows)?,
        })
    }

    fn run(
        &mut self,
        (of, form): (KernelProduct, HotValues),
        operands: &Operands<'_, T>,
        shape: Launch,
        output: &mut Guarded<T>,
    ) -> Result<()> {
        let steps = [
            HotVariant::Begin(of),
            HotVariant::Walk(of, form),
            HotVariant::Finish,
        ];
        for variant in steps {
            self.launch(step::<T>(variant)?, operands, shape, output)?;
        }
        let left = self.sums.values()?;
        anyhow::ensure!(left.iter().all(|sum| *sum == 0), "sums are left behind");
        for array in [&self.hot, &self.specials, &self.factors] {
            array.values()?;
        }
        Ok(())
    }

    fn launch(
        &mut self,
        entry: &'static Entry<T::Hot>,
        operands: &Operands<'_, T>,
        shape: Launch,
        output: &mut Guarded<T>,
    ) -> Result<()> {
        let places = self.layout.columns.len() as u32;
        let shared = entry.variant.shared_bytes(places, shape.block, T::SIZE);
        let shape = Launch {
            shared_bytes: shared as u32,
            ..shape
        };
        let given = operands.given();
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
            values: argument(&self.values),
            packed: argument(&self.packed),
            // Nothing is cold.
            ranks: In::none(),
            cold_values: In::none(),
            constants: argument(&self.constants),
            constant,
            constant_exponent,
            order: argument(&self.order),
            slices: self.layout.slices,
            longest: cols as u32,
            columns: self.columns.input(),
            cold_columns: self.cold_columns.input(),
            exponents: self.exponents.input(),
            cold_exponents: In::none(),
            non_finite: u32::from(self.layout.has_non_finite),
            input: given.input,
            weights: given.weights,
            shift: given.shift,
            addend: given.addend,
            alpha: given.alpha,
            beta: given.beta,
            output: output.output(),
            hot: self.hot.output(),
            cold: Out::none(),
            cold_input: In::none(),
            ranges: self.ranges.output(),
            sums: self.sums.output(),
            specials: self.specials.output(),
            factors: self.factors.output(),
        };
        launch(self.device, entry, shape, args)
    }
}
