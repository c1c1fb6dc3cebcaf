//! Tight solutions of scikit-learn and statsmodels on the data sets that scikit-learn bundles.
//!
//! `tests/data/learning/generate.py` wrote them and names the sources of the data.

use anyhow::{Context, Result};
use ndarray::Array2;
use serde_json::Value;

/// A data set with solutions.
#[derive(Debug, Clone)]
pub struct Fixture {
    /// Its name.
    pub name: &'static str,
    /// m × n features.
    pub x: Array2<f64>,
    /// m targets or classes.
    pub y: Vec<f64>,
    /// Solutions.
    pub cases: Vec<Case>,
}

/// One estimator with its parameters, and what it should find.
#[derive(Debug, Clone)]
pub struct Case {
    /// `logreg`, `svc`, `svr`, `ridge`, `lasso`, `elasticnet` or `glm`.
    pub estimator: String,
    /// Parameters by name.
    pub parameters: Value,
    /// Coefficients, one list per class or one.
    pub coef: Vec<Vec<f64>>,
    /// One intercept per list.
    pub intercept: Vec<f64>,
    /// The objective, scaled as scikit-learn documents it.
    pub objective: f64,
}

impl Case {
    /// A parameter that is a number; 0 when it is not given.
    pub fn number(&self, name: &str) -> f64 {
        self.parameters[name].as_f64().unwrap_or(0.0)
    }

    /// A parameter that is a word; empty when it is not given.
    pub fn word(&self, name: &str) -> &str {
        self.parameters[name].as_str().unwrap_or("")
    }

    /// A parameter that is true or false.
    pub fn flag(&self, name: &str, absent: bool) -> bool {
        self.parameters[name].as_bool().unwrap_or(absent)
    }

    /// Weights of `rows` rows, where the case has any.
    pub fn weights(&self, rows: usize) -> Option<Vec<f64>> {
        let weight = |row: usize| 0.5 + (row % 5) as f64 / 4.0;
        self.flag("weighted", false)
            .then(|| (0..rows).map(weight).collect())
    }
}

macro_rules! files {
    ($($name:literal),*) => {
        // In the program, so that it runs on a machine without the repository.
        const FILES: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../data/learning/", $name, ".json")))),*
        ];
    };
}

files!(
    "breast_cancer",
    "breast_cancer_raw",
    "breast_cancer_few",
    "wine",
    "iris",
    "digits",
    "diabetes",
    "diabetes_few",
    "diabetes_one",
    "linnerud_weight",
    "linnerud_waist",
    "linnerud_pulse"
);

/// Names of the data sets.
pub fn names() -> Vec<&'static str> {
    FILES.iter().map(|(name, _)| *name).collect()
}

/// The data set of that name.
///
/// # Errors
/// When there is none, or its file is not as it was written.
pub fn fixture(name: &str) -> Result<Fixture> {
    let (name, text) = FILES
        .iter()
        .find(|(own, _)| *own == name)
        .with_context(|| format!("no data set {name}"))?;
    let file: Value = serde_json::from_str(text)?;
    let rows = table(&file["x"])?;
    let shape = (rows.len(), rows.first().map_or(0, Vec::len));
    let x = Array2::from_shape_vec(shape, rows.concat())?;
    let cases = file["cases"].as_array().context("cases")?;
    Ok(Fixture {
        name,
        x,
        y: list(&file["y"])?,
        cases: cases.iter().map(case).collect::<Result<_>>()?,
    })
}

fn case(case: &Value) -> Result<Case> {
    Ok(Case {
        estimator: case["estimator"].as_str().context("a name")?.to_owned(),
        parameters: case["parameters"].clone(),
        coef: table(&case["coef"])?,
        intercept: list(&case["intercept"])?,
        objective: case["objective"].as_f64().context("an objective")?,
    })
}

fn table(value: &Value) -> Result<Vec<Vec<f64>>> {
    let rows = value.as_array().context("a table")?;
    rows.iter().map(list).collect()
}

fn list(value: &Value) -> Result<Vec<f64>> {
    let numbers = value.as_array().context("a list")?;
    numbers
        .iter()
        .map(|number| number.as_f64().context("a number"))
        .collect()
}
