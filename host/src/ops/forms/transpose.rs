//! Work cut by nonzeros: over sparse rows, and over the rows of the stored transpose.

use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use gpu_kernels::fused::balanced::{THREADS, tiles};
use gpu_kernels::fused::{BalancedArgs, BalancedVariant, SparseArgs};
use gpu_kernels::{Entry, Family, In, Launch};

use super::panels::{ByColumns, Ranked};
use super::rows::{SparsePart, SparseRows, upload_sparse};
use super::site::{Call, OnDevice, Site};
use crate::device::{Buffer, Device, Prepared};
use crate::layout::transpose::transposed;
use crate::matrix::{CsrArrays, CsrMatrix};
use crate::ops::blocks::{Part, SparseBlock};
use crate::ops::launch::{in_turns, prepare, slice, slice_mut};
use crate::ops::{Number, OpError};
use crate::parallel::locked;
use crate::plan::fused::{Plan, Product, balanced};

/// Where the tiles of a matrix start, and what is left over between them.
struct Tiles<T> {
    count: u32,
    starts: Buffer<u32>,
    heads: Buffer<T>,
    carries: Buffer<T>,
    tickets: Buffer<u32>,
}

/// The tiles of every block of X, made when they are first used; locked from the first launch of a product to the last.
pub(in crate::ops) struct TilesOfRows<T>(OnceLock<Result<Mutex<Vec<Tiles<T>>>, OpError>>);

/// Rows of Xᵀ, in slices.
pub(in crate::ops) struct Transpose<T>(Vec<Slice<T>>);

/// Some columns of X as rows, with their tiles.
struct Slice<T> {
    columns: Range<usize>,
    rows: SparsePart<T>,
    tiles: Mutex<Tiles<T>>,
}

/// What is launched for a product.
pub(in crate::ops) struct BalancedKernels<T: Number> {
    walk: Prepared<T::Balanced>,
    /// The same beside a sum.
    walk_beside: Option<Prepared<T::Balanced>>,
    /// Where the walk leaves something to finish.
    finish: Option<Prepared<T::Balanced>>,
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
        let at_once = at_once::<T>(site, most, plan)?;
        let finish = match at_once {
            Some(_) => None,
            None => Some(small::<T>(&site.device, BalancedVariant::Finish, most)?),
        };
        let walk = at_once.map_or_else(|| prepare::<T::Balanced>(&site.device, plan), Ok)?;
        let beside = site.slices.as_ref().map(|_| in_turns(&site.device, &walk));
        Ok(BalancedKernels {
            walk,
            walk_beside: beside.transpose()?,
            finish,
            over,
        })
    }

    fn launch(&self, args: BalancedArgs<'_, T>) -> Result<(), OpError> {
        self.launch_by(&self.walk, args)
    }

    fn launch_by(
        &self,
        walk: &Prepared<T::Balanced>,
        args: BalancedArgs<'_, T>,
    ) -> Result<(), OpError> {
        walk.launch(args)?;
        match &self.finish {
            Some(finish) => Ok(finish.launch(args)?),
            None => Ok(()),
        }
    }
}

/// The kernel that has all of `count` tiles at once and leaves nothing to finish, where that is faster than the one that a plan names.
fn at_once<T: Number>(
    site: &Site<T>,
    count: u32,
    plan: &Plan,
) -> Result<Option<Prepared<T::Balanced>>, OpError> {
    let device = &site.device;
    let are_at_once = |limits| balanced::are_at_once(limits, count, plan);
    if site.slices.is_some() || !device.limits().is_some_and(are_at_once) {
        return Ok(None);
    }
    let variant = BalancedVariant::WalkAtOnce;
    let launch = Launch {
        grid: count,
        block: THREADS,
        shared_bytes: variant.shared(T::SIZE).fixed,
    };
    Ok(Some(device.prepare(entry::<T>(variant), launch)?))
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
            tickets: device.zeros(count as usize)?,
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
            // Fewer than 2³² as a part has.
            nonzeros: x.indices.len() as u32,
            x,
            input_weights,
            starts: self.starts.output(),
            heads: self.heads.output(),
            carries: self.carries.output(),
            tickets: self.tickets.output(),
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
    pub(in crate::ops) fn of(site: &Site<T>, x: &CsrMatrix<T>) -> Result<Self, OpError> {
        let (device, all) = (&site.device, transposed(x));
        let all = CsrArrays::of(&all);
        let slices = site.slices().into_iter().map(|columns| {
            let mut parts = upload_sparse(device, &all.of_rows(columns.clone()))?;
            let rows = parts.pop().expect("no more entries than one part has");
            Ok(Slice {
                tiles: Mutex::new(Tiles::of(device, &rows.block())?),
                columns,
                rows,
            })
        });
        slices.collect::<Result<_, OpError>>().map(Transpose)
    }
}

impl<T: Number> Transpose<T> {
    /// The same of rows that lie on the device, made there; `None` where it is to be in slices.
    pub(in crate::ops) fn of_rows(
        site: &Site<T>,
        x: &SparsePart<T>,
    ) -> Result<Option<Self>, OpError> {
        let (device, slices) = (&site.device, site.slices());
        let [all] = &slices[..] else {
            return Ok(None);
        };
        let made = ByColumns::of(device, &Ranked::of(&x.block()), site.cols)?;
        let arrays = (made.offsets.into(), made.rows.into());
        let rows = SparsePart::whole(site.cols, arrays, made.values.into());
        Ok(Some(Transpose(vec![Slice {
            columns: all.clone(),
            tiles: Mutex::new(Tiles::of(device, &rows.block())?),
            rows,
        }])))
    }
}

impl<T: Number> Transpose<T> {
    /// The rows of Xᵀ, where they are one slice.
    pub(in crate::ops) fn whole(&self) -> Option<SparseBlock<'_, T>> {
        match &self.0[..] {
            [all] => Some(all.rows.block()),
            _ => None,
        }
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
        let Call {
            input,
            terms,
            output,
            ..
        } = call;
        site.in_slices(output, transpose.0.len(), |number, w| {
            let Slice {
                columns,
                rows,
                tiles,
            } = &transpose.0[number];
            let z = terms.addend.map(|(_, z)| slice(z, columns));
            let x = SparseArgs {
                input: input.input(),
                addend: z.unwrap_or(In::none()),
                solve: terms.solve(),
                output: slice_mut(w, columns),
                alpha: terms.alpha,
                beta: terms.beta(),
                ..rows.block().arrays(site.rows)
            };
            let beside = self.walk_beside.as_ref().filter(|_| number > 0);
            let mut tiles = locked(tiles);
            let args = tiles.args(x, terms.weights());
            self.launch_by(beside.unwrap_or(&self.walk), args)
        })
    }
}

#[cfg(all(test, feature = "emulator"))]
mod tests {
    use super::*;
    use crate::device::EmulatorOptions;
    use crate::matrix::{Element, csr_from_parts};

    /// Rows of 0 to 12 entries; the first columns and the last have none, and column 5 has one in every second row.
    fn matrix<T: Number>(rows: usize, cols: usize) -> CsrMatrix<T> {
        let (mut offsets, mut indices) = (vec![0], Vec::new());
        for row in 0..rows {
            let spread = (cols - 9) / 12;
            let others = (0..row * 7 % 13).map(|i| 6 + i * spread + row % spread.max(1));
            let fifth = (row % 2 == 0).then_some(5);
            let all = fifth.into_iter().chain(others.filter(|j| *j < cols - 3));
            let mut all: Vec<u32> = all.map(|j| j as u32).collect();
            all.dedup();
            indices.extend(all);
            offsets.push(indices.len() as u64);
        }
        let values = (1..=indices.len()).map(|i| <T as Element>::from_f64(i as f64));
        csr_from_parts((rows, cols), offsets, indices, values.collect()).expect("columns ascend")
    }

    fn arrays<T: Number>(transpose: &Transpose<T>) -> (Vec<u32>, Vec<u32>, Vec<T>) {
        let (_, (offsets, indices, values)) = transpose.0[0].rows.arrays();
        (
            offsets.to_vec().expect("memory"),
            indices.to_vec().expect("memory"),
            values.to_vec().expect("memory"),
        )
    }

    fn both_agree<T: Number + PartialEq>() {
        let device = Device::emulator(EmulatorOptions::default());
        for (rows, cols) in [(1, 40), (300, 21), (200, 5_000), (700, 70_000)] {
            let x = matrix::<T>(rows, cols);
            let site = Site::new(&device, (rows, cols), 13);
            let parts = upload_sparse(&device, &CsrArrays::of(&x)).expect("memory");
            let there = Transpose::of_rows(&site, &parts[0]).expect("memory");
            let there = there.expect("one slice");
            let here = Transpose::of(&site, &x).expect("memory");
            assert!(arrays(&there) == arrays(&here), "{rows} x {cols}");
        }
    }

    #[test]
    fn the_device_makes_what_the_host_makes() {
        both_agree::<f32>();
        both_agree::<f64>();
    }
}
