//! Matrix products on a device: `C = α · op(A) · op(B) + β · C`.

use gpu_kernels::matmul::{MatmulArgs, MatmulVariant};
use gpu_kernels::{Entry, Family, Launch};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Ix2, ShapeBuilder, StrideShape};

mod packed;

use super::{Number, OpError, checks, generated};
use crate::cpu;
use crate::device::{Buffer, Device};
use crate::matrix::Element;
use crate::plan::matmul::{Arithmetic, MatmulPlan, Problem, combine, of_variant, plan};

/// What becomes of a stored matrix before it is multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Op {
    /// Nothing.
    #[default]
    AsStored,
    /// It is transposed.
    Transposed,
}

/// The shape of a row-major matrix in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Stored rows.
    pub rows: usize,
    /// Stored columns.
    pub cols: usize,
    /// Elements between the starts of two rows, at least the columns.
    pub ld: usize,
}

impl Layout {
    /// Rows one after the other.
    pub fn dense(rows: usize, cols: usize) -> Layout {
        Layout {
            rows,
            cols,
            ld: cols,
        }
    }

    /// Elements from the first to the last.
    fn span(&self, what: &'static str) -> Result<usize, OpError> {
        if self.ld < self.cols {
            return Err(OpError::Length {
                what,
                expected: self.cols,
                found: self.ld,
            });
        }
        if self.rows == 0 || self.cols == 0 {
            return Ok(0);
        }
        let before = (self.rows - 1).checked_mul(self.ld);
        before
            .and_then(|len| len.checked_add(self.cols))
            .ok_or(OpError::TooLarge {
                what,
                limit: usize::MAX as u64,
                found: u64::MAX,
            })
    }
}

/// A factor of a product: a matrix in a buffer, and whether it is transposed.
#[derive(Debug)]
pub struct Factor<'a, T: Number> {
    /// Where the elements are.
    pub buffer: &'a Buffer<T>,
    /// How they are stored.
    pub layout: Layout,
    /// What becomes of them.
    pub op: Op,
}

impl<'a, T: Number> Factor<'a, T> {
    /// A dense matrix as it is stored.
    pub fn new(buffer: &'a Buffer<T>, rows: usize, cols: usize) -> Factor<'a, T> {
        let (layout, op) = (Layout::dense(rows, cols), Op::AsStored);
        Factor { buffer, layout, op }
    }

    /// Rows and columns of op(the matrix).
    pub fn shape(&self) -> (usize, usize) {
        match self.op {
            Op::AsStored => (self.layout.rows, self.layout.cols),
            Op::Transposed => (self.layout.cols, self.layout.rows),
        }
    }

    fn view(&self) -> ArrayView2<'_, T> {
        let stored = view(self.buffer, self.layout);
        match self.op {
            Op::AsStored => stored,
            Op::Transposed => stored.reversed_axes(),
        }
    }
}

/// How a product is computed on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// As the planner thinks best, with f32 arithmetic.
    #[default]
    Best,
    /// As the planner thinks best with this arithmetic.
    With(Arithmetic),
    /// By one variant of the ladder.
    Variant(MatmulVariant),
}

/// `C = α · op(A) · op(B) + β · C`, all row-major. Where β = 0, C is not read. The same bits on every call.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::matmul::{Choice, Factor, Layout, matmul};
///
/// let device = Device::auto();
/// let a = device.upload(&[1.0, 2.0, 3.0, 4.0])?; // 2 × 2
/// let mut c = device.zeros::<f64>(4)?;
/// let (left, right) = (Factor::new(&a, 2, 2), Factor::new(&a, 2, 2));
/// matmul(1.0, &left, &right, 0.0, (&mut c, Layout::dense(2, 2)), Choice::Best)?;
/// assert_eq!(c.to_vec()?, [7.0, 10.0, 15.0, 22.0]);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
///
/// # Errors
/// [`OpError::Length`] when shapes, leading dimensions or buffers do not fit, [`OpError::NoVariant`] when there is no
/// such variant for the element type, [`OpError::Plan`] for sizes beyond a launch, [`OpError::Device`] when a buffer
/// lies elsewhere or the device fails.
pub fn matmul<T: Number>(
    alpha: T,
    a: &Factor<'_, T>,
    b: &Factor<'_, T>,
    beta: T,
    c: (&mut Buffer<T>, Layout),
    choice: Choice,
) -> Result<(), OpError> {
    matmul_with(&mut Workspace::default(), alpha, a, b, beta, c, choice)
}

/// Memory that products keep from one to the next: the sums of parts, where several blocks share an element of C, and
/// packed operands. It grows to what the largest product needs.
#[derive(Debug)]
pub struct Workspace<T: Number> {
    partials: Kept<T>,
    packed: [Kept<T>; 2],
}

impl<T: Number> Default for Workspace<T> {
    fn default() -> Self {
        Workspace {
            partials: Kept(None),
            packed: [Kept(None), Kept(None)],
        }
    }
}

/// A buffer that grows.
#[derive(Debug)]
struct Kept<T: Number>(Option<Buffer<T>>);

impl<T: Number> Kept<T> {
    /// `len` elements on `device`.
    fn at_least(&mut self, device: &Device, len: usize) -> Result<&mut Buffer<T>, OpError> {
        let fits = |buffer: &Buffer<T>| {
            buffer.len() >= len && buffer.expect_on(device, "multiply matrices").is_ok()
        };
        if !self.0.as_ref().is_some_and(fits) {
            self.0 = None;
            self.0 = Some(device.zeros(len)?);
        }
        Ok(self.0.as_mut().expect("it was just made"))
    }
}

/// [`matmul`] with memory that is kept: products of few rows and columns need not allocate each time.
///
/// # Errors
/// As [`matmul`].
pub fn matmul_with<T: Number>(
    workspace: &mut Workspace<T>,
    alpha: T,
    a: &Factor<'_, T>,
    b: &Factor<'_, T>,
    beta: T,
    (c, layout): (&mut Buffer<T>, Layout),
    choice: Choice,
) -> Result<(), OpError> {
    check(a, b, c, layout)?;
    let device = c.device();
    for buffer in [a.buffer, b.buffer] {
        buffer.expect_on(&device, "multiply matrices")?;
    }
    if device.is_cpu() {
        let c = view_mut(c, layout);
        cpu::matmul::matmul(alpha, a.view(), b.view(), beta, c);
        return Ok(());
    }
    let ((m, k), n) = (a.shape(), layout.cols);
    if m == 0 || n == 0 {
        return Ok(());
    }
    let problem = problem::<T>((m, n, k), choice);
    let plan = choose_for::<T>(&device, &problem, choice)?;
    let Workspace { partials, packed } = workspace;
    let args = MatmulArgs {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        a_transposed: u32::from(a.op == Op::Transposed),
        b_transposed: u32::from(b.op == Op::Transposed),
        parts: plan.parts,
        alpha,
        beta,
        lda: a.layout.ld as u64,
        ldb: b.layout.ld as u64,
        ldc: layout.ld as u64,
        a: a.buffer.input(),
        b: b.buffer.input(),
        c: c.output(),
    };
    let args = match plan.variant {
        MatmulVariant::SplitF16 => packed::pack(&device, &problem, packed, args)?,
        _ => args,
    };
    if plan.parts == 1 {
        return launch(&device, plan, args);
    }
    // Rows of whole packs, so that tiles are written in packs.
    let ld = n.next_multiple_of(PACK);
    let len = (m * plan.parts as usize).checked_mul(ld);
    let partials = partials.at_least(&device, len.unwrap_or(usize::MAX))?;
    let sums = MatmulArgs {
        alpha: <T as Element>::from_f64(1.0),
        beta: T::default(),
        ldc: ld as u64,
        c: partials.output(),
        ..args
    };
    launch(&device, plan, sums)?;
    let total = MatmulArgs {
        a_transposed: 0,
        b_transposed: 0,
        lda: ld as u64,
        a: partials.input(),
        ..args
    };
    launch(&device, combine(&problem)?, total)
}

/// Elements of any type whose bytes are a multiple of 16.
const PACK: usize = 4;

fn launch<T: Number>(
    device: &Device,
    plan: MatmulPlan,
    args: MatmulArgs<'_, T>,
) -> Result<(), OpError> {
    let launch = Launch {
        grid: plan.grid,
        block: plan.bs,
        shared_bytes: plan.shared_bytes,
    };
    let entry = entry::<T>(plan.variant)?;
    Ok(device.prepare(entry, launch)?.launch(args)?)
}

/// `A · B` of two arrays, computed on `device`.
///
/// # Errors
/// As [`matmul`].
///
/// ```
/// use ndarray::array;
/// use warpfuse::device::Device;
/// use warpfuse::ops::matmul::product;
/// let (a, b) = (array![[1.0_f32, 2.0]], array![[3.0], [4.0]]);
/// assert_eq!(product(&Device::auto(), a.view(), b.view())?, array![[11.0]]);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn product<T: Number>(
    device: &Device,
    a: ArrayView2<'_, T>,
    b: ArrayView2<'_, T>,
) -> Result<Array2<T>, OpError> {
    let upload = |x: ArrayView2<'_, T>| {
        let values: Vec<T> = x.iter().copied().collect();
        device.upload(&values)
    };
    let (left, right) = (upload(a)?, upload(b)?);
    let (m, n) = (a.nrows(), b.ncols());
    let mut c = device.zeros(m * n)?;
    let left = Factor::new(&left, m, a.ncols());
    let right = Factor::new(&right, b.nrows(), n);
    let (one, zero) = (<T as Element>::from_f64(1.0), T::default());
    matmul(
        one,
        &left,
        &right,
        zero,
        (&mut c, Layout::dense(m, n)),
        Choice::Best,
    )?;
    let product = Array2::from_shape_vec((m, n), c.to_vec()?);
    Ok(product.expect("as many elements as the shape has"))
}

/// The launch that [`matmul`] makes of an m × k by a k × n matrix on a device that launches.
///
/// # Errors
/// [`OpError::Plan`] for sizes beyond a launch.
pub fn choose<T: Number>(
    device: &Device,
    size: (usize, usize, usize),
    choice: Choice,
) -> Result<MatmulPlan, OpError> {
    choose_for::<T>(device, &problem::<T>(size, choice), choice)
}

fn problem<T: Number>((m, n, k): (usize, usize, usize), choice: Choice) -> Problem {
    Problem {
        m: m as u64,
        n: n as u64,
        k: k as u64,
        precision: T::PRECISION,
        arithmetic: match choice {
            Choice::With(arithmetic) => arithmetic,
            _ => Arithmetic::Fp32,
        },
    }
}

fn choose_for<T: Number>(
    device: &Device,
    problem: &Problem,
    choice: Choice,
) -> Result<MatmulPlan, OpError> {
    let limits = device.limits().expect("a device that launches has limits");
    Ok(match choice {
        Choice::Variant(variant) if !variant.is_product() => {
            return Err(OpError::NoVariant {
                what: "matrix product",
                wanted: format!("{variant:?}, a step of one"),
            });
        }
        Choice::Variant(variant) => of_variant(problem, variant)?,
        _ => match measured::<T>(device, problem) {
            Some(plan) => plan,
            None => plan(problem, limits)?,
        },
    })
}

/// The launch that the device's table of tuned launches has.
fn measured<T: Number>(device: &Device, problem: &Problem) -> Option<MatmulPlan> {
    let compiled = T::Matmul::entries().iter().map(|entry| entry.variant);
    device.tuned()?.matmul(problem, compiled)
}

fn entry<T: Number>(variant: MatmulVariant) -> Result<&'static Entry<T::Matmul>, OpError> {
    let mut entries = T::Matmul::entries().iter();
    let found = entries.find(|entry| entry.variant == variant);
    let found = found.or_else(|| generated::find::<T::Matmul>(variant));
    found.ok_or_else(|| OpError::NoVariant {
        what: "matrix product",
        wanted: format!("{variant:?} for {}", T::DTYPE),
    })
}

fn check<T: Number>(
    a: &Factor<'_, T>,
    b: &Factor<'_, T>,
    c: &Buffer<T>,
    layout: Layout,
) -> Result<(), OpError> {
    let ((m, k), (inner, n)) = (a.shape(), b.shape());
    checks::length("a column of op(B)", k, inner)?;
    checks::length("a column of C", m, layout.rows)?;
    checks::length("a row of C", n, layout.cols)?;
    for (what, span, found) in [
        ("A", a.layout.span("a row of A")?, a.buffer.len()),
        ("B", b.layout.span("a row of B")?, b.buffer.len()),
        ("C", layout.span("a row of C")?, c.len()),
    ] {
        if found < span {
            checks::length(what, span, found)?;
        }
    }
    Ok(())
}

const ON_HOST: &str = "the buffers were found to lie on the CPU";
const IN_BOUNDS: &str = "the layout was found to fit its buffer";

/// A matrix without elements has no strides: ndarray would count them against the empty buffer.
fn shape(layout: Layout) -> StrideShape<Ix2> {
    let is_empty = layout.rows == 0 || layout.cols == 0;
    let strides = if is_empty { (0, 0) } else { (layout.ld, 1) };
    (layout.rows, layout.cols).strides(strides)
}

fn view<T: Number>(buffer: &Buffer<T>, layout: Layout) -> ArrayView2<'_, T> {
    ArrayView2::from_shape(shape(layout), buffer.as_host_slice().expect(ON_HOST)).expect(IN_BOUNDS)
}

fn view_mut<T: Number>(buffer: &mut Buffer<T>, layout: Layout) -> ArrayViewMut2<'_, T> {
    let values = buffer.as_host_slice_mut().expect(ON_HOST);
    ArrayViewMut2::from_shape(shape(layout), values).expect(IN_BOUNDS)
}
