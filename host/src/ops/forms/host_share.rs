//! Where passes over X are computed fastest, and the share of the rows of an X that streams which is the CPU's.

use super::hot::stored_values;
use crate::device::Device;
use crate::layout::hot::expected;
use crate::matrix::{Features, Values};
use crate::ops::blocks::Place;
use crate::ops::catalog::{candidates_for, candidates_on};
use crate::ops::{HostShare, MatrixOptions, Number};
use crate::plan::alternatives::{Fit, Passes};
use crate::plan::fused::{Planner, Problem, StoredValues, Summation};
use crate::plan::streaming::Residence;

/// The place of X, with the share of the rows that the CPU is to compute; `reads` passes over X are announced.
pub(super) fn shared_with_host<T: Number>(
    device: &Device,
    (x, problem): (&Features<T>, &Problem),
    place: Place,
    (reads, options): (Option<u64>, MatrixOptions),
) -> Place {
    let is_packed = matches!(place.residence, Residence::PackedBlocks(_));
    if !is_packed || options.summation == Summation::Reproducible {
        return place;
    }
    let share = match (options.host_share, device, reads) {
        (HostShare::Fixed(share), ..) => share.clamp(0.0, 1.0),
        (HostShare::Planned, Device::Cuda(_), Some(reads)) => {
            let room = place.room(device, 0);
            let fit = fit(device, (x, problem), (reads, room), options);
            fit.map_or(0.0, |fit| fit.host_share())
        }
        (HostShare::Planned, ..) => 0.0,
    };
    if share > 0.0 {
        tracing::info!(share, "the CPU computes a share of the rows");
    }
    place.with_host_share(share)
}

/// What `reads` passes would take in each place, where X may take `room` bytes of a GPU whose driver has been started;
/// `None` on the CPU, and where no launch can be planned, which is an error of its own later.
pub(in crate::ops) fn fit<T: Number>(
    device: &Device,
    (x, problem): (&Features<T>, &Problem),
    (reads, room): (u64, u64),
    options: MatrixOptions,
) -> Option<Fit> {
    let (limits, kernels) = match device {
        Device::Cpu(_) => return None,
        Device::Cuda(device) => (device.limits(), candidates_on::<T>(device)),
        Device::Emulator(device) => {
            let limits = device.limits();
            (limits, candidates_for::<T>(limits.compute_capability))
        }
    };
    let planner = Planner::new(limits, &kernels).summation(options.summation);
    let passes = Passes {
        reads,
        room,
        values: values_of(x, options.values),
        is_open: true,
        host: limits.rates.host(rayon::current_num_threads()),
    };
    Fit::of(&planner, problem, passes).ok()
}

/// How values cross the link.
fn values_of<T: Number>(x: &Features<T>, rounding: Values) -> StoredValues {
    match x.csr_arrays() {
        Some(x) => stored_values(expected(rounding, &x)),
        None if rounding == Values::Bf16 => StoredValues::Bf16,
        None => StoredValues::Whole,
    }
}
