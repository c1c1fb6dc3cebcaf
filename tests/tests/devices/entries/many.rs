//! Entries with several right-hand sides: some of the sides of wider arrays, whose others have to stay.

use anyhow::{Context, Result, ensure};
use gpu_kernels::fused::{
    DenseArgs, DenseManyArgs, DenseManyVariant, Product as KernelProduct, Sides, SparseArgs,
    SparseManyArgs, SparseManyVariant, TeamSize,
};
use gpu_kernels::{Entry, In, Launch};
use ndarray::Array2;
use warpfuse::matrix::Features;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse::reference::many::column;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Array, Launcher, guarded, unguarded};
use warpfuse_tests::sample::{FULL, PLAIN, Part, Values};

use super::super::many::Wide;
use super::super::suite;
use super::sparse::{Csr, upload as upload_csr};
use super::{blocks, grids, number};

/// What is behind the end of an output.
const CANARY: f64 = -12_345.0;

/// All sides, and some of more: k, the first, how many.
fn choices(most: u32) -> [(u32, u32, u32); 3] {
    [
        (most, 0, most),
        (most + 3, 2, most - 1),
        (most + 4, 4, most),
    ]
}

/// The arrays of a launch, and what has to come out.
pub(super) struct Operands<'a, L: Launcher, T: Number> {
    pub launcher: &'a L,
    of: KernelProduct,
    pub wide: &'a Wide<T>,
    parts: &'a [Part],
    pub sides: Sides,
    pub input: L::Array<T>,
    pub weights: Option<L::Array<T>>,
    pub shift: Option<L::Array<T>>,
    pub addend: Option<L::Array<T>>,
    before: Vec<T>,
}

impl<'a, L: Launcher, T: Number> Operands<'a, L, T> {
    fn new(
        launcher: &'a L,
        of: KernelProduct,
        wide: &'a Wide<T>,
        parts: &'a [Part],
        sides: Sides,
    ) -> Result<Self> {
        let upload = |values: &[T]| guarded(launcher, values, number(f64::NAN));
        let optional = |part, values: &[T]| {
            let has = parts.contains(&part);
            has.then(|| upload(values)).transpose()
        };
        let z = wide.array(|sample| sample.addend(Product::from(of)));
        let weights = match sides.weights_stride {
            1 => wide.samples[0].weights.clone(),
            _ => wide.array(|sample| &sample.weights),
        };
        let shift: Vec<T> = wide.samples.iter().map(|sample| sample.shift).collect();
        let is_forward = of == KernelProduct::Forward;
        Ok(Operands {
            launcher,
            of,
            wide,
            parts,
            sides,
            input: upload(&wide.array(|sample| sample.input(Product::from(of))))?,
            weights: optional(Part::Weights, &weights)?,
            shift: optional(Part::Shift, &shift)?,
            addend: if is_forward {
                optional(Part::Addend, &z)?
            } else {
                None
            },
            before: if is_forward {
                vec![number(f64::NAN); z.len()]
            } else {
                z
            },
        })
    }

    /// Has `launch` compute into a fresh output, and compares that with the truth.
    pub fn check(
        &self,
        kernel: &str,
        shape: Launch,
        launch: impl FnOnce(&mut L::Array<T>) -> Result<()>,
    ) -> Result<()> {
        let mut output = guarded(self.launcher, &self.before, number(CANARY))?;
        launch(&mut output)?;
        let computed = unguarded(&output, number(CANARY))?;
        let all = self.sides.all as usize;
        let own = self.sides.first..self.sides.first + self.sides.count;
        for side in 0..all {
            let found = column(&computed, all, side);
            if !own.contains(&(side as u32)) {
                let before = column(&self.before, all, side);
                let same = found
                    .iter()
                    .zip(&before)
                    .all(|(a, b)| a.to_bits() == b.to_bits());
                ensure!(same, "side {side} was written, {shape:?}");
                continue;
            }
            self.compare(kernel, side, &found)
                .with_context(|| format!("side {side}, {:?}, {shape:?}", self.sides))?;
        }
        Ok(())
    }

    fn compare(&self, kernel: &str, side: usize, found: &[T]) -> Result<()> {
        let (of, sample) = (Product::from(self.of), &self.wide.samples[side]);
        let of_entries = self.sides.weights_stride != 1;
        let mut terms = self.wide.terms(side, of, self.parts, of_entries);
        if self.of != KernelProduct::Forward {
            (terms.beta, terms.z) = (number(1.0), Some(sample.addend(of)));
        }
        let truth = sample.truth(of, &terms);
        suite::check_entry(&self.launcher.name(), kernel, of, found, &truth)
    }

    pub fn scalars(&self) -> (T, T) {
        let sample = &self.wide.samples[0];
        let terms = sample.terms(Product::from(self.of), self.parts);
        (terms.alpha, sample.beta)
    }
}

pub(super) fn argument<T>(array: &Option<impl Array<T>>) -> In<'_, T> {
    array.as_ref().map_or(In::none(), Array::input)
}

/// Calls `each` with the operands of every choice of sides and parts.
pub(super) fn each_choice<L: Launcher, T: Number>(
    launcher: &L,
    (of, most): (KernelProduct, u32),
    case: &Case,
    each: impl Fn(&Operands<'_, L, T>) -> Result<()>,
) -> Result<()> {
    for (all, first, count) in choices(most) {
        let wide = Wide::<T>::of(case, all as usize);
        for (parts, weights_stride) in [(PLAIN, 1), (FULL, 1), (FULL, all)] {
            let sides = Sides {
                all,
                first,
                count,
                weights_stride,
            };
            each(&Operands::new(launcher, of, &wide, parts, sides)?)
                .with_context(|| case.to_string())?;
        }
    }
    Ok(())
}

/// Runs one dense entry on one panel, and on several where it computes a half.
pub fn check_dense<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::DenseMany>,
    subset: Subset,
) -> Result<()> {
    let most = entry.variant.most_threads();
    for block in blocks(launcher, entry, subset)? {
        // The largest of its own where the usual ones are too large.
        let block = block.min(most);
        for (m, n) in dense_shapes(&entry.variant, block, subset) {
            let case = Case::new((m, n), Pattern::Dense, Values::Uniform);
            let of = (entry.variant.product, entry.variant.sides);
            each_choice::<L, T>(launcher, of, &case, |operands| {
                check_panels(entry, block, operands, subset)
            })?;
        }
    }
    Ok(())
}

fn dense_shapes(variant: &DenseManyVariant, block: u32, subset: Subset) -> Vec<(usize, usize)> {
    let held = variant.columns(block) as usize;
    let mut shapes = vec![(0, held), (41, held), (18, held - 1), (19, held / 2 + 1)];
    if variant.product != KernelProduct::Fused {
        shapes.push((9, 2 * held + 3));
    }
    if subset == Subset::Small {
        shapes = vec![(0, held), (13, held), (9, held - 1)];
    }
    if variant.product == KernelProduct::Fused && variant.team == TeamSize::Lanes(1) {
        // Several of a warp's tiles, and some rows.
        shapes.extend([(1_300, held), (300, held - 1)]);
    }
    shapes
}

fn check_panels<L: Launcher, T: Number>(
    entry: &'static Entry<T::DenseMany>,
    block: u32,
    operands: &Operands<'_, L, T>,
    subset: Subset,
) -> Result<()> {
    let Features::Dense(x) = &*operands.wide.samples[0].features else {
        return Ok(());
    };
    let panel = entry.variant.columns(block);
    let shared = entry.variant.shared_bytes(block, size_of::<T>() as u32);
    // Rows that start anywhere, and rows in packs.
    for ld in [x.ncols(), x.ncols().next_multiple_of(4)] {
        let values = padded(operands.launcher, x, ld)?;
        for &grid in grids(subset) {
            let shape = Launch {
                grid,
                block,
                shared_bytes: shared as u32,
            };
            operands.check(entry.name, shape, |output| {
                let last = (x.ncols() as u64).div_ceil(panel).max(1) - 1;
                for number in 0..=last {
                    let args = DenseManyArgs {
                        x: dense_args(operands, x, (ld, &values), output),
                        first_column: (number * panel) as u32,
                        columns: panel.min(x.ncols() as u64 - number * panel) as u32,
                        continues: u32::from(number > 0),
                        ends: u32::from(number == last),
                        sides: operands.sides,
                    };
                    operands.launcher.launch(entry, shape, args)?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Rows `ld` apart, zero between.
fn padded<L: Launcher, T: Number>(launcher: &L, x: &Array2<T>, ld: usize) -> Result<L::Array<T>> {
    let mut values = vec![number(0.0); x.nrows() * ld];
    for (row, place) in x.outer_iter().zip(values.chunks_mut(ld.max(1))) {
        row.iter()
            .zip(place)
            .for_each(|(value, place)| *place = *value);
    }
    guarded(launcher, &values, number(f64::NAN))
}

fn dense_args<'a, L: Launcher, T: Number>(
    operands: &'a Operands<'_, L, T>,
    x: &Array2<T>,
    (ld, values): (usize, &'a L::Array<T>),
    output: &'a mut L::Array<T>,
) -> DenseArgs<'a, T> {
    let (alpha, beta) = operands.scalars();
    DenseArgs {
        rows: x.nrows() as u32,
        cols: x.ncols() as u32,
        chunks: 0,
        ld: ld as u64,
        x: values.input(),
        input: operands.input.input(),
        weights: argument(&operands.weights),
        shift: argument(&operands.shift),
        addend: argument(&operands.addend),
        output: output.output(),
        alpha,
        beta,
    }
}

/// Runs one sparse entry on rows of several lengths.
pub fn check_sparse<L: Launcher, T: Number>(
    launcher: &L,
    entry: &'static Entry<T::SparseMany>,
    subset: Subset,
) -> Result<()> {
    let small = [
        ((33, 7), Pattern::PerRow(3)),
        ((65, 70), Pattern::Growing(67)),
    ];
    let large = [
        ((1, 1_000), Pattern::OneFull),
        ((1_000, 257), Pattern::Zipf(20)),
        ((3_000, 9), Pattern::OneColumn),
    ];
    let shapes = match subset {
        Subset::Full => [&small[..], &large].concat(),
        Subset::Small => small.to_vec(),
    };
    for block in blocks(launcher, entry, subset)? {
        for (shape, pattern) in &shapes {
            let case = Case::new(*shape, *pattern, Values::Uniform);
            let of = (entry.variant.product, entry.variant.sides);
            each_choice::<L, T>(launcher, of, &case, |operands| {
                check_csr(entry, block, operands, subset)
            })?;
        }
    }
    Ok(())
}

fn check_csr<L: Launcher, T: Number>(
    entry: &'static Entry<T::SparseMany>,
    block: u32,
    operands: &Operands<'_, L, T>,
    subset: Subset,
) -> Result<()> {
    let Features::Sparse(matrix) = &*operands.wide.samples[0].features else {
        return Ok(());
    };
    let x = upload_csr::<L, T>(operands.launcher, matrix)?;
    let variant: &SparseManyVariant = &entry.variant;
    for &grid in grids(subset) {
        let shape = Launch {
            grid,
            block,
            shared_bytes: variant.shared_bytes(x.cols, size_of::<T>() as u32) as u32,
        };
        operands.check(entry.name, shape, |output| {
            let args = SparseManyArgs {
                x: sparse_args(operands, &x, output),
                sides: operands.sides,
            };
            operands.launcher.launch(entry, shape, args)
        })?;
    }
    Ok(())
}

fn sparse_args<'a, L: Launcher, T: Number>(
    operands: &'a Operands<'_, L, T>,
    x: &'a Csr<L, T>,
    output: &'a mut L::Array<T>,
) -> SparseArgs<'a, T> {
    let (alpha, beta) = operands.scalars();
    SparseArgs {
        rows: x.rows,
        cols: x.cols,
        offsets: x.offsets.input(),
        indices: x.indices.input(),
        values: x.values.input(),
        input: operands.input.input(),
        weights: argument(&operands.weights),
        shift: argument(&operands.shift),
        addend: argument(&operands.addend),
        output: output.output(),
        alpha,
        beta,
    }
}
