//! One-dimensional convolution on a device.
//!
//! `out[o][i] = Σ_c Σ_k filters[o][c][k] · x[c][i·stride + k·dilation − before]`, c over the input channels of the
//! group of output channel o; x is zero outside its length. Taps are not turned round. x is channels × len,
//! filters are output channels × channels of a group × taps, out is output channels × outputs, all packed
//! row-major.
//!
//! ```
//! use warpfuse::device::Device;
//! use warpfuse::ops::conv1d::{Conv1dShape, Padding, conv1d};
//!
//! let device = Device::auto();
//! let x = device.upload(&[1.0_f32, 2.0, 4.0, 8.0])?;
//! let filter = device.upload(&[-1.0, 1.0])?;
//! let shape = Conv1dShape { padding: Padding::Causal, ..Conv1dShape::single(4, 2) };
//! let mut out = device.zeros(shape.out_len())?;
//! conv1d(&shape, &x, &filter, &mut out)?;
//! assert_eq!(out.to_vec()?, [1.0, 1.0, 2.0, 4.0]);
//! # Ok::<(), warpfuse::ops::OpError>(())
//! ```
//!
//! The bits of a result are the same on every device and with every strategy: an output is one chain of fused
//! multiply-adds. Zeros around the input are multiplied too: an infinite tap makes NaN of them.

use gpu_kernels::conv1d::{Conv1dArgs, Conv1dVariant};
use gpu_kernels::{Entry, Family, Launch};
use ndarray::{Array2, ArrayView2, ArrayView3};

use super::{Number, OpError, checks};
use crate::cpu::conv1d as cpu;
use crate::device::{Buffer, Device, Prepared};
use crate::plan::conv1d::{BLOCK, plan, plan_with};
pub use crate::plan::conv1d::{Conv1dPlan, Conv1dShape, Conv1dStrategy, Padding};
use crate::plan::limits::DeviceLimits;

/// An element type with kernels for convolutions: `f32` or `f64`.
pub trait Conv1dNumber: Number + cpu::Fused {
    /// Its entries.
    type Conv1d: Family<Variant = Conv1dVariant> + for<'a> Family<Args<'a> = Conv1dArgs<'a, Self>>;
}

impl Conv1dNumber for f32 {
    type Conv1d = gpu_kernels::conv1d::Conv1d<f32>;
}

impl Conv1dNumber for f64 {
    type Conv1d = gpu_kernels::conv1d::Conv1d<f64>;
}

/// Convolves x with the filters, as the planner thinks best. Waits for nothing.
///
/// # Errors
/// [`OpError::Conv1d`] when the shape is impossible, [`OpError::Length`] when a buffer does not fit it,
/// [`OpError::OtherDevice`] when buffers lie on different devices, [`OpError::Device`] when the device fails.
pub fn conv1d<T: Conv1dNumber>(
    shape: &Conv1dShape,
    x: &Buffer<T>,
    filters: &Buffer<T>,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    check(shape, x, filters, out)?;
    let device = out.device();
    let Some(limits) = device.limits() else {
        on_cpu(shape, x, filters, out);
        return Ok(());
    };
    let tuned = device.tuned();
    let tuned = tuned.and_then(|table| table.conv1d(T::PRECISION, shape, limits));
    let plan = tuned.unwrap_or_else(|| plan(shape, T::SIZE, limits));
    launch(&plan, shape, x, filters, out)
}

/// [`conv1d`] by a launch of the caller's choice, one of [`points`](crate::plan::conv1d::points) for this shape.
///
/// # Errors
/// As [`conv1d_with`].
pub fn conv1d_by<T: Conv1dNumber>(
    plan: &Conv1dPlan,
    shape: &Conv1dShape,
    x: &Buffer<T>,
    filters: &Buffer<T>,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    check(shape, x, filters, out)?;
    limits_for(plan.strategy, shape, out)?;
    launch(plan, shape, x, filters, out)
}

/// [`conv1d`] by one strategy, on a GPU or an emulator.
///
/// # Errors
/// As [`conv1d`]; [`OpError::Strategy`] when the strategy does not suit the shape or the device.
pub fn conv1d_with<T: Conv1dNumber>(
    strategy: Conv1dStrategy,
    shape: &Conv1dShape,
    x: &Buffer<T>,
    filters: &Buffer<T>,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    check(shape, x, filters, out)?;
    let plan = plan_with(strategy, shape, T::SIZE, &limits_for(strategy, shape, out)?);
    launch(&plan, shape, x, filters, out)
}

/// Those of a device on which the strategy suits the shape.
fn limits_for<T: Conv1dNumber>(
    strategy: Conv1dStrategy,
    shape: &Conv1dShape,
    out: &Buffer<T>,
) -> Result<DeviceLimits, OpError> {
    let device = out.device();
    let suits = |limits: &&DeviceLimits| {
        let most = u64::from(limits.shared_per_block);
        strategy.suits(shape, T::SIZE, most)
    };
    let limits = device.limits().filter(suits).cloned();
    limits.ok_or_else(|| OpError::Strategy {
        strategy: format!("{strategy:?}"),
        device: device.to_string(),
    })
}

/// Convolves channels × len with output channels × channels of a group × taps; stride, dilation, groups and
/// padding are those of `like`.
///
/// # Errors
/// As [`conv1d`].
pub fn conv1d_views<T: Conv1dNumber>(
    device: &Device,
    like: &Conv1dShape,
    x: ArrayView2<'_, T>,
    filters: ArrayView3<'_, T>,
) -> Result<Array2<T>, OpError> {
    let (in_channels, len) = x.dim();
    let (out_channels, in_per_group, taps) = filters.dim();
    let shape = Conv1dShape {
        len,
        taps,
        in_channels,
        out_channels,
        ..*like
    };
    shape.check()?;
    checks::length(
        "the second axis of the filters",
        shape.in_per_group(),
        in_per_group,
    )?;
    let x = super::reduce::upload_view(device, x)?;
    let filters = super::reduce::upload_view(device, filters)?;
    let mut out = device.zeros(out_channels * shape.out_len())?;
    conv1d(&shape, &x, &filters, &mut out)?;
    let result = Array2::from_shape_vec((out_channels, shape.out_len()), out.to_vec()?);
    Ok(result.expect("as many elements as outputs"))
}

fn check<T: Conv1dNumber>(
    shape: &Conv1dShape,
    x: &Buffer<T>,
    filters: &Buffer<T>,
    out: &Buffer<T>,
) -> Result<(), OpError> {
    shape.check()?;
    let device = out.device();
    for (what, buffer, expected) in [
        ("x", x, shape.in_channels * shape.len),
        ("the filters", filters, shape.filter_elements()),
        ("the result", out, shape.out_channels * shape.out_len()),
    ] {
        checks::same_length(what, buffer, expected)?;
        checks::same_device(what, &device, &buffer.device())?;
    }
    Ok(())
}

fn entry<T: Conv1dNumber>(strategy: Conv1dStrategy) -> &'static Entry<T::Conv1d> {
    let wanted = strategy.variant();
    let found = T::Conv1d::entries()
        .iter()
        .find(|entry| entry.variant == wanted);
    found.expect("the table has every strategy")
}

fn launch<T: Conv1dNumber>(
    plan: &Conv1dPlan,
    shape: &Conv1dShape,
    x: &Buffer<T>,
    filters: &Buffer<T>,
    out: &mut Buffer<T>,
) -> Result<(), OpError> {
    if out.is_empty() {
        return Ok(());
    }
    let launch = Launch {
        grid: plan.grid,
        block: BLOCK,
        shared_bytes: plan.shared_bytes,
    };
    let entry = entry::<T>(plan.strategy);
    let prepared: Prepared<T::Conv1d> = out.device().prepare(entry, launch)?;
    let args = Conv1dArgs {
        x: x.input(),
        filters: filters.input(),
        out: out.output(),
        len: shape.len as u64,
        out_len: shape.out_len() as u64,
        out_channels: shape.out_channels as u64,
        in_per_group: shape.in_per_group() as u64,
        out_per_group: shape.out_per_group() as u64,
        before: shape.before() as u64,
        // The shape was checked: these stay below 2³⁰.
        taps: shape.taps as u32,
        stride: shape.stride as u32,
        dilation: shape.dilation as u32,
    };
    Ok(prepared.launch(args)?)
}

fn on_cpu<T: Conv1dNumber>(
    shape: &Conv1dShape,
    x: &Buffer<T>,
    filters: &Buffer<T>,
    out: &mut Buffer<T>,
) {
    let body = cpu::Conv1d {
        len: shape.len,
        out_len: shape.out_len(),
        in_per_group: shape.in_per_group(),
        out_per_group: shape.out_per_group(),
        taps: shape.taps,
        stride: shape.stride,
        dilation: shape.dilation,
        before: shape.before(),
    };
    let slices = x.as_host_slice().zip(filters.as_host_slice());
    if let Some(((x, filters), out)) = slices.zip(out.as_host_slice_mut()) {
        cpu::convolve(&body, x, filters, out);
    }
}
