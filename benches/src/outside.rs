//! Times of peers that another program measured in the same session, such as those of `peers/conv2d.py`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::case::Case;

/// Lines of a file, each with the cases that it stands beside.
#[derive(Clone, Debug, Default)]
pub struct Outside(Vec<Line>);

/// Times beside all cases of the works and types that agree in everything that `over` names.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    family: String,
    over: Map<String, Value>,
    works: Vec<String>,
    dtypes: Vec<String>,
    peers: BTreeMap<String, f64>,
}

impl Outside {
    /// Reads JSON lines.
    ///
    /// # Errors
    /// When the file cannot be read, or with the number of a line that is not of peers.
    pub fn read(path: &Path) -> Result<Outside> {
        let text =
            fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Outside::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    fn parse(text: &str) -> Result<Outside> {
        let lines = text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let lines = lines
            .map(|(i, line)| serde_json::from_str(line).with_context(|| format!("line {}", i + 1)));
        Ok(Outside(lines.collect::<Result<_>>()?))
    }

    /// Median microseconds by peer.
    pub fn beside(&self, case: &Case) -> BTreeMap<String, f64> {
        let Ok(Value::Object(fields)) = serde_json::to_value(case) else {
            return BTreeMap::new();
        };
        let dtype = case.dtype.to_string();
        let stands = |line: &&Line| {
            line.family == case.family
                && line.works.iter().any(|work| work == case.work)
                && line.dtypes.contains(&dtype)
                && line
                    .over
                    .iter()
                    .all(|(name, value)| fields.get(name) == Some(value))
        };
        let lines = self.0.iter().filter(stands);
        lines.flat_map(|line| line.peers.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::{Numbers, SEED};
    use crate::shape::Shape;

    #[test]
    fn lines_stand_beside_the_cases_that_they_name() {
        let line = |over: &str, dtype: &str, us: f64| {
            format!(
                r#"{{"family":"sparse_conv","over":{over},"works":["layer"],"dtypes":["{dtype}"],"peers":{{"p{us}":{us}}}}}"#
            )
        };
        let lines = [
            line(r#"{"layout":"layer","batch":1}"#, "f32", 1.0),
            line(r#"{"layout":"layer","batch":1,"permille":50}"#, "f32", 2.0),
            line(r#"{"layout":"layer","batch":16}"#, "f32", 3.0),
            line(r#"{"layout":"layer","batch":1}"#, "i8", 4.0),
        ];
        let outside = Outside::parse(&lines.join("\n")).expect("lines");
        let of = |work, permille| {
            let shape = Shape::Layer {
                batch: 1,
                channels: 3,
                filters: 4,
                side: 5,
                kernel: 3,
                permille,
            };
            let dtype = Numbers::Named("f32");
            let (family, seed) = ("sparse_conv", SEED);
            let case = Case {
                family,
                work,
                shape,
                dtype,
                seed,
            };
            outside.beside(&case).into_values().collect::<Vec<f64>>()
        };
        assert_eq!(of("layer", 50), [1.0, 2.0]);
        assert_eq!(of("layer", 100), [1.0]);
        assert!(of("drawn", 50).is_empty());
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = Outside::parse("\n{}").expect_err("no line of peers");
        assert!(format!("{error:#}").starts_with("line 2"), "{error:#}");
    }
}
