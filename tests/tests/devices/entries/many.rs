//! Entries with several right-hand sides: some of the sides of wider arrays, whose others have to stay.

use anyhow::{Context, Result, ensure};
use gpu_kernels::fused::{
    DenseManyArgs, DenseManyVariant, Product as KernelProduct, Sides, SparseManyArgs, TeamSize,
};
use gpu_kernels::{Entry, Launch};
use warpfuse::device::Device;
use warpfuse::matrix::Features;
use warpfuse::ops::Number;
use warpfuse::plan::fused::Product;
use warpfuse::reference::many::column;
use warpfuse_tests::Subset;
use warpfuse_tests::cases::Case;
use warpfuse_tests::generate::Pattern;
use warpfuse_tests::launcher::{Guarded, launch};
use warpfuse_tests::sample::{FULL, PLAIN, Part, Values};

use super::super::many::Wide;
use super::super::suite;
use super::dense::Rows;
use super::fused::{Given, Vectors};
use super::sparse::Csr;
use super::{blocks, in_grids, input, number, output};

/// All sides, and some of more: k, the first, how many.
fn choices(most: u32) -> [(u32, u32, u32); 3] {
    [
        (most, 0, most),
        (most + 3, 2, most - 1),
        (most + 4, 4, most),
    ]
}

/// The arrays of a launch, and what has to come out.
pub(super) struct Operands<'a, T: Number> {
    pub device: &'a Device,
    of: KernelProduct,
    pub wide: &'a Wide<T>,
    parts: &'a [Part],
    pub sides: Sides,
    vectors: Vectors<T>,
    before: Vec<T>,
}

impl<'a, T: Number> Operands<'a, T> {
    fn new(
        device: &'a Device,
        of: KernelProduct,
        wide: &'a Wide<T>,
        parts: &'a [Part],
        sides: Sides,
    ) -> Result<Self> {
        let optional = |part, values: &[T]| {
            let has = parts.contains(&part);
            has.then(|| input(device, values)).transpose()
        };
        let product = Product::from(of);
        let z = wide.array(|sample| sample.addend(product));
        let weights = match sides.weights_stride {
            1 => wide.samples[0].weights.clone(),
            _ => wide.array(|sample| &sample.weights),
        };
        let shift: Vec<T> = wide.samples.iter().map(|sample| sample.shift).collect();
        let is_forward = of == KernelProduct::Forward;
        let first = &wide.samples[0];
        let vectors = Vectors {
            input: input(device, &wide.array(|sample| sample.input(product)))?,
            weights: optional(Part::Weights, &weights)?,
            shift: optional(Part::Shift, &shift)?,
            addend: if is_forward {
                optional(Part::Addend, &z)?
            } else {
                None
            },
            scalars: (first.terms(product, parts).alpha, first.beta),
        };
        Ok(Operands {
            device,
            of,
            wide,
            parts,
            sides,
            vectors,
            before: if is_forward {
                vec![number(f64::NAN); z.len()]
            } else {
                z
            },
        })
    }

    /// The vectors as arguments.
    pub fn given(&self) -> Given<'_, T> {
        self.vectors.given()
    }

    /// Has `launch` compute into a fresh output, and compares that with the truth.
    pub fn check(
        &self,
        kernel: &str,
        shape: Launch,
        launch: impl FnOnce(&mut Guarded<T>) -> Result<()>,
    ) -> Result<()> {
        let mut output = output(self.device, &self.before)?;
        launch(&mut output)?;
        let computed = output.values()?;
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
        suite::check_entry(&self.device.to_string(), kernel, of, found, &truth)
    }
}

/// Calls `each` with the operands of every choice of sides and parts.
pub(super) fn each_choice<T: Number>(
    device: &Device,
    (of, most): (KernelProduct, u32),
    case: &Case,
    each: impl Fn(&Operands<'_, T>) -> Result<()>,
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
            each(&Operands::new(device, of, &wide, parts, sides)?)
                .with_context(|| case.to_string())?;
        }
    }
    Ok(())
}

/// Runs one dense entry on one panel, and on several where it computes a half.
pub fn check_dense<T: Number>(
    device: &Device,
    entry: &'static Entry<T::DenseMany>,
    subset: Subset,
) -> Result<()> {
    let most = entry.variant.most_threads();
    for block in blocks(device, entry, subset)? {
        // The largest of its own where the usual ones are too large.
        let block = block.min(most);
        for (m, n) in dense_shapes(&entry.variant, block, subset) {
            let case = Case::new((m, n), Pattern::Dense, Values::Uniform);
            let of = (entry.variant.product, entry.variant.sides);
            each_choice::<T>(device, of, &case, |operands| {
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

fn check_panels<T: Number>(
    entry: &'static Entry<T::DenseMany>,
    block: u32,
    operands: &Operands<'_, T>,
    subset: Subset,
) -> Result<()> {
    let Features::Dense(x) = &*operands.wide.samples[0].features else {
        return Ok(());
    };
    let panel = entry.variant.columns(block);
    let shared = entry.variant.shared_bytes(block, T::SIZE);
    // Rows that start anywhere, and rows in packs.
    for ld in [x.ncols(), x.ncols().next_multiple_of(4)] {
        let rows = Rows::upload(operands.device, x, (ld, ld))?;
        for shape in in_grids(subset, block, shared) {
            operands.check(entry.name, shape, |output| {
                let last = (x.ncols() as u64).div_ceil(panel).max(1) - 1;
                for number in 0..=last {
                    let args = DenseManyArgs {
                        x: rows.args(operands.given(), output),
                        first_column: (number * panel) as u32,
                        columns: panel.min(x.ncols() as u64 - number * panel) as u32,
                        continues: u32::from(number > 0),
                        ends: u32::from(number == last),
                        sides: operands.sides,
                    };
                    launch(operands.device, entry, shape, args)?;
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Runs one sparse entry on rows of several lengths.
pub fn check_sparse<T: Number>(
    device: &Device,
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
    for block in blocks(device, entry, subset)? {
        for (shape, pattern) in &shapes {
            let case = Case::new(*shape, *pattern, Values::Uniform);
            let of = (entry.variant.product, entry.variant.sides);
            each_choice::<T>(device, of, &case, |operands| {
                check_csr(entry, block, operands, subset)
            })?;
        }
    }
    Ok(())
}

fn check_csr<T: Number>(
    entry: &'static Entry<T::SparseMany>,
    block: u32,
    operands: &Operands<'_, T>,
    subset: Subset,
) -> Result<()> {
    let Features::Sparse(matrix) = &*operands.wide.samples[0].features else {
        return Ok(());
    };
    let x = Csr::upload(operands.device, matrix)?;
    let shared = entry.variant.shared_bytes(x.cols, T::SIZE);
    for shape in in_grids(subset, block, shared) {
        operands.check(entry.name, shape, |output| {
            let args = SparseManyArgs {
                x: x.args(operands.given(), output),
                sides: operands.sides,
            };
            launch(operands.device, entry, shape, args)
        })?;
    }
    Ok(())
}
