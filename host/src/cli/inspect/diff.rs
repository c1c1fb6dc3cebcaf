//! How two models differ.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{flat, page, params};
use crate::cli::args::InspectArgs;
use crate::cli::exit::Exit;
use crate::cli::fitted::coefficient_name;
use crate::cli::output;
use crate::cli::report::{Listing, figure};
use crate::learning::{Classifier, Model, SavedModel};

/// A value of both models.
pub(super) struct Difference {
    pub(super) name: String,
    pub(super) first: String,
    pub(super) second: String,
}

/// A coefficient of both, by name; `None` where a model does not have it.
pub(super) struct Change {
    pub(super) name: String,
    pub(super) first: Option<f64>,
    pub(super) second: Option<f64>,
}

impl Change {
    fn size(&self) -> f64 {
        (self.first.unwrap_or(0.0) - self.second.unwrap_or(0.0)).abs()
    }
}

/// Shows what differs between two linear models.
pub(super) fn run(
    args: &InspectArgs,
    first: (&Path, SavedModel),
    second: (&Path, SavedModel),
) -> Result<Exit> {
    let (SavedModel::Linear(a), SavedModel::Linear(b)) = (&first.1, &second.1) else {
        bail!(
            "--diff: expected two linear models, found kernel ridge regression, which has no coefficients of features"
        );
    };
    let facts = facts(a, b)?;
    let mut changes = changes(a, b);
    changes.sort_by(|a, b| {
        b.size()
            .total_cmp(&a.size())
            .then_with(|| a.name.cmp(&b.name))
    });
    changes.retain(|change| change.first != change.second);
    if let Some(place) = &args.report {
        let page = page::of_difference((first.0, second.0), &facts, &changes, args.top);
        output::write_file(place, page.to_html().as_bytes())?;
    }
    if args.json {
        output::print_json(&to_json(&facts, &changes))?;
    } else {
        let head = format!("{} and {}", first.0.display(), second.0.display());
        output::print(text(&head, &facts, &changes, args.top))?;
    }
    Ok(Exit::Success)
}

/// Parameters, data and ends of the fits that differ.
fn facts(a: &Model, b: &Model) -> Result<Vec<Difference>> {
    let (a, b) = (told(a)?, told(b)?);
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let of = |side: &BTreeMap<String, String>, name| {
        side.get(name).cloned().unwrap_or_else(|| "-".to_owned())
    };
    let both = names.into_iter().map(|name| Difference {
        name: name.clone(),
        first: of(&a, name),
        second: of(&b, name),
    });
    Ok(both.filter(|fact| fact.first != fact.second).collect())
}

fn told(model: &Model) -> Result<BTreeMap<String, String>> {
    let mut all: BTreeMap<String, String> = flat(&params(model)?).into_iter().collect();
    let (report, schema) = (model.report(), model.schema());
    let mut put = |name: &str, value: String| all.insert(name.to_owned(), value);
    put("dtype", model.dtype().to_string());
    put("features", model.cols().to_string());
    put("training rows", report.rows.to_string());
    put("stored entries", report.nnz.to_string());
    put("iterations", report.n_iter.to_string());
    put("converged", model.converged().to_string());
    put("objective", figure(report.objective));
    put("solver used", report.solver.name().to_owned());
    put("device", report.device.clone());
    let classes = model.classifier().map(Classifier::classes);
    put(
        "classes",
        classes.map_or("-".to_owned(), ToString::to_string),
    );
    put(
        "format",
        schema.format.clone().unwrap_or_else(|| "-".to_owned()),
    );
    put(
        "index base",
        schema
            .index_base
            .map_or("-".to_owned(), |base| base.to_string()),
    );
    put(
        "target",
        schema.target.clone().unwrap_or_else(|| "-".to_owned()),
    );
    Ok(all)
}

/// All coefficients and intercepts of both, by what they are called.
fn changes(a: &Model, b: &Model) -> Vec<Change> {
    let (a, b) = (named(a), named(b));
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let change = |name: &String| Change {
        name: name.clone(),
        first: a.get(name).copied(),
        second: b.get(name).copied(),
    };
    names.into_iter().map(change).collect()
}

fn named(model: &Model) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    let lists = model.coef();
    for (class, (coef, intercept)) in lists.iter().zip(model.intercept()).enumerate() {
        let of = match model.classifier() {
            Some(classifier) if lists.len() > 1 => {
                format!("{}: ", classifier.classes().label(class))
            }
            _ => String::new(),
        };
        all.insert(format!("{of}intercept"), intercept);
        for (column, value) in coef.iter().enumerate() {
            all.insert(
                format!("{of}{}", coefficient_name(model.schema(), column)),
                *value,
            );
        }
    }
    all
}

fn to_json(facts: &[Difference], changes: &[Change]) -> Value {
    let fact =
        |fact: &Difference| json!({"name": fact.name, "first": fact.first, "second": fact.second});
    let change = |change: &Change| json!({"name": change.name, "first": change.first, "second": change.second});
    json!({
        "equal": facts.is_empty() && changes.is_empty(),
        "facts": facts.iter().map(fact).collect::<Vec<_>>(),
        "coefficients": changes.iter().map(change).collect::<Vec<_>>(),
    })
}

fn text(head: &str, facts: &[Difference], changes: &[Change], top: usize) -> String {
    if facts.is_empty() && changes.is_empty() {
        return format!("{head} do not differ\n");
    }
    let mut lines = Listing::new();
    for fact in facts {
        lines.line(
            &fact.name,
            format_args!("{} -> {}", fact.first, fact.second),
        );
    }
    let side = |value: Option<f64>| value.map_or("absent".to_owned(), figure);
    for change in changes.iter().take(top) {
        lines.line(
            &change.name,
            format_args!("{} -> {}", side(change.first), side(change.second)),
        );
    }
    if changes.len() > top {
        lines.line(
            "",
            format_args!("and {} smaller changes (--top)", changes.len() - top),
        );
    }
    format!("{head}\n{lines}")
}
