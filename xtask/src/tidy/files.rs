//! Sizes, and notes to oneself.

use super::Finding;
use super::source::File;

const LONGEST_FILE: usize = 500;
const LONGEST_FUNCTION: usize = 70;

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
        if file.is_rust() {
            findings.extend(long_functions(file));
        }
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

/// Tests may be long tables. rustfmt closes a function with a brace at the indentation of its first line.
fn long_functions(file: &File) -> Vec<Finding> {
    let code = file.code();
    let lines: Vec<&str> = code.lines().collect();
    let mut findings = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(indentation) = function_starts(line) else {
            continue;
        };
        let end = format!("{}}}", " ".repeat(indentation));
        let Some(length) = lines[start..].iter().position(|line| *line == end) else {
            continue;
        };
        if length + 1 > LONGEST_FUNCTION {
            findings.push(Finding {
                file: file.path.clone(),
                line: start + 1,
                message: format!(
                    "a function of {} lines, expected at most {LONGEST_FUNCTION}: name its parts",
                    length + 1
                ),
            });
        }
    }
    findings
}

/// The indentation of a line that starts a function with a body that is not on that line.
fn function_starts(line: &str) -> Option<usize> {
    let trimmed = line.trim_start();
    let signature = trimmed.starts_with("fn ") || trimmed.contains(" fn ");
    let begins = ["fn", "pub", "const", "unsafe", "async", "extern"]
        .iter()
        .any(|word| trimmed.starts_with(word));
    let ends = trimmed.ends_with(['}', ';', ',']);
    (signature && begins && !ends).then(|| line.len() - trimmed.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(body: usize) -> File {
        let line = "        step();\n";
        File {
            path: "xtask/src/x.rs".into(),
            text: format!(
                "impl X {{\n    pub fn f(&self) {{\n{}    }}\n}}\n",
                line.repeat(body)
            ),
        }
    }

    #[test]
    fn functions_are_measured_with_their_signature_and_brace() {
        assert_eq!(long_functions(&file(68)), []);
        let found = long_functions(&file(69));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
        assert!(found[0].message.contains("71 lines"));
    }

    #[test]
    fn declarations_are_not_functions() {
        assert_eq!(function_starts("    fn name(&self) -> &str;"), None);
        assert_eq!(function_starts("pub type F = fn (u32) -> u32;"), None);
        assert_eq!(function_starts("pub(crate) fn long("), Some(0));
    }
}
