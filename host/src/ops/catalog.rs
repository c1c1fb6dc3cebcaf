//! The compiled kernels as the planner sees them.

use std::sync::{Arc, Mutex, PoisonError};

use gpu_kernels::fused::balanced::PER_THREAD;
use gpu_kernels::fused::hot::HELD;
use gpu_kernels::fused::{
    BalancedVariant, DenseVariant, FixedVariant, HotValues, HotVariant, Place,
    Product as KernelProduct, RowStore, SparseVariant, SumPlace, TeamSize,
};
use gpu_kernels::objective::{Columns, LossClass};
use gpu_kernels::{Entry, Family};

use super::Number;
use crate::device::{CudaDevice, Device, embedded};
use crate::plan;
use crate::plan::fused::{Candidate, Precision, SharedUse, Storage, StoredValues, Strategy, Team};
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
    all::<T>(|name| embedded::resources(arch, name).map(|resource| resource.registers))
}

/// [`candidates`] as they lie on a GPU: registers as its driver counts them, whoever compiled the kernels. Looked up
/// once for every device of a process.
pub(super) fn candidates_on<T: Number>(device: &CudaDevice) -> Arc<[Candidate]> {
    known(Kernels::On(device.ordinal()), T::PRECISION, || {
        let mut kernels = all::<T>(|name| {
            let attributes = device.attributes(name).ok();
            attributes.map(|attributes| attributes.registers)
        });
        // A device may know clusters, and the kernels that were compiled for an older one not.
        kernels.retain(|kernel| kernel.cluster == 1 || device.has_clusters());
        kernels
    })
}

/// [`candidates`] as they would lie on a GPU that is not there.
pub(super) fn candidates_for<T: Number>(capability: ComputeCapability) -> Arc<[Candidate]> {
    let ComputeCapability { major, minor } = capability;
    known(Kernels::For(capability), T::PRECISION, || {
        candidates::<T>(&format!("sm_{major}{minor}"))
    })
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
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
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
    let counted = match device {
        Device::Cuda(device) => {
            let attributes = device.attributes(name).ok();
            attributes.map(|attributes| attributes.registers)
        }
        _ => device.limits().and_then(|limits| {
            let ComputeCapability { major, minor } = limits.compute_capability;
            let resources = embedded::resources(&format!("sm_{major}{minor}"), name);
            resources.map(|resources| resources.registers)
        }),
    };
    counted.unwrap_or(ASSUMED_REGISTERS)
}

fn all<T: Number>(registers: impl Fn(&'static str) -> Option<u32>) -> Vec<Candidate> {
    let sparse = T::Sparse::entries()
        .iter()
        .map(|entry| sparse::<T>(entry.name, entry.variant));
    let fixed = T::Fixed::entries().iter().filter_map(fixed::<T>);
    let dense = T::Dense::entries()
        .iter()
        .map(|entry| dense::<T>(entry.name, entry.variant));
    let panels = T::Panels::entries().iter().flat_map(panels::<T>);
    let hot = T::Hot::entries().iter().flat_map(hot::<T>);
    let balanced = T::Balanced::entries().iter().flat_map(balanced::<T>);
    let prepared = panels.chain(hot).chain(balanced);
    counted(sparse.chain(fixed).chain(prepared).chain(dense), registers)
}

/// The kernels with their registers, and the blocks that those allow.
fn counted(
    kernels: impl Iterator<Item = (&'static str, Candidate)>,
    registers: impl Fn(&'static str) -> Option<u32>,
) -> Vec<Candidate> {
    let with_registers = |(name, kernel): (&'static str, Candidate)| {
        let count = registers(name).unwrap_or(ASSUMED_REGISTERS);
        Candidate {
            max_block: max_block(count).min(kernel.max_block),
            ..kernel.with_registers(count)
        }
    };
    kernels.map(with_registers).collect()
}

/// Registers per thread of one kernel on a device.
pub(super) fn registers_of(device: &Device, name: &'static str) -> u32 {
    let known = match device {
        Device::Cuda(device) => device.attributes(name).ok().map(|known| known.registers),
        other => other.limits().and_then(|limits| {
            let ComputeCapability { major, minor } = limits.compute_capability;
            let resources = embedded::resources(&format!("sm_{major}{minor}"), name);
            resources.map(|resource| resource.registers)
        }),
    };
    known.unwrap_or(ASSUMED_REGISTERS)
}

/// The kernels of objectives of one class of losses, as those of a fused product, on a GPU that is there.
pub(super) fn objectives_on<T: Number>(device: &CudaDevice, class: LossClass) -> Vec<Candidate> {
    counted(objectives::<T>(class), |name| {
        let attributes = device.attributes(name).ok();
        attributes.map(|attributes| attributes.registers)
    })
}

/// [`objectives_on`] as they would lie on a GPU that is not there.
pub(super) fn objectives_for<T: Number>(
    capability: ComputeCapability,
    class: LossClass,
) -> Vec<Candidate> {
    let ComputeCapability { major, minor } = capability;
    let arch = format!("sm_{major}{minor}");
    counted(objectives::<T>(class), |name| {
        embedded::resources(&arch, name).map(|resource| resource.registers)
    })
}

fn objectives<T: Number>(class: LossClass) -> impl Iterator<Item = (&'static str, Candidate)> {
    let sparse = T::SparseObjective::entries()
        .iter()
        .filter(move |entry| entry.variant.class == class)
        .filter(|entry| entry.variant.columns == Columns::Alike)
        .map(|entry| sparse::<T>(entry.name, entry.variant.sparse));
    let dense = T::DenseObjective::entries()
        .iter()
        .filter(move |entry| entry.variant.class == class)
        .map(|entry| dense::<T>(entry.name, entry.variant.dense));
    let with_sums = |(name, kernel)| (name, plan::objective::with_sums(kernel));
    sparse.chain(dense).map(with_sums)
}

/// [`candidates`] for an element type known at run time only.
pub fn candidates_of(precision: Precision, arch: &str) -> Vec<Candidate> {
    match precision {
        Precision::F32 => candidates::<f32>(arch),
        Precision::F64 => candidates::<f64>(arch),
    }
}

fn sparse<T: Number>(name: &'static str, variant: SparseVariant) -> (&'static str, Candidate) {
    let SparseVariant {
        product,
        place,
        vs,
        held,
    } = variant;
    let strategy = match place {
        Place::Shared => Strategy::SharedW,
        Place::Private => Strategy::PrivateW,
        Place::Absent => Strategy::RowDot,
        _ => Strategy::GlobalW,
    };
    let team = Team::Lanes(vs);
    let bytes = |vectors: u32| variant.shared_bytes(1, vectors * vs, T::PRECISION.bytes()) as u32;
    let shared = SharedUse {
        per_column: bytes(0),
        per_vector_column: bytes(1) - bytes(0),
        ..SharedUse::default()
    };
    let kernel = candidate::<T>(name, product, Storage::Sparse, strategy, team);
    (name, Candidate { shared, ..kernel }.with_load(held, 1, 1))
}

/// The entries that walk the rows; the others belong to each of them.
fn fixed<T: Number>(entry: &Entry<T::Fixed>) -> Option<(&'static str, Candidate)> {
    let FixedVariant::Accumulate {
        product,
        place,
        vs,
        held,
    } = entry.variant
    else {
        return None;
    };
    let strategy = match place {
        SumPlace::SharedWithInput => Strategy::FixedWithY,
        SumPlace::Shared => Strategy::FixedShared,
        SumPlace::Cluster => Strategy::FixedCluster,
        SumPlace::Halves | SumPlace::HalvesWithInput => Strategy::FixedHalves,
        SumPlace::Global => Strategy::FixedGlobal,
    };
    let cluster = entry.variant.cluster();
    let bytes = |cols: u32| entry.variant.shared_bytes(cols, 32, T::PRECISION.bytes()) as u32;
    let per_column = bytes(cluster) / cluster;
    let shared = SharedUse {
        per_column,
        // A column that has no other beside it.
        fixed: bytes(1) - per_column,
        ..SharedUse::default()
    };
    let team = Team::Lanes(vs);
    let kernel = candidate::<T>(entry.name, product, Storage::Sparse, strategy, team);
    Some((
        entry.name,
        Candidate {
            shared,
            cluster,
            ..kernel
        }
        .with_load(held, 1, 1),
    ))
}

/// The entries that walk the rows; the others belong to each of them. One for equal values serves two forms.
fn hot<T: Number>(
    entry: &'static Entry<T::Hot>,
) -> impl Iterator<Item = (&'static str, Candidate)> {
    let forms: &[StoredValues] = match entry.variant {
        HotVariant::Walk(_, HotValues::Whole) => &[StoredValues::Whole],
        HotVariant::Walk(_, HotValues::Single) => &[StoredValues::F32],
        HotVariant::Walk(_, HotValues::Half) => &[StoredValues::Bf16],
        HotVariant::Walk(_, HotValues::Constant) => &[StoredValues::OfRows, StoredValues::Equal],
        _ => &[],
    };
    let of_form = |values: &StoredValues| hot_of_form::<T>(entry, *values);
    forms.iter().filter_map(of_form)
}

fn hot_of_form<T: Number>(
    entry: &Entry<T::Hot>,
    values: StoredValues,
) -> Option<(&'static str, Candidate)> {
    let HotVariant::Walk(product, _) = entry.variant else {
        return None;
    };
    let shared = SharedUse {
        fixed: plan::fused::HOT_SHARED_BYTES,
        ..SharedUse::default()
    };
    // As many lanes as share short rows.
    let (strategy, team) = (Strategy::HotColumns, Team::Lanes(2));
    let storage = Storage::HotColumns(values);
    let kernel = candidate::<T>(entry.name, product, storage, strategy, team);
    let kernel = Candidate {
        shared,
        max_block: entry.variant.most_threads(T::SIZE),
        ..kernel
    };
    Some((entry.name, kernel.with_load(HELD, 1, 1)))
}

/// The entries that walk the tiles, of X and of its stored transpose; the others belong to each of them.
fn balanced<T: Number>(
    entry: &'static Entry<T::Balanced>,
) -> impl Iterator<Item = (&'static str, Candidate)> {
    let products = [
        (
            KernelProduct::Forward,
            Storage::Sparse,
            Strategy::BalancedDot,
        ),
        (
            KernelProduct::Fused,
            Storage::Transpose,
            Strategy::StoredTranspose,
        ),
        (
            KernelProduct::Transposed,
            Storage::Transpose,
            Strategy::StoredTranspose,
        ),
    ];
    let shared = SharedUse {
        fixed: entry.variant.shared_bytes(T::PRECISION.bytes()) as u32,
        ..SharedUse::default()
    };
    let is_walk = entry.variant == BalancedVariant::Walk;
    products
        .into_iter()
        .filter(move |_| is_walk)
        .map(move |(product, storage, strategy)| {
            let kernel = candidate::<T>(entry.name, product, storage, strategy, Team::Block);
            let kernel = Candidate { shared, ..kernel };
            (entry.name, kernel.with_load(PER_THREAD, 1, 1))
        })
}

/// An entry over panels serves each product.
fn panels<T: Number>(
    entry: &'static Entry<T::Panels>,
) -> impl Iterator<Item = (&'static str, Candidate)> {
    use KernelProduct::{Forward, Fused, Transposed};
    let shared = SharedUse {
        fixed: plan::fused::PANEL_SHARED_BYTES,
        ..SharedUse::default()
    };
    let team = Team::Lanes(gpu_kernels::cta::WARP);
    [Fused, Forward, Transposed]
        .into_iter()
        .map(move |product| {
            let strategy = Strategy::Panels;
            let kernel = candidate::<T>(entry.name, product, Storage::Panels, strategy, team);
            (entry.name, Candidate { shared, ..kernel })
        })
}

fn dense<T: Number>(name: &'static str, variant: DenseVariant) -> (&'static str, Candidate) {
    let DenseVariant {
        product,
        team,
        tl,
        width,
        rows,
        ..
    } = variant;
    let strategy = match (product, variant.held) {
        (KernelProduct::Fused, RowStore::Registers) => Strategy::DenseRegisters,
        (KernelProduct::Fused, RowStore::Ring { blocks: 1, .. }) => Strategy::DenseRing,
        (KernelProduct::Fused, RowStore::Ring { .. }) => Strategy::DenseCluster,
        (KernelProduct::Fused, RowStore::Tiles { .. }) => Strategy::DenseTiles,
        (KernelProduct::Forward, _) => Strategy::RowDot,
        (KernelProduct::Transposed, _) => Strategy::DenseColumns,
    };
    let (team, shared) = dense_team(&variant, team, T::PRECISION.bytes());
    let kernel = Candidate {
        shared,
        ahead: variant.elements_ahead(),
        cluster: variant.cluster(),
        max_block: variant.most_threads(),
        ..candidate::<T>(name, product, Storage::Dense, strategy, team)
    };
    (name, kernel.with_load(tl, width, rows))
}

fn dense_team(variant: &DenseVariant, team: TeamSize, bytes: u32) -> (Team, SharedUse) {
    let of_warp = variant.shared_bytes(gpu_kernels::cta::WARP, 0, bytes) as u32;
    match team {
        TeamSize::Lanes(vs) if matches!(variant.held, RowStore::Tiles { .. }) => (
            Team::Lanes(vs),
            SharedUse {
                per_vector_column: variant.tile_bytes(bytes),
                ..SharedUse::default()
            },
        ),
        TeamSize::Lanes(vs) => (
            Team::Lanes(vs),
            SharedUse {
                fixed: of_warp,
                ..SharedUse::default()
            },
        ),
        TeamSize::Block => (
            Team::Block,
            SharedUse {
                per_warp: of_warp,
                ..SharedUse::default()
            },
        ),
    }
}

fn candidate<T: Number>(
    name: &'static str,
    product: KernelProduct,
    storage: Storage,
    strategy: Strategy,
    team: Team,
) -> Candidate {
    Candidate::new(name, product.into(), storage, strategy, T::PRECISION, team)
}

/// The most threads of a block, in whole groups of four warps, whose registers an SM has.
pub(super) fn max_block(registers: u32) -> u32 {
    let per_warp = (registers.max(1) * 32).next_multiple_of(256);
    ((REGISTERS_PER_SM / per_warp) / 4 * 4 * 32).min(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_a_candidate() {
        let walks = |entry: &&Entry<_>| matches!(entry.variant, FixedVariant::Accumulate { .. });
        let fixed = <f32 as gpu_kernels::Kernels>::Fixed::entries();
        let entries = <f32 as gpu_kernels::Kernels>::Sparse::entries().len()
            + fixed.iter().filter(walks).count()
            + 3 * <f32 as gpu_kernels::Kernels>::Panels::entries().len()
            + <f32 as gpu_kernels::Kernels>::Hot::entries().iter().flat_map(hot::<f32>).count()
            // The entry that walks the tiles serves three products.
            + 3 * <f32 as gpu_kernels::Kernels>::Balanced::entries().len() / 3
            + <f32 as gpu_kernels::Kernels>::Dense::entries().len();
        assert_eq!(candidates::<f32>("sm_90").len(), entries);
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
        for (held, dtype) in [(65_536, Precision::F32), (32_768, Precision::F64)] {
            for cols in [held / 2 + 1, held - 1, held] {
                assert_eq!(strategy("h200", cols, dtype), Strategy::DenseCluster);
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
