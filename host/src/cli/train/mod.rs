//! `warpfuse train`: data → model.

mod linear;
mod spectral;

use anyhow::Result;

use super::args::{TrainArgs, Trainer};
use super::exit::Exit;
use super::progress::Ui;

/// Trains what was asked for.
pub(super) fn run(args: &TrainArgs, ui: &Ui) -> Result<Exit> {
    match &args.trainer {
        Trainer::Linreg(args) => linear::run(&args.into(), ui),
        Trainer::Ridge(args) => linear::run(&args.into(), ui),
        Trainer::Hits(args) => spectral::hits(args, ui),
        Trainer::Pagerank(args) => spectral::page_rank(args, ui),
        Trainer::Svd(args) => spectral::svd(args, ui),
    }
}
