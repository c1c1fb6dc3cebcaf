//! Several right-hand sides on a GPU: one launch for each group of them, part of X and panel of columns.

use std::sync::PoisonError;

use gpu_kernels::fused::{
    DenseArgs, DenseManyArgs, DenseManyVariant, Sides, SparseArgs, SparseManyArgs,
    SparseManyVariant,
};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::super::catalog::registers_on;
use super::super::fused::{slice, slice_mut};
use super::super::kept::Kept;
use super::super::layout::{DensePart, Layout, SparsePart};
use super::super::tiles::{TileEnds, Tiles};
use super::{ManyTerms, Matrix, Number, OpError, RowWeights};
use crate::device::{Buffer, Prepared};
use crate::plan::fused::Product;
use crate::plan::many::{self, Kernel, MOST_SIDES, ManyPlan, groups};
use crate::plan::tiles::{MOST_GROUPS, TilePasses};

/// What a product with several right-hand sides is computed from.
struct Many<'a, T: Number> {
    product: Product,
    sides: u32,
    input: &'a Buffer<T>,
    terms: &'a ManyTerms<'a, T>,
}

/// The launches of a matrix for groups of sides, planned and prepared when first used.
pub(in crate::ops) struct ManyLaunches<T: Number> {
    sparse: Kept<(Product, u32), Prepared<T::SparseMany>>,
    dense: Kept<(Product, u32), Option<DenseLaunch<T>>>,
    tiles: Kept<(Product, u32), Prepared<T::TilesMany>>,
}

impl<T: Number> Default for ManyLaunches<T> {
    fn default() -> Self {
        ManyLaunches {
            sparse: Kept::default(),
            dense: Kept::default(),
            tiles: Kept::default(),
        }
    }
}

/// The launch of each panel of a dense X.
struct DenseLaunch<T: Number> {
    kernel: Prepared<T::DenseMany>,
    /// Columns of a panel.
    panel: u64,
}

impl<T: Number> Clone for DenseLaunch<T> {
    fn clone(&self) -> Self {
        DenseLaunch {
            kernel: self.kernel.clone(),
            panel: self.panel,
        }
    }
}

impl<T: Number> Matrix<T> {
    /// Adds to `output`, or writes it, group after group; shapes have been checked.
    pub(super) fn launch_many(
        &self,
        (product, k): (Product, usize),
        input: &Buffer<T>,
        terms: &ManyTerms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let many = Many {
            product,
            sides: k as u32,
            input,
            terms,
        };
        if let Some(tiles) = &self.row_tiles {
            let launch =
                |many: &Many<'_, T>, to: &mut Buffer<T>| self.launch_tiles(many, tiles, to);
            return match (product, tiles.passes()) {
                (Product::Fused, TilePasses::Two) => self.two_halves(&many, output, launch),
                _ => launch(&many, output),
            };
        }
        match &self.layout {
            Layout::Sparse(rows) => self.launch_sparse(&many, rows.parts()?, output),
            Layout::Dense(part) => self.launch_dense(&many, part, output),
            Layout::Host(_) => unreachable!("the CPU has code of its own"),
        }
    }

    fn launch_sparse(
        &self,
        many: &Many<'_, T>,
        parts: &[SparsePart<T>],
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        for (first, count) in groups(many.sides, MOST_SIDES) {
            let key = (many.product, count);
            let kernel = self.many.sparse.get(key, || {
                let kernels: Vec<Kernel<SparseManyVariant>> = kernels::<T::SparseMany, T>(self);
                let plan = many::sparse(self.problem(), key, &kernels, self.launch_limits())?;
                self.prepare_many::<T::SparseMany>(&plan)
            })?;
            for part in parts {
                kernel.launch(self.sparse_many(many, part, (first, count), output))?;
            }
        }
        Ok(())
    }

    fn launch_tiles(
        &self,
        many: &Many<'_, T>,
        tiles: &Tiles<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let (beta, addend) = addend(many);
        let ends = TileEnds {
            input: many.input.input(),
            weights: weights(many.terms).map_or(In::none(), Buffer::input),
            shift: many.terms.shift.map_or(In::none(), Buffer::input),
            addend: (beta, addend.map_or(In::none(), Buffer::input)),
            alpha: many.terms.alpha,
        };
        for (first, count) in groups(many.sides, MOST_GROUPS * tiles.sides(many.product)) {
            let sides = sides(many, first, count);
            let groups = count.div_ceil(tiles.sides(many.product));
            let key = (many.product, groups);
            let make = || self.tile_kernel(tiles, key);
            let kernel = self.many.tiles.get(key, make)?;
            kernel.launch(self.tile_args(tiles, &ends, (many.product, sides, &mut *output)))?;
        }
        Ok(())
    }

    fn launch_dense(
        &self,
        many: &Many<'_, T>,
        part: &DensePart<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        for group in groups(many.sides, MOST_SIDES) {
            let key = (many.product, group.1);
            match self.many.dense.get(key, || self.dense_launch(key))? {
                Some(launch) => self.panels(many, part, group, &launch, output)?,
                // Wider than a block holds, and so is every other group.
                None => {
                    return self
                        .two_halves(many, output, |many, to| self.launch_dense(many, part, to));
                }
            }
        }
        Ok(())
    }

    /// The launch of a dense group; none where the fused product needs its halves.
    fn dense_launch(&self, key: (Product, u32)) -> Result<Option<DenseLaunch<T>>, OpError> {
        let kernels: Vec<Kernel<DenseManyVariant>> = kernels::<T::DenseMany, T>(self);
        let plan = many::dense(self.problem(), key, &kernels, self.launch_limits())?;
        let launch = plan.map(|plan| {
            Ok(DenseLaunch {
                kernel: self.prepare_many::<T::DenseMany>(&plan)?,
                panel: plan.panel.max(1),
            })
        });
        launch.transpose()
    }

    /// `P = V ⊙ (X·Y − s)`, then `W += α·Xᵀ·P`, each by `launch`.
    fn two_halves(
        &self,
        many: &Many<'_, T>,
        output: &mut Buffer<T>,
        launch: impl Fn(&Many<'_, T>, &mut Buffer<T>) -> Result<(), OpError>,
    ) -> Result<(), OpError> {
        let mut kept = self
            .between_many
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let len = self.rows() * many.sides as usize;
        let between = match &mut *kept {
            Some(p) if p.len() == len => p,
            other => other.insert(self.device().zeros(len)?),
        };
        let forward = ManyTerms {
            weights: many.terms.weights,
            shift: many.terms.shift,
            ..ManyTerms::default()
        };
        let transposed = ManyTerms {
            alpha: many.terms.alpha,
            ..ManyTerms::default()
        };
        let first = Many {
            product: Product::Forward,
            terms: &forward,
            ..*many
        };
        launch(&first, between)?;
        let second = Many {
            product: Product::Transposed,
            input: between,
            terms: &transposed,
            ..*many
        };
        launch(&second, output)
    }

    /// One group of sides, panel after panel.
    fn panels(
        &self,
        many: &Many<'_, T>,
        part: &DensePart<T>,
        (first, count): (u32, u32),
        DenseLaunch { kernel, panel }: &DenseLaunch<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let (cols, panel) = (self.cols() as u64, *panel);
        let last = cols.div_ceil(panel).max(1) - 1;
        for number in 0..=last {
            let start = number * panel;
            kernel.launch(DenseManyArgs {
                x: self.dense_many(many, part, output),
                first_column: start as u32,
                columns: panel.min(cols - start) as u32,
                continues: u32::from(number > 0),
                ends: u32::from(number == last),
                sides: sides(many, first, count),
            })?;
        }
        Ok(())
    }

    fn dense_many<'a>(
        &self,
        many: &Many<'a, T>,
        part: &'a DensePart<T>,
        output: &'a mut Buffer<T>,
    ) -> DenseArgs<'a, T> {
        let terms = many.terms;
        let (beta, addend) = addend(many);
        DenseArgs {
            rows: self.rows() as u32,
            cols: self.cols() as u32,
            chunks: 0,
            ld: part.ld as u64,
            x: part.values.input(),
            input: many.input.input(),
            weights: weights(terms).map_or(In::none(), Buffer::input),
            shift: terms.shift.map_or(In::none(), Buffer::input),
            addend: addend.map_or(In::none(), Buffer::input),
            output: output.output(),
            alpha: terms.alpha,
            beta,
        }
    }

    fn sparse_many<'a>(
        &self,
        many: &Many<'a, T>,
        part: &'a SparsePart<T>,
        (first, count): (u32, u32),
        output: &'a mut Buffer<T>,
    ) -> SparseManyArgs<'a, T> {
        let (terms, k) = (many.terms, many.sides as usize);
        let sides = sides(many, first, count);
        let rows = |each: usize| part.first_row * each..(part.first_row + part.rows) * each;
        let (beta, addend) = addend(many);
        let output: Out<'a, T> = match many.product {
            Product::Forward => slice_mut(output, &rows(k)),
            _ => output.output(),
        };
        let weights_stride = sides.weights_stride as usize;
        let x = SparseArgs {
            rows: part.rows as u32,
            cols: self.cols() as u32,
            offsets: part.offsets.input(),
            indices: part.indices.input(),
            values: part.values.input(),
            input: match many.product {
                Product::Transposed => slice(many.input, &rows(k)),
                _ => many.input.input(),
            },
            weights: weights(terms).map_or(In::none(), |v| slice(v, &rows(weights_stride))),
            shift: terms.shift.map_or(In::none(), Buffer::input),
            addend: addend.map_or(In::none(), |z| slice(z, &rows(k))),
            output,
            alpha: terms.alpha,
            beta,
        };
        SparseManyArgs { x, sides }
    }

    fn prepare_many<F: Family>(&self, plan: &ManyPlan) -> Result<Prepared<F>, OpError> {
        let found = F::entries().iter().find(|entry| entry.name == plan.kernel);
        let entry = found.expect("the planner chose among the entries of this table");
        let launch = Launch {
            grid: plan.grid,
            block: plan.bs,
            shared_bytes: plan.shared_bytes,
        };
        Ok(self.device().prepare(entry, launch)?)
    }

    fn launch_limits(&self) -> &crate::plan::limits::DeviceLimits {
        let limits = self.device().limits();
        limits.expect("a device that launches has limits")
    }
}

fn sides<T: Number>(many: &Many<'_, T>, first: u32, count: u32) -> Sides {
    let weights_stride = match many.terms.weights {
        Some(RowWeights::OfEntries(_)) => many.sides,
        _ => 1,
    };
    Sides {
        all: many.sides,
        first,
        count,
        weights_stride,
    }
}

fn weights<'a, T: Number>(terms: &ManyTerms<'a, T>) -> Option<&'a Buffer<T>> {
    terms.single().weights
}

/// β and Z where the kernel adds them.
fn addend<'a, T: Number>(many: &Many<'a, T>) -> (T, Option<&'a Buffer<T>>) {
    match (many.product, many.terms.addend) {
        (Product::Forward, Some((beta, z))) => (beta, Some(z)),
        _ => (T::ZERO, None),
    }
}

/// All entries of a family with their registers.
fn kernels<F: Family, T: Number>(matrix: &Matrix<T>) -> Vec<Kernel<F::Variant>> {
    let kernel = |entry: &'static Entry<F>| Kernel {
        name: entry.name,
        variant: entry.variant,
        registers: registers_on(matrix.device(), entry.name),
    };
    F::entries().iter().map(kernel).collect()
}
