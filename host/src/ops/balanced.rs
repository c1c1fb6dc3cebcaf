//! Products of a sparse matrix whose work is cut by nonzeros, over X and over its stored transpose.

use std::sync::{Mutex, PoisonError};

use gpu_kernels::fused::balanced::{THREADS, tiles};
use gpu_kernels::fused::{BalancedArgs, BalancedVariant, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch, Out, Real};

use super::fused::{Terms, prepare};
use super::layout::{Layout, SparsePart, upload_sparse};
use super::{Matrix, Number, OpError};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::transpose::transposed;
use crate::matrix::CsrMatrix;
use crate::plan::fused::{Plan, Product};

/// Where the tiles of a matrix start, and what is left over between them.
pub(super) struct Tiles<T> {
    count: u32,
    starts: Buffer<u32>,
    heads: Buffer<T>,
    carries: Buffer<T>,
}

/// The tiles of every part of X, locked from the first launch of a product to the last.
pub(super) type TilesOfParts<T> = Mutex<Vec<Tiles<T>>>;

/// Rows of Xᵀ with their tiles.
pub(super) struct Transpose<T> {
    rows: SparsePart<T>,
    tiles: Mutex<Tiles<T>>,
}

/// What is launched for a product.
pub(super) struct BalancedKernels<T: Number> {
    walk: Prepared<T::Balanced>,
    finish: Prepared<T::Balanced>,
}

impl<T: Number> BalancedKernels<T> {
    /// The kernel that a plan names, and the one that follows it.
    pub(super) fn prepare(matrix: &Matrix<T>, plan: &Plan) -> Result<Self, OpError> {
        let device = matrix.device();
        let longer = matrix.rows().max(matrix.cols()) as u64;
        let most = tiles(longer, matrix.problem().nnz.unwrap_or(0));
        Ok(BalancedKernels {
            walk: prepare::<T::Balanced>(device, plan)?,
            finish: small::<T>(device, BalancedVariant::Finish, most)?,
        })
    }

    fn launch(&self, args: BalancedArgs<'_, T>) -> Result<(), OpError> {
        self.walk.launch(args)?;
        Ok(self.finish.launch(args)?)
    }
}

/// A kernel with a thread for each of `count` tiles.
fn small<T: Number>(
    device: &Device,
    variant: BalancedVariant,
    count: u32,
) -> Result<Prepared<T::Balanced>, OpError> {
    let launch = Launch {
        grid: count.div_ceil(THREADS).max(1),
        block: THREADS,
        shared_bytes: 0,
    };
    Ok(device.prepare(entry::<T>(variant), launch)?)
}

fn entry<T: Number>(variant: BalancedVariant) -> &'static Entry<T::Balanced> {
    let entries = T::Balanced::entries();
    let found = entries.iter().find(|entry| entry.variant == variant);
    found.expect("the table has every step")
}

impl<T: Number> Tiles<T> {
    fn of(device: &Device, part: &SparsePart<T>) -> Result<Self, OpError> {
        let count = tiles(part.rows as u64, part.indices.len() as u64);
        let mut tiles = Tiles {
            count,
            starts: device.zeros(count as usize + 1)?,
            heads: device.zeros(count as usize)?,
            carries: device.zeros(count as usize)?,
        };
        let partition = small::<T>(device, BalancedVariant::Partition, count + 1)?;
        let x = arrays(part, 0);
        partition.launch(tiles.args(x, In::none()))?;
        Ok(tiles)
    }

    fn args<'a>(
        &'a mut self,
        x: SparseArgs<'a, T>,
        input_weights: In<'a, T>,
    ) -> BalancedArgs<'a, T> {
        debug_assert_eq!(self.count, tiles(u64::from(x.rows), x.indices.len()));
        BalancedArgs {
            x,
            input_weights,
            starts: self.starts.output(),
            heads: self.heads.output(),
            carries: self.carries.output(),
        }
    }
}

/// A matrix of `cols` columns without vectors.
fn arrays<T: Number>(part: &SparsePart<T>, cols: usize) -> SparseArgs<'_, T> {
    SparseArgs {
        rows: part.rows as u32,
        cols: cols as u32,
        offsets: part.offsets.input(),
        indices: part.indices.input(),
        values: part.values.input(),
        input: In::none(),
        weights: In::none(),
        shift: In::none(),
        addend: In::none(),
        output: Out::none(),
        alpha: <T as Real>::ONE,
        beta: T::ZERO,
    }
}

impl<T: Number> Transpose<T> {
    /// The transpose of `x`, made by the host; 32 bits count its entries.
    pub(super) fn of(device: &Device, x: &CsrMatrix<T>) -> Result<Self, OpError> {
        let mut parts = upload_sparse(device, &transposed(x))?;
        let rows = parts.pop().expect("no more entries than one part has");
        let tiles = Mutex::new(Tiles::of(device, &rows)?);
        Ok(Transpose { rows, tiles })
    }
}

impl<T: Number> Matrix<T> {
    fn tiles(&self, parts: &[SparsePart<T>]) -> Result<&TilesOfParts<T>, OpError> {
        let make = || -> Result<_, OpError> {
            let tiles = parts.iter().map(|part| Tiles::of(self.device(), part));
            Ok(Mutex::new(tiles.collect::<Result<_, _>>()?))
        };
        let made = self.tiles.get_or_init(make);
        made.as_ref().map_err(OpError::clone)
    }

    /// One product; it writes all of `output`.
    pub(super) fn balanced(
        &self,
        kernels: &BalancedKernels<T>,
        product: Product,
        input: &Buffer<T>,
        terms: &Terms<'_, T>,
        output: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        match product {
            Product::Forward => self.over_rows(kernels, input, terms, output),
            Product::Transposed => self.over_transpose(kernels, input, terms, output),
            Product::Fused => self.with_row_vector(|p| {
                let Terms { weights, shift, .. } = *terms;
                let before = Terms {
                    weights,
                    shift,
                    ..Terms::default()
                };
                self.over_rows(kernels, input, &before, p)?;
                let after = Terms {
                    weights: None,
                    ..*terms
                };
                self.over_transpose(kernels, p, &after, output)
            }),
        }
    }

    fn over_rows(
        &self,
        kernels: &BalancedKernels<T>,
        y: &Buffer<T>,
        terms: &Terms<'_, T>,
        p: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let Layout::Sparse(rows) = &self.layout else {
            return Ok(());
        };
        let parts = rows.parts()?;
        let tiles = self.tiles(parts)?;
        let mut tiles = tiles.lock().unwrap_or_else(PoisonError::into_inner);
        for (part, tiles) in parts.iter().zip(&mut *tiles) {
            let x = self.sparse_args(part, Product::Forward, y, terms, p);
            kernels.launch(tiles.args(x, In::none()))?;
        }
        Ok(())
    }

    fn over_transpose(
        &self,
        kernels: &BalancedKernels<T>,
        p: &Buffer<T>,
        terms: &Terms<'_, T>,
        w: &mut Buffer<T>,
    ) -> Result<(), OpError> {
        let transpose = self.transpose.as_ref().expect("planned after it was made");
        let (beta, addend) = match terms.addend {
            Some((beta, z)) => (beta, z.input()),
            None => (T::ZERO, In::none()),
        };
        let x = SparseArgs {
            input: p.input(),
            addend,
            output: w.output(),
            alpha: terms.alpha,
            beta,
            ..arrays(&transpose.rows, self.rows())
        };
        let weights = terms.weights.map_or(In::none(), Buffer::input);
        let tiles = &transpose.tiles;
        let mut tiles = tiles.lock().unwrap_or_else(PoisonError::into_inner);
        kernels.launch(tiles.args(x, weights))
    }
}
