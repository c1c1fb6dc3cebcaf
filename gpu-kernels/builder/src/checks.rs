//! Reads PTX text: which kernels it offers, and which functions it calls without defining them.

use std::collections::BTreeSet;

use crate::{Arch, BuildError};

/// The names of all kernels of a PTX text, in its order.
///
/// ```
/// let ptx = ".visible .entry axpy(\n.param .u32 a\n)\n{ ret; }";
/// assert_eq!(gpu_kernels_builder::entries(ptx), ["axpy"]);
/// ```
pub fn entries(ptx: &str) -> Vec<&str> {
    code_lines(ptx)
        .filter_map(|line| line.split_once(".entry"))
        .map(|(_, rest)| identifier(rest))
        .filter(|name| !name.is_empty())
        .collect()
}

/// Functions that the text declares as external: the driver would refuse to load it.
pub fn unresolved_functions(ptx: &str) -> Vec<&str> {
    code_lines(ptx)
        .filter_map(|line| line.trim_start().strip_prefix(".extern .func"))
        .map(|rest| identifier(after_result(rest)))
        .collect()
}

/// Refuses an image without an expected kernel.
pub(crate) fn require<'a>(
    found: &[&str],
    arch: Arch,
    expected: impl IntoIterator<Item = &'a str>,
) -> Result<(), BuildError> {
    let present: BTreeSet<&str> = found.iter().copied().collect();
    let missing: Vec<String> = expected
        .into_iter()
        .filter(|name| !present.contains(name))
        .map(String::from)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(BuildError::MissingEntries {
        arch,
        found: found.len(),
        missing,
    })
}

/// Refuses a text that calls what it does not define.
pub(crate) fn check(ptx: &str, arch: Arch) -> Result<(), BuildError> {
    let functions = unresolved_functions(ptx);
    if functions.is_empty() {
        return Ok(());
    }
    Err(BuildError::Unresolved {
        arch,
        functions: functions.into_iter().map(String::from).collect(),
    })
}

/// Lines without their comments: names in comments are not entries.
fn code_lines(ptx: &str) -> impl Iterator<Item = &str> {
    ptx.lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
}

/// Skips a result in parentheses: `(.param .b32 r) name`.
fn after_result(text: &str) -> &str {
    let text = text.trim_start();
    match text.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or("", |(_, name)| name),
        None => text,
    }
}

fn identifier(text: &str) -> &str {
    let text = text.trim_start();
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || "_$%".contains(c)))
        .unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTX: &str = "\
.version 8.6
.target sm_90
.extern .shared .align 16 .b8 dynsmem[];
.extern .func  (.param .b32 func_retval0) _ZN4core3fmt5write17h0E
(
\t.param .b64 p0
)
;
.extern .func abort
.func inner(.param .b64 q) { ret; }
\t// .globl\tcommented .entry nothing(
.visible .entry fused_f32_v8(
\t.param .u32 m
)
.visible .entry second () .maxntid 256
{ ret; }
";

    #[test]
    fn entries_are_found_in_order_and_comments_are_not() {
        assert_eq!(entries(PTX), ["fused_f32_v8", "second"]);
    }

    #[test]
    fn external_functions_are_found_and_shared_memory_is_not_one() {
        assert_eq!(
            unresolved_functions(PTX),
            ["_ZN4core3fmt5write17h0E", "abort"]
        );
    }

    #[test]
    fn an_empty_text_has_nothing() {
        assert!(entries("").is_empty());
        assert!(unresolved_functions("").is_empty());
    }

    #[test]
    fn unresolved_calls_and_missing_entries_are_errors() {
        let extern_call = ".extern .func memcpy\n.visible .entry a()\n{ ret; }";
        let error = check(extern_call, Arch::Sm80).expect_err("unresolved");
        assert!(error.to_string().contains("memcpy"), "{error}");
        assert!(check(".visible .entry a()\n{ ret; }", Arch::Sm80).is_ok());

        let error = require(&["a"], Arch::Sm80, ["a", "b"]).expect_err("b is missing");
        assert!(
            error.to_string().contains("lacks 1 expected ones: b"),
            "{error}"
        );
        assert!(require(&["a"], Arch::Sm80, ["a"]).is_ok());
    }
}
