//! Vectors on a device: fill, linear combination, dot product.

use gpu_kernels::vector::{VectorArgs, VectorVariant};
use gpu_kernels::{Entry, Family, In, Launch, Out};

use super::{Number, OpError};
use crate::cpu;
use crate::device::{Buffer, Device};
use crate::plan::vector::{self as plan, VectorPlan};

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
    same_length("z", z, out.len())?;
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
    same_length("x", x, y.len())?;
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

/// Σ aᵢ·bᵢ, accumulated in f64 in an order that the length alone decides. Waits for the result.
///
/// # Errors
/// As [`scaled_copy`].
pub fn dot<T: Number>(a: &Buffer<T>, b: &Buffer<T>) -> Result<f64, OpError> {
    same_length("b", b, a.len())?;
    if let Some((a, b)) = a.as_host_slice().zip(b.as_host_slice()) {
        return Ok(cpu::vector::dot(a, b));
    }
    let device = a.device();
    let VectorPlan { grid, .. } = dot_plan(&device, a.len());
    let mut partials = device.zeros::<f64>(grid as usize)?;
    let args = VectorArgs {
        len: a.len() as u64,
        alpha: T::ZERO,
        beta: T::ZERO,
        a: a.input(),
        b: b.input(),
        out: Out::none(),
        partials: partials.output(),
    };
    launch(&device, VectorVariant::Dot, args)?;
    Ok(partials.to_vec()?.iter().sum())
}

/// Adds the first `len` partial sums into the one element of `out`.
pub(super) fn total<T: Number>(
    partials: &mut Buffer<f64>,
    len: u32,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    if let Some((partials, out)) = partials.as_host_slice().zip(out.as_host_slice_mut()) {
        out[0] = crate::matrix::Element::from_f64(partials[..len as usize].iter().sum());
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
        alpha: T::ZERO,
        beta: T::ZERO,
        a: In::none(),
        b: In::none(),
        out: out.output(),
        partials: Out::none(),
    }
}

fn launch<T: Number>(
    device: &Device,
    variant: VectorVariant,
    args: VectorArgs<'_, T>,
) -> Result<(), OpError> {
    let plan = dot_plan(device, args.len as usize);
    let grid = if variant == VectorVariant::Total {
        1
    } else {
        plan.grid
    };
    let shared_bytes = variant.shared_bytes(plan.bs) as u32;
    let shape = Launch {
        grid,
        block: plan.bs,
        shared_bytes,
    };
    Ok(device.prepare(entry::<T>(variant), shape)?.launch(args)?)
}

/// The launch over `n` elements; one block's worth where there is no GPU.
pub(super) fn dot_plan(device: &Device, n: usize) -> VectorPlan {
    match device.limits() {
        Some(limits) => plan::dot(n as u64, limits),
        None => VectorPlan {
            grid: 1,
            bs: 1,
            per_thread: n as u64,
        },
    }
}

fn entry<T: Number>(variant: VectorVariant) -> &'static Entry<T::Vectors> {
    let found = T::Vectors::entries()
        .iter()
        .find(|entry| entry.variant == variant);
    found.expect("the table has every vector kernel")
}

pub(crate) fn same_length<T: Number>(
    what: &'static str,
    vector: &Buffer<T>,
    expected: usize,
) -> Result<(), OpError> {
    let found = vector.len();
    if found == expected {
        Ok(())
    } else {
        Err(OpError::Length {
            what,
            expected,
            found,
        })
    }
}
