//! Dense entries.

use anyhow::{Context, Result};
use gpu_kernels::fused::{DenseArgs, DenseVariant, Product as KernelProduct, RowStore};
use gpu_kernels::{Entry, Launch};
use ndarray::Array2;
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, launch, most_shared_bytes};
use warpfuse_tests::sample::{FULL, PLAIN};

use super::fused::{Given, Operands};
use super::{blocks, grids, input, number, totals, with_values};

/// Row-major X on a device.
pub struct Rows<T> {
    rows: u32,
    /// n.
    pub cols: u32,
    ld: u64,
    values: Guarded<T>,
}

/// Runs one entry in every block size on shapes around what that block holds.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Dense>,
    subset: Subset,
) -> Result<()> {
    let most = entry.variant.most_threads();
    if entry.variant.cluster() > 1 && !device.has_clusters() {
        return Ok(());
    }
    for block in blocks(device, entry, subset)? {
        let widest = entry.variant.columns(block);
        let shared = entry.variant.shared_bytes(block, widest, T::SIZE);
        if block > most || shared > most_shared_bytes(device) {
            continue;
        }
        for case in cases(&entry.variant, block, subset) {
            check_case::<T>(device, entry, block, &case, subset)
                .with_context(|| case.to_string())?;
        }
    }
    Ok(())
}

fn cases(variant: &DenseVariant, block: u32, subset: Subset) -> Vec<Case> {
    let held = variant.columns(block) as usize;
    let width = variant.width as usize;
    let mut shapes = vec![
        (0, held),
        (3, 1),
        (41, held),
        (18, held.max(2) - 1),
        (67, held / 2 + 1),
    ];
    match variant.product {
        KernelProduct::Fused => shapes.push((7, held.max(width + 1) - width)),
        // More than one panel, or one step of a row.
        _ => shapes.extend([(35, held + 1), (9, 3 * held), (33, 2 * held + width)]),
    }
    if held <= 512 {
        shapes.push((1_000, held));
    }
    if variant.product == KernelProduct::Forward {
        shapes.push((5, 0));
    }
    if subset == Subset::Small {
        shapes.retain(|(rows, cols)| *rows <= 67 && *cols <= 512);
        if variant.cluster() > 1 {
            // A few columns of the second block.
            shapes.push((5, held / 2 + width + 1));
        }
    }
    // Sums over the widest rows: fewer rows keep integers exact, and time short.
    let rows = |rows: usize, cols: usize| if cols > 4_096 { rows.min(9) } else { rows };
    let shapes = shapes.into_iter();
    let dense = shapes.map(|(m, n)| ((rows(m, n), n), Pattern::Dense));
    with_values(subset, dense.collect())
}

fn check_case<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Dense>,
    block: u32,
    case: &Case,
    subset: Subset,
) -> Result<()> {
    let sample = case.sample::<T>();
    let Features::Dense(x) = &*sample.features else {
        return Ok(());
    };
    let x = upload(device, x, &entry.variant)?;
    let shared_bytes = entry.variant.shared_bytes(block, x.ld, T::SIZE) as u32;
    for parts in [PLAIN, FULL] {
        let operands = Operands::new(device, &sample, entry.variant.product, parts)?;
        for grid in grids_for(&entry.variant, block, x.cols, subset) {
            let shape = Launch {
                grid,
                block,
                shared_bytes,
            };
            operands.check(entry.name, shape, |output| {
                launch(device, entry, shape, x.args(operands.given(), output))
            })?;
        }
    }
    let shape = Launch {
        grid: entry.variant.cluster(),
        block,
        shared_bytes,
    };
    totals::check_chunks(device, entry, (&x, &sample), shape, subset)
}

/// An entry with panels takes at least a block for each; any more need not be a multiple. Clusters are whole.
fn grids_for(variant: &DenseVariant, block: u32, cols: u32, subset: Subset) -> Vec<u32> {
    let panels = match variant.product {
        KernelProduct::Transposed => variant.panels(block, cols) as u32,
        _ => 1,
    };
    let grids = grids(subset).iter();
    grids
        .map(|grid| variant.cluster() * (panels - 1 + grid))
        .collect()
}

impl<T: Number> Rows<T> {
    /// The arguments of a product, without chunks.
    pub fn args<'a>(&'a self, given: Given<'a, T>, output: &'a mut Guarded<T>) -> DenseArgs<'a, T> {
        DenseArgs {
            rows: self.rows,
            cols: self.cols,
            chunks: 0,
            ld: self.ld,
            x: self.values.input(),
            input: given.input,
            weights: given.weights,
            shift: given.shift,
            addend: given.addend,
            output: output.output(),
            alpha: given.alpha,
            beta: given.beta,
        }
    }

    /// Rows `ld` apart; of each, `padded` elements are its own or zero, and the rest NaN.
    pub fn upload(device: &Device, x: &Array2<T>, (ld, padded): (usize, usize)) -> Result<Self> {
        let (rows, cols) = x.dim();
        let mut values = vec![number(f64::NAN); rows * ld];
        for (row, place) in x.outer_iter().zip(values.chunks_mut(ld.max(1))) {
            place[..padded].fill(number(0.0));
            row.iter()
                .zip(place)
                .for_each(|(value, place)| *place = *value);
        }
        Ok(Rows {
            rows: rows as u32,
            cols: cols as u32,
            ld: ld as u64,
            values: input(device, &values)?,
        })
    }
}

/// Rows start at multiples of the load width. The rest of a row's last load is zero, as the contract
/// wants; what lies between that and the next row, for odd m, is NaN. Tiles have nothing between rows.
fn upload<T: Number>(device: &Device, x: &Array2<T>, variant: &DenseVariant) -> Result<Rows<T>> {
    let width = variant.width as usize;
    let padded = x.ncols().next_multiple_of(width);
    let ld = match variant.held {
        RowStore::Tiles { .. } => padded,
        _ => padded + 2 * width * (x.nrows() % 2),
    };
    Rows::upload(device, x, (ld, padded))
}
