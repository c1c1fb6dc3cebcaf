//! Entries with fixed-point sums: each runs in the chain of launches that it is made for.

use anyhow::{Context, Result};
use gpu_kernels::cta::WARP;
use gpu_kernels::fused::even::Window;
use gpu_kernels::fused::head::HEAD;
use gpu_kernels::fused::{
    EvenPlace, FixedArgs, FixedVariant, Product as KernelProduct, SparseArgs,
};
use gpu_kernels::{Entry, Family, In, Launch, Out};
use warpfuse::device::{Buffer, Device};
use warpfuse::matrix::Features;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, launch, most_shared_bytes};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::Operands;
use super::sparse::Csr;
use super::{CANARY_WORD, Shape, cases, even, launches, scratch, words};

/// Runs one entry that walks rows with all blocks and grids; the others run in every chain.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Fixed>,
    subset: Subset,
) -> Result<()> {
    let of_walk = |entry: &&Entry<T::Fixed>| product_of(entry.variant).is_some();
    let walk = match product_of(entry.variant) {
        Some(_) => entry,
        None => T::Fixed::entries()
            .iter()
            .find(of_walk)
            .context("no walk")?,
    };
    if walk.variant.cluster() > 1 && !device.has_clusters() {
        return Ok(());
    }
    let (mut small, mut large) = (SMALL.to_vec(), LARGE.to_vec());
    if let FixedVariant::Even { .. } = walk.variant {
        small.extend(even::SMALL);
        large.extend(even::LARGE);
    }
    for case in cases(subset, &small, &large) {
        check_case::<T>(device, walk, &case, subset).with_context(|| case.to_string())?;
    }
    Ok(())
}

/// What an entry that walks rows computes.
fn product_of(variant: FixedVariant) -> Option<KernelProduct> {
    match variant {
        FixedVariant::Accumulate { product, .. }
        | FixedVariant::Headed { product, .. }
        | FixedVariant::Even { product, .. } => Some(product),
        _ => None,
    }
}

/// An even number of columns and an odd one, shared between two blocks.
const SMALL: [Shape; 2] = [((40, 2), Pattern::PerRow(2)), ((40, 3), Pattern::PerRow(2))];

const LARGE: [Shape; 2] = [
    ((65, 3_000), Pattern::Giant(2_500)),
    ((3_000, 9), Pattern::OneColumn),
];

/// The arrays that the chain works on, guarded but for ranges and order, of which kernels look at all.
struct Chain<'a, T> {
    device: &'a Device,
    x: &'a Csr<T>,
    exponents: Guarded<u32>,
    values: Guarded<T>,
    y: Guarded<T>,
    ranges: Buffer<u32>,
    sums: Guarded<u64>,
    /// Columns that are kept apart, the last ones first, all of which kernels look at, and indices with those marked.
    order: Buffer<u32>,
    marked: Guarded<u32>,
    /// The table of frequent columns.
    keys: Guarded<u32>,
}

/// Columns that are kept apart, at most.
const PLACES: usize = 5;

/// The last columns of `cols`, and indices that name their places.
fn head_of(indices: &[u32], cols: usize) -> (Vec<u32>, Vec<u32>) {
    let places = PLACES.min(cols) as u32;
    let last = cols as u32 - 1;
    let mark = |column: &u32| match last - column {
        place if place < places => place | HEAD,
        _ => *column,
    };
    let order = (0..places).map(|place| last - place);
    (order.collect(), indices.iter().map(mark).collect())
}

fn check_case<T: Number>(
    device: &Device,
    walk: &'static Entry<T::Fixed>,
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let Some(of) = product_of(walk.variant) else {
        return Ok(());
    };
    let sample = case.sample::<T>();
    let Features::Sparse(matrix) = &*sample.features else {
        return Ok(());
    };
    let x = Csr::upload(device, matrix)?;
    let mut shapes = launches(device, walk, subset, |_| 0)?;
    shapes.retain(|shape| {
        let shared = walk.variant.shared_bytes(x.cols, shape.block, T::SIZE);
        shared <= most_shared_bytes(device)
    });
    for parts in [PLAIN, FULL] {
        let operands = Operands::of_overwriting(device, &sample, Product::from(of), parts)?;
        for &shape in &shapes {
            // Of clusters, as many.
            let shape = Launch {
                grid: walk.variant.cluster() * shape.grid,
                ..shape
            };
            let (order, marked) = head_of(matrix.indices(), case.cols);
            let mut chain = Chain {
                order: device.upload(&order)?,
                marked: Guarded::new(device, &marked, u32::MAX)?,
                keys: words(device, &even::keys(x.cols, 3, T::SIZE))?,
                device,
                x: &x,
                exponents: Guarded::new(device, &vec![0; case.cols + 1], CANARY_WORD)?,
                values: scratch(device, matrix.nnz())?,
                y: scratch(device, case.cols)?,
                ranges: device.upload(&vec![0; 2 * shape.grid as usize])?,
                sums: Guarded::new(device, &vec![0; case.cols * T::LIMBS], 7)?,
            };
            operands.check(walk.name, shape, |output| {
                chain.run(walk, &operands, shape, output)
            })?;
        }
    }
    Ok(())
}

impl<T: Number> Chain<'_, T> {
    fn run(
        &mut self,
        walk: &'static Entry<T::Fixed>,
        operands: &Operands<'_, T>,
        shape: Launch,
        output: &mut Guarded<T>,
    ) -> Result<()> {
        let Some(product) = product_of(walk.variant) else {
            return Ok(());
        };
        for variant in [
            FixedVariant::Columns,
            FixedVariant::Equilibrate,
            FixedVariant::Begin(product),
            walk.variant,
            FixedVariant::Finish,
        ] {
            let entry = T::Fixed::entries().iter().find(|e| e.variant == variant);
            let entry = entry.context("an entry for every step")?;
            self.launch(entry, operands, shape, output)?;
        }
        self.exponents.values()?;
        self.values.values()?;
        self.y.values()?;
        let sums = self.sums.values()?;
        anyhow::ensure!(sums.iter().all(|sum| *sum == 0), "sums are left behind");
        Ok(())
    }

    fn launch(
        &mut self,
        entry: &'static Entry<T::Fixed>,
        operands: &Operands<'_, T>,
        shape: Launch,
        output: &mut Guarded<T>,
    ) -> Result<()> {
        let variant = entry.variant;
        let shared = match variant {
            FixedVariant::Headed { product, .. } => {
                FixedVariant::head_bytes(product, self.order.len() as u32, T::SIZE)
            }
            _ => variant.shared_bytes(self.x.cols, shape.block, T::SIZE),
        };
        let shape = Launch {
            shared_bytes: shared as u32,
            ..shape
        };
        let x = self.x.args(operands.given(), output);
        let (indices, order) = match variant {
            FixedVariant::Headed { .. } => (self.marked.input(), self.order.input()),
            FixedVariant::Even {
                place: EvenPlace::Frequent,
                ..
            } => (x.indices, self.keys.input()),
            _ => (x.indices, In::none()),
        };
        let (values, input, scaled) = match variant {
            FixedVariant::Columns => (x.values, x.input, Out::none()),
            FixedVariant::Equilibrate => (x.values, x.input, self.values.output()),
            FixedVariant::Begin(_) => (In::none(), x.input, self.y.output()),
            FixedVariant::Accumulate {
                product: KernelProduct::Transposed,
                ..
            }
            | FixedVariant::Headed {
                product: KernelProduct::Transposed,
                ..
            }
            | FixedVariant::Even {
                product: KernelProduct::Transposed,
                ..
            } => (self.values.input(), x.input, Out::none()),
            _ => (self.values.input(), self.y.input(), Out::none()),
        };
        let args = FixedArgs {
            x: SparseArgs {
                indices,
                values,
                input,
                ..x
            },
            all_rows: u64::from(self.x.rows),
            longest: self.x.cols,
            exponents: self.exponents.output(),
            scaled,
            ranges: self.ranges.output(),
            sums: self.sums.output(),
            order,
            multiplier: even::MULTIPLIER,
            window: Window::all(self.x.cols),
        };
        let FixedVariant::Even { product, .. } = variant else {
            return launch(self.device, entry, shape, args);
        };
        let turn = (shape.block / WARP + shape.grid) as usize;
        for window in even::windows(product, self.x.cols, turn) {
            // A window takes no more than its own columns do.
            let shared = variant.shared_bytes(window.columns, shape.block, T::SIZE);
            let own = Launch {
                shared_bytes: u32::try_from(shared)?,
                ..shape
            };
            launch(self.device, entry, own, FixedArgs { window, ..args })?;
        }
        Ok(())
    }
}
