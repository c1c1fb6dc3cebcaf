//! `warpfuse train`: data → model.

mod details;
mod kernel_ridge;
mod linear;
mod several;
mod spectral;

use anyhow::Result;

use super::args::{TrainCommand, TrainTarget};
use super::exit::Exit;
use super::progress::Ui;

/// Trains what was requested.
pub(super) fn run(args: &TrainCommand, ui: &Ui) -> Result<Exit> {
    match &args.target {
        TrainTarget::Linear(trainer) => linear::run(&trainer.job(), ui),
        TrainTarget::KernelRidge(args) => kernel_ridge::run(args, ui),
        TrainTarget::Hits(args) => spectral::hits(args, ui),
        TrainTarget::Pagerank(args) => spectral::page_rank(args, ui),
        TrainTarget::Svd(args) => spectral::svd(args, ui),
    }
}
