//! Reads PTX text: which kernels it offers, and which functions it calls without defining them.

use std::collections::BTreeSet;

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

/// The expected names that are not among the entries.
pub(crate) fn missing_entries(ptx: &str, expected: &[String]) -> Vec<String> {
    let present: BTreeSet<_> = entries(ptx).into_iter().collect();
    expected
        .iter()
        .filter(|name| !present.contains(name.as_str()))
        .cloned()
        .collect()
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
    fn only_absent_names_are_missing() {
        let expected = ["second", "fused_f32_v16", "fused_f32"].map(String::from);
        assert_eq!(
            missing_entries(PTX, &expected),
            ["fused_f32_v16", "fused_f32"]
        );
    }

    #[test]
    fn an_empty_text_has_nothing() {
        assert!(entries("").is_empty());
        assert!(unresolved_functions("").is_empty());
    }
}
