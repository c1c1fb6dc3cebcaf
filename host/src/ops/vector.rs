//! Vectors on a device: fill, linear combination, columns of matrices, dot product.

use gpu_kernels::vector::{VectorArgs, VectorVariant};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::launch::{slice, slice_mut};
use super::{Number, OpError, checks};
use crate::cpu;
use crate::cpu::grid::Grid;
use crate::device::{Buffer, Device};
use crate::matrix::Element;

/// Sets every element to `value`.
///
/// # Errors
/// [`OpError::Device`] when the device fails.
pub fn fill<T: Number>(value: T, out: &mut Buffer<T>) -> Result<(), OpError> {
    if let Some(out) = out.as_host_slice_mut() {
        cpu::vector::fill(value, out);
        return Ok(());
    }
    let device = out.device();
    launch(
        &device,
        VectorVariant::Fill,
        VectorArgs {
            alpha: value,
            ..args(out)
        },
    )
}

/// `out = β·z`.
///
/// # Errors
/// [`OpError::Length`] when the lengths differ, [`OpError::Device`] when the device fails.
pub fn scaled_copy<T: Number>(beta: T, z: &Buffer<T>, out: &mut Buffer<T>) -> Result<(), OpError> {
    checks::same_length("z", z, out.len())?;
    if let Some((out, z)) = out.as_host_slice_mut().zip(z.as_host_slice()) {
        cpu::vector::copy(z, out);
        cpu::vector::scale(beta, out);
        return Ok(());
    }
    let device = out.device();
    launch(
        &device,
        VectorVariant::Combine,
        VectorArgs {
            alpha: beta,
            a: z.input(),
            ..args(out)
        },
    )
}

/// `y = α·x + β·y`.
///
/// # Errors
/// As [`scaled_copy`].
pub fn axpby<T: Number>(
    alpha: T,
    x: &Buffer<T>,
    beta: T,
    y: &mut Buffer<T>,
) -> Result<(), OpError> {
    checks::same_length("x", x, y.len())?;
    if let Some((y, x)) = y.as_host_slice_mut().zip(x.as_host_slice()) {
        cpu::vector::axpby(alpha, x, beta, y);
        return Ok(());
    }
    let device = y.device();
    launch(
        &device,
        VectorVariant::Update,
        VectorArgs {
            alpha,
            beta,
            a: x.input(),
            ..args(y)
        },
    )
}

/// Σ aᵢ·bᵢ, accumulated in f64 in an order that the length alone decides: the same bits on every device. Waits for the
/// result.
///
/// # Errors
/// As [`scaled_copy`].
pub fn dot<T: Number>(a: &Buffer<T>, b: &Buffer<T>) -> Result<f64, OpError> {
    checks::same_length("b", b, a.len())?;
    if let Some((a, b)) = a.as_host_slice().zip(b.as_host_slice()) {
        return Ok(cpu::vector::dot(a, b));
    }
    let device = a.device();
    let grid = Grid::of(a.len());
    let mut partials = device.zeros::<f64>(grid.blocks)?;
    let args = VectorArgs {
        a: a.input(),
        b: b.input(),
        partials: partials.output(),
        ..empty(a.len())
    };
    launch(&device, VectorVariant::Dot, args)?;
    let partials: Vec<[f64; 1]> = partials.to_vec()?.into_iter().map(|sum| [sum]).collect();
    Ok(grid.totals(&partials)[0])
}

/// Dot products that stay on the device: memory for the sums of blocks.
pub struct Dots {
    partials: Buffer<f64>,
    counter: Buffer<u32>,
}

impl Dots {
    /// For vectors of `len` elements at most.
    ///
    /// # Errors
    /// [`OpError::Device`] when the device has too little memory.
    pub fn new(device: &Device, len: usize) -> Result<Dots, OpError> {
        Ok(Dots {
            partials: device.zeros(Grid::of(len).blocks)?,
            counter: device.zeros(1)?,
        })
    }

    /// `figures[slot] = Σ aᵢ·bᵢ`, as [`dot`], without waiting for it.
    ///
    /// ```
    /// use warpfuse::device::Device;
    /// use warpfuse::ops::vector::Dots;
    /// let device = Device::cpu();
    /// let (a, mut figures) = (device.upload(&[1.0_f32, 2.0])?, device.zeros(2)?);
    /// Dots::new(&device, 2)?.dot(&a, &a, &mut figures, 1)?;
    /// assert_eq!(figures.to_vec()?, [0.0, 5.0]);
    /// # Ok::<(), warpfuse::ops::OpError>(())
    /// ```
    ///
    /// # Errors
    /// [`OpError::Length`] when lengths differ, the vectors are longer than [`Dots::new`] was told or there is no such
    /// slot, [`OpError::Device`] when the device fails.
    pub fn dot<T: Number>(
        &mut self,
        a: &Buffer<T>,
        b: &Buffer<T>,
        figures: &mut Buffer<f64>,
        slot: usize,
    ) -> Result<(), OpError> {
        checks::same_length("b", b, a.len())?;
        check_slots(figures, [slot; 3])?;
        if let Some((a, b)) = a.as_host_slice().zip(b.as_host_slice()) {
            host_figures(figures)[slot] = cpu::vector::dot(a, b);
            return Ok(());
        }
        let device = a.device();
        let blocks = Grid::of(a.len()).blocks;
        if blocks > self.partials.len() {
            return Err(OpError::Length {
                what: "the blocks of the vectors",
                expected: self.partials.len(),
                found: blocks,
            });
        }
        let args = VectorArgs {
            a: a.input(),
            b: b.input(),
            partials: self.partials.output(),
            counter: self.counter.output(),
            figures: figures.output(),
            slots: [slot as u32; 3],
            ..empty(a.len())
        };
        launch(&device, VectorVariant::DotTo, args)
    }
}

/// A factor that the device knows: `(α·f[p] + β·f[q]) / f[r]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Factor {
    /// α and β.
    pub of: [f64; 2],
    /// p, q and r.
    pub slots: [usize; 3],
}

/// `y = y + factor·x`, the factor taken from `figures`.
///
/// # Errors
/// [`OpError::Length`] when the lengths differ or a slot is none of the figures', [`OpError::Device`] when the device
/// fails.
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::vector::{Factor, steer};
/// let device = Device::cpu();
/// let mut figures = device.upload(&[6.0, 4.0, 2.0])?;
/// let (x, mut y) = (device.upload(&[1.0_f32])?, device.upload(&[1.0_f32])?);
/// steer(&mut figures, Factor { of: [1.0, -1.0], slots: [0, 1, 2] }, &x, &mut y)?;
/// assert_eq!(y.to_vec()?, [2.0]);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn steer<T: Number>(
    figures: &mut Buffer<f64>,
    factor: Factor,
    x: &Buffer<T>,
    y: &mut Buffer<T>,
) -> Result<(), OpError> {
    checks::same_length("x", x, y.len())?;
    check_slots(figures, factor.slots)?;
    let [alpha, beta] = factor.of.map(<T as Element>::from_f64);
    if let Some((y, x)) = y.as_host_slice_mut().zip(x.as_host_slice()) {
        let [p, q, r] = factor.slots.map(|slot| host_figures(figures)[slot]);
        let above = Element::to_f64(alpha).mul_add(p, Element::to_f64(beta) * q);
        let factor = <T as Element>::from_f64(above / r);
        cpu::vector::axpy(factor, x, y);
        return Ok(());
    }
    let device = y.device();
    let args = VectorArgs {
        alpha,
        beta,
        a: x.input(),
        figures: figures.output(),
        slots: factor.slots.map(|slot| slot as u32),
        ..args(y)
    };
    launch(&device, VectorVariant::Steer, args)
}

/// `out = a ⊙ b`, element by element.
///
/// # Errors
/// As [`scaled_copy`].
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::vector::multiply;
/// let device = Device::cpu();
/// let (a, b) = (device.upload(&[2.0, 3.0])?, device.upload(&[5.0, -1.0])?);
/// let mut out = device.zeros::<f64>(2)?;
/// multiply(&a, &b, &mut out)?;
/// assert_eq!(out.to_vec()?, [10.0, -3.0]);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn multiply<T: Number>(
    a: &Buffer<T>,
    b: &Buffer<T>,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    checks::same_length("a", a, out.len())?;
    checks::same_length("b", b, out.len())?;
    let sides = a.as_host_slice().zip(b.as_host_slice());
    if let Some((out, (a, b))) = out.as_host_slice_mut().zip(sides) {
        let triples = out.iter_mut().zip(a.iter().zip(b));
        triples.for_each(|(out, (a, b))| *out = *a * *b);
        return Ok(());
    }
    let device = out.device();
    let args = VectorArgs {
        a: a.input(),
        b: b.input(),
        ..args(out)
    };
    launch(&device, VectorVariant::Multiply, args)
}

/// One column of a row-major matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Which.
    pub index: usize,
    /// Of how many.
    pub of: usize,
}

/// Copies a column of `matrix` into `out`.
///
/// # Errors
/// [`OpError::Length`] when the matrix has not as many rows as `out` has elements, [`OpError::Device`] when the device
/// fails.
pub fn take_column<T: Number>(
    matrix: &Buffer<T>,
    column: Column,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    checks::same_length("the matrix", matrix, out.len() * column.of)?;
    if let Some((matrix, out)) = matrix.as_host_slice().zip(out.as_host_slice_mut()) {
        let places = matrix.iter().skip(column.index).step_by(column.of);
        out.iter_mut().zip(places).for_each(|(out, a)| *out = *a);
        return Ok(());
    }
    let device = out.device();
    let first = column.index.min(matrix.len());
    let args = VectorArgs {
        alpha: <T as Element>::from_f64(1.0),
        a: slice(matrix, &(first..matrix.len())),
        strides: [column.of as u32, 1],
        ..args(out)
    };
    launch(&device, VectorVariant::Strided, args)
}

/// Makes α·`values` a column of `matrix`.
///
/// # Errors
/// As [`take_column`].
///
/// ```
/// use warpfuse::device::Device;
/// use warpfuse::ops::vector::{Column, put_column};
/// let device = Device::cpu();
/// let (column, mut matrix) = (device.upload(&[1.0_f32, 2.0])?, device.zeros::<f32>(4)?);
/// put_column(3.0, &column, &mut matrix, Column { index: 1, of: 2 })?;
/// assert_eq!(matrix.to_vec()?, [0.0, 3.0, 0.0, 6.0]);
/// # Ok::<(), warpfuse::ops::OpError>(())
/// ```
pub fn put_column<T: Number>(
    alpha: T,
    values: &Buffer<T>,
    matrix: &mut Buffer<T>,
    column: Column,
) -> Result<(), OpError> {
    checks::same_length("the matrix", matrix, values.len() * column.of)?;
    if let Some((values, matrix)) = values.as_host_slice().zip(matrix.as_host_slice_mut()) {
        let places = matrix.iter_mut().skip(column.index).step_by(column.of);
        places.zip(values).for_each(|(out, a)| *out = alpha * *a);
        return Ok(());
    }
    let device = values.device();
    let first = column.index.min(matrix.len());
    let all = first..matrix.len();
    let args = VectorArgs {
        alpha,
        a: values.input(),
        out: slice_mut(matrix, &all),
        strides: [1, column.of as u32],
        ..empty(values.len())
    };
    launch(&device, VectorVariant::Strided, args)
}

/// Adds the first `len` partial sums into the one element of `out`.
pub(super) fn total<T: Number>(
    partials: &mut Buffer<f64>,
    len: u32,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    if let Some((partials, out)) = partials.as_host_slice().zip(out.as_host_slice_mut()) {
        let partials: &[[f64; 1]] = bytemuck::cast_slice(&partials[..len as usize]);
        let [sum] = Grid::of(partials.len()).totals(partials);
        out[0] = Element::from_f64(sum);
        return Ok(());
    }
    let device = out.device();
    let args = VectorArgs {
        len: len as u64,
        partials: partials.output(),
        ..args(out)
    };
    launch(&device, VectorVariant::Total, args)
}

fn args<T: Number>(out: &mut Buffer<T>) -> VectorArgs<'_, T> {
    VectorArgs {
        len: out.len() as u64,
        out: out.output(),
        ..empty(0)
    }
}

/// Arguments without vectors.
fn empty<'a, T: Number>(len: usize) -> VectorArgs<'a, T> {
    VectorArgs {
        len: len as u64,
        alpha: T::ZERO,
        beta: T::ZERO,
        a: In::none(),
        b: In::none(),
        out: Out::none(),
        partials: Out::none(),
        strides: [1; 2],
        figures: Out::none(),
        slots: [0; 3],
        counter: Out::none(),
    }
}

fn check_slots(figures: &Buffer<f64>, slots: [usize; 3]) -> Result<(), OpError> {
    let most = slots.into_iter().max().unwrap_or(0);
    if most < figures.len() {
        return Ok(());
    }
    Err(OpError::Length {
        what: "the figures",
        expected: most + 1,
        found: figures.len(),
    })
}

fn host_figures(figures: &mut Buffer<f64>) -> &mut [f64] {
    let slice = figures.as_host_slice_mut();
    slice.expect("figures of vectors on the CPU are host memory")
}

fn launch<T: Number>(
    device: &Device,
    variant: VectorVariant,
    args: VectorArgs<'_, T>,
) -> Result<(), OpError> {
    let all = Grid::of(args.len as usize);
    let grid = match variant {
        VectorVariant::Total => Grid { blocks: 1, ..all },
        _ => all,
    };
    let shape = launch_of(grid, |block| variant.shared_bytes(block));
    Ok(device.prepare(entry::<T>(variant), shape)?.launch(args)?)
}

/// The launch of a grid, `shared_bytes` of a block of this many threads.
pub(super) fn launch_of(grid: Grid, shared_bytes: impl FnOnce(u32) -> u64) -> Launch {
    // Grids of sums have some hundred blocks of no more than 1024 threads.
    let block = grid.threads as u32;
    Launch {
        grid: grid.blocks as u32,
        block,
        shared_bytes: shared_bytes(block) as u32,
    }
}

fn entry<T: Number>(variant: VectorVariant) -> &'static Entry<T::Vectors> {
    let found = T::Vectors::entries()
        .iter()
        .find(|entry| entry.variant == variant);
    found.expect("the table has every vector kernel")
}
