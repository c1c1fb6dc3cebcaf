//! The page on a comparison.

use anyhow::Result;
use serde::Serialize;

use super::Compared;
use crate::cli::pages;
use crate::cli::progress::Ui;
use crate::report::{CvPage, CvPoint, column_name};

/// Columns whose coefficients are followed along the path.
const FOLLOWED: usize = 5;

/// A column along the path.
#[derive(Serialize)]
pub(super) struct Path {
    column: usize,
    /// The mean over the folds at each point.
    coef: Vec<f64>,
}

impl Compared<'_> {
    /// Points with their scores.
    pub(super) fn compared(&self) -> Vec<CvPoint> {
        let point = |index: usize| {
            let (typed, found) = (self.points[index], &self.found[index]);
            CvPoint {
                strength: typed.strength,
                second: typed.second,
                scores: self.scores(index),
                nonzero: found.nonzero.clone(),
                n_iter: found.n_iter.clone(),
                converged: found.converged,
            }
        };
        (0..self.points.len()).map(point).collect()
    }

    /// The columns with the largest coefficients anywhere along the path.
    pub(super) fn paths(&self) -> Vec<Path> {
        let columns = self.found.first().map_or(0, |point| point.mean_coef.len());
        let most = |column: usize| {
            let sizes = self.found.iter().map(|point| point.mean_coef[column].abs());
            sizes.fold(0.0_f64, f64::max)
        };
        let mut ranked: Vec<(usize, f64)> =
            (0..columns).map(|column| (column, most(column))).collect();
        ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let path = |(column, _): (usize, f64)| Path {
            column,
            coef: self
                .found
                .iter()
                .map(|point| point.mean_coef[column])
                .collect(),
        };
        ranked.into_iter().take(FOLLOWED).map(path).collect()
    }

    /// Writes the page and the figures, where they are requested.
    pub(super) fn write_page(&self, ui: &Ui) -> Result<()> {
        let args = &self.job.outcome.report;
        let Some(details) = &self.details else {
            return Ok(());
        };
        let points = self.compared();
        let (best, one_error) = self.choice();
        let named = |path: Path| (column_name(&self.schema, path.column), path.coef);
        let paths: Vec<(String, Vec<f64>)> = self.paths().into_iter().map(named).collect();
        let page = CvPage {
            title: self.job.own.title(),
            source: &pages::source(&self.job.source.data),
            command: ui.command(),
            strength: self.job.own.strength().0,
            scoring: &self.scoring(),
            points: &points,
            best,
            one_error,
            paths: &paths,
            names: &self.schema,
            advice: &self.advice(),
            details,
        };
        pages::write(args, &page.report(), ui)
    }
}
