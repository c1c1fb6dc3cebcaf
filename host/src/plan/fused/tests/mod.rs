//! What the models have to give, and what no plan may do.

mod alone;
mod clusters;
mod even;
mod forced;
mod predicted;
mod preparation;
mod properties;
mod published;
mod strategies;
mod streamed;
mod tabulated;
mod told;
mod uneven;

use super::*;
use crate::plan::limits::DeviceLimits;

fn device(name: &str) -> DeviceLimits {
    DeviceLimits::known(name).expect("a listed device")
}

const PRODUCTS: [(Product, &str); 2] = [
    (Product::Fused, "fused"),
    (Product::Transposed, "transposed"),
];

/// Kernels like those that the workspace compiles: a few vector sizes, wide loads, rows in flight.
fn compiled(precision: Precision) -> Vec<Candidate> {
    let mut kernels = sparse_kernels(precision);
    kernels.extend(dense_in_registers(precision));
    kernels.extend(dense_of_any_width(precision));
    kernels
}

fn sparse_kernels(precision: Precision) -> Vec<Candidate> {
    let mut kernels = Vec::new();
    for (vs, kept) in [(4, 5), (8, 3), (16, 2), (32, 2)] {
        let new = |product, strategy| {
            let name = format!("sparse_{strategy}_{vs}");
            let (storage, team) = (Storage::Sparse, Team::Lanes(vs));
            Candidate::new(name, product, storage, strategy, precision, team)
                .with_load(kept, 1, 1)
                .with_registers(40)
        };
        for (product, _) in PRODUCTS {
            kernels.push(new(product, Strategy::SharedW));
            kernels.push(new(product, Strategy::GlobalW));
        }
        kernels.push(new(Product::Forward, Strategy::RowDot));
    }
    kernels
}

fn dense_in_registers(precision: Precision) -> Vec<Candidate> {
    let wide = 16 / precision.bytes();
    let loads = [
        (Team::Lanes(8), wide, wide, 4),
        (Team::Lanes(8), wide, wide, 8),
        (Team::Lanes(32), wide, wide, 4),
        (Team::Lanes(32), wide, wide, 8),
        (Team::Lanes(32), 4 * wide, wide, 2),
        (Team::Lanes(32), 8 * wide, wide, 1),
        (Team::Lanes(32), 1, 1, 4),
        (Team::Lanes(32), 8, 1, 2),
        (Team::Block, 8, 1, 1),
        (Team::Block, 16, wide, 1),
    ];
    let mut kernels = Vec::new();
    for (team, tl, width, rows) in loads {
        let registers = (32 + 2 * tl + tl * rows).min(255);
        for (product, name) in PRODUCTS {
            let name = format!("dense_{name}_{team:?}_{tl}_{rows}");
            let (storage, strategy) = (Storage::Dense, Strategy::DenseRegisters);
            let new = Candidate::new(name, product, storage, strategy, precision, team);
            kernels.push(new.with_load(tl, width, rows).with_registers(registers));
        }
    }
    kernels
}

fn dense_of_any_width(precision: Precision) -> Vec<Candidate> {
    let mut kernels = Vec::new();
    for vs in [1, 4, 8, 32] {
        for width in [1, 16 / precision.bytes()] {
            let new = |name: &'static str, product, strategy| {
                let (storage, team) = (Storage::Dense, Team::Lanes(vs));
                Candidate::new(name, product, storage, strategy, precision, team)
                    .with_load(width, width, 8)
            };
            kernels.push(new("dense_dot", Product::Forward, Strategy::RowDot));
            kernels.push(new(
                "dense_columns",
                Product::Transposed,
                Strategy::DenseColumns,
            ));
        }
    }
    kernels
}
