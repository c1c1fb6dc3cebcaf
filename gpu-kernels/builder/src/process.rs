//! Running other programs and keeping what they say.

use std::ffi::OsStr;
use std::process::{Command, Output, Stdio};

use crate::BuildError;

/// Runs a command to its end with its output captured.
pub(crate) fn capture(command: &mut Command) -> Result<Output, BuildError> {
    command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| BuildError::Start {
            program: command.get_program().to_string_lossy().into_owned(),
            source,
        })
}

/// The command with the variables it sets, as one could type it.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?;
        // Separators of CARGO_ENCODED_RUSTFLAGS are control characters; nobody could type them.
        let value = value.to_string_lossy().replace('\x1f', " ");
        Some(format!("{}={}", name.to_string_lossy(), quoted(&value)))
    });
    let words = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| quoted(&OsStr::to_string_lossy(word)));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Standard output and standard error together, without the surrounding blanks.
pub(crate) fn everything_said(output: &Output) -> String {
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    text.trim().to_owned()
}

/// The last lines of a long output, for an error message.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<_> = text.trim().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Tells the person at the terminal what is going on (cargo hides it in build scripts that succeed).
pub(crate) fn say(line: &str) {
    eprintln!("[ptx] {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_commands_can_be_typed() {
        let mut command = Command::new("cargo");
        command.args(["rustc", "a b", ""]).env("RUSTC", "/x/rustc");
        assert_eq!(shown(&command), "RUSTC=/x/rustc cargo rustc 'a b' ''");
    }

    #[test]
    fn the_tail_is_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc");
        assert_eq!(tail("a", 5), "a");
    }
}
