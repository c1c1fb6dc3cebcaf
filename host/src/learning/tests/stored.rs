//! Data and results of other libraries, as `tests/data/learning` keeps them.

use std::path::Path;

use serde_json::Value;

/// A file of the folder.
pub(in crate::learning) fn json(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/learning");
    let text = std::fs::read_to_string(folder.join(name)).expect("the data of the learning tests");
    serde_json::from_str(&text).expect("JSON")
}

/// A list of numbers.
pub(in crate::learning) fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("numbers")
        .iter()
        .map(|v| v.as_f64().expect("a number"))
        .collect()
}
