//! From a file's text.

use std::str::{FromStr, Lines};

use super::{LiblinearError, LiblinearModel, SolverType, Task, decisions};

/// What stands before the weights.
struct Header {
    solver: SolverType,
    labels: Vec<i32>,
    decisions: usize,
    features: usize,
    bias: f64,
}

/// Lines with their numbers.
struct Reader<'a> {
    lines: Lines<'a>,
    line: usize,
}

impl LiblinearModel {
    /// Reads a model from a file's text.
    ///
    /// Labels are sorted, and with two classes the decision function is turned to the larger one; a constant
    /// feature `bias` becomes the intercept.
    ///
    /// # Errors
    /// [`LiblinearError::Syntax`] with the line that breaks the format, [`LiblinearError::Unsupported`] for
    /// one-class machines.
    pub fn of_text(text: &str) -> Result<Self, LiblinearError> {
        let mut reader = Reader {
            lines: text.lines(),
            line: 0,
        };
        let header = reader.header()?;
        let mut coef = vec![Vec::new(); header.decisions];
        for _ in 0..header.features {
            let row = reader.weights(header.decisions)?;
            coef.iter_mut().zip(row).for_each(|(coef, w)| coef.push(w));
        }
        let intercept = if header.bias >= 0.0 {
            let row = reader.weights(header.decisions)?;
            let products: Vec<f64> = row.into_iter().map(|w| w * header.bias).collect();
            match products.iter().find(|product| !product.is_finite()) {
                Some(product) => {
                    let expected =
                        "weights of the constant feature whose products with bias are finite";
                    return Err(reader.fault(expected, &product.to_string()));
                }
                None => products,
            }
        } else {
            vec![0.0; header.decisions]
        };
        reader.end()?;
        Ok(sorted(header.solver, header.labels, coef, intercept))
    }
}

/// Labels in ascending order, with their decision functions.
fn sorted(
    solver: SolverType,
    labels: Vec<i32>,
    mut coef: Vec<Vec<f64>>,
    mut intercept: Vec<f64>,
) -> LiblinearModel {
    let mut order: Vec<usize> = (0..labels.len()).collect();
    order.sort_by_key(|class| labels[*class]);
    if labels.len() == 2 && coef.len() == 1 {
        // The file's function is positive for its first label.
        if order == [0, 1] {
            coef[0].iter_mut().for_each(|w| *w = -*w);
            intercept[0] = -intercept[0];
        }
    } else if coef.len() == labels.len() {
        coef = order
            .iter()
            .map(|class| std::mem::take(&mut coef[*class]))
            .collect();
        intercept = order.iter().map(|class| intercept[*class]).collect();
    }
    LiblinearModel {
        solver,
        labels: order.into_iter().map(|class| labels[class]).collect(),
        coef,
        intercept,
    }
}

impl<'a> Reader<'a> {
    fn header(&mut self) -> Result<Header, LiblinearError> {
        let (mut solver, mut classes, mut labels) = (None, None, Vec::new());
        let (mut features, mut bias) = (None, None);
        loop {
            let line = self.next("a header line, or `w`")?;
            let (key, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            match key {
                "solver_type" => solver = Some(self.solver(rest.trim())?),
                "nr_class" => classes = Some(self.number::<usize>(rest, "a number of classes")?),
                "nr_feature" => {
                    features = Some(self.number::<usize>(rest, "a number of features")?)
                }
                "bias" => bias = Some(self.bias(rest)?),
                "label" => {
                    let words = rest.split_whitespace();
                    labels = words
                        .map(|word| self.number(word, "labels that are whole numbers"))
                        .collect::<Result<_, _>>()?;
                }
                "w" => break,
                _ => {
                    return Err(
                        self.fault("solver_type, nr_class, label, nr_feature, bias or w", line)
                    );
                }
            }
        }
        let missing = |what: &str| self.fault(what, "w");
        let solver = solver.ok_or_else(|| missing("a line solver_type before"))?;
        let classes = classes.ok_or_else(|| missing("a line nr_class before"))?;
        let features = features.ok_or_else(|| missing("a line nr_feature before"))?;
        let regression = solver.task() == Task::Regression;
        let decisions = if regression {
            1
        } else {
            decisions(solver, classes)
        };
        self.check_classes(regression, classes, &labels)?;
        Ok(Header {
            solver,
            labels,
            decisions,
            features,
            bias: bias.ok_or_else(|| missing("a line bias before"))?,
        })
    }

    fn check_classes(
        &self,
        regression: bool,
        classes: usize,
        labels: &[i32],
    ) -> Result<(), LiblinearError> {
        let mut distinct = labels.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let found = format!("{} labels", labels.len());
        if regression {
            return match labels {
                [] => Ok(()),
                _ => Err(self.fault("no labels before, in a regression", &found)),
            };
        }
        if classes < 2 || labels.len() != classes || distinct.len() != classes {
            let expected = format!("{} different labels before", classes.max(2));
            return Err(self.fault(&expected, &found));
        }
        Ok(())
    }

    fn solver(&self, name: &str) -> Result<SolverType, LiblinearError> {
        if name == "ONECLASS_SVM" {
            return Err(LiblinearError::Unsupported {
                expected: "classification or regression",
                found: name.into(),
            });
        }
        SolverType::of_name(name).ok_or_else(|| self.fault("a solver type such as L2R_LR", name))
    }

    fn weights(&mut self, count: usize) -> Result<Vec<f64>, LiblinearError> {
        let expected = format!("{count} finite weights");
        let line = self.next(&expected)?;
        let words = line.split_whitespace();
        let weights: Vec<f64> = words
            .map(|word| self.number(word, &expected))
            .collect::<Result<_, _>>()?;
        if weights.len() != count || weights.iter().any(|w| !w.is_finite()) {
            return Err(self.fault(&expected, line));
        }
        Ok(weights)
    }

    fn end(&mut self) -> Result<(), LiblinearError> {
        match self.lines.find(|line| !line.trim().is_empty()) {
            None => Ok(()),
            Some(line) => Err(self.fault("the end of the file after the weights", line)),
        }
    }

    fn next(&mut self, expected: &str) -> Result<&'a str, LiblinearError> {
        self.line += 1;
        let line = self.lines.next();
        line.ok_or_else(|| self.fault(expected, "the end of the file"))
    }

    fn number<N: FromStr>(&self, text: &str, expected: &str) -> Result<N, LiblinearError> {
        let text = text.trim();
        text.parse().map_err(|_| self.fault(expected, text))
    }

    fn bias(&self, text: &str) -> Result<f64, LiblinearError> {
        let expected = "the constant feature, a finite number, or -1";
        let bias = self.number::<f64>(text, expected)?;
        match bias.is_finite() {
            true => Ok(bias),
            false => Err(self.fault(expected, text)),
        }
    }

    fn fault(&self, expected: &str, found: &str) -> LiblinearError {
        LiblinearError::Syntax {
            line: self.line,
            expected: expected.into(),
            found: found.chars().take(40).collect(),
        }
    }
}
