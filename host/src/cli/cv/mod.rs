//! `warpfuse cv`: data → how well penalties do on rows that were held out.

mod grid;
mod page;
mod told;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};

use super::args::{CvArgs, DtypeName, FoldArgs};
use super::exit::Exit;
use super::portions::{self, Place};
use super::progress::Ui;
use super::targets::Known;
use super::trainers::{Job, Penalised};
use super::{checkpoints, data, device, group, output, pages};
use crate::device::{Device, Phase, Phases};
use crate::io;
use crate::learning::{
    Classes, Convergence, Evaluation, FoldOptions, Folds, Model, PathPoint, ResidentDataset,
    cross_validate_with,
};
use crate::matrix::{Features, Schema};
use crate::ops::Number;
use crate::report::{CvDetails, CvPoint, DataFacts, Hardware, advice};

/// Compares penalties.
pub(super) fn run(args: &CvArgs, ui: &Ui) -> Result<Exit> {
    let (job, folds) = args.trainer.job();
    match job.source.dtype {
        DtypeName::F32 => compare::<f32>(&job, folds, ui),
        DtypeName::F64 => compare::<f64>(&job, folds, ui),
    }
}

fn compare<T: Number>(job: &Job<'_>, args: &FoldArgs, ui: &Ui) -> Result<Exit> {
    let group = group::join(ui)?;
    group::check(&group, &job.source.data, false)?;
    job.source.expect_one_target()?;
    let saved = checked(job, args)?;
    let name = job.source.device;
    let device = group::device_or(&group, (name, ui), || device::open(name, ui))?;
    // A page counts entries on the host: they have to stay there.
    let has_page = job.outcome.report.is_wanted();
    let place = Place {
        data: &job.source.data,
        reading: &job.outcome.reading()?,
        whole: has_page,
        ui,
    };
    let target = (job.source.target.as_deref(), job.own.task());
    let (data, known) = portions::load_known::<T>((&group, &device), place, target)?;
    let rows = data.stats.rows;
    let weights = data::sample_weights(job.samples.sample_weight.as_deref(), rows)?;
    let folds = folds(&known, rows, args)?;
    let mut phases = Phases::default();
    phases.add(Phase::Read, data.read_cost());
    let stats = data.stats.clone();
    let features = has_page.then(|| data.features.clone());
    let own = group::rows_of((&group, &device), (data.features, data.rows));
    let resident = placed(job, &device, own, &folds)?;
    let weights = weights.as_deref();
    let beside = job.beside((rows, data.stats.cols))?;
    let checkpoint = checkpoints::of(&args.checkpoint, ui);
    let given = FoldOptions {
        sample_weight: weights,
        offset: beside.offset.as_deref(),
        penalty_factors: beside.penalty_factors.as_deref(),
        checkpoint: checkpoint.as_ref(),
    };
    let points = grid::points(job, args, (&resident, &known, weights))?;
    let path = grid::estimators(job, &points, &known)?;
    let bar = ui.fits(path.len() * folds.count());
    let targets = known.targets();
    phases.extend(resident.phases());
    let watch = |fit| bar.fit(&fit);
    let all = || cross_validate_with(&resident, targets, given, &folds, &path, watch);
    let found = phases.time(Phase::Solve, &device, all)?;
    drop(bar);
    let details = features.map(|features| {
        let columns = &resident.moments().columns;
        let facts = || DataFacts::of(&features, &stats, columns).with_target(targets);
        let data = phases.time(Phase::Report, &device, facts);
        let hardware = Hardware::of_device(&device, T::DTYPE, device.usage().peak_bytes as u64);
        CvDetails {
            data,
            hardware,
            phases,
        }
    });
    let compared = Compared {
        job,
        args,
        points,
        found,
        schema: data.schema,
        details,
    };
    if let (Some(file), true) = (saved, compared.has_best()) {
        let _fitting = ui.doing("fitting the best to all rows");
        let best = || path[compared.best()].fit_on(&resident, targets, given.of_fit());
        compared.save(best()?, file)?;
    }
    compared.tell(ui)
}

/// The rows of this process on its device, with sums over those of each fold where columns are standardised.
fn placed<T: Number>(
    job: &Job<'_>,
    device: &Device,
    own: Arc<Features<T>>,
    folds: &Folds,
) -> Result<ResidentDataset<T>> {
    let matrix = job.outcome.matrix_options();
    Ok(match job.solve.standardize {
        true => ResidentDataset::with_folds(device, own, matrix, folds)?,
        false => ResidentDataset::new(device, own, matrix)?,
    })
}

/// Refuses options that folds have no use for; the file that the best model goes to.
fn checked<'a>(job: &Job<'a>, args: &FoldArgs) -> Result<Option<&'a Path>> {
    ensure!(
        !job.outcome.standard_errors,
        "--standard-errors: expected train, which fits one model, found cv"
    );
    pages::check(&job.outcome.report)?;
    if let Some(scoring) = args.scoring {
        ensure!(
            scoring.task() == job.own.task(),
            "--scoring {}: expected a figure of what {} learns, found one of another task",
            scoring.name(),
            job.name
        );
    }
    let saved = job.outcome.output.as_deref();
    if let Some(path) = saved {
        ensure!(
            !output::is_stdout(path),
            "-o -: expected the name of a file; standard output has the comparison"
        );
        output::check_place(path)?;
    }
    Ok(saved)
}

/// Folds that keep groups together; that spread classes evenly; of numbers, random ones.
fn folds<T: Number>(known: &Known<T>, rows: usize, args: &FoldArgs) -> Result<Folds> {
    let count = args.folds.get();
    if let Some(path) = &args.groups {
        let groups = io::read_numbers::<f64>(path)?;
        let found = groups.len();
        ensure!(
            found == rows,
            "{}: expected one group for each of the {rows} rows, found {found}",
            path.display()
        );
        let groups: Vec<u64> = groups.iter().map(|group| group.to_bits()).collect();
        return Ok(Folds::grouped(&groups, count, args.seed)?);
    }
    Ok(match known {
        Known::Numbers(_) => Folds::shuffled(rows, count, args.seed)?,
        Known::Labels { labels, .. } => {
            let (_, codes) = Classes::encode(labels)?;
            Folds::stratified(&codes.to_vec(), count, args.seed)?
        }
    })
}

/// Points and how they did.
struct Compared<'a> {
    job: &'a Job<'a>,
    args: &'a FoldArgs,
    points: Vec<Penalised>,
    found: Vec<PathPoint>,
    /// What the columns are called.
    schema: Schema,
    /// What a page shows besides, where one is requested.
    details: Option<CvDetails>,
}

impl Compared<'_> {
    /// What points are compared by.
    fn scoring(&self) -> String {
        self.args
            .scoring
            .map_or_else(|| "score".to_owned(), |scoring| scoring.name())
    }

    fn scores(&self, point: usize) -> Vec<f64> {
        let of = |evaluation: &Evaluation| match self.args.scoring {
            Some(scoring) => scoring.of(evaluation),
            None => evaluation.score(),
        };
        self.found[point].folds.iter().map(of).collect()
    }

    fn mean(&self, point: usize) -> f64 {
        told::mean(&self.scores(point))
    }

    /// The first of the best mean scores, where scores that are NaN are no candidates; and the strongest penalty within one
    /// standard error of it.
    fn choice(&self) -> (usize, usize) {
        // C is the inverse of the penalty's strength.
        let is_inverse = self.job.own.strength().0 == "c";
        CvPoint::choose(
            &self.compared(),
            |a, b| if is_inverse { a < b } else { a > b },
        )
    }

    fn best(&self) -> usize {
        self.choice().0
    }

    /// Whether a mean score is defined: if none is, no point is better than another.
    fn has_best(&self) -> bool {
        !self.mean(self.best()).is_nan()
    }

    /// What to do about fits that stopped early.
    fn advice(&self) -> String {
        let (source, solve) = (self.job.source, self.job.solve);
        advice(
            Convergence::IterationLimit,
            solve.standardize,
            source.dtype.into(),
        )
    }

    fn save(&self, model: Model, file: &Path) -> Result<()> {
        output::save(&model.with_schema(self.schema.clone()), file)
    }

    /// What was found, which is safe then.
    fn tell(&self, ui: &Ui) -> Result<Exit> {
        if self.job.outcome.json {
            output::print_json(&self.to_json()?)?;
        } else {
            output::print(self.table())?;
        }
        self.write_page(ui)?;
        checkpoints::remove(&self.args.checkpoint, ui);
        if !self.has_best() {
            let of_none = format!("the mean {} is not defined on these folds", self.scoring());
            ensure!(
                self.job.outcome.output.is_none(),
                "-o: expected a best model, found none: {of_none}; take fewer folds or another --scoring"
            );
            ui.warn(format_args!("{of_none}"));
        }
        if self.found.iter().all(|point| point.converged) {
            return Ok(Exit::Success);
        }
        ui.warn(format_args!(
            "NOT CONVERGED: some fits stopped early; {}",
            self.advice()
        ));
        Ok(if self.job.outcome.strict {
            Exit::NotConverged
        } else {
            Exit::Success
        })
    }
}
