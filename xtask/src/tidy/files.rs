//! Sizes, and notes to oneself.

use super::Finding;
use super::source::File;

const LONGEST_FILE: usize = 500;

/// Assembled, so that this file does not find itself.
const NOTES: [&str; 4] = [
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("todo", "!("),
    concat!("unimpl", "emented!("),
];

pub fn findings(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(too_long(file));
        findings.extend(notes(file));
    }
    findings
}

fn too_long(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    (file.is_rust() && lines > LONGEST_FILE).then(|| Finding {
        file: file.path.clone(),
        line: 0,
        message: format!(
            "{lines} lines, expected at most {LONGEST_FILE}: split it by what it knows"
        ),
    })
}

fn notes(file: &File) -> Vec<Finding> {
    let noted = |line: &str| NOTES.into_iter().find(|note| line.contains(note));
    file.text
        .lines()
        .enumerate()
        .filter_map(|(index, line)| noted(line).map(|note| (index + 1, note)))
        .map(|(line, note)| Finding {
            file: file.path.clone(),
            line,
            message: format!("`{note}`: do it, or open an issue"),
        })
        .collect()
}
