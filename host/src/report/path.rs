//! The page of a cross-validation: scores over penalties, and what they choose.

use std::fmt;

use serde::Serialize;
use warpfuse_figures::{Axis, Figure, Interval, Shape, Tone};

use super::data::{self, DataFacts};
use super::hardware::{self, Hardware};
use super::number::{Unit, shown};
use super::page::{Fact, Mood, Report, Section, Table, Value};
use crate::device::Phases;
use crate::matrix::Schema;

/// A penalty, and how it did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CvPoint {
    /// Its strength, as the trainer names it.
    pub strength: f64,
    /// The other parameter, where one is compared.
    pub second: Option<Second>,
    /// The score of each fold, the larger the better.
    pub scores: Vec<f64>,
    /// Coefficients that are not 0 in each fold.
    pub nonzero: Vec<usize>,
    /// Outer iterations of each fold.
    pub n_iter: Vec<usize>,
    /// Whether all folds converged.
    pub converged: bool,
}

/// A parameter that is compared besides the strength of the penalty.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Second {
    /// As it is typed, without dashes: `l1-ratio` or `epsilon`.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl fmt::Display for Second {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{} {}", self.name, self.value)
    }
}

/// What a page shows beside the scores; `--json` has it too.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CvDetails {
    /// The data.
    pub data: DataFacts,
    /// What ran where.
    pub hardware: Hardware,
    /// What the phases took.
    pub phases: Phases,
}

/// What the page of a cross-validation is made of.
#[derive(Debug, Clone, Copy)]
pub struct CvPage<'a> {
    /// Such as `Ridge regression`.
    pub title: &'a str,
    /// Where the data come from.
    pub source: &'a str,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The name of the strength: `alpha` or `c`.
    pub strength: &'a str,
    /// What points are compared by.
    pub scoring: &'a str,
    /// In the order in which they were fitted.
    pub points: &'a [CvPoint],
    /// The point of the best mean score.
    pub best: usize,
    /// The strongest penalty whose mean score is within one standard error of the best.
    pub one_error: usize,
    /// Columns with the largest coefficients along the path: name, and the mean over the folds at each point.
    pub paths: &'a [(String, Vec<f64>)],
    /// Names of the columns.
    pub names: &'a Schema,
    /// What to do about fits that stopped early.
    pub advice: &'a str,
    /// The rest.
    pub details: &'a CvDetails,
}

impl CvPoint {
    /// Mean of the scores.
    pub fn mean(&self) -> f64 {
        self.scores.iter().sum::<f64>() / self.scores.len() as f64
    }

    /// Standard deviation of the scores around their mean, as scikit-learn's `std_test_score`.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self.scores.iter().map(|score| (score - mean).powi(2)).sum();
        (squares / self.scores.len() as f64).sqrt()
    }

    /// Standard error of the mean, from the deviation with one degree of freedom less; as glmnet's `cvsd`. NaN for one
    /// fold.
    pub fn standard_error(&self) -> f64 {
        let folds = self.scores.len() as f64;
        self.deviation() / (folds - 1.0).sqrt()
    }

    /// The best point, and the strongest penalty within one standard error of it; `stronger` says whether the first
    /// strength penalises more than the second.
    ///
    /// Scores that are NaN are no candidates. Source: Breiman et al., *Classification and Regression Trees*, 3.4.3.
    pub fn choose(points: &[CvPoint], stronger: impl Fn(f64, f64) -> bool) -> (usize, usize) {
        let mut best = 0;
        for (at, point) in points.iter().enumerate() {
            let most = points[best].mean();
            if point.mean() > most || most.is_nan() && !point.mean().is_nan() {
                best = at;
            }
        }
        let Some(winner) = points.get(best) else {
            return (0, 0);
        };
        let least = winner.mean() - winner.standard_error();
        let mut chosen = best;
        for (at, point) in points.iter().enumerate() {
            let is_beside = point.second == winner.second;
            if is_beside
                && point.mean() >= least
                && stronger(point.strength, points[chosen].strength)
            {
                chosen = at;
            }
        }
        (best, chosen)
    }
}

impl CvPage<'_> {
    /// The page.
    pub fn report(&self) -> Report {
        let mut report = Report::new(format!("{}: penalties compared", self.title), self.command);
        report.subtitle = format!("cross-validated on {}", self.source);
        self.judge(&mut report);
        self.judge_features(&mut report);
        hardware::place(&mut report, &self.details.hardware);
        data::judge(&mut report, &self.details.data, true);
        let mut section = Section::new("Which penalty")
            .facts(self.facts())
            .figures(self.curves());
        if self.points.len() > 1 && self.one_error != self.best {
            section = section.note(
                "One standard error: the strongest penalty whose mean score is no further from the best than the standard \
                 error of the best. It is the simpler model that does as well as far as these folds can tell.",
            );
        }
        report.sections.push(section.table(self.table()));
        let paths = self.path_figures();
        if !paths.is_empty() {
            let note = "Means over the folds. A coefficient that stays is one to trust.";
            report.sections.push(
                Section::new("Regularisation path")
                    .note(note)
                    .figures(paths),
            );
        }
        let CvDetails {
            data,
            hardware,
            phases,
        } = self.details;
        report.sections.push(data::section(data, self.names));
        report.sections.push(hardware::section(hardware, phases));
        report
    }

    fn judge(&self, report: &mut Report) {
        let Some(best) = self.points.get(self.best) else {
            return report.verdict(Mood::Bad, "Nothing was compared", "There are no penalties.");
        };
        if best.mean().is_nan() {
            let text = format!(
                "The mean {} is not defined on these folds: each needs rows of every class, and finite predictions.",
                self.scoring
            );
            report.verdict(Mood::Bad, "No penalty can be chosen", text);
        } else {
            let text = format!(
                "--{} {}: a mean {} of {:.4} over {} folds.",
                self.strength,
                best.strength,
                self.scoring,
                best.mean(),
                best.scores.len()
            );
            report.verdict(Mood::Good, "The best penalty", text);
        }
        let failed = self.points.iter().filter(|point| !point.converged).count();
        match failed {
            0 => report.verdict(Mood::Good, "Converged", "All fits of all folds."),
            _ => report.verdict(
                Mood::Bad,
                "Not converged",
                format!(
                    "Some fits of {failed} of {} penalties stopped early: {}.",
                    self.points.len(),
                    self.advice
                ),
            ),
        }
        let at_end = self.best == 0 || self.best + 1 == self.points.len();
        if at_end && self.points.len() > 2 && best.second.is_none() && !best.mean().is_nan() {
            report.verdict(
                Mood::Look,
                "The best is at the end of the path",
                "A stronger or weaker penalty may be better: extend --path.",
            );
        }
    }

    /// Says first which coefficients the best penalty leaves.
    fn judge_features(&self, report: &mut Report) {
        const NAMED: usize = 3;
        let of_best =
            |(name, coef): &(String, Vec<f64>)| Some((name.clone(), *coef.get(self.best)?));
        let mut found: Vec<(String, f64)> = self.paths.iter().filter_map(of_best).collect();
        found.retain(|(_, coef)| *coef != 0.0);
        found.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        let named: Vec<String> = found
            .iter()
            .take(NAMED)
            .map(|(name, coef)| format!("{name} ({})", shown(*coef, Unit::Plain)))
            .collect();
        if !named.is_empty() {
            let text = format!(
                "Largest coefficients with the best penalty, means over the folds: {}.",
                named.join(", ")
            );
            report.verdict(Mood::Plain, "Which features matter", text);
        }
    }

    fn facts(&self) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (name, at) in [("best", self.best), ("one standard error", self.one_error)] {
            let Some(point) = self.points.get(at) else {
                continue;
            };
            facts.push(Fact::number(
                format!("{name}: --{}", self.strength),
                point.strength,
                Unit::Plain,
            ));
            if let Some(second) = point.second {
                let name = format!("{name}: --{}", second.name);
                facts.push(Fact::number(name, second.value, Unit::Plain));
            }
            facts.push(Fact::number(
                format!("{name}: mean {}", self.scoring),
                point.mean(),
                Unit::Plain,
            ));
        }
        facts
    }

    /// Values of the other parameter in their order, each with its points.
    fn rows(&self) -> Vec<(Option<Second>, Vec<&CvPoint>)> {
        let mut rows: Vec<(Option<Second>, Vec<&CvPoint>)> = Vec::new();
        for point in self.points {
            match rows.iter_mut().find(|(second, _)| *second == point.second) {
                Some((_, points)) => points.push(point),
                None => rows.push((point.second, vec![point])),
            }
        }
        for (_, points) in &mut rows {
            points.sort_by(|a, b| a.strength.total_cmp(&b.strength));
        }
        rows
    }

    fn axis(&self) -> Axis {
        let label = format!("--{}", self.strength);
        match self.points.iter().all(|point| point.strength > 0.0) {
            true => Axis::log(label),
            false => Axis::linear(label),
        }
    }

    fn curves(&self) -> Vec<Figure> {
        if self.points.len() < 2 {
            return self.folds().into_iter().collect();
        }
        let mut figure = Figure::new(
            "cross-validation",
            format!("Mean {} by penalty, with standard errors", self.scoring),
        )
        .summary("The mean score over the folds for each penalty; the band is one standard error.")
        .x(self.axis())
        .y(Axis::linear(format!("mean {}", self.scoring)));
        for (number, (second, points)) in self.rows().into_iter().enumerate() {
            let name = second.map_or(String::new(), |second| second.to_string());
            let interval = |point: &&CvPoint| Interval {
                at: point.strength,
                low: point.mean() - point.standard_error(),
                middle: point.mean(),
                high: point.mean() + point.standard_error(),
            };
            let middle: Vec<(f64, f64)> = points
                .iter()
                .map(|point| (point.strength, point.mean()))
                .collect();
            figure = figure
                .mark(
                    "",
                    Tone::of(number),
                    Shape::Band(points.iter().map(interval).collect()),
                )
                .line(name, Tone::of(number), middle.clone())
                .points("", Tone::of(number), middle);
        }
        let at = |point: usize| self.points[point].strength;
        figure = figure.mark("best", Tone::Fourth, Shape::Rule(at(self.best)));
        if self.one_error != self.best {
            figure = figure.mark(
                "one standard error",
                Tone::Reference,
                Shape::Rule(at(self.one_error)),
            );
        }
        vec![figure]
    }

    /// Of a single point the scores of its folds.
    fn folds(&self) -> Option<Figure> {
        let point = self.points.first()?;
        let names = (1..=point.scores.len()).map(|fold| fold.to_string());
        Some(
            Figure::new("folds", format!("{} of each fold", self.scoring))
                .summary("The score of each fold.")
                .x(Axis::categories("fold", names))
                .y(Axis::linear(self.scoring))
                .bars("", Tone::First, &point.scores),
        )
    }

    fn path_figures(&self) -> Vec<Figure> {
        if self.points.len() < 2 || self.rows().len() > 1 {
            return Vec::new();
        }
        let strengths: Vec<f64> = self.points.iter().map(|point| point.strength).collect();
        let mut figures = Vec::new();
        if !self.paths.is_empty() {
            let mut figure = Figure::new("path", "Largest coefficients by penalty")
                .summary("How coefficients shrink as the penalty grows.")
                .x(self.axis())
                .y(Axis::linear("coefficient"))
                .mark("", Tone::Reference, Shape::Level(0.0));
            for (number, (name, values)) in self.paths.iter().enumerate() {
                let mut points: Vec<(f64, f64)> = strengths
                    .iter()
                    .copied()
                    .zip(values.iter().copied())
                    .collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                figure = figure.line(name.as_str(), Tone::of(number), points);
            }
            figures.push(figure);
        }
        if self.points.iter().any(|point| !point.nonzero.is_empty()) {
            let mean = |point: &CvPoint| {
                point.nonzero.iter().sum::<usize>() as f64 / point.nonzero.len().max(1) as f64
            };
            let mut points: Vec<(f64, f64)> = self
                .points
                .iter()
                .map(|point| (point.strength, mean(point)))
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            figures.push(
                Figure::new("nonzero", "Coefficients that are not 0")
                    .summary("How many coefficients are left, mean over the folds.")
                    .x(self.axis())
                    .y(Axis::linear("coefficients"))
                    .steps("", Tone::First, points.clone())
                    .points("", Tone::First, points),
            );
        }
        figures
    }

    fn table(&self) -> Table {
        let second = self.points.iter().find_map(|point| point.second);
        let heads = [format!("--{}", self.strength)].into_iter();
        let heads = heads.chain(second.map(|second| format!("--{}", second.name)));
        let rest = [
            format!("mean {}", self.scoring),
            "deviation".into(),
            "std. error".into(),
            "worst fold".into(),
            "best fold".into(),
        ];
        let mut table = Table::new("Penalties", heads.chain(rest));
        for point in self.points {
            let number = |value: f64| Value::Number(value, Unit::Plain);
            let ends = point
                .scores
                .iter()
                .fold((f64::NAN, f64::NAN), |(a, b), s| (s.min(a), s.max(b)));
            let row = [number(point.strength)]
                .into_iter()
                .chain(point.second.map(|second| number(second.value)));
            let rest = [
                point.mean(),
                point.deviation(),
                point.standard_error(),
                ends.0,
                ends.1,
            ];
            table.rows.push(row.chain(rest.map(number)).collect());
        }
        table
    }
}
