//! What the models have to give, and what no plan may do.

mod forced;
mod predicted;
mod properties;
mod published;

use super::*;
use crate::plan::limits::DeviceLimits;

fn device(name: &str) -> DeviceLimits {
    DeviceLimits::known(name).expect("a listed device")
}

/// Kernels like those that the workspace compiles: a few vector sizes, wide loads, rows in flight.
fn compiled(precision: Precision) -> Vec<Candidate> {
    let mut kernels = Vec::new();
    let products = [
        (Product::Fused, "fused"),
        (Product::Transposed, "transposed"),
    ];
    for (vs, kept) in [(4, 5), (8, 3), (16, 2), (32, 2)] {
        let team = Team::Lanes(vs);
        let new = |product, strategy| {
            Candidate::new(
                format!("sparse_{strategy}_{vs}"),
                product,
                Storage::Sparse,
                strategy,
                precision,
                team,
            )
            .with_load(kept, 1, 1)
            .with_registers(40)
        };
        for (product, _) in products {
            kernels.push(new(product, Strategy::SharedW));
            kernels.push(new(product, Strategy::GlobalW));
        }
        kernels.push(new(Product::Forward, Strategy::RowDot));
    }
    let width = 16 / precision.bytes();
    for (team, tl, rows) in [
        (Team::Lanes(8), width, 4),
        (Team::Lanes(8), width, 8),
        (Team::Lanes(32), width, 4),
        (Team::Lanes(32), width, 8),
        (Team::Lanes(32), 4 * width, 2),
        (Team::Lanes(32), 8 * width, 1),
        (Team::Lanes(32), 1, 4),
        (Team::Lanes(32), 8, 2),
        (Team::Block, 8, 1),
        (Team::Block, 16, 1),
    ] {
        let width = if tl.is_multiple_of(width) && tl != 8 {
            width
        } else {
            1
        };
        let registers = 32 + 2 * tl + tl * rows;
        for (product, name) in products {
            let name = format!("dense_{name}_{team:?}_{tl}_{rows}");
            let new = Candidate::new(
                name,
                product,
                Storage::Dense,
                Strategy::DenseRegisters,
                precision,
                team,
            );
            kernels.push(
                new.with_load(tl, width, rows)
                    .with_registers(registers.min(255)),
            );
        }
    }
    for width in [1, width] {
        let dot = Candidate::new(
            "dense_dot",
            Product::Forward,
            Storage::Dense,
            Strategy::RowDot,
            precision,
            Team::Lanes(32),
        );
        kernels.push(dot.with_load(4 * width, width, 2));
        let team = Team::Block;
        let columns = Candidate::new(
            "dense_columns",
            Product::Transposed,
            Storage::Dense,
            Strategy::DenseColumns,
            precision,
            team,
        );
        kernels.push(columns.with_load(width, width, 8));
    }
    kernels
}
