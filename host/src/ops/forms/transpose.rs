//! Work cut by nonzeros: over sparse rows, and over the rows of the stored transpose.

use std::sync::{Arc, Mutex, OnceLock};

use gpu_kernels::fused::balanced::{THREADS, tiles};
use gpu_kernels::fused::{BalancedArgs, BalancedVariant, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch};

use super::rows::{SparsePart, SparseRows, upload_sparse};
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::transpose::transposed;
use crate::matrix::{CsrArrays, CsrMatrix};
use crate::ops::blocks::{Part, SparseBlock};
use crate::ops::launch::prepare;
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::{Plan, Product};

/// Where the tiles of a matrix start, and what is left over between them.
struct Tiles<T> {
    count: u32,
    starts: Buffer<u32>,
    heads: Buffer<T>,
    carries: Buffer<T>,
}

/// The tiles of every block of X, made when they are first used; locked from the first launch of a product to the last.
pub(in crate::ops) struct TilesOfRows<T>(OnceLock<Result<Mutex<Vec<Tiles<T>>>, OpError>>);

/// Rows of Xᵀ with their tiles.
pub(in crate::ops) struct Transpose<T> {
    rows: SparsePart<T>,
    tiles: Mutex<Tiles<T>>,
}

/// What is launched for a product.
pub(in crate::ops) struct BalancedKernels<T: Number> {
    walk: Prepared<T::Balanced>,
    finish: Prepared<T::Balanced>,
    over: Balanced<T>,
}

/// What work is cut of.
pub(in crate::ops) struct Balanced<T: Number> {
    pub rows: Arc<SparseRows<T>>,
    pub tiles: Arc<TilesOfRows<T>>,
    /// Where it has been made.
    pub transpose: Option<Arc<Transpose<T>>>,
}

impl<T: Number> BalancedKernels<T> {
    /// The kernel that a plan names, and the one that follows it; X has this many entries.
    pub(in crate::ops) fn prepare(
        site: &Site<T>,
        (over, nnz): (Balanced<T>, u64),
        plan: &Plan,
    ) -> Result<Self, OpError> {
        let most = tiles(site.rows.max(site.cols) as u64, nnz);
        Ok(BalancedKernels {
            walk: prepare::<T::Balanced>(&site.device, plan)?,
            finish: small::<T>(&site.device, BalancedVariant::Finish, most)?,
            over,
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
    fn of(device: &Device, block: &SparseBlock<'_, T>) -> Result<Self, OpError> {
        let count = tiles(block.rows as u64, block.entries() as u64);
        let mut tiles = Tiles {
            count,
            starts: device.zeros(count as usize + 1)?,
            heads: device.zeros(count as usize)?,
            carries: device.zeros(count as usize)?,
        };
        let partition = small::<T>(device, BalancedVariant::Partition, count + 1)?;
        partition.launch(tiles.args(block.arrays(0), In::none()))?;
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

impl<T> Default for TilesOfRows<T> {
    fn default() -> Self {
        TilesOfRows(OnceLock::new())
    }
}

impl<T: Number> TilesOfRows<T> {
    fn of(&self, device: &Device, rows: &SparseRows<T>) -> Result<&Mutex<Vec<Tiles<T>>>, OpError> {
        let make = || -> Result<_, OpError> {
            let mut tiles = Vec::new();
            rows.each(Part::All, |_, block| {
                tiles.push(Tiles::of(device, &block)?);
                Ok(())
            })?;
            Ok(Mutex::new(tiles))
        };
        self.0.get_or_init(make).as_ref().map_err(OpError::clone)
    }
}

impl<T: Number> Transpose<T> {
    /// The transpose of `x`, made by the host; 32 bits count its entries.
    pub(in crate::ops) fn of(device: &Device, x: &CsrMatrix<T>) -> Result<Self, OpError> {
        let mut parts = upload_sparse(device, &CsrArrays::of(&transposed(x)))?;
        let rows = parts.pop().expect("no more entries than one part has");
        let tiles = Mutex::new(Tiles::of(device, &rows.block())?);
        Ok(Transpose { rows, tiles })
    }
}

impl<T: Number> OnDevice<T> for BalancedKernels<T> {
    fn writes_all(&self) -> bool {
        true
    }

    fn run(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        match call.product {
            Product::Forward => self.over_rows(site, call),
            Product::Transposed => self.over_transpose(site, call),
            Product::Fused => site.in_two_products(call, |half| self.run(site, half)),
        }
    }
}

impl<T: Number> BalancedKernels<T> {
    fn over_rows(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let rows = &self.over.rows;
        let tiles = self.over.tiles.of(&site.device, rows)?;
        let mut tiles = locked(tiles);
        rows.each(call.part, |number, block| {
            let of_block = Call {
                output: &mut *call.output,
                ..call
            };
            let x = block.args(site.cols, of_block);
            self.launch(tiles[number].args(x, In::none()))
        })
    }

    fn over_transpose(&self, site: &Site<T>, call: Call<'_, '_, T>) -> Result<(), OpError> {
        let transpose = self.over.transpose.as_ref();
        let transpose = transpose.expect("planned after it was made");
        let terms = call.terms;
        let x = SparseArgs {
            input: call.input.input(),
            addend: terms.addend(),
            output: call.output.output(),
            alpha: terms.alpha,
            beta: terms.beta(),
            ..transpose.rows.block().arrays(site.rows)
        };
        let tiles = &transpose.tiles;
        let mut tiles = locked(tiles);
        self.launch(tiles.args(x, terms.weights()))
    }
}
