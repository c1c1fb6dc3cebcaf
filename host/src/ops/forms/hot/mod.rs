//! Hot columns of a sparse X: made once, used by every product whose plan names them.
//!
//! | file | what |
//! |---|---|
//! | `stored` | the arrays on a device |
//! | `cold` | the panels of columns that are not hot |
//! | `making` | made on the device, where X lies there |

mod cold;
mod making;
mod stored;

use std::sync::{Arc, Mutex};

use gpu_kernels::fused::hot::{TOGETHER, places_within};
use gpu_kernels::fused::{HotArgs, HotVariant, PanelArgs, Product as KernelProduct};
use gpu_kernels::{Entry, Family, In, Launch, Out};

pub use making::HotStep;
use making::Steps;
use stored::Stored;

use super::panels::DevicePanels;
use super::rows::SparsePart;
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::hot::{HotLayout, HotSize, ValueForm};
use crate::matrix::{CsrMatrix, Values};
use crate::ops::launch::optional;
use crate::ops::terms::Terms;
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::{ColumnUse, Plan, StoredValues, threads_of_cold};

/// Threads of a block of the small kernels.
const THREADS: u32 = 512;
/// Blocks of a small kernel for each SM, at most, every warp of the row walk looking at what each has found: y of 20,000,000
/// columns takes 40 µs on an H200, with two 43.
const BLOCKS_PER_SM: u32 = 4;
/// Elements of a vector as long as X is high for a thread of *begin*: they come in packs, and are not always there.
const TOGETHER_OF_ROWS: usize = 32;
/// A [`HotLayout`] on a device.
pub(in crate::ops) struct HotColumns<T> {
    stored: Stored<T>,
    /// The other columns.
    cold: Option<DevicePanels<T>>,
    /// What steps of making it on the device took, in seconds.
    pub steps: Vec<(HotStep, f64)>,
    /// Locked from the first launch of a product to the last.
    work: Mutex<(Work<T>, ColdInput<T>)>,
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
    /// The form of `x`, made by the host, its values stored as `values` allows.
    pub(in crate::ops) fn of(
        device: &Device,
        x: &CsrMatrix<T>,
        (size, values): (HotSize, Values),
    ) -> Result<Made<T>, OpError> {
        let layout = HotLayout::new(x, within_room::<T>(device, size), values);
        let layout = layout.expect("no more entries than are counted");
        let cold = cold::of_layout(device, &layout, x.cols())?;
        Ok(Made {
            columns: ColumnUse {
                busiest: layout.busiest,
                hot_columns: layout.columns.len() as u32,
                hot_entries: (x.nnz() - layout.cold.nnz()) as u64,
                cold_columns: layout.cold_columns.len() as u32,
                lines: [0; 3],
            },
            values: stored_values(layout.values.form()),
            form: Self::new(device, Stored::upload(device, &layout)?, cold)?,
        })
    }

    /// The form of a matrix on its device, made there; it has some entries.
    pub(in crate::ops) fn of_rows(
        device: &Device,
        (x, cols): (&SparsePart<T>, usize),
        (size, values): (HotSize, Values),
    ) -> Result<Made<T>, OpError> {
        let size = within_room::<T>(device, size);
        let first = x.arrays().1.2.read_scalar(0)?;
        let mut steps = Steps::new(device);
        let x = (&x.block(), first, cols);
        let made = making::make(device, x, (size, values), &mut steps)?;
        let cold = cold::of_rows(device, &made, cols)?;
        steps.done(HotStep::Panels)?;
        Ok(Made {
            columns: made.columns,
            values: stored_values(made.stored.values.form),
            form: Self {
                steps: steps.taken(),
                ..Self::new(device, made.stored, cold)?
            },
        })
    }

    fn new(
        device: &Device,
        stored: Stored<T>,
        cold: Option<DevicePanels<T>>,
    ) -> Result<Self, OpError> {
        let places = stored.columns.len();
        let factors = cold.as_ref().map(|_| device.zeros(stored.positions));
        let work = Work {
            hot: device.zeros(places)?,
            ranges: device.zeros(2)?,
            sums: device.zeros(places * T::LIMBS)?,
            specials: device.zeros(places)?,
            factors: factors.transpose()?,
        };
        let input = ColdInput(device.zeros(stored.cold_columns.len())?);
        Ok(HotColumns {
            stored,
            cold,
            steps: Vec::new(),
            work: Mutex::new((work, input)),
        })
    }
}

/// No more places than shared memory has room for.
fn within_room<T: Number>(device: &Device, size: HotSize) -> HotSize {
    let room = device.limits().map_or(0, |limits| limits.shared_per_block);
    let most = size.most.min(places_within(room, T::SIZE) as usize);
    HotSize { most, ..size }
}

impl<T: Number> HotKernels<T> {
    /// The kernel that a plan names, and those that belong to it.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        hot: &Arc<HotColumns<T>>,
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let (device, places) = (&site.device, hot.stored.columns.len());
        let product = KernelProduct::from(plan.product);
        let walk = HotVariant::Walk(product, hot.stored.values.of_kernels());
        let launch = Launch {
            grid: plan.grid,
            block: plan.bs,
            shared_bytes: walk.shared_bytes(places as u32, plan.bs, T::SIZE) as u32,
        };
        let elements = site.cols / TOGETHER + site.rows / TOGETHER_OF_ROWS;
        let cold = hot.cold.as_ref();
        let bs_of_cold = threads_of_cold(&walk, plan.bs, T::SIZE);
        Ok(HotKernels {
            begin: small::<T>(device, HotVariant::Begin(product), elements)?,
            walk: device.prepare(entry::<T>(walk), launch)?,
            finish: small::<T>(device, HotVariant::Finish, places)?,
            cold: cold
                .map(|cold| cold.prepare(device, bs_of_cold))
                .transpose()?,
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
                ..cold.args(factors, output.output())
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
        let (stored, terms) = (&self.stored, vectors.terms);
        let values = &stored.values;
        HotArgs {
            rows: site.rows as u32,
            cols: site.cols as u32,
            steps: stored.steps.input(),
            places: stored.places.input(),
            values: optional(&values.whole),
            packed: optional(&values.packed),
            ranks: stored.ranks.input(),
            cold_values: stored.cold_values.input(),
            constants: optional(&values.constants),
            constant: values.constant,
            constant_exponent: values.constant_exponent,
            order: optional(&stored.order),
            slices: stored.slices,
            longest: vectors.longest,
            columns: stored.columns.input(),
            cold_columns: stored.cold_columns.input(),
            exponents: stored.exponents.input(),
            cold_exponents: stored.cold_exponents.input(),
            non_finite: stored.non_finite,
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
