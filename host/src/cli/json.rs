//! JSON of many numbers, written by all threads: a model of a million columns has 20 MB of coefficients, which take one thread
//! 0.1 s.

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use crate::parallel;

/// Numbers that one task writes.
const NUMBERS: usize = 1 << 13;

/// A list of numbers; those that are not finite are `null`.
pub(super) fn numbers(values: &[f64]) -> String {
    let of_chunk = |number| {
        let chunk = parallel::chunk(values, NUMBERS, number);
        let text = serde_json::to_string(chunk).expect("numbers are JSON");
        text[1..text.len() - 1].to_owned()
    };
    list(parallel::map(values.len().div_ceil(NUMBERS), of_chunk))
}

/// A list of elements that are JSON already.
pub(super) fn list(elements: impl IntoIterator<Item = String>) -> String {
    let elements: Vec<String> = elements.into_iter().collect();
    format!("[{}]", elements.join(","))
}

/// An object of `members` and another one that is JSON already, in the order of their names.
///
/// # Errors
/// When a member cannot be written as JSON.
pub(super) fn object(members: Map<String, Value>, (name, text): (&str, String)) -> Result<String> {
    let mut all = vec![(name.to_owned(), text)];
    for (name, value) in members {
        let text = serde_json::to_string(&value);
        all.push((name, text.context("cannot write the result as JSON")?));
    }
    all.sort_unstable();
    let members = all.into_iter();
    let members: Vec<String> = members
        .map(|(name, text)| format!("{}:{text}", Value::from(name)))
        .collect();
    Ok(format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_is_that_of_one_thread() {
        let number = |i: usize| [1.0 / i as f64, f64::NAN, -0.0, 1e300, i as f64][i % 5];
        for count in [0, 1, NUMBERS, 3 * NUMBERS + 7] {
            let values: Vec<f64> = (0..count).map(number).collect();
            assert_eq!(numbers(&values), json!(values).to_string());
            let members = json!({ "a": [1], "b\"": null, "z": { "y": "x" } });
            let Value::Object(mut all) = members.clone() else {
                unreachable!("made above");
            };
            let text = object(all.clone(), ("coef", numbers(&values))).expect("it is JSON");
            all.insert("coef".to_owned(), json!(values));
            assert_eq!(text, Value::Object(all).to_string());
        }
    }
}
