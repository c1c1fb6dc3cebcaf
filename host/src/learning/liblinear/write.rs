//! To a file's text.

use std::fmt::Write as _;

use super::{LiblinearError, LiblinearModel, Task, decisions};

impl LiblinearModel {
    /// The text of a file, with the shortest decimals that read back as the same numbers.
    ///
    /// An intercept is written as the weight of a constant feature 1 (`bias 1`). With two classes the larger
    /// label comes first, so that the decision function keeps its sign.
    ///
    /// # Errors
    /// [`LiblinearError::Unsupported`] where the parts do not fit each other or weights are not finite.
    pub fn to_text(&self) -> Result<String, LiblinearError> {
        self.check()?;
        let mut text = format!("solver_type {}\n", self.solver.name());
        let regression = self.solver.task() == Task::Regression;
        let classes = if regression { 2 } else { self.labels.len() };
        let _ = writeln!(text, "nr_class {classes}");
        if !regression {
            let labels: Vec<String> = self.labels.iter().map(i32::to_string).collect();
            let labels = match labels.as_slice() {
                [small, large] if self.coef.len() == 1 => format!("{large} {small}"),
                labels => labels.join(" "),
            };
            let _ = writeln!(text, "label {labels}");
        }
        let bias = if self.intercept.iter().any(|b| *b != 0.0) {
            1
        } else {
            -1
        };
        let _ = writeln!(text, "nr_feature {}\nbias {bias}\nw", self.features());
        for feature in 0..self.features() {
            line(&mut text, self.coef.iter().map(|coef| coef[feature]));
        }
        if bias == 1 {
            line(&mut text, self.intercept.iter().copied());
        }
        Ok(text)
    }

    fn check(&self) -> Result<(), LiblinearError> {
        let unsupported =
            |expected, found: String| Err(LiblinearError::Unsupported { expected, found });
        let regression = self.solver.task() == Task::Regression;
        let wanted = if regression {
            1
        } else {
            decisions(self.solver, self.labels.len())
        };
        if regression != self.labels.is_empty() || self.labels.len() == 1 {
            return unsupported(
                "labels of two classes or more, or a regression without",
                format!("{} labels", self.labels.len()),
            );
        }
        if self.coef.len() != wanted || self.intercept.len() != wanted {
            return unsupported(
                "one decision function for two classes, else one per class",
                format!(
                    "{} and {} intercepts",
                    self.coef.len(),
                    self.intercept.len()
                ),
            );
        }
        let features = self.features();
        let mut weights = self.coef.iter().flatten().chain(&self.intercept);
        if self.coef.iter().any(|coef| coef.len() != features) {
            return unsupported(
                "coefficients of equal number",
                "lists of different lengths".into(),
            );
        }
        match weights.find(|w| !w.is_finite()) {
            Some(w) => unsupported("finite weights", w.to_string()),
            None => Ok(()),
        }
    }
}

/// Writing to a String cannot fail.
fn line(text: &mut String, weights: impl Iterator<Item = f64>) {
    for weight in weights {
        let _ = write!(text, "{weight:?} ");
    }
    text.push('\n');
}
