//! The entries over panels: rows as outputs and columns, panels of a few outputs.

use anyhow::{Context, Result};
use gpu_kernels::fused::PanelArgs;
use gpu_kernels::{Entry, In, Launch};
use warpfuse::layout::panels::{PanelLayout, PanelSize};
use warpfuse::matrix::{CsrMatrix, Features};
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Array, Launcher, guarded};
use warpfuse_tests::sample::{PLAIN, Part, Sample};

use super::fused::Operands;
use super::{Shape, blocks, cases, grids};

const SIZES: [PanelSize; 3] = [
    PanelSize {
        widest: 7,
        ranges: 4,
        result: 5_000,
    },
    PanelSize {
        widest: 64,
        ranges: 50,
        result: 300,
    },
    PanelSize {
        widest: 4_000,
        ranges: 1,
        result: 300_000,
    },
];

/// Runs one entry on every matrix, with all blocks and grids.
pub fn check<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Panels>,
    subset: Subset,
) -> Result<()> {
    for case in cases(subset, &[], &LARGE) {
        let sample = case.sample::<T>();
        let Features::Sparse(x) = &*sample.features else {
            continue;
        };
        for size in SIZES {
            check_size::<L, T>(launcher, entry, (&sample, x), size, subset)
                .with_context(|| format!("{case} in {size:?}"))?;
        }
    }
    Ok(())
}

const LARGE: [Shape; 2] = [
    ((65, 300_000), Pattern::PerRow(9)),
    ((3_000, 9), Pattern::OneColumn),
];

fn check_size<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::Panels>,
    (sample, x): (&Sample<T>, &CsrMatrix<T>),
    size: PanelSize,
    subset: Subset,
) -> Result<()> {
    let columns = PanelLayout::of_columns(x, size);
    for parts in [PLAIN, &[Part::Weights]] {
        let operands = Operands::new(launcher, sample, Product::Transposed, parts)?;
        let of_columns = OnDevice::<L, T>::upload(launcher, &columns)?;
        let weights = operands.weights();
        of_columns.check(entry, &operands, (weights, In::none()), subset)?;
    }
    Ok(())
}

/// The arrays with guards, and the layout that they are of.
struct OnDevice<'a, L: Launcher, T: Number> {
    launcher: &'a L,
    layout: &'a PanelLayout<T>,
    keys: L::Array<u32>,
    values: L::Array<T>,
    bases: L::Array<u32>,
    pieces: L::Array<u32>,
    ranges: L::Array<u32>,
    order: Option<L::Array<u32>>,
}

impl<'a, L: Launcher, T: Number> OnDevice<'a, L, T> {
    fn upload(launcher: &'a L, layout: &'a PanelLayout<T>) -> Result<Self> {
        let words = |words: &[u32]| guarded(launcher, words, u32::MAX);
        Ok(OnDevice {
            launcher,
            layout,
            // Lengths that the kernel takes from the arrays themselves.
            keys: launcher.upload(&layout.keys)?,
            values: launcher.upload(&layout.values)?,
            bases: launcher.upload(&layout.bases)?,
            pieces: launcher.upload(&layout.pieces)?,
            ranges: launcher.upload(&layout.ranges)?,
            order: layout.order.as_deref().map(words).transpose()?,
        })
    }

    fn check(
        &self,
        entry: &'static Entry<T::Panels>,
        operands: &Operands<'_, L, T>,
        (input_weights, weights): (In<'_, T>, In<'_, T>),
        subset: Subset,
    ) -> Result<()> {
        let shared = entry
            .variant
            .shared_bytes(self.layout.width, size_of::<T>() as u32);
        for block in blocks(self.launcher, entry, subset)? {
            for &grid in grids(subset) {
                let shape = Launch {
                    grid,
                    block,
                    shared_bytes: shared as u32,
                };
                operands.check(entry.name, shape, |output| {
                    let args = PanelArgs {
                        outputs: self.layout.outputs as u32,
                        inputs: self.layout.inputs as u32,
                        widest: self.layout.width,
                        keys: self.keys.input(),
                        values: self.values.input(),
                        bases: self.bases.input(),
                        pieces: self.pieces.input(),
                        ranges: self.ranges.input(),
                        order: self.order.as_ref().map_or(In::none(), Array::input),
                        input: operands.input(),
                        input_weights,
                        weights,
                        shift: In::none(),
                        output: output.output(),
                        alpha: operands.scalars.0,
                    };
                    self.launcher.launch(entry, shape, args)
                })?;
            }
        }
        Ok(())
    }
}
