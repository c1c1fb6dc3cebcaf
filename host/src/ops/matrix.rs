//! A matrix on a device, with the plans of its products.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::catalog::{candidates_for, candidates_on};
use super::device_features::DeviceFeatures;
use super::forms::dense::DenseRows;
use super::forms::hot::stored_values;
use super::forms::rows::{SparsePart, SparseRows};
use super::forms::site::Together;
use super::forms::{Forms, Rows, Site, Upload};
use super::members::Members;
use super::options::{HostShare, MatrixOptions, Residency};
use super::plans::Plans;
use super::share::Share;
use super::{Number, OpError};
use crate::cpu::fixed::Whole;
use crate::device::Device;
use crate::device::group::Group;
use crate::layout::hot::expected;
use crate::matrix::{CsrArrays, Features, RowSteps, Skew, Values, with_offsets};
use crate::parallel;
use crate::plan::fused::{
    Candidate, ColumnUse, Plan, Planner, Problem, Product, Summation, Trial, hot_places,
};
use crate::plan::limits::DeviceLimits;

/// Rows whose lengths one task looks at.
const ROWS_PER_TASK: usize = 1 << 14;

/// X on a device: m samples × n features, sparse (CSR) or dense (row-major).
///
/// Each product is planned when it is first used; the plan stays with the matrix.
pub struct Matrix<T: Number> {
    pub(super) site: Site<T>,
    pub(super) shape: Problem,
    pub(super) options: MatrixOptions,
    pub(super) forms: Forms<T>,
    pub(super) plans: Plans<T>,
    /// Where members of a group have rows on GPUs of their own.
    pub(super) members: Option<Box<Members<Matrix<T>>>>,
    /// The CPU's share of the rows, made when it is first used.
    pub(super) beside: OnceLock<Result<Option<Beside<T>>, OpError>>,
}

/// Rows that the CPU computes while a GPU computes the others: see the file of the same name.
pub(super) struct Beside<T: Number> {
    /// A matrix of these rows on the CPU.
    pub(super) matrix: Box<Matrix<T>>,
    /// Which they are.
    pub(super) rows: Range<usize>,
    pub(super) device: Device,
}

impl<T: Number> Matrix<T> {
    /// Puts `features` on `device`. The CPU keeps them as they are, without a copy; a GPU gets a copy, and
    /// they are dropped unless the caller holds another [`Arc`].
    ///
    /// What does not fit a GPU, or its [limit](crate::device::MemoryOptions), streams: blocks of rows, as many as fit, stay
    /// there, and the others cross the link once in every product, each in as few bytes as hold it. `features` are kept
    /// then. Every operation works as with an X that fits, and [reproducible](MatrixOptions::summation) sums have the same
    /// bits; [`Matrix::residency`] says what lies where.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory for a block and the vectors of a product, [`OpError::TooLarge`] when indices do not
    /// fit 32 bits.
    pub fn new(device: &Device, features: impl Into<Arc<Features<T>>>) -> Result<Self, OpError> {
        Self::with_options(device, features, MatrixOptions::default())
    }

    /// [`Matrix::new`] with a launch model and forced parts of the plan.
    ///
    /// # Errors
    /// As [`Matrix::new`].
    pub fn with_options(
        device: &Device,
        features: impl Into<Arc<Features<T>>>,
        options: MatrixOptions,
    ) -> Result<Self, OpError> {
        let features = features.into();
        features.reading(|| Self::build(device, features.clone(), options, Upload::Now))?
    }

    pub(super) fn build(
        device: &Device,
        features: Arc<Features<T>>,
        options: MatrixOptions,
        upload: Upload,
    ) -> Result<Self, OpError> {
        if let Some(group) = device.group().filter(|_| !device.is_cpu()) {
            return Self::of_member((device, group), features, (options, upload));
        }
        let mut problem = problem(&features, device, options.values);
        let mut size = (features.rows(), features.cols());
        let forms = Forms::new(device, features, &problem, (upload, options))?;
        if let Some(share) = forms.rows.share() {
            size.0 = share.whole().rows as usize;
            problem = of_all(problem, share.whole());
        }
        let shape = match forms.rows.ld() {
            Some(ld) => problem.with_pitch(ld as u64),
            None => problem,
        };
        let longest = shape.longest_row.unwrap_or(shape.cols);
        Ok(Matrix {
            site: Site::new(device, size, longest),
            shape,
            options,
            forms,
            plans: Plans::default(),
            members: None,
            beside: OnceLock::new(),
        })
    }

    /// The rows of one member of a group, on its GPU.
    fn of_member(
        (device, group): (&Device, &Group),
        features: Arc<Features<T>>,
        (options, upload): (MatrixOptions, Upload),
    ) -> Result<Self, OpError> {
        let share = Share::of(group, &*features)?.expect("a group has other members");
        let repeats = options.summation == Summation::Reproducible;
        let on_host = match repeats && !features.is_sparse() {
            true => {
                let host = Device::cpu_of(group);
                Some(Self::build(&host, features.clone(), options, upload)?)
            }
            false => None,
        };
        // The CPU is not one member's alone.
        let of_gpu = MatrixOptions {
            host_share: HostShare::Fixed(0.0),
            ..options
        };
        let mut own = Self::build(&device.alone(), features, of_gpu, upload)?;
        let shape = of_all(own.shape, share.whole());
        if repeats {
            // Orders of sums are those of a matrix of all rows.
            own.shape = shape;
            own.site.longest = share.whole().longest as u32;
            own.site.together = Some(Together {
                group: group.clone(),
                rows: share.whole().rows,
                wish: share.wish().clone(),
            });
        }
        let size = (share.whole().rows as usize, own.cols());
        Ok(Matrix {
            site: Site::new(device, size, share.whole().longest),
            shape,
            options,
            forms: Forms::of_rows(Rows::Elsewhere(share.clone())),
            plans: Plans::default(),
            members: Some(Box::new(Members::new(share, (own, on_host), repeats))),
            beside: OnceLock::new(),
        })
    }

    /// X where it lies on its device: nothing is copied, and nothing crosses the link. It stays in the form that it has:
    /// further forms ([`Matrix::prepare`]) are made of a copy that comes back to the host, if somebody asks for them.
    ///
    /// # Errors
    /// [`OpError::TooLarge`] for more rows or columns than kernels count.
    pub fn over(features: DeviceFeatures<T>, options: MatrixOptions) -> Result<Self, OpError> {
        let (device, size) = (features.device(), features.shape());
        Forms::<T>::check_size(size)?;
        let (rows, cols) = (size.0 as u64, size.1 as u64);
        let (forms, shape) = match features {
            DeviceFeatures::Dense(x) => {
                let pitch = x.pitch;
                let own = DenseRows::placed_already(x.rows, pitch, x.values);
                let shape = Problem::dense(rows, cols, T::PRECISION).with_pitch(pitch as u64);
                (Rows::Dense(Arc::new(own)), shape)
            }
            DeviceFeatures::Sparse(x) => {
                let (entries, longest) = (x.nnz() as u64, x.longest);
                let part = SparsePart::whole(size.0, (x.offsets, x.indices), x.values);
                let own = SparseRows::placed_already(&device, size, part);
                let shape = Problem::sparse(rows, cols, entries, T::PRECISION);
                (Rows::Sparse(Arc::new(own)), shape.with_longest_row(longest))
            }
        };
        Ok(Matrix {
            site: Site::new(&device, size, shape.longest_row.unwrap_or(cols)),
            shape,
            options,
            forms: Forms::of_rows(forms),
            plans: Plans::default(),
            members: None,
            beside: OnceLock::new(),
        })
    }

    /// Whether sums are promised to repeat bit by bit.
    pub fn is_reproducible(&self) -> bool {
        self.options.summation == Summation::Reproducible
    }

    /// Plans all products anew with other options.
    pub fn replan(&mut self, options: MatrixOptions) {
        self.options = options;
        self.plans.replan();
        if let Some(members) = &mut self.members {
            members.own.replan(options);
        }
    }

    /// The device that the matrix lies on.
    pub fn device(&self) -> &Device {
        &self.site.device
    }

    /// m.
    pub fn rows(&self) -> usize {
        self.site.rows
    }

    /// Which of the rows this member of a [group](crate::device::group) has: all of them where nothing is shared.
    pub fn own_rows(&self) -> Range<usize> {
        self.forms
            .rows
            .share()
            .map_or(0..self.rows(), |share| share.own())
    }

    /// n.
    pub fn cols(&self) -> usize {
        self.site.cols
    }

    /// The shape as the planner sees it.
    pub fn problem(&self) -> &Problem {
        &self.shape
    }

    /// The plan of a product, or `None` on the CPU, which needs none.
    ///
    /// # Errors
    /// [`OpError::Plan`] when no launch fits the device or the forced parts.
    pub fn plan(&self, product: Product) -> Result<Option<Plan>, OpError> {
        if let Some(members) = &self.members {
            return members.own.plan(product);
        }
        self.planning(|planner| Ok(planner.plan(&self.shape, product)?))
    }

    /// Asks a planner with the matrix's device and options, if the device needs plans.
    pub(super) fn planning<R>(
        &self,
        ask: impl FnOnce(Planner<'_>) -> Result<R, OpError>,
    ) -> Result<Option<R>, OpError> {
        let Some((limits, mut kernels)) = self.choices()? else {
            return Ok(None);
        };
        // Blocks that stream have marks of a head, which two products by shares of the entries would not use: on kddb's shape a pass
        // would take 91 ms instead of 36 (H100).
        if self.options.forced.strategy.is_none() && self.forms.rows.stream() {
            let others = kernels.iter().filter(|one| !one.strategy.is_even());
            kernels = others.cloned().collect();
        }
        let tuned = self.device().tuned();
        let planner = Planner::new(limits, &kernels)
            .tuned(tuned.as_deref())
            .model(self.options.model)
            .maker(self.maker())
            .forced(self.options.forced)
            .summation(self.options.summation);
        ask(planner).map(Some)
    }

    /// All launches by which one kernel computes a product, the fastest by prediction first; none on the CPU.
    ///
    /// # Errors
    /// As [`Matrix::plan`].
    pub fn launches_of(&self, product: Product) -> Result<Vec<Trial>, OpError> {
        if let Some(members) = &self.members {
            return members.own.launches_of(product);
        }
        let Some((limits, kernels)) = self.choices()? else {
            return Ok(Vec::new());
        };
        let planner = Planner::new(limits, &kernels).summation(self.options.summation);
        Ok(planner.launches(&self.shape, product)?)
    }

    /// Where X lies: all of it on its device, or in part.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::matrix::Features;
    /// use warpfuse::ops::Matrix;
    /// let x = Matrix::new(&Device::cpu(), Features::Dense(ndarray::array![[1.0, 2.0]]))?;
    /// assert!(!x.residency().streams);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    pub fn residency(&self) -> Residency {
        if let Some(members) = &self.members {
            return members.own.residency();
        }
        self.forms.rows.residency()
    }

    // The device's limits and the kernels that it runs; `None` on the CPU.
    pub(super) fn choices(&self) -> Result<Option<Choices<'_>>, OpError> {
        Ok(match self.device() {
            Device::Cpu(_) => None,
            Device::Cuda(device) => {
                device.check_kernels()?;
                Some((device.limits(), candidates_on::<T>(device)))
            }
            Device::Emulator(device) => {
                let limits = device.limits();
                Some((limits, candidates_for::<T>(limits.compute_capability)))
            }
        })
    }
}

/// The problem of the rows of all members of a group, from that of one member's.
fn of_all(own: Problem, whole: &Whole) -> Problem {
    let problem = match own.nnz {
        Some(_) => Problem::sparse(whole.rows, own.cols, whole.entries, own.dtype),
        None => Problem::dense(whole.rows, own.cols, own.dtype),
    };
    match own.longest_row {
        Some(_) => problem.with_longest_row(whole.longest),
        None => problem,
    }
}

/// What a planner chooses for and from.
pub(super) type Choices<'a> = (&'a DeviceLimits, Arc<[Candidate]>);

impl<T: Number> std::fmt::Debug for Matrix<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Matrix({} on {})", self.shape, self.site.device)
    }
}

/// Columns up to which entries are not counted by columns: lanes have sums of their own.
const FEW_COLUMNS: u64 = 32;

fn problem<T: Number>(features: &Features<T>, device: &Device, values: Values) -> Problem {
    match (features.csr_arrays(), device.limits()) {
        (Some(x), None) => with_offsets!(x.offsets, o => sparse_problem(&x, o)),
        (Some(_), Some(limits)) => problem_on_gpu(limits, features, values),
        (None, _) => {
            let (rows, cols) = (features.rows() as u64, features.cols() as u64);
            Problem::dense(rows, cols, T::PRECISION)
        }
    }
}

/// The problem that products with these features are on a GPU of these limits: their shape, the lengths of their rows, how
/// entries are spread over columns (from a sample), of which as many count as frequent as its shared memory has places for, and how a
/// further form may store values. The device need not be there.
///
/// ```
/// use ndarray::array;
/// use warpfuse::matrix::{Features, Values};
/// use warpfuse::ops::problem_on_gpu;
/// use warpfuse::plan::limits::DeviceLimits;
///
/// let h200 = DeviceLimits::known("h200").expect("a known GPU");
/// let x = Features::Dense(array![[1.0, 2.0, 3.0]]);
/// let problem = problem_on_gpu(&h200, &x, Values::Exact);
/// assert_eq!((problem.rows, problem.cols), (1, 3));
/// ```
pub fn problem_on_gpu<T: Number>(
    limits: &DeviceLimits,
    features: &Features<T>,
    values: Values,
) -> Problem {
    let (rows, cols) = (features.rows() as u64, features.cols() as u64);
    let Some(x) = features.csr_arrays() else {
        return Problem::dense(rows, cols, T::PRECISION).as_stored();
    };
    let problem = with_offsets!(x.offsets, offsets => {
        sparse_problem(&x, offsets).with_row_steps(RowSteps::of_offsets(offsets))
    });
    if cols <= FEW_COLUMNS {
        return problem;
    }
    problem
        .with_columns(column_use(limits, &x))
        .with_values(stored_values(expected(values, &x)))
}

fn sparse_problem<T: Number, O: Copy + Into<u64> + Sync>(
    x: &CsrArrays<'_, T>,
    offsets: &[O],
) -> Problem {
    let longest_of = |number: usize| {
        let from = number * ROWS_PER_TASK;
        let offsets = &offsets[from..offsets.len().min(from + ROWS_PER_TASK + 1)];
        let lengths = offsets
            .windows(2)
            .map(|ends| ends[1].into() - ends[0].into());
        lengths.max()
    };
    let tasks = offsets.len().saturating_sub(1).div_ceil(ROWS_PER_TASK);
    let longest = parallel::map(tasks, longest_of).into_iter().flatten().max();
    let (rows, cols, nnz) = (x.shape.0 as u64, x.shape.1 as u64, x.values.len() as u64);
    Problem::sparse(rows, cols, nnz, T::PRECISION).with_longest_row(longest.unwrap_or(0))
}

/// How entries are spread over columns, from a sample.
fn column_use<T: Number>(limits: &DeviceLimits, x: &CsrArrays<'_, T>) -> ColumnUse {
    let (nnz, cols) = (x.values.len() as u64, x.shape.1 as u64);
    let places = hot_places(limits.shared_per_block, T::SIZE, cols);
    let places = u64::from(places).min(cols);
    let skew = Skew::of(x.indices, x.shape.1, places as usize);
    let entries = |share: f64| (share * nnz as f64) as u64;
    let hot_entries = entries(skew.frequent);
    let cold_columns = (cols - places).min(nnz - hot_entries);
    ColumnUse {
        busiest: entries(skew.busiest),
        hot_columns: places as u32,
        hot_entries,
        cold_columns: u32::try_from(cold_columns).unwrap_or(u32::MAX),
        lines: skew.lines.map(entries),
    }
}
