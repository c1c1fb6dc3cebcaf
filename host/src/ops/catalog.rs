//! The compiled kernels as the planner sees them.

use gpu_kernels::fused::{DenseVariant, Place, Product as KernelProduct, SparseVariant, TeamSize};
use gpu_kernels::{Entry, Family};

use super::Number;
use crate::device::embedded;
use crate::plan::fused::{Candidate, Precision, Product, SharedUse, Storage, Strategy, Team};

/// Registers per thread that are assumed where ptxas was not there to count them.
const ASSUMED_REGISTERS: u32 = 64;
/// Registers of an SM on every architecture that we compile for.
const REGISTERS_PER_SM: u32 = 65_536;

/// The kernels of element type `T` that were compiled for `arch` (such as `sm_90`), for
/// [`Planner`](crate::plan::fused::Planner).
///
/// Registers come from ptxas's report that was taken when the kernels were embedded.
pub fn candidates<T: Number>(arch: &str) -> Vec<Candidate> {
    let sparse = T::Sparse::entries().iter().map(|entry| sparse::<T>(arch, entry));
    let dense = T::Dense::entries().iter().map(|entry| dense::<T>(arch, entry));
    sparse.chain(dense).collect()
}

/// [`candidates`] for an element type known at run time only.
pub fn candidates_of(precision: Precision, arch: &str) -> Vec<Candidate> {
    match precision {
        Precision::F32 => candidates::<f32>(arch),
        Precision::F64 => candidates::<f64>(arch),
    }
}

fn sparse<T: Number>(arch: &str, entry: &Entry<T::Sparse>) -> Candidate {
    let SparseVariant { product, place, vs, held } = entry.variant;
    let strategy = match place {
        Place::Shared => Strategy::SharedW,
        Place::Absent => Strategy::RowDot,
        _ => Strategy::GlobalW,
    };
    let team = Team::Lanes(vs);
    let per_column = entry.variant.shared_bytes(1, T::PRECISION.bytes()) as u32;
    Candidate {
        shared: SharedUse { per_column, ..SharedUse::default() },
        ..candidate::<T>(arch, entry.name, product, Storage::Sparse, strategy, team)
    }
    .with_load(held, 1, 1)
}

fn dense<T: Number>(arch: &str, entry: &Entry<T::Dense>) -> Candidate {
    let DenseVariant { product, team, tl, width, rows } = entry.variant;
    let strategy = match product {
        KernelProduct::Fused => Strategy::DenseRegisters,
        KernelProduct::Forward => Strategy::RowDot,
        KernelProduct::Transposed => Strategy::DenseColumns,
    };
    let (team, shared) = dense_team(&entry.variant, team, T::PRECISION.bytes());
    Candidate { shared, ..candidate::<T>(arch, entry.name, product, Storage::Dense, strategy, team) }
        .with_load(tl, width, rows)
}

fn dense_team(variant: &DenseVariant, team: TeamSize, bytes: u32) -> (Team, SharedUse) {
    let of_warp = variant.shared_bytes(gpu_kernels::cta::WARP, bytes) as u32;
    match team {
        TeamSize::Lanes(vs) => (Team::Lanes(vs), SharedUse { fixed: of_warp, ..SharedUse::default() }),
        TeamSize::Block => (Team::Block, SharedUse { per_warp: of_warp, ..SharedUse::default() }),
    }
}

fn candidate<T: Number>(
    arch: &str,
    name: &'static str,
    product: KernelProduct,
    storage: Storage,
    strategy: Strategy,
    team: Team,
) -> Candidate {
    let product = match product {
        KernelProduct::Fused => Product::Fused,
        KernelProduct::Forward => Product::Forward,
        KernelProduct::Transposed => Product::Transposed,
    };
    let registers = registers(arch, name);
    let kernel = Candidate::new(name, product, storage, strategy, T::PRECISION, team);
    Candidate { max_block: max_block(registers), ..kernel.with_registers(registers) }
}

fn registers(arch: &str, name: &str) -> u32 {
    embedded::resources(arch, name).map_or(ASSUMED_REGISTERS, |resource| resource.registers)
}

/// The most threads of a block, in whole groups of four warps, whose registers an SM has.
fn max_block(registers: u32) -> u32 {
    let per_warp = (registers.max(1) * 32).next_multiple_of(256);
    ((REGISTERS_PER_SM / per_warp) / 4 * 4 * 32).min(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_a_candidate() {
        let entries = <f32 as gpu_kernels::Kernels>::Sparse::entries().len()
            + <f32 as gpu_kernels::Kernels>::Dense::entries().len();
        assert_eq!(candidates::<f32>("sm_90").len(), entries);
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
