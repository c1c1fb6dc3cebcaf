//! Further forms of a sparse matrix, made before it is multiplied many times.

use std::sync::Arc;

use gpu_kernels::Family;
use gpu_kernels::forms::hot::HotOrder;
use gpu_kernels::fused::sparse::MAX_NONZEROS;

use super::forms::head::HeadSize;
pub use super::forms::hot::HotStep;
use super::forms::rows::csr;
use super::forms::tiles::tile_shape;
use super::forms::{Making, Rows, Upload};
use super::{Matrix, MatrixOptions, Number, OpError};
use crate::cpu::sell::equal_value;
use crate::device::{CudaDevice, Device};
use crate::layout::hot::HotSize;
use crate::matrix::Features;
use crate::plan::fused::{
    Maker, Planner, Problem, Product, Stored, StoredValues, Weighing, hot_places, sell,
};
use crate::plan::streaming::Beside;
use crate::plan::tiles::TilePasses;

/// What to store besides the rows of a sparse matrix, before it is multiplied many times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preparation {
    /// Whatever the planner expects to pay over this many evaluations of the fused product: a further form, or marks of the
    /// most frequent columns ([`Matrix::tell_head`]); nothing, if nothing does.
    For {
        /// Evaluations that are to come.
        evaluations: u64,
    },
    /// Whatever the planner expects to pay over this many evaluations of one product; nothing, if nothing does.
    ForProduct {
        /// Which one.
        product: Product,
        /// Evaluations that are to come.
        evaluations: u64,
    },
    /// Whatever the planner expects to pay over this many evaluations of [objectives](super::objective) with their
    /// gradients and of their Hessians' products, of which a fit has
    /// [17](crate::plan::objective::PRODUCTS_PER_POINT) for each gradient; nothing, if nothing does.
    ForObjectives {
        /// Evaluations that are to come.
        evaluations: u64,
    },
    /// Panels of rows and of columns, whether or not they pay: two more copies of X, of 8 bytes (f64: 12) an entry.
    Panels,
    /// Rows with their most frequent columns kept apart, and panels of the others, whether or not that pays: another
    /// copy of X, and one of the others' entries. An entry of a frequent column takes 2 bytes and its value, which takes
    /// none where all values of a row are equal, 2 or 4 where bfloat16 or f32 hold every value or
    /// [`MatrixOptions::values`](super::MatrixOptions::values) says so.
    HotColumns {
        /// Columns that are kept apart at most, as far as shared memory goes; without it those that are frequent
        /// enough, as many as leave room for the L1 cache.
        most: Option<u32>,
    },
    /// The rows of Xᵀ, whether or not they pay: another copy of X, of 8 bytes (f64: 12) an entry and 4 a column, and on
    /// the host 40 bytes (f64: 56) an entry while it is made. `fused` and `transposed` then add nothing atomically: their
    /// bits do not depend on the launch. Softmax objectives add up by it where a column is so frequent that additions to the
    /// gradient would wait for each other.
    Transpose,
    /// On the CPU: blocks of rows by rows and by columns in sliced ELLPACK ([`crate::cpu::sell`]), whether or not they pay: another
    /// two copies of X, of 12 bytes (f64: 20) an entry, or of 4 where all values are equal, and as much again while they are
    /// made.
    Sell,
    /// Tiles for products with several right-hand sides ([`Matrix::fused_many`] and its halves), beside whatever other
    /// form there is: two more copies of X, of 6 bytes (f64: 10) an entry, where shared memory holds four sides of Y:
    /// up to 14,500 columns of f32 on an H200.
    Tiles {
        /// Launches of the fused product; without it those that the planner expects to be faster. [`TilePasses::Two`]
        /// need memory for m × k numbers between them.
        passes: Option<TilePasses>,
    },
}

impl Preparation {
    /// The one that makes a form whether or not it pays; `None` for the rows, which are there anyway.
    ///
    /// ```
    /// use warpfuse::ops::Preparation;
    /// use warpfuse::plan::fused::{Processor, Stored};
    /// let further = Stored::further(Processor::Gpu).filter_map(Preparation::of);
    /// assert!(further.into_iter().any(|form| form == Preparation::Panels));
    /// assert_eq!(Preparation::of(Stored::Rows), None);
    /// ```
    pub fn of(stored: Stored) -> Option<Self> {
        Some(match stored {
            Stored::Rows => return None,
            Stored::RowsAndPanels => Preparation::Panels,
            Stored::RowsAndHotColumns => Preparation::HotColumns { most: None },
            Stored::RowsAndTranspose => Preparation::Transpose,
            Stored::RowsAndSell => Preparation::Sell,
        })
    }

    /// Whether it may make a form by columns.
    pub(super) fn may_be_by_columns(self) -> bool {
        self.evaluations() > 0 || matches!(self, Preparation::Panels | Preparation::Transpose)
    }

    /// Passes over X that are announced.
    fn evaluations(self) -> u64 {
        match self {
            Preparation::For { evaluations }
            | Preparation::ForProduct { evaluations, .. }
            | Preparation::ForObjectives { evaluations } => evaluations,
            _ => 0,
        }
    }
}

/// Entries of a hot column for each SM, at least.
const ENTRIES_PER_SM: u64 = 2;

impl<T: Number> Matrix<T> {
    /// Puts `features` on `device` in the form that `preparation` chooses: [`Matrix::with_options`] and
    /// [`Matrix::prepare`], but the form is chosen and made before anything is uploaded, so that a GPU gets X once and
    /// never gives it back.
    ///
    /// Where panels or hot columns are made, the rows themselves stay in host memory until a product needs them on the
    /// device ([`Matrix::upload_rows`] does it now); `features` are kept for as long.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::{Matrix, MatrixOptions, Preparation};
    ///
    /// let x = Features::Dense(ndarray::array![[1.0, 2.0], [0.0, 3.0]]);
    /// let to_come = Preparation::For { evaluations: 1_000 };
    /// let x = Matrix::prepared(&Device::auto(), x, MatrixOptions::default(), to_come)?;
    /// assert_eq!((x.rows(), x.cols()), (2, 2));
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Matrix::new`] and [`Matrix::prepare`].
    pub fn prepared(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        options: MatrixOptions,
        preparation: Preparation,
    ) -> Result<Self, OpError> {
        let features = features.into();
        features.reading(|| Self::in_form(device, features.clone(), options, preparation))?
    }

    fn in_form(
        device: &Device,
        features: Arc<Features<T>>,
        options: MatrixOptions,
        preparation: Preparation,
    ) -> Result<Self, OpError> {
        let passes = preparation.evaluations();
        let beside = match preparation {
            Preparation::ForObjectives { .. } => Beside::Solver(options.summation),
            _ => Beside::Products,
        };
        let upload = Upload::WhenUsed { passes, beside };
        let mut matrix = Self::build(device, features, options, upload)?;
        if matrix.prepare(preparation)?.facts().reads_rows {
            matrix.upload_rows()?;
            if matrix.forms.rows.stream() {
                matrix.announce(passes)?;
            }
        }
        Ok(matrix)
    }

    /// This many passes over X are to come: what streams is page-locked at once where that pays. [`Matrix::prepared`] says so
    /// by itself; without it blocks are page-locked when as many passes have been.
    ///
    /// # Errors
    /// As [`Matrix::upload_rows`].
    pub fn announce(&self, passes: u64) -> Result<(), OpError> {
        if let Some(members) = &self.members {
            return members.own.announce(passes);
        }
        self.forms.rows.announce(passes)
    }

    /// Uploads the rows of a sparse matrix, unless the device has them, and lets go of the host's copy. Products do so
    /// when they first need them. Rows that do not fit stay on the host too, and stream.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn upload_rows(&self) -> Result<(), OpError> {
        if let Some(members) = &self.members {
            return members.own.upload_rows();
        }
        match &self.forms.rows {
            Rows::Sparse(rows) => rows.place(),
            _ => Ok(()),
        }
    }

    /// Whether the device has the rows of X as they came: not where a further form was made first
    /// ([`Matrix::prepared`]) and no product has needed them.
    pub fn has_rows(&self) -> bool {
        if let Some(members) = &self.members {
            return members.own.has_rows();
        }
        match &self.forms.rows {
            Rows::Sparse(rows) => rows.are_uploaded(),
            _ => true,
        }
    }

    /// Stores a sparse matrix in a further form that makes products faster, and plans them anew. The host does the
    /// work, from its own copy of X as long as somebody keeps it, else from one that comes back from the device:
    /// [`Matrix::prepared`] needs neither. A GPU makes hot columns, panels and the transpose where X lies, as far as it has room
    /// to sort, unless it is told not to ([`MatrixOptions::maker`]). What is stored already stays. Returns in which forms X is stored then:
    /// [`Stored::Rows`] also where there is nothing to prepare: for a form that the other
    /// [processor](crate::plan::fused::Processor) reads, for a dense matrix, and for hot columns and the transpose of a
    /// matrix whose entries 32 bits do not count.
    ///
    /// Results differ from those before by rounding; where values are rounded, products that use the form are those of
    /// the rounded matrix, and [`Problem::values`](crate::plan::fused::Problem::values) says how values are stored. With [`Summation::Reproducible`](crate::plan::fused::Summation)
    /// further forms are not used.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::{Matrix, Preparation};
    ///
    /// let x = Features::Dense(ndarray::array![[1.0, 2.0], [0.0, 3.0]]);
    /// let mut x = Matrix::new(&Device::cpu(), x)?;
    /// let stored = x.prepare(Preparation::For { evaluations: 1_000 })?;
    /// assert_eq!(stored.to_string(), "rows");
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// One-hot rows, whose values need no room:
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::{Features, Values, csr_from_parts};
    /// use warpfuse::ops::{Matrix, MatrixOptions, Preparation};
    ///
    /// let x = csr_from_parts((2, 4), vec![0, 2, 4], vec![0, 2, 1, 2], vec![1.0; 4])?;
    /// let options = MatrixOptions { values: Values::Exact, ..MatrixOptions::default() };
    /// let mut x = Matrix::with_options(&Device::auto(), Features::Sparse(x), options)?;
    /// let stored = x.prepare(Preparation::HotColumns { most: None })?;
    /// println!("{stored}, {}", x.problem().values);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory, [`OpError::Plan`] when no launch fits it.
    pub fn prepare(&mut self, preparation: Preparation) -> Result<Stored, OpError> {
        self.agree_on_slices(preparation)?;
        if let Some(members) = &mut self.members {
            let stored = members.own.prepare(preparation)?;
            self.shape = self.shape.with_stored(stored);
            return Ok(stored);
        }
        if self.rows() == 0 || self.cols() == 0 {
            return Ok(self.shape.stored);
        }
        let saved_by_head = self.saved_by_head(preparation)?;
        if let Some(making) = self.making(preparation, saved_by_head)? {
            let stored = self.shape.stored;
            match self.make(making, preparation) {
                Ok(shape) => self.shape = shape,
                Err(error) if error.is_out_of_memory() => {
                    tracing::info!(%error, "the further form does not fit: the rows have to do");
                }
                Err(error) => return Err(error),
            }
            if self.shape.stored != stored {
                self.replan(self.options);
            }
        } else if self.wants_head(preparation, saved_by_head)? {
            match self.tell_head(HeadSize::Planned) {
                Err(error) if error.is_out_of_memory() => {
                    tracing::info!(%error, "marks of frequent columns do not fit");
                }
                told => drop(told?),
            }
        }
        Ok(self.shape.stored)
    }

    /// Who makes further forms: the host where the program lacks the device's kernels for it.
    pub(super) fn maker(&self) -> Maker {
        let usual = match self.device() {
            Device::Cuda(_) => Maker::Device,
            _ => Maker::Host,
        };
        self.wanted_maker().unwrap_or(usual)
    }

    /// Who the options say makes further forms.
    fn wanted_maker(&self) -> Option<Maker> {
        match self.device() {
            Device::Cuda(device) if !has_making_kernels(device) => Some(Maker::Host),
            _ => self.options.maker,
        }
    }

    /// Makes a form, on the device where that is wanted and it can; returns the problem that products are then.
    fn make(&mut self, making: Making, preparation: Preparation) -> Result<Problem, OpError> {
        if self.maker() == Maker::Device {
            let for_objectives = matches!(preparation, Preparation::ForObjectives { .. });
            if for_objectives || making == Making::Transpose {
                // X·y reads them.
                self.upload_rows()?;
            }
            let made = self.forms.make_on_device(making, (&self.site, self.shape));
            match made {
                Ok(Some(shape)) => return Ok(shape),
                Ok(None) => {}
                Err(error) if error.is_out_of_memory() => {
                    tracing::info!(%error, "the host makes the further form: the device has no room to sort");
                }
                Err(error) => return Err(error),
            }
        }
        let features = self.forms.rows.features()?;
        self.forms
            .make(making, (&self.site, csr(&features)), self.shape)
    }

    /// What each step of making hot columns on the device took, in seconds; nothing where they were not made there.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// let x = Matrix::new(&Device::cpu(), Features::Dense(ndarray::array![[1.0, 2.0]]))?;
    /// assert!(x.steps_of_hot_columns().is_empty());
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    pub fn steps_of_hot_columns(&self) -> &[(HotStep, f64)] {
        let own = self.members.as_ref().map_or(self, |members| &members.own);
        own.forms.hot.as_ref().map_or(&[], |hot| &hot.steps)
    }

    /// Whether [`Preparation::Tiles`] has been made.
    pub fn has_tiles(&self) -> bool {
        if let Some(members) = &self.members {
            return members.own.has_tiles();
        }
        self.forms.tiles.is_some()
    }

    /// What a preparation asks for and is not there yet.
    ///
    /// A form that the planner is to choose has to save more than a head does.
    pub(super) fn making(
        &self,
        preparation: Preparation,
        saved_by_head: u64,
    ) -> Result<Option<Making>, OpError> {
        match &self.forms.rows {
            Rows::Host(_) => return self.making_on_host(preparation),
            Rows::Sparse(rows) if !rows.stream() => {}
            _ => return Ok(None),
        }
        if let Preparation::Tiles { passes } = preparation {
            let shape = tile_shape(self.device(), &self.shape, passes);
            let shape = shape.filter(|_| !self.has_tiles());
            return Ok(shape.map(Making::Tiles));
        }
        if self.shape.stored != Stored::Rows {
            return Ok(None);
        }
        let entries = self.shape.nnz.unwrap_or(0);
        let is_one_part = entries <= u64::from(MAX_NONZEROS);
        let has_hot = is_one_part && self.cols() < 1 << 31;
        let transpose = is_one_part.then_some(Making::Transpose);
        let hot = |most: u32, least| {
            let size = HotSize {
                most: most as usize,
                least,
            };
            has_hot.then_some(Making::HotColumns(size, self.options.values))
        };
        let frequent = || {
            let shared = self
                .device()
                .limits()
                .map_or(0, |limits| limits.shared_per_block);
            hot(
                hot_places(shared, T::SIZE, self.shape.cols),
                self.least_hot(),
            )
        };
        let best = match preparation {
            Preparation::Tiles { .. } => unreachable!("they are beside the other forms"),
            Preparation::Panels => return Ok(Some(Making::Panels)),
            Preparation::HotColumns { most: Some(most) } => return Ok(hot(most, 1)),
            Preparation::HotColumns { most: None } => return Ok(frequent()),
            Preparation::Transpose => return Ok(transpose),
            Preparation::Sell => return Ok(None),
            Preparation::For { evaluations } => self.best_form(Product::Fused, evaluations)?,
            Preparation::ForProduct {
                product,
                evaluations,
            } => self.best_form(product, evaluations)?,
            Preparation::ForObjectives { evaluations } => self.best_for_objectives(evaluations)?,
        };
        let evaluations = preparation.evaluations();
        let best = best.filter(|best| best.saved(evaluations) > saved_by_head);
        if let Some(best) = &best {
            tracing::info!(%best, "X is stored in a further form");
        }
        Ok(match best.map(|weighing| weighing.stored) {
            Some(Stored::RowsAndPanels) => Some(Making::Panels),
            Some(Stored::RowsAndHotColumns) => frequent(),
            Some(Stored::RowsAndTranspose) => transpose,
            _ => None,
        })
    }

    /// The same on the CPU.
    fn making_on_host(&self, preparation: Preparation) -> Result<Option<Making>, OpError> {
        let is_of_use = self.shape.nnz.is_some() && !self.is_reproducible();
        if !is_of_use || self.shape.stored != Stored::Rows {
            return Ok(None);
        }
        let (product, evaluations) = match preparation {
            Preparation::Sell => return Ok(Some(Making::Sell)),
            Preparation::For { evaluations } => (Product::Fused, evaluations),
            Preparation::ForProduct {
                product,
                evaluations,
            } => (product, evaluations),
            _ => return Ok(None),
        };
        let features = self.forms.rows.features()?;
        let shape = match equal_value(csr(&features).data()) {
            Some(_) => self.shape.with_values(StoredValues::Equal),
            None => self.shape,
        };
        let best = sell::weigh(&shape, product, rayon::current_num_threads());
        let best = best.filter(|best| best.pays_for(evaluations));
        if let Some(best) = &best {
            tracing::info!(%best, "X is stored in a further form");
        }
        Ok(best.map(|_| Making::Sell))
    }

    fn best_form(&self, product: Product, evaluations: u64) -> Result<Option<Weighing>, OpError> {
        let best =
            |planner: Planner<'_>| Ok(planner.best_form(&self.shape, product, evaluations)?);
        Ok(self.planning(best)?.flatten())
    }

    /// Entries of a column that is worth a place: its sum is flushed by a block on each SM.
    fn least_hot(&self) -> u64 {
        let sms = self.device().limits().map_or(1, |limits| limits.sms);
        ENTRIES_PER_SM * u64::from(sms)
    }
}

/// Whether the program has the family of kernels that make forms: `cargo xtask quickstart` leaves it out.
fn has_making_kernels(device: &CudaDevice) -> bool {
    HotOrder::entries()
        .iter()
        .all(|entry| device.has_kernel(entry.name))
}
