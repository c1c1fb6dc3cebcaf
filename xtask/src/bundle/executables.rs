//! Builds and learns from cargo's messages where the executables are.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// What is wanted of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Programs.
    Program,
    /// Integration tests.
    Test,
    /// Benchmarks.
    Bench,
}

/// An executable that cargo made.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// The target's name, without cargo's hash.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    target: Option<Target>,
    #[serde(default)]
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Runs a cargo command and returns the executables of one kind.
///
/// # Errors
/// If cargo fails, or made none.
pub fn build(kind: Kind, mut command: Command) -> Result<Vec<Executable>> {
    command
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit());
    let output = command.output().context("starting cargo")?;
    ensure!(output.status.success(), "{command:?}: {}", output.status);
    let found = parse(kind, &String::from_utf8_lossy(&output.stdout));
    ensure!(!found.is_empty(), "{command:?} made no {kind:?}");
    Ok(found)
}

fn parse(kind: Kind, messages: &str) -> Vec<Executable> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter_map(|message| Some((message.target?, message.executable?)))
        .filter(|(target, _)| target.kind.iter().any(|name| name == kind.name()))
        .map(|(target, path)| Executable {
            name: target.name,
            path,
        })
        .collect()
}

impl Kind {
    /// As cargo calls it.
    fn name(self) -> &'static str {
        match self {
            Kind::Program => "bin",
            Kind::Test => "test",
            Kind::Bench => "bench",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: &str = r#"
{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"kit"},"executable":"/t/kit-1"}
{"reason":"compiler-artifact","target":{"kind":["test"],"name":"all"},"executable":"/t/all-2"}
{"reason":"compiler-artifact","target":{"kind":["test"],"name":"not_built"},"executable":null}
{"reason":"build-script-executed","package_id":"x"}
{"reason":"build-finished","success":true}
"#;

    #[test]
    fn executables_of_the_kind_are_found() {
        let all = Executable {
            name: "all".into(),
            path: "/t/all-2".into(),
        };
        assert_eq!(parse(Kind::Test, MESSAGES), [all]);
        assert!(parse(Kind::Bench, MESSAGES).is_empty());
    }
}
