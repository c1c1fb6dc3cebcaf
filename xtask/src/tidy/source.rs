//! The files that the rules look at, and their text without comments, strings and tests.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A text file of the workspace.
#[derive(Debug)]
pub struct File {
    /// Its path from the root, with forward slashes.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// What is not ours, or not source.
const SKIPPED: [&str; 3] = ["target", ".git", "results"];
const ENDINGS: [&str; 5] = [".rs", ".toml", ".md", ".sh", ".ci/run"];

/// Every source file below `root`, in a fixed order.
///
/// # Errors
/// If a folder or a file cannot be read.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<File>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            if !SKIPPED.contains(&name.as_ref()) {
                collect(root, &path, files)?;
            }
            continue;
        }
        let relative = path.strip_prefix(root).unwrap_or(&path);
        let relative = relative.to_string_lossy().replace('\\', "/");
        if ENDINGS.iter().any(|ending| relative.ends_with(ending)) {
            let text =
                fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            files.push(File {
                path: relative,
                text,
            });
        }
    }
    Ok(())
}

impl File {
    /// Whether this is Rust.
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The code that ends up in the library: comments and the contents of strings are blanked, test modules
    /// at the end are cut off. Lines keep their numbers.
    pub fn code(&self) -> String {
        if self.is_test() {
            return String::new();
        }
        let blanked = blank_comments_and_strings(&self.text);
        match test_module(&blanked) {
            Some(start) => blanked[..start].to_owned(),
            None => blanked,
        }
    }

    fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }
}

/// Where the test module starts, by this house's convention the end of the library's code.
fn test_module(code: &str) -> Option<usize> {
    const ATTRIBUTES: [&str; 2] = ["#[cfg(test)]", "#[cfg(all(test"];
    ATTRIBUTES
        .iter()
        .flat_map(|attribute| code.match_indices(attribute))
        .map(|(start, _)| start)
        .filter(|&start| {
            let after = code[start..].split_once('\n').map_or("", |(_, rest)| rest);
            after.trim_start().starts_with("mod ")
        })
        .min()
}

/// Replaces comments and the contents of string literals by blanks; newlines stay.
fn blank_comments_and_strings(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = literal(rest, out.chars().next_back()) {
            length
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
        out.extend(rest[..length].chars().map(blank));
        rest = &rest[length..];
    }
    out
}

/// The length of the string or character literal that `rest` starts with.
fn literal(rest: &str, before: Option<char>) -> Option<usize> {
    if rest.starts_with('"') {
        return Some(quoted(rest, '"'));
    }
    // `'a'` and `'\n'` are characters, `'a` is a lifetime.
    if rest.starts_with("'\\") || (rest.starts_with('\'') && rest.chars().nth(2) == Some('\'')) {
        return Some(quoted(rest, '\''));
    }
    let continues_a_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if rest.starts_with('r') && !continues_a_name {
        let hashes = rest[1..].chars().take_while(|&c| c == '#').count();
        if rest[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 2 + hashes;
            return Some(
                rest[body..]
                    .find(&end)
                    .map_or(rest.len(), |at| body + at + end.len()),
            );
        }
    }
    None
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// The line of a position, counted from 1.
pub fn line_of(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        File {
            path: "host/src/x.rs".into(),
            text: text.into(),
        }
        .code()
    }

    #[test]
    fn comments_and_strings_are_blanked_and_lines_stay() {
        let text = "a // crate::io\n/* crate::io\n */ b \"crate::io\\\" x\" c r#\"crate::io \"x\"# d '\"' e";
        let code = code(text);
        assert!(!code.contains("io"), "{code}");
        assert_eq!(code.matches('\n').count(), 2);
        for name in ["a", "b", "c", "d", "e"] {
            assert!(code.contains(name), "{name} is gone from {code}");
        }
    }

    #[test]
    fn lifetimes_are_not_strings() {
        assert_eq!(code("fn f<'a>(x: &'a str) {}"), "fn f<'a>(x: &'a str) {}");
    }

    #[test]
    fn test_modules_are_cut_off_and_test_items_are_not() {
        let text = "#[cfg(test)]\nuse a;\nfn b() {}\n#[cfg(test)]\nmod tests { c }";
        let code = code(text);
        assert!(code.contains("b()"));
        assert!(!code.contains('c') || !code.contains("{ c }"));
    }

    #[test]
    fn lines_count_from_one() {
        assert_eq!(line_of("a\nb", 0), 1);
        assert_eq!(line_of("a\nb", 2), 2);
    }
}
