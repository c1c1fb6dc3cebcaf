//! The compiled kernels as the planner sees them.

use std::sync::{Arc, Mutex};

use gpu_kernels::Family;
use gpu_kernels::objective::LossClass;

use super::Number;
use crate::device::{CudaDevice, Device, embedded};
use crate::parallel::locked;
use crate::plan::fused::{Candidate, Precision};
use crate::plan::limits::ComputeCapability;

/// Registers per thread that are assumed where ptxas was not there to count them.
const ASSUMED_REGISTERS: u32 = 64;
/// Registers of an SM on every architecture that we compile for.
const REGISTERS_PER_SM: u32 = 65_536;

/// The kernels of element type `T` that were compiled for `arch` (such as `sm_90`), for
/// [`Planner`](crate::plan::fused::Planner).
///
/// Registers come from ptxas's report that was taken when the kernels were embedded.
pub fn candidates<T: Number>(arch: &str) -> Vec<Candidate> {
    all::<T>(Home::Compiled(arch))
}

/// [`candidates`] for an element type known at run time only.
pub fn candidates_of(precision: Precision, arch: &str) -> Vec<Candidate> {
    match precision {
        Precision::F32 => candidates::<f32>(arch),
        Precision::F64 => candidates::<f64>(arch),
    }
}

/// [`candidates`] as they lie on a GPU. Looked up once for every device of a process.
pub(super) fn candidates_on<T: Number>(device: &CudaDevice) -> Arc<[Candidate]> {
    known(Kernels::On(device.ordinal()), T::PRECISION, || {
        let mut kernels = all::<T>(Home::Gpu(device));
        // A device may know clusters, and the kernels that were compiled for an older one not.
        kernels.retain(|kernel| kernel.cluster == 1 || device.has_clusters());
        kernels
    })
}

/// [`candidates`] as they would lie on a GPU that is not there.
pub(super) fn candidates_for<T: Number>(capability: ComputeCapability) -> Arc<[Candidate]> {
    known(Kernels::For(capability), T::PRECISION, || {
        candidates::<T>(&arch(capability))
    })
}

/// The kernels of objectives of one class of losses, as those of a fused product, on a GPU that is there.
pub(super) fn objectives_on<T: Number>(device: &CudaDevice, class: LossClass) -> Vec<Candidate> {
    objectives::<T>(Home::Gpu(device), class)
}

/// [`objectives_on`] as they would lie on a GPU that is not there.
pub(super) fn objectives_for<T: Number>(
    capability: ComputeCapability,
    class: LossClass,
) -> Vec<Candidate> {
    objectives::<T>(Home::Compiled(&arch(capability)), class)
}

fn arch(capability: ComputeCapability) -> String {
    let ComputeCapability { major, minor } = capability;
    format!("sm_{major}{minor}")
}

/// Who counts the registers of kernels.
#[derive(Clone, Copy)]
enum Home<'a> {
    /// The driver of a GPU, whoever compiled them.
    Gpu(&'a CudaDevice),
    /// ptxas, when they were embedded for an architecture.
    Compiled(&'a str),
}

impl Home<'_> {
    fn registers(self, name: &'static str) -> u32 {
        let counted = match self {
            Home::Gpu(device) => device.registers(name),
            Home::Compiled(arch) => embedded::resources(arch, name).map(|found| found.registers),
        };
        counted.unwrap_or(ASSUMED_REGISTERS)
    }
}

/// Where kernels lie, or would.
#[derive(PartialEq)]
enum Kernels {
    On(u32),
    For(ComputeCapability),
}

type Known = (Kernels, Precision, Arc<[Candidate]>);

/// What was looked up before, or now. A device of the same number has the same kernels as long as the process lives.
fn known(
    kernels: Kernels,
    precision: Precision,
    look_up: impl FnOnce() -> Vec<Candidate>,
) -> Arc<[Candidate]> {
    static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());
    // Entries are pushed whole, so a panic elsewhere leaves the list usable.
    let mut known = locked(&KNOWN);
    let same = |(held, of, _): &&Known| *held == kernels && *of == precision;
    if let Some((_, _, candidates)) = known.iter().find(same) {
        return Arc::clone(candidates);
    }
    let candidates: Arc<[Candidate]> = look_up().into();
    known.push((kernels, precision, Arc::clone(&candidates)));
    candidates
}

/// Registers of an entry as it lies, or would lie, on a device.
pub(super) fn registers_on(device: &Device, name: &'static str) -> u32 {
    match (device, device.limits()) {
        (Device::Cuda(device), _) => Home::Gpu(device).registers(name),
        (_, Some(limits)) => Home::Compiled(&arch(limits.compute_capability)).registers(name),
        (_, None) => ASSUMED_REGISTERS,
    }
}

/// Every entry of the pattern, once for each of its tasks.
fn all<T: Number>(home: Home<'_>) -> Vec<Candidate> {
    let mut kernels = Vec::new();
    kernels.extend(described::<T, T::Sparse>(home, |_| true));
    kernels.extend(described::<T, T::Fixed>(home, |_| true));
    kernels.extend(described::<T, T::Panels>(home, |_| true));
    kernels.extend(described::<T, T::Hot>(home, |_| true));
    kernels.extend(described::<T, T::Balanced>(home, |_| true));
    kernels.extend(described::<T, T::Even>(home, |_| true));
    kernels.extend(described::<T, T::Dense>(home, |_| true));
    kernels
}

fn objectives<T: Number>(home: Home<'_>, class: LossClass) -> Vec<Candidate> {
    let sparse = described::<T, T::SparseObjective>(home, |variant| variant.class == class);
    let dense = described::<T, T::DenseObjective>(home, |variant| variant.class == class);
    sparse.chain(dense).collect()
}

/// The entries of a family that are wanted, as their descriptions have them, in blocks that their registers allow.
fn described<T: Number, F: Family>(
    home: Home<'_>,
    wanted: impl Fn(&F::Variant) -> bool,
) -> impl Iterator<Item = Candidate> {
    let wanted = F::entries()
        .iter()
        .filter(move |entry| wanted(&entry.variant));
    wanted.flat_map(move |entry| {
        let registers = home.registers(entry.name);
        let kernels = Candidate::described(entry.name, T::PRECISION, &entry.description);
        kernels.map(move |kernel| Candidate {
            registers,
            max_block: max_block(registers).min(kernel.max_block),
            ..kernel
        })
    })
}

/// The most threads of a block, in whole groups of four warps, whose registers an SM has.
pub(super) fn max_block(registers: u32) -> u32 {
    let per_warp = (registers.max(1) * 32).next_multiple_of(256);
    ((REGISTERS_PER_SM / per_warp) / 4 * 4 * 32).min(1024)
}

#[cfg(test)]
mod tests {
    use gpu_kernels::Entry;

    use super::*;
    use crate::plan::fused::Strategy;

    #[test]
    fn every_entry_of_the_pattern_is_a_candidate_or_belongs_to_one() {
        fn unplanned<F: Family>() -> Vec<&'static str> {
            let without = |entry: &&Entry<F>| entry.description.tasks().next().is_none();
            let entries = F::entries().iter().filter(without);
            entries.map(|entry| entry.name).collect()
        }
        fn helpers<T: Number>() -> Vec<&'static str> {
            let mut names = unplanned::<T::Sparse>();
            names.extend(unplanned::<T::Fixed>());
            names.extend(unplanned::<T::Panels>());
            names.extend(unplanned::<T::Hot>());
            names.extend(unplanned::<T::Balanced>());
            names.extend(unplanned::<T::Even>());
            names.extend(unplanned::<T::Dense>());
            names
        }
        // Walks with a head, or over all tiles at once, take the places of others.
        let steps = [
            "begin",
            "finish",
            "columns",
            "equilibrate",
            "partition",
            "head",
            "at_once",
        ];
        for name in helpers::<f32>().into_iter().chain(helpers::<f64>()) {
            assert!(steps.iter().any(|step| name.contains(step)), "{name}");
        }
        let kernels = candidates::<f32>("sm_90");
        for strategy in Strategy::ALL.iter().filter(|s| !s.is_two_products()) {
            assert!(
                kernels.iter().any(|k| k.strategy == *strategy),
                "{strategy}"
            );
        }
    }

    #[test]
    fn rows_wider_than_a_block_holds_are_a_clusters_where_there_are_clusters() {
        use crate::plan::fused::{Planner, Problem, Product};
        let strategy = |device: &str, cols: u64, dtype: Precision| {
            let limits = crate::plan::limits::DeviceLimits::known(device).expect("it is known");
            let kernels = candidates_of(dtype, "sm_90");
            let problem = Problem::dense(1_000_000_000 / cols, cols, dtype).as_stored();
            let plan = Planner::new(&limits, &kernels).plan(&problem, Product::Fused);
            plan.expect("a plan").strategy
        };
        for (held, dtype) in [(131_072, Precision::F32), (65_536, Precision::F64)] {
            for cols in [held / 2 + 1, held - 1, held] {
                let found = strategy("h200", cols, dtype);
                assert_eq!(found, Strategy::DenseCluster, "{cols} columns, {dtype}");
                assert_eq!(strategy("a100", cols, dtype), Strategy::DenseTwoProducts);
            }
            assert_eq!(
                strategy("h200", held + 1, dtype),
                Strategy::DenseTwoProducts
            );
            assert_eq!(strategy("h200", held / 4, dtype), Strategy::DenseRing);
        }
    }

    #[test]
    fn a_block_never_needs_more_registers_than_an_sm_has() {
        for registers in 1..=255 {
            let warps = max_block(registers) / 32;
            assert!(warps * (registers * 32).next_multiple_of(256) <= REGISTERS_PER_SM);
            assert!(warps >= 4);
        }
    }
}
