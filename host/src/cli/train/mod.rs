//! `warpfuse train`: data → model.

mod estimators;
mod kernel_ridge;
mod linreg;
mod spectral;

use anyhow::Result;

use super::args::{TrainArgs, Trainer};
use super::exit::Exit;
use super::meant::Meant;
use super::progress::Ui;
use estimators::Job;

/// The job of arguments that all have the same groups.
macro_rules! job {
    ($kind:ident, $args:expr) => {
        Job {
            meant: Meant::$kind($args),
            source: &$args.source,
            solve: &$args.solve,
            samples: &$args.samples,
            outcome: &$args.outcome,
        }
    };
}

/// Trains what was asked for.
pub(super) fn run(args: &TrainArgs, ui: &Ui) -> Result<Exit> {
    match &args.trainer {
        Trainer::Linreg(args) => linreg::run(args, ui),
        Trainer::Ridge(args) => estimators::run(&job!(Ridge, args), ui),
        Trainer::Lasso(args) => estimators::run(&job!(Lasso, args), ui),
        Trainer::ElasticNet(args) => estimators::run(&job!(ElasticNet, args), ui),
        Trainer::Logreg(args) => estimators::run(&job!(Logreg, args), ui),
        Trainer::Glm(args) => estimators::run(&job!(Glm, args), ui),
        Trainer::Svc(args) => estimators::run(&job!(Svc, args), ui),
        Trainer::Svr(args) => estimators::run(&job!(Svr, args), ui),
        Trainer::KernelRidge(args) => kernel_ridge::run(args, ui),
        Trainer::Hits(args) => spectral::hits(args, ui),
        Trainer::Pagerank(args) => spectral::page_rank(args, ui),
        Trainer::Svd(args) => spectral::svd(args, ui),
    }
}
