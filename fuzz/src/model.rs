//! Model files: good ones, and what becomes of their metadata.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::random::Random;

const TABLE: &str = "city,rooms,garden,price,kind\nUlm,3,yes,280,flat\nBonn,2,no,200,flat\nUlm,4,no,330,house\n\
                     Bonn,5,yes,350,house\nUlm,NA,yes,305,loft\nBonn,3,?,250,loft\n";

/// Values that a field may have instead of its own.
const VALUES: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "1",
    "3",
    "1e308",
    "4294967296",
    "18446744073709551615",
    "1152921504606846976",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[1,2]",
    "[[1]]",
    "\"csv\"",
    "{\"columns\":[]}",
    "[\"a\",\"a\"]",
    "[0,9007199254740993]",
];

/// Trains a model of each kind in `folder` and reads the files.
///
/// # Errors
/// When a fit fails, or a file cannot be read.
pub fn train(folder: &Path) -> Result<Vec<Vec<u8>>> {
    let place = |name: &str| folder.join(name).display().to_string();
    let table = place("table.csv");
    std::fs::write(&table, TABLE).context("cannot write a table")?;
    let plain = place("plain.svm");
    std::fs::write(&plain, "1 1:1 3:1\n2 2:2 3:1\n1 1:3 2:1\n2 2:4\n").context("cannot write")?;
    let fits: &[(&str, &[&str])] = &[
        (
            "table",
            &[
                "ridge",
                &table,
                "--target-column",
                "price",
                "--drop",
                "kind",
                "--missing",
                "indicator",
            ],
        ),
        (
            "classes",
            &[
                "logreg",
                &table,
                "--target-column",
                "kind",
                "--missing",
                "mean",
                "--hash",
                "8",
            ],
        ),
        ("plain", &["logreg", &plain, "--dtype", "f32"]),
        ("kernel", &["kernel-ridge", &plain]),
    ];
    let mut models = Vec::new();
    for (name, words) in fits {
        let path = place(name);
        let ends = ["--device", "cpu", "-o", &path];
        let all = ["warpfuse", "-q", "train"]
            .iter()
            .chain(*words)
            .chain(&ends);
        warpfuse::cli::main_on(all.copied());
        models.push(std::fs::read(&path).with_context(|| format!("no model {name}"))?);
    }
    let (plain, text) = (place("plain"), place("liblinear"));
    warpfuse::cli::main_on(["warpfuse", "convert", &plain, &text, "--to", "liblinear"]);
    models.push(std::fs::read(&text).context("no LIBLINEAR model")?);
    ensure!(
        models.iter().all(|model| model.len() > 50),
        "a model is too short"
    );
    Ok(models)
}

/// One of the models, with something in its metadata changed. What is no safetensors file stays as it is.
pub fn tampered(models: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let model = random.pick(models);
    let changed = (0..=random.below(2)).try_fold(model.clone(), |bytes, _| change(&bytes, random));
    changed.unwrap_or_else(|| model.clone())
}

fn change(bytes: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let length = usize::try_from(u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?)).ok()?;
    let (header, data) = bytes.get(8..)?.split_at_checked(length)?;
    let mut header: Value = serde_json::from_slice(header).ok()?;
    if random.once_in(4) {
        change_one(&mut header, random);
    } else {
        let metadata = header.get_mut("__metadata__")?.as_object_mut()?;
        let at = random.below(metadata.len());
        let (_, field) = metadata.iter_mut().nth(at)?;
        *field = Value::String(changed_text(field.as_str()?, random));
    }
    let header = header.to_string();
    let mut changed = (header.len() as u64).to_le_bytes().to_vec();
    changed.extend(header.as_bytes());
    changed.extend(data);
    if random.once_in(4) {
        let numbers = [f64::NAN, f64::INFINITY, 0.0, 1e308, -1.5];
        let at = changed.len().checked_sub(8 * (1 + random.below(3)))?;
        changed[at..at + 8].copy_from_slice(&random.pick(&numbers).to_le_bytes());
    }
    Some(changed)
}

/// A field's text, with something changed where it is JSON.
fn changed_text(text: &str, random: &mut Random) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(mut value) if !random.once_in(8) => {
            change_one(&mut value, random);
            value.to_string()
        }
        _ => random.word(VALUES).to_owned(),
    }
}

/// Walks down to some value and replaces or removes it.
fn change_one(value: &mut Value, random: &mut Random) {
    let deeper = !random.once_in(4);
    match value {
        Value::Object(fields) if deeper && !fields.is_empty() => {
            let at = random.below(fields.len());
            let name = fields.keys().nth(at).cloned().unwrap_or_default();
            if random.once_in(6) {
                fields.remove(&name);
            } else if let Some(field) = fields.get_mut(&name) {
                change_one(field, random);
            }
        }
        Value::Array(items) if deeper && !items.is_empty() => {
            let at = random.below(items.len());
            match random.below(4) {
                0 => drop(items.remove(at)),
                1 => items.push(items[at].clone()),
                _ => change_one(&mut items[at], random),
            }
        }
        other => *other = serde_json::from_str(random.word(VALUES)).unwrap_or(Value::Null),
    }
}
