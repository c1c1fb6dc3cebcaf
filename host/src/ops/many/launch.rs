//! Several right-hand sides on a GPU: one launch for each group of them, part of X and panel of columns.

use std::sync::PoisonError;

use gpu_kernels::fused::{
    DenseArgs, DenseManyArgs, DenseManyVariant, Sides, SparseArgs, SparseManyArgs,
    SparseManyVariant,
};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::super::catalog::registers_on;
use super::super::forms::dense::DenseRows;
use super::super::forms::rows::SparsePart;
use super::super::forms::tiles::{TileEnds, Tiles};
use super::super::forms::{Call, Rows};
use super::super::launch::{slice, slice_mut};
use super::launches::DenseLaunch;
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
            Rows::Sparse(rows) => self.launch_sparse(&many, rows.parts()?, output),
            Rows::Dense(part) => self.launch_dense(&many, part, output),
            Rows::Host(_) => unreachable!("the CPU has code of its own"),
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
            let kernel = self.plans.many.sparse.get(key, || {
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
        part: &DenseRows<T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        for group in groups(many.sides, MOST_SIDES) {
            let key = (many.product, group.1);
            match self.plans.many.dense.get(key, || self.dense_launch(key))? {
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
        let kept = self.plans.many.between.lock();
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
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
        part: &DenseRows<T>,
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
        part: &'a DenseRows<T>,
        output: &'a mut Buffer<T>,
    ) -> DenseArgs<'a, T> {
        let (beta, addend) = addend(many);
        let call = Call {
            product: many.product,
            input: many.input,
            terms: many.terms.single(),
            output,
        };
        DenseArgs {
            addend: addend.map_or(In::none(), Buffer::input),
            beta,
            ..part.args(&self.site, call)
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
            ..part.arrays(self.cols())
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
