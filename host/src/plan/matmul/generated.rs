//! Tiles that are not compiled: instances of the pipelined template, which a tuner can generate.

use gpu_kernels::matmul::MatmulVariant;

use super::{FP32, FP64};
use crate::plan::limits::DeviceLimits;
use crate::plan::problem::Precision;
use crate::plan::space::Space;
use crate::plan::template::Template;

/// Rows of a warp for each group of a thread, and its columns.
const WARP_TILE: [i64; 2] = [16, 64];
/// Warps of a block.
const WARPS: i64 = 4;
/// Sums of a thread for each of its groups.
const SUMS: i64 = 32;
/// Registers of a thread that leave room for what it reads and for addresses.
const MOST_REGISTERS: i64 = 160;

/// A tile that is not compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedTile {
    /// The kernel.
    pub variant: MatmulVariant,
    /// Its source.
    pub template: Template,
}

/// The parameters of tiles that are not compiled, and their constraints: `rows` and `columns` of a tile, `groups` of a thread down,
/// warps beside one another (`right`).
pub fn generated_space(precision: Precision, limits: &DeviceLimits) -> Space {
    let mut space = Space::new();
    let rows = space.parameter("rows", [32, 64, 128, 256]);
    let columns = space.parameter("columns", [64, 128, 256]);
    let groups = space.parameter("groups", [1, 2, 4]);
    let right = space.parameter("right", [1, 2, 4]);
    space.requires("columns of the warps", &[columns, right], |v| {
        v[0] == v[1] * WARP_TILE[1]
    });
    space.requires("rows of the warps", &[rows, groups, right], |v| {
        v[0] == WARPS / v[2] * WARP_TILE[0] * v[1]
    });
    let bytes = precision.bytes();
    let words = i64::from(bytes / 4);
    space.at_most(
        "registers of a thread",
        &[groups],
        MOST_REGISTERS / (SUMS * words),
    );
    let shared = u64::from(limits.shared_per_block);
    space.requires("shared memory", &[rows, columns], move |v| {
        tile(v).shared_bytes(bytes) <= shared
    });
    let compiled = match precision {
        Precision::F32 => FP32.map(|rate| rate.variant).to_vec(),
        Precision::F64 => FP64.map(|rate| rate.variant).to_vec(),
    };
    space.requires("not compiled", &[rows, columns], move |v| {
        !compiled.contains(&tile(v))
    });
    space
}

fn tile(values: &[i64]) -> MatmulVariant {
    let [rows, columns] = [0, 1].map(|at| values[at] as u32);
    MatmulVariant::Pipelined { rows, columns }
}

/// The [space](generated_space) as kernels, each with its source.
///
/// ```
/// use warpfuse::plan::Precision;
/// use warpfuse::plan::limits::DeviceLimits;
/// use warpfuse::plan::matmul::generated;
/// let h200 = DeviceLimits::known("h200").expect("a listed device");
/// let all = generated(Precision::F32, &h200);
/// let square = all.iter().find(|one| one.variant.tile() == (128, 128)).expect("four groups");
/// assert_eq!(square.template.body, "crate::matmul::pipelined::pipelined::<_, f32, 4, 2, 128, 128>");
/// ```
pub fn generated(precision: Precision, limits: &DeviceLimits) -> Vec<GeneratedTile> {
    let space = generated_space(precision, limits);
    let points = space.points();
    points.map(|values| of_values(precision, &values)).collect()
}

fn of_values(precision: Precision, values: &[i64]) -> GeneratedTile {
    let [rows, columns, groups, right] = [0, 1, 2, 3].map(|at| values[at]);
    GeneratedTile {
        variant: tile(values),
        template: Template {
            entry: format!("matmul_pipelined_{precision}_{rows}x{columns}"),
            arguments: format!("crate::matmul::MatmulArgs<'a, {precision}>"),
            body: format!(
                "crate::matmul::pipelined::pipelined::<_, {precision}, {groups}, {right}, {rows}, {columns}>"
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_made_of_four_warps_and_none_is_compiled() {
        let h200 = DeviceLimits::known("h200").expect("a listed device");
        for (precision, least) in [(Precision::F32, 5), (Precision::F64, 3)] {
            let all = generated(precision, &h200);
            assert!(all.len() >= least, "{}", all.len());
            for (i, one) in all.iter().enumerate() {
                let mut before = all[..i].iter();
                assert!(before.all(|other| other.variant != one.variant), "{one:?}");
                let known = FP32.iter().filter(|_| precision == Precision::F32);
                let mut known = known.chain(FP64.iter().filter(|_| precision == Precision::F64));
                assert!(known.all(|rate| rate.variant != one.variant), "{one:?}");
            }
        }
    }

    #[test]
    fn the_rule_gives_the_compiled_tiles_their_parameters() {
        // As in gpu-kernels/src/matmul/table.rs: rows, columns, groups, warps beside one another.
        for [rows, columns, groups, right] in [[64, 128, 2, 2], [128, 64, 2, 1], [64, 64, 1, 1]] {
            assert_eq!(columns, right * WARP_TILE[1]);
            assert_eq!(rows, WARPS / right * WARP_TILE[0] * groups);
        }
    }
}
