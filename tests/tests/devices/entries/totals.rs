//! Sums over the chunks of a dense X: the entry by itself, and behind each dense entry that leaves such sums.

use anyhow::{Result, ensure};
use gpu_kernels::fused::{DenseArgs, Product as KernelProduct, TotalArgs, TotalVariant};
use gpu_kernels::{Entry, Family, In, Launch};
use warpfuse::device::Device;
use warpfuse::matrix::Element;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse_tests::Subset;
use warpfuse_tests::generate::Random;
use warpfuse_tests::launcher::launch;
use warpfuse_tests::sample::{FULL, Sample};

use super::dense::Rows;
use super::fused::Operands;
use super::{grids, input, number, output};

/// Chunks of a dense X, odd and more than blocks.
const CHUNKS: u32 = 7;

/// Sums of integers, which are exact: n and chunks around lanes, warps and what is read ahead.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<T::DenseTotals>,
    subset: Subset,
) -> Result<()> {
    let mut shapes = vec![(1, 1), (33, 31), (5, 513), (100, 1_030)];
    if subset == Subset::Full {
        shapes.extend([(1_000, 132), (7, 1_584), (64, 0)]);
    }
    for (cols, chunks) in shapes {
        for &grid in grids(subset) {
            check_shape::<T>(device, entry, (cols, chunks), grid)?;
        }
    }
    Ok(())
}

fn check_shape<T: Number>(
    device: &Device,
    entry: &'static Entry<T::DenseTotals>,
    (cols, chunks): (usize, usize),
    grid: u32,
) -> Result<()> {
    let random = &mut Random::new((cols + chunks) as u64);
    let mut integers = |len: usize| -> Vec<T> {
        let small = (0..len).map(|_| (random.signed() * 9.0).round());
        small.map(number).collect()
    };
    let (sums, z) = (integers(cols * chunks), integers(cols));
    let on_device = input(device, &sums)?;
    let addend = input(device, &z)?;
    let mut output = output(device, &vec![number(f64::NAN); cols])?;
    launch(
        device,
        entry,
        shape::<T>(grid),
        TotalArgs {
            cols: cols as u32,
            chunks: chunks as u32,
            sums: on_device.input(),
            addend: addend.input(),
            output: output.output(),
            alpha: number(3.0),
            beta: number(-2.0),
        },
    )?;
    let found = output.values()?;
    for (column, found) in found.into_iter().enumerate() {
        let of_column = (0..chunks).map(|chunk| Element::to_f64(sums[chunk * cols + column]));
        let expected = 3.0 * of_column.sum::<f64>() - 2.0 * Element::to_f64(z[column]);
        ensure!(
            Element::to_f64(found) == expected,
            "{cols} columns, {chunks} chunks, {grid} blocks: column {column} is {found:?}, expected {expected}"
        );
    }
    Ok(())
}

fn shape<T: Number>(grid: u32) -> Launch {
    Launch {
        grid,
        block: TotalVariant::THREADS,
        shared_bytes: TotalVariant.shared_bytes(T::SIZE),
    }
}

/// A dense entry that leaves sums of chunks: right, and of the same bits in every grid.
pub fn check_chunks<T: Number>(
    device: &Device,
    entry: &'static Entry<T::Dense>,
    (x, sample): (&Rows<T>, &Sample<T>),
    shape_of_walk: Launch,
    subset: Subset,
) -> Result<()> {
    if entry.variant.product == KernelProduct::Forward {
        return Ok(());
    }
    let (total, cols) = (&T::DenseTotals::entries()[0], x.cols as usize);
    let operands =
        Operands::of_overwriting(device, sample, Product::from(entry.variant.product), FULL)?;
    let mut first: Option<Vec<u64>> = None;
    for grid in grids(subset) {
        let walk = Launch {
            grid: grid * entry.variant.cluster(),
            ..shape_of_walk
        };
        let nan = vec![number(f64::NAN); CHUNKS as usize * cols];
        let mut sums = output(device, &nan)?;
        let mut bits = Vec::new();
        operands.check(entry.name, walk, |output| {
            let given = operands.given();
            let chunked = DenseArgs {
                chunks: CHUNKS,
                addend: In::none(),
                ..x.args(operands.given(), &mut sums)
            };
            launch(device, entry, walk, chunked)?;
            sums.values()?;
            let all = TotalArgs {
                cols: x.cols,
                chunks: CHUNKS,
                sums: sums.input(),
                addend: given.addend,
                output: output.output(),
                alpha: given.alpha,
                beta: given.beta,
            };
            launch(device, total, shape::<T>(2), all)?;
            bits = output.values()?.iter().map(|w| w.to_bits()).collect();
            Ok(())
        })?;
        let expected = first.get_or_insert_with(|| bits.clone());
        ensure!(
            *expected == bits,
            "{}: {grid} blocks give other bits",
            entry.name
        );
    }
    Ok(())
}
