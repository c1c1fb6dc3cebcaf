//! The probes: every operation is done, at the places that the generator names.

use anyhow::{Context, Result, ensure};
use gpu_kernels::stream::probe::{
    AT_ONCE, ProbeArgs, ProbeVariant, Probes, first_state, next_state,
};
use gpu_kernels::{Entry, Family, Launch};
use warpfuse::device::Device;
use warpfuse::ops::Number;
use warpfuse_tests::Subset;
use warpfuse_tests::launcher::{Guarded, launch};

use super::{input, launches, number, numbers, output};

const STEPS: u32 = 3;

/// Sums are of small integers: exact, whatever their order.
pub fn check<T: Number>(
    device: &Device,
    entry: &'static Entry<Probes<T>>,
    subset: Subset,
) -> Result<()>
where
    Probes<T>: Family<Variant = ProbeVariant> + for<'a> Family<Args<'a> = ProbeArgs<'a, T>>,
{
    for len in [1, 31, 32, 1_000] {
        let shared = entry.variant.shared_bytes(len, T::SIZE);
        for shape in launches(device, entry, subset, |_| shared)? {
            check_launch::<T>(device, entry, shape, len)?;
        }
    }
    Ok(())
}

fn check_launch<T: Number>(
    device: &Device,
    entry: &'static Entry<Probes<T>>,
    shape: Launch,
    len: u32,
) -> Result<()>
where
    Probes<T>: Family<Variant = ProbeVariant> + for<'a> Family<Args<'a> = ProbeArgs<'a, T>>,
{
    let threads = (shape.grid * shape.block) as usize;
    let values: Vec<T> = numbers((0..len).map(|i| f64::from(i % 5)));
    let source = input(device, &values)?;
    let mut target = output(device, &vec![T::ZERO; len as usize])?;
    let mut sums = output(device, &vec![number::<T>(f64::NAN); threads])?;
    let args = ProbeArgs {
        len,
        steps: STEPS,
        source: source.input(),
        target: target.output(),
        sums: sums.output(),
    };
    launch(device, entry, shape, args)?;
    let (wanted_target, wanted_sums) = expected(entry.variant, &shape, len);
    let what = format!("{} over {len}, {shape:?}", entry.name);
    same(&target, &wanted_target).with_context(|| what.clone())?;
    same(&sums, &wanted_sums).context(what)
}

/// Target and sums after the launch.
fn expected(variant: ProbeVariant, shape: &Launch, len: u32) -> (Vec<f64>, Vec<f64>) {
    let (block, len) = (shape.block as usize, len as usize);
    let threads = shape.grid as usize * block;
    let (mut target, mut sums) = (vec![0.0; len], vec![0.0; threads]);
    for first in (0..threads).step_by(block) {
        let mut counts = vec![0.0; len];
        for (thread, sum) in sums.iter_mut().enumerate().skip(first).take(block) {
            for i in indices(thread as u32, len) {
                counts[i] += 1.0;
                *sum += (i % 5) as f64;
            }
        }
        (0..len).for_each(|i| target[i] += counts[i]);
        if matches!(variant, ProbeVariant::SharedAdd | ProbeVariant::SharedCount) {
            for (thread, sum) in sums[first..first + block].iter_mut().enumerate() {
                *sum = counts.iter().skip(thread).step_by(block).sum();
            }
        }
    }
    if variant == ProbeVariant::Scatter {
        sums.fill(0.0);
    } else {
        target.fill(0.0);
    }
    (target, sums)
}

/// The places of one thread, in turn.
fn indices(thread: u32, len: usize) -> impl Iterator<Item = usize> {
    let states = std::iter::successors(Some(first_state(thread)), |&state| Some(next_state(state)));
    let places = states
        .skip(1)
        .map(move |state| ((u64::from(state) * len as u64) >> 32) as usize);
    places.take(AT_ONCE * STEPS as usize)
}

fn same<T: Number>(found: &Guarded<T>, wanted: &[f64]) -> Result<()> {
    let found = found.values()?;
    let wanted: Vec<T> = numbers(wanted.iter().copied());
    ensure!(found == wanted, "{found:?} is not {wanted:?}");
    Ok(())
}
