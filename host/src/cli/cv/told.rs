//! What is said of a comparison: JSON for programs, a table for people.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::Compared;
use crate::cli::pages;
use crate::cli::report::{figure, indented, number, plain_table};
use crate::cli::trainers::Penalised;
use crate::report::Second;

impl Compared<'_> {
    /// One object.
    ///
    /// # Errors
    /// When the details of a page cannot be written.
    pub(super) fn to_json(&self) -> Result<Value> {
        let compared = self.compared();
        let point = |index: usize| {
            let (scores, point) = (self.scores(index), &self.found[index]);
            let mut all = self.named(self.points[index]);
            all.extend(object(json!({
                "mean_score": mean(&scores),
                "std_score": deviation(&scores),
                "standard_error": compared[index].standard_error(),
                "nonzero": point.nonzero,
                "scores": scores,
                "folds": point.folds,
                "n_iter": point.n_iter,
                "converged": point.converged,
            })));
            Value::Object(all)
        };
        let (best, one_error) = self.choice();
        let chosen = |index: usize| {
            let mut chosen = self.named(self.points[index]);
            chosen.extend(object(json!({ "mean_score": self.mean(index) })));
            chosen
        };
        let mut all = object(json!({
            "model": self.job.name,
            "scoring": self.scoring(),
            "path": (0..self.points.len()).map(point).collect::<Vec<_>>(),
            "best": self.has_best().then(|| chosen(best)),
            "one_standard_error": self.has_best().then(|| chosen(one_error)),
            "coefficient_paths": self.paths(),
            "seed": self.args.seed,
            "saved": self.job.outcome.output,
        }));
        if let Some(details) = &self.details {
            pages::extend(&mut all, details)?;
        }
        Ok(Value::Object(all))
    }

    fn named(&self, point: Penalised) -> Map<String, Value> {
        let mut all = Map::new();
        all.insert(self.job.own.strength().0.to_owned(), json!(point.strength));
        if let Some(Second { name, value }) = point.second {
            all.insert(name.replace('-', "_"), json!(value));
        }
        all
    }

    /// A row for each point, and the best one as it is typed.
    pub(super) fn table(&self) -> String {
        let name = self.job.own.strength().0;
        let mut rows = plain_table();
        let second = self.points.iter().find_map(|point| point.second);
        let score = format!("mean {}", self.scoring());
        let heads = [name.to_owned()].into_iter();
        let heads = heads.chain(second.map(|second| second.name.to_owned()));
        rows.set_header(heads.chain([score, "deviation".into(), "iterations".into()]));
        for (index, point) in self.points.iter().enumerate() {
            let scores = self.scores(index);
            let cells = [number(short(point.strength))].into_iter();
            let cells = cells.chain(point.second.map(|second| number(second.value)));
            rows.add_row(cells.chain([
                number(figure(mean(&scores))),
                number(figure(deviation(&scores))),
                number(iterations(&self.found[index].n_iter)),
            ]));
        }
        let mut text = format!("{}, {} folds\n", self.job.own.title(), self.args.folds);
        text.push_str(&indented(&rows));
        if !self.has_best() {
            text.push_str("best: none\n");
            return text;
        }
        let best = self.points[self.best()];
        // Writing to a String cannot fail.
        let _ = write!(text, "best: --{name} {}", best.strength);
        if let Some(second) = best.second {
            let _ = write!(text, " {second}");
        }
        text.push('\n');
        if let Some(path) = &self.job.outcome.output {
            let _ = writeln!(text, "saved: {}, fitted to all rows", path.display());
        }
        text
    }
}

/// Numbers that were typed as they are; computed ones in a few digits.
fn short(strength: f64) -> String {
    let typed = strength.to_string();
    match typed.len() {
        0..=8 => typed,
        _ => format!("{strength:.4e}"),
    }
}

/// Folds whose iterations a row has room for.
const FEW_FOLDS: usize = 10;

/// Of each fold; of many the least and the most.
fn iterations(n_iter: &[usize]) -> String {
    if n_iter.len() <= FEW_FOLDS {
        let each: Vec<String> = n_iter.iter().map(usize::to_string).collect();
        return each.join(" ");
    }
    let (least, most) = (n_iter.iter().min(), n_iter.iter().max());
    format!("{} to {}", least.unwrap_or(&0), most.unwrap_or(&0))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

pub(super) fn mean(scores: &[f64]) -> f64 {
    scores.iter().sum::<f64>() / scores.len() as f64
}

fn deviation(scores: &[f64]) -> f64 {
    let middle = mean(scores);
    let squares = scores.iter().map(|score| (score - middle).powi(2));
    (squares.sum::<f64>() / scores.len() as f64).sqrt()
}
