//! The forms in which a device stores a block of rows of X, and the launches of products over each of them.
//!
//! | file | form | fused | X·y | Xᵀ·p | several sides |
//! |---|---|---|---|---|---|
//! | `rows` | compressed sparse rows, as they came | one kernel | one kernel | one kernel | yes |
//! | `even` | the same, cut by entries; a table of frequent columns | one kernel | – | one kernel | – |
//! | `head` | the rows, their most frequent columns marked | one kernel | – | one kernel | – |
//! | `fixed`, `equilibrated` | the rows with values scaled for fixed-point sums, their most frequent columns marked or in a table | three or four | – | three | – |
//! | `transpose` | rows of Xᵀ; work cut by nonzeros | two and two | two | two | – |
//! | `panels` | panels of rows and of columns | two | one | one | – |
//! | `hot` | rows with their most frequent columns kept apart, panels of the others | four | four | four | – |
//! | `tiles` | tiles in both orders | – | – | – | yes |
//! | `sell` | for the CPU: blocks of rows in slices, by rows and by columns | one pass | one pass | one pass | – |
//! | `dense` | row-major | one kernel | one kernel | one kernel | yes |
//! | `ordered` | the same, sums in an order | – | – | two | – |
//! | `halves` | rows of either kind in blocks that stream, both products while a block is there | two | one | one | – |
//! | `carried` | dense rows that stream, sums in an order | – | – | two for each block, and two | – |
//!
//! A form is what lies on the device and a type that implements [`OnDevice`]; [`Forms::launches`] is the only place that
//! knows all of them.

pub(in crate::ops) mod by_device;
pub(super) mod carried;
pub(super) mod dense;
pub(super) mod equilibrated;
mod even;
pub(super) mod fixed;
pub(super) mod halves;
pub(super) mod head;
pub(super) mod host_share;
pub(super) mod hot;
mod ordered;
pub(super) mod panels;
pub(super) mod rows;
pub(super) mod sell;
pub(super) mod site;
pub(super) mod slices;
pub(super) mod tiles;
pub(in crate::ops) mod transpose;

use std::ops::Range;
use std::sync::Arc;

use gpu_kernels::fused::dense::MAX_COLUMNS;

use super::blocks::{DenseStream, Part, Place, SparseStream};
use super::host::HostRows;
use super::options::{MatrixOptions, Residency};
use super::share::Share;
use super::{Number, OpError};
use crate::device::Device;
use crate::layout::frequent::FrequentTable;
use crate::layout::hot::HotSize;
use crate::matrix::{CsrMatrix, Features, Values};
use crate::plan::fused::{Plan, Problem, Product, Stored, Strategy, Summation, tells_frequent};
use crate::plan::objective::least_frequent;
use crate::plan::streaming::{Beside, Footprint};
use crate::plan::tiles::TileShape;
use carried::CarriedKernels;
use dense::{DenseKernel, DenseRows};
use equilibrated::Equilibrated;
use even::EvenKernel;
use fixed::{FixedKernels, FixedRows};
use halves::Halves;
use head::{Head, HeadSize};
use host_share::shared_with_host;
use hot::{HotColumns, HotKernels};
use ordered::OrderedKernels;
use panels::{PanelKernel, Panels};
use rows::{RowKernel, SparseRows};
use sell::SellRows;
pub(super) use site::{Call, OnDevice, Site, Within};
use tiles::Tiles;
use transpose::{Balanced, BalancedKernels, TilesOfRows, Transpose};

/// Rows of a CUDA launch; each kernel adds up to a warp of rows before it looks.
const MAX_ROWS: u64 = u32::MAX as u64 - 64;

/// A block of rows of X as it came.
pub(super) enum Rows<T: Number> {
    /// The CPU's: sprs and ndarray.
    Host(HostRows<T>),
    /// CSR for a GPU.
    Sparse(Arc<SparseRows<T>>),
    /// Row-major on a GPU.
    Dense(Arc<DenseRows<T>>),
    /// Those of one member of a group on its GPU, in a matrix of its own.
    Elsewhere(Share),
}

/// X, and some of its rows.
pub(super) type RowsOfX<T> = (Arc<Features<T>>, Range<usize>);

/// Blocks of either kind.
enum Stream<'a, T: Number> {
    Sparse(&'a SparseStream<T>),
    Dense(&'a DenseStream<T>),
}

/// When a device gets X.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Upload {
    /// At once, and the host's copy is let go.
    Now,
    /// A dense X at once, the rows of a sparse one when they are first used: further forms may do without.
    WhenUsed {
        /// Passes over X that are announced.
        passes: u64,
        /// What makes them.
        beside: Beside,
    },
}

/// A block of rows in all forms that have been made.
pub(super) struct Forms<T: Number> {
    pub(super) rows: Rows<T>,
    equilibrated: Arc<Equilibrated<T>>,
    tiles_of_rows: Arc<TilesOfRows<T>>,
    panels: Option<Arc<Panels<T>>>,
    pub(super) hot: Option<Arc<HotColumns<T>>>,
    pub(super) transpose: Option<Arc<Transpose<T>>>,
    /// The rows' most frequent columns, where they are kept apart, and how many they were to be.
    pub(super) head: Option<(Arc<Head<T>>, HeadSize)>,
    /// The most frequent columns, where they would hold up the others.
    frequent: Option<FrequentTable>,
    /// For several right-hand sides.
    pub(super) tiles: Option<Arc<Tiles<T>>>,
}

/// A form that is to be made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Making {
    /// Panels of rows and of columns.
    Panels,
    /// Hot columns, their values in as few bits as are allowed.
    HotColumns(HotSize, Values),
    /// The transpose.
    Transpose,
    /// Blocks of rows by rows and by columns, for the CPU.
    Sell,
    /// Tiles, which are not for the products that are planned.
    Tiles(TileShape),
}

impl<T: Number> Forms<T> {
    /// Puts `features`, which are this problem, on `device`; the CPU keeps them as they are.
    pub(super) fn new(
        device: &Device,
        features: Arc<Features<T>>,
        problem: &Problem,
        (upload, options): (Upload, MatrixOptions),
    ) -> Result<Self, OpError> {
        at_most("columns", MAX_COLUMNS as u64, features.cols() as u64)?;
        let frequent = frequent_columns(device, &features, problem);
        let rows = Rows::new(device, features, problem, (upload, options))?;
        Ok(Forms {
            frequent,
            ..Self::of_rows(rows)
        })
    }

    /// Rows that lie on a GPU already, in no further form.
    pub(super) fn of_rows(rows: Rows<T>) -> Self {
        Forms {
            rows,
            equilibrated: Arc::default(),
            tiles_of_rows: Arc::default(),
            panels: None,
            hot: None,
            transpose: None,
            head: None,
            frequent: None,
            tiles: None,
        }
    }

    /// Fails where kernels do not count this many rows or columns.
    pub(super) fn check_size((rows, cols): (usize, usize)) -> Result<(), OpError> {
        at_most("columns", MAX_COLUMNS as u64, cols as u64)?;
        at_most("rows", MAX_ROWS, rows as u64)
    }

    /// Makes a form of `x`, which these rows are and which lies at `site`; returns the problem that products are then.
    pub(super) fn make(
        &mut self,
        making: Making,
        (site, x): (&Site<T>, &CsrMatrix<T>),
        problem: Problem,
    ) -> Result<Problem, OpError> {
        let device = &site.device;
        Ok(match making {
            Making::Panels => {
                self.panels = Some(Arc::new(Panels::of(site, x)?));
                problem.with_stored(Stored::RowsAndPanels)
            }
            Making::HotColumns(size, values) => {
                let made = HotColumns::of(device, x, (size, values))?;
                self.with_hot_columns(made, problem)
            }
            Making::Transpose => {
                self.transpose = Some(Arc::new(Transpose::of(site, x)?));
                problem.with_stored(Stored::RowsAndTranspose)
            }
            Making::Sell => {
                let Rows::Host(rows) = &mut self.rows else {
                    unreachable!("a form of the CPU's")
                };
                let made = rows.reading(|| SellRows::of(device, x))??;
                rows.sell = Some(Box::new(made));
                problem.with_stored(Stored::RowsAndSell)
            }
            Making::Tiles(shape) => {
                self.tiles = Some(Arc::new(Tiles::of(device, x, shape)?));
                problem
            }
        })
    }

    fn with_hot_columns(&mut self, made: hot::Made<T>, problem: Problem) -> Problem {
        self.hot = Some(Arc::new(made.form));
        let columns = made.columns.with_lines_of(problem.columns);
        let problem = problem.with_columns(columns).with_values(made.values);
        problem.with_stored(Stored::RowsAndHotColumns)
    }

    /// The launches of a plan; `None` for two products one after the other.
    pub(super) fn launches(
        &self,
        site: &Site<T>,
        (problem, summation): (&Problem, Summation),
        plan: &Plan,
    ) -> Result<Option<Box<dyn OnDevice<T>>>, OpError> {
        let is_reproducible = summation == Summation::Reproducible;
        Ok(Some(match &self.rows {
            Rows::Host(_) | Rows::Elsewhere(_) => unreachable!("they have code of their own"),
            Rows::Sparse(rows) => {
                // Both walks with the scale of the fused product.
                let walks_twice = is_reproducible && plan.then.is_some();
                if plan.then.is_some() && !walks_twice {
                    return Ok(None);
                }
                match plan.strategy {
                    strategy if walks_twice || strategy.is_fixed() => {
                        let x = self.fixed(rows);
                        Box::new(FixedKernels::prepare(site, &x, plan)?)
                    }
                    strategy if strategy.is_balanced() => {
                        let over = Balanced {
                            rows: rows.clone(),
                            tiles: self.tiles_of_rows.clone(),
                            transpose: self.transpose.clone(),
                        };
                        let nnz = problem.nnz.unwrap_or(0);
                        Box::new(BalancedKernels::prepare(site, (over, nnz), plan)?)
                    }
                    strategy if strategy.is_even() => {
                        let over = (rows, self.frequent.as_ref());
                        Box::new(EvenKernel::prepare(site, over, plan)?)
                    }
                    Strategy::Panels => {
                        let panels = self.panels.as_ref().expect(MADE);
                        Box::new(PanelKernel::prepare(site, panels, plan)?)
                    }
                    Strategy::HotColumns => {
                        let hot = self.hot.as_ref().expect(MADE);
                        Box::new(HotKernels::prepare(site, hot, plan)?)
                    }
                    _ => Box::new(RowKernel::prepare(site, rows, plan)?),
                }
            }
            Rows::Dense(rows)
                if is_reproducible
                    && plan.product != Product::Forward
                    && rows.streamed().is_some() =>
            {
                match CarriedKernels::prepare(site, rows, plan.product)? {
                    Some(kernels) => Box::new(kernels),
                    None => return Ok(None),
                }
            }
            Rows::Dense(_) if plan.then.is_some() => return Ok(None),
            Rows::Dense(rows) if is_reproducible && plan.product != Product::Forward => {
                Box::new(OrderedKernels::prepare(site, rows, plan)?)
            }
            Rows::Dense(rows) => Box::new(DenseKernel::prepare(site, rows, plan)?),
        }))
    }
}

impl<T: Number> Forms<T> {
    /// Kernels of `X·y` and `Xᵀ·p` that are launched block by block; none where rows are not a GPU's.
    pub(super) fn halves(
        &self,
        site: &Site<T>,
        plans: [&Plan; 2],
    ) -> Result<Option<Halves<T>>, OpError> {
        Ok(match &self.rows {
            Rows::Host(_) | Rows::Elsewhere(_) => None,
            Rows::Sparse(rows) => {
                let over = (rows, self.frequent.as_ref());
                Some(Halves::sparse(site, over, plans)?)
            }
            Rows::Dense(rows) => Some(Halves::dense(site, rows, plans)?),
        })
    }

    /// Sparse rows as fixed-point sums take them.
    pub(super) fn fixed<'f>(&'f self, rows: &'f Arc<SparseRows<T>>) -> FixedRows<'f, T> {
        FixedRows {
            rows,
            equilibrated: &self.equilibrated,
            head: self.head.as_ref().map(|(head, _)| head),
            frequent: self.frequent.as_ref(),
        }
    }
}

/// The most frequent columns of a sparse X on a GPU, where its sample says that they hold up the others.
fn frequent_columns<T: Number>(
    device: &Device,
    features: &Features<T>,
    problem: &Problem,
) -> Option<FrequentTable> {
    let limits = device.limits().filter(|_| tells_frequent(problem))?;
    let (indices, size) = (features.csr_arrays()?.indices, size_of::<T>() as u32);
    Some(FrequentTable::of(indices, size, least_frequent(limits)))
}

const MADE: &str = "a form is planned with after it was made";

impl<T: Number> Rows<T> {
    fn new(
        device: &Device,
        features: Arc<Features<T>>,
        problem: &Problem,
        (upload, options): (Upload, MatrixOptions),
    ) -> Result<Self, OpError> {
        if device.is_cpu() {
            return Ok(Rows::Host(HostRows::of_member(features, device.group())?));
        }
        at_most("rows", MAX_ROWS, features.rows() as u64)?;
        let problem = &problem.as_stored();
        let (passes, beside) = match upload {
            Upload::Now => (None, Beside::Products),
            Upload::WhenUsed { passes, beside } => (Some(passes), beside),
        };
        let place = Place::of(device, Footprint::of(problem), options.device_bytes).beside(beside);
        let place = shared_with_host(device, (&*features, problem), place, (passes, options));
        if !features.is_sparse() {
            let rows = DenseRows::new(device, features, place, options.values)?;
            return Ok(Rows::Dense(Arc::new(rows)));
        }
        let rows = SparseRows::new(device, features, place, options.values);
        if upload == Upload::Now {
            rows.place()?;
        }
        Ok(Rows::Sparse(Arc::new(rows)))
    }

    /// Sparse rows as they came.
    pub(super) fn features(&self) -> Result<Arc<Features<T>>, OpError> {
        match self {
            Rows::Host(rows) => Ok(rows.features.clone()),
            Rows::Sparse(rows) => rows.features(),
            Rows::Dense(_) | Rows::Elsewhere(_) => unreachable!("forms are made of sparse rows"),
        }
    }

    /// Which rows of all members of a group they are.
    pub(super) fn share(&self) -> Option<&Share> {
        match self {
            Rows::Host(rows) => rows.share.as_ref(),
            Rows::Elsewhere(share) => Some(share),
            Rows::Sparse(_) | Rows::Dense(_) => None,
        }
    }

    /// Whether they stream, or will when a product needs them.
    pub(super) fn stream(&self) -> bool {
        match self {
            Rows::Host(_) | Rows::Elsewhere(_) => false,
            Rows::Sparse(rows) => rows.stream(),
            Rows::Dense(rows) => rows.streamed().is_some(),
        }
    }

    /// What of them the device has.
    pub(super) fn residency(&self) -> Residency {
        match self {
            Rows::Host(_) | Rows::Elsewhere(_) => Residency::default(),
            Rows::Sparse(rows) => rows.residency(),
            Rows::Dense(rows) => rows
                .streamed()
                .map_or(Residency::default(), |stream| stream.blocks().residency()),
        }
    }

    /// Blocks that stay or stream, or will when a product needs them; 1 where the device has or gets all rows as one.
    pub(super) fn blocks(&self) -> u64 {
        match (self.residency().blocks as u64, self) {
            (0, Rows::Sparse(rows)) => rows.planned_blocks(),
            (blocks, _) => blocks.max(1),
        }
    }

    /// The blocks, where they stay or stream and the device has them.
    fn streams(&self) -> Result<Option<Stream<'_, T>>, OpError> {
        Ok(match self {
            Rows::Host(_) | Rows::Elsewhere(_) => None,
            Rows::Sparse(rows) if rows.stream() => rows.streamed()?.map(Stream::Sparse),
            Rows::Sparse(_) => None,
            Rows::Dense(rows) => rows.streamed().map(Stream::Dense),
        })
    }

    /// Whether the CPU may have a share of the rows: without waiting for them to be placed.
    pub(super) fn is_shared(&self) -> bool {
        match self {
            Rows::Host(_) | Rows::Elsewhere(_) => false,
            Rows::Sparse(rows) => rows.is_shared(),
            Rows::Dense(rows) => rows.streamed().is_some(),
        }
    }

    /// X and those of its rows that are the CPU's, where it has a share.
    pub(super) fn of_host(&self) -> Result<Option<RowsOfX<T>>, OpError> {
        let found = self.streams()?.map(|stream| match stream {
            Stream::Sparse(stream) => stream.blocks().of_host(),
            Stream::Dense(stream) => stream.blocks().of_host(),
        });
        Ok(found.filter(|(_, rows)| !rows.is_empty()))
    }

    /// The rows of a part, of `rows` in all.
    pub(super) fn range(&self, part: Part, rows: usize) -> Result<Range<usize>, OpError> {
        let host = match part {
            Part::All => None,
            Part::OfDevice => self.of_host()?,
        };
        Ok(0..host.map_or(rows, |(_, own)| own.start))
    }

    /// This many passes over X are to come.
    pub(super) fn announce(&self, passes: u64) -> Result<(), OpError> {
        match self {
            Rows::Host(_) | Rows::Elsewhere(_) => {}
            Rows::Sparse(rows) => {
                if rows.stream()
                    && let Some(stream) = rows.streamed()?
                {
                    stream.blocks().announce(passes);
                }
            }
            Rows::Dense(rows) => {
                if let Some(stream) = rows.streamed() {
                    stream.blocks().announce(passes);
                }
            }
        }
        Ok(())
    }

    /// Elements from one row to the next of a dense matrix on a GPU.
    pub(super) fn ld(&self) -> Option<usize> {
        match self {
            Rows::Dense(rows) => Some(rows.ld),
            Rows::Host(_) | Rows::Sparse(_) | Rows::Elsewhere(_) => None,
        }
    }
}

fn at_most(what: &'static str, limit: u64, found: u64) -> Result<(), OpError> {
    if found <= limit {
        Ok(())
    } else {
        Err(OpError::TooLarge { what, limit, found })
    }
}
