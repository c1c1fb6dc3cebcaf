//! Several right-hand sides on a GPU: one launch for each block of X, group of sides and panel of columns.

use std::ops::Range;

use gpu_kernels::fused::{
    DenseArgs, DenseManyArgs, DenseManyVariant, Sides, SparseArgs, SparseManyArgs,
    SparseManyVariant,
};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::super::blocks::{DenseBlock, Part, SparseBlock};
use super::super::catalog::registers_on;
use super::super::forms::Rows;
use super::super::forms::rows::SparseRows;
use super::super::forms::tiles::{TileEnds, Tiles};
use super::super::launch::{slice, slice_mut};
use super::launches::DenseLaunch;
use super::{ManyTerms, Matrix, Number, OpError, RowWeights};
use crate::device::{Buffer, Prepared};
use crate::parallel::locked;
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
        if let Some(tiles) = &self.forms.tiles {
            let launch =
                |many: &Many<'_, T>, to: &mut Buffer<T>| self.launch_tiles(many, tiles, to);
            return match (product, tiles.passes()) {
                (Product::Fused, TilePasses::Two) => self.two_halves(&many, output, launch),
                _ => launch(&many, output),
            };
        }
        match &self.forms.rows {
            Rows::Sparse(rows) => self.launch_sparse(&many, rows, output),
            Rows::Dense(rows) => {
                rows.each(Part::All, |block| self.launch_dense(&many, &block, output))
            }
            Rows::Host(_) | Rows::Elsewhere(_) => unreachable!("they have code of their own"),
        }
    }

    fn launch_sparse(
        &self,
        many: &Many<'_, T>,
        rows: &SparseRows<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        // X may have to be fetched: all groups while a block of it is there.
        let prepared = groups(many.sides, MOST_SIDES).map(|group| {
            let key = (many.product, group.1);
            let kernel = self.plans.many.sparse.get(key, || {
                let kernels: Vec<Kernel<SparseManyVariant>> = kernels::<T::SparseMany, T>(self);
                let plan = many::sparse(self.problem(), key, &kernels, self.launch_limits())?;
                self.prepare_many::<T::SparseMany>(&plan)
            })?;
            Ok((group, kernel))
        });
        let prepared = prepared.collect::<Result<Vec<_>, OpError>>()?;
        rows.each(Part::All, |_, block| {
            for (group, kernel) in &prepared {
                kernel.launch(self.sparse_many(many, &block, *group, output))?;
            }
            Ok(())
        })
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
            let make = || tiles.kernel(&self.site, self.problem(), key);
            let kernel = self.plans.many.tiles.get(key, make)?;
            let to = (many.product, sides, &mut *output);
            kernel.launch(tiles.args(&self.site, &ends, to))?;
        }
        Ok(())
    }

    fn launch_dense(
        &self,
        many: &Many<'_, T>,
        block: &DenseBlock<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        for group in groups(many.sides, MOST_SIDES) {
            let key = (many.product, group.1);
            match self.plans.many.dense.get(key, || self.dense_launch(key))? {
                Some(launch) => self.panels(many, block, group, &launch, output)?,
                // Wider than a block holds, and so is every other group.
                None => {
                    return self
                        .two_halves(many, output, |many, to| self.launch_dense(many, block, to));
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
        let mut kept = locked(&self.plans.many.between);
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
        block: &DenseBlock<'_, T>,
        (first, count): (u32, u32),
        DenseLaunch { kernel, panel }: &DenseLaunch<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let (cols, panel) = (self.cols() as u64, *panel);
        let last = cols.div_ceil(panel).max(1) - 1;
        for number in 0..=last {
            let start = number * panel;
            kernel.launch(DenseManyArgs {
                x: self.dense_many(many, block, output),
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
        block: &DenseBlock<'a, T>,
        output: &'a mut Buffer<T>,
    ) -> DenseArgs<'a, T> {
        let ends = Ends::of(many, block.range(), output);
        DenseArgs {
            input: ends.input,
            weights: ends.weights,
            shift: ends.shift,
            addend: ends.addend,
            output: ends.output,
            alpha: many.terms.alpha,
            beta: ends.beta,
            ..block.arrays(self.cols())
        }
    }

    fn sparse_many<'a>(
        &self,
        many: &Many<'a, T>,
        block: &SparseBlock<'a, T>,
        (first, count): (u32, u32),
        output: &'a mut Buffer<T>,
    ) -> SparseManyArgs<'a, T> {
        let ends = Ends::of(many, block.range(), output);
        let x = SparseArgs {
            input: ends.input,
            weights: ends.weights,
            shift: ends.shift,
            addend: ends.addend,
            output: ends.output,
            alpha: many.terms.alpha,
            beta: ends.beta,
            ..block.arrays(self.cols())
        };
        let sides = sides(many, first, count);
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

/// The vectors of a product as far as they belong to a block of rows.
struct Ends<'a, T> {
    input: In<'a, T>,
    weights: In<'a, T>,
    shift: In<'a, T>,
    addend: In<'a, T>,
    beta: T,
    output: Out<'a, T>,
}

impl<'a, T: Number> Ends<'a, T> {
    fn of(many: &Many<'a, T>, range: Range<usize>, output: &'a mut Buffer<T>) -> Self {
        let (terms, k) = (many.terms, many.sides as usize);
        let rows = |each: usize| range.start * each..range.end * each;
        let stride = sides(many, 0, 0).weights_stride as usize;
        let (beta, addend) = addend(many);
        Ends {
            input: match many.product {
                Product::Transposed => slice(many.input, &rows(k)),
                _ => many.input.input(),
            },
            weights: weights(terms).map_or(In::none(), |v| slice(v, &rows(stride))),
            shift: terms.shift.map_or(In::none(), Buffer::input),
            addend: addend.map_or(In::none(), |z| slice(z, &rows(k))),
            beta,
            output: match many.product {
                Product::Forward => slice_mut(output, &rows(k)),
                _ => output.output(),
            },
        }
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
