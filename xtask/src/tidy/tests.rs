//! The rules on small trees of files: one that keeps them all, and ones that break a rule each.

use super::source::File;
use super::*;

/// A tree that no rule has anything against.
fn green() -> Vec<(&'static str, String)> {
    let mut tree: Vec<(&'static str, String)> = families::expected()
        .map(|path| (&*path.leak(), "//! A file.\n".to_owned()))
        .collect();
    tree.push((
        "host/src/cli/mod.rs",
        "use crate::{io, learning::Linear};\nuse crate::device::Device;\n".into(),
    ));
    tree
}

fn check(tree: Vec<(&'static str, String)>) -> Vec<String> {
    let files: Vec<File> = tree
        .into_iter()
        .map(|(path, text)| File {
            path: path.into(),
            text,
        })
        .collect();
    files::findings(&files)
        .into_iter()
        .chain(arrows::findings(&files))
        .chain(rooms::findings(&files))
        .chain(families::findings(&files))
        .map(|finding| finding.to_string())
        .collect()
}

/// The green tree with one more file.
fn with(path: &'static str, text: &str) -> Vec<String> {
    let mut tree = green();
    tree.push((path, text.to_owned()));
    check(tree)
}

#[test]
fn the_green_tree_has_no_findings() {
    assert_eq!(check(green()), Vec::<String>::new());
}

#[test]
fn an_arrow_against_the_direction_is_found_with_its_line() {
    let found = with(
        "host/src/matrix/csr.rs",
        "//! x\n\nuse crate::io::Reader;\n",
    );
    assert_eq!(
        found,
        ["host/src/matrix/csr.rs:3: `matrix` uses `io`, but may use only: mapped, parallel"]
    );
}

#[test]
fn arrows_in_groups_and_through_super_are_found() {
    let found = with(
        "host/src/plan/limits.rs",
        "use crate::{matrix::Statistics, device::Cuda};\nuse super::super::ops::X;\n",
    );
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn links_in_comments_and_uses_in_tests_are_free() {
    let text =
        "//! See [`crate::ops`].\n#[cfg(test)]\nmod tests {\n    use crate::reference::spmv;\n}\n";
    assert_eq!(with("host/src/cpu/rows.rs", text), Vec::<String>::new());
}

#[test]
fn a_room_that_nobody_knows_is_found() {
    let found = with("host/src/utils/mod.rs", "");
    assert!(found[0].contains("not in the table"), "{found:?}");
}

#[test]
fn the_driver_outside_the_device_room_is_found() {
    let found = with("host/src/ops/launch.rs", "use cust::stream::Stream;\n");
    assert_eq!(found.len(), 1, "{found:?}");
    let allowed = with("host/src/device/stream.rs", "use cust::stream::Stream;\n");
    assert_eq!(allowed, Vec::<String>::new());
}

#[test]
fn assembly_outside_its_file_and_a_clock_in_a_plan_are_found() {
    let found = with("gpu-kernels/src/team.rs", "fn f() { asm!(\"x\") }\n");
    assert!(found[0].contains("`asm!(`"), "{found:?}");
    let found = with("host/src/plan/cost.rs", "use std::time::Instant;\n");
    assert!(found[0].contains("pure"), "{found:?}");
}

#[test]
fn long_files_and_notes_are_found() {
    let found = with("xtask/src/long.rs", &"\n".repeat(501));
    assert!(found[0].contains("501 lines"), "{found:?}");
    let note = format!("// {}: later\n", concat!("TO", "DO"));
    let found = with("xtask/src/note.rs", &note);
    assert!(found[0].starts_with("xtask/src/note.rs:1:"), "{found:?}");
}

#[test]
fn a_family_without_its_bench_is_found() {
    let mut tree = green();
    tree.retain(|(path, _)| *path != "benches/vector.rs");
    assert_eq!(
        check(tree),
        ["benches: the family `vector` has no file of its name here"]
    );
}
