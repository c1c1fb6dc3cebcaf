//! Hot columns of a sparse matrix on a GPU: made once, used by every product whose plan names them.

use std::sync::Mutex;

use gpu_kernels::fused::panels::widest_panel;
use gpu_kernels::fused::{
    HotArgs, HotVariant, PanelArgs, PanelVariant, Product as KernelProduct, SparseArgs,
};
use gpu_kernels::{Entry, Family, In, Launch};

use super::catalog::{max_block, registers_on};
use super::fused::Terms;
use super::panels::DevicePanels;
use super::{Matrix, Number, OpError};
use crate::device::{Buffer, Device, Prepared};
use crate::matrix::CsrMatrix;
use crate::matrix::hot::{HotLayout, HotSize};
use crate::matrix::panels::{PanelLayout, PanelSize};
use crate::plan::fused::{ColumnUse, Plan, Product};

/// Threads of a block of the small kernels.
const THREADS: u32 = 512;
/// Blocks of a small kernel for each SM, at most: every warp of the row walk looks at what each has found.
const BLOCKS_PER_SM: u32 = 2;
/// Elements that a thread of a small kernel takes at least.
const PER_THREAD: usize = 4;
/// Entries that a block over cold panels has at least.
const ENTRIES_PER_RANGE: usize = 1 << 12;

/// A [`HotLayout`] on a device.
pub(super) struct HotColumns<T> {
    offsets: Buffer<u32>,
    indices: Buffer<u32>,
    values: Buffer<T>,
    order: Option<Buffer<u32>>,
    slices: [u32; 4],
    columns: Buffer<u32>,
    exponents: Buffer<u32>,
    non_finite: u32,
    cold: Option<ColdColumns<T>>,
    /// Locked from the first launch of a product to the last.
    work: Mutex<Work<T>>,
}

/// The other columns in panels, with the blocks that run over them.
struct ColdColumns<T> {
    panels: DevicePanels<T>,
    ranges: u32,
    shared_bytes: u32,
}

/// What kernels write on the way.
struct Work<T> {
    hot: Buffer<T>,
    ranges: Buffer<u32>,
    sums: Buffer<u64>,
    specials: Buffer<T>,
    factors: Buffer<T>,
}

/// What is launched for a product with hot columns.
pub(super) struct HotKernels<T: Number> {
    begin: Prepared<T::Hot>,
    walk: Prepared<T::Hot>,
    finish: Prepared<T::Hot>,
    cold: Option<Prepared<T::Panels>>,
}

impl<T: Number> HotColumns<T> {
    fn upload(device: &Device, layout: &HotLayout<T>) -> Result<Self, OpError> {
        let places = layout.columns.len();
        let order = layout.order.as_ref().map(|order| device.upload(order));
        Ok(HotColumns {
            offsets: device.upload(&layout.offsets)?,
            indices: device.upload(&layout.indices)?,
            values: device.upload(&layout.values)?,
            order: order.transpose()?,
            slices: layout.slices,
            non_finite: u32::from(layout.has_non_finite),
            columns: device.upload(&layout.columns)?,
            exponents: device.upload(&layout.exponents)?,
            cold: ColdColumns::upload(device, layout)?,
            work: Mutex::new(Work {
                hot: device.zeros(places)?,
                ranges: device.zeros(2)?,
                sums: device.zeros(places * T::LIMBS)?,
                specials: device.zeros(places)?,
                factors: device.zeros(layout.cold.rows())?,
            }),
        })
    }
}

impl<T: Number> ColdColumns<T> {
    fn upload(device: &Device, layout: &HotLayout<T>) -> Result<Option<Self>, OpError> {
        if layout.cold.nnz() == 0 {
            return Ok(None);
        }
        let sms = device.limits().map_or(1, |limits| limits.sms as usize);
        let ranges = layout.cold.nnz().div_ceil(ENTRIES_PER_RANGE).min(sms);
        let size = PanelSize {
            widest: widest_panel(T::SIZE) as usize,
            ranges,
        };
        let mut panels = PanelLayout::of_columns(&layout.cold, size);
        for column in panels.order.iter_mut().flatten() {
            *column = layout.cold_columns[*column as usize];
        }
        Ok(Some(ColdColumns {
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
    pub(super) fn prepare(matrix: &Matrix<T>, plan: &Plan) -> Result<Self, OpError> {
        let hot = matrix.hot.as_ref().expect("planned after it was made");
        let (device, places) = (matrix.device(), hot.columns.len());
        let product = match plan.product {
            Product::Transposed => KernelProduct::Transposed,
            _ => KernelProduct::Fused,
        };
        let walk = HotVariant::Walk(product);
        let launch = Launch {
            grid: plan.grid,
            block: plan.bs,
            shared_bytes: walk.shared_bytes(places as u32, plan.bs, T::SIZE) as u32,
        };
        let longer = matrix.rows().max(matrix.cols());
        let cold = hot.cold.as_ref();
        Ok(HotKernels {
            begin: small::<T>(device, HotVariant::Begin(product), longer)?,
            walk: device.prepare(entry::<T>(walk), launch)?,
            finish: small::<T>(device, HotVariant::Finish, places)?,
            cold: cold.map(|cold| cold.prepare(device, plan.bs)).transpose()?,
        })
    }
}

/// A kernel that runs over `len` elements.
fn small<T: Number>(
    device: &Device,
    variant: HotVariant,
    len: usize,
) -> Result<Prepared<T::Hot>, OpError> {
    let sms = device.limits().map_or(1, |limits| limits.sms);
    let most = (sms * BLOCKS_PER_SM) as usize;
    let launch = Launch {
        grid: len.div_ceil(THREADS as usize * PER_THREAD).clamp(1, most) as u32,
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

impl<T: Number> Matrix<T> {
    /// The form of `x`, and what it says of the columns.
    pub(super) fn hot_columns_of(
        &self,
        x: &CsrMatrix<T>,
        size: HotSize,
    ) -> Result<(HotColumns<T>, ColumnUse), OpError> {
        let limits = self.device().limits();
        let room = limits.map_or(0, |limits| limits.shared_per_block);
        let walk = HotVariant::Walk(KernelProduct::Fused);
        let fit = room / walk.shared_bytes(1, 32, T::SIZE) as u32;
        let size = HotSize {
            most: size.most.min(fit as usize),
            ..size
        };
        let layout = HotLayout::new(x, size).expect("no more entries than are counted");
        let columns = ColumnUse {
            busiest: layout.busiest,
            hot_columns: layout.columns.len() as u32,
            hot_entries: (x.nnz() - layout.cold.nnz()) as u64,
            cold_columns: layout.cold_columns.len() as u32,
        };
        Ok((HotColumns::upload(self.device(), &layout)?, columns))
    }

    /// One product; it writes all of `output`.
    pub(super) fn over_hot_columns(
        &self,
        kernels: &HotKernels<T>,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let hot = self.hot.as_ref().expect("planned after it was made");
        let mut work = hot
            .work
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let ranges = 2 * kernels.begin.shape().grid as usize;
        if work.ranges.len() != ranges {
            work.ranges = self.device().zeros(ranges)?;
        }
        // p has been shifted already.
        let shift = terms.shift.filter(|_| product != Product::Transposed);
        let terms = Terms { shift, ..*terms };
        let longest = match product {
            Product::Transposed => 1,
            _ => self.problem().longest_row.unwrap_or(self.problem().cols) as u32,
        };
        for kernel in [&kernels.begin, &kernels.walk, &kernels.finish] {
            let args = self.hot_args((hot, longest), input, &terms, (&mut work, &mut *output));
            kernel.launch(args)?;
        }
        let cold = hot.cold.as_ref().zip(kernels.cold.as_ref());
        cold.map_or(Ok(()), |(cold, kernel)| {
            Ok(kernel.launch(PanelArgs {
                alpha: terms.alpha,
                ..cold.panels.args(&work.factors, output.output())
            })?)
        })
    }

    fn hot_args<'a>(
        &self,
        (hot, longest): (&'a HotColumns<T>, u32),
        input: &'a Buffer<T>,
        terms: &Terms<'a, T>,
        (work, output): (&'a mut Work<T>, &'a mut Buffer<T>),
    ) -> HotArgs<'a, T> {
        let (beta, addend) = match terms.addend {
            Some((beta, z)) => (beta, z.input()),
            None => (T::ZERO, In::none()),
        };
        HotArgs {
            x: SparseArgs {
                rows: self.rows() as u32,
                cols: self.cols() as u32,
                offsets: hot.offsets.input(),
                indices: hot.indices.input(),
                values: hot.values.input(),
                input: input.input(),
                weights: terms.weights.map_or(In::none(), Buffer::input),
                shift: terms.shift.map_or(In::none(), Buffer::input),
                addend,
                output: output.output(),
                alpha: terms.alpha,
                beta,
            },
            order: hot.order.as_ref().map_or(In::none(), Buffer::input),
            slices: hot.slices,
            longest,
            columns: hot.columns.input(),
            exponents: hot.exponents.input(),
            non_finite: hot.non_finite,
            hot: work.hot.output(),
            ranges: work.ranges.output(),
            sums: work.sums.output(),
            specials: work.specials.output(),
            factors: work.factors.output(),
        }
    }
}
