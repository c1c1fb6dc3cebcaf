//! Hot columns of a sparse X: made once, used by every product whose plan names them.

use std::sync::{Arc, Mutex};

use gpu_kernels::fused::hot::{CLASSES, TOGETHER, places_within};
use gpu_kernels::fused::panels::widest_panel;
use gpu_kernels::fused::{
    HotArgs, HotValues, HotVariant, PanelArgs, PanelVariant, Product as KernelProduct,
};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::panels::DevicePanels;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::hot::{HotData, HotLayout, HotSize, ValueForm};
use crate::layout::panels::{PanelLayout, PanelSize};
use crate::matrix::{CsrMatrix, Values};
use crate::ops::catalog::{max_block, registers_on};
use crate::ops::launch::optional;
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::{ColumnUse, Plan, StoredValues};

/// Threads of a block of the small kernels.
const THREADS: u32 = 512;
/// Blocks of a small kernel for each SM, at most, every warp of the row walk looking at what each has found: y of 20,000,000
/// columns takes 40 µs on an H200, with two 43.
const BLOCKS_PER_SM: u32 = 4;
/// Elements of a vector as long as X is high for a thread of *begin*: they come in packs, and are not always there.
const TOGETHER_OF_ROWS: usize = 32;
/// Entries that a block over cold panels has at least.
const ENTRIES_PER_RANGE: usize = 1 << 12;

/// A [`HotLayout`] on a device.
pub(in crate::ops) struct HotColumns<T> {
    steps: Buffer<u64>,
    places: Buffer<u32>,
    values: DeviceValues<T>,
    ranks: Buffer<u32>,
    cold_values: Buffer<T>,
    order: Option<Buffer<u32>>,
    slices: [u32; CLASSES],
    columns: Buffer<u32>,
    cold_columns: Buffer<u32>,
    exponents: Buffer<u32>,
    cold_exponents: Buffer<u32>,
    non_finite: u32,
    cold: Option<ColdPanels<T>>,
    /// Locked from the first launch of a product to the last.
    work: Mutex<(Work<T>, ColdInput<T>)>,
}

/// The values of hot entries on a device.
struct DeviceValues<T> {
    form: HotValues,
    whole: Option<Buffer<T>>,
    packed: Option<Buffer<u32>>,
    constants: Option<Buffer<T>>,
    constant: T,
    constant_exponent: i32,
}

/// The other columns in panels, with the blocks that run over them.
struct ColdPanels<T> {
    panels: DevicePanels<T>,
    ranges: u32,
    shared_bytes: u32,
}

/// y of the cold columns, in the order of their ranks.
struct ColdInput<T>(Buffer<T>);

/// What kernels write on the way besides.
struct Work<T> {
    hot: Buffer<T>,
    ranges: Buffer<u32>,
    sums: Buffer<u64>,
    specials: Buffer<T>,
    /// Where there are cold columns.
    factors: Option<Buffer<T>>,
}

/// What is launched for a product with hot columns.
pub(in crate::ops) struct HotKernels<T: Number> {
    begin: Prepared<T::Hot>,
    walk: Prepared<T::Hot>,
    finish: Prepared<T::Hot>,
    cold: Option<Prepared<T::Panels>>,
    hot: Arc<HotColumns<T>>,
}

/// A form that was made, and what it says of the columns and of the values.
pub(in crate::ops) struct Made<T> {
    pub form: HotColumns<T>,
    pub columns: ColumnUse,
    pub values: StoredValues,
}

impl<T: Number> HotColumns<T> {
    /// The form of `x`, its values stored as `values` allows.
    pub(in crate::ops) fn of(
        device: &Device,
        x: &CsrMatrix<T>,
        (size, values): (HotSize, Values),
    ) -> Result<Made<T>, OpError> {
        let room = device.limits().map_or(0, |limits| limits.shared_per_block);
        let size = HotSize {
            most: size.most.min(places_within(room, T::SIZE) as usize),
            ..size
        };
        let layout = HotLayout::new(x, size, values);
        let layout = layout.expect("no more entries than are counted");
        Ok(Made {
            columns: ColumnUse {
                busiest: layout.busiest,
                hot_columns: layout.columns.len() as u32,
                hot_entries: (x.nnz() - layout.cold.nnz()) as u64,
                cold_columns: layout.cold_columns.len() as u32,
            },
            values: stored_values(layout.values.form()),
            form: Self::upload(device, &layout, x.cols())?,
        })
    }

    fn upload(device: &Device, layout: &HotLayout<T>, cols: usize) -> Result<Self, OpError> {
        let places = layout.columns.len();
        let order = layout.order.as_ref().map(|order| device.upload(order));
        let cold = ColdPanels::upload(device, layout, cols)?;
        let factors = cold.as_ref().map(|_| device.zeros(layout.cold.rows()));
        Ok(HotColumns {
            steps: device.upload(&layout.steps)?,
            places: device.upload(&layout.places)?,
            values: DeviceValues::upload(device, &layout.values)?,
            ranks: device.upload(&layout.ranks)?,
            cold_values: device.upload(&layout.cold_values)?,
            order: order.transpose()?,
            slices: layout.slices,
            non_finite: u32::from(layout.has_non_finite),
            columns: device.upload(&layout.columns)?,
            cold_columns: device.upload(&layout.cold_columns)?,
            exponents: device.upload(&layout.exponents)?,
            cold_exponents: device.upload(&layout.cold_exponents)?,
            cold,
            work: Mutex::new((
                Work {
                    hot: device.zeros(places)?,
                    ranges: device.zeros(2)?,
                    sums: device.zeros(places * T::LIMBS)?,
                    specials: device.zeros(places)?,
                    factors: factors.transpose()?,
                },
                ColdInput(device.zeros(layout.cold_columns.len())?),
            )),
        })
    }
}

impl<T: Number> DeviceValues<T> {
    fn upload(device: &Device, values: &HotData<T>) -> Result<Self, OpError> {
        let mut uploaded = DeviceValues {
            form: values.form().of_kernels(),
            whole: None,
            packed: None,
            constants: None,
            constant: T::ZERO,
            constant_exponent: 0,
        };
        match values {
            HotData::Whole(values) => uploaded.whole = Some(device.upload(values)?),
            HotData::Single(bits) | HotData::Half(bits) => {
                uploaded.packed = Some(device.upload(bits)?);
            }
            HotData::OfRows {
                constants,
                exponent,
            } => {
                uploaded.constants = Some(device.upload(constants)?);
                uploaded.constant_exponent = *exponent;
            }
            HotData::Equal { constant, exponent } => {
                uploaded.constant = *constant;
                uploaded.constant_exponent = *exponent;
            }
        }
        Ok(uploaded)
    }
}

impl<T: Number> ColdPanels<T> {
    fn upload(
        device: &Device,
        layout: &HotLayout<T>,
        cols: usize,
    ) -> Result<Option<Self>, OpError> {
        if layout.cold.nnz() == 0 {
            return Ok(None);
        }
        let sms = device.limits().map_or(1, |limits| limits.sms as usize);
        let ranges = layout.cold.nnz().div_ceil(ENTRIES_PER_RANGE).min(sms);
        let size = PanelSize {
            widest: widest_panel(T::SIZE) as usize,
            ranges,
            result: cols,
        };
        // Where values are constant, the rows' factors have them.
        let mut panels = match layout.values.form().is_constant() {
            true => PanelLayout::of_columns_of_ones(&layout.cold, size),
            false => PanelLayout::of_columns(&layout.cold, size),
        };
        for column in panels.order.iter_mut().flatten() {
            *column = layout.cold_columns[*column as usize];
        }
        Ok(Some(ColdPanels {
            shared_bytes: PanelVariant.shared_bytes(panels.width, T::SIZE) as u32,
            panels: DevicePanels::upload(device, &panels)?,
            ranges: ranges as u32,
        }))
    }

    fn prepare(&self, device: &Device, bs: u32) -> Result<Prepared<T::Panels>, OpError> {
        let entry = &T::Panels::entries()[0];
        let launch = Launch {
            grid: self.ranges,
            block: bs.min(max_block(registers_on(device, entry.name))),
            shared_bytes: self.shared_bytes,
        };
        Ok(device.prepare(entry, launch)?)
    }
}

impl<T: Number> HotKernels<T> {
    /// The kernel that a plan names, and those that belong to it.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        hot: &Arc<HotColumns<T>>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let (device, places) = (&site.device, hot.columns.len());
        let product = KernelProduct::from(plan.product);
        let walk = HotVariant::Walk(product, hot.values.form);
        let launch = Launch {
            grid: plan.grid,
            block: plan.bs,
            shared_bytes: walk.shared_bytes(places as u32, plan.bs, T::SIZE) as u32,
        };
        let elements = site.cols / TOGETHER + site.rows / TOGETHER_OF_ROWS;
        let cold = hot.cold.as_ref();
        Ok(HotKernels {
            begin: small::<T>(device, HotVariant::Begin(product), elements)?,
            walk: device.prepare(entry::<T>(walk), launch)?,
            finish: small::<T>(device, HotVariant::Finish, places)?,
            cold: cold.map(|cold| cold.prepare(device, plan.bs)).transpose()?,
            hot: hot.clone(),
        })
    }
}

/// A kernel of which a thread takes one of `len`.
fn small<T: Number>(
    device: &Device,
    variant: HotVariant,
    len: usize,
) -> Result<Prepared<T::Hot>, OpError> {
    let sms = device.limits().map_or(1, |limits| limits.sms);
    let most = (sms * BLOCKS_PER_SM) as usize;
    let launch = Launch {
        // Four columns to a thread of *finish* took 12 µs for 10,922 of them: a round trip to memory after the other.
        grid: len.div_ceil(THREADS as usize).clamp(1, most) as u32,
        block: THREADS,
        shared_bytes: variant.shared_bytes(0, THREADS, T::SIZE) as u32,
    };
    Ok(device.prepare(entry::<T>(variant), launch)?)
}

fn entry<T: Number>(variant: HotVariant) -> &'static Entry<T::Hot> {
    let found = T::Hot::entries()
        .iter()
        .find(|entry| entry.variant == variant);
    found.expect("the table has every step")
}

impl<T: Number> OnDevice<T> for HotKernels<T> {
    fn writes_all(&self) -> bool {
        true
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let hot = &self.hot;
        let mut guard = locked(&hot.work);
        let (work, ColdInput(cold_input)) = &mut *guard;
        let ranges = 2 * self.begin.shape().grid as usize;
        if work.ranges.len() != ranges {
            work.ranges = site.device.zeros(ranges)?;
        }
        let vectors = Vectors {
            input: call.input,
            terms: call.terms.of(call.product),
            longest: site.longest(call.product),
        };
        let output = call.output;
        let args = hot.args(site, &vectors, (work, &mut *output));
        self.begin.launch(HotArgs {
            cold: cold_input.output(),
            ..args
        })?;
        for kernel in [&self.walk, &self.finish] {
            let args = hot.args(site, &vectors, (work, &mut *output));
            kernel.launch(HotArgs {
                cold_input: cold_input.input(),
                ..args
            })?;
        }
        let cold = hot.cold.as_ref().zip(self.cold.as_ref());
        let cold = cold.zip(work.factors.as_ref());
        cold.map_or(Ok(()), |((cold, kernel), factors)| {
            Ok(kernel.launch(PanelArgs {
                alpha: vectors.terms.alpha,
                ..cold.panels.args(factors, output.output())
            })?)
        })
    }
}

/// What a product is computed from.
struct Vectors<'a, T: Number> {
    input: &'a Buffer<T>,
    terms: Terms<'a, T>,
    /// Entries of a sum in a row, at most.
    longest: u32,
}

impl<T: Number> HotColumns<T> {
    fn args<'a>(
        &'a self,
        site: &Site<T>,
        vectors: &Vectors<'a, T>,
        (work, output): (&'a mut Work<T>, &'a mut Buffer<T>),
    ) -> HotArgs<'a, T> {
        let (values, terms) = (&self.values, vectors.terms);
        HotArgs {
            rows: site.rows as u32,
            cols: site.cols as u32,
            steps: self.steps.input(),
            places: self.places.input(),
            values: optional(&values.whole),
            packed: optional(&values.packed),
            ranks: self.ranks.input(),
            cold_values: self.cold_values.input(),
            constants: optional(&values.constants),
            constant: values.constant,
            constant_exponent: values.constant_exponent,
            order: optional(&self.order),
            slices: self.slices,
            longest: vectors.longest,
            columns: self.columns.input(),
            cold_columns: self.cold_columns.input(),
            exponents: self.exponents.input(),
            cold_exponents: self.cold_exponents.input(),
            non_finite: self.non_finite,
            input: vectors.input.input(),
            weights: terms.weights(),
            shift: terms.shift(),
            addend: terms.addend(),
            alpha: terms.alpha,
            beta: terms.beta(),
            output: output.output(),
            hot: work.hot.output(),
            cold: Out::none(),
            cold_input: In::none(),
            ranges: work.ranges.output(),
            sums: work.sums.output(),
            specials: work.specials.output(),
            factors: work.factors.as_mut().map_or(Out::none(), Buffer::output),
        }
    }
}

/// The form of values as planners have it.
pub(in crate::ops) fn stored_values(form: ValueForm) -> StoredValues {
    match form {
        ValueForm::Whole => StoredValues::Whole,
        ValueForm::Single => StoredValues::F32,
        ValueForm::Half => StoredValues::Bf16,
        ValueForm::OfRows => StoredValues::OfRows,
        ValueForm::Equal => StoredValues::Equal,
    }
}
